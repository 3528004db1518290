"""``widemargin compare``: our machines and what one would take instead, on one's own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from widemargin.cli._output import json_option, note, progress, show

if TYPE_CHECKING:
    from widemargin.report import Candidate, Comparison

"""The results as markdown: one table of all promises, then what each part has to tell."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
import scipy
import sklearn

import widemargin
from benchmarks import data
from benchmarks.markdown import table
from benchmarks.part import Part, Row
from benchmarks.settings import Settings


def render(results: list[tuple[Part, Any]], settings: Settings) -> str:
    """Return the report of parts and of what they measured."""
    texts = [_versions()]
    if settings.is_quick:
        texts.append("**A quick run on few rows: it shows that the programs work, no more.**")
        if not data.is_available():
            texts.append("The digits of scikit-learn stand in for every data set.")
    rows = [row for part, found in results for row in part.target_rows(found)]
    texts.append(_targets(rows, settings) if rows else "Nothing was measured.")
    texts += [text for part, found in results for text in part.sections(found)]
    return "\n\n".join(text for text in texts if text)


def _versions() -> str:
    return (
        f"widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores"
    )


def _targets(promises: list[Row], settings: Settings) -> str:
    rows = []
    for target, value, text in promises:
        sign = ">=" if target.better == "higher" else "<="
        bar = "" if target.bar is None else f"{sign} {target.bar:g}{target.unit}"
        stretch = "" if target.stretch is None else f"{target.stretch:g}{target.unit}"
        if value is None:
            verdict = "not measured"
        else:
            verdict = "(quick run)" if settings.is_quick else target.verdict(value)
        rows.append([target.what, bar, stretch, text, verdict])
    return "## Promised and measured\n\n" + table(
        ["", "bar", "stretch", "measured", "verdict"], rows
    )

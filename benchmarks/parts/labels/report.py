"""Machines of label sets as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.labels.measure import Judged
from benchmarks.parts.labels.targets import TARGETS


def target_rows(found: list[Judged]) -> Iterator[Row]:
    for each in found:
        if each.promised is not None:
            loss = float(np.mean(each.hamming))
            yield TARGETS[each.promised][1], loss, f"{loss:.2f} % ({_listed(each.hamming)})"


def sections(found: list[Judged]) -> list[str]:
    rows = [
        [each.dataset, each.name, each.settings]
        + [_listed(values) for values in (each.hamming, each.micro, each.macro)]
        for each in found
    ]
    titles = ["data", "machine", "tuned on training rows", "Hamming, %", "micro F1", "macro F1"]
    text = "## Label sets\n\nOn test rows, a number for each seed.\n\n"
    return [text + table(titles, rows)]


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)

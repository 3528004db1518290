"""Late classes as rows of the table of targets, and as a table of its own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.late_classes.measure import Streams
from benchmarks.parts.late_classes.targets import LOSSES


def target_rows(found: list[Streams]) -> Iterator[Row]:
    for each in found:
        gain = float(each.gains.mean())
        yield LOSSES[each.order], gain, f"{gain:+.2f} points ({_listed(each.gains)})"


def sections(found: list[Streams]) -> list[str]:
    rows = [
        [each.dataset, each.order, _listed(each.announced), _listed(each.unannounced)]
        for each in found
    ]
    titles = ["data", "rows", "announced, %", "not announced, %"]
    return ["## Classes that come late\n\nTest accuracy of each seed.\n\n" + table(titles, rows)]


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)

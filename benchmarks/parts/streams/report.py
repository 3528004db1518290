"""Streams as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.streams.measure import Found, Reading
from benchmarks.parts.streams.targets import MEMORY, SPEED, TEXT


def target_rows(found: Found) -> Iterator[Row]:
    fed = [each for each in found.readings if each.learner != "none"]
    peak = max(fed, key=lambda each: each.megabytes)
    yield MEMORY, peak.megabytes, f"{peak.megabytes:.0f} MB ({peak.kind}, {peak.learner})"
    for each in fed:
        if each.kind in SPEED:
            words = f"{each.rows_per_second:,.0f} rows/s ({each.learner}, {each.rows:,} rows)"
            yield SPEED[each.kind], each.rows_per_second, words
    ratio = found.text_stream / found.text_at_once
    yield TEXT, ratio, f"{ratio:.2f} ({found.text_stream:,.0f} rows/s)"


def sections(found: Found) -> list[str]:
    titles = ["source", "learner", "rows", "rows/s", "peak, MB", "accuracy, %"]
    rows = [_cells(each) for each in found.readings]
    for name, speed in {"stream": found.text_stream, "at once": found.text_at_once}.items():
        rows.append(["svmlight", f"none, by turns: {name}", "", f"{speed:,.0f}", "", ""])
    about = "76 nonzeros of 20,000 features, 4 classes, batches of 2,000; a process for each row."
    return [f"## Streams larger than memory\n\n{about}\n\n" + table(titles, rows)]


def _cells(each: Reading) -> list[str]:
    accuracy = "" if each.learner == "none" else f"{each.accuracy:.1f}"
    numbers = f"{each.rows:,}", f"{each.rows_per_second:,.0f}", f"{each.megabytes:.0f}"
    return [each.kind, each.learner, *numbers, accuracy]

"""Comparisons as a row of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.comparing.measure import Found
from benchmarks.parts.comparing.targets import TIME
from widemargin.report import Candidate


def target_rows(found: Found) -> Iterator[Row]:
    ratio = found.seconds / found.allowed
    yield TIME, ratio, f"{ratio:.2f} ({found.seconds:.0f} s of {found.allowed:.0f} s)"


def sections(found: Found) -> list[str]:
    comparison = found.comparison
    titles = ["", "accuracy, %", "rows", "splits", "µs a row", "alone, µs", "kB", "fit, s"]
    rows = [_cells(row) for row in comparison.candidates if row.measured]
    left_out = [f"{row.name}: {row.note}." for row in comparison.candidates if not row.measured]
    about = f"{comparison.n_rows:,} rows like those of a census, 6 numbers and 8 texts each."
    words = [about, table(titles, rows), *comparison.recommendation, *left_out]
    return ["## A comparison within a time limit\n\n" + "\n\n".join(words)]


def _cells(row: Candidate) -> list[str]:
    spread = "" if len(row.scores) < 2 else f" ± {100 * row.spread:.2f}"
    return [
        row.name + (" *" if row.on_frontier else ""),
        f"{100 * row.mean:.2f}{spread}",
        f"{row.n_rows:,}",
        str(len(row.splits)),
        f"{row.batch_us:.3g}",
        f"{row.alone_us:.3g}",
        f"{row.model_bytes / 1000:,.1f}",
        f"{row.fit_seconds:.2f}",
    ]

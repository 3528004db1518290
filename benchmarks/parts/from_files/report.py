"""Files, pipelines, pages and imports: rows of the table of targets, and tables."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.from_files.measure import KINDS, Found
from benchmarks.parts.from_files.targets import (
    FOLDED,
    IMPORT,
    MEMORY,
    PAGE,
    PLAIN,
    READING,
    WASM,
)

_WORDS = {
    "plain": "pyarrow.csv.open_csv, types found by it",
    "reader": "the reader of the command, types as the model knows them",
    "predict": "widemargin predict",
}


def target_rows(found: Found) -> Iterator[Row]:
    seconds = found.seconds
    for target, kind in ((READING, "reader"), (PLAIN, "plain")):
        ratio = seconds["predict"] / seconds[kind]
        yield target, ratio, f"{ratio:.2f} ({seconds['predict']:.1f} s)"
    peak = found.megabytes["predict"]
    yield MEMORY, peak, f"{peak:.0f} MB"
    ratio = found.one_row["folded"] / found.one_row["bare"]
    yield FOLDED, ratio, f"{ratio:.2f} ({found.one_row['folded']:.2f} µs)"
    yield PAGE, found.page, f"{found.page:.0f} kB"
    yield WASM, found.wasm, f"{found.wasm:.1f} kB"
    ratio = found.imports["widemargin"] / found.imports["sklearn.svm"]
    yield IMPORT, ratio, f"{ratio:.2f} ({found.imports['widemargin']:.2f} s)"


def sections(found: Found) -> list[str]:
    about = f"{found.n_bytes / 1e6:,.0f} MB, {found.n_rows:,} rows of 20 numbers, 20 vectors."
    rows = [
        [
            _WORDS[kind],
            f"{found.seconds[kind]:.2f}",
            f"{1e6 * found.seconds[kind] / found.n_rows:.2f}",
            f"{found.megabytes[kind]:.0f}",
        ]
        for kind in KINDS
    ]
    titles = ["", "s", "µs a row", "peak, MB"]
    return [f"## A CSV through the command\n\n{about}\n\n{table(titles, rows)}"]

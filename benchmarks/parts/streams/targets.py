"""What is promised of streams that do not fit in memory."""

from __future__ import annotations

from benchmarks.targets import Target

MEMORY = Target(
    "a stream of 5M rows, 76 nonzeros each, 4 classes: peak memory", 500, None, "lower", " MB"
)
SPEED = {
    kind: Target(f"the same, rows a second, {words}", 1e5, 4e5, "higher", " rows/s")
    for kind, words in {"folder": "arrays in a folder", "parquet": "Parquet"}.items()
}
TEXT = Target("svmlight text: rows a second / load_svmlight_file alone", 0.9, 1.0, "higher")

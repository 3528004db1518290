"""What is promised of learning letter row by row."""

from __future__ import annotations

from benchmarks.targets import Target

ACCURACY = Target(
    "letter row by row, LaRank with a budget of 2,000: accuracy of the last 5,000 of 20,000",
    93.0,
    95.0,
    "higher",
    " %",
)
TIME = Target("the same: to predict and to learn a row", 500, 200, "lower", " µs")

"""What is promised of comparisons."""

from __future__ import annotations

from benchmarks.targets import Target

TIME = Target(
    "compare, 30,000 rows with 8 columns of texts: time / the time that was allowed",
    1.1,
    None,
    "lower",
)

"""What is promised beside an earlier version."""

from __future__ import annotations

from benchmarks.targets import Target

OTHERS = Target(
    "processor time beside an earlier version, chosen and exact machines", 1.05, None, "lower", "x"
)
LEARNED = Target("the same, learned vectors as they come", 1.2, 0.8, "lower", "x")

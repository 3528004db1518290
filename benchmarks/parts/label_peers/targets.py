"""What is promised of learned machines of label sets against networks of as many units."""

from __future__ import annotations

from benchmarks.targets import Target

LEAD = Target(
    "learned label machine against an MLP of as many units, micro F1, mean of five sets, points",
    0.5,
    1.5,
    "higher",
)
SPEED = Target(
    "awa_phog, 60 learned vectors: one-vs-rest SVC / ours, a row", 1000, 5000, "higher", "x"
)
LOSS = Target(
    "awa_phog, 60 learned vectors: Hamming loss above that of one-vs-rest SVC, points",
    0.0,
    None,
    "lower",
)

"""What is promised of full kernel machines of label sets: times against one SVC a label."""

from __future__ import annotations

from benchmarks.targets import Target

FITS = {
    "awa_phog": Target("awa_phog, 85 labels, fit: one-vs-rest SVC / ours", 10, 30, "higher", "x"),
    "yeast": Target("yeast, 14 labels, fit: one-vs-rest SVC / ours", 3, 10, "higher", "x"),
}
PREDICTIONS = {
    "awa_phog": Target(
        "awa_phog, 2,000 rows predicted: one-vs-rest SVC / ours", 200, 1000, "higher", "x"
    ),
}
DOUBLING = {
    False: Target("awa_phog, time as labels double, unrelated", 2.1, 1.5, "lower", "x"),
    True: Target("awa_phog, time as labels double, dense prior", 2.1, None, "lower", "x"),
}

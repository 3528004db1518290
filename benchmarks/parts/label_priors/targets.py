"""What is promised of label priors under mismatch: lower Hamming loss, in points of percent."""

from __future__ import annotations

from benchmarks.targets import Target

GAINS = {
    "yeast": Target(
        "yeast, rows that disagree: Hamming loss taken off by a prior", 0.0, None, "higher"
    ),
    "two attributes": Target(
        "AwA, black and weak: Hamming loss taken off by a negative correlation",
        0.0,
        None,
        "higher",
    ),
    "attributes": Target(
        "AwA, 85 attributes, 200 rows: Hamming loss taken off by a prior", 0.0, None, "higher"
    ),
    "attributes, sparse": Target("the same by sparse machines (SM3L-P)", 0.0, None, "higher"),
}
VECTORS = Target(
    "AwA, 200 rows: vectors of SM3L-P that have the Hamming loss of M3L-P", 36, 24, "lower"
)

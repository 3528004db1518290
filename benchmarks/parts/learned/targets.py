"""What is promised of a learned basis."""

from __future__ import annotations

from benchmarks.plans import LEARNED_SIZES
from benchmarks.targets import Target, accuracy_target

LEARNED_ACCURACY = tuple(
    accuracy_target(dataset, size, bar, stretch)
    for dataset, figures in {
        "letter.scale": ((45, 94.6, 96.0), (90, 96.6, 97.6), (180, 97.4, 98.1)),
        "satimage.scale": ((10, 89.4, 90.5), (24, 90.6, 91.3), (48, 91.1, 91.8)),
        "usps": ((12, 93.0, 93.8), (29, 94.0, 94.8), (83, 94.6, 95.4)),
        "mnist": ((100, 97.3, 98.0), (300, 98.2, 98.7)),
    }.items()
    for size, bar, stretch in figures
)

# Sets over which the lead over MLPClassifier is taken.
LEAD_SETS = ("letter.scale", "satimage.scale", "usps", "pendigits", "segment.scale")
LEAD = Target(
    "mean lead over MLPClassifier with as many units, 5 sets of 3 sizes", 0.6, 1.2, "higher"
)
LEAST_LEAD = Target("the same on the set where it is least", -0.2, None, "higher")
DEFAULT_LEAD = Target("mean lead over it, nothing tuned on either side", 0.3, 0.8, "higher")

GREEDY_RATIO = {
    name: Target(f"greedy vectors / learned vectors at equal accuracy: {name}", 3.5, 6, "higher")
    for name in ("letter.scale", "satimage.scale", "usps")
}

SVC_VECTORS = {
    name: Target(
        f"within .5 points of SVC, times fewer vectors than it keeps: {name}", 10, 40, "higher"
    )
    for name in LEARNED_SIZES
    if name != "mnist"
}

"""What is promised of the time that a learned basis takes."""

from __future__ import annotations

from benchmarks.targets import Target

LEARNED_FIT_RATIO = {
    name: (
        size,
        Target(
            f"fit of {name}, {size} learned vectors / MLPClassifier", bar, stretch, "lower", "x"
        ),
    )
    for name, size, bar, stretch in (
        ("satimage.scale", 24, 1.0, 0.5),
        ("usps", 29, 1.5, 0.7),
        ("letter.scale", 90, 3.0, 1.0),
    )
}

LEARNED_DOUBLING = {
    "rows": Target("learned basis: cost as rows double, worst doubling", 2.2, None, "lower", "x"),
    "vectors": Target(
        "learned basis: cost as vectors double, worst doubling", 2.5, None, "lower", "x"
    ),
}

CHOSEN_SETS = ("usps", "letter.scale")
CHOICE_LOSS = {
    name: Target(
        f"SparseKernelClassifierCV on {name}, defaults: points below the hand-tuned machine",
        0.3,
        None,
        "lower",
    )
    for name in CHOSEN_SETS
}
CHOICE_SECONDS = {
    name: Target(
        f"SparseKernelClassifierCV on {name}, defaults, 2 cores: seconds", 300, 60, "lower", " s"
    )
    for name in CHOSEN_SETS
}

"""What is promised of fit times, and of the point that a fit reaches."""

from __future__ import annotations

from benchmarks.plans import SELECTED_SIZES
from benchmarks.targets import Target

FIT_RATIO = {
    name: Target(f"fit of {name}, {SELECTED_SIZES[name]} vectors / fit of {svc}", 2.0, 0.7, "lower")
    for name, svc in (
        ("letter.scale", "SVC(C=16, gamma=4)"),
        ("usps", "SVC(C=10, gamma=2**-7)"),
    )
}

GRADIENT = Target("relative gradient reached by the joint solver when asked", 1e-6, None, "lower")

DOUBLING = Target("cost as rows double, worst of the doublings", 2.3, None, "lower", "x")

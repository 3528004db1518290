"""What is promised of machines of two labels, and the exact values that they are held against."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.targets import Target


@dataclass(frozen=True)
class Oracle:
    """An optimum on rows of scene with mountain or field, which a general solver agrees with."""

    title: str
    gamma: float
    every: int  # row
    dual: float
    intercepts: tuple[float, float] | None  # b1 and b2, where they are known


C = 10.0
ORACLES = (
    Oracle("scene, gamma 1", 1.0, 1, 1512.08509, (-0.755000, 1.219199)),
    Oracle("scene, gamma .1", 0.1, 1, 1468.14130, None),
    Oracle("scene, every third row, gamma 1", 1.0, 3, 507.403137, (-0.572622, 1.012319)),
)
DUAL = {
    each.title: Target(f"{each.title}: dual of ParallelSVM off by", 1e-6, None, "lower")
    for each in ORACLES
}
INTERCEPTS = {
    each.title: Target(f"{each.title}: b1 and b2 off by", 1e-4, None, "lower")
    for each in ORACLES
    if each.intercepts is not None
}
FITS = {
    name: Target(f"{name}: fit of ParallelSVM / SVC of the three sets", 3, 1, "lower", "x")
    for name in ("scene", "synthetic")
}

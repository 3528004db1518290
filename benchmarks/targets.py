"""What the library promises: the figures that a run is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Target:
    """A promise in words, the least that is asked for, if it is, and what would be better."""

    what: str
    bar: float | None
    stretch: float | None
    better: Literal["higher", "lower"]
    unit: str = ""

    def verdict(self, value: float) -> str:
        if self.stretch is not None and self._reaches(value, self.stretch):
            return "stretch reached"
        if self.bar is None:
            return "stretch not reached"
        return "bar reached" if self._reaches(value, self.bar) else "MISSED"

    def _reaches(self, value: float, limit: float) -> bool:
        return value >= limit if self.better == "higher" else value <= limit


@dataclass(frozen=True)
class AccuracyTarget(Target):
    """Accuracy in percent on the test rows of a data set, with this many vectors."""

    dataset: str = ""
    n_vectors: int = 0


def accuracy_target(dataset: str, n_vectors: int, bar: float, stretch: float) -> AccuracyTarget:
    what = f"{dataset}, {n_vectors} vectors, tuned on training rows only"
    return AccuracyTarget(what, bar, stretch, "higher", " %", dataset, n_vectors)

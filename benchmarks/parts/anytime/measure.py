"""Accuracy of linear machines against the seconds that they were given.

Every fit is one point: the seconds that it took, from rows in memory to a machine that predicts,
and its accuracy on the test rows. At a budget everybody has the best accuracy of the points that
were there by then, by the test rows: what matters is how far one could have come. Settings whose
machine would be late by far are not tried.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from benchmarks.data import is_available
from benchmarks.parts.anytime.rivals import Fit, ours, rivals
from benchmarks.settings import Settings
from benchmarks.text_data import NEWS, RCV1, SUBSETS, load_text
from benchmarks.trials import say

DATASETS = (NEWS, *SUBSETS)
OURS = "StochasticLinearClassifier"

_FIRST, _LAST = 0.05, 20.0  # seconds


@dataclass(frozen=True)
class Point:
    """One fit."""

    machine: str
    setting: str
    seconds: float
    accuracy: float  # percent


@dataclass(frozen=True)
class Curves:
    """All points of a data set."""

    dataset: str
    points: list[Point]

    def best(self, budget: float, *, is_ours: bool) -> Point | None:
        """Return the best point that was there by then, of this library or of all others."""
        there = [
            point
            for point in self.points
            if point.seconds <= budget and (point.machine == OURS) == is_ours
        ]
        return max(there, key=lambda point: point.accuracy, default=None)

    def budgets(self) -> list[float]:
        """Return the moments at which anything changes, from the first budget on."""
        times = {point.seconds for point in self.points}
        return [_FIRST, *sorted(each for each in times if each > _FIRST)]

    def worst(self) -> tuple[float, float]:
        """Return by how many points the best of the others is ahead at most, and when."""
        behind = []
        for budget in self.budgets():
            theirs, own = (self.best(budget, is_ours=each) for each in (False, True))
            if theirs is not None:
                behind.append((theirs.accuracy - (own.accuracy if own else 0.0), budget))
        return max(behind, default=(0.0, _FIRST))


def measure(settings: Settings, wanted: list[str]) -> list[Curves] | None:
    if not is_available() and not settings.is_quick:
        return None
    names = [NEWS] if NEWS in wanted else []
    if all(name in wanted for name in SUBSETS):
        names.append(RCV1)
    return [_curves(name, settings) for name in names] or None


def _curves(name: str, settings: Settings) -> Curves:
    rows = load_text(name, settings)
    points: list[Point] = []
    last = settings.amount(_LAST, 0.2)
    for machine, fits in {OURS: list(ours(rows)), **rivals(rows)}.items():
        say(f"Any time: {name}, {machine}")
        for setting, fit in fits:
            points.append(_point(machine, setting, fit, rows.y_test, settings))
            if points[-1].seconds > last:
                break
    return Curves(name, points)


def _point(machine: str, setting: str, fit: Fit, y_test: np.ndarray, settings: Settings) -> Point:
    """Return the quickest of some fits: what disturbs them makes them longer alone."""
    seconds = []
    for _ in range(settings.repeats):
        started = time.perf_counter()
        predict = fit()
        seconds.append(time.perf_counter() - started)
        if seconds[-1] > 1.0 or machine == "Vowpal Wabbit":  # which goes on learning
            break
    return Point(machine, setting, min(seconds), 100 * float(np.mean(predict() == y_test)))

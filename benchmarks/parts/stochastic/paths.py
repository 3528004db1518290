"""Accuracy after so many steps, with more and more rows to draw from; and what a step costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.parts.stochastic.targets import ALPHA
from benchmarks.settings import Settings
from benchmarks.text_data import TextRows, generated
from widemargin.kernels import as_native_rows
from widemargin.solvers.linear.sums import LinearSums, StepSettings

#: The machines of the paper, and its rival: a loss, and whether it compares all classes.
MACHINES = {
    "SVM": ("crammer_singer", True),
    "LR": ("logistic", True),
    "perceptron": ("perceptron", True),
    "K-Pegasos": ("crammer_singer", False),
    "K-binaryLR": ("logistic", False),
}


@dataclass(frozen=True)
class Path:
    """Of one machine: accuracies in percent, and seconds, after numbers of steps."""

    dataset: str
    machine: str
    n_rows: int
    steps: tuple[int, ...]
    accuracies: tuple[float, ...]
    seconds: tuple[float, ...]

    def reach(self, accuracy: float) -> tuple[int, float] | None:
        """Return the steps and seconds after which it is reached; None where it is not."""
        for steps, found, seconds in zip(self.steps, self.accuracies, self.seconds, strict=True):
            if found >= accuracy:
                return steps, seconds
        return None


@dataclass(frozen=True)
class StepCost:
    """Microseconds of a step with so many rows to draw from.

    ``cached`` is that of steps which draw from a few that lie together, as many in each case: what
    is left of a difference then is not that of caches and memory.
    """

    n_rows: int
    microseconds: float
    cached: float


def _settings(machine: str) -> StepSettings:
    loss, is_joint = MACHINES[machine]
    return StepSettings(loss=loss, is_joint=is_joint, is_exact=False, alpha=ALPHA)


class _Walker:
    """Steps of Algorithm 1 on rows that are drawn at random, with replacement as in the paper."""

    def __init__(self, rows: TextRows, machine: str, seed: int = 0) -> None:
        self.settings, self.rng = _settings(machine), np.random.RandomState(seed)
        classes, numbers = np.unique(rows.y, return_inverse=True)
        self.rows, self.targets = as_native_rows(rows.X), numbers.astype(np.int32)
        self.ones, self.n_rows, self.classes = np.ones(len(rows.y)), len(rows.y), classes
        self.sums = LinearSums.begin(rows.X.shape[1], len(classes), rows.X.dtype, average=True)

    def take(self, steps: int, n_drawn: int | None = None) -> float:
        """Take so many steps, with rows of all or of the first so many; return the seconds."""
        order = self.rng.randint(0, n_drawn or self.n_rows, steps).astype(np.int32)
        started = time.perf_counter()
        self.sums.learn(self.rows, self.targets, self.ones, order, self.settings)
        return time.perf_counter() - started

    def accuracy(self, rows: TextRows) -> float:
        scores = self.sums.scores(rows.X_test, self.settings)
        return float(100 * np.mean(self.classes[scores.argmax(axis=1)] == rows.y_test))


def walk(rows: TextRows, settings: Settings) -> Iterator[Path]:
    """Yield the paths of all machines on rows."""
    most = settings.amount(30_000, 600)
    marks = np.unique(np.geomspace(most / 60, most, 25).astype(int))
    for machine in MACHINES:
        walker = _Walker(rows, machine)
        taken, seconds = 0, 0.0
        accuracies, times = [], []
        for mark in marks:
            seconds += walker.take(int(mark) - taken)
            taken = int(mark)
            accuracies.append(walker.accuracy(rows))
            times.append(seconds)
        steps = tuple(int(mark) for mark in marks)
        yield Path(rows.name, machine, len(rows.y), steps, tuple(accuracies), tuple(times))


def step_costs(sizes: tuple[int, ...]) -> list[StepCost]:
    """Return the cost of a step with numbers of rows that take turns.

    Of many rows, one that is drawn from all is read from memory, of few, from a cache; weights are
    as many in each case.
    """
    rows = generated(sizes[-1])
    walkers = {size: _Walker(rows.first(size), "SVM") for size in sizes}
    steps = min(50_000, 10 * sizes[0])
    times: dict[tuple[int, int], list[float]] = {}
    for turn in range(6):
        for size, walker in walkers.items():
            for n_drawn in (size, sizes[0]):
                seconds = walker.take(steps, n_drawn)
                if turn:  # the first is to warm up
                    times.setdefault((size, n_drawn), []).append(seconds)
    costs = {key: 1e6 * median(each) / steps for key, each in times.items()}
    return [StepCost(size, costs[size, size], costs[size, sizes[0]]) for size in sizes]

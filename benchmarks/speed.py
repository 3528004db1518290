"""Fit time as a ratio to SVC's in the same run, and how it grows with the rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data import load, synthetic
from benchmarks.models import full_svc, sparse
from benchmarks.settings import Settings
from benchmarks.targets import ACCURACY, FIT_RATIO
from benchmarks.trials import say
from benchmarks.tuning import TunedFile

Variant = tuple[str, int]  # dtype of X, n_jobs
VARIANTS: tuple[Variant, ...] = (("float64", 1), ("float64", -1), ("float32", 1), ("float32", -1))
# Held against the target: the same input as SVC has, and one thread as it has.
HEADLINE: Variant = ("float64", 1)


@dataclass(frozen=True)
class FitTimes:
    """Seconds of each run; the runs of all variants take turns."""

    dataset: str
    svc: list[float]
    ours: dict[Variant, list[float]]

    def ratios(self, variant: Variant) -> list[float]:
        pairs = zip(self.ours[variant], self.svc, strict=True)
        return [ours / svc for ours, svc in pairs]


@dataclass(frozen=True)
class Doubling:
    """Seconds by number of rows; the median of several runs that take turns."""

    n_vectors: int
    seconds: dict[int, float]

    @property
    def growth(self) -> list[float]:
        times = [self.seconds[n_rows] for n_rows in sorted(self.seconds)]
        return [after / before for before, after in pairwise(times)]


def fit_seconds(estimator: Any, X: np.ndarray, y: np.ndarray) -> float:
    started = time.perf_counter()
    estimator.fit(X, y)
    return time.perf_counter() - started


def against_svc(settings: Settings, wanted: list[str]) -> list[FitTimes]:
    return [
        _against_svc(target.dataset, target.n_vectors, settings)
        for target in ACCURACY
        if target.dataset in FIT_RATIO and target.dataset in wanted
    ]


def _against_svc(name: str, n_vectors: int, settings: Settings) -> FitTimes:
    dataset = load(name).thinned(settings.max_rows)
    rows = {dtype: dataset.X.astype(dtype) for dtype in ("float64", "float32")}
    _, tuned = TunedFile().get(name, "sparse", n_vectors)
    times = FitTimes(name, [], {variant: [] for variant in VARIANTS})
    for repeat in range(settings.repeats):
        say(f"Fit time on {name}, run {repeat + 1} of {settings.repeats}")
        times.svc.append(fit_seconds(full_svc(name), rows["float64"], dataset.y))
        for dtype, n_jobs in VARIANTS:
            estimator = sparse(n_vectors, seed=repeat, n_jobs=n_jobs, **tuned.chosen)
            times.ours[dtype, n_jobs].append(fit_seconds(estimator, rows[dtype], dataset.y))
    return times


def as_rows_double(settings: Settings) -> Doubling:
    runs: dict[int, list[float]] = {n_rows: [] for n_rows in settings.doubling_rows}
    for repeat in range(settings.repeats):
        say(f"Fit time as rows double, run {repeat + 1} of {settings.repeats}")
        for n_rows, seconds in runs.items():
            estimator = sparse(settings.doubling_vectors, seed=repeat)
            seconds.append(fit_seconds(estimator, *synthetic(n_rows)))
    times = {n_rows: median(seconds) for n_rows, seconds in runs.items()}
    return Doubling(settings.doubling_vectors, times)

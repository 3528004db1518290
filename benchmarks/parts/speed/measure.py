"""Fit time as a ratio to SVC's in the same run, and how it grows with the rows."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from benchmarks.data import synthetic
from benchmarks.doubling import Doubling, rows_that_double, vectors_of_doubling
from benchmarks.models import full_svc, sparse
from benchmarks.parts.speed import gradient
from benchmarks.parts.speed.gradient import Reached
from benchmarks.parts.speed.targets import FIT_RATIO
from benchmarks.plans import SELECTED_SIZES
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds
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
class Speed:
    fit_times: list[FitTimes]
    gradient: Reached
    doubling: Doubling


def measure(settings: Settings, wanted: list[str]) -> Speed:
    return Speed(
        [
            _against_svc(name, SELECTED_SIZES[name], settings)
            for name in FIT_RATIO
            if name in wanted
        ],
        gradient.measure(settings, wanted),
        _as_rows_double(settings),
    )


def _against_svc(name: str, n_vectors: int, settings: Settings) -> FitTimes:
    dataset = settings.load(name)
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


def _as_rows_double(settings: Settings) -> Doubling:
    runs: dict[int, list[float]] = {n_rows: [] for n_rows in rows_that_double(settings)}
    n_vectors = vectors_of_doubling(settings)
    for repeat in range(settings.repeats):
        say(f"Fit time as rows double, run {repeat + 1} of {settings.repeats}")
        for n_rows, seconds in runs.items():
            estimator = sparse(n_vectors, seed=repeat)
            seconds.append(fit_seconds(estimator, *synthetic(n_rows)))
    times = {n_rows: median(seconds) for n_rows, seconds in runs.items()}
    return Doubling(n_vectors, times)

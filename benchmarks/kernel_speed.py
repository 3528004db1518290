"""Times of full kernel machines: fits and predictions beside SVC, rows of a stream, kernlab."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from sklearn.svm import SVC

from benchmarks import kernlab
from benchmarks.data import Dataset
from benchmarks.kernlab import BesideKernlab
from benchmarks.settings import Settings
from benchmarks.speed import fit_seconds
from benchmarks.targets import KERNEL_FIT_RATIO, KERNEL_PARAMETERS
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import KernelClassifier

LETTER = "letter.raw"
# Of the machine that learns a stream. With the paper's .025 there are fewer than 5000 support
# patterns even at the optimum; with this one they are there before the rows end.
STREAM_GAMMA = 0.05
_STREAM_BLOCK = 250


@dataclass(frozen=True)
class PassTimes:
    """Seconds of fits that take turns: float64 rows, one thread, 200 megabytes of cache each."""

    dataset: str
    ours: list[float]
    svc: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / svc for ours, svc in zip(self.ours, self.svc, strict=True)]


@dataclass(frozen=True)
class PredictTimes:
    """Microseconds a row, all test rows in one call, float64, one thread."""

    n_rows: int
    n_patterns: int
    n_support: int  # of SVC
    estimator: float
    compiled: float
    svc: float


@dataclass(frozen=True)
class StreamTimes:
    """Microseconds of calls of partial_fit with one row that it has not seen."""

    n_patterns: int  # when they began
    n_features: int
    calls: list[float]

    @property
    def median(self) -> float:
        return median(self.calls)


@dataclass(frozen=True)
class KernelSpeed:
    passes: list[PassTimes]
    predict: PredictTimes | None = None
    stream: StreamTimes | None = None
    kernlab: BesideKernlab | None = None


def measure(settings: Settings, sets: dict[str, Dataset]) -> KernelSpeed:
    passes = [_pass(sets[name], settings) for name in KERNEL_FIT_RATIO if name in sets]
    if LETTER not in sets:
        return KernelSpeed(passes)
    rows = sets[LETTER]
    return KernelSpeed(
        passes, _predict(rows, settings), _stream(rows, settings), kernlab.measure(settings)
    )


def _pass(rows: Dataset, settings: Settings) -> PassTimes:
    parameters = KERNEL_PARAMETERS[rows.name]
    times = PassTimes(rows.name, [], [])
    for repeat in range(settings.repeats):
        say(f"One LaRank pass over {rows.name} and SVC, run {repeat + 1} of {settings.repeats}")
        machine = KernelClassifier(**parameters, epochs=1, random_state=repeat, n_jobs=1)
        times.ours.append(fit_seconds(machine, rows.X, rows.y))
        times.svc.append(fit_seconds(SVC(**parameters), rows.X, rows.y))
    return times


def _predict(rows: Dataset, settings: Settings) -> PredictTimes:
    parameters = KERNEL_PARAMETERS[rows.name]
    say(f"Prediction of {rows.name}, {len(rows.X_test)} rows at once")
    machine = KernelClassifier(**parameters, cache_size=500, random_state=0, n_jobs=1)
    machine.fit(rows.X, rows.y)
    svc = SVC(**parameters).fit(rows.X, rows.y)
    calls = {
        "estimator": partial(machine.predict, rows.X_test),
        "compiled": partial(machine.compile().predict, rows.X_test),
        "svc": partial(svc.predict, rows.X_test),
    }
    seconds = take_turns(calls, settings.repeats)
    each = {name: 1e6 * taken / len(rows.X_test) for name, taken in seconds.items()}
    return PredictTimes(len(rows.X_test), machine.n_basis_, len(svc.support_), **each)


def _stream(rows: Dataset, settings: Settings) -> StreamTimes:
    say(f"Rows of {rows.name} as a stream")
    order = np.random.RandomState(0).permutation(len(rows.y))
    X, y = np.ascontiguousarray(rows.X[order]), rows.y[order]
    machine = KernelClassifier(
        C=KERNEL_PARAMETERS[LETTER]["C"],
        gamma=STREAM_GAMMA,
        cache_size=500,
        random_state=0,
        n_jobs=1,
    )
    classes, seen = np.unique(y), 0
    last = len(y) - settings.stream_calls
    # By blocks, because a look at n_basis_ takes longer than a row does.
    while seen < last:
        upto = min(seen + _STREAM_BLOCK, last)
        machine.partial_fit(X[seen:upto], y[seen:upto], classes=classes)
        seen = upto
        if machine.n_basis_ >= settings.stream_patterns:
            break
    n_patterns = machine.n_basis_
    calls = []
    for i in range(seen, seen + settings.stream_calls):
        row, label = X[i : i + 1], y[i : i + 1]
        started = time.perf_counter_ns()
        machine.partial_fit(row, label)
        calls.append((time.perf_counter_ns() - started) / 1e3)
    return StreamTimes(n_patterns, X.shape[1], calls)

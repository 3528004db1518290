"""Times of full kernel machines: fits and predictions beside SVC, rows of a stream, kernlab."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
from sklearn.svm import SVC

from benchmarks.data import Dataset
from benchmarks.parts.kernel import kernlab
from benchmarks.parts.kernel.kernlab import BesideKernlab
from benchmarks.parts.kernel.targets import KERNEL_FIT_RATIO, KERNEL_PARAMETERS, PAPER_MACHINE
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds, take_turns
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
    """Microseconds of calls with one row that it has not seen: learned, predicted, both in turn."""

    n_patterns: int  # when they began
    n_features: int
    calls: list[float]  # of partial_fit
    predictions: list[float]
    turns: list[float]  # of a prediction and a call of partial_fit

    @property
    def median(self) -> float:
        return median(self.calls)

    @property
    def turn_ratio(self) -> float:
        """Time of a turn over the sum of its parts."""
        return median(self.turns) / (self.median + median(self.predictions))


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
        machine = KernelClassifier(
            **parameters, **PAPER_MACHINE, epochs=1, random_state=repeat, n_jobs=1
        )
        times.ours.append(fit_seconds(machine, rows.X, rows.y))
        times.svc.append(fit_seconds(SVC(**parameters), rows.X, rows.y))
    return times


def _predict(rows: Dataset, settings: Settings) -> PredictTimes:
    parameters = KERNEL_PARAMETERS[rows.name]
    say(f"Prediction of {rows.name}, {len(rows.X_test)} rows at once")
    machine = KernelClassifier(
        **parameters, **PAPER_MACHINE, cache_size=500, random_state=0, n_jobs=1
    )
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
    n_wanted = settings.amount(5_000, quick=300)  # patterns, when single rows are learned
    n_calls = settings.amount(500, quick=20)  # timed calls that learn one row
    order = np.random.RandomState(0).permutation(len(rows.y))
    X, y = np.ascontiguousarray(rows.X[order]), rows.y[order]
    machine = KernelClassifier(
        C=KERNEL_PARAMETERS[LETTER]["C"],
        gamma=STREAM_GAMMA,
        **PAPER_MACHINE,
        cache_size=500,
        random_state=0,
        n_jobs=1,
    )
    classes, seen = np.unique(y), 0
    last = len(y) - 2 * n_calls
    # By blocks, because a look at n_basis_ takes longer than a row does.
    while seen < last:
        upto = min(seen + _STREAM_BLOCK, last)
        machine.partial_fit(X[seen:upto], y[seen:upto], classes=classes)
        seen = upto
        if machine.n_basis_ >= n_wanted:
            break
    n_patterns = machine.n_basis_

    def learn(i: int) -> None:
        machine.partial_fit(X[i : i + 1], y[i : i + 1])

    def predict(i: int) -> None:
        machine.predict(X[i : i + 1])

    def turn(i: int) -> None:
        predict(i)
        learn(i)

    unseen = range(seen, seen + n_calls)
    calls = _microseconds(learn, unseen)
    predictions = _microseconds(predict, unseen)
    turns = _microseconds(turn, range(unseen.stop, unseen.stop + n_calls))
    return StreamTimes(n_patterns, X.shape[1], calls, predictions, turns)


def _microseconds(call: Callable[[int], None], numbers: range) -> list[float]:
    taken = []
    for number in numbers:
        started = time.perf_counter_ns()
        call(number)
        taken.append((time.perf_counter_ns() - started) / 1e3)
    return taken

"""Linear machines row by row.

Times are those of a clock, of calls that take turns. Everybody has the fewest passes, or the
loosest tolerance, with which it reaches the accuracy in question on the test rows, and rows in the
precision that it computes in. There are no intercepts, as those of rivals are other ones.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.data import is_available
from benchmarks.parts.stochastic.paths import Path, StepCost, step_costs, walk
from benchmarks.parts.stochastic.targets import ALPHA, OPTIMA, WANTED
from benchmarks.settings import Settings
from benchmarks.text_data import NEWS, RCV1, SUBSETS, TextRows, generated, load_text
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import KernelClassifier, StochasticLinearClassifier

DATASETS = (NEWS, *SUBSETS, "mnist")
LIBLINEAR = "LinearSVC crammer_singer"

_PASSES = (1, 2, 3, 5, 8, 13, 20, 30)
_TOLERANCES = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4)
_OWN_TOLERANCE = 1e-4  # the default of LinearSVC
_SIZES = (500, 1000, 2000, 5000, 11314)


@dataclass(frozen=True)
class Race:
    """Who reached an accuracy, and how long it took; who did not, with the most effort tried."""

    dataset: str
    rival: str
    wanted: float  # percent
    ours: float  # seconds
    theirs: float
    our_passes: int
    their_setting: float  # passes, or the tolerance
    we_reach: bool
    rival_reaches: bool


@dataclass(frozen=True)
class Against:
    """Cutting planes on a linear kernel, beside rows one by one: seconds and accuracies."""

    n_rows: int
    ours: float
    theirs: float
    our_accuracy: float
    their_accuracy: float


@dataclass
class Found:
    """All that was measured."""

    races: list[Race] = field(default_factory=list)
    excess: dict[str, float] = field(default_factory=dict)  # of objectives above the optimum
    costs: list[StepCost] = field(default_factory=list)
    paths: list[Path] = field(default_factory=list)
    planes: list[Against] = field(default_factory=list)


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    if not is_available() and not settings.is_quick:
        return Found(costs=step_costs(_generated_sizes(settings)))
    found = Found()
    if NEWS in wanted:
        news = load_text(NEWS, settings)
        say(f"Row by row: {NEWS}")
        target = WANTED if not settings.is_quick else 50.0
        found.races += _against_liblinear(settings, news, target)
        found.races += _against_sgd(settings, news, ALPHA)
        found.excess = _excess(settings, news)
        sizes = settings.amount(_SIZES, (100, 200))
        found.paths += [path for size in sizes for path in walk(news.first(size), settings)]
        found.planes = [_planes(news.first(size)) for size in settings.amount((500, 1000), (100,))]
    if "mnist" in wanted:
        say("Row by row: mnist")
        found.races += _against_sgd(settings, _mnist(settings), ALPHA)
    if all(name in wanted for name in SUBSETS):
        say("Row by row: rcv1")
        rows = load_text(RCV1, settings)
        sizes = [size for size in settings.amount(_SIZES, (100, 200)) if size <= len(rows.y)]
        found.paths += [path for size in sizes for path in walk(rows.first(size), settings)]
    say("Row by row: cost of a step")
    found.costs = step_costs(_generated_sizes(settings))
    million = generated(_generated_sizes(settings)[-1])
    for size in settings.amount((10_000, 100_000, 1_000_000), (500, 1000)):
        found.paths += walk(million.first(size), settings)
    return found


def _generated_sizes(settings: Settings) -> tuple[int, ...]:
    return settings.amount((10_000, 100_000, 1_000_000), (500, 1000))


def _ours(passes: int, loss: str = "crammer_singer", seed: int = 0) -> StochasticLinearClassifier:
    return StochasticLinearClassifier(
        loss, alpha=ALPHA, fit_intercept=False, max_iter=passes, tol=None, random_state=seed
    )


def _accuracy(machine: Any, rows: TextRows) -> float:
    return float(100 * machine.score(rows.X_test, rows.y_test))


def _fewest(make: Callable[[Any], Any], settings: Any, rows: TextRows, wanted: float) -> Any:
    """Return the first of some settings with which the accuracy is reached, and whether it is."""
    for setting in settings:
        if _accuracy(make(setting), rows) >= wanted:
            return setting, True
    return setting, False


def _mean_of_seeds(settings: Settings, rows: TextRows, loss: str) -> Callable[[int], Any]:
    """Return what makes a machine whose score is the mean of those of all seeds."""

    class Mean:
        def __init__(self, passes: int) -> None:
            self.machines = [
                _ours(passes, loss, seed).fit(rows.X, rows.y) for seed in settings.seeds
            ]

        def score(self, X: Any, y: Any) -> float:
            return float(np.mean([machine.score(X, y) for machine in self.machines]))

    return Mean


def _against_liblinear(settings: Settings, rows: TextRows, wanted: float) -> list[Race]:
    """Race against its own tolerance, and against the loosest with which it gets there."""
    double = rows.X.astype(np.float64)

    def fit(tol: float) -> Any:
        svm = LinearSVC(
            multi_class="crammer_singer",
            C=1 / (ALPHA * len(rows.y)),
            fit_intercept=False,
            tol=tol,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return svm.fit(double, rows.y)

    passes, we_reach = _fewest(
        _mean_of_seeds(settings, rows, "crammer_singer"), _PASSES, rows, wanted
    )
    loosest, rival_reaches = _fewest(fit, _TOLERANCES, rows, wanted)
    calls = {
        "ours": lambda: _ours(passes).fit(rows.X, rows.y),
        _OWN_TOLERANCE: lambda: fit(_OWN_TOLERANCE),
        loosest: lambda: fit(loosest),
    }
    seconds = take_turns(calls, settings.repeats)
    ours = seconds["ours"]
    return [
        Race(rows.name, name, wanted, ours, seconds[tol], passes, tol, we_reach, rival_reaches)
        for name, tol in ((LIBLINEAR, _OWN_TOLERANCE), (f"{LIBLINEAR}, loosest", loosest))
    ]


def _against_sgd(settings: Settings, rows: TextRows, alpha: float) -> list[Race]:
    """Race to what SGDClassifier comes to by itself, less a tenth of a point."""
    races = []
    for loss, own_loss in (("hinge", "crammer_singer"), ("log_loss", "logistic")):

        def fit(passes: int, loss: str = loss, **more: Any) -> SGDClassifier:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                return SGDClassifier(
                    loss=loss,
                    alpha=alpha,
                    fit_intercept=False,
                    average=True,
                    max_iter=passes,
                    random_state=0,
                    n_jobs=2,
                    **{"tol": None} | more,
                ).fit(rows.X, rows.y)

        wanted = _accuracy(fit(settings.amount(1000, 20), tol=1e-3), rows) - 0.1
        theirs, rival_reaches = _fewest(fit, _PASSES, rows, wanted)
        passes, we_reach = _fewest(_mean_of_seeds(settings, rows, own_loss), _PASSES, rows, wanted)
        calls = {
            "ours": lambda passes=passes, own=own_loss: _ours(passes, own).fit(rows.X, rows.y),
            "rival": lambda theirs=theirs, fit=fit: fit(theirs),
        }
        seconds = take_turns(calls, settings.repeats)
        both = seconds["ours"], seconds["rival"]
        races.append(Race(rows.name, loss, wanted, *both, passes, theirs, we_reach, rival_reaches))
    return races


def _mnist(settings: Settings) -> TextRows:
    """Return the digits, between 0 and 1, as dense rows."""
    data = settings.load("mnist", "float32")
    scale = max(1.0, float(np.abs(data.X).max()))
    return TextRows("mnist", data.X / scale, data.y, data.X_test / scale, data.y_test)


def _excess(settings: Settings, rows: TextRows) -> dict[str, float]:
    excess = {}
    for loss, optimum in OPTIMA.items():
        machine = _ours(settings.amount(30, 2), loss).set_params(solver="pegasos")
        excess[loss] = float(machine.fit(rows.X, rows.y).objective_ - optimum)
    return excess


def _planes(rows: TextRows) -> Against:
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        planes = KernelClassifier(
            kernel="linear",
            solver="cutting_plane",
            C=1 / (ALPHA * len(rows.y)),
            fit_intercept=False,
            tol=1e-2,
            max_seconds=60.0,
            random_state=0,
        ).fit(rows.X, rows.y)
    theirs = time.perf_counter() - started
    started = time.perf_counter()
    machine = _ours(3).fit(rows.X, rows.y)
    ours = time.perf_counter() - started
    return Against(len(rows.y), ours, theirs, _accuracy(machine, rows), _accuracy(planes, rows))

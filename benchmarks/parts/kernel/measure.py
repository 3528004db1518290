"""Full kernel machines: what exact and online solvers reach, and what they compute for it.

The tables and figures of Bordes, Bottou, Gallinari and Weston, "Solving MultiClass Support Vector
Machines with LaRank" (2007), on the same data, and what a machine of theirs is compressed to.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.data import Dataset
from benchmarks.models import SVC_PARAMETERS
from benchmarks.parts.kernel import speed as kernel_speed
from benchmarks.parts.kernel.speed import KernelSpeed
from benchmarks.parts.kernel.targets import KERNEL_PARAMETERS, PAPER_MACHINE
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds
from benchmarks.trials import say
from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron, compress
from widemargin.solvers.duals.larank import LaRank

LETTER, USPS, MNIST = "letter.raw", "usps", "mnist"

TITLES = {
    "larank_1": "LaRank, one pass",
    "larank_gap": "LaRank until the gap",
    "full_gradient": "full gradient (MCSVM) until the gap",
    "cutting_plane": "cutting plane (SVMstruct) until the gap",
    "perceptron_1": "averaged perceptron, one pass",
    "perceptron_10": "averaged perceptron, ten passes",
    "mira": "MIRA, one pass",
}
OTHERS_ONLINE = ("perceptron_1", "perceptron_10", "mira")
OPERATIONS = (("new",), ("new", "optimize"), ("new", "old"), ("new", "old", "optimize"))
EXACT_TOL = 1e-5
COMPRESSED_VECTORS = 83

_MEGABYTES = {MNIST: 1000.0}
_USUAL_MEGABYTES = 500.0  # as the paper has
_MOST_SECONDS = 600.0  # of the slowest solver, on the larger set


@dataclass(frozen=True)
class Outcome:
    """One fit: what came of it, and what was computed."""

    error: float  # percent of the test rows
    kernel_values: float  # millions
    arg_max: float  # thousands of searches for the worst class
    patterns: int
    seconds: float
    dual: float = np.nan
    gap: float = np.inf
    reason: str = ""


@dataclass(frozen=True)
class Runs:
    """The fits of one machine, over seeds."""

    dataset: str
    title: str
    outcomes: list[Outcome]

    def values(self, name: str) -> list[float]:
        return [float(getattr(outcome, name)) for outcome in self.outcomes]

    def mean(self, name: str) -> float:
        return float(np.mean(self.values(name)))

    def spread(self, name: str, digits: int = 2) -> str:
        return spread(self.values(name), digits)


def spread(values: list[float], digits: int = 2) -> str:
    """Return mean, standard deviation and range in words; of one value, that."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    mean, deviation = np.mean(values), np.std(values, ddof=1)
    return f"{mean:.{digits}f} ± {deviation:.{digits}f} ({low} to {high})"


@dataclass(frozen=True)
class Compressed:
    """A full machine of usps and the small one made of it; accuracies in percent."""

    title: str
    n_vectors: int
    accuracy: float
    small_vectors: int
    small_accuracy: float
    agreement: float  # percent of the test rows that keep their class
    seconds: float


@dataclass(frozen=True)
class KernelMachines:
    runs: dict[str, dict[str, Runs]]  # by data set, then by machine
    exact: dict[str, Runs]  # by solver
    operations: dict[tuple[str, ...], Runs]
    compressed: list[Compressed]
    speed: KernelSpeed
    left_out: list[str] = field(default_factory=list)


def measure(settings: Settings, wanted: list[str]) -> KernelMachines | None:
    names = [name for name in KERNEL_PARAMETERS if name in wanted]
    if not names:
        return None
    # One thread: SVC has no more, and times stand beside all that is counted.
    with threadpool_limits(1):
        sets = {name: _rows_of(name, settings) for name in names}
        speed = kernel_speed.measure(settings, sets)
        return KernelMachines(
            {name: _beside(rows, settings) for name, rows in sets.items()},
            _exact(sets[LETTER], settings) if LETTER in sets else {},
            _operations(sets[USPS], settings) if USPS in sets else {},
            _compress(sets[USPS]) if USPS in sets else [],
            speed,
            [name for name in KERNEL_PARAMETERS if name not in names],
        )


def _rows_of(name: str, settings: Settings) -> Dataset:
    if name != MNIST:
        return settings.load(name)
    rows = settings.load(name, "float32")
    scale = np.float32(255)
    return replace(rows, X=rows.X / scale, X_test=rows.X_test / scale)


def _machines(name: str) -> dict[str, Callable[[int], Any]]:
    """Return what makes a machine of a seed."""
    cache_size = _MEGABYTES.get(name, _USUAL_MEGABYTES)
    shared = {"gamma": KERNEL_PARAMETERS[name]["gamma"], "cache_size": cache_size, "n_jobs": 1}
    shared |= PAPER_MACHINE
    with_c = shared | {"C": KERNEL_PARAMETERS[name]["C"]}

    def make(kind: Any, **parameters: Any) -> Callable[[int], Any]:
        return lambda seed: kind(**parameters, random_state=seed)

    machines = {"larank_1": make(KernelClassifier, epochs=1, **with_c)}
    if name == MNIST:
        return machines
    slowest = {"solver": "cutting_plane", "max_seconds": _MOST_SECONDS}
    return machines | {
        "larank_gap": make(KernelClassifier, **with_c),
        "full_gradient": make(KernelClassifier, solver="full_gradient", **with_c),
        "cutting_plane": make(KernelClassifier, **slowest, **with_c),
        "perceptron_1": make(KernelPerceptron, epochs=1, **shared),
        "perceptron_10": make(KernelPerceptron, epochs=10, **shared),
        "mira": make(KernelMIRA, epochs=1, **with_c),
    }


def _beside(rows: Dataset, settings: Settings) -> dict[str, Runs]:
    found = {}
    for key, build in _machines(rows.name).items():
        # It takes a minute on letter, and its result is that of the other exact solvers.
        is_slow = key == "cutting_plane" and rows.name == LETTER
        seeds = settings.seeds[:1] if is_slow else settings.seeds
        found[key] = _over_seeds(TITLES[key], build, rows, seeds)
    return found


def _exact(rows: Dataset, settings: Settings) -> dict[str, Runs]:
    def build(solver: str, seed: int) -> KernelClassifier:
        return KernelClassifier(
            **KERNEL_PARAMETERS[LETTER],
            **PAPER_MACHINE,
            solver=solver,
            tol=EXACT_TOL,
            cache_size=_USUAL_MEGABYTES,
            random_state=seed,
            n_jobs=1,
        )

    plan = {"larank": settings.seeds, "full_gradient": settings.seeds[:1]}
    return {
        solver: _over_seeds(f"{solver}, tol={EXACT_TOL:g}", partial(build, solver), rows, seeds)
        for solver, seeds in plan.items()
    }


def _operations(rows: Dataset, settings: Settings) -> dict[tuple[str, ...], Runs]:
    def build(operations: tuple[str, ...], seed: int) -> KernelClassifier:
        return KernelClassifier(
            **KERNEL_PARAMETERS[USPS],
            **PAPER_MACHINE,
            solver=LaRank(operations=operations),
            epochs=1,
            cache_size=_USUAL_MEGABYTES,
            random_state=seed,
            n_jobs=1,
        )

    return {
        each: _over_seeds(" + ".join(each), partial(build, each), rows, settings.seeds)
        for each in OPERATIONS
    }


def _over_seeds(
    title: str, build: Callable[[int], Any], rows: Dataset, seeds: tuple[int, ...]
) -> Runs:
    say(f"Kernel machines on {rows.name}: {title}")
    return Runs(rows.name, title, [_fit(build(seed), rows) for seed in seeds])


def _fit(machine: Any, rows: Dataset) -> Outcome:
    with warnings.catch_warnings():
        # The report says where a fit ended early.
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds = fit_seconds(machine, rows.X, rows.y)
    history = machine.history_
    # A learner that looks at each row once searches once for each.
    arg_max = history["arg_max" if "arg_max" in history else "rows_seen"][-1]
    return Outcome(
        _error(machine, rows),
        machine.n_kernel_evaluations_ / 1e6,
        arg_max / 1e3,
        machine.n_basis_,
        seconds,
        getattr(machine, "dual_objective_", np.nan),
        getattr(machine, "gap_", np.inf),
        getattr(machine, "stop_reason_", ""),
    )


def _error(machine: Any, rows: Dataset) -> float:
    return 100.0 * float(np.mean(machine.predict(rows.X_test) != rows.y_test))


def _compress(rows: Dataset) -> list[Compressed]:
    """Compress machines with the kernel of the paper, and with the wider one of other parts."""
    found = []
    for parameters in (KERNEL_PARAMETERS[USPS], SVC_PARAMETERS[USPS]):
        settings = ", ".join(f"{name}={value:.4g}" for name, value in parameters.items())
        for machine in (
            SVC(**parameters),
            KernelClassifier(**parameters, **PAPER_MACHINE, random_state=0, n_jobs=1),
        ):
            title = f"{type(machine).__name__}({settings})"
            say(f"Compression of {title} on {rows.name}")
            machine.fit(rows.X, rows.y)
            found.append(_compressed(title, machine, rows))
    return found


def _compressed(title: str, machine: Any, rows: Dataset) -> Compressed:
    started = time.perf_counter()
    small = compress(machine, COMPRESSED_VECTORS, rows.X, random_state=0, n_jobs=1, verbose=False)
    seconds = time.perf_counter() - started
    before, after = machine.predict(rows.X_test), small.predict(rows.X_test)
    support = getattr(machine, "support_", None)
    return Compressed(
        title,
        machine.n_basis_ if support is None else len(support),
        100.0 * float(np.mean(before == rows.y_test)),
        small.n_basis_,
        100.0 * float(np.mean(after == rows.y_test)),
        100.0 * float(np.mean(before == after)),
        seconds,
    )

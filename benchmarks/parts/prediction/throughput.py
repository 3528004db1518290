"""Labels of many rows: ours against chunked NumPy + BLAS with as many threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from os import cpu_count

import numpy as np

from benchmarks.markdown import count
from benchmarks.parts.prediction.numpy_rival import Form, NumpyRival, Way, ways
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import CompiledPredictor
from widemargin.kernels import RBF
from widemargin.models import KernelExpansion, Model
from widemargin.readouts import Readout

N_VECTORS, N_CLASSES = 100, 10


@dataclass(frozen=True)
class Throughput:
    """Seconds for all rows."""

    where: str
    n_rows: int
    n_features: int
    n_threads: int
    precision: str  # in which our machine computes
    ours: float
    numpy: dict[Form, tuple[Way, float]]  # the best way of each form
    other_labels: int

    def ratio(self, form: Form) -> float:
        return self.numpy[form][1] / self.ours


@dataclass(frozen=True)
class Machine:
    """An expansion, its labels, and rows to predict."""

    where: str
    model: KernelExpansion
    classes: np.ndarray
    X: np.ndarray

    def compiled(self, n_jobs: int) -> CompiledPredictor:
        return CompiledPredictor(self.model, Readout(self.classes, "multiclass"), n_jobs=n_jobs)


def many_rows(settings: Settings) -> int:
    return settings.amount(1_000_000, quick=20_000)


def wide_rows(settings: Settings) -> int:
    return settings.amount(100_000, quick=2_000)  # where rows have hundreds of features


def synthetic_machine(n_rows: int, n_features: int) -> Machine:
    """Return an expansion in random vectors, with distances to rows that suit its kernel."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features), dtype=np.float32)
    basis = rng.random((N_VECTORS, n_features), dtype=np.float32)
    gamma = 6.0 / n_features  # so that gamma |x - b|^2 has the mean 1
    coef = rng.standard_normal((N_VECTORS, N_CLASSES))
    intercept = rng.standard_normal(N_CLASSES)
    model = KernelExpansion(RBF(gamma), basis, coef, intercept)
    return Machine("synthetic", model, np.arange(N_CLASSES), X)


def measure(settings: Settings, poker: Machine | None) -> list[Throughput]:
    """Measure rows of 10, 256 and 780 features, with one thread and with all cores."""
    makers: list[Callable[[], Machine]] = [
        lambda: poker or synthetic_machine(many_rows(settings), 10),
        lambda: synthetic_machine(wide_rows(settings), 256),
        lambda: synthetic_machine(wide_rows(settings), 780),
    ]
    found = []
    for make in makers:
        machine = make()
        counts = sorted({1, cpu_count() or 1})
        found += [_measure(machine, n_threads, settings) for n_threads in counts]
    return found


def _measure(machine: Machine, n_threads: int, settings: Settings) -> Throughput:
    n_rows, n_features = machine.X.shape
    say(f"Throughput, {n_rows} x {n_features} ({machine.where}), {count(n_threads, 'thread')}")
    compiled = machine.compiled(n_threads)
    rival = NumpyRival(machine.model, machine.classes)
    ours: Callable[[], np.ndarray] = partial(compiled.predict, machine.X)
    calls = {way: rival.caller(way, machine.X) for way in ways(n_threads)}
    seconds = take_turns({"ours": ours, **calls}, settings.repeats)
    best = {}
    for form in ("plain", "folded"):
        way = min((way for way in calls if way.form == form), key=seconds.__getitem__)
        best[form] = (way, seconds[way])
    return Throughput(
        machine.where,
        n_rows,
        n_features,
        n_threads,
        precision(machine.model),
        seconds["ours"],
        best,
        int((ours() != calls[best["plain"][0]]()).sum()),
    )


def precision(model: Model) -> str:
    """Return the precision in which a predictor compiled for single precision computes."""
    machine = model.predictor(np.dtype(np.float32))
    return "float32" if "Float32" in type(machine).__name__ else "float64"

"""Time a row of letter.scale: in one batch against SVC, and when rows come one at a time.

onnxruntime runs the very machine that we run, from its exported file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.data import Dataset
from benchmarks.models import MODELS, full_svc, sparse
from benchmarks.parts.prediction.throughput import precision
from benchmarks.plans import TUNED_SIZES
from benchmarks.settings import Settings
from benchmarks.timing import Call, CallTimes, take_turns, time_calls
from benchmarks.trials import say
from benchmarks.tuning import TunedFile
from widemargin import SparseKernelClassifier

LETTER = "letter.scale"
N_VECTORS = 100
DIFFERENT_ROWS = 500

has_onnxruntime = find_spec("onnxruntime") is not None and find_spec("onnx") is not None


@dataclass(frozen=True)
class BatchTimes:
    """Microseconds a row, one thread, all test rows in one call."""

    n_rows: int
    n_vectors: int
    n_support: int  # of SVC
    ours: dict[str, float]
    svc: float

    @property
    def headline(self) -> float:
        return self.ours[SAME_ROWS]


# Held against the target: the rows that SVC has too.
SAME_ROWS = "compiled, float64 rows"


@dataclass(frozen=True)
class Latency:
    """One thread throughout; times by what was called."""

    where: str
    shape: str
    precision: str  # in which our machine computes
    single: dict[str, CallTimes]
    n_batch: int
    batch: dict[str, float]  # microseconds of a call with many rows
    other_labels: int | None  # of onnxruntime, in that batch


class Letters:
    """The data of both measurements, and SVC fitted on it."""

    def __init__(self, settings: Settings, has_data: bool) -> None:
        self.has_data = has_data
        if has_data:
            self.dataset = settings.load(LETTER)
        else:
            self.dataset = _synthetic(settings.max_rows or 10_000)
        say(f"Prediction on {self.dataset.name}: fit of SVC")
        svc = full_svc(LETTER) if has_data else SVC()
        self.svc = svc.fit(self.dataset.X, self.dataset.y)

    def fitted(self, model: str, size: int) -> Any:
        """Return a machine with the parameters of its size, or of the nearest that is tuned."""
        if self.has_data:
            parameters = TunedFile().get(LETTER, model, size)[1].chosen
        else:
            gamma = 1.0 / (self.dataset.X.shape[1] * self.dataset.X.var())
            parameters = {"C": 10.0, "gamma": gamma}
        build = sparse if model == "sparse" else MODELS[model].build
        return build(size, 0, **parameters).fit(self.dataset.X, self.dataset.y)


def _synthetic(n_rows: int) -> Dataset:
    X, y = make_blobs(
        n_samples=2 * n_rows, n_features=16, centers=26, cluster_std=4.0, random_state=0
    )
    return Dataset("synthetic", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def against_svc(letters: Letters, settings: Settings) -> BatchTimes:
    n_vectors = TUNED_SIZES[LETTER]
    machine = letters.fitted("sparse", n_vectors)
    compiled = machine.compile()
    X = np.ascontiguousarray(letters.dataset.X_test)
    X_single = X.astype(np.float32)
    say(f"Prediction of {LETTER}, {len(X)} rows at once")
    calls = {
        SAME_ROWS: partial(compiled.predict, X),
        "compiled, float32 rows": partial(compiled.predict, X_single),
        "estimator.predict, float64 rows": partial(machine.predict, X),
        "SVC": partial(letters.svc.predict, X),
    }
    with threadpool_limits(1):
        seconds = take_turns(calls, settings.repeats)
    a_row = {name: 1e6 * taken / len(X) for name, taken in seconds.items()}
    svc = a_row.pop("SVC")
    return BatchTimes(len(X), n_vectors, len(letters.svc.support_), a_row, svc)


def measure(letters: Letters, settings: Settings) -> Latency:
    machine: SparseKernelClassifier = letters.fitted("sparse", N_VECTORS)
    compiled = machine.compile()
    X = np.ascontiguousarray(letters.dataset.X_test, dtype=np.float32)
    many = np.ascontiguousarray(np.resize(X, (settings.amount(10_000, quick=1_000), X.shape[1])))
    pieces = [np.ascontiguousarray(X[i : i + 1]) for i in range(min(len(X), DIFFERENT_ROWS))]
    rows = [piece[0] for piece in pieces]
    nystroem = letters.fitted("nystroem", N_VECTORS)
    singles = {
        "ours": Call("predict_one", compiled.predict_one, rows),
        "compiled": Call("compiled.predict", compiled.predict, pieces),
        "estimator": Call("estimator.predict", machine.predict, pieces),
        "svc": Call(
            f"SVC.predict, {len(letters.svc.support_)} vectors", letters.svc.predict, pieces
        ),
        "nystroem": Call(f"{MODELS['nystroem'].title}, {N_VECTORS}", nystroem.predict, pieces),
    }
    batches: dict[str, Callable[[], Any]] = {"ours": partial(compiled.predict, many)}
    other_labels = None
    if has_onnxruntime:
        session = onnx_session(machine)
        run = partial(session.run, ["label"])
        singles["onnx"] = Call("onnxruntime", run, [{"X": piece} for piece in pieces])
        singles["onnx_bound"] = Call(
            "onnxruntime, input and output bound beforehand",
            session.run_with_iobinding,
            [_bound(session, piece) for piece in pieces],
        )
        batches["onnx"] = partial(run, {"X": many})
        batches["onnx_bound"] = partial(session.run_with_iobinding, _bound(session, many))
        other_labels = int((run({"X": many})[0] != compiled.predict(many)).sum())
    with threadpool_limits(1):
        say(f"Single rows, and {len(many)} at once, of {letters.dataset.name}")
        single = time_calls(singles, settings.amount(5_000, quick=200), settings.repeats)
        seconds = take_turns(batches, settings.repeats)
    return Latency(
        letters.dataset.name,
        f"{machine.n_basis_} vectors, {X.shape[1]} features, {len(machine.classes_)} classes",
        precision(machine.model_),
        single,
        len(many),
        {name: 1e6 * taken for name, taken in seconds.items()},
        other_labels,
    )


def onnx_session(machine: SparseKernelClassifier) -> Any:
    import onnxruntime

    from widemargin.export import to_onnx

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(
        to_onnx(machine).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _bound(session: Any, rows: np.ndarray) -> Any:
    """Return rows and room for their labels, bound: running it leaves nothing to convert."""
    import onnxruntime

    binding = session.io_binding()
    binding.bind_cpu_input("X", rows)
    room = np.empty(len(rows), dtype=np.int64)
    binding.bind_ortvalue_output("label", onnxruntime.OrtValue.ortvalue_from_numpy(room))
    return binding

"""A learned basis for a thousand labels, and thresholds of labels that few rows have."""

from __future__ import annotations

import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.preprocessing import normalize

from benchmarks.data import is_available
from benchmarks.label_data import read_labels
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import (
    LearnedBasis,
    LinearMultiLabelClassifier,
    SparseKernelMultiLabelClassifier,
    export,
)

RANKS = (1, 3, 5)
_SECONDS = 300.0  # for the learned vectors, which still get better then
_N_UNITS = 160  # 500 features and 983 labels of each, in single precision, are a megabyte


@dataclass(frozen=True)
class Ranked:
    """Share of the best ranked labels that are right, in percent, by how many are looked at."""

    name: str
    precision: dict[int, float]
    seconds: float
    megabytes: float | None = None


@dataclass(frozen=True)
class Answered:
    """F1 in percent."""

    name: str
    macro: float
    micro: float


@dataclass(frozen=True)
class Found:
    ranked: list[Ranked]
    answered: list[Answered]


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    """Judge rankings of delicious and answers on rcv1subset1."""
    if not is_available() and not settings.is_quick:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that never vary
        return Found(_rankings(settings), _answers(settings))


def _load(name: str, settings: Settings) -> list[tuple[Any, Any]]:
    if not is_available():
        X, Y = make_multilabel_classification(200, 20, n_classes=6, sparse=True, random_state=0)
        X, Y = normalize(X), sp.csr_matrix(Y)
        return [(X[:120], Y[:120]), (X[120:], Y[120:])]
    return [read_labels(name, split, settings.max_rows) for split in ("train", "test")]


def _rankings(settings: Settings) -> list[Ranked]:
    (X, Y), (X_test, Y_test) = _load("delicious", settings)
    # Pages with few of the 500 words and with many: of one length, for all machines.
    X, X_test = normalize(X), normalize(X_test)
    say("delicious: learned vectors")
    # Words are of one scale, and single precision is enough.
    rows = X.toarray().astype(np.float32)
    learned = SparseKernelMultiLabelClassifier(
        settings.amount(_N_UNITS, quick=5),
        basis=LearnedBasis(metric="none"),
        loss="logistic",
        max_seconds=_SECONDS,
        random_state=0,
        n_jobs=2,
    )
    found = [_ranked("learned vectors", learned, rows, Y, X_test.toarray(), Y_test)]
    say("delicious: a linear machine")
    linear = LinearMultiLabelClassifier(random_state=0, n_jobs=2)
    found.append(_ranked("linear, one machine a label", linear, X, Y, X_test, Y_test))
    found += _label_tree(X, Y, X_test, Y_test)
    order = np.argsort(-np.asarray(Y.sum(axis=0)).ravel(), kind="stable")
    constant = np.broadcast_to(order[: max(RANKS)], (X_test.shape[0], max(RANKS)))
    found.append(Ranked("constant: the most frequent labels", _precision(constant, Y_test), 0.0))
    return found


def _label_tree(X: Any, Y: Any, X_test: Any, Y_test: Any) -> list[Ranked]:
    """Judge a probabilistic label tree of napkinXC, where it is installed."""
    try:
        from napkinxc.models import PLT
    except ImportError:
        say("napkinXC is not installed")
        return []
    say("delicious: a label tree of napkinXC")
    with tempfile.TemporaryDirectory() as folder:
        tree = PLT(folder, seed=0, threads=2)
        started = time.perf_counter()
        tree.fit(X.astype(np.float32), Y.astype(np.float32))
        seconds = time.perf_counter() - started
        size = sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6
        best = np.array(tree.predict(X_test.astype(np.float32), top_k=max(RANKS)))
    return [Ranked("label tree of napkinXC", _precision(best, Y_test), seconds, size)]


def _ranked(name: str, machine: Any, X: Any, Y: Any, X_test: Any, Y_test: Any) -> Ranked:
    started = time.perf_counter()
    machine.fit(X, Y)
    seconds = time.perf_counter() - started
    best = machine.predict_top_k(X_test, max(RANKS))
    # In single precision, as it is deployed: our own files keep the numbers of double precision.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "machine.onnx"
        export.to_onnx(machine, file)
        size = file.stat().st_size / 1e6
    return Ranked(name, _precision(best, Y_test), seconds, size)


def _precision(best: np.ndarray, Y: sp.csr_matrix) -> dict[int, float]:
    is_right = np.take_along_axis(Y.toarray(), best, axis=1)
    return {k: 100 * float(is_right[:, :k].mean()) for k in RANKS}


def _answers(settings: Settings) -> list[Answered]:
    (X, Y), (X_test, Y_test) = _load("rcv1subset1", settings)
    truth = Y_test.toarray()
    found = []
    for name, threshold in (("threshold 0", 0.0), ("tuned thresholds", "tuned")):
        say(f"rcv1subset1: {name}")
        machine = LinearMultiLabelClassifier(threshold=threshold, random_state=0, n_jobs=2)
        found.append(_answered(name, truth, machine.fit(X, Y).predict(X_test)))
    try:
        from libmultilabel import linear
    except ImportError:
        say("LibMultiLabel is not installed")
        return found
    say("rcv1subset1: LibMultiLabel")
    model = linear.train_thresholding(_SummedOddly(Y), X, options="-s 1", verbose=False)
    scores = linear.predict_values(model, X_test)
    return [*found, _answered("LibMultiLabel, train_thresholding", truth, scores > 0)]


class _SummedOddly(sp.csc_matrix):
    """Labels whose axis 2 is the first one, which LibMultiLabel 0.10 asks for and SciPy refuses."""

    def sum(self, axis: Any = None, **rest: Any) -> Any:
        return super().sum(axis=0 if axis == 2 else axis, **rest)


def _answered(name: str, truth: np.ndarray, answers: Any) -> Answered:
    macro, micro = (
        100 * float(f1_score(truth, np.asarray(answers, dtype=int), average=each, zero_division=0))
        for each in ("macro", "micro")
    )
    return Answered(name, macro, micro)

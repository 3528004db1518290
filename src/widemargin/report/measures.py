"""What a page tells of a machine, measured on rows that it has not learned from."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support
from sklearn.pipeline import Pipeline

import widemargin
from widemargin.model_files import save
from widemargin.report.rows import take
from widemargin.report.trials import METRICS

Array: TypeAlias = npt.NDArray[Any]

_TIMED_ROWS = 2000  # one by one
_TIMED_SECONDS = 1.0
_BINS = 10  # of probabilities
_STAGES = 40


@dataclass(frozen=True)
class ClassFigures:
    """How well one class, or one label, is told."""

    name: str
    precision: float
    recall: float
    f1: float
    n_rows: int


@dataclass(frozen=True)
class Bin:
    """Rows whose answers the machine is about as sure of.

    ``sure`` is the mean of what it says, a probability or a lead of the best score; ``right`` the
    share of answers that are right.
    """

    sure: float
    right: float
    n_rows: int


@dataclass(frozen=True)
class Measures:
    """What was found out.

    Attributes
    ----------
    metric : str
    score : float
    n_rows : int
        Rows that it was measured on.
    names : list of str
        Of classes or labels.
    confusion : ndarray of shape (n_classes, n_classes) or None
        Rows of class i that were taken for class j. None for label sets.
    classes : list of ClassFigures
    stages : list of tuple
        Number of vectors, and the score with these alone.
    alone_us : ndarray
        Microseconds of calls with one row each.
    batch_us : float
        Microseconds a row of all rows in one call.
    bins : list of Bin
        By probability, or by the lead of the best score.
    has_probabilities : bool
    n_bytes : int or None
        Of the saved model; None where a file cannot hold it.
    """

    metric: str
    score: float
    n_rows: int
    names: list[str]
    confusion: Array | None
    classes: list[ClassFigures]
    stages: list[tuple[int, float]]
    alone_us: Array
    batch_us: float
    bins: list[Bin]
    has_probabilities: bool
    n_bytes: int | None

    @property
    def calibration_error(self) -> float:
        """Mean difference of probability and share of right answers, over the rows."""
        n_rows = sum(each.n_rows for each in self.bins)
        return sum(each.n_rows * abs(each.sure - each.right) for each in self.bins) / max(1, n_rows)


def measure(machine: Any, X: Any, y: Any, *, metric: str | None, names: list[str]) -> Measures:
    """Return what a page tells of a fitted machine or pipeline.

    Parameters
    ----------
    machine : estimator of widemargin, or Pipeline that ends in one
    X : data frame, array or CSR matrix
        Rows that it has not learned from.
    y : array or CSR matrix
    metric : str or None
        One of those that comparisons know; None is that which they take.
    names : list of str
        Of classes or labels.
    """
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    tells_labels = last.readout_.tells_labels
    y = np.asarray(y.toarray() if sp.issparse(y) else y)
    metric = metric or ("labels right" if tells_labels else "accuracy")
    predictor = widemargin.compile(machine, dtype="float64")
    answers = predictor.predict(X)
    confusion = None
    if not tells_labels:
        confusion = confusion_matrix(y, answers, labels=last.classes_)
    alone, batch = _speeds(machine, X)
    gives_probabilities = last.readout_.gives_probabilities
    return Measures(
        metric=metric,
        score=float(METRICS[metric](y, answers)),
        n_rows=len(y),
        names=names,
        confusion=confusion,
        classes=_class_figures(y, answers, names, None if tells_labels else last.classes_),
        stages=[(size, float(METRICS[metric](y, each))) for size, each in _staged(machine, X)],
        alone_us=alone,
        batch_us=batch,
        bins=_bins(predictor, X, y, answers, gives_probabilities),
        has_probabilities=gives_probabilities,
        n_bytes=_file_bytes(machine),
    )


def _class_figures(y: Array, answers: Array, names: list[str], classes: Any) -> list[ClassFigures]:
    figures = precision_recall_fscore_support(
        y, answers, labels=classes, average=None, zero_division=0
    )
    return [
        ClassFigures(name, float(p), float(r), float(f), int(n))
        for name, p, r, f, n in zip(names, *figures, strict=True)
    ]


def _staged(machine: Any, X: Any) -> Iterator[tuple[int, Array]]:
    """Yield sizes of a machine on its way, and what it answered then."""
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    stages = getattr(last, "_stages", [])
    if len(stages) < 2 or not hasattr(last, "staged_decision_function"):
        return
    rows = machine[:-1].transform(X) if isinstance(machine, Pipeline) and len(machine) > 1 else X
    readout = last.readout_
    shown = {round(each) for each in np.linspace(0, len(stages) - 1, _STAGES)}
    for number, scores in enumerate(last.staged_decision_function(rows)):
        if number not in shown:
            continue
        if readout.tells_labels:
            answers = readout.indicators(scores)
        else:
            best = scores > 0 if readout.kind == "binary" else scores.argmax(axis=1)
            answers = readout.labels_of(best.astype(np.intp))
        yield len(stages[number][0]), answers


def _speeds(machine: Any, X: Any) -> tuple[Array, float]:
    """Return microseconds of calls with one row, and a row of one call with all."""
    predictor = widemargin.compile(machine)
    predictor.predict(X)
    started = time.perf_counter()
    predictor.predict(X)
    batch = 1e6 * (time.perf_counter() - started) / X.shape[0]
    rows = list(_single_rows(take(X, np.arange(min(_TIMED_ROWS, X.shape[0])))))
    times: list[float] = []
    ask = predictor.predict_one
    ask(rows[0])
    finish = time.perf_counter() + _TIMED_SECONDS
    while len(times) < _TIMED_ROWS and time.perf_counter() < finish:
        row = rows[len(times) % len(rows)]
        begin = time.perf_counter_ns()
        ask(row)
        times.append((time.perf_counter_ns() - begin) / 1000)
    return np.array(times), batch


def _single_rows(X: Any) -> Iterator[Any]:
    if hasattr(X, "iloc"):
        kinds = {X[name].dtype.kind for name in X.columns}
        values = X.to_numpy(dtype=np.float64 if kinds <= set("iufb") else object)
        yield from (values if kinds <= set("iufb") else (row.tolist() for row in values))
    elif sp.issparse(X):
        yield from (X[place].toarray().ravel() for place in range(X.shape[0]))
    else:
        yield from np.asarray(X)


def _bins(predictor: Any, X: Any, y: Array, answers: Array, by_probability: bool) -> list[Bin]:
    """Return how often answers are right, by how sure the machine is of them."""
    right = np.asarray(answers == y).ravel()
    if by_probability:
        shares = predictor.predict_proba(X)
        if y.ndim == 2:  # each label is an answer: that it is there, or that it is not
            sure = np.maximum(shares, 1 - shares).ravel()
            edges = np.linspace(0.5, 1.0, _BINS + 1)
        else:
            sure = shares.max(axis=1)
            edges = np.linspace(1.0 / max(2, shares.shape[1]), 1.0, _BINS + 1)
    else:
        scores = predictor.decision_function(X)
        if y.ndim == 1 and scores.ndim == 2:
            two = np.sort(scores, axis=1)[:, -2:]
            sure = two[:, 1] - two[:, 0]
        else:
            sure = np.abs(scores).ravel()
        edges = np.unique(np.quantile(sure, np.linspace(0.0, 1.0, _BINS + 1)))
    places = np.clip(np.searchsorted(edges, sure, "right") - 1, 0, max(0, len(edges) - 2))
    found = []
    for place in range(max(1, len(edges) - 1)):
        here = places == place
        if here.any():
            found.append(Bin(float(sure[here].mean()), float(right[here].mean()), int(here.sum())))
    return found


def _file_bytes(machine: Any) -> int | None:
    """Return the length of the model file; None where it cannot hold the machine."""
    with tempfile.TemporaryDirectory(prefix="widemargin-") as folder:
        path = Path(folder) / "model"
        try:
            save(machine, path)
        except TypeError:
            return None
        return path.stat().st_size

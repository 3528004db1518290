"""ParallelSVM, SequentialSVM and CrossTrainingSVM on two labels of scene, and on synthetic rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

from benchmarks.data import is_available
from benchmarks.label_data import read_labels
from benchmarks.parts.two_label.targets import ORACLES, C
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import CrossTrainingSVM, ParallelSVM, SequentialSVM

_MOUNTAIN, _FIELD = 4, 3
_SYNTHETIC_ROWS = 5_000
_CLOSE = 1e-8  # of the objective, where exact values are asked for
_GRID = {"C": [0.3, 1.0, 3.0, 10.0, 30.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}


@dataclass(frozen=True)
class Exact:
    """How far a fit is from an optimum that is known: relative, and absolute."""

    title: str
    dual: float
    intercepts: float | None


@dataclass(frozen=True)
class Times:
    """Seconds of fits to the same rows, by machine."""

    data: str
    n_rows: int
    seconds: dict[str, float]


@dataclass(frozen=True)
class Folds:
    """What a machine does on rows that are held out, by fold, with settings it chose itself."""

    machine: str
    accuracy: list[float]  # percent of rows whose set of labels is right
    hamming: list[float]  # labels that are wrong, of two, a row


@dataclass(frozen=True)
class Found:
    exact: list[Exact] = field(default_factory=list)
    times: list[Times] = field(default_factory=list)
    folds: list[Folds] = field(default_factory=list)


class Sets(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A machine of three classes, each of them a set of labels."""

    def __init__(self, C: float = 1.0, gamma: float = 1.0) -> None:
        self.C = C
        self.gamma = gamma

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Sets:
        self.svc_ = SVC(C=self.C, gamma=self.gamma).fit(X, _level(Y))
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        found = self.svc_.predict(X)
        return np.stack([found >= 1, found <= 1], axis=1).astype(int)


class Constant(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """The set of labels that most training rows have."""

    def fit(self, X: np.ndarray, Y: np.ndarray) -> Constant:
        sets, counts = np.unique(Y, axis=0, return_counts=True)
        self.answer_ = sets[counts.argmax()]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.answer_, (len(X), 2))


MACHINES: dict[str, Callable[[], Any]] = {
    "ParallelSVM": ParallelSVM,
    "SequentialSVM": SequentialSVM,
    "CrossTrainingSVM": CrossTrainingSVM,
    "SVC of three sets": Sets,
}


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    """Measure what there are rows for; those that are made up are always there."""
    found = Found()
    X, Y = _synthetic(settings.amount(_SYNTHETIC_ROWS, quick=200))
    found.times.append(_times("synthetic", X, Y, 0.05, 1.0, settings))
    if is_available() and not settings.is_quick:
        X, Y = _scene()
        for oracle in ORACLES:
            say(f"two labels: {oracle.title}")
            machine = ParallelSVM(C=C, gamma=oracle.gamma, tol=_CLOSE)
            machine.fit(X[:: oracle.every], Y[:: oracle.every])
            off = None
            if oracle.intercepts is not None:
                off = float(np.abs(machine.intercept_ - oracle.intercepts).max())
            dual = abs(machine.dual_objective_ / oracle.dual - 1)
            found.exact.append(Exact(oracle.title, dual, off))
        found.times.append(_times("scene", X, Y, 1.0, C, settings))
    elif settings.is_quick:
        X, Y = _synthetic(90)
    else:
        return found
    n_folds = settings.amount(10, quick=3)
    grid = settings.amount(_GRID, quick={"C": [1.0], "gamma": [0.1, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # settings that answer both labels for no row
        for name, make in MACHINES.items():
            say(f"two labels: {name}, {n_folds} folds")
            search = GridSearchCV(make(), grid, scoring="accuracy", cv=3)
            found.folds.append(_folds(name, search, X, Y, n_folds))
        found.folds.append(_folds("constant", Constant(), X, Y, n_folds))
    return found


def _times(
    name: str, X: np.ndarray, Y: np.ndarray, gamma: float, weight: float, settings: Settings
) -> Times:
    levels = _level(Y)
    calls: dict[str, Callable[[], Any]] = {
        title: lambda make=make: make(C=weight, gamma=gamma).fit(X, Y)
        for title, make in MACHINES.items()
        if title != "SVC of three sets"
    }
    calls["SVC of three sets"] = lambda: SVC(C=weight, gamma=gamma).fit(X, levels)
    calls["SVC of the first label"] = lambda: SVC(C=weight, gamma=gamma).fit(X, Y[:, 0])
    say(f"two labels: times on {name}, {len(X)} rows")
    return Times(name, len(X), take_turns(calls, settings.repeats))


def _folds(name: str, machine: Any, X: np.ndarray, Y: np.ndarray, n_folds: int) -> Folds:
    found = Folds(name, [], [])
    splits = StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, _level(Y))
    for train, test in splits:
        wrong = machine.fit(X[train], Y[train]).predict(X[test]) != Y[test]
        found.accuracy.append(100 * float(1 - wrong.any(axis=1).mean()))
        found.hamming.append(float(wrong.sum(axis=1).mean()))
    return found


def _level(Y: np.ndarray) -> np.ndarray:
    return 1 + Y[:, 0] - Y[:, 1]


def _scene() -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of scene with mountain or field, training rows first."""
    parts = [read_labels("scene", split, None) for split in ("train", "test")]
    X = np.vstack([rows.toarray() for rows, _ in parts])
    Y = np.vstack([labels.toarray() for _, labels in parts])[:, [_MOUNTAIN, _FIELD]]
    kept = Y.any(axis=1)
    return X[kept], Y[kept]


def _synthetic(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(n_rows, 20, n_informative=8, n_classes=3, flip_y=0.1, random_state=0)
    return X, np.stack([y >= 1, y <= 1], axis=1).astype(int)

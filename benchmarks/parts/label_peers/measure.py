"""Learned machines of label sets, a network of as many units, and simpler ones, on test rows.

A network has the regulariser that is best in folds of training rows, and standardised features.
Ours is as it comes; beside it, the same with thresholds that are tuned for micro F1 on training
rows.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.label_data import LabelDataset, load_labels
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import SparseKernelMultiLabelClassifier

DATASETS = ("yeast", "scene", "emotions", "birds", "enron")
N_UNITS = 50
FAST_SET, FAST_UNITS = "awa_phog", 60
_ALPHAS = (1e-4, 1e-2, 1e-1, 1.0, 10.0)
_FOLDS = 3
_TIMED_ROWS = 2_000


@dataclass(frozen=True)
class Judged:
    """What a machine does on test rows, in percent: a number for each seed."""

    dataset: str
    name: str
    micro: list[float]
    macro: list[float]
    hamming: list[float]


@dataclass(frozen=True)
class Timed:
    """Ours beside one SVC a label, of the time that a row takes and Hamming loss in percent."""

    seconds: float
    svc_seconds: float
    n_rows: int
    loss: float
    svc_loss: float
    constant_loss: float


@dataclass(frozen=True)
class Found:
    judged: list[Judged]
    timed: Timed | None

    def micro(self, dataset: str, name: str) -> float:
        return next(
            float(np.mean(each.micro))
            for each in self.judged
            if (each.dataset, each.name) == (dataset, name)
        )


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    """Judge every machine on every data set that is there."""
    judged: list[Judged] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks that end early, and labels that never vary
        for name in settings.amount(DATASETS, quick=DATASETS[:1]):
            data = load_labels(name, settings)
            if data is not None:
                judged += _on(data, settings)
        fast = load_labels(FAST_SET, settings)
        timed = None if fast is None else _time(fast, settings)
    return Found(judged, timed) if judged else None


def _on(data: LabelDataset, settings: Settings) -> list[Judged]:
    n_units = settings.amount(N_UNITS, quick=5)
    kinds: dict[str, Callable[[int], Any]] = {
        "ours": lambda seed: _ours(n_units, seed),
        "ours, tuned thresholds": lambda seed: _ours(
            n_units, seed, threshold="tuned", threshold_metric="micro"
        ),
        "MLP": _tuned_network(data, n_units, settings),
        "one-vs-all LinearSVC": lambda seed: make_pipeline(
            StandardScaler(), OneVsRestClassifier(LinearSVC(C=0.1, random_state=seed))
        ),
        "regression": lambda _: make_pipeline(StandardScaler(), _Regression(Ridge(alpha=10.0))),
        "power set": lambda seed: make_pipeline(
            StandardScaler(), _PowerSet(LogisticRegression(C=0.1, max_iter=200))
        ),
        "ranking": lambda _: make_pipeline(StandardScaler(), _Ranking()),
        "boosted stumps": lambda seed: OneVsRestClassifier(
            AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), random_state=seed)
        ),
        "5 neighbours": lambda _: make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
    }
    found = []
    for name, make in kinds.items():
        say(f"{data.name}: {name}")
        is_seeded = name.startswith(("ours", "MLP"))
        seeds = settings.seeds if is_seeded else settings.seeds[:1]
        answers = [
            np.asarray(make(seed).fit(data.X, data.Y).predict(data.X_test)) for seed in seeds
        ]
        found.append(_scores(data, name, answers))
    for which, labels in (("training", data.Y), ("test", data.Y_test)):
        answer = np.broadcast_to(labels.mean(axis=0) > 0.5, data.Y_test.shape).astype(int)
        found.append(_scores(data, f"constant, by {which} rows", [answer]))
    return found


def _ours(n_units: int, seed: int, **parameters: Any) -> SparseKernelMultiLabelClassifier:
    return SparseKernelMultiLabelClassifier(
        n_units, basis="learned", random_state=seed, **parameters
    )


def _tuned_network(data: LabelDataset, n_units: int, settings: Settings) -> Callable[[int], Any]:
    """Return what makes a network with the regulariser that is best in folds of training rows."""

    def make(alpha: float, seed: int) -> Any:
        return make_pipeline(
            StandardScaler(), MLPClassifier((n_units,), alpha=alpha, random_state=seed)
        )

    def score(alpha: float) -> float:
        folds = KFold(_FOLDS, shuffle=True, random_state=0).split(data.X)
        return float(
            np.mean(
                [
                    f1_score(
                        data.Y[test],
                        make(alpha, 0).fit(data.X[train], data.Y[train]).predict(data.X[test]),
                        average="micro",
                        zero_division=0,
                    )
                    for train, test in folds
                ]
            )
        )

    say(f"{data.name}: the regulariser of the network")
    best = max(settings.amount(_ALPHAS, quick=(1e-2,)), key=score)
    return lambda seed: make(best, seed)


class _Regression(ClassifierMixin, BaseEstimator):
    """Labels by a regression on 0 and 1."""

    def __init__(self, regressor: Any) -> None:
        self.regressor = regressor

    def fit(self, X: Any, Y: Any) -> _Regression:
        self.regressor_ = clone(self.regressor).fit(X, Y)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return (self.regressor_.predict(X) > 0.5).astype(int)


class _PowerSet(ClassifierMixin, BaseEstimator):
    """Every set of labels that training rows have is a class; those of one row are left out."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def fit(self, X: Any, Y: Any) -> _PowerSet:
        keys = [row.tobytes() for row in np.ascontiguousarray(Y, dtype=np.int8)]
        counts = Counter(keys)
        self.sets_ = [key for key, count in counts.items() if count > 1] or list(counts)
        numbers = {key: number for number, key in enumerate(self.sets_)}
        kept = [place for place, key in enumerate(keys) if key in numbers]
        classes = [numbers[keys[place]] for place in kept]
        self.classifier_ = clone(self.classifier).fit(X[kept], classes)
        return self

    def predict(self, X: Any) -> np.ndarray:
        table = np.array([np.frombuffer(key, dtype=np.int8) for key in self.sets_])
        return table[self.classifier_.predict(X)].astype(int)


class _Ranking(ClassifierMixin, BaseEstimator):
    """A linear map that ranks labels, and a line that says where a row's labels end.

    Each pair of a label that a row has and one that it has not costs the squared hinge of their
    difference. Where to cut a row's scores is learned from them by least squares.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def fit(self, X: Any, Y: Any) -> _Ranking:
        X = _with_constant(X)
        has = np.asarray(Y, dtype=float)
        lacks = 1.0 - has
        pairs = np.maximum(has.sum(axis=1) * lacks.sum(axis=1), 1.0)[:, np.newaxis]
        shape = (X.shape[1], has.shape[1])

        def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
            W = flat.reshape(shape)
            F = X @ W
            slack = np.maximum(0.0, 1.0 - F[:, :, np.newaxis] + F[:, np.newaxis, :])
            slack *= has[:, :, np.newaxis] * lacks[:, np.newaxis, :] / pairs[:, :, np.newaxis]
            squares = np.maximum(0.0, 1.0 - F[:, :, np.newaxis] + F[:, np.newaxis, :]) * slack
            G = 2.0 * (slack.sum(axis=1) - slack.sum(axis=2))
            value = 0.5 * (W * W).sum() + self.C * squares.sum()
            return float(value), (W + self.C * X.T @ G).ravel()

        start, settings = np.zeros(shape).ravel(), {"maxiter": 60}
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options=settings)
        self.coef_ = found.x.reshape(shape)
        F = X @ self.coef_
        cuts = np.hstack([F - 1e-9, F.max(axis=1, keepdims=True) + 1e-9])
        wrong = [((cut[:, np.newaxis] < F) != (has > 0)).sum(axis=1) for cut in cuts.T]
        best = cuts[np.arange(len(F)), np.argmin(wrong, axis=0)]
        self.cut_ = Ridge(alpha=1.0).fit(F, best)
        return self

    def predict(self, X: Any) -> np.ndarray:
        F = _with_constant(X) @ self.coef_
        return (self.cut_.predict(F)[:, np.newaxis] < F).astype(int)


def _with_constant(X: np.ndarray) -> np.ndarray:
    return np.hstack([X, np.ones((len(X), 1))])


def _scores(data: LabelDataset, name: str, answers: list[np.ndarray]) -> Judged:
    def f1(average: str) -> list[float]:
        return [
            100 * float(f1_score(data.Y_test, each, average=average, zero_division=0))
            for each in answers
        ]

    hamming = [100 * float(hamming_loss(data.Y_test, each)) for each in answers]
    return Judged(data.name, name, f1("micro"), f1("macro"), hamming)


def _time(data: LabelDataset, settings: Settings) -> Timed:
    """Return how long a row takes, of a batch."""
    say(f"{data.name}: time of a row")
    rows, Y = data.X_test[:_TIMED_ROWS], data.Y_test[:_TIMED_ROWS]
    ours = _ours(settings.amount(FAST_UNITS, quick=5), 0).fit(data.X, data.Y)
    predict = ours.compile().predict
    answers, seconds = predict(rows), np.inf
    for _ in range(10):
        started = time.perf_counter()
        predict(rows)
        seconds = min(seconds, time.perf_counter() - started)
    svc = OneVsRestClassifier(SVC(), n_jobs=2).fit(data.X, data.Y)
    started = time.perf_counter()
    of_svc = svc.predict(rows)
    svc_seconds = time.perf_counter() - started
    constant = np.broadcast_to(Y.mean(axis=0) > 0.5, Y.shape).astype(int)
    losses = [100 * float(hamming_loss(Y, each)) for each in (answers, of_svc, constant)]
    return Timed(seconds, svc_seconds, len(rows), *losses)

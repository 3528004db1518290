"""Linear machines of label sets, by time and objective.

Times are those of a clock, of calls that take turns. All fits are without intercept, as that of
LinearSVC is another one. Each is given the loosest tolerance with which it comes within 1e-3 of the
best objective, which the dual of a closer fit bounds from below.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from benchmarks.data import is_available
from benchmarks.label_data import read_labels
from benchmarks.parts.linear_labels.targets import WITH_PRIOR
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import LinearMultiLabelClassifier, priors

DATASETS = ("rcv1subset1", "tmc2007_500", "delicious")
#: Names the number of rows of the synthetic problem, which takes minutes; unset leaves it out.
ROWS_VARIABLE = "WIDEMARGIN_LABEL_ROWS"

_C = 0.5  # so that LinearSVC has C = 1
_NEAR = 1e-3
_CLOSE = 2e-4
_OUR_TOLERANCES = (3e-3, 2e-3, 1e-3)
_TOLERANCES = (1.0, 3e-1, 1e-1, 3e-2, 1e-2, 1e-3, 1e-4)
_JOBS = 2


@dataclass(frozen=True)
class Comparison:
    """One data set: seconds and objectives."""

    dataset: str
    n_labels: int
    ours: float
    rival: float
    objective: float
    rival_objective: float
    tol: float
    rival_tol: float
    with_prior: float | None  # where something is promised of it; of many labels it takes long


@dataclass(frozen=True)
class Large:
    """The synthetic problem, as far as it was measured."""

    n_rows: int
    seconds: float
    passes: int
    gap: float
    gigabytes: float


@dataclass(frozen=True)
class Found:
    """All that was measured."""

    comparisons: list[Comparison]
    large: Large | None


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    names = [name for name in DATASETS if name in wanted]
    if not is_available():
        names = names[:1] if settings.is_quick else []
    rows = int(os.environ.get(ROWS_VARIABLE, "0"))
    if settings.is_quick:
        rows = 500
    if not names and not rows:
        return None
    return Found([_compare(settings, name) for name in names], _large(rows) if rows else None)


def _compare(settings: Settings, name: str) -> Comparison:
    say(f"Linear machines of {name}")
    X, Y = _load(settings, name)
    best = _machine(_CLOSE).fit(X, Y).dual_objective_
    tol, objective = _loosest(_OUR_TOLERANCES, lambda tol: _machine(tol).fit(X, Y).objective_, best)
    rival_tol, rival_objective = _loosest(
        _TOLERANCES, lambda tol: _objective(_rival(tol, X, Y), X, Y), best
    )
    calls = {
        "ours": lambda: _machine(tol).fit(X, Y),
        "rival": lambda: _rival(rival_tol, X, Y),
    }
    if name == WITH_PRIOR:
        prior = priors.from_labels(Y)
        calls["prior"] = lambda: _machine(tol, prior=prior).fit(X, Y)
    seconds = take_turns(calls, settings.repeats)
    return Comparison(
        name,
        Y.shape[1],
        seconds["ours"],
        seconds["rival"],
        objective,
        rival_objective,
        tol,
        rival_tol,
        seconds.get("prior"),
    )


def _machine(tol: float, **settings: Any) -> LinearMultiLabelClassifier:
    return LinearMultiLabelClassifier(
        _C, fit_intercept=False, tol=tol, random_state=0, n_jobs=_JOBS, **settings
    )


def _rival(tol: float, X: Any, Y: Any) -> OneVsRestClassifier:
    one = LinearSVC(loss="hinge", fit_intercept=False, C=2 * _C, tol=tol, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return OneVsRestClassifier(one, n_jobs=_JOBS).fit(X, Y)


def _loosest(
    tolerances: tuple[float, ...], objective: Callable[[float], float], best: float
) -> tuple[float, float]:
    """Return the loosest tolerance that comes near the best objective, and where it comes."""
    value = np.inf
    for tol in tolerances:
        value = objective(tol)
        if value <= (1 + _NEAR) * best:
            break
    return tol, value


def _objective(rival: OneVsRestClassifier, X: Any, Y: Any) -> float:
    columns, total = sp.csc_matrix(Y), 0.0
    for label, one in enumerate(rival.estimators_):
        signs = np.where(columns[:, [label]].toarray().ravel() > 0, 1.0, -1.0)
        w = one.coef_.ravel()
        total += 0.5 * float(w @ w) + 2 * _C * float(np.maximum(0.0, 1.0 - signs * (X @ w)).sum())
    return total


def _load(settings: Settings, name: str) -> tuple[Any, Any]:
    """Return rows and labels; labels that never vary are left out, as rivals cannot fit them."""
    if not is_available():
        X, Y = make_multilabel_classification(200, 30, n_classes=5, sparse=True, random_state=0)
        return normalize(X), Y
    X, Y = read_labels(name, "train", settings.max_rows)
    counts = np.asarray(Y.sum(axis=0)).ravel()
    return X, Y[:, np.flatnonzero((counts > 0) & (counts < X.shape[0]))]


def _large(n_rows: int) -> Large:
    X, Y = _synthetic(n_rows)
    started = time.perf_counter()
    machine = _machine(_NEAR, max_seconds=3600.0).fit(X, Y)
    seconds = time.perf_counter() - started
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    share = machine.gap_ / machine.objective_
    return Large(n_rows, seconds, machine.n_iter_, share, most)


def _synthetic(n_rows: int) -> tuple[Any, Any]:
    """Return rows like those of RCV1: 76 of 47,000 words by Zipf's law, and 103 labels."""
    rng = np.random.default_rng(0)
    n_features, n_entries, n_labels = 47_000, 76, 103
    words = np.minimum(n_features * rng.random((n_rows, n_entries)) ** 3, n_features - 1)
    starts = np.arange(0, n_rows * n_entries + 1, n_entries)
    values = rng.random(n_rows * n_entries).astype(np.float32)
    X = sp.csr_matrix((values, words.astype(np.int32).ravel(), starts), (n_rows, n_features))
    X.sum_duplicates()
    X = normalize(X)
    truth = rng.standard_normal((n_features, n_labels)).astype(np.float32)
    parts = []
    cuts = None
    for start in range(0, n_rows, 10_000):
        scores = X[start : start + 10_000] @ truth
        scores = scores + 0.3 * rng.standard_normal(scores.shape)
        if cuts is None:
            cuts = np.quantile(scores, 1 - np.geomspace(0.3, 0.002, n_labels), axis=0).diagonal()
        parts.append(sp.csr_matrix(scores > cuts, dtype=np.int8))
    return X, sp.vstack(parts, format="csr")

"""Trials of a search: a machine is fitted to a part of the rows and judged by another."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from widemargin._system.threads import one_blas_thread
from widemargin._system.warnings import silence
from widemargin.estimation.named_kernels import as_kernel
from widemargin.kernels import Rows
from widemargin.solvers.units.linear_part import MOST_LINEAR_FEATURES
from widemargin.solvers.units.start import method_of_sklearn, start_units
from widemargin.solvers.units.values import WorkingRows
from widemargin.sparse_kernel.effort import Plan, Trial, metric_for, plain_metric
from widemargin.sparse_kernel.learned_fit import TRIAL
from widemargin.sparse_kernel.learning_rows import dense_rows
from widemargin.sparse_kernel.machine import SparseKernelMachine
from widemargin.sparse_kernel.settings import LearnedBasis, as_basis

Array: TypeAlias = npt.NDArray[Any]
Data: TypeAlias = tuple[Rows, Array, Array | None]  # rows, labels and weights

# Cycles of stochastic steps and moves of a machine of the search at the most, up to so many rows
# times vectors times classes: more change scores, not their order.
_EFFORTS = ((1e6, Plan(1.0, 3, 20)), (2e7, Plan(1.0, 2, 8, 4000)), (np.inf, Plan(1.0, 1, 0, 4000)))
#: Rows that settings but the size are chosen by, where there are more.
SCREEN_ROWS = 3000
# Rows times squared features times classes up to which a linear part is tried; and where there are
# few rows for each feature, which is where units alone are at a loss.
_LINEAR_WORK, _MORE_LINEAR_WORK, _ROWS_A_FEATURE = 1e9, 2e10, 20
_LEAST_ROWS = 1.0  # for each parameter of a metric that is tried
_MOST_FEATURES = {"diagonal": 300, "full": 50}  # for which a metric is tried


@dataclass(frozen=True)
class Candidate:
    """Settings to be judged; ``width`` is a factor of the gamma that "scale" stands for."""

    C: float
    width: float
    max_basis: int
    metric: str = ""  # of a learned basis
    linear_part: bool = False  # of a learned basis


@dataclass(frozen=True)
class Judged:
    """What became of a candidate on one split."""

    machine: SparseKernelMachine
    score: float
    loss: float  # of the rows that judged it, where the basis is learned
    seconds: float
    n_rows: int


def count_outputs(y: Any) -> int:
    """Return the number of classes or labels."""
    return int(y.shape[1]) if y.ndim == 2 else len(np.unique(y))


def fit_and_score(
    machine: SparseKernelMachine,
    candidate: Candidate,
    scorer: Any,
    train: Data,
    test: Data,
    *,
    may_stay: bool,
) -> Judged:
    """Fit a copy of a machine with the settings of a candidate, or grow a fitted one.

    Learned units stay where they begin if ``may_stay`` allows it and the test rows prefer it.
    """
    started = time.perf_counter()
    C = "auto" if np.isnan(candidate.C) else candidate.C
    machine = copy(machine).set_params(
        C=C, max_basis=candidate.max_basis, warm_start=True, n_jobs=1
    )
    basis = as_basis(machine.basis)
    if isinstance(basis, LearnedBasis):
        work = train[0].shape[0] * candidate.max_basis * count_outputs(train[1])
        effort = next(effort for most, effort in _EFFORTS if work <= most)
        linear = candidate.linear_part
        machine.basis = replace(basis, metric=candidate.metric, linear_part=linear)
        if isinstance(C, str):
            # As in a rehearsal: other solvers have no look at C on their way.
            machine.basis = replace(machine.basis, solver="auto", early_stopping=False)
        machine.warm_start = False
        machine._trial = Trial(*test, effort, may_stay)
    with silence():
        if not hasattr(machine, "model_"):
            machine.gamma = starting_gamma(machine, *train, factor=candidate.width)
        machine.fit(*train)
    seconds = time.perf_counter() - started
    rows, y, weights = test
    try:
        score = float(
            scorer(machine, rows, y, **({} if weights is None else {"sample_weight": weights}))
        )
    except Exception as error:
        raise ValueError(
            f"scoring failed on {rows.shape[0]} rows that were held out, with "
            f"{type(error).__name__}: {error}"
        ) from error
    if not np.isfinite(score):
        raise ValueError(
            f"scoring gave {score} on {rows.shape[0]} rows that were held out, for {candidate}. "
            "Use another scoring, or fewer folds."
        )
    machine.__dict__.pop(TRIAL, None)
    losses = machine.history_.get("held_out_loss", np.array([np.nan]))
    loss = np.nan if np.isnan(losses).all() else float(np.nanmin(losses))
    return Judged(machine, score, loss, seconds, train[0].shape[0])


def linear_score(scorer: Any, train: Data, test: Data) -> float:
    """Return the score of logistic regression; minus infinity where scoring takes no such model.

    So it is of rows with sets of labels, each of which would need a model of its own.
    """
    rows, y, weights = train
    if y.ndim == 2:
        return -np.inf
    scale = StandardScaler(with_mean=False).fit(rows)
    linear = LogisticRegression(max_iter=100)
    with silence(), one_blas_thread():
        method_of_sklearn(LogisticRegression.fit)(linear, scale.transform(rows), y, weights)
        rows, y, weights = test
        weighed = {} if weights is None else {"sample_weight": weights}
        try:
            return float(scorer(linear, scale.transform(rows), y, **weighed))
        except Exception:
            return -np.inf  # made for machines of this library, say


def starting_gamma(
    machine: SparseKernelMachine, X: Rows, y: Array, weights: Array | None, factor: float
) -> float | str:
    """Return ``factor`` times the gamma that "scale" stands for on these rows."""
    if factor == 1:
        return "scale"
    data = machine._validate_training_data(X, y, weights)
    rows = data.rows
    basis = as_basis(machine.basis)
    if not isinstance(basis, LearnedBasis):
        kernel: Any = as_kernel("rbf", rows, gamma="scale", weights=data.weights)
        return float(factor * kernel.gamma)
    used = np.flatnonzero(data.caps > 0)
    learned_from = dense_rows(rows)[used]
    metric = metric_for(basis, learned_from)
    working = WorkingRows(learned_from, data.caps[used], metric)
    rng = check_random_state(machine.random_state)
    units = start_units(working, machine._row_groups(data)[used], machine.max_basis, rng)
    squared_unit = working.scale[0] ** 2 if metric == "none" else 1.0  # of distances
    gamma = float(factor * units.weights[0] ** 2 / squared_unit)
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"Features of a spread of {working.scale[0]:.1e} have squared distances that double "
            "precision cannot hold. Rescale X, or set metric='diagonal'."
        )
    return gamma


def metrics_to_try(basis: Any, rows: Rows, n_rows: int) -> list[str]:
    """Return the metrics to choose from, the simplest first; none for a basis that is chosen.

    Parameters
    ----------
    basis : ChosenBasis or LearnedBasis
    rows : array or CSR matrix
        Those of positive weight.
    n_rows : int
        Of these, that are learned from.
    """
    if not isinstance(basis, LearnedBasis):
        return []
    if basis.metric != "auto":
        return [basis.metric]
    n_features = rows.shape[1]
    parameters = {"diagonal": n_features, "full": n_features**2}
    return [plain_metric(dense_rows(rows))] + [
        metric
        for metric, count in parameters.items()
        if n_features <= _MOST_FEATURES[metric] and n_rows >= _LEAST_ROWS * count
    ]


def linear_parts_to_try(basis: Any, rows: Rows, n_classes: int) -> list[bool]:
    """Return whether a learned basis may have a linear part, and whether it may have none."""
    asked = getattr(basis, "linear_part", False)
    if not isinstance(asked, str):
        return [bool(asked)]
    n_features = rows.shape[1]
    work = min(rows.shape[0], SCREEN_ROWS) * n_features**2 * n_classes
    is_wide = rows.shape[0] <= _ROWS_A_FEATURE * n_features
    most = _MORE_LINEAR_WORK if is_wide else _LINEAR_WORK
    return [False, True] if work <= most and n_features <= MOST_LINEAR_FEATURES else [False]

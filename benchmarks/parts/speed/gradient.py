"""How close to the optimum the joint solver comes, computed apart from the library.

With J the basis, ``K_JJ = L L'`` and ``B = [b; L' A]``, the objective of fit is ::

    1/2 |B|^2 + C/2 sum_i sum_{c != y_i} max(0, 1 + F_ic - F_iy_i)^2,   F = K_.J A + b

The figure is the norm of its gradient in B, relative to the one at B = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import data
from benchmarks.doubling import rows_that_double, vectors_of_doubling
from benchmarks.models import sparse
from benchmarks.parts.speed.targets import GRADIENT
from benchmarks.plans import SELECTED_SIZES
from benchmarks.settings import Settings
from benchmarks.trials import say
from benchmarks.tuning import TunedFile
from widemargin import ChosenBasis, SparseKernelClassifier


@dataclass(frozen=True)
class Reached:
    where: str
    asked: float
    reported: float  # by the estimator, in history_
    recomputed: float


def measure(settings: Settings, wanted: list[str]) -> Reached:
    """Fit with the gradient of the target asked for, on real data where there is any."""
    name = next((name for name in SELECTED_SIZES if name in wanted), None)
    if name is not None:
        n_vectors = SELECTED_SIZES[name]
        dataset = settings.load(name)
        X, y = dataset.X, dataset.y
        parameters = TunedFile().get(name, "sparse", n_vectors)[1].chosen
    else:
        name, n_vectors = "synthetic", vectors_of_doubling(settings)
        rows, y = data.synthetic(rows_that_double(settings)[0])
        X, parameters = rows.astype(np.float64), {"C": 1.0, "gamma": 1e-3}
    say(f"Relative gradient on {name}")
    machine = sparse(
        n_vectors, seed=0, basis=ChosenBasis(gradient_tol=GRADIENT.bar), **parameters
    ).fit(X, y)
    return Reached(
        f"{name}, {len(y)} rows, {n_vectors} vectors",
        GRADIENT.bar,
        float(machine.history_["gradient"][-1]),
        relative_gradient(machine, X, y),
    )


def relative_gradient(machine: SparseKernelClassifier, X: np.ndarray, y: np.ndarray) -> float:
    labels = np.searchsorted(machine.classes_, y)
    basis = np.asarray(machine.basis_, dtype=np.float64)
    factor = cholesky(rbf_kernel(basis, gamma=machine.gamma), lower=True)
    values = rbf_kernel(X, basis, gamma=machine.gamma)

    def gradient(coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        pull = machine.C * _loss_gradient(values @ coef + intercept, labels)
        in_vectors = factor.T @ coef + solve_triangular(factor, values.T @ pull, lower=True)
        return np.vstack([intercept + pull.sum(axis=0), in_vectors])

    at_end = gradient(machine.dual_coef_, machine.intercept_)
    at_zero = gradient(np.zeros_like(machine.dual_coef_), np.zeros_like(machine.intercept_))
    return float(np.linalg.norm(at_end) / np.linalg.norm(at_zero))


def _loss_gradient(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    each = np.arange(len(labels))
    slack = np.maximum(0.0, 1.0 + scores - scores[each, labels][:, None])
    slack[each, labels] = 0.0
    slack[each, labels] = -slack.sum(axis=1)
    return slack

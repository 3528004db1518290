"""Kernel values by their formulas, in float64 and by differences of features."""

import numpy as np
import scipy.sparse as sp
from reference.kernels import twin

from hostile.problems import rational_quadratic
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    CustomKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)


def dense(rows):
    """Return rows as an array."""
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def kernel_values(kernel, rows, basis):
    """Return kernel values by differences and products of float64."""
    rows = np.asarray(dense(rows), dtype=np.float64)
    if isinstance(kernel, Precomputed):
        return rows[:, basis]
    basis = np.asarray(dense(basis), dtype=np.float64)
    if isinstance(kernel, CustomKernel):
        assert kernel.function is rational_quadratic
        return rational_quadratic(rows, basis)
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(kernel, Linear):
            return rows @ basis.T
        if isinstance(kernel, Polynomial):
            return (kernel.gamma * (rows @ basis.T) + kernel.coef0) ** kernel.degree
        if type(kernel).__name__ == "Sigmoid":
            return np.tanh(kernel.gamma * (rows @ basis.T) + kernel.coef0)
        return np.array([_similarities(kernel, row, basis) for row in rows]).reshape(
            len(rows), len(basis)
        )


def _similarities(kernel, row, basis):
    moved = row - basis
    if isinstance(kernel, Laplacian):
        return np.exp(-kernel.gamma * np.abs(moved).sum(axis=1))
    if isinstance(kernel, AdaptiveRBF):
        return np.exp(-kernel.widths * np.square(_mapped(kernel, moved)).sum(axis=1))
    if isinstance(kernel, RBF):
        return np.exp(-kernel.gamma * np.square(moved).sum(axis=1))
    return twin(kernel)(row[None], basis)[0]


def weighed(model):
    """Return what a model weighs beside kernel values: its linear part, or one of zeros."""
    return np.zeros((model.n_features, model.n_outputs)) if model.linear is None else model.linear


def argument_rounding(kernel, rows, basis):
    """Return how far arguments of exponentials move when features move by their rounding.

    Far from zero, a feature has been rounded before anybody subtracts: by a share of itself, which
    may be much of a difference. A machine that sees all rows from a point amid its vectors rounds
    them once more.
    """
    rows, basis = (np.asarray(dense(each), dtype=np.float64) for each in (rows, basis))
    if not isinstance(kernel, (RBF, AdaptiveRBF, Laplacian, ChiSquare)) or len(basis) == 0:
        return np.zeros((len(rows), len(basis)))
    far = np.abs(rows) + np.abs(basis).max(axis=0)
    moved = np.finfo(np.float64).eps * far
    if isinstance(kernel, (Laplacian, ChiSquare)):
        # A chi square rises by three times as much as a coordinate at the most.
        steepest = 3 if isinstance(kernel, ChiSquare) else 1
        moved = steepest * moved
        return np.repeat(kernel.gamma * moved.sum(axis=1, keepdims=True), len(basis), axis=1)
    widths = kernel.gamma if isinstance(kernel, RBF) else kernel.widths
    steps = np.linalg.norm(_mapped(kernel, moved, np.abs), axis=1)
    lengths = [np.linalg.norm(_mapped(kernel, row - basis), axis=1) for row in rows]
    return 2 * widths * steps[:, None] * np.array(lengths).reshape(len(rows), len(basis))


def _mapped(kernel, moved, sized=np.asarray):
    """Return differences as the metric of a kernel sees them; ``sized`` is asked for its parts."""
    metric = getattr(kernel, "metric", None)
    if metric is None:
        return moved
    return moved * sized(metric) if metric.ndim == 1 else moved @ sized(metric)

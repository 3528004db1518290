"""Kernel values by their formulas, in float64 and by differences of features."""

import numpy as np
import scipy.sparse as sp
from reference.kernels import twin

from hostile.problems import rational_quadratic
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
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
        if kernel.metric is not None:
            moved = moved * kernel.metric if kernel.metric.ndim == 1 else moved @ kernel.metric
        return np.exp(-kernel.widths * np.square(moved).sum(axis=1))
    if isinstance(kernel, RBF):
        return np.exp(-kernel.gamma * np.square(moved).sum(axis=1))
    return twin(kernel)(row[None], basis)[0]

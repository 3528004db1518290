"""Kernels by the names and parameters that users give, and the rules for their width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._system.parameters import check_choice, check_real
from widemargin.kernels import (
    KERNEL_NAMES,
    NAMED_KERNELS,
    Array,
    ChiSquare,
    CustomKernel,
    Kernel,
    KernelSum,
    Precomputed,
    Rows,
    chi_square_distances,
    computes_densely,
    dense_parts,
    row_sums,
)

GAMMA_RULES = ("scale", "auto")


def scale_gamma(rows: Rows, weights: Array | None = None) -> float:
    """Return ``1 / (n_features * variance)``, as scikit-learn's ``gamma="scale"``; 1 if constant.

    Rows count by their weights, where there are any.
    """
    counts = np.ones(rows.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    total = counts.sum() * rows.shape[1]
    if computes_densely(rows):
        mean = float(
            counts @ row_sums(rows, lambda dense: dense.sum(axis=1, dtype=np.float64)) / total
        )
        squares = row_sums(rows, lambda dense: np.square(dense - np.float64(mean)).sum(axis=1))
        blocks = (slice(start, start + 4096) for start in range(0, rows.shape[0], 4096))
        variance = float(sum(counts[some] @ squares[some] for some in blocks) / total)
    else:
        each = np.repeat(counts, np.diff(rows.indptr))
        values = rows.data.astype(np.float64)
        mean = float(each @ values / total)
        variance = float((each @ (values - mean) ** 2 + (total - each.sum()) * mean**2) / total)
    scale = rows.shape[1] * variance
    if variance <= (16 * np.finfo(np.float64).eps * mean) ** 2 or not np.isfinite(1.0 / scale):
        return 1.0
    return float(1.0 / scale)


def chi_square_gamma(rows: Rows, weights: Array | None = None) -> float:
    """Return 1 / the mean chi-square distance of rows to their mean; 1 if they are constant.

    The distance of rows is of the order of their sums, and that of histograms 2 at the most. So the
    width follows from distances, as the literature has it; those to the mean take one pass.
    """
    counts = np.ones(rows.shape[0]) if weights is None else np.asarray(weights, dtype=np.float64)
    total = counts.sum()
    if computes_densely(rows):
        parts = (counts[some] @ dense.astype(np.float64) for some, dense in dense_parts(rows))
        mean = np.asarray(sum(parts) / total)
        distances = row_sums(rows, lambda dense: chi_square_distances(dense, mean))
    else:
        mean = np.asarray(rows.T.astype(np.float64) @ counts / total).ravel()
        values, there = rows.data.astype(np.float64), mean[rows.indices]
        # What an entry adds to the distance of a row without any, which is the sum of the mean.
        sums = values + there
        shares = np.divide(values - there, sums, out=np.zeros_like(sums), where=sums > 0)
        terms = sp.csr_matrix(((values - there) * shares - there, rows.indices, rows.indptr))
        distances = mean.sum() + np.asarray(terms.sum(axis=1)).ravel()
    distance = float(counts @ distances / total)
    least = (16 * np.finfo(np.float64).eps) ** 2 * mean.sum()
    return 1.0 if distance <= least or not np.isfinite(1.0 / distance) else 1.0 / distance


def check_kernel(kernel: Any) -> None:
    """Raise unless this is the name of a kernel, a kernel or a callable."""
    if not (isinstance(kernel, Kernel) or callable(kernel)):
        check_choice("kernel", kernel, KERNEL_NAMES, ", a Kernel or a callable")


def is_precomputed(kernel: Any) -> bool:
    """Return whether rows are kernel values with all training rows."""
    is_name = isinstance(kernel, str) and kernel == Precomputed.name
    return is_name or isinstance(kernel, Precomputed)


def check_gamma(gamma: Any) -> None:
    """Raise unless this is a rule that gives the width of kernels, or a positive number."""
    if isinstance(gamma, str):
        check_choice("gamma", gamma, GAMMA_RULES, ", or a positive number")
    else:
        check_real("gamma", gamma, positive=True)


def auto_gamma(rows: Rows) -> float:
    """Return ``1 / n_features``, as scikit-learn's ``gamma="auto"``."""
    return 1.0 / float(rows.shape[1])


def as_kernel(
    kernel: str | Kernel | Callable[[Any, Any], Any],
    rows: Rows,
    *,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    weights: Array | None = None,
) -> Kernel:
    """Make a kernel from its name and parameters, or wrap what was given.

    Parameters
    ----------
    kernel : str, Kernel or callable
        A name of ``KERNEL_NAMES``; a kernel; or a callable for :class:`CustomKernel`.
    rows : array or CSR matrix
        The training rows, from which ``gamma="scale"`` takes the variance or the distances, and
        "auto" the number of features.
    gamma, degree, coef0
        Parameters of kernels that are given by name.
    weights : ndarray, default=None
        Of the rows.
    """
    if isinstance(kernel, KernelSum):
        given: dict[str, Any] = {
            "gamma": gamma,
            "degree": degree,
            "coef0": coef0,
            "weights": weights,
        }
        return kernel.with_kernels(lambda part: as_kernel(part.kernel, part.of(rows), **given))
    if isinstance(kernel, Kernel):
        return kernel
    if not isinstance(kernel, str):
        return CustomKernel(kernel)
    kind: Any = NAMED_KERNELS[kernel]
    wanted = {field.name for field in fields(kind)}
    parameters: dict[str, Any] = {"degree": degree, "coef0": coef0}
    if "gamma" in wanted:  # or else nobody asks for the variance of the rows
        parameters["gamma"] = _width(gamma, kind, rows, weights)
    return kind(**{name: parameters[name] for name in wanted & parameters.keys()})  # type: ignore[no-any-return]


def kernel_of_any_width(kernel: Any) -> Kernel | None:
    """Return the kernel that an estimator has as a parameter, as far as its width is no matter."""
    if isinstance(kernel, str):
        return _OF_ANY_WIDTH.get(kernel)
    if isinstance(kernel, KernelSum):
        return kernel.with_kernels(lambda part: _OF_ANY_WIDTH[str(part.kernel)])
    return kernel if isinstance(kernel, Kernel) else None


def _width(gamma: float | str, kind: type[Kernel], rows: Rows, weights: Array | None) -> float:
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return auto_gamma(rows)
    if kind is ChiSquare:
        return chi_square_gamma(rows, weights)
    return kind.width_of_scale(scale_gamma(rows, weights), rows.shape[1])


_OF_ANY_WIDTH = {name: as_kernel(name, np.empty((0, 1)), gamma=1.0) for name in NAMED_KERNELS}

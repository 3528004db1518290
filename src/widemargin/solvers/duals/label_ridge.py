"""Kernelised M3L with a squared loss: coefficients of many labels from linear systems.

Problem      minimise  1/2 sum_lm R_lm b_l' K b_m + sum_il cap_il (y_il - f_il)^2  with f = K b R,
             signs y, a prior R over labels and the kernel matrix K. Rows that lie beyond their
             margin cost, too. In return b is known: ``f_il + b_il / (2 cap_il) = y_il``
Equal caps   of the form cap_i v_l, as of labels that weigh alike in rows with and without them:
             with p = (2 cap)^1/2, q = v^1/2 and the eigenvalues s of ``diag(q) R diag(q)``, a label
             of each eigenvector has ``(s diag(p) K diag(p) + I) c = right side``. Where there are
             few different eigenvalues, without a prior one, a Cholesky factor of each is less work
             than the eigenvectors of K
Other caps   conjugate gradients, with what equal caps of the same mean would give as preconditioner
Certificate  the duality gap is ``sum_il cap_il r_il^2``, where r is what the equations of b lack

Source: the prior is that of Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label
classification with applications to zero-shot learning" (2012); the squared loss of both sides is
that of the least squares support vector machine, Suykens and Vandewalle (1999).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

Array: TypeAlias = npt.NDArray[Any]

_SAME = 1e-12  # of the largest eigenvalue of R, within which two are the same
_FEW = 8  # different eigenvalues, up to which factors are less work than eigenvectors of K
_RESIDUAL = 1e-9  # of the right side, at which conjugate gradients end
_MOST_PRODUCTS = 500


@dataclass(frozen=True)
class RidgeSolution:
    """Coefficients of shape (n_rows, n_labels), both objectives, and products with K."""

    coefficients: Array
    primal: float
    gap: float
    n_products: int

    @property
    def dual(self) -> float:
        """The dual objective."""
        return self.primal - self.gap


def solve_squared(matrix: Array, signs: Array, caps: Array, relation: Array) -> RidgeSolution:
    """Return the best coefficients.

    Parameters
    ----------
    matrix : ndarray of shape (n_rows, n_rows)
        K, of which nothing is changed.
    signs, caps : ndarray of shape (n_rows, n_labels)
        Caps are positive.
    relation : ndarray of shape (n_labels, n_labels)
        R.
    """
    of_rows = caps.mean(axis=1)
    of_labels = caps.mean(axis=0) / of_rows.mean()
    solve = _equal_caps(matrix, of_rows, of_labels, relation)
    n_products = 0
    coefficients = solve(signs)
    if not np.allclose(caps, np.outer(of_rows, of_labels), rtol=1e-12, atol=0.0):
        coefficients, n_products = _conjugate_gradients(
            lambda some: matrix @ some @ relation + some / (2.0 * caps),
            solve,
            signs,
            coefficients,
        )
    scores = matrix @ coefficients @ relation
    lacking = signs - scores - coefficients / (2.0 * caps)
    primal = 0.5 * np.sum(coefficients * scores) + np.sum(caps * (signs - scores) ** 2)
    return RidgeSolution(
        coefficients, float(primal), float(np.sum(caps * lacking**2)), n_products + 1
    )


def _equal_caps(
    matrix: Array, of_rows: Array, of_labels: Array, relation: Array
) -> Callable[[Array], Array]:
    """Return what solves the problem with caps ``of_rows`` times ``of_labels``."""
    p, q = np.sqrt(2.0 * of_rows)[:, None], np.sqrt(of_labels)
    values, vectors = eigh(q[:, None] * relation * q)
    values = np.maximum(values, 0.0)
    scaled = p * matrix * p.T
    different = [values[0]]
    for value in values[1:]:
        if value - different[-1] > _SAME * values[-1]:
            different.append(value)
    if len(different) <= _FEW:
        which = np.searchsorted(different, values, side="right") - 1
        factors = []
        for value in different:
            system = value * scaled
            system[np.diag_indices_from(system)] += 1.0
            try:
                factors.append(cho_factor(system, lower=True, overwrite_a=True, check_finite=False))
            except LinAlgError:
                raise _indefinite() from None

        def solve_mixed(right: Array) -> Array:
            found = np.empty_like(right)
            for number, factor in enumerate(factors):
                some = which == number
                found[:, some] = cho_solve(factor, right[:, some], check_finite=False)
            return found

    else:
        curvatures, directions = eigh(scaled, overwrite_a=True, check_finite=False)
        shrinking = 1.0 + np.outer(curvatures, values)
        if shrinking.min() <= 0.0:
            raise _indefinite()

        def solve_mixed(right: Array) -> Array:
            return np.asarray(directions @ ((directions.T @ right) / shrinking))

    return lambda right: p * (solve_mixed((p * right * q) @ vectors) @ vectors.T) * q


def _indefinite() -> ValueError:
    return ValueError(
        "The kernel is not positive semi-definite, and loss='squared' needs one that is. Use "
        "loss='hinge', or another kernel."
    )


def _conjugate_gradients(
    times: Callable[[Array], Array], precondition: Callable[[Array], Array], right: Array, at: Array
) -> tuple[Array, int]:
    """Return the solution of ``times(x) == right`` from a start on, and the number of products."""
    residual = right - times(at)
    small = _RESIDUAL * np.linalg.norm(right)
    n_products, direction, before = 1, np.zeros_like(at), 1.0
    while np.linalg.norm(residual) > small and n_products < _MOST_PRODUCTS:
        better = precondition(residual)
        now = np.vdot(residual, better)
        direction = better + (now / before if n_products > 1 else 0.0) * direction
        product = times(direction)
        step = now / np.vdot(direction, product)
        at = at + step * direction
        residual = residual - step * product
        before = now
        n_products += 1
    return at, n_products

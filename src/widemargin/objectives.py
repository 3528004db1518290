"""The objective: a loss bound to rows.

    1/2 |B|^2 + sum_i weight_i loss(f_i, y_i),    F = Z B

with Z the orthonormalised kernel columns of :mod:`widemargin.basis`, or the values of units that
are learned, and ``weight_i`` = C times the weight of the row. Every method is a pass over the rows
in native code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.basis import Candidates
from widemargin.losses import Loss

Array: TypeAlias = npt.NDArray[Any]

_FACTOR_BYTES = 256 << 20  # above this, one preconditioner serves all outputs
_GRAM_PRODUCTS = 4e9  # multiply-adds of Gram matrices in one native call
_NO_COMMON_PART = 1e-3  # of a gradient: less may be the rounding error of many rows
_NEGLIGIBLE_CURVATURE = 0.01  # share of the largest: smaller ones are left out of preconditioners


@dataclass(frozen=True)
class Derivatives:
    """The sum of the loss at some scores, and its derivatives in them.

    Attributes
    ----------
    loss : float
        The weighted sum.
    gradient, curvature : ndarray of shape (n_rows, n_outputs)
        Weighted first derivatives, and the diagonal of the Hessian.
    active : ndarray of int32
        The rows that have any of either; the others play no part in a Newton step.
    """

    loss: float
    gradient: Array
    curvature: Array
    active: npt.NDArray[np.int32]


class BasisObjective:
    """The regularised sum of a loss over rows, in the columns of a basis.

    Parameters
    ----------
    loss : Loss
    targets : ndarray
        As the loss takes them: what ``loss.encode`` makes of class numbers, say.
    weights : ndarray of shape (n_rows,)
        C times the weight of each row.
    n_outputs : int
    basis : BasisColumns, or any columns with ``features``, ``n_columns`` and ``refined``
    """

    def __init__(
        self, loss: Loss, targets: Array, weights: Array, n_outputs: int, basis: Any
    ) -> None:
        self.basis = basis
        self.n_outputs = n_outputs
        self.n_threads = basis.n_threads
        self.dtype = basis.features.dtype
        self._loss = loss
        self._targets = targets
        self._all_weights = weights
        self._weights = np.ascontiguousarray(weights, dtype=self.dtype)
        self._native_loss = loss.native()

    def refined(self) -> BasisObjective:
        """Return the objective with columns as precise as the rows."""
        basis = self.basis.refined()
        if basis is self.basis:
            return self
        return BasisObjective(self._loss, self._targets, self._all_weights, self.n_outputs, basis)

    def zero_coefficients(self) -> Array:
        """Return B = 0 for the columns that there are now."""
        return np.zeros((self.basis.n_columns, self.n_outputs))

    def scores(self, coefficients: Array) -> Array:
        """Return F = Z B."""
        out = np.empty((self._weights.shape[0], self.n_outputs), dtype=self.dtype)
        narrow = np.ascontiguousarray(coefficients, dtype=self.dtype)
        _native.scores(self.basis.features, narrow, out, self.n_threads)
        return out

    def derivatives(self, scores: Array) -> Derivatives:
        """Return the loss and its derivatives in the scores."""
        gradient, curvature = np.empty_like(scores), np.empty_like(scores)
        active = np.empty(scores.shape[0], dtype=bool)
        value = _native.derivatives(
            self._native_loss,
            self._targets,
            scores,
            self._weights,
            gradient,
            curvature,
            active,
            self.n_threads,
        )
        return Derivatives(
            value, gradient, curvature, np.flatnonzero(active).astype(np.int32, copy=False)
        )

    def value(self, coefficients: Array, scores: Array) -> float:
        """Return the objective."""
        loss = _native.loss_value(
            self._native_loss, self._targets, scores, self._weights, self.n_threads
        )
        return 0.5 * float(np.vdot(coefficients, coefficients)) + float(loss)

    def gradient(self, coefficients: Array, at: Derivatives) -> Array:
        """Return the gradient in the coefficients."""
        out = np.empty_like(coefficients)
        _native.transposed_product(self.basis.features, at.active, at.gradient, out, self.n_threads)
        out += coefficients
        return out

    def hessian_product(self, scores: Array, at: Derivatives, direction: Array) -> Array:
        """Return the Hessian in the coefficients times a direction."""
        out = np.empty_like(direction)
        _native.hessian_product(
            self._native_loss,
            self._targets,
            scores,
            self._weights,
            self.basis.features,
            at.active,
            np.ascontiguousarray(direction, dtype=self.dtype),
            out,
            self.n_threads,
        )
        out += direction
        return out

    def along(self, scores: Array, moved: Array, step: float) -> tuple[float, float, float]:
        """Return the loss at ``scores + step * moved`` and its two derivatives in ``step``."""
        result: tuple[float, float, float] = _native.along_step(
            self._native_loss, self._targets, scores, self._weights, moved, step, self.n_threads
        )
        return result

    def preconditioner(self, at: Derivatives) -> Array:
        """Return Cholesky factors of the Hessian's diagonal blocks, one an output.

        Where outputs curve alike, one factor serves all. Where these would take too much memory,
        the one of the mean block stands for all.
        """
        columns = self.basis.n_columns
        curvature = self._distinct(at.curvature)
        if 8 * curvature.shape[1] * columns**2 > _FACTOR_BYTES:
            curvature = np.ascontiguousarray(curvature.mean(axis=1, keepdims=True))
        factors = np.empty((curvature.shape[1], columns, columns))
        for some in self._groups(curvature, columns):
            _native.curvature_factors(
                self.basis.features,
                at.active,
                np.ascontiguousarray(curvature[:, some]),
                _NEGLIGIBLE_CURVATURE,
                factors[some],
                self.n_threads,
            )
        return factors

    def precondition(self, factors: Array, right: Array) -> Array:
        """Solve with the factors of ``preconditioner``.

        Where the loss compares outputs, it is flat when all of them move together, and there the
        Hessian is that of the regulariser: the identity. The blocks know nothing of it, and
        without these lines conjugate gradients take four times as many products to find out.

        Of very large columns, rounding error of that part is more than the whole solution of the
        rest, and is left out.
        """
        out = np.empty_like(right)
        if not self._loss.compares_outputs:
            _native.precondition(factors, right, out, self.n_threads)
            return out
        together = right.mean(axis=1, keepdims=True)
        _native.precondition(factors, right - together, out, self.n_threads)
        size = np.linalg.norm(right, axis=1, keepdims=True)
        lost = np.finfo(np.float64).eps * size > np.linalg.norm(out, axis=1, keepdims=True)
        together[lost & (np.abs(together) < _NO_COMMON_PART * size)] = 0.0
        out += together - out.mean(axis=1, keepdims=True)
        return out

    def candidate_model(
        self, candidates: Candidates, at: Derivatives, residual: Array
    ) -> tuple[Array, Array]:
        """Return the objective's quadratic model in the coefficients of candidates.

        The columns of the basis are taken as solved for again each time, output by output, so that
        a candidate counts only by what they cannot make up for.

        Parameters
        ----------
        candidates : Candidates
        at : Derivatives
        residual : ndarray of shape (n_columns, n_outputs)
            The gradient that is left in the coefficients there are.

        Returns
        -------
        slope : ndarray of shape (n_outputs, n_candidates)
        bend : ndarray of shape (n_outputs, n_candidates, n_candidates)
            Of shape (1, n_candidates, n_candidates) where outputs curve alike.
        """
        count = len(candidates)
        curvature = self._distinct(at.curvature)
        slope = np.empty((self.n_outputs, count))
        bend = np.empty((curvature.shape[1], count, count))
        together = curvature.shape[1] != self.n_outputs
        groups = self._groups(curvature, self.basis.n_columns + count)
        for some in [slice(None)] if together else groups:
            _native.candidate_model(
                self.basis.features,
                candidates.columns,
                at.active,
                np.ascontiguousarray(at.gradient[:, some]),
                np.ascontiguousarray(curvature[:, some]),
                candidates.overlap,
                np.ascontiguousarray(residual[:, some]),
                slope[some],
                bend[some],
                self.n_threads,
            )
        return slope, bend

    def _distinct(self, curvature: Array) -> Array:
        """Return one column of the curvature where all are the same."""
        return np.ascontiguousarray(curvature[:, :1]) if self._loss.curves_alike else curvature

    def _groups(self, curvature: Array, width: int) -> Iterator[slice]:
        """Cut the outputs into groups whose Gram matrices take a fraction of a second to build.

        Between native calls Python can serve an interrupt.
        """
        n_outputs = curvature.shape[1]
        each = max(1.0, np.count_nonzero(curvature) / n_outputs * width**2)
        size = max(self.n_threads, int(_GRAM_PRODUCTS / each))
        for start in range(0, n_outputs, size):
            yield slice(start, start + size)

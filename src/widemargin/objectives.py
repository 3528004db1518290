"""The objective: a loss bound to rows.

    1/2 |B|^2 + sum_i weight_i loss(f_i, y_i),    F = Z B

with Z the orthonormalised kernel columns of :mod:`widemargin.basis`, or the values of units that
are learned, and ``weight_i`` = C times the weight of the row. Every method is a pass over the rows
in native code.

With a prior ``R = L L'`` over the labels the regulariser is ``1/2 tr(R^-1 B'B)``. The coefficients
that solvers see then are W, with ``B = W L'`` and the regulariser ``1/2 |W|^2``: directions are
multiplied by L', gradients by L. Value, gradient and Hessian product are exact. Preconditioner and
model of candidates take each column of W by itself and know the second derivatives of each output
alone, as they do without a prior.
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
from widemargin.priors import LabelPrior

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
    prior : LabelPrior, default=None
        Of the outputs; None takes them as unrelated.

    Attributes
    ----------
    n_outputs : int
        Columns of the scores.
    n_latent : int
        Columns of the coefficients, which are other than the outputs only with a prior.
    """

    def __init__(
        self,
        loss: Loss,
        targets: Array,
        weights: Array,
        n_outputs: int,
        basis: Any,
        prior: LabelPrior | None = None,
    ) -> None:
        if prior is not None and prior.n_outputs != n_outputs:
            raise ValueError(
                f"The label prior is one of {prior.n_outputs} outputs, and there are {n_outputs}."
            )
        self.basis = basis
        self.n_outputs = n_outputs
        self.n_latent = n_outputs if prior is None else prior.n_latent
        self.n_threads = basis.n_threads
        self.dtype = basis.features.dtype
        self._loss = loss
        self._targets = targets
        self._all_weights = weights
        self._weights = np.ascontiguousarray(weights, dtype=self.dtype)
        self._native_loss = loss.native()
        self._prior = prior
        self._flat = (
            None if prior is None else prior.flat_directions(common_shift=loss.compares_outputs)
        )

    def refined(self) -> BasisObjective:
        """Return the objective with columns as precise as the rows."""
        basis = self.basis.refined()
        if basis is self.basis:
            return self
        return BasisObjective(
            self._loss, self._targets, self._all_weights, self.n_outputs, basis, self._prior
        )

    def zero_coefficients(self) -> Array:
        """Return zeros for the columns that there are now."""
        return np.zeros((self.basis.n_columns, self.n_latent))

    def output_coefficients(self, coefficients: Array) -> Array:
        """Return B, the coefficients of the outputs: ``W L'`` with a prior."""
        return coefficients if self._prior is None else self._prior.to_outputs(coefficients)

    def expansion(self, coefficients: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) of the outputs, as the basis expands them."""
        expanded: tuple[Array, Array] = self.basis.expansion(self.output_coefficients(coefficients))
        return expanded

    def _to_latent(self, gradient: Array) -> Array:
        """Return gradients in the coefficients, given those in B."""
        return gradient if self._prior is None else self._prior.to_latent(gradient)

    def scores(self, coefficients: Array) -> Array:
        """Return F = Z B."""
        out = np.empty((self._weights.shape[0], self.n_outputs), dtype=self.dtype)
        narrow = self._narrow(coefficients)
        _native.scores(self.basis.features, narrow, out, self.n_threads)
        return out

    def _narrow(self, coefficients: Array) -> Array:
        return np.ascontiguousarray(self.output_coefficients(coefficients), dtype=self.dtype)

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
        out = np.empty((len(coefficients), self.n_outputs))
        _native.transposed_product(self.basis.features, at.active, at.gradient, out, self.n_threads)
        out = self._to_latent(out)
        out += coefficients
        return out

    def hessian_product(self, scores: Array, at: Derivatives, direction: Array) -> Array:
        """Return the Hessian in the coefficients times a direction."""
        out = np.empty((len(direction), self.n_outputs))
        _native.hessian_product(
            self._native_loss,
            self._targets,
            scores,
            self._weights,
            self.basis.features,
            at.active,
            self._narrow(direction),
            out,
            self.n_threads,
        )
        out = self._to_latent(out)
        out += direction
        return out

    def along(self, scores: Array, moved: Array, step: float) -> tuple[float, float, float]:
        """Return the loss at ``scores + step * moved`` and its two derivatives in ``step``."""
        result: tuple[float, float, float] = _native.along_step(
            self._native_loss, self._targets, scores, self._weights, moved, step, self.n_threads
        )
        return result

    def preconditioner(self, at: Derivatives) -> Array:
        """Return Cholesky factors of the Hessian's diagonal blocks, one a column of coefficients.

        Where outputs curve alike, one factor serves all. Where these would take too much memory,
        the one of the mean block stands for all. With a prior, and a loss that compares outputs,
        the blocks are those of a matrix near the Hessian, as they lack its parts across outputs.
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
        Hessian is that of the regulariser: the identity. So it is where a prior of no full rank
        lets nothing through. The blocks know nothing of it, and without these lines conjugate
        gradients take four times as many products to find out.

        Of very large columns, rounding error of that part is more than the whole solution of the
        rest, and is left out.
        """
        out = np.empty_like(right)
        if not self._has_flat_part():
            _native.precondition(factors, right, out, self.n_threads)
            return out
        together = self._flat_part(right)
        _native.precondition(factors, right - together, out, self.n_threads)
        size = np.linalg.norm(right, axis=1, keepdims=True)
        lost = np.finfo(np.float64).eps * size > np.linalg.norm(out, axis=1, keepdims=True)
        common = np.abs(together).max(axis=1, keepdims=True)
        together[(lost & (common < _NO_COMMON_PART * size)).ravel()] = 0.0
        out += together - self._flat_part(out)
        return out

    def _has_flat_part(self) -> bool:
        return self._loss.compares_outputs if self._flat is None else self._flat.shape[1] > 0

    def _flat_part(self, coefficients: Array) -> Array:
        """Return the part of coefficients that no score shows, of one column where all are equal.

        Or shows only as a common shift, where the loss compares outputs.
        """
        if self._flat is None:
            return np.asarray(coefficients.mean(axis=1, keepdims=True))
        return (coefficients @ self._flat) @ self._flat.T

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
        residual : ndarray of shape (n_columns, n_latent)
            The gradient that is left in the coefficients there are.

        Returns
        -------
        slope : ndarray of shape (n_latent, n_candidates)
        bend : ndarray of shape (n_latent, n_candidates, n_candidates)
            Of shape (1, n_candidates, n_candidates) where outputs curve alike. Slopes are exact.
        """
        count = len(candidates)
        gradient, curvature = self._to_latent(at.gradient), self._distinct(at.curvature)
        slope = np.empty((self.n_latent, count))
        bend = np.empty((curvature.shape[1], count, count))
        together = curvature.shape[1] != self.n_latent
        groups = self._groups(curvature, self.basis.n_columns + count)
        for some in [slice(None)] if together else groups:
            _native.candidate_model(
                self.basis.features,
                candidates.columns,
                at.active,
                np.ascontiguousarray(gradient[:, some]),
                np.ascontiguousarray(curvature[:, some]),
                candidates.overlap,
                np.ascontiguousarray(residual[:, some]),
                slope[some],
                bend[some],
                self.n_threads,
            )
        return slope, bend

    def _distinct(self, curvature: Array) -> Array:
        """Return the curvature in each column of the coefficients; one where all are the same."""
        if self._prior is not None:
            return self._prior.curvature_to_latent(curvature)
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

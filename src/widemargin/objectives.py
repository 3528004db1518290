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

Rows belong to the objective: it alone touches what is as long as the data, block by block, and
gives handles to those who ask (:mod:`widemargin.row_blocks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.candidates import Candidates
from widemargin.losses import Loss
from widemargin.priors import LabelPrior
from widemargin.row_blocks import BlockDerivatives, Derivatives, OpenRows, Scores

Array: TypeAlias = npt.NDArray[Any]

_FACTOR_BYTES = 256 << 20  # above this, one preconditioner serves all outputs
_COLUMN_BYTES = 128 << 20  # of candidate columns held at once
_GRAM_PRODUCTS = 4e9  # multiply-adds of Gram matrices in one native call
_EPSILON = float(np.finfo(np.float64).eps)
_NO_COMMON_PART = 1e-3  # of a gradient: less may be the rounding error of many rows
_NEGLIGIBLE_CURVATURE = 0.01  # share of the largest: smaller ones are left out of preconditioners


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
    basis : BasisColumns, or any with ``columns``, ``n_columns`` and ``refined``
        Its blocks of rows are those of the objective.
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
        self.n_rows = len(weights)
        self.n_threads = basis.n_threads
        self.dtype = basis.columns[0].dtype
        self._loss = loss
        self._targets = targets
        self._all_weights = weights
        self._weights = np.ascontiguousarray(weights, dtype=self.dtype)
        blocks = _blocks_of(basis.columns)
        self._judged = [(self._targets[block], self._weights[block]) for block in blocks]
        self._at_zero: list[Array] | None = None  # gradients of the loss, for columns that join
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

    def latent_coefficients(self, coefficients: Array) -> Array:
        """Return the coefficients that solvers see, given those of the outputs."""
        return coefficients if self._prior is None else self._prior.of_outputs(coefficients)

    def expansion(self, coefficients: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) of the outputs, as the basis expands them."""
        expanded: tuple[Array, Array] = self.basis.expansion(self.output_coefficients(coefficients))
        return expanded

    def _to_latent(self, gradient: Array) -> Array:
        """Return gradients in the coefficients, given those in B."""
        return gradient if self._prior is None else self._prior.to_latent(gradient)

    def scores(self, coefficients: Array) -> Scores:
        """Return F = Z B."""
        narrow = self._narrow(coefficients)
        blocks = []
        for columns in self.basis.columns:
            out = np.empty((len(columns), self.n_outputs), dtype=self.dtype)
            _native.scores(columns, narrow, out, self.n_threads)
            blocks.append(out)
        return Scores(blocks)

    def _narrow(self, coefficients: Array) -> Array:
        return np.ascontiguousarray(self.output_coefficients(coefficients), dtype=self.dtype)

    def gather(self, scores: Scores) -> Array:
        """Return scores as an array of shape (n_rows, n_outputs), for one who has room for it."""
        return scores.blocks[0] if len(scores.blocks) == 1 else np.concatenate(scores.blocks)

    def _scored(self, scores: Scores) -> Iterator[tuple[Array, Array, Array]]:
        """Yield targets, scores and weights of each block, as native code takes them."""
        for (targets, weights), some in zip(self._judged, scores.blocks, strict=True):
            yield targets, some, weights

    def derivatives(self, scores: Scores) -> Derivatives:
        """Return the loss and its derivatives in the scores."""
        total, blocks = 0.0, []
        for targets, some, weights in self._scored(scores):
            gradient, curvature = np.empty_like(some), np.empty_like(some)
            active = np.empty(len(some), dtype=bool)
            total += _native.derivatives(
                self._native_loss,
                targets,
                some,
                weights,
                gradient,
                curvature,
                active,
                self.n_threads,
            )
            numbers = np.flatnonzero(active).astype(np.int32, copy=False)
            blocks.append(BlockDerivatives(gradient, curvature, numbers))
        return Derivatives(total, blocks)

    def value(self, coefficients: Array, scores: Scores) -> float:
        """Return the objective."""
        loss = sum(
            _native.loss_value(self._native_loss, targets, some, weights, self.n_threads)
            for targets, some, weights in self._scored(scores)
        )
        return 0.5 * float(np.vdot(coefficients, coefficients)) + float(loss)

    def gradient(self, coefficients: Array, at: Derivatives) -> Array:
        """Return the gradient in the coefficients."""
        gradients = [(block.active, block.gradient) for block in at.blocks]
        out = self._to_latent(self._product(len(coefficients), self.basis.columns, gradients))
        out += coefficients
        return out

    def _product(
        self, count: int, columns: list[Array], gradients: list[tuple[Array, Array]]
    ) -> Array:
        """Return the first ``count`` columns times gradients, over the rows that are active."""

        def product(columns: Array, active: Array, gradient: Array) -> Array:
            out = np.empty((count, gradient.shape[1]))
            _native.transposed_product(columns, active, gradient, out, self.n_threads)
            return out

        pairs = zip(columns, gradients, strict=True)
        return _total(product(block, *gradient) for block, gradient in pairs)

    def hessian_product(self, scores: Scores, at: Derivatives, direction: Array) -> Array:
        """Return the Hessian in the coefficients times a direction."""
        narrow = self._narrow(direction)

        def product(columns: Array, active: Array, scored: tuple[Array, Array, Array]) -> Array:
            out = np.empty((len(direction), self.n_outputs))
            _native.hessian_product(
                self._native_loss, *scored, columns, active, narrow, out, self.n_threads
            )
            return out

        blocks = zip(self.basis.columns, at.blocks, self._scored(scores), strict=True)
        out = self._to_latent(
            _total(product(columns, block.active, scored) for columns, block, scored in blocks)
        )
        out += direction
        return out

    def along(self, scores: Scores, moved: Scores, step: float) -> tuple[float, float, float]:
        """Return the loss at ``scores + step * moved`` and its two derivatives in ``step``."""
        value = slope = curvature = 0.0
        for (targets, some, weights), change in zip(
            self._scored(scores), moved.blocks, strict=True
        ):
            here = _native.along_step(
                self._native_loss, targets, some, weights, change, step, self.n_threads
            )
            value, slope, curvature = value + here[0], slope + here[1], curvature + here[2]
        return value, slope, curvature

    def preconditioner(self, at: Derivatives) -> Array:
        """Return Cholesky factors of the Hessian's diagonal blocks, one a column of coefficients.

        Where outputs curve alike, one factor serves all. Where these would take too much memory,
        the one of the mean block stands for all. With a prior, and a loss that compares outputs,
        the blocks are those of a matrix near the Hessian, as they lack its parts across outputs.
        """
        n_columns = self.basis.n_columns
        curvature = self._distinct(at)
        if 8 * curvature[0].shape[1] * n_columns**2 > _FACTOR_BYTES:
            curvature = [some.mean(axis=1, keepdims=True) for some in curvature]
        # Rows that are not active have a curvature of zero, or none that is a number. Along rows
        # that lie side by side in memory NumPy is ten times as fast.
        turned = [np.ascontiguousarray(some.T) for some in curvature]
        largest = np.max([np.fmax.reduce(some, axis=1, initial=0.0) for some in turned], axis=0)
        least = largest.dtype.type(_NEGLIGIBLE_CURVATURE) * largest
        factors = np.zeros((curvature[0].shape[1], n_columns, n_columns))
        for some in self._groups(curvature, n_columns):
            self._factorise(factors[some], at, [block[:, some] for block in curvature], least[some])
        return factors

    def _factorise(
        self,
        matrices: Array,
        at: Derivatives,
        curvature: list[Array],
        least: Array,
        candidates: list[Array] | None = None,
    ) -> None:
        """Fill matrices with sums over rows, and factorise the part of the basis.

        That is ``I + Z' diag(h) Z`` for each column h of the curvature, and products with candidate
        columns beside it. Where rounding error of sums in single precision leaves no factor, they
        are taken again in double.
        """

        def sums(matrices: Array, curvature: list[Array], least: Array, *, precise: bool) -> None:
            fresh = candidates or [np.empty((len(some), 0), self.dtype) for some in curvature]
            blocks = zip(self.basis.columns, fresh, at.blocks, curvature, strict=True)
            for columns, new, block, some in blocks:
                _native.add_weighted_grams(
                    columns,
                    self.basis.n_columns,
                    new,
                    block.active,
                    np.ascontiguousarray(some),
                    least,
                    precise,
                    matrices,
                    self.n_threads,
                )

        failed = np.empty(len(matrices), dtype=bool)
        is_double = self.dtype == np.float64
        sums(matrices, curvature, least, precise=False)
        _native.factorise(matrices, self.basis.n_columns, is_double, failed, self.n_threads)
        if failed.any():
            again = np.zeros((np.count_nonzero(failed), *matrices.shape[1:]))
            sums(again, [some[:, failed] for some in curvature], least[failed], precise=True)
            _native.factorise(
                again, self.basis.n_columns, True, np.empty(len(again), dtype=bool), self.n_threads
            )
            matrices[failed] = again

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
        size = _row_lengths(right)
        lost = _EPSILON * size > _row_lengths(out)
        if lost.any():
            common = np.abs(together).max(axis=1)
            together[lost & (common < _NO_COMMON_PART * size)] = 0.0
        out += together - self._flat_part(out)
        return out

    def _has_flat_part(self) -> bool:
        return self._loss.compares_outputs if self._flat is None else self._flat.shape[1] > 0

    def _flat_part(self, coefficients: Array) -> Array:
        """Return the part of coefficients that no score shows, of one column where all are equal.

        Or shows only as a common shift, where the loss compares outputs.
        """
        if self._flat is None:
            # As `mean`, which takes longer than a sum over so few.
            total = np.add.reduce(coefficients, axis=1, keepdims=True)
            return np.asarray(total / coefficients.shape[1])
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
        curvature = self._distinct(at)
        gradient = [self._to_latent(block.gradient) for block in at.blocks]
        slope = np.empty((self.n_latent, count))
        bend = np.empty((curvature[0].shape[1], count, count))
        together = curvature[0].shape[1] != self.n_latent
        width = self.basis.n_columns + count
        for some in [slice(None)] if together else self._groups(curvature, width):
            matrices = np.zeros((len(bend[some]), width, width))
            self._factorise(
                matrices,
                at,
                [block[:, some] for block in curvature],
                np.zeros(len(matrices), dtype=self.dtype),
                candidates.columns,
            )
            slopes = self._product(
                count,
                candidates.columns,
                [
                    (block.active, np.ascontiguousarray(part[:, some]))
                    for block, part in zip(at.blocks, gradient, strict=True)
                ],
            )
            _native.candidate_model(
                matrices,
                slopes,
                candidates.overlap,
                np.ascontiguousarray(residual[:, some]),
                slope[some],
                bend[some],
                self.n_threads,
            )
        return slope, bend

    @property
    def most_candidates(self) -> int:
        """How many candidates may be compared at once, by the memory that their columns take."""
        row_bytes = self.dtype.itemsize * self.n_rows
        return int(np.clip(_COLUMN_BYTES // row_bytes, 32, 256))

    def open_rows(self) -> OpenRows:
        """Return the rows that may join the basis: those of some weight that are not in it."""
        rows = OpenRows(np.asarray(self._all_weights) > 0)
        rows.close(self.basis.indices[self.basis.indices >= 0])
        return rows

    def propose(self, rows: npt.NDArray[np.intp]) -> tuple[Candidates, npt.NDArray[np.intp]]:
        """Return rows as candidates, and those that the basis expresses already."""
        proposed: tuple[Candidates, npt.NDArray[np.intp]] = self.basis.propose_rows(rows)
        return proposed

    def gradient_at_zero(self) -> Array:
        """Return the gradient at zero coefficients of the columns that there are."""
        zero = [np.zeros((len(block), self.n_outputs), self.dtype) for block in self.basis.columns]
        at_zero = self.derivatives(Scores(zero))
        self._at_zero = [block.gradient for block in at_zero.blocks]
        return self.gradient(self.zero_coefficients(), at_zero)

    def append(self, candidates: Candidates) -> Array:
        """Take candidates into the basis; return the gradient at zero in their coefficients."""
        if self._at_zero is None:
            self.gradient_at_zero()
        assert self._at_zero is not None
        columns = self.basis.append(candidates)
        return self._to_latent(
            _total(
                np.asarray(block.T @ gradient, dtype=np.float64)
                for block, gradient in zip(columns, self._at_zero, strict=True)
            )
        )

    def _distinct(self, at: Derivatives) -> list[Array]:
        """Return the curvature in each column of the coefficients; one where all are the same."""
        if self._prior is not None:
            return [self._prior.curvature_to_latent(block.curvature) for block in at.blocks]
        used = slice(1) if self._loss.curves_alike else slice(None)
        return [block.curvature[:, used] for block in at.blocks]

    def _groups(self, curvature: list[Array], width: int) -> Iterator[slice]:
        """Cut the outputs into groups whose Gram matrices take a fraction of a second to build.

        Between native calls Python can serve an interrupt.
        """
        n_outputs = curvature[0].shape[1]
        n_used = max(np.count_nonzero(some) for some in curvature)
        each = max(1.0, n_used / n_outputs * width**2)
        size = max(self.n_threads, int(_GRAM_PRODUCTS / each))
        for start in range(0, n_outputs, size):
            yield slice(start, start + size)


def _row_lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _total(parts: Iterable[Array]) -> Array:
    """Return the sum over blocks, added in order."""
    remaining = iter(parts)
    total = next(remaining)
    for part in remaining:
        total += part
    return total


def _blocks_of(columns: list[Array]) -> list[slice]:
    """Return which rows each block has."""
    ends = np.cumsum([0, *map(len, columns)]).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]

"""Candidates: vectors that could join a basis, and the choice among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.kernels import Rows

Array: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.intp]

# Squared length outside the span of those chosen before, below which a candidate is left out.
_NEAR_DUPLICATE = 1e-4
# Gains that differ by less than this share are equal, but for rounding error of the columns.
_NEAR_TIE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-6}


@dataclass(frozen=True)
class Candidates:
    """Vectors that could join the basis, orthonormalised against it.

    Attributes
    ----------
    indices : ndarray of shape (n_candidates,)
        Their row numbers; -1 for vectors that are no training rows.
    vectors : array or CSR matrix of shape (n_candidates, n_features)
    columns : list of ndarray of shape (n_rows, n_candidates)
        One for each block of rows.
    coordinates : ndarray of shape (n_candidates, n_columns)
        Of each in the columns that the basis has, float64.
    length : ndarray of shape (n_candidates,)
        Of the part that the basis does not express.
    signs : ndarray of shape (n_candidates,)
        1; -1 where the squared length of that part is negative; 0 where it is too small for its
        kernel values, so that ``length`` is more.
    overlap : ndarray of shape (n_candidates, n_candidates)
        Inner products of these parts, each scaled to length 1. A candidate of another sign than 1
        has 1 with all others, as if it were a duplicate: it joins alone.
    """

    indices: Indices
    vectors: Rows
    columns: list[Array]
    coordinates: Array
    length: Array
    signs: Array
    overlap: Array

    def __len__(self) -> int:
        return len(self.length)

    @property
    def near_tie(self) -> float:
        """Share of a gain that rounding error of the columns can make or unmake."""
        return _NEAR_TIE[self.columns[0].dtype]

    def take(self, positions: Indices) -> Candidates:
        """Return some of the candidates."""
        return Candidates(
            self.indices[positions],
            self.vectors[positions],
            [np.ascontiguousarray(block[:, positions]) for block in self.columns],
            self.coordinates[positions],
            self.length[positions],
            self.signs[positions],
            self.overlap[np.ix_(positions, positions)],
        )


def choose_jointly(
    slope: Array, bend: Array, overlap: Array, count: int, near_tie: float = 0.0
) -> Indices:
    """Choose candidates one after the other by what each adds to those chosen before.

    The objective's model for output r is ``slope_r . b + 1/2 b' bend_r b`` in the coefficients b of
    the candidates. Choosing one and solving for its coefficients of all outputs gains
    ``1/2 sum_r slope_r^2 / bend_r``; eliminating it from the model leaves that of the others.

    Candidates can be equally good: the last vector that spans the space of a linear kernel may be
    any. Of those that are so but for rounding error, the first is taken, so that the same rows in
    another form, rounded otherwise, make the same choice.

    Parameters
    ----------
    slope : ndarray of shape (n_outputs, n_candidates)
    bend : ndarray of shape (n_outputs, n_candidates, n_candidates)
        Of shape (1, n_candidates, n_candidates) where it is the same for all outputs.
    overlap : ndarray of shape (n_candidates, n_candidates)
        Inner products of the candidates, to keep near duplicates of the chosen ones out.
    count : int
        How many to choose at the most.
    near_tie : float, default=0.0
        Share of the best gain by which an equal one may fall short of it.

    Returns
    -------
    positions : ndarray of the chosen candidates, in order
        Their overlap is positive definite, even if that of all of them is not.
    """
    slope = slope.copy()
    n_candidates = slope.shape[1]
    left = np.einsum("rii->ri", bend).copy()
    outside = np.ones(n_candidates)  # squared length outside the span of the chosen ones
    eliminated = np.empty((len(bend), 0, n_candidates))
    spanned = np.empty((0, n_candidates))
    positions: list[int] = []
    while len(positions) < count:
        # The regulariser alone bends by `outside`; less than that is rounding error.
        left = np.maximum(left, np.maximum(outside, _NEAR_DUPLICATE))
        each = 0.5 * np.sum(slope**2 / left, axis=0)
        each[outside <= _NEAR_DUPLICATE] = 0.0
        most = each.max(initial=0.0)
        if not most > 0.0:
            break
        best = int(np.argmax(each >= (1.0 - near_tie) * most))
        pivot = np.sqrt(left[:, best])
        column = bend[:, :, best] - np.einsum("rj,rjc->rc", eliminated[:, :, best], eliminated)
        # No entry of a factor exceeds what is left on the diagonal, except by rounding error.
        column = np.clip(column / pivot[:, None], -np.sqrt(left), np.sqrt(left))
        slope -= column * (slope[:, best] / pivot)[:, None]
        left -= column**2
        eliminated = np.concatenate([eliminated, column[:, None, :]], axis=1)
        shadow = (overlap[best] - spanned[:, best] @ spanned) / np.sqrt(outside[best])
        outside -= shadow**2
        outside[best] = 0.0
        spanned = np.vstack([spanned, shadow])
        positions.append(best)
    return np.asarray(positions, dtype=np.intp)

"""The basis: kernel columns of the chosen vectors, orthonormalised one after the other.

With J the chosen vectors and ``K_JJ = L L'``, the columns kept are ``Z = K_.J L^-T``. In terms of
``B = L' A`` the scores are ``F = Z B`` and the regulariser ``tr(A' K_JJ A)`` is ``|B|^2``: well
conditioned, and a new vector adds a column without touching the others.

The kernel need not be positive semi-definite. Columns ``K_.J L^-T`` express the same scores for
any triangular L, and the regulariser ``|B|^2`` is ``tr(A' L L' A)``, which is positive: the problem
stays convex. Where the squared length that a vector has outside the span of the others is negative,
it gets the sign -1, and ``K_JJ = L S L'`` with the signs S on a diagonal. Where that length all but
cancels, so that the column would be far larger than a row is long, the vector gets a greater length
and the sign 0: later ones are not made orthogonal to it. So its copies are not known by their
lengths, but by being equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from widemargin import _native
from widemargin.candidates import Candidates
from widemargin.kernels import Kernel, Precomputed, Rows, computes_densely
from widemargin.row_blocks import BLOCK_ROWS, cut, some_rows

Array: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.intp]

# A vector that keeps less than this share of its squared length outside the span of the others is
# a duplicate: what it would add is rounding error.
_DUPLICATE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-7}
# A squared length below minus this, relative to what it is the difference of, is no rounding error.
_INDEFINITE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-5}
# Of a column, in lengths of a row; more would let a vector whose length all but cancels explain
# much at no cost.
_LARGEST_ENTRY = 1.5
_FIRST_CAPACITY = 64
_PRECISE_ROWS = 2048  # fewer rows have columns of their own precision from the start
_REFINED_AT_ONCE = 4096  # rows
# Of kernel values: larger ones may overflow single precision once they are weighted and summed.
_LARGEST_SINGLE = 1e25
# The same for double precision, where sums of them are squared too.
_LARGEST_DOUBLE = 1e200


class BasisColumns:
    """The chosen vectors and their orthonormalised kernel columns.

    Parameters
    ----------
    kernel : Kernel
    rows : array or CSR matrix of shape (n_rows, n_features)
    fit_intercept : bool
        Whether the first column is a constant 1, with a coefficient that is regularised like the
        others (which amounts to the kernel ``k + 1``).
    max_basis : int
        More vectors than this never come; memory is taken as they do.
    n_threads : int
    counted : ndarray of bool of shape (n_rows,), default=None
        Rows that have weight, all if None. The others have columns too, but no say in them.
    block_rows : int, default=BLOCK_ROWS
        Rows that are worked on together. Another number changes results by rounding error.

    Attributes
    ----------
    columns : list of ndarray of shape (n_rows, capacity)
        The columns, for each block of rows; the first ``n_columns`` of them are in use.

    Notes
    -----
    Kernel values and the factor L have the precision of the rows, or double precision where the
    kernel wants that. The columns of many rows are single precision while the basis grows, which is
    enough to choose by and twice as fast; ``refined`` gives them the precision of the values.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        *,
        fit_intercept: bool,
        max_basis: int,
        n_threads: int,
        counted: npt.NDArray[np.bool_] | None = None,
        block_rows: int = BLOCK_ROWS,
    ) -> None:
        self.kernel = kernel
        self.rows = rows
        self.n_threads = n_threads
        self._counted = None if counted is None or counted.all() else counted
        self.n_constant = int(fit_intercept)
        self.n_columns = self.n_constant
        self.indices: Indices = np.empty(0, dtype=np.intp)
        self.diagonal = _checked_diagonal(kernel, rows)
        large = bool(np.abs(self.diagonal).max(initial=0.0) > _LARGEST_SINGLE)
        wants_double = kernel.wants_double or large
        self._precision = np.dtype(np.float64 if wants_double else rows.dtype)
        # Sparse rows then have the values, and so the choices, of dense ones.
        self._densely = kernel.native() is not None and computes_densely(rows)
        self._max_basis = max_basis
        self._vectors: list[Rows] = []
        capacity = min(max_basis, _FIRST_CAPACITY)
        self._factor = np.zeros((capacity, capacity))  # L, lower triangular
        self._signs = np.empty(0)  # S, of the vectors
        self._unmeasured: set[bytes] = set()  # rows of the vectors of the sign 0
        roughly = rows.shape[0] > _PRECISE_ROWS and not large
        dtype = np.float32 if roughly else self._precision
        self._block_rows = block_rows
        self._blocks = [some_rows(rows, block) for block in cut(rows.shape[0], block_rows)]
        width = self.n_constant + capacity
        self.columns = [np.empty((block.shape[0], width), dtype=dtype) for block in self._blocks]
        for block in self.columns:
            block[:, : self.n_constant] = 1.0

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the columns."""
        dtype: np.dtype[Any] = self.columns[0].dtype
        return dtype

    @property
    def n_basis(self) -> int:
        """Number of vectors."""
        return self.n_columns - self.n_constant

    def _lengths(self) -> Array:
        """Return the squared lengths of the rows that count."""
        return self.diagonal if self._counted is None else self.diagonal[self._counted]

    def _counted_blocks(self, blocks: list[Array]) -> Iterator[tuple[Array, Any]]:
        """Yield blocks with the rows in each that count, but for those that have none."""
        for block, some in zip(blocks, cut(len(self.diagonal), self._block_rows), strict=True):
            counted = slice(None) if self._counted is None else self._counted[some]
            if self._counted is None or self._counted[some].any():
                yield block, counted

    @property
    def sees_one_row(self) -> bool:
        """Whether all rows are the same to the kernel, as far as the first vector can tell."""
        if self.n_basis != 1:
            return self.n_basis == 0
        first = [block[some, self.n_constant] for block, some in self._counted_blocks(self.columns)]
        high, low = max(column.max() for column in first), min(column.min() for column in first)
        return bool(high - low <= 1e-6 * max(abs(high), abs(low)))

    @property
    def takes_no_row(self) -> bool:
        """Whether no row can be a vector, as it has no length in a kernel that need not be zero."""
        return not (self.n_basis or self.kernel.is_positive or self._lengths().any())

    @property
    def vectors(self) -> Rows:
        """The vectors in the order they came, in the form that ``kernel.select`` gives them."""
        if not self._vectors:
            return self.kernel.select(self.rows, self.indices)
        if len(self._vectors) > 1:
            sparse = sp.issparse(self._vectors[0])
            stacked = sp.vstack(self._vectors, "csr") if sparse else np.concatenate(self._vectors)
            self._vectors = [stacked]
        return self._vectors[0]

    def propose_rows(self, indices: Indices) -> tuple[Candidates, Indices]:
        """Orthonormalise training rows against the basis.

        Returns
        -------
        candidates : Candidates
        duplicates : ndarray
            Those of ``indices`` that the basis expresses already, and so always will.
        """
        located = self._locate(self.rows[indices], self.diagonal[indices])
        fresh = located[2]
        kept = indices[fresh]
        vectors = self.kernel.select(self.rows, kept)
        candidates = self._orthonormalise(
            kept, vectors, self.rows[kept], located[0][fresh], located[1][fresh]
        )
        return candidates, indices[~fresh]

    def extend(
        self, vectors: Rows, indices: Indices, left: Rows, diagonal: Array
    ) -> npt.NDArray[np.bool_]:
        """Append vectors that need not be rows of the training data.

        Parameters
        ----------
        vectors : as ``kernel.select`` gives them
        indices : ndarray
            Their row numbers, -1 where they are no training rows.
        left : array or CSR matrix
            The rows that the vectors stand for, to compute kernel values with the basis.
        diagonal : ndarray
            Kernel value of each with itself.

        Returns
        -------
        kept : ndarray of bool
            False for duplicates, which are passed over.
        """
        kept = np.zeros(len(indices), dtype=bool)
        for j in range(len(indices)):
            one = slice(j, j + 1)
            coordinates, outside, kept[one] = self._locate(left[one], diagonal[one])
            if kept[j]:
                self.append(
                    self._orthonormalise(
                        indices[one], vectors[one], left[one], coordinates, outside
                    )
                )
        return kept

    def append(self, candidates: Candidates) -> list[Array]:
        """Take all of the candidates into the basis; return their columns, a block each.

        Their overlap must be positive definite, as that of a single one is, and of those that
        ``choose_jointly`` chooses.
        """
        count, row = len(candidates), self.n_basis
        self._make_room(count)
        # Orthonormalised against the basis, but not yet against each other.
        among = np.linalg.cholesky(candidates.overlap)
        self._factor[row : row + count, :row] = (
            candidates.coordinates[:, self.n_constant :] * self._signs
        )
        self._factor[row : row + count, row : row + count] = candidates.length[:, None] * among
        turn = _solve(among, np.eye(count)).T.astype(self.dtype)
        columns = [block @ turn for block in candidates.columns]
        for block, added in zip(self.columns, columns, strict=True):
            block[:, self.n_columns : self.n_columns + count] = added
        self._signs = np.append(self._signs, candidates.signs)
        self._note_unmeasured(candidates.vectors, candidates.signs)
        self.indices = np.append(self.indices, candidates.indices)
        self._vectors.append(candidates.vectors)
        self.n_columns += count
        return columns

    def refined(self) -> BasisColumns:
        """Return the same basis, not to be grown, with columns as precise as kernel values."""
        if self.dtype == self._precision:
            return self
        precise = copy(self)
        precise.columns = []
        factor = self._factor[: self.n_basis, : self.n_basis]
        for rows in self._blocks:
            columns = np.ones((rows.shape[0], self.n_columns), dtype=self._precision)
            for start in range(0, rows.shape[0], _REFINED_AT_ONCE):
                some = slice(start, start + _REFINED_AT_ONCE)
                values = self._values(rows[some], self.vectors, self._precision)
                columns[some, self.n_constant :] = _solve(factor, values.T).T
            precise.columns.append(columns)
        return precise

    def expansion(self, coefficients: Array) -> tuple[Array, Array]:
        """Return (coef, intercept) of the expansion that column coefficients B stand for.

        Fewer rows than there are columns stand for the first vectors alone.
        """
        n_basis = coefficients.shape[0] - self.n_constant
        factor = self._factor[:n_basis, :n_basis]
        coef = _solve(factor, coefficients[self.n_constant :], transposed=True)
        return coef, coefficients[: self.n_constant].sum(axis=0)

    def column_coefficients(self, coef: Array, intercept: Array) -> Array:
        """Return B for the coefficients of an expansion: the inverse of ``expansion``."""
        factor = self._factor[: self.n_basis, : self.n_basis]
        return np.vstack([intercept[None, :][: self.n_constant], factor.T @ coef])

    def projection(self, left: Rows, diagonal: Array, coef: Array) -> Array:
        """Return the part of B that stands for an expansion in vectors outside the basis.

        The nearest in the norm of the kernel. Of vectors that ``extend`` passed over it is nearly
        all; parameters are those of ``extend``.
        """
        coordinates, _, _ = self._locate(left, diagonal)
        return (coordinates * self._column_signs()).T @ coef

    def _values(self, rows: Rows, vectors: Rows, dtype: npt.DTypeLike) -> Array:
        """Return kernel values for columns of a dtype, at least as precise."""
        if self._densely and sp.issparse(vectors):
            vectors = vectors.toarray()
        if dtype == self.rows.dtype:
            return self.kernel.block(rows, vectors, self.n_threads)
        precise = dtype == np.float64
        block = self.kernel.double_block if precise else self.kernel.single_block
        return block(rows, vectors, self.n_threads)

    def _locate(self, rows: Rows, diagonal: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """Return coordinates in the basis, squared length outside it, and whether that is any."""
        coordinates = np.zeros((len(diagonal), self.n_columns))
        if self.n_basis:
            values = self._values(rows, self.vectors, self._precision).astype(np.float64)
            factor = self._factor[: self.n_basis, : self.n_basis]
            coordinates[:, self.n_constant :] = _solve(factor, values.T).T
        inside = np.einsum("ij,ij->i", coordinates * self._column_signs(), coordinates)
        outside = diagonal - inside
        fresh = outside > _DUPLICATE[self._precision] * np.abs(diagonal)
        if not self.kernel.is_positive:
            terms = np.einsum("ij,ij->i", coordinates, coordinates)
            error = _INDEFINITE[self._precision] * (np.abs(diagonal) + terms)
            fresh |= outside < -error
            if self._unmeasured:
                fresh &= [each not in self._unmeasured for each in _row_bytes(rows)]
        return coordinates, outside, fresh

    def _note_unmeasured(self, vectors: Rows, signs: Array) -> None:
        """Remember the vectors of the sign 0, so that their copies are known."""
        if not signs.all():
            unmeasured = vectors[signs == 0]
            of_matrix = isinstance(self.kernel, Precomputed)
            self._unmeasured.update(_row_bytes(self.rows[unmeasured] if of_matrix else unmeasured))

    def _column_signs(self) -> Array:
        return np.concatenate([np.ones(self.n_constant), self._signs])

    def _orthonormalise(
        self, indices: Indices, vectors: Rows, left: Rows, coordinates: Array, outside: Array
    ) -> Candidates:
        length, signs = np.sqrt(np.abs(outside)), np.where(outside < 0, -1.0, 1.0)
        signed = coordinates * self._column_signs()
        columns, kernel_values = [], []
        scaled = (signed / length[:, None]).astype(self.dtype)
        for rows, before in zip(self._blocks, self.columns, strict=True):
            values = self._values(rows, vectors, self.dtype)
            block = (values / length.astype(values.dtype)).astype(self.dtype, copy=False)
            _native.orthogonalise(before, scaled, block, self.n_threads)
            columns.append(block)
            if not self.kernel.is_positive:
                kernel_values.append(values)
        if not self.kernel.is_positive:
            excess = self._excess(columns, kernel_values)
            for block in columns:
                block /= excess.astype(self.dtype)
            length, signs = length * excess, np.where(excess > 1, 0.0, signs)
        inner = self._values(left, vectors, self._precision).astype(np.float64)
        overlap = (inner - signed @ coordinates.T) / np.outer(length, length)
        overlap = 0.5 * (overlap + overlap.T)
        overlap[signs != 1] = 1.0
        overlap[:, signs != 1] = 1.0
        np.fill_diagonal(overlap, 1.0)
        return Candidates(indices, vectors, columns, coordinates, length, signs, overlap)

    def _excess(self, columns: list[Array], kernel_values: list[Array]) -> Array:
        """Return by how much columns are too large, or 1.

        Of a positive kernel no entry of a column is above the length of its row, and no value above
        the largest squared length.
        """
        values, largest = (
            np.max([np.abs(block[some]).max(axis=0) for block, some in counted], axis=0)
            for counted in map(self._counted_blocks, (kernel_values, columns))
        )
        squared = np.maximum(values, np.abs(self._lengths()).max())
        allowed = _LARGEST_ENTRY * np.sqrt(squared.astype(np.float64))
        excess: Array = np.maximum(largest / allowed, 1.0)
        return excess

    def _make_room(self, count: int) -> None:
        capacity = len(self._factor)
        needed = self.n_basis + count
        if needed > capacity:
            self._set_capacity(max(needed, min(self._max_basis, 2 * capacity)))

    def _set_capacity(self, capacity: int) -> None:
        for place, block in enumerate(self.columns):
            wider = np.empty((block.shape[0], self.n_constant + capacity), block.dtype)
            wider[:, : self.n_columns] = block[:, : self.n_columns]
            self.columns[place] = wider
        # Last, as it says how much room there is: an interrupt may come in between.
        more = capacity - len(self._factor)
        self._factor = np.pad(self._factor, ((0, more), (0, more)))

    def shorten(self, n_basis: int) -> None:
        """Let go of the last vectors, so that as many are left."""
        vectors = self.vectors[:n_basis]
        self.n_columns = self.n_constant + n_basis
        self.indices, self._signs = self.indices[:n_basis], self._signs[:n_basis]
        self._vectors, self._unmeasured = [vectors], set()
        self._note_unmeasured(vectors, self._signs)

    def pack(self) -> dict[str, Any]:
        """Return all that was chosen and computed, as what model files hold."""
        return {
            "indices": self.indices,
            "vectors": self.vectors,
            "signs": self._signs,
            "factor": self._factor[: self.n_basis, : self.n_basis].copy(),
            "capacity": len(self._factor),
            "columns": [block[:, : self.n_columns].copy() for block in self.columns],
        }

    def restore(self, packed: dict[str, Any]) -> None:
        """Take over what was packed by a basis of the same rows, kernel and settings.

        Columns are not computed anew: they would be the same but for rounding error.
        """
        self.indices = np.asarray(packed["indices"], dtype=np.intp)
        self._vectors, self._signs = [packed["vectors"]], packed["signs"]
        self._note_unmeasured(packed["vectors"], self._signs)
        n_basis = len(self.indices)
        self._factor = np.zeros((packed["capacity"], packed["capacity"]))
        self._factor[:n_basis, :n_basis] = packed["factor"]
        self.n_columns = self.n_constant + n_basis
        for place, columns in enumerate(packed["columns"]):
            room = (len(columns), self.n_constant + packed["capacity"])
            self.columns[place] = np.empty(room, dtype=self.dtype)
            self.columns[place][:, : self.n_columns] = columns


def _checked_diagonal(kernel: Kernel, rows: Rows) -> Array:
    """Return the kernel value of each row with itself; refuse what cannot be computed with."""
    with np.errstate(over="ignore", invalid="ignore"):
        diagonal = kernel.diagonal(rows)
        largest = np.abs(diagonal).max(initial=0.0)
    if not largest <= _LARGEST_DOUBLE:
        raise ValueError(
            f"Rows of X have kernel values of up to {largest:.1e} with themselves, and those above "
            f"{_LARGEST_DOUBLE:.0e} are beyond what can be computed with. Scale the features, by "
            "sklearn.preprocessing.StandardScaler say, or lower gamma or degree."
        )
    return diagonal


def _row_bytes(rows: Rows) -> list[bytes]:
    """Return what equal rows have in common, and no others."""
    if not sp.issparse(rows):
        return [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]  # -0.0 is 0.0
    places, values = rows.indices.astype(np.int64), rows.data + 0.0
    return [
        places[first:end].tobytes() + values[first:end].tobytes()
        for first, end in pairwise(rows.indptr)
    ]


def _solve(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """Return ``L^-1 right``, or ``L^-T right``, for a lower triangular L, which may be empty.

    SciPy before 1.14 refuses a system without equations, which a basis without vectors has.
    """
    if right.size == 0:
        return np.empty(right.shape)
    solution: Array = solve_triangular(factor, right, lower=True, trans="T" if transposed else "N")
    return solution

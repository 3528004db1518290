"""Rows as kernels take them: dense or sparse, and what both have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = Any  # a C-contiguous array or a canonical CSR matrix, float32 or float64

#: For which sparse rows are always computed with as dense ones.
FEW_FEATURES = 256
_DENSE_SHARE = 0.1  # of all entries; wider rows that have as many are computed with as dense ones
_DENSE_ENTRIES = 1 << 20  # of sparse rows that are made dense at once


def computes_densely(rows: Rows) -> bool:
    """Whether these rows, dense or sparse, are computed with as dense ones, to the same bits.

    Loops over dense rows are so much faster an entry that narrow sparse rows, and those with many
    entries, gain by it. It is a question to a whole matrix: parts of it may have another share of
    entries, and would be rounded otherwise than the rest.
    """
    if not sp.issparse(rows):
        return True
    n_rows, n_features = rows.shape
    return bool(n_features <= FEW_FEATURES or rows.nnz >= _DENSE_SHARE * n_rows * n_features)


def as_native_rows(rows: Rows) -> Any:
    """Return what the native code takes: the array itself, or the parts of a CSR matrix."""
    if not sp.issparse(rows):
        return np.require(rows, requirements=["C", "A"])
    csr = _native.CsrFloat32 if rows.dtype == np.float32 else _native.CsrFloat64
    return csr(
        np.require(rows.data, requirements=["C", "A"]),
        np.require(rows.indices, np.int32, ["C", "A"]),
        np.require(rows.indptr, np.int64, ["C", "A"]),
        rows.shape[1],
    )


def dense_parts(rows: Rows) -> Iterator[tuple[slice, Array]]:
    """Yield rows as dense ones, some at a time; never one alone, which NumPy sums otherwise."""
    n_rows, n_features = rows.shape
    size = max(2, _DENSE_ENTRIES // max(1, n_features))
    for start in range(0, max(1, n_rows - 1), size):
        some = slice(start, start + size if start + size < n_rows - 1 else n_rows)
        yield some, rows[some].toarray() if sp.issparse(rows) else rows[some]


def row_sums(rows: Rows, of_dense: Callable[[Array], Array]) -> Array:
    """Return a sum over the features of each row; sparse rows have that of dense ones."""
    sums = np.empty(rows.shape[0])
    for some, dense in dense_parts(rows):
        sums[some] = of_dense(dense)
    return sums


def squared_norms(rows: Rows) -> Array:
    if not computes_densely(rows):
        squared = np.square(rows.data, dtype=np.float64)
        squares = sp.csr_matrix((squared, rows.indices, rows.indptr), shape=rows.shape)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    return row_sums(rows, lambda dense: np.einsum("ij,ij->i", dense, dense, dtype=np.float64))


def chi_square_distances(rows: Array, others: Array) -> Array:
    """Return ``sum (x - b)^2 / (x + b)`` of dense rows and others, one each, as float64."""
    sums = np.add(rows, others, dtype=np.float64)
    gaps = np.subtract(rows, others, dtype=np.float64)
    shares = np.divide(gaps, sums, out=np.zeros_like(sums), where=sums > 0)
    return np.asarray(np.einsum("ij,ij->i", gaps, shares))

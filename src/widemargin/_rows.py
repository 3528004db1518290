"""Rows as they come in: what must hold of them, and in which form the library keeps them."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._fitting import FRAMES_TO_CALLER
from widemargin.kernels import Rows


def check_kernel_matrix(K: Rows) -> None:
    """Require what a kernel matrix of training rows always is."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel matrix must be square in fit, got shape {K.shape}: entry (i, j) "
            "is the kernel value of training rows i and j."
        )
    asymmetry = max(
        abs(K[start : start + 1024] - K[:, start : start + 1024].T).max()
        for start in range(0, K.shape[0], 1024)
    )
    if K.diagonal().min() < 0 or asymmetry > 1e-4 * abs(K).max():
        warnings.warn(
            "The precomputed matrix is no kernel matrix: that is symmetric, with no negative "
            f"diagonal. Its diagonal goes down to {K.diagonal().min():.3g}, and entries (i, j) and "
            f"(j, i) differ by up to {asymmetry:.3g}. Only columns of chosen rows are used.",
            UserWarning,
            stacklevel=3 + FRAMES_TO_CALLER,
        )


def canonical_rows(X: Rows) -> Rows:
    """Return CSR rows with sorted indices and no entry twice; arrays as they are."""
    if sp.issparse(X) and X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {X.shape[1]} features; sparse rows may have {np.iinfo(np.int32).max} at the "
            "most. Hash the features to fewer columns."
        )
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def rows_like(vectors: Rows, rows: Rows) -> Rows:
    """Return vectors dense or sparse, and of the dtype, as the rows are."""
    if sp.issparse(rows):
        return sp.csr_matrix(vectors, dtype=rows.dtype)
    dense = vectors.toarray() if sp.issparse(vectors) else vectors
    return np.ascontiguousarray(dense, dtype=rows.dtype)


def same_rows(rows: Rows, indices: npt.NDArray[np.intp], vectors: Rows) -> bool:
    if len(indices) == 0 or indices.min() < 0 or indices.max() >= rows.shape[0]:
        return False
    difference = rows[indices] != vectors
    return not (difference.nnz if sp.issparse(difference) else difference.any())

"""Models: what predicts. All prediction, export and saving live here, not on the estimators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin._threads import one_blas_thread
from widemargin.kernels import Kernel, Rows

Array: TypeAlias = npt.NDArray[Any]

_FEW_ROWS = 64
_STAGED_ENTRIES = 1 << 25  # kernel values kept for all stages
_BLOCK_ENTRIES = 1 << 22  # kernel values held at once while predicting


@dataclass(frozen=True)
class KernelExpansion:
    """Scores that are sums of kernel values.

    ``f_r(x) = sum_j k(x, b_j) coef[j, r] + intercept[r]``

    Attributes
    ----------
    kernel : Kernel
    basis : array or CSR matrix of shape (n_basis, n_features)
        For a precomputed kernel, the numbers of the training rows.
    coef : ndarray of shape (n_basis, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    """

    kernel: Kernel
    basis: Rows
    coef: Array
    intercept: Array

    @property
    def n_basis(self) -> int:
        """Number of basis vectors."""
        return int(self.coef.shape[0])

    def scores(self, rows: Rows, n_threads: int = 1) -> Array:
        """Return the scores of ``rows``, of their dtype, shape (n_rows, n_outputs)."""
        coef = np.ascontiguousarray(self.coef, dtype=rows.dtype)
        intercept = self.intercept.astype(rows.dtype, copy=False)
        out = np.empty((rows.shape[0], coef.shape[1]), dtype=rows.dtype)
        # A few rows are too little work for BLAS to share, and holding it back would take longer.
        with one_blas_thread() if rows.shape[0] > _FEW_ROWS else nullcontext():
            for start, values in self._kernel_blocks(rows, n_threads):
                part = out[start : start + values.shape[0]]
                _native.scores(values, coef, part, n_threads)
                part += intercept
        return out

    def staged_scores(
        self, rows: Rows, stages: list[tuple[Array, Array]], n_threads: int = 1
    ) -> Iterator[Array]:
        """Yield the scores of expansions in the first vectors: (coef, intercept) each.

        Kernel values are computed once where they fit in memory, else for each stage.
        """
        fit = rows.shape[0] * self.n_basis <= _STAGED_ENTRIES
        values = self.kernel.block(rows, self.basis, n_threads) if fit else None
        for coef, intercept in stages:
            if values is None:
                part = replace(self, basis=self.basis[: len(coef)], coef=coef, intercept=intercept)
                yield part.scores(rows, n_threads)
            else:
                scores = values[:, : len(coef)] @ coef.astype(rows.dtype)
                yield scores + intercept.astype(rows.dtype)

    def _kernel_blocks(self, rows: Rows, n_threads: int) -> Iterator[tuple[int, Array]]:
        block = max(256, _BLOCK_ENTRIES // max(1, self.n_basis))
        for start in range(0, rows.shape[0], block):
            yield start, self.kernel.block(rows[start : start + block], self.basis, n_threads)

"""Kernels whose values come from outside: a matrix, or a function of Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels._base import Kernel
from widemargin.kernels._rows import Array, Rows


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Kernel values handed over as rows.

    Entry j of a row is its value with training row j. A basis vector is the number of a training
    row.
    """

    name = "precomputed"

    def block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the columns of ``rows`` that belong to the basis."""
        values = rows[:, basis]
        return np.ascontiguousarray(values.toarray() if sp.issparse(values) else values)

    def diagonal(self, rows: Rows) -> Array:
        """Return the diagonal of the training matrix."""
        return np.asarray(rows.diagonal(), dtype=np.float64)

    def select(self, rows: Rows, indices: npt.NDArray[np.intp]) -> Rows:
        """Return the numbers themselves."""
        return np.asarray(indices, dtype=np.intp)


@dataclass(frozen=True)
class CustomKernel(Kernel):
    """Any callable ``function(X, Y)`` that returns the matrix of values.

    Kernels of :mod:`sklearn.gaussian_process.kernels` are such callables; where the callable has
    a method ``diag(X)``, as these have, it is used.
    """

    function: Callable[[Any, Any], Any]

    def block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Call the function, and check what it returns."""
        expected = (rows.shape[0], basis.shape[0])
        if 0 in expected:  # functions such as scikit-learn's refuse matrices without rows
            return np.zeros(expected, dtype=rows.dtype)
        values = self.function(rows, basis)
        values = np.asarray(values.toarray() if sp.issparse(values) else values)
        if values.shape != expected:
            raise ValueError(
                f"The kernel {self.function!r} returned an array of shape {values.shape} for "
                f"{expected[0]} rows and {expected[1]} basis vectors; expected {expected}."
            )
        values = np.ascontiguousarray(values, dtype=rows.dtype)
        if not np.isfinite(values).all():
            raise ValueError(f"The kernel {self.function!r} returned NaN or infinity.")
        return values

    def diagonal(self, rows: Rows) -> Array:
        """Return ``function.diag(rows)``, or the diagonal row by row."""
        if hasattr(self.function, "diag"):
            return np.asarray(self.function.diag(rows), dtype=np.float64)
        each = [self.block(rows[i : i + 1], rows[i : i + 1])[0, 0] for i in range(rows.shape[0])]
        return np.asarray(each, dtype=np.float64)

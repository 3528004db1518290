"""What every kernel answers, and what those of the native code share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native
from widemargin.kernels._rows import FEW_FEATURES, Array, Rows, as_native_rows

#: Every kernel of the library, by the name of its class; see the head of the package.
KERNELS: dict[str, type[Kernel]] = {}


def _is_of_library(kernel: type) -> bool:
    return kernel.__module__.rpartition(".")[0] == __package__


class Kernel(ABC):
    """A similarity of rows and basis vectors: symmetric, and positive semi-definite if it can be.

    Machines stay sound with a kernel that is not, but promise less: see their warnings.

    Attributes
    ----------
    name : str
        What users call it; only kernels that they may ask for by a name have one.
    """

    name: ClassVar[str | None] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        """Enter a kernel of this package in ``KERNELS``; those here are what it is made of."""
        super().__init_subclass__(**settings)
        if _is_of_library(cls) and cls.__module__ != __name__:
            KERNELS[cls.__name__] = cls

    @property
    def wants_double(self) -> bool:
        """Whether fits compute in double precision even of rows in single precision.

        Values may be large, while scores are made of their small differences.
        """
        return False

    @property
    def positive_only(self) -> bool:
        """Whether rows must not have negative entries, at least in some columns."""
        return False

    @property
    def is_positive(self) -> bool:
        """Whether it is positive semi-definite by nature; False where nobody knows."""
        return False

    @staticmethod
    def width_of_scale(scale: float, n_features: int) -> float:
        """Return what ``gamma="scale"`` means, given ``1 / (n_features * variance)``."""
        return scale

    def check_rows(self, rows: Rows) -> None:  # noqa: B027  # most have values for all
        """Raise ValueError, with a way out, for rows that it has no values for."""

    @abstractmethod
    def block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values between ``rows`` and ``basis``, of the dtype of ``rows``.

        Parameters
        ----------
        rows : array or CSR matrix of shape (n_rows, n_features)
        basis : array or CSR matrix of shape (n_basis, n_features)
        n_threads : int, default=1

        Returns
        -------
        values : ndarray of shape (n_rows, n_basis)
        """

    @abstractmethod
    def diagonal(self, rows: Rows) -> Array:
        """Return the value of each row with itself, as float64 of shape (n_rows,)."""

    def magnitude(self, rows: Rows) -> Array:
        """Return the size of the numbers that make up the value of each row with itself.

        Rounding errors of kernel values are relative to it, float64 of shape (n_rows,).
        """
        return np.abs(self.diagonal(rows))

    def single_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return ``block``, in single precision where the kernel can do that without loss."""
        return self.block(rows, basis, n_threads)

    def double_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return ``block`` in double precision, computed in it where the kernel can do that."""
        return self.block(rows, basis, n_threads).astype(np.float64, copy=False)

    def select(self, rows: Rows, indices: npt.NDArray[np.intp]) -> Rows:
        """Return the basis vectors that the rows of these numbers make."""
        return rows[indices]

    def native(self) -> Any:
        """Return the kernel of the native code that this is, or None."""
        return None


class NativeKernel(Kernel):
    """A kernel whose blocks are computed by the native code.

    Sparse rows are made dense a tile at a time where they are narrow, or the basis is dense; else
    they meet the sparse basis entry by entry.
    """

    _native_kind: ClassVar[type[Kernel]]  # the kernel of the library that this is, or comes from

    def __init_subclass__(cls, **settings: Any) -> None:
        """Remember which native kernel belongs to the class and those that come from it."""
        super().__init_subclass__(**settings)
        if _is_of_library(cls):
            cls._native_kind = cls

    def native(self) -> Any:
        """Return the kernel of the native code that this is, with its parameters."""
        kind: Any = self._native_kind
        parameters = {field.name: getattr(self, field.name) for field in fields(kind)}
        return getattr(_native, f"{kind.__name__}Kernel")(**parameters)

    def block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values between ``rows`` and ``basis``."""
        return self._fill(rows, basis, n_threads, rows.dtype)

    def double_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values in double precision, of rows in any."""
        return self._fill(rows, basis, n_threads, np.float64)

    def _fill(self, rows: Rows, basis: Rows, n_threads: int, dtype: Any) -> Array:
        narrow = rows.shape[1] <= FEW_FEATURES
        if sp.issparse(basis) and (narrow or not sp.issparse(rows)):
            basis = basis.toarray()
        out = np.empty((rows.shape[0], basis.shape[0]), dtype=dtype)
        basis = basis.astype(rows.dtype, copy=False)
        _native.kernel_block(
            self.native(), as_native_rows(rows), as_native_rows(basis), out, n_threads
        )
        return out


class DistanceKernel(NativeKernel):
    """A kernel of values between 0 and 1 that falls with the distance."""

    @abstractmethod
    def lengths(self, gaps: Array, vectors: Array) -> Array:
        """Return the lengths of gaps, one from each vector: 1 where the value is exp(-1)."""

    @property
    def is_positive(self) -> bool:
        """True."""
        return True

    def single_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values in single precision; distances are taken about a common origin."""
        return self._fill(rows, basis, n_threads, np.float32)

    def diagonal(self, rows: Rows) -> Array:
        """Return ones: every row has similarity 1 with itself."""
        return np.ones(rows.shape[0])

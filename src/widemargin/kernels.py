"""Kernels: what similarity between a row and a basis vector means.

Every kernel answers three questions. ``block(rows, basis)`` is the matrix of values between rows
and basis vectors, ``diagonal(rows)`` the value of each row with itself, and ``select(rows,
indices)`` the basis vectors that these rows make. The last is the rows themselves, except where a
kernel matrix was computed in advance and a vector is known by its number alone.

A class of this module is a kernel of the library, which model files know. With a ``name``, users
can ask for it by that (``_named_kernels`` makes it of their parameters). A ``_NativeKernel`` is
computed by the struct of ``kernels.hpp`` that is called as the class, with "Kernel" after it, and
takes its fields. Subclasses elsewhere are kernels like any other for a fit, by the native code of
the class that they come from. But no name stands for them, and no model file holds them: it would
hold code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native
from widemargin._system.parameters import check_integer, check_real

Array: TypeAlias = npt.NDArray[Any]
Rows: TypeAlias = Any  # a C-contiguous array or a canonical CSR matrix, float32 or float64

#: Every kernel of the library, by the name of its class; see the head of this module.
KERNELS: dict[str, type[Kernel]] = {}

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


class Kernel(ABC):
    """A similarity of rows and basis vectors: symmetric, and positive semi-definite if it can be.

    Machines stay sound with a kernel that is not, but promise less: see their warnings.

    Attributes
    ----------
    name : str
        What users call it; only kernels that they may ask for by a name have one.
    wants_double : bool
        Whether fits compute values in double precision even of rows in single precision: they may
        be large, while scores are made of their small differences.
    """

    name: ClassVar[str | None] = None
    wants_double: ClassVar[bool] = False

    def __init_subclass__(cls, **settings: Any) -> None:
        """Enter a kernel of this module in ``KERNELS``."""
        super().__init_subclass__(**settings)
        if cls.__module__ == __name__ and not cls.__name__.startswith("_"):
            KERNELS[cls.__name__] = cls

    @property
    def is_positive(self) -> bool:
        """Whether it is positive semi-definite by nature; False where nobody knows."""
        return False

    @staticmethod
    def width_of_scale(scale: float, n_features: int) -> float:
        """Return what ``gamma="scale"`` means, given ``1 / (n_features * variance)``."""
        return scale

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


class _NativeKernel(Kernel):
    """A kernel whose blocks are computed by the native code.

    Sparse rows are made dense a tile at a time where they are narrow, or the basis is dense; else
    they meet the sparse basis entry by entry.
    """

    _native_kind: ClassVar[type[Kernel]]  # the kernel of the library that this is, or comes from

    def __init_subclass__(cls, **settings: Any) -> None:
        """Remember which native kernel belongs to the class and those that come from it."""
        super().__init_subclass__(**settings)
        if cls.__module__ == __name__:
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


class _DistanceKernel(_NativeKernel):
    """A kernel of values between 0 and 1 that falls with the distance."""

    @abstractmethod
    def lengths(self, gaps: Array) -> Array:
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


@dataclass(frozen=True)
class RBF(_DistanceKernel):
    """Gaussian kernel, ``exp(-gamma |x - b|^2)``.

    The one to take, unless you know better.
    """

    gamma: float
    name = "rbf"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)

    def lengths(self, gaps: Array) -> Array:
        """Return ``sqrt(gamma) |gap|``."""
        return np.asarray(np.sqrt(self.gamma) * np.linalg.norm(gaps, axis=1))


@dataclass(frozen=True)
class Laplacian(_DistanceKernel):
    """Laplacian kernel, ``exp(-gamma |x - b|_1)``."""

    gamma: float
    name = "laplacian"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)

    @staticmethod
    def width_of_scale(scale: float, n_features: int) -> float:
        """Return ``1 / (n_features * standard deviation)``: the distance is not squared."""
        return float(np.sqrt(scale / n_features))

    def lengths(self, gaps: Array) -> Array:
        """Return ``gamma |gap|_1``."""
        return np.asarray(self.gamma * np.abs(gaps).sum(axis=1))


@dataclass(frozen=True)
class Polynomial(_NativeKernel):
    """Polynomial kernel, ``(gamma x.b + coef0)^degree``."""

    gamma: float
    degree: int = 3
    coef0: float = 0.0
    name = "poly"
    wants_double: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)
        check_integer("degree", self.degree, least=1)
        check_real("coef0", self.coef0)

    @property
    def is_positive(self) -> bool:
        """Whether the constant is none or positive: then all terms of the power are kernels."""
        return self.coef0 >= 0

    def diagonal(self, rows: Rows) -> Array:
        """Return ``(gamma |x|^2 + coef0)^degree``."""
        return (self.gamma * _squared_norms(rows) + self.coef0) ** self.degree

    def magnitude(self, rows: Rows) -> Array:
        """Return ``(gamma |x|^2 + |coef0|)^degree``."""
        return (self.gamma * _squared_norms(rows) + abs(self.coef0)) ** self.degree


@dataclass(frozen=True)
class Sigmoid(_NativeKernel):
    """Sigmoid kernel, ``tanh(gamma x.b + coef0)``.

    For those who come from ``SVC``. It is not positive semi-definite. A row may even have a
    negative value with itself, if ``coef0`` is negative.
    """

    gamma: float
    coef0: float = 0.0
    name = "sigmoid"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)
        check_real("coef0", self.coef0)

    def diagonal(self, rows: Rows) -> Array:
        """Return ``tanh(gamma |x|^2 + coef0)``."""
        return np.tanh(self.gamma * _squared_norms(rows) + self.coef0)

    def magnitude(self, rows: Rows) -> Array:
        """Return ``gamma |x|^2 + |coef0|``: products may cancel, and the tangent does not grow."""
        return self.gamma * _squared_norms(rows) + abs(self.coef0)

    def steepest(self, rows: Array, vectors: Array) -> Array:
        """Return rows moved along a vector each, to where its value changes its sign."""
        with np.errstate(all="ignore"):
            # Sizes are divided out first, lest the square of a large one overflows.
            sizes = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
            unit = vectors / sizes
            excess = np.einsum("ij,ij->i", rows, unit)[:, np.newaxis]
            excess = excess + self.coef0 / self.gamma / sizes
            found = rows - excess * unit / np.square(unit).sum(axis=1, keepdims=True)
        return np.where(np.isfinite(found), found, rows)


@dataclass(frozen=True)
class Linear(_NativeKernel):
    """Linear kernel, ``x.b``."""

    name = "linear"
    wants_double: ClassVar[bool] = True

    @property
    def is_positive(self) -> bool:
        """True."""
        return True

    def diagonal(self, rows: Rows) -> Array:
        """Return ``|x|^2``."""
        return _squared_norms(rows)


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRBF(_DistanceKernel):
    """Gaussian kernel of learned shape, ``exp(-widths[j] |(x - b_j) metric|^2)``.

    Each basis vector has a width of its own, and all share a metric. So it belongs to one basis:
    ``block`` takes as many vectors as there are widths.

    Parameters
    ----------
    widths : ndarray of shape (n_basis,)
        Positive; larger ones are narrower.
    metric : ndarray of shape (n_features,) or (n_features, n_mapped), default=None
        Weights of the features, or a linear map of them. None leaves them as they are.
    """

    widths: Array
    metric: Array | None = None

    def __post_init__(self) -> None:
        if self.widths.ndim != 1 or not (np.isfinite(self.widths) & (self.widths > 0)).all():
            raise ValueError("widths must be a list of positive numbers.")
        if self.metric is not None and (
            self.metric.ndim not in (1, 2)
            or self.metric.size == 0
            or not np.isfinite(self.metric).all()
        ):
            raise ValueError("metric must hold finite numbers, on one axis or on two.")

    @property
    def is_positive(self) -> bool:
        """False: of two vectors of unlike width, either has another value with the other."""
        return False

    def __repr__(self) -> str:
        shape = None if self.metric is None else self.metric.shape
        return f"AdaptiveRBF({len(self.widths)} widths, metric of shape {shape})"

    def native(self) -> Any:
        """Return the kernel of the native code that this is."""
        none = np.empty((0, 0))
        metric = none if self.metric is None else _as_double(self.metric)
        weights, mapping = (metric, none) if metric.ndim == 1 else (none.ravel(), metric)
        return _native.AdaptiveRBFKernel(_as_double(self.widths), weights, mapping)

    def lengths(self, gaps: Array) -> Array:
        """Return ``sqrt(widths[j]) |gap metric|`` for gap j."""
        if self.metric is not None:
            gaps = gaps * self.metric if self.metric.ndim == 1 else gaps @ self.metric
        return np.asarray(np.sqrt(self.widths[: len(gaps)]) * np.linalg.norm(gaps, axis=1))

    def _fill(self, rows: Rows, basis: Rows, n_threads: int, dtype: Any) -> Array:
        if basis.shape[0] != len(self.widths):
            raise ValueError(
                f"The kernel has {len(self.widths)} widths, one for each vector of its basis; got "
                f"{basis.shape[0]} vectors."
            )
        out = np.empty((rows.shape[0], basis.shape[0]), dtype=dtype)
        dense = basis.toarray() if sp.issparse(basis) else basis
        dense = np.ascontiguousarray(dense, dtype=rows.dtype)
        _native.kernel_block(self.native(), as_native_rows(rows), dense, out, n_threads)
        return out


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


def _as_double(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _dense_parts(rows: Rows) -> Iterator[tuple[slice, Array]]:
    """Yield rows as dense ones, some at a time; never one alone, which NumPy sums otherwise."""
    n_rows, n_features = rows.shape
    size = max(2, _DENSE_ENTRIES // max(1, n_features))
    for start in range(0, max(1, n_rows - 1), size):
        some = slice(start, start + size if start + size < n_rows - 1 else n_rows)
        yield some, rows[some].toarray() if sp.issparse(rows) else rows[some]


def row_sums(rows: Rows, of_dense: Callable[[Array], Array]) -> Array:
    """Return a sum over the features of each row; sparse rows have that of dense ones."""
    sums = np.empty(rows.shape[0])
    for some, dense in _dense_parts(rows):
        sums[some] = of_dense(dense)
    return sums


def _squared_norms(rows: Rows) -> Array:
    if not computes_densely(rows):
        squared = np.square(rows.data, dtype=np.float64)
        squares = sp.csr_matrix((squared, rows.indices, rows.indptr), shape=rows.shape)
        return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
    return row_sums(rows, lambda dense: np.einsum("ij,ij->i", dense, dense, dtype=np.float64))


#: Kernels by the names that users have for them.
NAMED_KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel for kernel in KERNELS.values() if kernel.name is not None
}
KERNEL_NAMES = tuple(NAMED_KERNELS)

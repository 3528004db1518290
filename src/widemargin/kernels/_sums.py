"""Sums of kernels, each of columns of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.parameters import check_choice, check_real
from widemargin.kernels._adaptive import AdaptiveRBF
from widemargin.kernels._base import KERNELS, Kernel
from widemargin.kernels._given import Precomputed
from widemargin.kernels._rows import Array, Rows


class KernelPart(NamedTuple):
    """A kernel of a sum, or its name; the columns that it sees; and its weight."""

    kernel: Kernel | str
    columns: tuple[int, ...]
    weight: float

    def of(self, rows: Rows) -> Rows:
        """Return the columns of rows."""
        first, last = self.columns[0], self.columns[-1] + 1
        if self.columns == tuple(range(first, last)):
            return rows[:, first:last]
        part = rows[:, np.asarray(self.columns, dtype=np.intp)]
        if sp.issparse(part):
            part.sort_indices()
        return part


@dataclass(frozen=True, repr=False)
class KernelSum(Kernel):
    """Weighted sum of kernels, ``sum weight * kernel(x[columns], b[columns])``.

    For features of several kinds, such as histograms of an image by several descriptors: each kind
    has a kernel, and a width, of its own. By default it is their mean.

    Parameters
    ----------
    parts : sequence of tuple
        ``(kernel, columns)`` or ``(kernel, columns, weight)`` each. The kernel is an object of
        :mod:`widemargin.kernels`, or a name: then it has the parameters of the estimator beside
        it, and ``gamma="scale"`` is taken from these columns alone. ``columns`` are a slice with a
        stop, or numbers of columns. The weight is positive, by default 1 / number of parts.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.kernels import RBF, KernelSum
    >>> X, y = load_wine(return_X_y=True)
    >>> kernel = KernelSum([("chi2", slice(0, 12)), (RBF(1e-5), [12])])
    >>> machine = SparseKernelClassifier(max_basis=20, kernel=kernel, random_state=0).fit(X, y)
    >>> machine.score(X, y) > 0.9
    True
    """

    parts: Sequence[tuple[Any, ...]]

    def __post_init__(self) -> None:
        if not isinstance(self.parts, (list, tuple)):
            raise TypeError(
                "parts must be a list of (kernel, columns) or (kernel, columns, weight), got "
                f"{type(self.parts).__name__}."
            )
        if not self.parts:
            raise ValueError("parts must have one (kernel, columns) at the least, got none.")
        # As plain tuples, which model files hold.
        parts = (_checked(number, part, len(self.parts)) for number, part in enumerate(self.parts))
        object.__setattr__(self, "parts", tuple(parts))

    def __repr__(self) -> str:
        parts = (
            f"{part.weight:.3g} {part.kernel!r} of {_described(part.columns)}" for part in self
        )
        return f"KernelSum({' + '.join(parts)})"

    def __iter__(self) -> Iterator[KernelPart]:
        return (KernelPart(*part) for part in self.parts)

    def with_kernels(self, make: Callable[[KernelPart], Kernel]) -> KernelSum:
        """Return the sum in which parts that were given by name have the kernels made of them."""
        if not any(isinstance(part.kernel, str) for part in self):
            return self
        return KernelSum(
            [
                (make(part) if isinstance(part.kernel, str) else part.kernel, *part[1:])
                for part in self
            ]
        )

    @property
    def is_positive(self) -> bool:
        """Whether all parts are: weights are positive."""
        return all(kernel.is_positive for kernel in self._kernels())

    @property
    def wants_double(self) -> bool:
        """Whether a part does."""
        return any(kernel.wants_double for kernel in self._kernels())

    @property
    def positive_only(self) -> bool:
        """Whether a part is."""
        return any(kernel.positive_only for kernel in self._kernels())

    def check_rows(self, rows: Rows) -> None:
        """Raise ValueError for rows without a column, or that a part has no values for."""
        self._check_columns(rows)
        for number, (part, kernel) in enumerate(zip(self, self._kernels(), strict=True)):
            try:
                kernel.check_rows(part.of(rows))
            except ValueError as error:
                raise ValueError(
                    f"Part {number} of the sum of kernels, which takes {_described(part.columns)} "
                    f"and counts them from 0: {error}"
                ) from error

    def block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values between ``rows`` and ``basis``."""
        return self._add_up(lambda kernel: kernel.block, rows, basis, n_threads)

    def single_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values, each part in single precision where it can do that without loss."""
        return self._add_up(lambda kernel: kernel.single_block, rows, basis, n_threads)

    def double_block(self, rows: Rows, basis: Rows, n_threads: int = 1) -> Array:
        """Return the values in double precision."""
        return self._add_up(lambda kernel: kernel.double_block, rows, basis, n_threads)

    def diagonal(self, rows: Rows) -> Array:
        """Return the value of each row with itself."""
        return self._add_up(lambda kernel: kernel.diagonal, rows)

    def magnitude(self, rows: Rows) -> Array:
        """Return the sum of what the parts have."""
        return self._add_up(lambda kernel: kernel.magnitude, rows)

    def _add_up(
        self, of_kernel: Callable[[Kernel], Callable[..., Array]], rows: Rows, *rest: Any
    ) -> Array:
        """Return the weighted sum of what the parts make of rows, and of vectors after them."""
        self._check_columns(rows)
        sums: Any = 0.0
        for part, kernel in zip(self, self._kernels(), strict=True):
            vectors = [part.of(rest[0]), *rest[1:]] if rest else []
            sums = sums + part.weight * of_kernel(kernel)(part.of(rows), *vectors)
        return np.asarray(sums)

    def _kernels(self) -> list[Kernel]:
        kernels = [part.kernel for part in self]
        for kernel in kernels:
            if isinstance(kernel, str):
                raise ValueError(
                    f"The sum has a part that is known by its name, {kernel!r}, and gets its width "
                    "in the fit of an estimator. To compute values without one, give an object, "
                    "such as ChiSquare(gamma=0.5)."
                )
        return kernels  # type: ignore[return-value]  # there is no name among them

    def _check_columns(self, rows: Rows) -> None:
        for number, part in enumerate(self):
            if max(part.columns) >= rows.shape[1]:
                raise ValueError(
                    f"Part {number} of the sum of kernels takes column {max(part.columns)}, and "
                    f"the rows have {rows.shape[1]}, of which the first is 0."
                )


def _checked(number: int, part: Any, n_parts: int) -> tuple[Kernel | str, tuple[int, ...], float]:
    if not isinstance(part, (list, tuple)) or len(part) not in (2, 3):
        raise TypeError(
            f"Part {number} must be (kernel, columns) or (kernel, columns, weight), got {part!r}."
        )
    kernel, columns, weight = (*part, 1.0 / n_parts)[:3]
    _check_kernel(number, kernel)
    check_real(f"the weight of part {number}", weight, positive=True)
    return kernel, _column_numbers(number, columns), float(weight)


def _check_kernel(number: int, kernel: Any) -> None:
    if isinstance(kernel, str) and kernel != Precomputed.name:
        names = [kind.name for kind in KERNELS.values() if kind.name and kind is not Precomputed]
        check_choice(f"the kernel of part {number}", kernel, names, " or an object")
        return
    if not isinstance(kernel, (str, Kernel)):
        raise TypeError(
            f"The kernel of part {number} must be an object of widemargin.kernels, or a name, got "
            f"{kernel!r}. Wrap a function: CustomKernel(function)."
        )
    if isinstance(kernel, KernelSum):
        raise ValueError(f"Part {number} is a sum itself. Put its parts in its place.")
    if isinstance(kernel, (str, Precomputed)):
        raise ValueError(
            f"Part {number} is a precomputed kernel, whose values are no function of columns. Add "
            "the matrices up before, and use kernel='precomputed'."
        )
    if isinstance(kernel, AdaptiveRBF):
        raise ValueError(
            f"Part {number} has a width for each vector of the basis that it was learned with. Use "
            "RBF, with one for all."
        )


def _column_numbers(number: int, columns: Any) -> tuple[int, ...]:
    where = f"the columns of part {number}"
    if isinstance(columns, slice):
        if columns.stop is None or min(columns.start or 0, columns.stop) < 0:
            raise ValueError(
                f"{where} must be numbers, or a slice with a stop that counts from the first "
                f"column, got {columns}."
            )
        found: npt.NDArray[Any] = np.arange(columns.stop)[columns]
    else:
        found = np.asarray(columns)
        if found.ndim != 1:
            raise TypeError(f"{where} must be a slice or a sequence of numbers, got {columns!r}.")
        if found.dtype.kind == "b":
            raise TypeError(f"{where} must be numbers; those of a mask are np.flatnonzero(mask).")
        if len(found) and found.dtype.kind not in "iu":
            raise TypeError(f"{where} must be integers, got {columns!r}.")
        if found.min(initial=0) < 0:
            raise ValueError(f"{where} must count from the first, 0, got {found.min()}.")
    if not len(found):
        raise ValueError(f"{where} must be one at the least, got none.")
    if len(np.unique(found)) < len(found):
        raise ValueError(f"{where} must differ; one of them is there twice.")
    return tuple(found.tolist())


def _described(columns: tuple[int, ...]) -> str:
    first, last = min(columns), max(columns)
    if len(columns) == 1:
        return f"column {first}"
    some = "columns" if len(columns) == last - first + 1 else f"{len(columns)} columns from"
    return f"{some} {first} to {last}"

"""Operations on rows of numbers: frozen, nothing but data, and few.

Each takes rows of ``width`` columns and gives rows of ``width_out``. ``apply`` computes with NumPy,
on one row (one axis) as on many (two), or on a CSR matrix, which stays sparse where that is
possible. ``amid(before, after)`` is the same operation on columns that have others beside them,
which it leaves as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import Rows

Array: TypeAlias = npt.NDArray[Any]
Test: TypeAlias = Literal["copy", "equals", "missing"]
Norm: TypeAlias = Literal["l1", "l2", "max"]

_COPY: Test = "copy"


@dataclass(frozen=True, eq=False)
class Pick:
    """Columns of the row, or questions to them.

    Output ``j`` looks at column ``columns[j]``. ``tests[j]`` is "copy": the number itself;
    "equals": 1 where the number is ``values[j]``, else 0, and NaN where it is NaN; "missing": 1
    where it is NaN, else 0.
    """

    width: int
    columns: npt.NDArray[np.intp]
    tests: tuple[Test, ...]
    values: Array

    #: In which order operations of branches that stand side by side are done: what can be a part
    #: of the model comes last.
    turn: ClassVar[int] = 0

    @classmethod
    def of(cls, width: int, columns: Any) -> Pick:
        """Return the operation that keeps these columns, in this order."""
        columns = np.asarray(columns, dtype=np.intp)
        return cls(width, columns, (_COPY,) * len(columns), np.zeros(len(columns)))

    def __post_init__(self) -> None:
        n_out = len(self.columns)
        fits = self.columns.ndim == 1 and len(self.tests) == n_out == len(self.values)
        inside = self.columns.min(initial=0) >= 0 and self.columns.max(initial=-1) < self.width
        _require(fits and inside, self)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return len(self.columns)

    @cached_property
    def only_copies(self) -> bool:
        """Whether it asks nothing."""
        return all(test == "copy" for test in self.tests)

    @cached_property
    def _asked(self) -> tuple[Array, Array, Array]:
        """The places of what is asked: whether equal, to which numbers, and whether missing."""
        equals, missing = (
            np.flatnonzero([test == name for test in self.tests]) for name in ("equals", "missing")
        )
        return equals, self.values[equals], missing

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return self.only_copies and np.array_equal(self.columns, np.arange(self.width))

    def amid(self, before: int, after: int) -> Pick:
        """Return the same operation with columns before and after."""
        last = before + self.width + np.arange(after)
        return Pick(
            before + self.width + after,
            np.concatenate([np.arange(before), before + self.columns, last]).astype(np.intp),
            (_COPY,) * before + self.tests + (_COPY,) * after,
            np.concatenate([np.zeros(before), self.values, np.zeros(after)]),
        )

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if self.only_copies:
            return rows[:, self.columns] if sp.issparse(rows) else rows[..., self.columns]
        picked = np.asarray(_dense(rows)[..., self.columns], dtype=np.float64)
        equals, values, missing = self._asked
        if len(equals):
            found = picked[..., equals]
            # NaN minus itself is NaN: what is unknown stays so.
            picked[..., equals] = (found == values) + (found - found)
        if len(missing):
            picked[..., missing] = np.isnan(picked[..., missing])
        return picked


@dataclass(frozen=True, eq=False)
class Fill:
    """Missing numbers replaced: NaN, or what equals ``missing``, by ``values`` of the column.

    A column whose value is NaN is left as it is.
    """

    values: Array
    missing: float = np.nan

    turn: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _require(self.values.ndim == 1, self)

    @property
    def width(self) -> int:
        """Number of columns that go in."""
        return len(self.values)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return len(self.values)

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return bool(np.isnan(self.values).all())

    def amid(self, before: int, after: int) -> Fill:
        """Return the same operation with columns before and after."""
        return replace(self, values=_between(self.values, before, after, np.nan))

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if sp.issparse(rows):
            if self.missing == 0:
                return self.apply(rows.toarray())
            filled = rows.astype(np.float64)
            values = self.values[filled.indices]
            found = self._is_missing(filled.data) & ~np.isnan(values)
            filled.data = np.where(found, values, filled.data)
            return filled
        found = self._is_missing(rows)
        found &= self._fills
        return np.where(found, self.values, rows) if found.any() else rows

    @cached_property
    def _fills(self) -> Array:
        return ~np.isnan(self.values)

    def _is_missing(self, values: Array) -> Array:
        return np.isnan(values) if np.isnan(self.missing) else np.asarray(values == self.missing)


@dataclass(frozen=True, eq=False)
class Clip:
    """Each column brought between ``low`` and ``high``, which may be infinite."""

    low: Array
    high: Array

    turn: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _require(self.low.ndim == 1 and self.low.shape == self.high.shape, self)

    @property
    def width(self) -> int:
        """Number of columns that go in."""
        return len(self.low)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return len(self.low)

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return bool(np.isneginf(self.low).all() and np.isposinf(self.high).all())

    def amid(self, before: int, after: int) -> Clip:
        """Return the same operation with columns before and after."""
        return Clip(
            _between(self.low, before, after, -np.inf), _between(self.high, before, after, np.inf)
        )

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if sp.issparse(rows):
            if (self.low > 0).any() or (self.high < 0).any():
                return self.apply(rows.toarray())
            clipped = rows.astype(np.float64)
            places = clipped.indices
            clipped.data = np.clip(clipped.data, self.low[places], self.high[places])
            return clipped
        return np.clip(rows, self.low, self.high)


@dataclass(frozen=True, eq=False)
class Normalise:
    """Columns ``first`` to ``first + count`` of each row divided by their norm, unless it is 0."""

    width: int
    norm: Norm
    first: int
    count: int

    turn: ClassVar[int] = 3

    def __post_init__(self) -> None:
        inside = self.first >= 0 and self.first + self.count <= self.width
        _require(inside and self.norm in ("l1", "l2", "max"), self)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return self.width

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return self.count == 0

    def amid(self, before: int, after: int) -> Normalise:
        """Return the same operation with columns before and after."""
        return replace(self, width=before + self.width + after, first=before + self.first)

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if sp.issparse(rows):
            if self.count < self.width:
                return self.apply(rows.toarray())
            norms = self._norms(abs(rows.astype(np.float64)))
            return sp.csr_matrix(sp.diags(1.0 / norms.ravel()) @ rows)
        scaled = np.array(rows, dtype=np.float64)
        part = scaled[..., self.first : self.first + self.count]
        with np.errstate(invalid="ignore"):  # of infinity, which is found out later
            part /= self._norms(np.abs(part))
        return scaled

    def _norms(self, sizes: Any) -> Array:
        """Return the norm of each row of absolute values, as a column; 1 instead of 0."""
        axis: Any = {"axis": 1} if sp.issparse(sizes) else {"axis": -1, "keepdims": True}
        if self.norm == "max":
            norms = sizes.max(**axis)
            norms = norms.toarray() if sp.issparse(norms) else norms
        elif self.norm == "l1":
            norms = sizes.sum(**axis)
        else:
            squares = sizes.multiply(sizes) if sp.issparse(sizes) else sizes * sizes
            norms = np.sqrt(squares.sum(**axis))
        norms = np.asarray(norms)
        return np.where(norms == 0, 1.0, norms)


@dataclass(frozen=True, eq=False)
class Project:
    """A linear map of columns ``first`` on: ``(x - centre) @ matrix + shift``.

    ``matrix`` has a row for each column that goes in. What comes out stands in their place.
    """

    width: int
    centre: Array
    matrix: Array
    shift: Array
    first: int = 0

    turn: ClassVar[int] = 4

    def __post_init__(self) -> None:
        fits = self.matrix.ndim == 2 and self.centre.shape == self.matrix.shape[:1]
        fits = fits and self.shift.shape == self.matrix.shape[1:]
        _require(fits and self.first >= 0 and self.first + self.count <= self.width, self)

    @property
    def count(self) -> int:
        """Number of columns that it maps."""
        return len(self.matrix)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return int(self.width - self.count + self.matrix.shape[1])

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return False

    @property
    def is_whole(self) -> bool:
        """Whether it maps all columns."""
        return self.count == self.width

    def amid(self, before: int, after: int) -> Project:
        """Return the same operation with columns before and after."""
        return replace(self, width=before + self.width + after, first=before + self.first)

    def whole(self) -> Project:
        """Return the same operation as a map of all columns."""
        if self.is_whole:
            return self
        after = self.width - self.first - self.count
        matrix = np.zeros((self.width, self.width_out))
        n_mapped = self.matrix.shape[1]
        matrix[: self.first, : self.first] = np.eye(self.first)
        place = slice(self.first, self.first + self.count), slice(self.first, self.first + n_mapped)
        matrix[place] = self.matrix
        matrix[self.first + self.count :, self.first + n_mapped :] = np.eye(after)
        centre = _between(self.centre, self.first, after, 0.0)
        return Project(self.width, centre, matrix, _between(self.shift, self.first, after, 0.0))

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if not self.is_whole:
            rows = _dense(rows)
            last = self.first + self.count
            mapped = (rows[..., self.first : last] - self.centre) @ self.matrix + self.shift
            parts = [rows[..., : self.first], mapped, rows[..., last:]]
            return np.concatenate(parts, axis=-1)
        if sp.issparse(rows):  # the product alone: to move sparse rows would make them dense
            return np.asarray(rows @ self.matrix) + (self.shift - self.centre @ self.matrix)
        return (rows - self.centre) @ self.matrix + self.shift


@dataclass(frozen=True, eq=False)
class Scale:
    """Each column moved and scaled: ``(x - centre) * factor``. No factor is zero."""

    centre: Array
    factor: Array

    turn: ClassVar[int] = 5

    def __post_init__(self) -> None:
        fits = self.factor.ndim == 1 and self.centre.shape == self.factor.shape
        _require(fits and bool((self.factor != 0).all()), self)

    @property
    def width(self) -> int:
        """Number of columns that go in."""
        return len(self.factor)

    @property
    def width_out(self) -> int:
        """Number of columns that come out."""
        return len(self.factor)

    @property
    def is_neutral(self) -> bool:
        """Whether it changes nothing."""
        return bool((self.centre == 0).all() and (self.factor == 1).all())

    def amid(self, before: int, after: int) -> Scale:
        """Return the same operation with columns before and after."""
        centre = _between(self.centre, before, after, 0.0)
        return Scale(centre, _between(self.factor, before, after, 1.0))

    def apply(self, rows: Rows) -> Rows:
        """Return what comes of rows."""
        if sp.issparse(rows):
            if self.centre.any():
                return self.apply(rows.toarray())
            return sp.csr_matrix(rows @ sp.diags(self.factor))
        return (rows - self.centre) * self.factor


Operation: TypeAlias = Pick | Fill | Clip | Normalise | Project | Scale


def _require(holds: bool, operation: Any) -> None:
    if not holds:
        raise ValueError(f"The numbers of a {type(operation).__name__} do not go together.")


def _between(values: Array, before: int, after: int, other: float) -> Array:
    return np.concatenate([np.full(before, other), values, np.full(after, other)])


def _dense(rows: Rows) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows)

"""Columns as they come in: numbers as they are, and categories as the codes of a table."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Categories:
    """A table that gives each category a code.

    Attributes
    ----------
    values : tuple
        Texts, or numbers. Not NaN, which is what is missing; None may be a category.
    codes : ndarray of shape (n_values,)
        Several categories may have the same.
    missing : float or None
        Code of what is missing: NaN, None that is no category, and the like. None: an error.
    unknown : float or None
        Code of all that is not in the table. None: it is an error.
    """

    values: tuple[Any, ...]
    codes: Array
    missing: float | None
    unknown: float | None
    _table: dict[Hashable, float] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        table = dict(zip(self.values, self.codes.tolist(), strict=True))
        object.__setattr__(self, "_table", table)

    @property
    def are_texts(self) -> bool:
        """Whether the categories are texts; else they are numbers."""
        return any(isinstance(value, str) for value in self.values)

    @property
    def code_of_missing(self) -> float:
        """The code of what is missing, for those who raise no errors: NaN where it is one."""
        found = self._table.get(None, self.missing)
        return np.nan if found is None else found

    @property
    def code_of_unknown(self) -> float:
        """The code of what is not in the table, likewise."""
        return np.nan if self.unknown is None else self.unknown

    def code(self, value: Any) -> float:
        """Return the code of one value; LookupError where it has none."""
        found = self._table.get(value)
        if found is None:
            found = self.missing if is_missing(value) else self.unknown
            if found is None:
                raise LookupError(value)
        return found

    def recoded(self, other: Categories) -> Categories:
        """Return the table whose codes are those that another one has for these codes."""

        def of(code: float | None) -> float | None:
            return None if code is None else other.code(code)

        codes = np.array([other.code(code) for code in self.codes.tolist()])
        return Categories(self.values, codes, of(self.missing), of(self.unknown))

    def encode(self, column: Any) -> Array:
        """Return the codes of a column; LookupError has the first value that has none."""
        if not self.are_texts and np.asarray(column).dtype.kind in "biuf":
            return self._encode_numbers(np.asarray(column, dtype=np.float64))
        places, values = _distinct(column)
        if places is not None:
            return self._encode_places(places, values)
        found = _Found(self)
        return np.fromiter(map(found.__getitem__, values), dtype=np.float64, count=len(values))

    def _encode_places(self, places: Array, values: list[Any]) -> Array:
        """Return the codes of rows that have one of these values each; not all need be met."""
        codes, without = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
        for number, value in enumerate(values):
            try:
                codes[number] = self.code(value)
            except LookupError:
                without[number] = True
        if without.any() and (met := without[places]).any():
            raise LookupError(values[places[met][0]])
        return np.asarray(codes[places])

    def _encode_numbers(self, column: Array) -> Array:
        values = np.array([v for v in self.values if v is not None], dtype=np.float64)
        codes = np.array([c for v, c in zip(self.values, self.codes, strict=True) if v is not None])
        order = np.argsort(values)
        place = np.searchsorted(values[order], column).clip(max=max(0, len(values) - 1))
        known = np.zeros(len(column), dtype=bool)
        found = np.full(len(column), np.nan)
        if len(values):
            known = values[order][place] == column
            found[known] = codes[order][place][known]
        for which, code in (
            (np.isnan(column), self.missing),
            (~known & ~np.isnan(column), self.unknown),
        ):
            if which.any():
                if code is None:
                    raise LookupError(column[which][0].item())
                found[which] = code
        return found


class _Found(dict[Any, float]):
    """Codes of the values of a column, as they are met."""

    def __init__(self, categories: Categories) -> None:
        super().__init__(categories._table)
        self._code = categories.code

    def __missing__(self, value: Any) -> float:
        self[value] = code = self._code(value)
        return code


def _distinct(column: Any) -> tuple[Array | None, list[Any]]:
    """Return which of a few values each row has, and these, where a table tells them apart fast.

    Else None, and the values of all rows.
    """
    if hasattr(column, "factorize"):  # pandas
        places, values = column.factorize(use_na_sentinel=False)
        return places, np.asarray(values, dtype=object).tolist()
    if hasattr(column, "dictionary_encode"):  # Arrow
        known = column.combine_chunks().dictionary_encode()
        places = known.indices.fill_null(len(known.dictionary)).to_numpy(zero_copy_only=False)
        return places, [*known.dictionary.to_pylist(), *([None] if known.null_count else [])]
    return None, np.asarray(column, dtype=object).tolist()


@dataclass(frozen=True, eq=False)
class Column:
    """A column that is read.

    Attributes
    ----------
    source : int
        Its number among the columns that come in; several may come from the same one.
    categories : Categories or None
        None: it holds numbers, which are read as they are.
    """

    source: int
    categories: Categories | None = None

    def recoded(self, categories: Categories) -> Column:
        """Return this column with what it gives as the categories of another table."""
        if self.categories is not None:
            categories = self.categories.recoded(categories)
        return replace(self, categories=categories)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas has for it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))

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
        if hasattr(column, "dictionary_encode"):
            return self._encode_arrow(column)
        if self.are_texts or np.asarray(column).dtype.kind not in "biuf":
            return self._encode_objects(column)
        return self._encode_numbers(np.asarray(column, dtype=np.float64))

    def _encode_objects(self, column: Any) -> Array:
        values = np.asarray(column, dtype=object).tolist()
        get = self._table.get
        found = [get(value) for value in values]
        if None in found:
            places = (place for place, code in enumerate(found) if code is None)
            for place in places:
                found[place] = self.code(values[place])
        return np.array(found, dtype=np.float64)

    def _encode_arrow(self, column: Any) -> Array:
        """Return the codes of a column of Arrow, each distinct value of which is looked up once."""
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        encoded = whole.dictionary_encode()
        parts = getattr(encoded, "chunks", [encoded])
        codes = []
        for part in parts:
            values = [*part.dictionary.to_pylist(), None]
            places = np.asarray(part.indices.fill_null(len(values) - 1))
            used = np.unique(places)
            table = np.zeros(len(values))
            table[used] = [self.code(values[place]) for place in used]
            codes.append(table[places])
        return np.concatenate(codes) if codes else np.empty(0)

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

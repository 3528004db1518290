"""Rows as they come in, of any kind of table, as rows of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import Rows
from widemargin.preparation.columns import Column, is_missing
from widemargin.preparation.prepared import PreparedMachine
from widemargin.rows import canonical_rows, column_names, describe_text

Array: TypeAlias = npt.NDArray[Any]


class RowReader:
    """Reads what a prepared machine reads of rows.

    Parameters
    ----------
    prepared : PreparedMachine
    """

    def __init__(self, prepared: PreparedMachine) -> None:
        self._columns = prepared.columns
        self._names = prepared.feature_names
        self._n_features = prepared.n_features
        self._by_name = prepared.by_name and prepared.feature_names is not None
        self._mixed = prepared.has_categories
        sources = [column.source for column in prepared.columns]
        self._sources = None if prepared.reads_all else np.array(sources, dtype=np.intp)
        self._categories = [
            (place, column, column.categories)
            for place, column in enumerate(prepared.columns)
            if column.categories is not None
        ]
        numbers = [place for place, column in enumerate(prepared.columns) if not column.categories]
        self._numbers = np.array(numbers, dtype=np.intp)
        self._number_sources = [sources[place] for place in numbers]

    def read(self, X: Any) -> Rows:
        """Return rows of numbers, of shape (n_rows, n_columns), float32 or float64."""
        names = column_names(X)
        if names is not None and (self._mixed or self._by_name):
            return self._read_table(X, names)
        rows: Any = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if rows.ndim == 2 and rows.dtype.kind == "U" and isinstance(X, (list, tuple)):
            rows = np.array(X, dtype=object)  # else numbers beside texts would be texts
        if rows.ndim != 2 or rows.shape[1] != self._n_features:
            raise ValueError(f"X must have shape (n_rows, {self._n_features}), got {rows.shape}.")
        if self._mixed:
            rows = rows.toarray() if sp.issparse(rows) else rows
            return self._read_columns(lambda source: rows[:, source], len(rows))
        if self._sources is not None:
            rows = rows[:, self._sources]
        if rows.dtype not in (np.float32, np.float64):
            rows = _as_numbers(rows, X)
        return canonical_rows(rows) if sp.issparse(rows) else rows

    def read_one(self, x: Any) -> Array:
        """Return one row of numbers, of shape (n_columns,)."""
        if isinstance(x, Mapping):
            x = self._ordered(x)
        elif self._names is not None and hasattr(x, "index") and hasattr(x, "to_frame"):
            x = self._ordered(x.to_dict()) if self._by_name else x
        if not self._mixed:
            row = np.asarray(x)
            if row.ndim != 1 or len(row) != self._n_features:
                raise self._not_one(row.shape)
            row = row if self._sources is None else row[self._sources]
            return row.astype(np.float64) if row.dtype.kind in "biuf" else _floats(row)
        values = x.tolist() if isinstance(x, np.ndarray) else list(x)
        if len(values) != self._n_features:
            raise self._not_one((len(values),))
        row = np.empty(len(self._columns))
        numbers = [values[source] for source in self._number_sources]
        try:
            row[self._numbers] = numbers
        except (TypeError, ValueError):  # what is missing, maybe, or text
            row[self._numbers] = [
                self._number(value, source)
                for value, source in zip(numbers, self._number_sources, strict=True)
            ]
        for place, column, categories in self._categories:
            try:
                row[place] = categories.code(values[column.source])
            except LookupError:
                raise self._unknown(column, values[column.source]) from None
        return row

    def _number(self, value: Any, source: int) -> float:
        try:
            return _number(value)
        except (TypeError, ValueError):
            name = self._name(Column(source))
            raise ValueError(f"Column {name} holds numbers, and the row has {value!r}.") from None

    def _ordered(self, values: Mapping[Any, Any]) -> list[Any]:
        if self._names is None:
            raise TypeError(
                "A row by names needs a pipeline that was fitted with a table: give a list."
            )
        read = [self._names[column.source] for column in self._columns]
        missing = [name for name in read if name not in values]
        if missing:
            raise ValueError(f"The row has no value for {', '.join(map(repr, missing[:5]))}.")
        return [values.get(name) for name in self._names]

    def _not_one(self, shape: tuple[int, ...]) -> ValueError:
        return ValueError(
            f"predict_one takes a single row of {self._n_features} features, got one of shape "
            f"{shape}."
        )

    def _read_table(self, X: Any, names: list[Any]) -> Array:
        if self._names is None or not self._by_name:
            if len(names) != self._n_features:
                raise ValueError(
                    f"X must have {self._n_features} columns, got {len(names)}: "
                    f"{', '.join(map(str, names[:8]))}."
                )
            wanted = names
        else:
            wanted = list(self._names)
            read = {wanted[column.source] for column in self._columns}
            missing = [name for name in wanted if name in read and name not in names]
            if missing:
                raise ValueError(
                    f"X has no column {', '.join(map(repr, missing[:5]))}; its columns are "
                    f"{', '.join(map(repr, names[:8]))}."
                )
        return self._read_columns(lambda source: X[wanted[source]], _count(X))

    def _read_columns(self, column_of: Any, n_rows: int) -> Array:
        rows = np.empty((n_rows, len(self._columns)))
        for place, column in enumerate(self._columns):
            values = column_of(column.source)
            if column.categories is None:
                try:
                    rows[:, place] = _floats(values)
                except (TypeError, ValueError):
                    name = self._name(column)
                    raise ValueError(
                        f"Column {name} holds numbers, and has {_no_number(values)!r} in row "
                        f"{_place_of_no_number(values)}."
                    ) from None
                continue
            try:
                rows[:, place] = column.categories.encode(values)
            except LookupError as error:
                raise self._unknown(column, error.args[0]) from None
        return rows

    def _name(self, column: Column) -> str:
        return repr(self._names[column.source]) if self._names else str(column.source)

    def _unknown(self, column: Column, value: Any) -> ValueError:
        assert column.categories is not None
        known = ", ".join(repr(each) for each in column.categories.values[:8])
        return ValueError(
            f"Column {self._name(column)} has the category {value!r}, which was not in training: "
            f"{known}{', ...' if len(column.categories.values) > 8 else ''}. Fit the encoder with "
            "handle_unknown='ignore' (OneHotEncoder) or 'use_encoded_value' (OrdinalEncoder) to "
            "let such rows pass."
        )


def _count(X: Any) -> int:
    return int(X.shape[0])


def _floats(values: Any) -> Array:
    """Return a column as float64; ValueError or TypeError if it holds anything but numbers."""
    if hasattr(values, "to_numpy") and hasattr(values, "iloc"):  # pandas, maybe of its own types
        if values.dtype.kind in "biuf" or values.dtype == object:
            values = values.to_numpy(dtype=object if values.dtype == object else None)
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biufO":
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    values = np.asarray(values)
    if values.dtype.kind in "US":
        raise TypeError("text")
    if values.dtype == object:
        return np.array([_number(value) for value in values.tolist()], dtype=np.float64)
    return np.asarray(values, dtype=np.float64)


def _number(value: Any) -> float:
    if is_missing(value):
        return np.nan
    if isinstance(value, (str, bytes)):
        raise TypeError("text")
    return float(value)


def _place_of_no_number(values: Any) -> int:
    for place, value in enumerate(np.asarray(values, dtype=object).tolist()):
        try:
            _number(value)
        except (TypeError, ValueError):
            return place
    return 0


def _no_number(values: Any) -> Any:
    return np.asarray(values, dtype=object)[_place_of_no_number(values)]


def _as_numbers(rows: Rows, X: Any) -> Rows:
    try:
        if sp.issparse(rows):
            return sp.csr_matrix(rows, dtype=np.float64)
        return np.column_stack([_floats(column) for column in rows.T])
    except (TypeError, ValueError):
        raise TypeError(
            describe_text(X) or f"X must hold numbers, got an array of dtype {rows.dtype}."
        ) from None

"""Tables with named columns, by pyarrow: Parquet, and the lines of CSV.

A column is a feature, but for those of the target and of weights. Rows with few features of many
are two columns of lists in Parquet: ``indices`` and ``values``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.datasets.blocks import (
    Array,
    Block,
    LabelledRows,
    Place,
    Source,
    StreamError,
    needed,
    sifted,
)
from widemargin.datasets.compression import open_bytes, skip_bytes
from widemargin.datasets.heads import is_number, listed, read_head, refuse_twice
from widemargin.datasets.text import Parser, empty

_SPARSE = ("indices", "values")
_BUFFER = 1 << 20  # bytes of a column of Parquet that are read at a time


class Columns:
    """Which columns of a table are what.

    Parameters
    ----------
    path : Path
        Named in errors.
    names : sequence of str
        All columns.
    target, weight : str, int or None
        Columns, by name or by place.
    features : sequence of str or None
        None is all others.
    """

    def __init__(
        self,
        path: Path,
        names: Sequence[str],
        target: str | int | None,
        weight: str | int | None,
        features: Sequence[str] | None,
    ) -> None:
        self.path = path
        if target is None:
            raise ValueError(
                f"{path} has columns, and one of them is to be learned: give its name as target=. "
                f"There are {listed(names)}."
            )
        refuse_twice(path, names)
        self.target = self._find("target", target, names)
        self.weight = None if weight is None else self._find("weight", weight, names)
        others = [name for name in names if name not in (self.target, self.weight)]
        chosen = others if features is None else [str(name) for name in features]
        self.features = [self._find("features", name, names) for name in chosen]
        self.is_sparse = set(self.features) == set(_SPARSE)
        if not self.features:
            raise StreamError(f"{path} has no column besides target and weight.")
        if {self.target, self.weight} & set(self.features):
            raise ValueError("features has the column of the target or of the weights.")

    def _find(self, what: str, wanted: str | int, names: Sequence[str]) -> str:
        if isinstance(wanted, int) and not isinstance(wanted, bool):
            if -len(names) <= wanted < len(names):
                return str(names[wanted])
        elif wanted in names:
            return str(wanted)
        raise ValueError(
            f"{what}={wanted!r} is no column of {self.path}, which has {listed(names)}."
        )

    @property
    def used(self) -> list[str]:
        """Names of the columns that are read."""
        return [self.target, *([] if self.weight is None else [self.weight]), *self.features]

    def rows_of(self, table: Any, dtype: np.dtype[Any], n_features: int) -> LabelledRows:
        """Return the rows of a table or record batch."""
        y = _labels(table.column(self.target))
        weight = None if self.weight is None else _numbers(table.column(self.weight))
        if self.is_sparse:
            X = self._sparse_rows(table, dtype, n_features)
        else:
            X = np.empty((table.num_rows, len(self.features)), dtype=dtype)
            for place, name in enumerate(self.features):
                X[:, place] = _numbers(table.column(name))
        return LabelledRows(X, y, weight)

    def _sparse_rows(self, table: Any, dtype: np.dtype[Any], n_features: int) -> Any:
        indices, values = (_whole(table.column(name)) for name in _SPARSE)
        ends = np.asarray(indices.offsets)
        if not np.array_equal(ends, np.asarray(values.offsets)):
            raise StreamError(f"{self.path} has rows with more indices than values, or fewer.")
        columns = np.asarray(indices.flatten(), dtype=np.int32)
        numbers = np.asarray(values.flatten(), dtype=dtype)
        if len(columns) and not 0 <= columns.min() <= columns.max() < n_features:
            wrong = columns.min() if columns.min() < 0 else columns.max()
            raise StreamError(
                f"{self.path} has an index of {wrong}, and rows have n_features={n_features}, the "
                "first of which has the index 0."
            )
        shape = table.num_rows, n_features
        X = sp.csr_matrix((numbers, columns, ends - ends[0]), shape=shape)
        X.sum_duplicates()
        return X


def _whole(column: Any) -> Any:
    """Return a column in one piece."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    return column.chunk(0) if hasattr(column, "chunk") else column


def _numbers(column: Any) -> Array:
    """Return a column of numbers; what is missing is NaN."""
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _labels(column: Any) -> Array:
    column = _whole(column)
    if hasattr(column, "dictionary"):
        column = column.dictionary_decode()
    values = np.asarray(column.to_numpy(zero_copy_only=False))
    if values.dtype != object:
        return values
    missing = [value is None for value in values]
    if any(missing):  # which nobody takes for a class
        return np.where(missing, np.nan, 0.0)
    return values.astype(str)


def _check_features(columns: Columns, schema: Any) -> None:
    """Require numbers in the columns of features."""
    types = needed("pyarrow", "Reading tables").types
    for name in columns.features:
        kind = schema.field(name).type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        is_list = types.is_list(kind) or types.is_large_list(kind)
        if not (is_list if columns.is_sparse else is_number):
            raise StreamError(
                f"{columns.path} has {kind} in column {name!r}, and learners compute with numbers. "
                "Encode such columns, or leave them out by features=."
            )


class ParquetSource(Source):
    """Rows of a Parquet file, a part of a row group at a time.

    Parameters
    ----------
    path : Path
    target, weight, features
        As :class:`Columns` has them.
    n_features : int or None
        Needed for rows of indices and values, where the file does not tell.
    classes : ndarray or None
    dtype : dtype
    skips : bool
        Whether bad rows are left out and counted; else they are errors.
    """

    def __init__(
        self,
        path: Path,
        target: str | int | None,
        weight: str | int | None,
        features: Sequence[str] | None,
        n_features: int | None,
        classes: Array | None,
        dtype: np.dtype[Any],
        *,
        skips: bool,
    ) -> None:
        self._parquet = needed("pyarrow.parquet", f"Reading {path.name}, a Parquet file,")
        self.path, self.classes, self._dtype, self._skips = path, classes, dtype, skips
        with self._open() as file:
            schema, self.n_rows = file.schema_arrow, int(file.metadata.num_rows)
        if self.n_rows == 0:
            raise empty(path)
        self._columns = Columns(path, schema.names, target, weight, features)
        _check_features(self._columns, schema)
        if not self._columns.is_sparse and n_features not in (None, len(self._columns.features)):
            raise ValueError(
                f"n_features={n_features}, but {path} has {len(self._columns.features)} columns of "
                "features. Leave n_features at None for columns."
            )
        if n_features is None and self._columns.is_sparse:
            raise ValueError(
                f"{path} has rows of indices and values, which do not tell how many features there "
                "are: give n_features."
            )
        self.n_features = n_features or len(self._columns.features)

    def _open(self) -> Any:
        arrow = needed("pyarrow", "Reading tables")
        try:
            return self._parquet.ParquetFile(self.path, buffer_size=_BUFFER, pre_buffer=False)
        except arrow.ArrowInvalid as error:
            raise StreamError(
                f"{self.path} is no Parquet file, or was cut off in the middle: {error}"
            ) from error

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""
        return {"format": "parquet", "columns": self._columns.used, "skips": self._skips}

    def blocks(self, place: Place | None, size: int) -> Iterator[Block]:
        """Yield parts of one row group after the other."""
        begin = place or {"group": 0, "row": 0}
        with self._open() as file:
            lengths = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            for group in range(begin["group"], len(lengths)):
                row, first = 0, begin["row"] if group == begin["group"] else 0
                for batch in self._batches(file, group, size):
                    if row + batch.num_rows > first:
                        part = batch.slice(max(0, first - row))
                        at = {"group": group, "row": max(row, first)}
                        yield self._block(part, at, sum(lengths[:group]) + at["row"])
                    row += batch.num_rows

    def _batches(self, file: Any, group: int, size: int) -> Iterator[Any]:
        arrow = needed("pyarrow", "Reading tables")
        try:
            yield from file.iter_batches(size, row_groups=[group], columns=self._columns.used)
        except (arrow.ArrowException, OSError) as error:
            raise StreamError(
                f"{self.path}, row group {group}: the file is damaged ({error}). Fetch it again."
            ) from error

    def _block(self, part: Any, place: Place, number: int) -> Block:
        """Return a block whose first row has this number in the file."""
        rows = self._columns.rows_of(part, self._dtype, self.n_features)
        return sifted(self, rows, place, number, skips=self._skips)


class CsvParser(Parser):
    """Lines of values, below a line of names; values have no line breaks in them.

    Parameters
    ----------
    target, weight, features
        As :class:`Columns` has them.
    classes : ndarray or None
    dtype : dtype
    """

    def __init__(
        self,
        target: str | int | None,
        weight: str | int | None,
        features: Sequence[str] | None,
        classes: Array | None,
        dtype: np.dtype[Any],
    ) -> None:
        self._csv = needed("pyarrow.csv", "Reading CSV")
        self._arrow = needed("pyarrow", "Reading CSV")
        self._wanted = target, weight, features
        self.classes, self._dtype = classes, dtype
        self._target_type: Any = None
        self.n_features = None

    def read_head(self, path: Path, compression: str | None) -> tuple[int, int]:
        """Read the line of names, and of the first rows what kind of labels they have."""
        head = read_head(path, compression)
        self._names, self._delimiter = head.names, head.delimiter
        with open_bytes(path, compression) as file:
            skip_bytes(file, head.n_bytes)
            some = b"".join(file.readlines(_BUFFER))
        self._columns = Columns(path, self._names, *self._wanted)
        self.n_features = len(self._columns.features)
        self._target_type = self._find_target_type(some)
        return head.n_bytes, head.n_lines

    def _find_target_type(self, text: bytes) -> Any:
        """Return the type of the labels: that of the classes, or what the first rows look like."""
        if self.classes is not None and self.classes.dtype.kind == "U":
            return self._arrow.string()
        if not text.strip():
            return None
        only = self._csv.ConvertOptions(include_columns=[self._columns.target])
        parse = self._csv.ParseOptions(
            delimiter=self._delimiter, invalid_row_handler=lambda row: "skip"
        )
        try:
            return self._table(text, only, parse).schema.field(0).type
        except self._arrow.ArrowInvalid:
            return self._arrow.string()

    def _table(self, text: bytes, convert: Any, parse: Any = None) -> Any:
        return self._csv.read_csv(
            self._arrow.BufferReader(text),
            self._csv.ReadOptions(column_names=self._names),
            self._csv.ParseOptions(delimiter=self._delimiter) if parse is None else parse,
            convert,
        )

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""
        return {"format": "csv", "columns": self._columns.used}

    def parse(self, text: bytes) -> LabelledRows:
        """Return the rows of lines; ValueError if any is bad."""
        number = self._arrow.from_numpy_dtype(self._dtype)
        types = dict.fromkeys(self._columns.used, number)
        if self._target_type is not None:
            types[self._columns.target] = self._target_type
        if not text.strip():
            empty_columns = [self._arrow.array([], types[name]) for name in self._columns.used]
            table = self._arrow.table(dict(zip(self._columns.used, empty_columns, strict=True)))
        else:
            convert = self._csv.ConvertOptions(
                column_types=types, include_columns=self._columns.used
            )
            table = self._table(text, convert)
        assert self.n_features is not None
        rows = self._columns.rows_of(table, self._dtype, self.n_features)
        bad, reason = rows.bad_rows(self.classes)
        if len(bad):
            raise ValueError(reason)
        return rows.with_labels_of(self.classes)

    def explain(self, line: bytes, error: Exception) -> str:
        """Say what is wrong with a single line."""
        values = line.decode("utf-8", "replace").rstrip("\r\n").split(self._delimiter)
        if len(values) != len(self._names) and b'"' not in line:
            return f"it has {len(values)} values, and there are {len(self._names)} columns"
        for name, value in zip(self._names, values, strict=False):
            if name in self._columns.features and not is_number(value.strip().strip('"')):
                what = f"is {value!r}, which is no number" if value.strip() else "is missing"
                return f"column {name!r} {what}"
        return str(error).rstrip(".")

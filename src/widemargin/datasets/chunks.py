"""Rows of a file in chunks, for predictions: as many as are parsed together, in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from widemargin.datasets.blocks import StreamError, needed
from widemargin.datasets.csv_files import CsvFile
from widemargin.datasets.formats import format_of, has_label_sets
from widemargin.datasets.heads import listed
from widemargin.datasets.kinds import NUMBER, Place
from widemargin.datasets.reading import read_table
from widemargin.datasets.svmlight import SvmlightParser
from widemargin.datasets.table_targets import find_columns
from widemargin.datasets.text import TextSource

_ROWS = 1 << 15  # of a chunk, where the reader lets us choose


T = TypeVar("T")
_END: Any = object()


def read_ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield items, of which the next is read in another thread while one is used."""
    iterator = iter(items)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, iterator, _END)
        while (item := coming.result()) is not _END:
            coming = reader.submit(next, iterator, _END)
            yield item


@dataclass(frozen=True)
class Chunk:
    """Rows that follow one another."""

    X: Any  # pyarrow.Table, pandas.DataFrame or CSR matrix
    first: int  # number of its first row in the file
    place: Place


@dataclass(frozen=True)
class ChunkReader:
    """Reads a file for a model.

    Parameters
    ----------
    path : Path
    columns : mapping or None
        Columns that the model asks for, with their kinds; None: it knows no names.
    n_features : int
        Those of the model.
    format : str
    header, zero_based, skips : bool
        As :func:`read_table` has them.
    """

    path: Path
    columns: Mapping[str, str] | None
    n_features: int
    format: str = "auto"
    header: bool = True
    zero_based: bool = False
    skips: bool = False

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the rows."""
        found = format_of(self.path) if self.format == "auto" else self.format
        readers = {"csv": self._csv, "svmlight": self._svmlight, "parquet": self._parquet}
        first, where = 0, Place(str(self.path), 1 if found == "svmlight" else None)
        if found == "csv":
            where = Place(str(self.path), 2 if self.header else 1)
        for rows in readers.get(found, self._whole)():
            yield Chunk(rows, first, where)
            first += rows.shape[0]
        if first == 0:
            raise StreamError(f"{self.path} has no rows.")

    def _wanted(self, names: list[str]) -> Mapping[str, str]:
        """Return the columns to read; of a model without names, all that are there."""
        if self.columns is not None:
            find_columns(str(self.path), "the model", list(self.columns), names)
            return self.columns
        if len(names) != self.n_features:
            raise StreamError(
                f"{self.path} has {len(names)} columns, and the model, which knows no names, has "
                f"{self.n_features} features: {listed(names)}. Leave out what is no feature."
            )
        return dict.fromkeys(names, NUMBER)

    def _csv(self) -> Iterator[Any]:
        arrow = needed("pyarrow", "Reading CSV", "cli")
        file = CsvFile(self.path, header=self.header, skips=self.skips)
        for batch in file.batches(self._wanted(file.names), dictionaries=True):
            if batch.num_rows:
                yield arrow.Table.from_batches([batch])

    def _parquet(self) -> Iterator[Any]:
        arrow = needed("pyarrow", "Reading Parquet", "cli")
        parquet = needed("pyarrow.parquet", "Reading Parquet", "cli")
        try:
            with parquet.ParquetFile(self.path) as file:
                wanted = self._wanted(file.schema_arrow.names)
                for batch in file.iter_batches(_ROWS, columns=list(wanted)):
                    yield arrow.table(
                        {name: _as_fitted(batch[name], kind) for name, kind in wanted.items()}
                    )
        except arrow.ArrowInvalid as error:
            raise StreamError(f"{self.path} is damaged or no Parquet file: {error}") from error

    def _svmlight(self) -> Iterator[Any]:
        parser = SvmlightParser(
            self.n_features,
            None,
            np.dtype("float64"),
            multilabel=has_label_sets(self.path),
            zero_based=self.zero_based,
        )
        for block in TextSource(self.path, parser, skips=self.skips).blocks(None, _ROWS):
            yield block.rows.X

    def _whole(self) -> Iterator[Any]:
        yield read_table(self.path, False, format=self.format, columns=self.columns).X


def _as_fitted(column: Any, kind: str) -> Any:
    """Return a column as those of :func:`frame_of` are: a text that is missing is an empty one."""
    if kind == NUMBER:
        return column
    return column.cast(needed("pyarrow", "Reading Parquet", "cli").string()).fill_null("")


def first_rows(path: Path, format: str) -> Any:
    """Return some rows of a CSV or Parquet file as a record batch, of the types that they have."""
    if format == "csv":
        return next(CsvFile(path).batches(None))
    parquet = needed("pyarrow.parquet", "Reading Parquet", "cli")
    with parquet.ParquetFile(path) as file:
        return next(file.iter_batches(_ROWS))

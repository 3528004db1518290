"""CSV by pyarrow: read whole or block by block, with errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from widemargin.datasets.blocks import StreamError, needed
from widemargin.datasets.compression import compression_of, open_bytes
from widemargin.datasets.heads import read_head
from widemargin.datasets.kinds import NUMBER, Place

_BLOCK = 1 << 21  # bytes that are parsed together
_MISSING = ["", "?", " ?", "NA", "N/A", "#N/A", "n/a", "nan", "NaN", "NULL", "null", "None"]
_PLACE = re.compile(r"(?:In CSV column #(\d+): )?(?:CSV parse error: )?Row #(\d+): (.*)", re.DOTALL)
_NO_NUMBER = re.compile(r"CSV conversion error to \w+: invalid value (.*)", re.DOTALL)


class CsvFile:
    """A file of values with commas, semicolons, tabs or bars between them.

    Parameters
    ----------
    path : Path
    header : bool, default=True
        Whether the first line has the names of the columns.
    skips : bool, default=False
        Whether lines with too few or too many values are left out.
    """

    def __init__(self, path: Path, *, header: bool = True, skips: bool = False) -> None:
        self._csv = needed("pyarrow.csv", "Reading CSV", "cli")
        self._arrow = needed("pyarrow", "Reading CSV", "cli")
        self.path, self._skips = path, skips
        self._compression = compression_of(path)
        advice = " Where there is none, header=False says so."
        head = read_head(path, self._compression, named=header, advice=advice)
        self.names, self._delimiter = list(head.names), head.delimiter
        self.place = Place(str(path), 1 + head.n_lines)

    def read(self, kinds: Mapping[str, str] | None = None, others: Sequence[str] = ()) -> Any:
        """Return a pyarrow.Table.

        Parameters
        ----------
        kinds : mapping or None
            Columns that are read, with what they are; None reads all, and finds out.
        others : sequence of str
            Columns that are read too, whatever they are.
        """
        options = self._options(kinds, others)
        try:
            with self._open() as file:
                return self._csv.read_csv(file, *options(use_threads=True))
        except self._arrow.ArrowInvalid as error:
            raise self._told(error, options) from error

    def batches(self, kinds: Mapping[str, str] | None, dictionaries: bool = False) -> Iterator[Any]:
        """Yield record batches of some columns, in the order of the file.

        Parameters
        ----------
        kinds : mapping or None
            Columns that are read, with what they are; None reads all, and finds out.
        dictionaries : bool, default=False
            Whether texts come as numbers of the distinct ones.
        """
        options = self._options(kinds, (), dictionaries)
        try:
            with self._open() as file:
                yield from self._csv.open_csv(file, *options(use_threads=True))
        except self._arrow.ArrowInvalid as error:
            raise self._told(error, options) from error

    def _open(self) -> Any:
        """Open the file, by pyarrow itself where there is nothing to decompress."""
        if self._compression is None:
            return self._arrow.OSFile(str(self.path))
        return open_bytes(self.path, self._compression)

    def _options(
        self, kinds: Mapping[str, str] | None, others: Sequence[str], dictionaries: bool = False
    ) -> Any:
        """Return what makes the options of pyarrow, all but whether threads are used."""
        csv, arrow = self._csv, self._arrow
        text = arrow.dictionary(arrow.int32(), arrow.string()) if dictionaries else arrow.string()
        types = {
            name: arrow.float64() if kind == NUMBER else text
            for name, kind in (kinds or {}).items()
        }
        has_names = self.place.first_line == 2
        skipping = {"invalid_row_handler": lambda row: "skip"} if self._skips else {}

        def options(use_threads: bool) -> tuple[Any, Any, Any]:
            names = {} if has_names else {"column_names": self.names}
            return (
                csv.ReadOptions(use_threads=use_threads, block_size=_BLOCK, **names),
                csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=False, **skipping),
                csv.ConvertOptions(
                    column_types=types,
                    include_columns=[*types, *others] if kinds is not None else None,
                    null_values=_MISSING,
                ),
            )

        return options

    def _told(self, error: Exception, options: Any) -> StreamError:
        """Return the error with the line; pyarrow knows that if it reads without threads."""
        try:
            with self._open() as file:
                self._csv.read_csv(file, *options(use_threads=False))
        except self._arrow.ArrowInvalid as again:
            error = again
        found = _PLACE.match(str(error))
        if found is None:
            return StreamError(f"{self.path}: {' '.join(str(error).split())}")
        column, row, reason = found.groups()
        where = f"{self.path}, line {row}"
        no_number = _NO_NUMBER.match(reason)
        if column is None or no_number is None:
            reason = " ".join(reason.split())[:200]
            return StreamError(
                f"{where}: {reason}. Mend it, or leave such lines out by on_error='skip'."
            )
        return StreamError(
            f"{where}, column {self.names[int(column)]!r}: {no_number[1]} is no number, and this "
            "column has numbers. Leave the field empty if the value is missing."
        )

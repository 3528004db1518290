"""What the columns of a table are to learners: numbers, texts, or nothing that they can use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.datasets.blocks import StreamError, needed
from widemargin.datasets.heads import is_number

NUMBER, TEXT = "number", "text"

_NAMES_ROWS = 0.5  # share of rows with a text of their own from which on texts name rows
_FEW_TEXTS = 20  # so few are never names of rows
_MOSTLY_NUMBERS = 0.9  # share of texts that are numbers, from which on the others are slips


@dataclass(frozen=True)
class Place:
    """Where a table is from, so that errors can say in which line something is."""

    path: str
    first_line: int | None  # that of the first row; None for files without lines

    def of(self, row: int) -> str:
        """Return the file and the line of a row."""
        if self.first_line is None:
            return f"{self.path}, row {row + 1}"
        return f"{self.path}, line {row + self.first_line}"


def find_kinds(
    table: Any, names: Sequence[str], place: Place, as_text: Collection[str] = ()
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the kind of each column that learners can use, and why others are left out.

    Parameters
    ----------
    table : pyarrow.Table
    names : sequence of str
        The columns that are asked for.
    place : Place
    as_text : collection of str
        Columns that are texts whatever they look like.
    """
    kinds: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for name in names:
        if name in as_text:
            kinds[name] = TEXT
            continue
        kind, reason = _kind_of(table.column(name), name, place)
        if kind is None:
            left_out[name] = reason
        else:
            kinds[name] = kind
    return kinds, left_out


def _kind_of(column: Any, name: str, place: Place) -> tuple[str | None, str]:
    types = needed("pyarrow", "Reading tables", "cli").types
    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return NUMBER, ""
    if types.is_boolean(kind):
        return TEXT, ""
    if types.is_null(kind):
        return None, "it is empty"
    if types.is_temporal(kind):
        return None, "dates and times are no numbers: write what matters as numbers, as the year"
    if types.is_string(kind) or types.is_large_string(kind):
        return _kind_of_texts(column, name, place)
    if types.is_binary(kind) or types.is_large_binary(kind):
        raise StreamError(
            f"{place.path}, column {name!r}: the text is not UTF-8. Convert it, as by "
            "iconv -f latin1 -t utf-8."
        )
    return None, f"its values are {kind}, neither numbers nor texts"


def _kind_of_texts(column: Any, name: str, place: Place) -> tuple[str | None, str]:
    compute = needed("pyarrow.compute", "Reading tables", "cli")
    counts = compute.value_counts(column.drop_null())
    texts = [str(text) for text in counts.field("values").to_pylist()]
    numbers = np.asarray(counts.field("counts"), dtype=np.int64)
    given = np.array([text.strip() not in ("", "?") for text in texts], dtype=bool)
    is_slip = given & np.array([not is_number(text) for text in texts], dtype=bool)
    n_given, n_slips = int(numbers[given].sum()), int(numbers[is_slip].sum())
    if n_given == 0:
        return None, "it is empty"
    if 0 < n_slips <= (1 - _MOSTLY_NUMBERS) * n_given:
        slip = texts[int(np.flatnonzero(is_slip)[0])]
        row = int(compute.index(column, slip).as_py())
        raise StreamError(
            f"{place.of(row)}, column {name!r}: {slip!r}, where others have numbers. Leave the "
            f"field empty if the value is missing; drop={name!r} leaves the column out, and "
            f"text={name!r} takes all of it as texts."
        )
    distinct = int(given.sum())
    if distinct > max(_FEW_TEXTS, _NAMES_ROWS * n_given):
        return None, f"{distinct:,} distinct texts in {n_given:,} rows name rows, and no groups"
    return TEXT, ""


def frame_of(table: Any, kinds: Mapping[str, str]) -> Any:
    """Return columns as a pandas DataFrame: floats with NaN for what is missing, and texts.

    Parameters
    ----------
    table : pyarrow.Table or pyarrow.RecordBatch
    kinds : mapping
        The columns, in their order, and what each is.
    """
    pandas = needed("pandas", "Reading tables", "cli")
    columns = {
        name: numbers_of(table.column(name)) if kind == NUMBER else texts_of(table.column(name))
        for name, kind in kinds.items()
    }
    return pandas.DataFrame(columns, columns=list(kinds), copy=False)


def numbers_of(column: Any) -> Any:
    """Return a column as floats; those of single precision stay what they are."""
    arrow = needed("pyarrow", "Reading tables", "cli")
    if not arrow.types.is_floating(column.type):
        column = column.cast(arrow.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False) if _is_array(column) else column)


def _is_array(column: Any) -> bool:
    return not hasattr(column, "chunks")


def texts_of(column: Any) -> Any:
    """Return a column as an array of str objects; what is missing is an empty text."""
    arrow = needed("pyarrow", "Reading tables", "cli")
    pandas = needed("pandas", "Reading tables", "cli")
    values = column.cast(arrow.string()).fill_null("")
    if _is_array(values):
        values = values.to_numpy(zero_copy_only=False)
    return pandas.Series(np.asarray(values, dtype=object), dtype=object)


def refuse_infinite(frame: Any, kinds: Mapping[str, str], place: Place) -> None:
    """Require numbers that are finite or missing."""
    for name, kind in kinds.items():
        if kind != NUMBER:
            continue
        infinite = np.flatnonzero(np.isinf(np.asarray(frame[name])))
        if len(infinite):
            raise StreamError(
                f"{place.of(int(infinite[0]))}, column {name!r}: the number is infinite. Leave the "
                "field empty if the value is missing."
            )

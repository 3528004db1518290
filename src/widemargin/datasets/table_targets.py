"""What is learned from a table: a column of classes, or a column of 0 and 1 for each label."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from widemargin.datasets.blocks import Array, StreamError, needed
from widemargin.datasets.heads import listed
from widemargin.datasets.kinds import Place

_MANY_NUMBERS = 100  # distinct ones that
_SHARE_OF_ROWS = 0.2  # are this share of the rows: a quantity, and no class


def find_columns(path: str, what: str, wanted: Sequence[str], names: Sequence[str]) -> None:
    """Require that columns are there."""
    for name in wanted:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f" Is it {near[0]!r}?" if near else ""
            raise ValueError(f"{path} has no column {name!r} for {what}: {listed(names)}.{hint}")


def classes_of(column: Any, name: str, place: Place) -> tuple[Array, Array | None]:
    """Return the classes of the rows, and which rows have one; None if all have.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
    place : Place
    """
    arrow = needed("pyarrow", "Reading tables", "cli")
    types = arrow.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_temporal(column.type) or types.is_nested(column.type):
        raise StreamError(
            f"{place.path}, column {name!r}: {column.type} is learned, and classes are texts or "
            "whole numbers. Name another column as the target."
        )
    if types.is_boolean(column.type):
        column = column.cast(arrow.string())
    is_text = types.is_string(column.type) or types.is_large_string(column.type)
    values = np.asarray(column.to_numpy() if hasattr(column, "chunks") else column)
    if is_text:
        has_class = np.array([value is not None and value.strip() != "" for value in values])
    else:
        has_class = ~np.isnan(np.asarray(column.cast(arrow.float64()), dtype=np.float64))
    if not has_class.any():
        raise StreamError(
            f"{place.path}, column {name!r}: no row has a value, and this is the target."
        )
    known = values[has_class]
    known = known.astype(str) if is_text else _whole(known, name, place)
    return check_classes(known, name, place), None if has_class.all() else has_class


def _whole(values: Array, name: str, place: Place) -> Array:
    """Return numbers as integers; fractions are quantities."""
    values = values.astype(np.float64)
    broken = np.flatnonzero(values != np.round(values))
    if len(broken):
        raise StreamError(
            f"{place.path}, column {name!r}: {values[broken[0]]:g} is a quantity, and classes are "
            "learned here. Name another column as the target, or cut the quantity into classes."
        )
    return values.astype(np.int64)


def check_classes(y: Array, name: str, place: Place) -> Array:
    """Require at least two classes, and not as many as a quantity has values."""
    distinct = np.unique(y)
    if len(distinct) == 1:
        raise StreamError(
            f"{place.path}, {name}: every row has {distinct[0]!s}, so that there is nothing to "
            "learn. Name another target, or add rows of other classes."
        )
    many = max(_MANY_NUMBERS, _SHARE_OF_ROWS * len(y))
    if len(distinct) > many:
        what = "numbers are a quantity" if y.dtype.kind != "U" else "texts are names of rows"
        raise StreamError(
            f"{place.path}, {name}: {len(distinct):,} distinct values in {len(y):,} rows; such "
            f"{what}, and no classes. Name another target."
        )
    return y


def indicators_of(table: Any, names: Sequence[str], place: Place) -> Array:
    """Return a column of 0 and 1 for each label."""
    arrow = needed("pyarrow", "Reading tables", "cli")
    indicators = np.empty((table.num_rows, len(names)), dtype=np.int64)
    for number, name in enumerate(names):
        column = table.column(name)
        try:
            values = np.asarray(column.cast(arrow.float64()), dtype=np.float64)
        except arrow.ArrowInvalid as error:
            raise StreamError(
                f"{place.path}, column {name!r}: texts, and a label's column has 0 and 1."
            ) from error
        wrong = np.flatnonzero((values != 0) & (values != 1))
        if len(wrong):
            value = values[wrong[0]]
            shown = "nothing" if np.isnan(value) else f"{value:g}"
            raise StreamError(
                f"{place.of(int(wrong[0]))}, column {name!r}: {shown}, and a label's column has 0 "
                "and 1. Name a single column as the target if it has classes."
            )
        indicators[:, number] = values
    return indicators

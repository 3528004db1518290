"""The first line of a CSV file: names of columns, and what is between them."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from widemargin.datasets.blocks import StreamError
from widemargin.datasets.compression import open_bytes

_LONGEST = 1 << 24  # bytes
_SHOWN = 60  # letters of a line that an error shows


@dataclass(frozen=True)
class Head:
    """What the first line tells."""

    names: tuple[str, ...]
    delimiter: str
    n_bytes: int  # of the line of names; 0 where there is none
    n_lines: int


def read_head(path: Path, compression: str | None, *, named: bool = True, advice: str = "") -> Head:
    """Read the names of columns; without a line of names, they are f0, f1 and so on.

    Parameters
    ----------
    path : Path
    compression : str or None
    named : bool, default=True
        Whether the first line has the names.
    advice : str, default=""
        What to do where the first line has none; errors end with it.
    """
    with open_bytes(path, compression) as file:
        line = file.readline(_LONGEST)
    if not line.strip():
        raise StreamError(f"{path} has no rows.")
    text = line.decode("utf-8-sig", "replace").rstrip("\r\n")
    if "\0" in text:
        raise StreamError(f"{path}, line 1: that is no text. Is it a CSV file?")
    delimiter = max(",;\t|", key=text.count)
    names = tuple(name.strip() for name in next(csv.reader([text], delimiter=delimiter)))
    if not named:
        return Head(tuple(f"f{place}" for place in range(len(names))), delimiter, 0, 0)
    if all(is_number(name) for name in names) and not _are_places(names):
        raise StreamError(
            f"{path} begins with a line of numbers, {text[:_SHOWN]!r}, where the names of the "
            f"columns are to be. Put a line of names above it.{advice}"
        )
    refuse_twice(path, names, advice)
    return Head(names, delimiter, len(line), 1)


def refuse_twice(path: Path, names: Sequence[str], advice: str = "") -> None:
    """Require that columns have names of their own."""
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise StreamError(
            f"{path} has several columns by the name of {twice[0]!r}. Give each its own.{advice}"
        )


def is_number(text: str) -> bool:
    """Whether a text is one that Python reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def listed(names: Sequence[str]) -> str:
    """Return names for an error: the first dozen, and how many more there are."""
    more = f" and {len(names) - 12} more" if len(names) > 12 else ""
    return ", ".join(repr(name) for name in names[:12]) + more


def _are_places(names: Sequence[str]) -> bool:
    """Whether names are 0, 1, 2 and so on, as pandas writes those of nameless columns."""
    return list(names) == [str(place) for place in range(len(names))]

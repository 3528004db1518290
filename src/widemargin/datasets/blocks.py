"""Labelled rows on their way from a file to a learner, and what a reader of files has to offer."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import Rows

Array: TypeAlias = npt.NDArray[Any]

#: Where a block begins, in numbers that mean something to the source alone.
Place: TypeAlias = dict[str, int]


class StreamError(ValueError):
    """A file that cannot be read: it says which, where in it, and what is wrong there."""


@dataclass(frozen=True)
class LabelledRows:
    """Some rows with what is known of them."""

    X: Rows
    y: Any  # an array of classes, or a CSR matrix that indicates labels
    weight: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __getitem__(self, rows: slice | Array) -> LabelledRows:
        weight = None if self.weight is None else self.weight[rows]
        return LabelledRows(self.X[rows], self.y[rows], weight)

    def bad_rows(self, classes: Array | None) -> tuple[Array, str]:
        """Return the rows that no learner would take, and what is wrong with the first of them.

        These have numbers that are not finite, weights below zero, or labels that are not among
        the classes, where these are given.
        """
        found = [_not_finite(self.X, "feature"), _not_finite(self.y, "label")]
        if self.weight is not None:
            found.append(_not_finite(self.weight, "weight"))
            below = np.flatnonzero(self.weight < 0)
            found.append((below, f"the weight is {self.weight[below[:1]]}, and below zero"))
        if classes is not None and not sp.issparse(self.y):
            unknown = np.flatnonzero(~_are_known(self.y, classes))
            labels = "".join(f"{label}" for label in self.y[unknown[:1]])
            found.append((unknown, f"the label {labels} is not among the classes"))
        found = [each for each in found if len(each[0])]
        if not found:
            return np.empty(0, dtype=np.intp), ""
        _, reason = min(found, key=lambda each: int(each[0][0]))
        return np.unique(np.concatenate([each[0] for each in found])), reason

    def with_labels_of(self, classes: Array | None) -> LabelledRows:
        """Return the rows with labels as the classes are written: 3.0 is 3 if that is a class."""
        if classes is None or sp.issparse(self.y) or self.y.dtype == classes.dtype:
            return self
        numbers = np.searchsorted(classes, _alike(self.y, classes))
        return LabelledRows(self.X, classes[numbers], self.weight)


def _not_finite(part: Any, what: str) -> tuple[Array, str]:
    """Return the rows of a part that have NaN or infinity, and a description of the first."""
    values = part.data if sp.issparse(part) else part
    # A sum is finite only if all numbers are, and takes no memory; sums of large ones are not, too.
    with np.errstate(over="ignore", invalid="ignore"):
        if values.dtype.kind != "f" or np.isfinite(values.sum()):
            return np.empty(0, dtype=np.intp), ""
    places = np.nonzero(~np.isfinite(values))
    if len(places[0]) == 0:
        return places[0], ""
    value = values[tuple(each[0] for each in places)]
    if sp.issparse(part):
        rows = np.searchsorted(part.indptr, places[0], side="right") - 1
        return rows, f"{what} {part.indices[places[0][0]]} is {value}"
    number = f" {places[1][0]}" if len(places) == 2 else ""
    return places[0], f"{what}{number} is {value}, or missing"


def _alike(y: Array, classes: Array) -> Array:
    return y.astype(str) if classes.dtype.kind == "U" and y.dtype.kind != "U" else y


def _are_known(y: Array, classes: Array) -> npt.NDArray[np.bool_]:
    labels = _alike(y, classes)
    if labels.dtype.kind == "U" and classes.dtype.kind != "U":
        return np.zeros(len(y), dtype=bool)
    numbers = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.asarray(classes[numbers] == labels)


def joined(parts: Sequence[LabelledRows]) -> LabelledRows:
    """Return rows below one another; without a copy where there is one part."""
    if len(parts) == 1:
        return parts[0]
    weights = [part.weight for part in parts]
    return LabelledRows(
        _stacked([part.X for part in parts]),
        _stacked([part.y for part in parts]),
        None if weights[0] is None else _stacked(weights),
    )


def _stacked(parts: list[Any]) -> Any:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


@dataclass(frozen=True)
class Block:
    """Rows that a source reads at a time."""

    rows: LabelledRows
    place: Place  # a source can begin again here
    skipped: int = 0  # rows that were here too, and were bad


class Source(ABC):
    """A file or a folder that gives its rows in blocks, from any place where a block began.

    Attributes
    ----------
    path : Path
    n_features : int
    n_rows : int or None
        None where nobody has counted them.
    classes : ndarray or None
    """

    path: Path
    n_features: int
    n_rows: int | None = None
    classes: Array | None = None

    @abstractmethod
    def blocks(self, place: Place | None, size: int) -> Iterator[Block]:
        """Yield blocks, of about so many rows where that is the reader's to say.

        The same place gives the same rows, whatever was read before. None is the beginning.
        """

    def share(self, place: Place) -> float | None:
        """Return how much of the file is before a place; None if nobody knows."""
        return None

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""


def sifted(source: Source, rows: LabelledRows, place: Place, number: int, *, skips: bool) -> Block:
    """Return a block of those rows that are good; the first of all has this number in the file."""
    bad, reason = rows.bad_rows(source.classes)
    if len(bad) and not skips:
        raise StreamError(
            f"{source.path}, row {number + bad[0]}, the first being 0: {reason}. Mend it, or leave "
            "such rows out by on_error='skip', which counts them."
        )
    kept = rows if len(bad) == 0 else rows[np.setdiff1d(np.arange(len(rows)), bad)]
    return Block(kept.with_labels_of(source.classes), place, len(bad))


#: Packages whose name at pip is not the one that they are imported by.
_AT_PIP = {"arff": "liac-arff"}


def needed(module: str, purpose: str, extra: str = "stream") -> Any:
    """Import a package that only some files need; ImportError says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        package = _AT_PIP.get(package, package)
        raise ImportError(
            f"{purpose} needs the package {package}: pip install widemargin[{extra}], or "
            f"pip install {package}."
        ) from error

"""Rows that vectors are learned from: dense, each once, some of them held out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from widemargin._system.warnings import warn_user
from widemargin.kernels import Rows
from widemargin.solvers.units.values import WorkingRows
from widemargin.sparse_kernel.effort import LearnSettings

Array: TypeAlias = npt.NDArray[Any]

_MOST_BYTES = 2 << 30  # of sparse rows that are made dense
_SORTED_ENTRIES = 1 << 22  # of rows among which equal ones are looked for


def dense_rows(rows: Rows) -> Array:
    """Return rows as an array; centres are dense, so sparse rows gain little by staying so."""
    if not sp.issparse(rows):
        return np.asarray(rows)
    needed = rows.dtype.itemsize * rows.shape[0] * rows.shape[1]
    if needed > _MOST_BYTES:
        raise ValueError(
            f"A learned basis works on dense rows, which here take {needed / 1e9:.1f} GB, more "
            f"than the {_MOST_BYTES / 1e9:.1f} GB that it allows itself. Use basis='shared', fewer "
            "rows, or fewer features (TruncatedSVD)."
        )
    return np.asarray(rows.toarray())


def each_once(
    rows: Array, labels: npt.NDArray[np.intp], weights: Array, used: Array
) -> tuple[Array, Array]:
    """Return the different ones of the used rows, in an order of their own, and their weights.

    So neither the order of the rows nor their number tells a row of weight 2 from two rows: what
    rounding makes of such a difference, moving units magnify. The order is that of the values, so
    that units of the features do not tell which rows are held out. Many rows are left as they are.
    """
    if len(used) * rows.shape[1] > _SORTED_ENTRIES:
        return used, weights[used]
    table = np.column_stack([rows[used], labels[used].astype(rows.dtype)])
    _, first, place = np.unique(_keys(table), return_index=True, return_inverse=True)
    return used[first], np.bincount(place.ravel(), weights[used])


def _keys(table: Array) -> Array:
    """Return the bytes of each row, which are in the order that its numbers are in."""
    table = table + 0.0  # no negative zeros, whose bytes differ
    whole = np.dtype(f"u{table.dtype.itemsize}")
    numbers, sign = table.view(whole), whole.type(1 << (8 * whole.itemsize - 1))
    # The more negative a number is, the larger its bytes are.
    numbers = np.where(numbers & sign, ~numbers, numbers | sign).astype(whole.newbyteorder(">"))
    return numbers.view(np.dtype((np.void, whole.itemsize * table.shape[1]))).ravel()


def which_row(rows: Array) -> npt.NDArray[np.intp]:
    """Return numbers that are the same for rows that are equal, where these are neighbours."""
    differs = (rows[1:] != rows[:-1]).any(axis=1)
    return np.append(0, np.cumsum(differs)).astype(np.intp)


def warn_if_all_equal(working: WorkingRows) -> None:
    """Say that there is nothing to tell rows apart by."""
    if working.all_equal:
        warn_user(
            "All rows of X are equal, so that only the frequencies of the classes could be "
            "learned. Check X, and its scale.",
            UserWarning,
        )


def split(
    labels: npt.NDArray[np.intp],
    weights: Array,
    settings: LearnSettings,
    rng: np.random.RandomState,
    *,
    are_classes: bool = True,
) -> tuple[Array, Array]:
    """Return the rows to learn from, and those to judge by; rows without weight are neither."""
    used = np.flatnonzero(weights > 0)
    if not settings.basis.early_stopping:
        return used, used[:0]
    single = np.bincount(labels[used]).min(initial=2, where=np.bincount(labels[used]) > 0) < 2
    try:
        parts = train_test_split(
            used,
            test_size=settings.basis.validation_fraction,
            stratify=None if single else labels[used],
            random_state=rng,
        )
    except ValueError as error:
        raise ValueError(
            f"early_stopping=True holds out a share of {settings.basis.validation_fraction} of "
            f"{len(used)} rows, which leaves too few: {error}"
        ) from error
    if are_classes and len(np.unique(labels[parts[0]])) < len(np.unique(labels[used])):
        raise ValueError(
            "early_stopping=True holds out rows, and a class has too few to learn from the rest. "
            "Set early_stopping=False."
        )
    return np.sort(parts[0]), np.sort(parts[1])

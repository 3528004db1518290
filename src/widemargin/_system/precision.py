"""What single precision costs a machine: rows to measure it on, and what may be lost there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

#: What single precision may lose of the scores, relative to the largest, as measured on the
#: probes of a model: half of what is promised for any row. A model that loses more computes in
#: double precision.
SINGLE_PRECISION_LOSS = 5e-6

# Products and powers of small whole numbers are exact in any precision, so that rows made of them
# show no loss. Steps that are shortened by this lead to rows that are rounded as others are.
_UNEVEN = 0.9567339


def middle_of(vectors: Array) -> npt.NDArray[np.float64]:
    """Return a point amid vectors, from which to see them.

    It is the median of each feature, as one far vector would move the mean; a number of single
    precision, so that rows of single precision close to it are moved without rounding; and zero
    where it is out of that range, or where there are no vectors.
    """
    if len(vectors) == 0:
        return np.zeros(vectors.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        middle = np.median(vectors, axis=0).astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(middle), middle, 0.0)


def probes_of(vectors: Array, lengths: Callable[[Array], Array] | None) -> npt.NDArray[np.float64]:
    """Return rows on which to measure: vectors, points between them, and as many further out.

    At a vector a kernel that falls with the distance has no slope, and far from it no value: errors
    of gaps show about a width away. Other kernels grow with the row: there it is rows nearly three
    times as far out as the vectors. The rows are single precision numbers, unless that cannot hold
    them.

    Parameters
    ----------
    vectors : ndarray of shape (n, n_features)
    lengths : callable or None
        Gaps between rows and vectors, (n, n_features), as multiples of the width of the kernel.
        None if the kernel does not fall with the distance.
    """
    count = len(vectors)
    rows = np.empty((4 * count, vectors.shape[1]))
    rows[:count] = vectors
    share = 0.5 if lengths is not None else 0.5 * _UNEVEN
    rows[count : 2 * count] = (1 - share) * rows[:count] + share * np.roll(rows[:count], 1, axis=0)
    away, across = rows[2 * count : 3 * count], rows[3 * count :]
    with np.errstate(all="ignore"):
        np.subtract(rows[:count], middle_of(vectors), out=away)
        if lengths is None:
            away *= 2 * _UNEVEN
            np.multiply(rows[:count], -4 * _UNEVEN, out=across)
        else:
            # Along gaps that there are: to change all features of text at once would be unlike it.
            np.subtract(rows[:count], np.roll(rows[:count], 1, axis=0), out=across)
            for steps, sign in ((away, 1.0), (across, -1.0)):
                still = ~steps.any(axis=1)  # equal vectors
                steps[still] = sign * np.where(rows[:count].any(), rows[:count][still], 1.0)
            for steps in (away, across):
                steps /= np.abs(steps).max(axis=1, initial=0.0, keepdims=True)
                steps /= lengths(steps)[:, np.newaxis]
        away += rows[:count]
        across += rows[:count]
        for outer in (away, across):  # no number where a metric leaves a feature out
            held = np.abs(outer) <= np.finfo(np.float32).max
            np.copyto(outer, rows[:count], where=~held)
        rounded = rows.astype(np.float32)
    held = np.isfinite(rounded) & (np.abs(rounded) >= np.finfo(np.float32).tiny)
    np.copyto(rows, rounded, where=held)
    return rows


def keeps_digits(found: Array, exact: Array, n_inner: int | None = None) -> bool:
    """Return whether scores are near enough to the exact ones.

    Parameters
    ----------
    found, exact : ndarray of shape (n_rows, n_outputs)
    n_inner : int, default=None
        How many rows, from the first, are also judged by the largest score among themselves: rows
        that are further out may have far larger ones. None is half, as of ``probes_of``.
    """
    n_inner = len(exact) // 2 if n_inner is None else n_inner
    with np.errstate(invalid="ignore"):
        losses = np.abs(found - exact)
    return all(
        losses[:count].max(initial=0.0)
        <= SINGLE_PRECISION_LOSS * np.abs(exact[:count]).max(initial=0.0)
        for count in (n_inner, len(exact))
    )

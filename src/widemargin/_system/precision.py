"""What single precision costs a machine: rows to measure it on, and what may be lost there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

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
_GOLDEN = 0.6180339887  # its multiples, less whole numbers, fill the unit interval evenly

_ENOUGH_ROWS = 256  # among which one is about as unlucky as a row can be
_ENOUGH_ENTRIES = 1 << 20


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


class Probes(NamedTuple):
    """Rows to measure on, the ordinary ones first."""

    rows: npt.NDArray[np.float64]
    groups: tuple[slice, ...]  # of rows that are judged by the largest score among them


def probes_of(
    vectors: Array,
    lengths: Callable[[Array, Array], Array] | None,
    steepest: Callable[[Array, Array], Array] | None = None,
) -> Probes:
    """Return rows on which to measure: vectors, points between them, and as many further out.

    At a vector a kernel that falls with the distance has no slope, and far from it no value: errors
    of gaps show about a width away. Other kernels grow with the row: there it is rows nearly three
    times as far out as the vectors. How numbers round is a matter of luck, so that few vectors
    have several such rows each. The rows are single precision numbers, unless that cannot hold
    them.

    Parameters
    ----------
    vectors : ndarray of shape (n, n_features)
    lengths : callable or None
        Gaps between rows and these vectors, (n, n_features), as multiples of the width of the
        kernel.
        None if the kernel does not fall with the distance.
    steepest : callable, default=None
        Moves rows to where the value with a vector each changes fastest; None if a kernel has no
        such place that rows would not come to by themselves.

    Returns
    -------
    probes : Probes
        First the n vectors, then points between, in the second half those further out: beyond
        each vector, and across.
    """
    count, n_features = vectors.shape
    wanted = min(_ENOUGH_ROWS, _ENOUGH_ENTRIES // max(1, n_features))
    least = 1 if steepest is None and lengths is not None else 4
    rounds = max(least, wanted // max(1, 4 * count))
    inner, outer = [], []
    for number in range(rounds):
        place = number * _GOLDEN % 1.0
        between = _between(vectors, 0.5 if number == 0 else place, even=lengths is not None)
        further = vectors if number == 0 else _between(between, place, even=False)
        if steepest is not None and number > 0:
            further = steepest(further, vectors)
        inner += [further, between]
        # Other kernels may grow by any power: rows of unlike size would not be of one kind.
        spread = 0.1 if lengths is None else 1.4
        stretch = 1.0 if number == 0 else 1.0 + spread * (place - 0.5)
        outer.append(_further_out(vectors, lengths, stretch, number))
    with np.errstate(all="ignore"):
        away, across = zip(*outer, strict=True)
        rows = np.concatenate([*inner, *away, *across]).astype(np.float64)
        rounded = rows.astype(np.float32)
    held = np.isfinite(rounded) & (np.abs(rounded) >= np.finfo(np.float32).tiny)
    np.copyto(rows, rounded, where=held)
    half, end = len(rows) // 2, len(rows)
    outside = (
        (slice(half, end),) if lengths else (slice(half, half + half // 2), slice(-half // 2, end))
    )
    return Probes(rows, (slice(0, count), slice(0, half), *outside))


def _between(vectors: Array, share: float, *, even: bool) -> npt.NDArray[np.float64]:
    """Return points on the way from each vector to the one before it."""
    share = share if even else share * _UNEVEN
    points: npt.NDArray[np.float64] = (1 - share) * vectors + share * np.roll(vectors, 1, axis=0)
    return points


def _further_out(
    vectors: Array, lengths: Callable[[Array, Array], Array] | None, stretch: float, number: int
) -> tuple[Array, Array]:
    """Return rows beyond each vector, seen from the middle and from another vector."""
    with np.errstate(all="ignore"):
        away = np.subtract(vectors, middle_of(vectors), dtype=np.float64)
        if lengths is None:
            away *= 2 * _UNEVEN * stretch
            # Each feature from another vector, and of either sign: products with such rows cancel.
            features = np.arange(vectors.shape[1])
            places = np.arange(len(vectors))[:, np.newaxis] + (number + 1) * features
            another = places % max(1, len(vectors))
            signs = (features + 3 * number) * _GOLDEN % 1.0 < 0.5
            signs = np.where(signs, -4 * _UNEVEN, 4 * _UNEVEN)
            across = stretch * signs * vectors[another, features].astype(np.float64)
        else:
            # Along gaps that there are: to change all features of text at once would be unlike it.
            across = np.subtract(vectors, np.roll(vectors, 1, axis=0), dtype=np.float64)
            for steps, sign in ((away, 1.0), (across, -1.0)):
                still = ~steps.any(axis=1)  # equal vectors
                steps[still] = sign * np.where(vectors.any(), vectors[still], 1.0)
                steps /= np.abs(steps).max(axis=1, initial=0.0, keepdims=True)
                steps *= stretch / lengths(steps, vectors)[:, np.newaxis]
        for steps in (away, across):
            steps += vectors
            # There is no number where a metric leaves a feature out.
            held = np.abs(steps) <= np.finfo(np.float32).max
            np.copyto(steps, vectors, where=~held)
    return away, across


def keeps_digits(found: Array, exact: Array, groups: Sequence[slice]) -> bool:
    """Return whether scores are near enough to the exact ones.

    Parameters
    ----------
    found, exact : ndarray of shape (n_rows, n_outputs)
    groups : sequence of slice
        Rows that are judged by the largest score among them: those that are further out may have
        far larger ones.
    """
    with np.errstate(invalid="ignore"):
        losses = np.abs(found - exact)
    return all(
        losses[group].max(initial=0.0)
        <= SINGLE_PRECISION_LOSS * np.abs(exact[group]).max(initial=0.0)
        for group in groups
    )

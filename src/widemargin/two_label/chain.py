"""A chain of levels and a threshold between each two: copies of rows, and how scores answer.

``t`` of a row and the threshold below level g is 1 if the row is on level g or above, else -1.
Score plus shift is positive above the threshold, so that shifts fall along the chain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import isotonic_regression

from widemargin.readouts import Readout
from widemargin.two_label.levels import LevelRows

Array: TypeAlias = npt.NDArray[Any]

# A row on a threshold that two labels share has the second: no row is without any label.
_BARELY_BELOW = -float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Copies:
    """What a solver learns of rows: signs, caps, and what they belong to.

    Attributes
    ----------
    signs : array of int8 of shape (n_copies, n_rows)
    caps : array of shape (n_copies, n_rows)
    thresholds : tuple of int
        By copy.
    machines : tuple of int
        By threshold.
    """

    signs: npt.NDArray[np.int8]
    caps: Array
    thresholds: tuple[int, ...]
    machines: tuple[int, ...]


@dataclass(frozen=True)
class Answer:
    """Scores as affine functions of kernel values, and how they are read.

    Attributes
    ----------
    coef : array of shape (n_basis, n_outputs)
    intercept : array of shape (n_outputs,)
    readout : Readout
    """

    coef: Array
    intercept: Array
    readout: Readout


def signed(is_above: npt.NDArray[np.bool_]) -> npt.NDArray[np.int8]:
    """Return 1 where something holds, else -1."""
    return np.where(is_above, 1, -1).astype(np.int8)


def chain_copies(data: LevelRows) -> Copies:
    """Return a copy of each row for each threshold, all of one machine."""
    above = [data.levels >= level for level in range(1, data.n_levels)]
    caps = [data.label_caps(0), data.label_caps(1)] if data.has_labels else [data.caps] * len(above)
    numbers = tuple(range(len(above)))
    return Copies(
        np.stack([signed(each) for each in above]), np.stack(caps), numbers, (0,) * len(above)
    )


def in_order(shifts: Array) -> Array:
    """Return the shifts nearest to these that fall: those out of order share their mean."""
    return np.asarray(isotonic_regression(shifts, increasing=False))


def chain_answer(column: Array, shifts: Array, data: LevelRows) -> Answer:
    """Return scores whose answer is the level that a score is on.

    Two labels: the score for the first, and against the second. Two classes: the score itself.
    More: level g has g times the score, plus the shifts below it, so that each level beats the one
    below where the score is above the threshold between.
    """
    shifts = in_order(shifts)
    if data.has_labels:
        return label_answer(column, shifts[0], -shifts[1], data)
    if data.n_levels == 2:
        return Answer(column[:, np.newaxis], shifts, Readout.of_classes(data.classes))
    steps = np.arange(data.n_levels, dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(shifts)])
    return Answer(np.outer(column, steps), sums, Readout.of_classes(data.classes))


def label_answer(column: Array, first: float, second: float, data: LevelRows) -> Answer:
    """Return scores of two labels, the one rising with a score and the other falling.

    Parameters
    ----------
    column : array of shape (n_basis,)
    first, second : float
        Intercepts; at least one score is positive everywhere if their sum is.
    data : LevelRows
        A label that all its rows have is always answered.
    """
    coef, intercept = np.stack([column, -column], axis=1), np.array([first, second])
    assert data.constant is not None
    coef[:, data.constant > 0] = 0.0
    intercept[data.constant > 0] = 1.0
    touching = None if first + second > 0 else np.array([0.0, _BARELY_BELOW])
    return Answer(coef, intercept, Readout(data.classes, "multilabel", thresholds=touching))

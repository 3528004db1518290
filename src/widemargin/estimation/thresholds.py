"""Thresholds of labels: where a score becomes a label, chosen by rows that are held out.

Source: Fan and Lin, "A Study on Threshold Selection for Multi-label Classification" (2007), whose
SVM.1 with the rule of Lewis et al. (2004) against labels that are too rare (fbr) this is; by F of
each label, or by micro F with one label after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]

#: What thresholds may be chosen for.
METRICS = ("macro", "micro")

#: Folds in which rows are held out.
N_FOLDS = 3

_TOO_RARE = 0.1  # F up to which a label is not told at all: its threshold is its highest score
_MOST_SWEEPS = 10  # over all labels, of micro F


class HeldOut(NamedTuple):
    """Rows of a fold, scored by a machine that was fitted to the others."""

    scores: Array
    indicator: Any
    weights: Array


def label_folds(
    indicator: Any, used: Places, seed: int, n_folds: int = N_FOLDS
) -> list[tuple[Places, Places]]:
    """Return row numbers to learn from and to judge by; rare labels are dealt out evenly.

    Parameters
    ----------
    indicator : ndarray or CSR matrix of shape (n_rows, n_labels)
    used : ndarray of int
        The rows that count.
    seed : int
    n_folds : int, default=3
    """
    shuffled = np.random.RandomState(seed).permutation(used)
    part = sp.csr_matrix(indicator[shuffled])
    part.eliminate_zeros()
    frequency = np.bincount(part.indices, minlength=part.shape[1])
    # By the rarest label that a row has; rows without any come last, together.
    rarest = np.full(len(shuffled), part.shape[1])
    by_frequency = np.argsort(np.argsort(frequency, kind="stable"), kind="stable")
    rows_of_entries = np.repeat(np.arange(len(shuffled)), np.diff(part.indptr))
    np.minimum.at(rarest, rows_of_entries, by_frequency[part.indices])
    dealt = np.empty(len(shuffled), dtype=np.intp)
    dealt[np.argsort(rarest, kind="stable")] = np.arange(len(shuffled)) % n_folds
    parts = [np.sort(shuffled[dealt == fold]) for fold in range(n_folds)]
    return [(np.sort(shuffled[dealt != fold]), parts[fold]) for fold in range(n_folds)]


def best_thresholds(scores: Array, indicator: Any, weights: Array, metric: str) -> Array:
    """Return a threshold for each label, by the scores of rows that were held out.

    A label is on where its score is above. 0 is left only for something better. Where the F of a
    label stays at 0.1 or below, what would be chosen is luck, and its threshold is its highest
    score: it is told of no row.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_labels)
    indicator : ndarray or sparse matrix of shape (n_rows, n_labels)
    weights : ndarray of shape (n_rows,)
    metric : {"macro", "micro"}
        F of each label by itself, the mean of which is macro F; or that of all labels together.
    """
    columns = sp.csc_matrix(indicator) if sp.issparse(indicator) else np.asarray(indicator)
    cuts = [
        _Cuts(scores[:, label], label_column(columns, label), weights)
        for label in range(scores.shape[1])
    ]
    found = np.zeros(len(cuts), dtype=np.intp)
    if metric == "macro":
        for label, cut in enumerate(cuts):
            found[label] = cut.best(0.0, 0.0)
    else:
        totals = np.array([cut.counts(0) for cut in cuts])
        for _ in range(_MOST_SWEEPS):
            before = found.copy()
            for label, cut in enumerate(cuts):
                others = totals.sum(axis=0) - totals[label]
                found[label] = cut.best(*others)
                totals[label] = cut.counts(int(found[label]))
            if np.array_equal(before, found):
                break
    return np.array([cut.threshold(int(place)) for cut, place in zip(cuts, found, strict=True)])


def label_column(columns: Any, label: int) -> npt.NDArray[np.bool_]:
    """Return which rows have a label, of an array or a CSC matrix of indicators."""
    if not sp.issparse(columns):
        return np.asarray(columns[:, label] > 0)
    own = np.zeros(columns.shape[0], dtype=bool)
    start, end = columns.indptr[label], columns.indptr[label + 1]
    own[columns.indices[start:end]] = columns.data[start:end] > 0
    return own


class _Cuts:
    """The thresholds that tell the rows of one label apart, 0 being the first of them.

    Then come, rising: one below all scores, those between two scores, and the highest score.
    ``right`` are the weights of rows that are told the label and have it, ``told`` of all that are
    told it.
    """

    def __init__(self, scores: Array, own: npt.NDArray[np.bool_], weights: Array) -> None:
        order = np.argsort(scores, kind="stable")
        ranked = scores[order].astype(np.float64)
        has, all_ = weights[order] * own[order], weights[order]
        above = np.cumsum(np.append(0.0, has[::-1]))[::-1], np.cumsum(np.append(0.0, all_[::-1]))
        rises = np.append(ranked[1:] > ranked[:-1], True)
        places = np.append(0, 1 + np.flatnonzero(rises))
        lowest = np.nextafter(ranked[0], -np.inf)
        between = ranked[:-1] + (ranked[1:] - ranked[:-1]) / 2
        # Rounding may bring the middle up to the score above, which must stay above.
        between = np.where(between < ranked[1:], between, ranked[:-1])
        values = np.concatenate([[lowest], between, [ranked[-1]]])[places]
        at_zero = np.searchsorted(ranked, 0.0, side="right")
        self._values = np.append(0.0, values)
        self._right = np.append(above[0][at_zero], above[0][places])
        told = above[1][::-1]
        self._told = np.append(told[at_zero], told[places])
        self._has = float(above[0][0])
        self._highest = float(ranked[-1])

    def counts(self, place: int) -> tuple[float, float]:
        """Return twice what is right, and what is told plus what should be."""
        return 2.0 * float(self._right[place]), float(self._told[place]) + self._has

    def best(self, right: float, all_: float) -> int:
        """Return the place of the highest F, together with that of other labels."""
        F = _ratio(right + 2.0 * self._right, all_ + self._told + self._has)
        best = len(F) - 1 - int(np.argmax(F[::-1]))  # the highest threshold of equally good ones
        return best if F[best] > F[0] else 0

    def threshold(self, place: int) -> float:
        """Return the threshold of a place, or the highest score where the label is too rare."""
        F = _ratio(*(np.array([part]) for part in self.counts(place)))[0]
        return float(self._values[place]) if F > _TOO_RARE else self._highest


def _ratio(above: Array, below: Array) -> Array:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)

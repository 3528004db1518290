"""Which classes are answered: those that were never seen, or all, with a margin between them.

A machine that has rows of the seen classes prefers these wherever it may answer them too. So their
scores are lowered by a margin, which is chosen as if some of the seen classes were unseen
(calibrated stacking: Chao, Changpinyo, Gong and Sha, "An Empirical Study and Analysis of
Generalized Zero-Shot Learning for Object Recognition in the Wild", ECCV 2016).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._system.parameters import check_choice, check_real
from widemargin.kernels import Rows
from widemargin.rows import canonical_rows, validated_data
from widemargin.zero_shot.signatures import Signatures

Array: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]

N_FOLDS = 4
_HELD_OUT = 4  # one row in so many of the classes that count as seen
_MARGINS = 400  # that are tried


def harmonic_mean_accuracy(y_true: Any, y_pred: Any, seen_classes: Any) -> float:
    """Return the harmonic mean of the accuracies on seen and on unseen classes.

    Either is the mean accuracy of its classes, so that large ones count no more than small ones.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        What is right.
    y_pred : array-like of shape (n_samples,)
        What was answered.
    seen_classes : array-like
        The classes that training rows had.

    Returns
    -------
    score : float
        0 where ``y_true`` has only classes of one kind.

    Examples
    --------
    >>> from widemargin.zero_shot import harmonic_mean_accuracy
    >>> harmonic_mean_accuracy(["cat", "cat", "okapi"], ["cat", "okapi", "okapi"], ["cat"])
    0.6666666666666666
    """
    truth, answers = np.asarray(y_true), np.asarray(y_pred)
    is_right = truth == answers
    is_seen = np.isin(truth, np.asarray(seen_classes))
    return _harmonic_mean(
        *(
            _mean_over_classes(is_right[some].astype(np.float64), truth[some])
            for some in (is_seen, ~is_seen)
        )
    )


def _harmonic_mean(one: float, other: float) -> float:
    return 2.0 * one * other / (one + other) if one + other > 0 else 0.0


def _mean_over_classes(values: Array, classes: Array) -> float:
    """Return the mean of the means of each class; 0 where there are none."""
    if not len(classes):
        return 0.0
    _, numbers = np.unique(classes, return_inverse=True)
    return float(np.mean(np.bincount(numbers, values) / np.bincount(numbers)))


@dataclass(frozen=True)
class ClassFold:
    """A machine that saw some of the seen classes, and rows that it did not see.

    Attributes
    ----------
    seen, unseen : ndarray of int
        Classes that the machine was fitted to, and those that it was not: places in signatures.
    rows : array or CSR matrix
    truth : ndarray of int
        Their classes.
    machine : object
        What was fitted.
    """

    seen: Places
    unseen: Places
    rows: Rows
    truth: Places
    machine: Any


class KnowsSignatures(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """A classifier of classes that have signatures, whether it has seen rows of them or not."""

    signatures: Any
    class_names: Any
    candidates: str
    seen_margin: Any
    random_state: Any

    @abstractmethod
    def _fit_to(self, rows: Rows, places: Places, weights: Array | None) -> Any:
        """Return what is fitted to rows of these classes, places in the signatures."""

    @abstractmethod
    def _scores_by(self, machine: Any, rows: Rows) -> Array:
        """Return the score of every class that has a signature."""

    @abstractmethod
    def _is_pairwise(self) -> bool:
        """Return whether rows are kernel values with all training rows."""

    def _check_candidates(self) -> None:
        check_choice("candidates", self.candidates, ("unseen", "all"))
        if isinstance(self.seen_margin, str):
            check_choice("seen_margin", self.seen_margin, ("tuned",), ", or a number")
        else:
            check_real("seen_margin", self.seen_margin)

    def _set_candidates(self, known: Signatures, seen: Places) -> None:
        """Set what is said of classes, given those of the training rows."""
        every = np.arange(len(known.class_names))
        unseen = np.setdiff1d(every, seen)
        if self.candidates == "unseen" and not len(unseen):
            raise ValueError(
                "All classes of signatures have training rows, so that none is left to answer. "
                "Give the signatures of the unseen classes too, or set candidates='all'."
            )
        self._places = unseen if self.candidates == "unseen" else every
        self.seen_classes_ = known.class_names[seen]
        self.unseen_classes_ = known.class_names[unseen]
        self.classes_ = known.class_names[self._places]
        known.warn_of_twins(self._places)

    def _validated(self, X: Any, *, reset: bool) -> Rows:
        return canonical_rows(validated_data(self, X, reset=reset))

    def _folds(
        self, rows: Rows, places: Places, weights: Array | None, why: str
    ) -> Iterator[ClassFold]:
        """Yield machines that saw some of the seen classes, and rows that they did not see."""
        seen = np.unique(places)
        if len(seen) < N_FOLDS:
            raise ValueError(
                f"{why} holds out classes in turn, for which {N_FOLDS} seen classes or more are "
                f"needed; there are {len(seen)}."
            )
        random = check_random_state(self.random_state)
        order = random.permutation(seen)
        is_kept = random.randint(_HELD_OUT, size=len(places)) > 0
        for number in range(N_FOLDS):
            unseen = np.sort(order[number::N_FOLDS])
            others = np.setdiff1d(seen, unseen)
            is_unseen = np.isin(places, unseen)
            train = np.flatnonzero(~is_unseen & is_kept)
            test = np.flatnonzero(is_unseen | ~is_kept)
            some = None if weights is None else weights[train]
            machine = self._fit_to(self._part(rows, train, train), places[train], some)
            yield ClassFold(others, unseen, self._part(rows, test, train), places[test], machine)

    def _part(self, rows: Rows, some: Places, columns: Places) -> Rows:
        """Return some rows; of a kernel matrix, their values with the rows of ``columns``."""
        return rows[some][:, columns] if self._is_pairwise() else rows[some]

    def _margin(self, folds: list[ClassFold]) -> float:
        """Return the margin of the best harmonic mean over folds."""
        leads, judged = [], []
        for fold in folds:
            scores = self._scores_by(fold.machine, fold.rows)
            best_seen, best_unseen = (
                some[np.argmax(scores[:, some], axis=1)] for some in (fold.seen, fold.unseen)
            )
            each = np.arange(len(scores))
            lead = scores[each, best_seen] - scores[each, best_unseen]
            is_unseen = np.isin(fold.truth, fold.unseen)
            leads.append(lead)
            judged.append((lead, is_unseen, best_seen, best_unseen, fold.truth))
        tried = np.unique(np.quantile(np.concatenate(leads), np.linspace(0, 1, _MARGINS)))
        found = [[_fold_score(margin, *each) for margin in tried] for each in judged]
        means = np.mean(found, axis=0)
        return float(tried[np.argmax(means)])

    def decision_function(self, X: Any) -> Array:
        """Return the score of each candidate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_candidates)
            In the order of ``classes_``; those of seen classes are lowered by ``seen_margin_``.
        """
        check_is_fitted(self)
        scores = self._scores_by(self._machine, self._validated(X, reset=False))
        scores[:, self._is_seen] -= self.seen_margin_
        return np.ascontiguousarray(scores[:, self._places])

    def predict(self, X: Any) -> Array:
        """Return the candidate of the highest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        return np.asarray(self.classes_[np.argmax(self.decision_function(X), axis=1)])

    def _tunes_margin(self) -> bool:
        return self.candidates == "all" and isinstance(self.seen_margin, str)

    def _finish(
        self, machine: Any, known: Signatures, places: Places, folds: list[ClassFold]
    ) -> Self:
        """Keep what was fitted, with a margin that is chosen by folds where it is tuned."""
        self._machine = machine
        self._is_seen = np.isin(np.arange(len(known.class_names)), places)
        if self._tunes_margin() and len(places):
            self.seen_margin_ = self._margin(folds)
        else:  # no class is lowered where no seen one is answered
            is_given = self.candidates == "all" and len(places) > 0
            self.seen_margin_ = float(self.seen_margin) if is_given else 0.0
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machine")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_pairwise()
        return tags


def _fold_score(
    margin: float,
    lead: Array,
    is_unseen: Array,
    best_seen: Places,
    best_unseen: Places,
    truth: Places,
) -> float:
    """Return the harmonic mean where seen classes need a lead above this margin."""
    answers = np.where(lead > margin, best_seen, best_unseen)
    is_right = (answers == truth).astype(np.float64)
    return _harmonic_mean(
        *(_mean_over_classes(is_right[some], truth[some]) for some in (~is_unseen, is_unseen))
    )


def is_table(y: Any) -> bool:
    """Return whether y has columns: the attributes of each row, instead of its class."""
    return sp.issparse(y) or np.ndim(y) == 2

"""More than two labels, by machines of two: one for each pair, whose answers are votes."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from widemargin._system.parameters import check_integer, check_jobs
from widemargin.estimation.fitting import restored_on_error
from widemargin.estimation.labels import why_no_table
from widemargin.estimation.targets import LabelTargets
from widemargin.estimation.weights import checked_weights
from widemargin.kernels import Rows
from widemargin.priors import names_of
from widemargin.rows import check_kernel_matrix, validated_data

Array: TypeAlias = npt.NDArray[Any]


class PairwiseMultiLabel(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Any number of labels, by a machine of two labels for each pair of them.

    The machine of a pair learns from the rows that have at least one of its two labels, and answers
    one of them or both: a vote for each. A label that a row has should win the votes of all pairs
    that it is in, and one that it lacks loses at least those against labels that the row has. So
    the labels of a row are those with the most votes, and those with up to ``slack`` fewer; every
    row has one at the least. Of two labels the answer is that of the machine itself.

    Parameters
    ----------
    estimator : estimator
        A machine of two labels: :class:`widemargin.ParallelSVM`, :class:`widemargin.SequentialSVM`,
        :class:`widemargin.CrossTrainingSVM`, or any other that takes indicator matrices.
    slack : int, default=0
        By how many votes a label may be behind the first.
    n_jobs : int, default=None
        Pairs that are fitted, or asked, at the same time, in threads. None is 1, -1 all cores.

    Attributes
    ----------
    classes_ : ndarray of shape (n_labels,)
        The labels, in the order of the columns of Y: their names where Y is a data frame, else
        their numbers.
    pairs_ : list of tuple
        The places of the two labels of each machine in ``classes_``.
    estimators_ : list
        The machine of each pair; None where its rows all have the same of the two labels, so that
        nothing can be learned.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has feature names that are all strings.

    See Also
    --------
    KernelMultiLabelClassifier : A score for each label, and rows that may have none.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from widemargin import ParallelSVM
    >>> from widemargin.two_label import PairwiseMultiLabel
    >>> X, Y = make_multilabel_classification(n_classes=4, allow_unlabeled=False, random_state=0)
    >>> PairwiseMultiLabel(ParallelSVM(C=10)).fit(X, Y).predict(X).shape
    (100, 4)
    """

    def __init__(self, estimator: Any, *, slack: int = 0, n_jobs: int | None = None) -> None:
        self.estimator = estimator
        self.slack = slack
        self.n_jobs = n_jobs

    @restored_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn a machine for each pair of labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; the kernel matrix if the estimator takes one.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            1 where a row has a label, else 0. Rows without any label teach no pair.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there.

        Returns
        -------
        self : PairwiseMultiLabel
        """
        check_integer("slack", self.slack, least=0)
        check_jobs(self.n_jobs)
        if y is not None and (reason := why_no_table(y)) is not None:
            validated_data(self, X, reset=True)  # what is wrong with the rows comes first
            raise ValueError(reason)
        names = names_of(y)
        X, checked = validated_data(self, X, y, reset=True, several=True)
        if self._is_pairwise():
            check_kernel_matrix(X)
        targets = LabelTargets.of(checked, names=names)
        if targets.n_outputs < 2:
            raise ValueError("y has one label, and pairs need two or more.")
        weights = None if sample_weight is None else checked_weights(sample_weight, X)
        indicator = targets.indicator
        has = np.asarray(indicator.toarray() if sp.issparse(indicator) else indicator, dtype=bool)
        counted = has if weights is None else has & (weights > 0)[:, np.newaxis]
        if not counted.any():
            raise ValueError("No row of positive weight has a label; there is nothing to learn.")
        pairs = list(combinations(range(targets.n_outputs), 2))
        found = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_fit_pair)(self.estimator, X, counted[:, pair], weights, self._is_pairwise())
            for pair in pairs
        )
        self.classes_, self.pairs_ = targets.classes, pairs
        self.estimators_ = [machine for machine, _, _ in found]
        self._rows = [rows for _, rows, _ in found]
        self._always = [answer for _, _, answer in found]
        return self

    def decision_function(self, X: Any) -> Array:
        """Return the votes for each label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        votes : ndarray of shape (n_samples, n_labels)
            From 0 to n_labels - 1.
        """
        check_is_fitted(self)
        rows = validated_data(self, X, reset=False, ensure_min_samples=0)
        answers = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(_ask_pair)(machine, rows[:, places] if self._is_pairwise() else rows, always)
            for machine, places, always in zip(
                self.estimators_, self._rows, self._always, strict=True
            )
        )
        votes = np.zeros((rows.shape[0], len(self.classes_)))
        for pair, answer in zip(self.pairs_, answers, strict=True):
            votes[:, pair] += answer
        return votes

    def predict(self, X: Any) -> Array:
        """Return the labels of each row: those with the most votes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        Y : ndarray of shape (n_samples, n_labels)
            1 where a row has the label, else 0.
        """
        votes = self.decision_function(X)
        most = votes.max(axis=1, keepdims=True, initial=0.0)
        return np.asarray(votes >= most - self.slack).astype(np.int64)

    def _is_pairwise(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.pairwise)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        tags.input_tags.pairwise = self._is_pairwise()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


def _fit_pair(
    estimator: Any, X: Rows, has: Array, weights: Array | None, is_pairwise: bool
) -> tuple[Any, npt.NDArray[np.intp], Array]:
    """Return the machine of a pair, the rows that it has learned from, and what it always answers.

    The machine is None where rows do not differ, and then the answer is that of all of them.
    """
    rows = np.flatnonzero(has.any(axis=1))
    labels = has[rows].astype(np.int64)
    if len(np.unique(labels, axis=0)) < 2:
        return None, rows, labels[0] if len(rows) else np.zeros(2, dtype=np.int64)
    own = X[rows][:, rows] if is_pairwise else X[rows]
    given = {} if weights is None else {"sample_weight": weights[rows]}
    return clone(estimator).fit(own, labels, **given), rows, labels[0]


def _ask_pair(machine: Any, rows: Rows, always: Array) -> Array:
    if machine is None:
        return np.broadcast_to(always, (rows.shape[0], 2))
    return np.asarray(machine.predict(rows))

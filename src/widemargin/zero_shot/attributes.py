"""Unseen classes by their attributes, which any classifier of label sets has learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array

from widemargin._system.parameters import check_choice, check_integer
from widemargin._system.warnings import warn_user
from widemargin.estimation.calibration import sigmoids
from widemargin.estimation.fitting import restored_on_error
from widemargin.kernels import Rows
from widemargin.rows import canonical_rows, validated_data
from widemargin.zero_shot.candidates import ClassFold, KnowsSignatures, Places, is_table
from widemargin.zero_shot.signatures import Signatures, standardised, unit_rows

Array: TypeAlias = npt.NDArray[Any]

RULES = ("correlation", "probabilistic")
_LEAST_PROBABILITY = 1e-6  # so that one attribute cannot rule out a class by itself


@dataclass(frozen=True)
class _Attributes:
    """What was learned of attributes.

    Attributes
    ----------
    estimator : estimator
        A classifier of labels, fitted.
    columns : ndarray of shape (n_labels,)
        Which of all labels were learned: those that vary among its classes.
    labels : ndarray of shape (n_classes, n_labels)
        Which classes have these.
    mean : ndarray of shape (n_labels,)
        Of the scores of training rows.
    share : ndarray of shape (n_labels,)
        Of the seen classes that have a label.
    """

    estimator: Any
    columns: npt.NDArray[np.intp]
    labels: Array
    mean: Array
    share: Array


class AttributeZeroShotClassifier(
    MetaEstimatorMixin,  # type: ignore[misc]  # untyped
    KnowsSignatures,
):
    """Classes without training rows, by the attributes that a classifier of labels finds in a row.

    A class is known by its signature: the attributes that it has, or how much of each. From rows of
    other classes, the seen ones, a classifier of label sets learns the attributes. A new row is
    given the class whose signature fits best what that classifier says of it.

    Parameters
    ----------
    estimator : estimator
        Any classifier of label sets with a ``decision_function``, such as
        :class:`~widemargin.KernelMultiLabelClassifier`. A copy is fitted.
    signatures : array-like of shape (n_classes, n_attributes)
        A row for each class, seen or not: 0 and 1, or graded values, larger for more. The columns
        of a DataFrame name the attributes, its index names the classes.
    class_names : array-like of shape (n_classes,), default=None
        Names of the classes, as ``y`` has them. By default the index of ``signatures``, or numbers.
    rule : {"correlation", "probabilistic"}, default="correlation"
        How a signature is compared with the scores of a row. "correlation" is the cosine between
        the scores, about their mean over training rows, and the standardised signature.
        "probabilistic" takes attributes as independent, given the class, and compares the
        likelihood (direct attribute prediction, DAP). It needs probabilities: those of the
        estimator, or sigmoids of its scores, fitted to classes that are held out in turn.
    n_levels : int, default=3
        Labels that are made of a graded attribute. They divide its range evenly, and a class has
        the labels of all points that it lies above. An attribute of two values is one label.
    candidates : {"unseen", "all"}, default="unseen"
        Which classes are answered. With "all" (generalised zero-shot learning) scores of seen
        classes are lowered by a margin.
    seen_margin : "tuned" or float, default="tuned"
        That margin. "tuned" holds out classes in turn and takes the one with the best harmonic mean
        of accuracies on seen and on unseen classes. It means nothing without ``candidates="all"``.
    random_state : int, RandomState instance or None, default=0
        Which classes are held out together.

    Attributes
    ----------
    estimator_ : estimator
        The classifier of attributes.
    classes_ : ndarray of shape (n_candidates,)
        The candidates, in the order of ``signatures``.
    seen_classes_, unseen_classes_ : ndarray
        Classes with training rows, and those without.
    seen_margin_ : float
        By how much scores of seen classes are lowered.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names.

    References
    ----------
    Lampert, Nickisch and Harmeling, "Learning To Detect Unseen Object Classes by Between-Class
    Attribute Transfer", CVPR 2009. Hariharan, Vishwanathan and Varma, "Efficient max-margin
    multi-label classification with applications to zero-shot learning", Machine Learning 88, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import KernelMultiLabelClassifier
    >>> from widemargin.zero_shot import AttributeZeroShotClassifier
    >>> signatures = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> names = ["horse", "tiger", "duck", "zebra", "pegasus", "griffin"]
    >>> rng = np.random.RandomState(0)
    >>> y = rng.choice(names[:5], 200)
    >>> rows = np.array(signatures)[[names.index(name) for name in y]]
    >>> X = rows + 0.1 * rng.randn(200, 3)
    >>> attributes = KernelMultiLabelClassifier(kernel="linear")
    >>> machine = AttributeZeroShotClassifier(attributes, signatures, names).fit(X, y)
    >>> machine.predict([[0.1, 0.9, 1.1]]).tolist()
    ['griffin']
    """

    def __init__(
        self,
        estimator: Any,
        signatures: Any,
        class_names: Any = None,
        *,
        rule: str = "correlation",
        n_levels: int = 3,
        candidates: str = "unseen",
        seen_margin: Any = "tuned",
        random_state: Any = 0,
    ) -> None:
        self.estimator = estimator
        self.signatures = signatures
        self.class_names = class_names
        self.rule = rule
        self.n_levels = n_levels
        self.candidates = candidates
        self.seen_margin = seen_margin
        self.random_state = random_state

    @restored_on_error
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn attributes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The class of each row, which has the attributes of its signature. Or the attributes of
            each row, 0 or 1: then no class counts as seen.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        check_choice("rule", self.rule, RULES)
        check_integer("n_levels", self.n_levels, least=1)
        self._check_candidates()
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "decision_function"):
            raise TypeError(
                "estimator must be a classifier of label sets with a decision_function; got "
                f"{self.estimator!r}."
            )
        self._known = Signatures.of(self.signatures, self.class_names)
        if is_table(y):
            return self._fit_table(X, y, sample_weight)
        X, y = validated_data(self, X, y, reset=True)
        rows = canonical_rows(X)
        weights = None if sample_weight is None else np.asarray(sample_weight)
        places = self._known.places_of(y)
        self._set_candidates(self._known, np.unique(places))
        self._labels, self._attributes = self._known.levels(self.n_levels)
        self._warn_of_constant(np.unique(places))
        machine = self._fit_to(rows, places, weights)
        needs_sigmoids = self.rule == "probabilistic" and not _gives_probabilities(machine)
        self._sigmoids: tuple[Array, Array] | None = None
        folds: list[ClassFold] = []
        if self._tunes_margin() or needs_sigmoids:
            why = "rule='probabilistic'" if needs_sigmoids else "seen_margin='tuned'"
            folds = list(self._folds(rows, places, weights, why))
        if needs_sigmoids:
            self._sigmoids = self._fit_sigmoids(folds)
        self.estimator_ = machine.estimator
        return self._finish(machine, self._known, places, folds)

    def _fit_table(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Learn from the attributes of each row; no class is seen."""
        self._known.check_attributes(y, np.shape(y)[1])
        if self.rule == "probabilistic" and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                "rule='probabilistic' needs probabilities, which are fitted to classes that are "
                "held out in turn; y has attributes and no classes. Give the classes of the rows, "
                "an estimator with predict_proba, or set rule='correlation'."
            )
        none = np.array([], dtype=np.intp)
        self._set_candidates(self._known, none)
        self._labels, self._attributes = self._known.levels(1)
        rows = self._validated(X, reset=True)
        Y = check_array(y, accept_sparse="csr")[:, self._attributes]
        self._sigmoids = None
        machine = self._learned(rows, Y, np.arange(Y.shape[1]), sample_weight)
        self.estimator_ = machine.estimator
        return self._finish(machine, self._known, none, [])

    def _fit_to(self, rows: Rows, places: Places, weights: Array | None) -> _Attributes:
        seen = self._labels[np.unique(places)]
        varies = np.flatnonzero(seen.min(axis=0) < seen.max(axis=0))
        if not len(varies):
            raise ValueError(
                "The seen classes have the same attributes, so that there is nothing to learn."
            )
        return self._learned(rows, self._labels[places][:, varies], varies, weights)

    def _learned(
        self, rows: Rows, Y: Any, columns: npt.NDArray[np.intp], weights: Any
    ) -> _Attributes:
        estimator = clone(self.estimator)
        given = {} if weights is None else {"sample_weight": weights}
        estimator.fit(rows, Y.astype(np.int64), **given)
        mean = np.average(_scores_of(estimator, rows), axis=0, weights=weights)
        share = np.asarray(Y.mean(axis=0), dtype=np.float64).ravel()
        return _Attributes(estimator, columns, self._labels[:, columns], mean, share)

    def _scores_by(self, machine: _Attributes, rows: Rows) -> Array:
        if self.rule == "correlation":
            scores = _scores_of(machine.estimator, rows) - machine.mean
            return np.asarray(unit_rows(scores) @ unit_rows(standardised(machine.labels)).T)
        on = self._probabilities(machine, rows)
        share = np.clip(machine.share, 0.01, 0.99)  # an attribute may be one that all have
        has = np.log(on) - np.log(share)
        has_not = np.log1p(-on) - np.log1p(-share)
        # The mean over attributes: a margin then means the same whatever their number.
        either = has @ machine.labels.T + has_not @ (1.0 - machine.labels).T
        return np.asarray(either / machine.labels.shape[1])

    def _probabilities(self, machine: _Attributes, rows: Rows) -> Array:
        if _gives_probabilities(machine):
            on = np.asarray(machine.estimator.predict_proba(rows), dtype=np.float64)
        else:
            assert self._sigmoids is not None
            slope, shift = (each[machine.columns] for each in self._sigmoids)
            scores = _scores_of(machine.estimator, rows) - machine.mean
            on = 1.0 / (1.0 + np.exp(-np.clip(slope * scores + shift, -30.0, 30.0)))
        return np.clip(on, _LEAST_PROBABILITY, 1.0 - _LEAST_PROBABILITY)

    def _fit_sigmoids(self, folds: list[ClassFold]) -> tuple[Array, Array]:
        """Return slopes and shifts by which scores become probabilities, one for each label.

        They are fitted to rows of classes that the machine of a fold has not seen. A label that no
        fold can judge has probability 1/2.
        """
        n_labels = self._labels.shape[1]
        scores: list[list[Array]] = [[] for _ in range(n_labels)]
        truths: list[list[Array]] = [[] for _ in range(n_labels)]
        for fold in folds:
            machine: _Attributes = fold.machine
            is_new = np.isin(fold.truth, fold.unseen)
            found = (_scores_of(machine.estimator, fold.rows) - machine.mean)[is_new]
            truth = self._labels[fold.truth[is_new]]
            for column, place in enumerate(machine.columns):
                scores[place].append(found[:, column])
                truths[place].append(truth[:, place])
        slope, shift = np.zeros(n_labels), np.zeros(n_labels)
        for place in range(n_labels):
            if not scores[place]:
                continue
            found, truth = np.concatenate(scores[place]), np.concatenate(truths[place])
            if 0 < truth.sum() < len(truth):
                both = sigmoids(found[:, np.newaxis], truth[:, np.newaxis], np.ones(len(truth)))
                slope[place], shift[place] = both[:, 0]
        return slope, shift

    def _warn_of_constant(self, seen: Places) -> None:
        """Warn of attributes in which the classes differ, but not the seen ones."""
        own = self._labels[seen]
        varies = own.min(axis=0) < own.max(axis=0)
        constant = np.setdiff1d(self._attributes, self._attributes[varies])
        if len(constant):
            warn_user(
                f"{len(constant)} attributes cannot be learned, since the seen classes do not "
                f"differ in them: {self._known.name_attributes(constant)}."
            )

    def _is_pairwise(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.pairwise)


def _gives_probabilities(machine: _Attributes) -> bool:
    return hasattr(machine.estimator, "predict_proba")


def _scores_of(estimator: Any, rows: Rows) -> Array:
    scores = np.asarray(estimator.decision_function(rows), dtype=np.float64)
    return scores.reshape(len(scores), -1)

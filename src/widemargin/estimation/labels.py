"""What classifiers of label sets share: checks of Y, weights of labels, thresholds, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state, get_tags

from widemargin._system.file_changes import Added, Change
from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin._system.warnings import silence, warn_user
from widemargin.estimation.base import BaseClassifier
from widemargin.estimation.calibration import calibrated
from widemargin.estimation.targets import LabelTargets
from widemargin.estimation.thresholds import (
    METRICS,
    N_FOLDS,
    HeldOut,
    best_thresholds,
    label_folds,
)
from widemargin.estimation.weights import check_largest, checked_weights
from widemargin.kernels import Rows
from widemargin.priors import LabelPrior, as_prior, names_of
from widemargin.readouts import Link, Readout
from widemargin.rows import canonical_rows, validated_data

Array: TypeAlias = npt.NDArray[Any]

_NAMED = 5  # labels that a message names
_SCORES_AT_ONCE = 1 << 22  # entries of a block of scores that is made sparse


@dataclass(frozen=True)
class LabelRows:
    """Rows with any number of labels to learn from, checked.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_rows, n_features)
    targets : LabelTargets
        Of all labels, those that are constant too.
    weights : ndarray of shape (n_rows,)
        ``sample_weight``, or ones.
    caps : ndarray of shape (n_rows,)
        C times the weight of each row.
    with_label, without_label : ndarray of shape (n_labels,)
        What ``class_weight`` makes of that: row i counts ``caps[i] * with_label[l]`` for a label l
        that it has, ``caps[i] * without_label[l]`` for one that it has not.
    constant : ndarray of shape (n_labels,)
        1 for labels that all rows of positive weight have, -1 for those that none has, else 0.
        Only labels with 0 are to be learned.
    """

    rows: Rows
    targets: LabelTargets
    weights: Array
    caps: Array
    with_label: Array
    without_label: Array
    constant: npt.NDArray[np.int8]

    @cached_property
    def learned(self) -> npt.NDArray[np.intp]:
        """Numbers of the labels that are to be learned."""
        return np.flatnonzero(self.constant == 0)

    @cached_property
    def learned_targets(self) -> LabelTargets:
        """Targets of the labels that are to be learned."""
        if len(self.learned) == self.targets.n_outputs:
            return self.targets
        return self.targets.take_labels(self.learned)

    @property
    def targets_vary(self) -> bool:
        """Whether there is anything to learn."""
        return len(self.learned) > 0

    @property
    def weighs_labels(self) -> bool:
        """Whether rows with a label and rows without count otherwise than by their caps."""
        return bool((self.with_label != 1).any() or (self.without_label != 1).any())

    def signed_weights(self) -> Array:
        """Return, for the labels to be learned, what ``class_weight`` makes a row count.

        Positive where a row has the label, negative where not; dense, of shape
        (n_rows, n_learned). Times caps, the absolute value is what the row counts.
        """
        return self.weighed_signs(self.learned_targets.signs())

    def weighed_signs(self, signs: Array) -> Array:
        """Return that of any rows, given the signs of the labels to be learned."""
        own, others = self.with_label[self.learned], self.without_label[self.learned]
        return np.ascontiguousarray(np.where(signs > 0, own, -others))

    def of_all_labels(
        self, coef: Array, intercept: Array, *, is_logistic: bool = False
    ) -> tuple[Array, Array]:
        """Return coefficients of all labels, given those of the labels that were learned.

        A constant label has an intercept alone: 1 or -1, as far from 0 as the margin. Of a logistic
        loss it is the log odds of n + 1 to 1, which is what n rows say that all agree.

        Parameters
        ----------
        coef : ndarray of shape (n_columns, n_learned)
        intercept : ndarray of shape (n_learned,)
        is_logistic : bool
        """
        if len(self.learned) == len(self.constant):
            return coef, intercept
        whole = np.zeros((len(coef), len(self.constant)), dtype=coef.dtype)
        whole[:, self.learned] = coef
        size = np.log1p(float(np.count_nonzero(self.weights))) if is_logistic else 1.0
        shift = size * self.constant.astype(np.float64)
        shift[self.learned] = intercept
        return whole, shift


class HasLabels(ClassifierMixin, BaseClassifier):  # type: ignore[misc]  # untyped base
    """A classifier whose rows have any number of labels.

    An estimator calls, in this order, ``_check_label_parameters``, ``_validate_training_data`` and
    at the end ``_label_readout``; in between it learns ``training.learned_targets``, and
    ``training.of_all_labels`` puts constant labels beside what it has learned.
    """

    C: Any
    class_weight: Any
    prior: Any
    threshold: Any
    threshold_metric: str
    probability: bool
    sparse_output: bool

    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType({"probability": Added(6)})

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return len(self._fitted_readout("n_labels_").classes)

    @property
    def thresholds_(self) -> Array:
        """What the score of each label must be above."""
        return self._fitted_readout("thresholds_").label_thresholds()

    def _fitted_readout(self, name: str) -> Readout:
        if "readout_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.readout_

    def _check_label_parameters(self) -> None:
        given = self.threshold
        if isinstance(given, str):
            check_choice("threshold", given, ("tuned",), ", a number, or one for each label")
        elif np.ndim(given) == 0:
            check_real("threshold", given)
        elif not self._given_thresholds_are_numbers():
            raise ValueError(
                f"threshold must be 'tuned', a number, or a finite one for each label; got "
                f"{given!r}."
            )
        check_choice("threshold_metric", self.threshold_metric, METRICS)
        check_flag("probability", self.probability)
        check_flag("sparse_output", self.sparse_output)
        check_label_weight(self.class_weight)

    def _given_thresholds_are_numbers(self) -> bool:
        try:
            given = np.asarray(self.threshold, dtype=np.float64)
        except (TypeError, ValueError):
            return False
        return given.ndim == 1 and bool(np.isfinite(given).all())

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any) -> LabelRows:
        """Return what is learned from; sets classes_. Constant labels are warned of."""
        names = None
        if y is not None:
            reason = why_no_table(y)
            if reason is not None:
                validated_data(self, X, reset=True)  # what is wrong with the rows comes first
                raise ValueError(reason)
            names = names_of(y)
            if names is not None and len(set(names)) < len(names):
                raise ValueError(
                    "y has two columns of the same name. Give each label a name of its own."
                )
        X, checked = validated_data(self, X, y, reset=True, several=True)
        self._check_training_rows(X)
        targets = LabelTargets.of(checked, names=names)
        self.classes_ = targets.classes
        weights = checked_weights(sample_weight, X)
        caps = float(self._cap()) * weights
        with_label, without_label = self._label_weights(targets, weights)
        check_largest(float(caps.max() * max(with_label.max(), without_label.max())))
        constant = constant_labels(targets, weights)
        warn_of_constant(targets.classes, constant)
        return LabelRows(
            canonical_rows(X), targets, weights, caps, with_label, without_label, constant
        )

    def _label_weights(self, targets: LabelTargets, weights: Array) -> tuple[Array, Array]:
        """Return what rows with each label count, and rows without it."""
        return label_weights(self.class_weight, targets, weights)

    def _label_prior(self, training: LabelRows) -> LabelPrior | None:
        """Return the parameter ``prior``, checked, of the labels that are to be learned."""
        prior = as_prior(self.prior, training.targets.classes)
        if prior is None or len(training.learned) == prior.n_outputs:
            return prior
        return prior.take(training.learned) if len(training.learned) else None

    def _label_readout(
        self, training: LabelRows, link: Link | None = None, *, tunes: bool = True
    ) -> Readout:
        """Return how scores are read, as ``threshold`` and ``probability`` ask for.

        Without ``tunes``, as for a machine on its way, thresholds that are to be tuned are 0, and
        there are no calibrated probabilities. A link gives probabilities by itself.
        """
        n_labels = training.targets.n_outputs
        given = self.threshold
        calibrates = tunes and bool(self.probability) and link is None
        held_out = []
        if calibrates or (tunes and isinstance(given, str)):
            held_out = self._held_out_scores(training)
        if isinstance(given, str):
            thresholds = self._tuned_thresholds(held_out) if tunes else np.zeros(n_labels)
        else:
            if np.ndim(given) == 1 and len(given) != n_labels:
                raise ValueError(
                    f"threshold has {len(given)} numbers, and Y has {n_labels} labels."
                )
            thresholds = np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), n_labels))
        thresholds[training.constant != 0] = 0.0  # or the answer would not be constant
        kept = thresholds if thresholds.any() else None
        calibration = calibrated(held_out, training.constant) if calibrates else None
        return Readout(training.targets.classes, "multilabel", link, kept, calibration)

    def _held_out_scores(self, training: LabelRows) -> list[HeldOut]:
        """Return scores of all rows by machines of these parameters that have not seen them."""
        used = np.flatnonzero(training.weights > 0)
        seed = check_random_state(getattr(self, "random_state", 0)).randint(1 << 31)
        indicator = training.targets.indicator
        if len(used) < 2 * N_FOLDS:
            is_tuned = isinstance(self.threshold, str)
            asked = "threshold='tuned'" if is_tuned else "probability=True"
            way_out = "threshold to a number" if is_tuned else "probability=False"
            raise ValueError(
                f"{asked} needs {2 * N_FOLDS} rows or more, of which some are held out, and there "
                f"are {len(used)} of positive weight. Set {way_out}."
            )
        return [
            HeldOut(
                self._scores_of_others(training, train, test),
                indicator[test],
                training.weights[test],
            )
            for train, test in label_folds(indicator, used, int(seed))
        ]

    def _tuned_thresholds(self, held_out: list[HeldOut]) -> Array:
        """Return thresholds by cross-validation: their mean over the folds.

        Numbers are those that single precision holds, so that every form of the machine compares
        with the same ones.
        """
        found = [
            best_thresholds(part.scores, part.indicator, part.weights, self.threshold_metric)
            for part in held_out
        ]
        return np.asarray(np.mean(found, axis=0).astype(np.float32).astype(np.float64))

    def _scores_of_others(self, training: LabelRows, train: Array, test: Array) -> Array:
        """Return the scores of rows that a machine of these parameters was not fitted to."""
        rows, weights = training.rows, training.weights
        machine = type(self)(**self.get_params(deep=False))
        plain = {"threshold": 0.0, "probability": False, "sparse_output": False}
        plain |= {"verbose": 0, "warm_start": False}
        machine.set_params(**{name: plain[name] for name in plain if hasattr(machine, name)})
        if get_tags(self).input_tags.pairwise:
            fitted, judged = rows[train][:, train], rows[test][:, train]
        else:
            fitted, judged = rows[train], rows[test]
        labels = training.targets.take(train).indicator
        if training.targets.classes.dtype.kind not in "iu" and isinstance(self.class_weight, dict):
            named = training.targets.classes.tolist()
            by_number = {named.index(name): own for name, own in self.class_weight.items()}
            machine.set_params(class_weight=by_number)
        with silence():
            machine.fit(fitted, labels, sample_weight=weights[train])
        return np.asarray(machine._scores_of(judged))

    def predict(self, X: Any) -> Any:
        """Return the labels of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        Y : ndarray of shape (n_samples, n_labels), or CSR matrix with ``sparse_output=True``
            1 where the score of a label is above its threshold, else 0.
        """
        rows = self._validate_rows(X)
        if not self.sparse_output:
            return self.readout_.indicators(self._scores_of(rows))
        parts = [
            sp.csr_matrix(self.readout_.is_on(scores), dtype=np.int64)
            for scores in self._scores_in_blocks(rows)
        ]
        empty = sp.csr_matrix((0, self.n_labels_), dtype=np.int64)
        return sp.vstack([empty, *parts], format="csr", dtype=np.int64)

    def predict_top_k(self, X: Any, k: int = 1) -> npt.NDArray[np.intp]:
        """Return the numbers of the labels of the highest scores, whether above a threshold or not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.
        k : int, default=1
            How many labels of each row, at the most as many as there are.

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Places in ``classes_``, the highest score first; of equal scores, the first label.
        """
        rows = self._validate_rows(X)
        check_integer("k", k, least=1, most=self.n_labels_)
        parts = [
            np.argsort(-scores, axis=1, kind="stable")[:, :k]
            for scores in self._scores_in_blocks(rows)
        ]
        return np.concatenate([np.empty((0, k), dtype=np.intp), *parts])

    def _scores_in_blocks(self, rows: Rows) -> Iterator[Array]:
        """Yield the scores of some rows after the other, so that no more is held at a time."""
        step = max(1, _SCORES_AT_ONCE // self.n_labels_)
        for start in range(0, rows.shape[0], step):
            yield self._scores_of(rows[start : start + step])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # Rows have indicators of labels and nothing else: no single class, one of two or of many.
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = False
        return tags


def why_no_table(y: Any) -> str | None:
    """Say why y is no indicator matrix, where its form tells: lists of labels, or a single axis."""
    if sp.issparse(y) or hasattr(y, "columns"):
        return None
    wanted = "Unknown label type: y must be an indicator matrix of 0 and 1 with a column for each"
    if holds_sets(y):
        return (
            f"{wanted} label, got a list of sets of labels. Make one by sklearn.preprocessing."
            "MultiLabelBinarizer().fit_transform(y), with sparse_output=True for many labels."
        )
    shape = np.asarray(y).shape
    if len(shape) != 1:
        return None
    return (
        f"{wanted} label, got a 1d array of {shape[0]} entries. Reshape your data by "
        "y.reshape(-1, 1) if it says whether rows have one label; for rows of one class each, use "
        "a classifier of classes, such as SparseKernelClassifier."
    )


def holds_sets(y: Any) -> bool:
    """Whether rows are given as sets or lists of their labels, by name or of unlike lengths."""
    if not isinstance(y, (list, tuple, np.ndarray)) or len(y) == 0 or np.ndim(y[0]) > 1:
        return False
    rows = [row for row in y if isinstance(row, (set, frozenset, list, tuple))]
    if any(isinstance(row, (set, frozenset)) for row in rows):
        return True
    named = any(isinstance(entry, str) for row in rows for entry in row)
    return named or len({len(row) for row in rows}) > 1


def constant_labels(targets: LabelTargets, weights: Array) -> npt.NDArray[np.int8]:
    """Return 1 for labels that all rows of positive weight have, -1 for those none has, else 0."""
    counted = (weights > 0).astype(np.float64)
    counts = targets.sums(counted)
    always, never = counts == counted.sum(), counts == 0
    return np.asarray(always.astype(np.int8) - never.astype(np.int8))


def warn_of_constant(classes: Array, constant: npt.NDArray[np.int8]) -> None:
    """Say once which labels there is nothing to learn of."""
    if not constant.any():
        return
    parts = []
    for value, words in ((-1, "that no row has"), (1, "that every row has")):
        places = np.flatnonzero(constant == value)
        if len(places):
            names = ", ".join(repr(name) for name in classes[places[:_NAMED]].tolist())
            more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
            parts.append(f"{len(places)} {words} ({names}{more})")
    warn_user(
        f"Of {len(classes)} labels there are {'; '.join(parts)}, among rows of positive weight. "
        "They are always answered so, as there is nothing to learn of them. Drop these columns of "
        "Y, or find rows that differ.",
        UserWarning,
    )


def check_label_weight(class_weight: Any) -> None:
    """Require a dict, "balanced" or None."""
    if not (class_weight is None or isinstance(class_weight, dict)):
        check_choice("class_weight", class_weight, ("balanced",), ", a dict or None")


def label_weights(class_weight: Any, targets: LabelTargets, weights: Array) -> tuple[Array, Array]:
    """Return what rows with each label count, and rows without it, as ``class_weight`` says."""
    ones = np.ones(targets.n_outputs)
    if class_weight is None:
        return ones, ones
    if isinstance(class_weight, dict):
        return _weights_by_name(class_weight, targets.classes), ones
    whole, own = float(weights.sum()), targets.sums(weights)
    varies = (own > 0) & (own < whole)
    with_label, without_label = ones.copy(), ones.copy()
    with_label[varies] = whole / (2.0 * own[varies])
    without_label[varies] = whole / (2.0 * (whole - own[varies]))
    return with_label, without_label


def _weights_by_name(given: dict[Any, Any], classes: Array) -> Array:
    places = {name: number for number, name in enumerate(classes.tolist())}
    each = np.ones(len(classes))
    for name, weight in given.items():
        if name not in places:
            raise ValueError(
                f"class_weight has a weight for {name!r}, which is no label. The labels are "
                f"{classes[:_NAMED].tolist()}{' ...' if len(classes) > _NAMED else ''}; its keys "
                "are labels, and its numbers are weights of the rows that have them."
            )
        check_real(f"class_weight[{name!r}]", weight, positive=True)
        each[places[name]] = float(weight)
    return each

"""y as the machines of two labels need it: on which level of a chain each row is.

Two labels A and B of which a row has at least one make a chain of three sets: B alone is level 0,
both are level 1, A alone is level 2. Classes that lie in an order are a chain as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.labels import (
    constant_labels,
    holds_sets,
    label_weights,
    warn_of_constant,
)
from widemargin.estimation.targets import LabelTargets
from widemargin.estimation.weights import check_largest, checked_weights
from widemargin.kernels import Rows
from widemargin.priors import names_of
from widemargin.rows import canonical_rows, validated_data

Array: TypeAlias = npt.NDArray[Any]

_NAMED = 5  # rows that a message names
_MORE_LABELS = (
    "For more labels, make an indicator matrix of them, by sklearn.preprocessing."
    "MultiLabelBinarizer say, and wrap the machine in widemargin.two_label.PairwiseMultiLabel."
)


@dataclass(frozen=True)
class LevelRows:
    """Rows to learn from, each on a level of a chain.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_rows, n_features)
    classes : ndarray
        The two labels, or the classes in their order.
    levels : ndarray of shape (n_rows,)
        0 to n_levels - 1.
    n_levels : int
    weights : ndarray of shape (n_rows,)
        ``sample_weight``, or ones.
    caps : ndarray of shape (n_rows,)
        C times the weight of each row, and of its class where rows have one class each.
    with_label, without_label : ndarray of shape (2,) or None
        Of two labels: what that is multiplied with, in rows with the label and without it. None
        where rows have one class each.
    constant : ndarray of shape (2,) or None
        Of two labels: 1 for one that all rows of positive weight have, else 0.
    """

    rows: Rows
    classes: Array
    levels: npt.NDArray[np.intp]
    n_levels: int
    weights: Array
    caps: Array
    with_label: Array | None = None
    without_label: Array | None = None
    constant: npt.NDArray[np.int8] | None = None

    @property
    def has_labels(self) -> bool:
        """Whether rows have sets of two labels, not one class each."""
        return self.with_label is not None

    @property
    def has_both(self) -> npt.NDArray[np.bool_]:
        """Whether each row has both labels."""
        return np.asarray(self.levels == 1)

    def has(self, label: int) -> npt.NDArray[np.bool_]:
        """Whether each row has the label of this number."""
        return np.asarray(self.levels >= 1 if label == 0 else self.levels <= 1)

    def label_caps(self, label: int) -> Array:
        """Return what each row counts where it is asked whether it has the label."""
        assert self.with_label is not None
        assert self.without_label is not None
        each = np.where(self.has(label), self.with_label[label], self.without_label[label])
        return np.asarray(self.caps * each)


def validated_levels(estimator: HasKernel, X: Any, y: Any, sample_weight: Any) -> LevelRows:
    """Return what is learned from; sets classes_, and warns of a label that every row has."""
    y = _as_list(y)
    if not (holds_sets(y) or _is_table(y)):
        training = estimator._validate_training_data(X, y, sample_weight)
        classes, numbers = training.targets.classes, training.targets.numbers
        return LevelRows(
            training.rows, classes, numbers, len(classes), training.weights, training.caps
        )
    names = names_of(y)
    if holds_sets(y):
        validated_data(estimator, X, reset=True)  # what is wrong with the rows comes first
        y, names = indicator_of_sets(y)
    X, checked = validated_data(estimator, X, y, reset=True, several=True)
    estimator._check_training_rows(X)
    targets = LabelTargets.of(checked, names=names)
    _check_two_labels(targets)
    weights = checked_weights(sample_weight, X)
    constant = constant_labels(targets, weights)
    if constant.all():
        kept = targets.classes[constant > 0].tolist()
        raise ValueError(
            "Classification needs at least 2 sets of labels in y, got only 1 class: all rows of "
            f"positive weight have the labels {kept}. Give rows that differ."
        )
    warn_of_constant(targets.classes, constant)
    estimator.classes_ = targets.classes
    caps = float(estimator._cap()) * weights
    with_label, without_label = label_weights(estimator.class_weight, targets, weights)
    check_largest(float(caps.max() * max(with_label.max(), without_label.max())))
    signs = targets.signs()
    levels = 1 + (signs[:, 0].astype(np.intp) - signs[:, 1]) // 2
    return LevelRows(
        canonical_rows(X),
        targets.classes,
        levels,
        3,
        weights,
        caps,
        with_label,
        without_label,
        constant,
    )


def indicator_of_sets(y: Iterable[Any]) -> tuple[Array, Array]:
    """Return the indicator matrix of sets of two labels, and the labels in rising order."""
    rows = [_as_set(row, place) for place, row in enumerate(y)]
    found: dict[Any, None] = {}
    for place, row in enumerate(rows):
        for label in row:
            found.setdefault(label)
        if len(found) > 2:
            raise ValueError(
                f"y has sets of more than two labels: after {list(found)[:2]}, row {place} has "
                f"{list(found)[2]!r}. {_MORE_LABELS}"
            )
    if len(found) < 2:
        raise ValueError(
            f"Classification needs at least 2 labels in y, got only 1 class: {list(found)}."
        )
    try:
        labels = sorted(found)
    except TypeError:
        labels = list(found)  # of types that cannot be compared: as they come
    indicator = np.array([[label in row for label in labels] for row in rows], dtype=np.int8)
    return indicator, np.array(labels)


def _as_list(y: Any) -> Any:
    """Return what is neither a table nor a list as an array, or as a list."""
    if sp.issparse(y) or hasattr(y, "columns") or isinstance(y, (list, tuple, np.ndarray)):
        return y
    if hasattr(y, "__array__"):
        return np.asarray(y)
    return list(y) if isinstance(y, Iterable) else y


def _as_set(row: Any, place: int) -> set[Any]:
    if not isinstance(row, (set, frozenset, list, tuple, np.ndarray)):
        raise ValueError(
            f"y has sets of labels, and row {place} is {row!r}, which is none. Give each row a set "
            "of its labels."
        )
    return {label.item() if isinstance(label, np.generic) else label for label in row}


def _is_table(y: Any) -> bool:
    """Whether y has columns; a single one of an array is that of classes."""
    if y is None:
        return False
    shape = y.shape if hasattr(y, "shape") else np.shape(np.asarray(y))
    return sp.issparse(y) or (len(shape) == 2 and shape[1] != 1)


def _check_two_labels(targets: LabelTargets) -> None:
    """Require two columns, and the closed world: at least one label in every row."""
    if targets.n_outputs != 2:
        raise ValueError(
            f"y must have two columns, one for each of two labels, got {targets.n_outputs}. "
            f"{_MORE_LABELS}"
        )
    neither = np.flatnonzero(np.asarray(targets.indicator.sum(axis=1)).ravel() == 0)
    if len(neither):
        named = ", ".join(str(place) for place in neither[:_NAMED])
        more = f" and {len(neither) - _NAMED} more" if len(neither) > _NAMED else ""
        raise ValueError(
            f"y has rows with neither label: {named}{more}. Every row must have at least one of "
            f"{targets.classes.tolist()}, as no other answer is ever given. Drop these rows, or "
            "use KernelMultiLabelClassifier, which may answer no label."
        )

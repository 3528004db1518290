"""What classifiers of rows with one class each share: checks of training data, and weights."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from widemargin.estimation.base import BaseClassifier
from widemargin.estimation.targets import ClassTargets, TrainingRows
from widemargin.estimation.weights import check_largest, checked_weights
from widemargin.kernels import Rows
from widemargin.rows import canonical_rows, validated_data

Array: TypeAlias = npt.NDArray[Any]


class LearnsClasses(ClassifierMixin, BaseClassifier):  # type: ignore[misc]  # untyped base
    """A classifier with the parameter class_weight, of dense or sparse rows."""

    class_weight: Any
    classes_: Array

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Return what is learned from; sets classes_."""
        X, y = validated_data(self, X, y, reset=True)
        self._check_training_rows(X)
        targets = ClassTargets.of(y)
        self.classes_ = targets.classes
        weights, caps = self._row_weights(X, targets.numbers, sample_weight, y)
        return TrainingRows(canonical_rows(X), targets, weights, caps)

    def _row_weights(
        self,
        X: Rows,
        labels: npt.NDArray[np.intp],
        sample_weight: Any,
        y: Array,
        *,
        some: bool = True,
    ) -> tuple[Array, Array]:
        """Return the weights of rows, and these times C and the weights of the classes.

        With ``some`` it is an error if all are zero, or those of all classes but one.
        """
        weights = checked_weights(sample_weight, X, some=some)
        each = weights * self._class_weights(y, labels, weights)[labels]
        # Without a cap (C is infinite) a row of weight zero has none all the same.
        each = np.multiply(each, self._cap(), out=np.zeros_like(each), where=each > 0)
        if some and not each.any():
            raise ValueError(
                "class_weight and sample_weight leave every row without weight; there is nothing "
                "to learn from."
            )
        if some and len(present := np.unique(labels[each > 0])) < 2:
            raise ValueError(
                "Classification needs at least 2 classes, but class_weight and sample_weight leave "
                f"rows of only 1 class with weight: {self.classes_.tolist()[present[0]]!r}. Give "
                "rows of another class a weight above zero."
            )
        if self._cap() < np.inf:
            check_largest(float(each.max()))
        return weights, each

    def _class_weights(self, y: Array, labels: npt.NDArray[np.intp], weights: Array) -> Array:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            sums = np.bincount(labels, weights, minlength=len(self.classes_))
            present = np.where(sums > 0, sums, np.inf)
            return np.asarray(weights.sum() / (len(self.classes_) * present))
        if isinstance(self.class_weight, str):
            # Said here, too: scikit-learn can be told not to look at parameters.
            raise ValueError(
                f"class_weight must be 'balanced', a dict or None, got {self.class_weight!r}."
            )
        each = np.asarray(compute_class_weight(self.class_weight, classes=self.classes_, y=y))
        if not (np.isfinite(each).all() and (each >= 0).all()):
            raise ValueError(
                f"class_weight must hold numbers of 0 or more, got {self.class_weight}."
            )
        return each

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

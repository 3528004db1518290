"""Teachers: who can be compressed or distilled, and what they say of rows."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, softmax
from sklearn.svm import SVC, NuSVC
from sklearn.utils.validation import _num_samples, check_is_fitted

from widemargin.estimation.base import BaseClassifier
from widemargin.kernels import (
    RBF,
    CustomKernel,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Rows,
    Sigmoid,
)
from widemargin.losses import CLASS_LOSSES, Loss
from widemargin.models import KernelExpansion

Array: TypeAlias = npt.NDArray[Any]

# Logarithm of how many times as probable the best class of the median row is as the next.
_SHARPNESS = 6.0


class Teacher:
    """A fitted classifier, whoever made it.

    Parameters
    ----------
    estimator : fitted classifier
        It has ``classes_``, of which ``predict`` gives each row one.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        In rising order.
    """

    def __init__(self, estimator: Any) -> None:
        check_is_fitted(estimator)
        self.estimator = estimator
        known = getattr(estimator, "classes_", None)
        if known is None or len(known) == 0:
            raise TypeError(
                f"{type(estimator).__name__} has no classes_: compress takes classifiers, and no "
                "regressors or other estimators."
            )
        if isinstance(known, list) and np.ndim(known[0]) > 0:
            raise ValueError(_several_outputs(estimator))
        # Text may come as objects, which no model file holds.
        found = np.asarray(known)
        found = np.array(found.tolist()) if found.dtype == object else found
        if len(found) < 2:
            raise ValueError(
                f"{type(estimator).__name__} knows only 1 class, {found.tolist()[0]!r}, and has "
                "nothing to tell apart."
            )
        self._order = np.argsort(found)
        self.classes: Array = found[self._order]

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the number of the class that each row is told to be."""
        told = np.asarray(self.estimator.predict(X))
        told = told[:, 0] if told.ndim == 2 and told.shape[1] == 1 else told
        if told.ndim != 1:
            raise ValueError(_several_outputs(self.estimator))
        numbers = np.minimum(np.searchsorted(self.classes, told), len(self.classes) - 1)
        if not (self.classes[numbers] == told).all():
            other = told[self.classes[numbers] != told].tolist()[0]
            raise ValueError(
                f"{type(self.estimator).__name__} predicts {other!r}, which is none of its "
                f"classes_: {self.classes.tolist()!r}."
            )
        return numbers

    def probabilities(self, X: Any, *, sharpen: bool = True) -> Array:
        """Return the probability of each class, of shape (n_rows, n_classes).

        Scores have all kinds of scales, and some teachers are never sure. So both are sharpened:
        probabilities are raised to the power, and scores multiplied by the factor before a softmax,
        with which the best class of the median row leads by ``_SHARPNESS``. Probabilities that are
        sharper already stay as they are, and so do all with ``sharpen=False``.
        """
        scores, are_probabilities = _told_of_classes(self.estimator, X, len(self.classes))
        self._check(scores, _num_samples(X), are_probabilities=are_probabilities)
        scores = scores[:, self._order]
        if are_probabilities:
            with np.errstate(divide="ignore"):
                scores = np.log(scores)
        second, first = np.sort(scores, axis=1)[:, -2:].T
        lead = float(np.median(first - second))
        power = _SHARPNESS / lead if lead > 0 else 1.0
        if are_probabilities:
            power = max(power, 1.0) if sharpen else 1.0
        return np.asarray(softmax(power * scores, axis=1))

    def _check(self, scores: Array, n_rows: int, *, are_probabilities: bool) -> None:
        name = type(self.estimator).__name__
        if scores.shape != (n_rows, len(self.classes)):
            raise ValueError(
                f"The scores of {name} are of shape {scores.shape}, and {n_rows} rows of "
                f"{len(self.classes)} classes have ({n_rows}, {len(self.classes)})."
            )
        wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(wrong):
            raise ValueError(
                f"The scores of {name} are NaN or infinite for {len(wrong)} of {n_rows} rows, the "
                f"first of them row {wrong[0]}. Leave these out, or pass target='classes'."
            )
        if are_probabilities and ((scores < 0).any() or not (scores.max(axis=1) > 0).all()):
            raise ValueError(
                f"predict_proba of {name} gives numbers that are no probabilities: below zero, or "
                "zero for all classes of a row."
            )


def _several_outputs(estimator: Any) -> str:
    return (
        f"{type(estimator).__name__} gives a row several labels, and compress takes classifiers "
        "that give it one class."
    )


def _told_of_classes(estimator: Any, X: Any, n_classes: int) -> tuple[Array, bool]:
    """Return what is said of each class, and whether these are probabilities."""
    from sklearn.pipeline import Pipeline  # here, as it takes a while to import

    if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
        return _told_of_classes(estimator[-1], estimator[:-1].transform(X), n_classes)
    if hasattr(estimator, "best_estimator_"):
        return _told_of_classes(estimator.best_estimator_, X, n_classes)
    if isinstance(estimator, (SVC, NuSVC)):
        # Probabilities of an SVC are a fit of their own, which its classes do not follow.
        scores = scores_of_pairs(estimator, X, n_classes)
        return (np.hstack([-scores, scores]) if n_classes == 2 else scores), False
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X), dtype=np.float64), True
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), dtype=np.float64)
        return (np.column_stack([-scores, scores]) if scores.ndim == 1 else scores), False
    raise ValueError(
        f"{type(estimator).__name__} has neither predict_proba nor decision_function, so that it "
        "has no scores. Pass target='classes'."
    )


@dataclass(frozen=True)
class KernelMachine:
    """A machine of vectors that is to be compressed, whoever fitted it.

    Attributes
    ----------
    machine : the estimator that has the scores
    n_vectors : int
    settings : dict
        Parameters of a SparseKernelClassifier that would be trained like it.
    attributes : dict
        What its result has in common with it: classes, and names of features.
    """

    machine: Any
    n_vectors: int
    settings: dict[str, Any]
    attributes: dict[str, Any]

    @classmethod
    def of(cls, estimator: Any) -> KernelMachine:
        """Return what is known of a fitted estimator, which must be such a machine."""
        if not isinstance(estimator, (BaseClassifier, SVC, NuSVC)):
            steps = getattr(estimator, "steps", None)
            raise TypeError(
                "compress takes a fitted kernel machine of widemargin, or an SVC or NuSVC of "
                f"scikit-learn, got {type(estimator).__name__}."
                + (" Compress its last step, with X as the steps before make it." if steps else "")
                + " With basis='learned' it takes any classifier."
            )
        check_is_fitted(estimator)
        names = ("classes_", "feature_names_in_")
        attributes = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
        if isinstance(estimator, BaseClassifier):
            machine: Any = getattr(estimator, "best_estimator_", estimator)
            model = machine.model_
            if not isinstance(model, KernelExpansion):
                raise ValueError(
                    f"{type(estimator).__name__} is linear and has no vectors: there is nothing to "
                    "compress."
                )
            if machine.readout_.tells_labels:
                raise ValueError("compress takes machines of classes, not of labels.")
            return cls(machine, model.n_basis, _settings_of(machine), attributes)
        settings = {name: getattr(estimator, name) for name in ("C", "class_weight")}
        if isinstance(estimator, NuSVC):
            del settings["C"]
        return cls(estimator, len(estimator.support_), settings, attributes)

    def scores(self, X: Any, rows: Rows, n_threads: int) -> Array:
        """Return what is to be fitted, of shape (n_rows, n_outputs)."""
        if not isinstance(self.machine, BaseClassifier):
            return scores_of_pairs(self.machine, X, len(self.attributes["classes_"]))
        scores = self.machine.model_.scores(rows, n_threads, dtype=np.float64)
        readout = self.machine.readout_
        # The result has a softmax, and this is what it makes the same probabilities of.
        rest = readout.link == "one_against_rest" and readout.kind == "multiclass"
        return np.ascontiguousarray(log_expit(scores) if rest else scores)

    @property
    def kernel(self) -> Kernel:
        """The kernel that the vectors have."""
        machine = self.machine
        if isinstance(machine, BaseClassifier):
            model: Any = machine.model_
            return model.kernel  # type: ignore[no-any-return]  # of an expansion
        if callable(machine.kernel):
            return CustomKernel(machine.kernel)
        if machine.kernel == "linear":
            return Linear()
        if machine.kernel == "precomputed":
            return Precomputed()
        if machine.kernel == "poly":
            return Polynomial(float(machine._gamma), int(machine.degree), float(machine.coef0))
        if machine.kernel == "rbf":
            return RBF(float(machine._gamma))
        return Sigmoid(float(machine._gamma), float(machine.coef0))


def is_kernel_machine(estimator: Any) -> bool:
    """Whether it is fitted and has vectors, so that a :class:`KernelMachine` can be made of it."""
    if isinstance(estimator, BaseClassifier):
        return isinstance(getattr(estimator, "model_", None), KernelExpansion)
    return isinstance(estimator, (SVC, NuSVC))


def _settings_of(machine: Any) -> dict[str, Any]:
    known = machine.get_params(deep=False)
    settings = {name: known[name] for name in ("C", "class_weight") if name in known}
    loss = known.get("loss")
    if (loss.name if isinstance(loss, Loss) else loss) in CLASS_LOSSES:
        settings["loss"] = loss
    return settings


def scores_of_pairs(machine: Any, X: Any, n_classes: int) -> Array:
    """Return the scores of an SVC: its margin for two classes, else one score a class.

    That of a class is its smallest margin in the pairs that it is in; they come as (0, 1), (0, 2),
    and so on.
    """
    pairs = copy(machine).set_params(decision_function_shape="ovo")
    margins = np.asarray(pairs.decision_function(X), dtype=np.float64)
    if n_classes == 2:
        return margins[:, None]
    smallest = np.full((len(margins), n_classes), np.inf)
    for margin, (first, second) in zip(margins.T, combinations(range(n_classes), 2), strict=True):
        np.minimum(smallest[:, first], margin, out=smallest[:, first])
        np.minimum(smallest[:, second], -margin, out=smallest[:, second])
    return smallest

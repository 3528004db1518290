"""Readouts: how scores become labels and probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, log_softmax

from widemargin._system.file_changes import Added, Change

Array: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["multiclass", "binary", "multilabel", "two_step"]
Link: TypeAlias = Literal["softmax", "one_against_rest"]


@dataclass(frozen=True, eq=False)
class Readout:
    """What the scores of a model say.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels; for "multilabel" and "two_step" the names of the labels, a column each.
    kind : {"multiclass", "binary", "multilabel", "two_step"}
        "multiclass": the class of the largest score, the first of equal ones. "binary": one score,
        which speaks for the second class where it is positive. "multilabel": every label whose
        score is above its threshold. "two_step": both of two labels where the first score lies
        between the thresholds; else the first label where the second score is positive, and the
        second label where it is not.
    link : {"softmax", "one_against_rest"} or None
        How scores become probabilities. "softmax": their exponentials, normalised.
        "one_against_rest": the logistic function of each, and then normalised (but not for
        "multilabel"). None: not at all. For two classes both are the logistic function.
    thresholds : ndarray of shape (n_labels,) or None
        Of "multilabel": what the score of each label must be above. None is 0 for all of them.
        They are compared in the precision of the scores. Of "two_step": the lower and the upper.
    calibration : ndarray of shape (2, n_labels) or None
        Of "multilabel" without a link: slope and shift, by which a score becomes the log odds of
        its label, ``slope * score + shift``. The shift of a label that never varies is infinite.
    """

    classes: Array
    kind: Kind
    link: Link | None = None
    thresholds: Array | None = None
    calibration: Array | None = None

    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType(
        {"thresholds": Added(5), "calibration": Added(6)}
    )

    def __post_init__(self) -> None:
        if self.kind not in ("multiclass", "binary", "multilabel", "two_step"):
            raise ValueError(f"{self.kind!r} is no kind of readout.")
        if self.link not in (None, "softmax", "one_against_rest"):
            raise ValueError(f"{self.link!r} is no link of scores to probabilities.")
        two = len(self.classes) == 2
        needs_two = self.kind in ("binary", "two_step")
        if self.classes.ndim != 1 or (self.kind != "multilabel" and needs_two != two):
            raise ValueError(
                f"A {self.kind} readout does not go with classes of shape {self.classes.shape}."
            )
        if self.kind == "multilabel" and self.link == "softmax":
            raise ValueError("Labels that do not exclude one another have no softmax.")
        if self.kind == "two_step" and (self.link is not None or self.thresholds is None):
            raise ValueError("A two_step readout has two thresholds, and no link.")
        if self.thresholds is not None:
            given = self.thresholds
            fits = self.tells_labels and given.shape == self.classes.shape
            if not (fits and given.dtype == np.float64 and np.isfinite(given).all()):
                raise ValueError(
                    f"thresholds must be a finite number for each of {len(self.classes)} labels, "
                    f"of a multilabel readout; got an array of shape {given.shape} for a "
                    f"{self.kind} one."
                )

        if self.calibration is not None:
            self._check_calibration(self.calibration)

    def _check_calibration(self, given: Array) -> None:
        fits = self.kind == "multilabel" and given.shape == (2, len(self.classes))
        if not fits or given.dtype != np.float64 or self.link is not None:
            raise ValueError(
                f"calibration must be two numbers for each of {len(self.classes)} labels, of a "
                f"multilabel readout without a link; got an array of shape {given.shape} for a "
                f"{self.kind} one with link={self.link!r}."
            )
        if not np.isfinite(given[0]).all() or (given[0] < 0).any() or np.isnan(given[1]).any():
            raise ValueError("calibration has a slope below zero, or one that is no number.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Readout):
            return NotImplemented
        same = (self.kind, self.link) == (other.kind, other.link)
        if same and self.tells_labels:
            same = np.array_equal(self.label_thresholds(), other.label_thresholds())
            if self.calibration is None or other.calibration is None:
                same = same and self.calibration is other.calibration
            else:
                same = same and np.array_equal(self.calibration, other.calibration)
        return same and np.array_equal(self.classes, other.classes)

    def __hash__(self) -> int:
        return hash((self.kind, self.link, len(self.classes)))

    @classmethod
    def of_classes(cls, classes: Array, link: Link | None = None) -> Readout:
        """Return the readout of a machine that tells classes apart: two by one score."""
        return cls(classes, kind="binary" if len(classes) == 2 else "multiclass", link=link)

    @property
    def tells_labels(self) -> bool:
        """Whether a row may have several labels, not one class."""
        return self.kind in ("multilabel", "two_step")

    @property
    def n_outputs(self) -> int:
        """Number of scores that it reads."""
        return 1 if self.kind == "binary" else len(self.classes)

    @property
    def gives_probabilities(self) -> bool:
        """Whether scores become probabilities."""
        return self.link is not None or self.calibration is not None

    def decision(self, scores: Array) -> Array:
        """Return scores as scikit-learn's ``decision_function`` does: 1-D for two classes."""
        return scores[:, 0] if self.kind == "binary" else scores

    def labels_of(self, best: Array) -> Array:
        """Return the labels for the numbers that :meth:`Model.best` gives."""
        if len(self.classes) == 1:  # of a stream that has seen no other yet
            return np.repeat(self.classes, len(best))
        return np.asarray(self.classes[best])

    def label_thresholds(self, dtype: Any = np.float64) -> Array:
        """Return what the score of each label must be above."""
        if self.thresholds is None:
            return np.zeros(len(self.classes), dtype=dtype)
        return self.thresholds.astype(dtype)

    def is_on(self, scores: Array) -> npt.NDArray[np.bool_]:
        """Return whether each row has each label."""
        if self.kind == "two_step":
            low, high = self.label_thresholds(scores.dtype)
            first, second = scores[:, 0], scores[:, 1]
            both, is_first = (first > low) & (first < high), second > 0
            return np.stack([both | is_first, both | ~is_first], axis=1)
        if self.thresholds is None:
            return np.asarray(scores > 0)
        return np.asarray(scores > self.label_thresholds(scores.dtype))

    def indicators(self, scores: Array) -> Array:
        """Return 1 where a row has a label, else 0: the answer where rows may have several."""
        return self.is_on(scores).astype(np.int64)

    def log_probabilities(self, scores: Array) -> Array:
        """Return the logarithms of the probabilities, of shape (n_rows, n_classes)."""
        if self.kind == "multilabel":
            if self.calibration is not None:
                scores = self.calibration[0] * scores + self.calibration[1]
            return np.asarray(log_expit(scores))
        if self.kind == "binary":
            return np.asarray(log_expit(np.hstack([-scores, scores])))
        odds = log_expit(scores) if self.link == "one_against_rest" else scores
        return np.asarray(log_softmax(odds, axis=1))


def two_as_one(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """Return the difference of two columns, which is all that two classes need; else both as is."""
    if coef.shape[1] != 2:
        return coef, intercept
    return coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]

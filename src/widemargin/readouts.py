"""Readouts: how scores become labels and probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, log_softmax

Array: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["multiclass", "binary", "multilabel"]
Link: TypeAlias = Literal["softmax", "one_against_rest"]


@dataclass(frozen=True, eq=False)
class Readout:
    """What the scores of a model say.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels; for "multilabel" the names of the labels, a column each.
    kind : {"multiclass", "binary", "multilabel"}
        "multiclass": the class of the largest score, the first of equal ones. "binary": one score,
        which speaks for the second class where it is positive. "multilabel": every label whose
        score is positive.
    link : {"softmax", "one_against_rest"} or None
        How scores become probabilities. "softmax": their exponentials, normalised.
        "one_against_rest": the logistic function of each, and then normalised (but not for
        "multilabel"). None: not at all. For two classes both are the logistic function.
    """

    classes: Array
    kind: Kind
    link: Link | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("multiclass", "binary", "multilabel"):
            raise ValueError(f"{self.kind!r} is no kind of readout.")
        if self.link not in (None, "softmax", "one_against_rest"):
            raise ValueError(f"{self.link!r} is no link of scores to probabilities.")
        two = len(self.classes) == 2
        if self.classes.ndim != 1 or (self.kind != "multilabel" and (self.kind == "binary") != two):
            raise ValueError(
                f"A {self.kind} readout does not go with classes of shape {self.classes.shape}."
            )
        if self.kind == "multilabel" and self.link == "softmax":
            raise ValueError("Labels that do not exclude one another have no softmax.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Readout):
            return NotImplemented
        same = (self.kind, self.link) == (other.kind, other.link)
        return same and np.array_equal(self.classes, other.classes)

    def __hash__(self) -> int:
        return hash((self.kind, self.link, len(self.classes)))

    @classmethod
    def of_classes(cls, classes: Array, link: Link | None = None) -> Readout:
        """Return the readout of a machine that tells classes apart: two by one score."""
        return cls(classes, kind="binary" if len(classes) == 2 else "multiclass", link=link)

    @property
    def n_outputs(self) -> int:
        """Number of scores that it reads."""
        return 1 if self.kind == "binary" else len(self.classes)

    def decision(self, scores: Array) -> Array:
        """Return scores as scikit-learn's ``decision_function`` does: 1-D for two classes."""
        return scores[:, 0] if self.kind == "binary" else scores

    def labels_of(self, best: Array) -> Array:
        """Return the labels for the numbers that :meth:`Model.best` gives."""
        if len(self.classes) == 1:  # of a stream that has seen no other yet
            return np.repeat(self.classes, len(best))
        return np.asarray(self.classes[best])

    def indicators(self, scores: Array) -> Array:
        """Return 1 where a score is positive, else 0: the labels of multi-label rows."""
        return (scores > 0).astype(np.int64)

    def log_probabilities(self, scores: Array) -> Array:
        """Return the logarithms of the probabilities, of shape (n_rows, n_classes)."""
        if self.kind == "multilabel":
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

"""What is to be learned: y as solvers and readouts need it.

The one place that looks at y. A row has one class (:class:`ClassTargets`), or any number of labels
(:class:`LabelTargets`); two labels that may overlap are the latter with two columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.multiclass import type_of_target

from widemargin.kernels import Rows
from widemargin.losses import Loss
from widemargin.readouts import Link, Readout

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = npt.NDArray[np.intp]


class Targets(ABC):
    """What rows are to be told as."""

    classes: Array

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_outputs(self) -> int:
        """Number of scores that are learned."""
        return len(self.classes)

    @property
    @abstractmethod
    def told(self) -> Any:
        """What there is to be learned, as it was given: class numbers, or the indicator."""

    @abstractmethod
    def encode(self, loss: Loss) -> Array:
        """Return the targets as a loss takes them."""

    @abstractmethod
    def readout(self, link: Link | None = None) -> Readout:
        """Return how the scores of a machine that has learned these targets are read."""

    @abstractmethod
    def take(self, places: Any) -> Self:
        """Return the targets of some rows."""


@dataclass(frozen=True)
class ClassTargets(Targets):
    """One class a row.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The labels, in rising order.
    numbers : ndarray of shape (n_rows,)
        The place of each row's class among them.
    """

    classes: Array
    numbers: Numbers

    @classmethod
    def of(cls, y: Array) -> ClassTargets:
        """Return the targets of labels, one a row; all classes are those that are there."""
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"Classification needs at least 2 classes in y, got only 1 class: {classes[0]!r}."
            )
        return cls(classes, numbers)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.numbers)

    @property
    def told(self) -> Numbers:
        """The class numbers."""
        return self.numbers

    def encode(self, loss: Loss) -> Array:
        """Return the targets as a loss of all classes takes them."""
        return loss.encode(self.numbers, self.n_outputs)

    def encode_against_rest(self, loss: Loss, number: int) -> Array:
        """Return the targets of one class against the rest, for a loss of independent outputs."""
        return loss.encode((self.numbers != number).astype(np.intp), 1)

    def readout(self, link: Link | None = None) -> Readout:
        """Return how the scores of the classes are read."""
        return Readout.of_classes(self.classes, link)

    def take(self, places: Any) -> ClassTargets:
        """Return the targets of some rows; the classes stay."""
        return ClassTargets(self.classes, self.numbers[places])


@dataclass(frozen=True)
class LabelTargets(Targets):
    """Any number of labels a row.

    Attributes
    ----------
    classes : ndarray of shape (n_labels,)
        The names of the labels, or their numbers.
    indicator : ndarray or CSR matrix of shape (n_rows, n_labels)
        1 where a row has a label, else 0; int8, in the form in which y came.
    """

    classes: Array
    indicator: Any

    @classmethod
    def of(cls, y: Any, *, n_labels: int | None = None, names: Array | None = None) -> LabelTargets:
        """Return the targets of an indicator matrix, dense or sparse.

        Parameters
        ----------
        y : {array-like, sparse matrix} of shape (n_rows, n_labels)
            0 or 1, or False or True.
        n_labels : int, default=None
            How many labels there must be; None for any number.
        names : ndarray of shape (n_labels,), default=None
            Names of the labels; None takes their numbers.
        """
        if sp.issparse(y):
            indicator: Any = y.tocsr(copy=True)
            indicator.sum_duplicates()
            numbers = indicator.data
        else:
            indicator = numbers = np.asarray(y)
        if indicator.ndim != 2 or not np.isin(numbers, (0, 1)).all():
            other = np.asarray(numbers).ravel()
            other = other[~np.isin(other, (0, 1))]
            value = f", with values such as {other[0].item()!r}" if other.size else ""
            raise ValueError(
                "Unknown label type: y must be an indicator matrix of 0 and 1 with a column for "
                f"each label, got {type_of_target(y)!r} targets of shape {np.shape(y)}{value}."
            )
        if indicator.shape[1] == 0:
            raise ValueError(f"y has no labels: its shape is {indicator.shape}.")
        if n_labels is not None and indicator.shape[1] != n_labels:
            raise ValueError(f"y must have {n_labels} labels, got {indicator.shape[1]}.")
        indicator = indicator.astype(np.int8)
        if sp.issparse(indicator):
            indicator.eliminate_zeros()
        return cls(np.arange(indicator.shape[1]) if names is None else names, indicator)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.indicator.shape[0])

    @property
    def told(self) -> Any:
        """The indicator."""
        return self.indicator

    def set_numbers(self) -> Numbers:
        """Return numbers that are the same for rows of the same labels."""
        if sp.issparse(self.indicator):
            of_row = self.indicator.sorted_indices()
            ends = zip(of_row.indptr[:-1], of_row.indptr[1:], strict=True)
            keys = [of_row.indices[start:end].tobytes() for start, end in ends]
        else:
            keys = [row.tobytes() for row in np.packbits(self.indicator.astype(bool), axis=1)]
        known = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        return np.array([known[key] for key in keys], dtype=np.intp)

    def sums(self, weights: Array) -> Array:
        """Return, for each label, the sum of the weights of the rows that have it."""
        return np.asarray(self.indicator.T @ weights)

    def signs(self) -> npt.NDArray[np.int8]:
        """Return +1 where a row has a label and -1 where not, as a dense matrix."""
        dense = self.indicator.toarray() if sp.issparse(self.indicator) else self.indicator
        return np.ascontiguousarray(2 * dense - 1, dtype=np.int8)

    def encode(self, loss: Loss) -> Array:
        """Return +1 where a row has a label and -1 where not, for a loss of independent outputs."""
        if loss.compares_outputs:
            raise TypeError(
                f"Rows with several labels need a loss of independent outputs; {loss.name!r} is of "
                "classes, of which one is right."
            )
        like = loss.encode(np.zeros(1, dtype=np.intp), 1)
        return self.signs().astype(like.dtype, copy=False)

    def readout(self, link: Link | None = None) -> Readout:
        """Return how the scores of the labels are read."""
        return Readout(self.classes, kind="multilabel", link=link)

    def take(self, places: Any) -> LabelTargets:
        """Return the targets of some rows."""
        return LabelTargets(self.classes, self.indicator[places])

    def take_labels(self, places: Any) -> LabelTargets:
        """Return the targets of some labels."""
        return LabelTargets(self.classes[places], self.indicator[:, places])


@dataclass(frozen=True)
class TrainingRows:
    """Rows to learn from, checked, and in the form that native code takes.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_rows, n_features)
    targets : ClassTargets
    weights : ndarray of shape (n_rows,)
        ``sample_weight``, or ones.
    caps : ndarray of shape (n_rows,)
        What a row counts against the regulariser: C times its weight and that of its class.
    """

    rows: Rows
    targets: ClassTargets
    weights: Array
    caps: Array

    @property
    def targets_vary(self) -> bool:
        """Whether there is anything to learn; one class alone is refused before."""
        return True

"""Losses: how wrong a row of scores is.

A loss judges scores and targets. It never sees the rows, the coefficients or C. The formulas live
in the native header ``losses.hpp``; the classes here are their names and their parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native

Array: TypeAlias = npt.NDArray[Any]


class Loss(ABC):
    """A convex loss of one row of scores, once differentiable.

    Scores are arrays of shape (n_rows, n_outputs), float32 or float64. Targets are what
    ``encode`` makes of class numbers; :class:`SquaredError` takes any numbers.
    """

    name: ClassVar[str]
    gives_probabilities: ClassVar[bool] = False
    # Whether only differences of a row's scores count, so that a common shift changes nothing.
    compares_outputs: ClassVar[bool] = False
    # Whether every output curves the same at all scores, so that one Gram matrix serves them all.
    curves_alike: ClassVar[bool] = False

    @abstractmethod
    def native(self) -> Any:
        """Return the native loss."""

    @abstractmethod
    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return the targets for class numbers 0 .. n_outputs - 1."""

    def value(self, scores: Array, targets: Array) -> Array:
        """Return the loss of each row, shape (n_rows,)."""
        each = [
            _native.loss_value(
                self.native(), targets[i : i + 1], scores[i : i + 1], np.ones(1, scores.dtype), 1
            )
            for i in range(scores.shape[0])
        ]
        return np.asarray(each)

    def gradient(self, scores: Array, targets: Array) -> Array:
        """Return the gradient of each row's loss in its scores."""
        return self._derivatives(scores, targets)[0]

    def hessian_diagonal(self, scores: Array, targets: Array) -> Array:
        """Return the second derivative of each row's loss in each of its scores."""
        return self._derivatives(scores, targets)[1]

    def hessian_product(self, scores: Array, targets: Array, direction: Array) -> Array:
        """Return the (generalised) Hessian of each row's loss times a row of ``direction``."""
        out = np.empty_like(scores)
        weights = np.ones(scores.shape[0], dtype=scores.dtype)
        _native.curved_rows(self.native(), targets, scores, weights, direction, out, 1)
        return out

    def _derivatives(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        gradient, curvature = np.empty_like(scores), np.empty_like(scores)
        active = np.empty(scores.shape[0], dtype=bool)
        weights = np.ones(scores.shape[0], dtype=scores.dtype)
        _native.derivatives(self.native(), targets, scores, weights, gradient, curvature, active, 1)
        return gradient, curvature


def _signs(labels: npt.NDArray[np.intp], n_outputs: int, dtype: Any) -> Array:
    signs = np.full((len(labels), n_outputs), -1, dtype=dtype)
    inside = labels < n_outputs
    signs[np.flatnonzero(inside), labels[inside]] = 1
    return signs


class _ClassLoss(Loss):
    """A loss of the scores of all classes, of which one is right."""

    compares_outputs = True

    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return the class numbers as 32-bit integers."""
        return np.ascontiguousarray(labels, dtype=np.int32)


class _SignedLoss(Loss):
    """A sum of losses of independent outputs, each with a target of +1 or -1."""

    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return +1 for the output of the class, -1 for the others."""
        return _signs(labels, n_outputs, np.int8)


@dataclass(frozen=True)
class WestonWatkins(_ClassLoss):
    """Squared hinge of Weston and Watkins, ``1/2 sum_{c != y} max(0, 1 + f_c - f_y)^2``."""

    name = "weston_watkins"

    def native(self) -> Any:
        """Return the native loss."""
        return _native.WestonWatkins()


@dataclass(frozen=True)
class CrammerSinger(_ClassLoss):
    """Squared hinge of Crammer and Singer, ``1/2 max(0, max_{c != y} 1 + f_c - f_y)^2``.

    Its maximum has a kink where two wrong classes tie, and the iterates of a solver collect there.
    So the maximum is rounded off near ties: where the worst wrong class leads the next by
    ``smoothing`` or more the loss is the plain one, and at a tie the maximum is larger by less
    than ``smoothing / 2``.

    Parameters
    ----------
    smoothing : float, default=0.1
        In units of the scores, where the margin is 1.
    """

    smoothing: float = 0.1
    name = "crammer_singer"

    def __post_init__(self) -> None:
        if not self.smoothing > 0:
            raise ValueError(
                f"smoothing must be positive, got {self.smoothing}: without it the loss has "
                "kinks at ties, where Newton steps stall."
            )

    def native(self) -> Any:
        """Return the native loss."""
        return _native.CrammerSinger(self.smoothing)


@dataclass(frozen=True)
class Logistic(_ClassLoss):
    """Multinomial logistic loss, ``log sum_c exp(f_c) - f_y``."""

    name = "logistic"
    gives_probabilities = True

    def native(self) -> Any:
        """Return the native loss."""
        return _native.Logistic()


@dataclass(frozen=True)
class SquaredHinge(_SignedLoss):
    """Squared hinge of independent outputs, ``1/2 sum_c max(0, 1 - t_c f_c)^2``."""

    name = "squared_hinge"

    def native(self) -> Any:
        """Return the native loss."""
        return _native.SquaredHinge()


@dataclass(frozen=True)
class BinaryLogistic(_SignedLoss):
    """Logistic loss of independent outputs, ``sum_c log(1 + exp(-t_c f_c))``."""

    name = "binary_logistic"
    gives_probabilities = True

    def native(self) -> Any:
        """Return the native loss."""
        return _native.BinaryLogistic()


@dataclass(frozen=True)
class SquaredError(Loss):
    """Squared error of independent outputs, ``1/2 sum_c (f_c - t_c)^2``.

    Targets t are any numbers, float64 of the shape of the scores: those of another machine, say.
    """

    name = "squared_error"
    curves_alike = True

    def native(self) -> Any:
        """Return the native loss."""
        return _native.SquaredError()

    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return +1 for the output of the class, -1 for the others."""
        return _signs(labels, n_outputs, np.float64)


CLASS_LOSSES: dict[str, type[Loss]] = {
    loss.name: loss for loss in (WestonWatkins, CrammerSinger, Logistic)
}


def all_losses() -> list[Loss]:
    """Return one of every loss, for tests that walk them."""
    return [
        WestonWatkins(),
        CrammerSinger(),
        Logistic(),
        SquaredHinge(),
        BinaryLogistic(),
        SquaredError(),
    ]


def one_against_rest(loss: Loss) -> Loss:
    """Return the loss of a single class against the rest that belongs to a multiclass loss."""
    return BinaryLogistic() if loss.gives_probabilities else SquaredHinge()

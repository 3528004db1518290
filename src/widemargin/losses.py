"""Losses: how wrong a row of scores is.

A loss judges scores and targets. It never sees the rows, the coefficients or C. The formulas live
in the native header ``losses.hpp``; the classes here are their names and their parameters.

A class of this module that has a ``name`` is a loss of the library: its native twin has the name of
the class and takes its fields, and users, tests, model files and the guide find it in ``LOSSES``.
Subclasses elsewhere are losses like any other for a fit, by the native code of the class that they
come from. But no name stands for them, and no model file holds them: it would hold code.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin._system.parameters import check_real

Array: TypeAlias = npt.NDArray[Any]

#: Every loss of the library, by its name; see the head of this module.
LOSSES: dict[str, type[Loss]] = {}


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

    # The loss of the library that this is, or comes from.
    _native_kind: ClassVar[type[Loss] | None] = None

    def __init_subclass__(cls, **settings: Any) -> None:
        """Enter a loss of this module in ``LOSSES``."""
        super().__init_subclass__(**settings)
        if cls.__module__ == __name__ and "name" in vars(cls):
            LOSSES[cls.name] = cls
            cls._native_kind = cls

    def native(self) -> Any:
        """Return the native loss, with the parameters of this one."""
        kind: Any = self._native_kind
        if kind is None:
            raise TypeError(
                f"{type(self).__name__} has no native code. Derive a loss from one of "
                f"widemargin.losses: {', '.join(each.__name__ for each in LOSSES.values())}."
            )
        parameters = {field.name: getattr(self, field.name) for field in fields(kind)}
        return getattr(_native, kind.__name__)(**parameters)

    @abstractmethod
    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return the targets for class numbers 0 .. n_outputs - 1."""

    def one_against_rest(self) -> Loss:
        """Return the loss of a single class against the rest that belongs to this one."""
        return BinaryLogistic() if self.gives_probabilities else SquaredHinge()

    def weighed(self) -> Loss:
        """Return this loss with a weight for each output of a row, in the targets.

        Only losses of independent outputs, with targets of +1 and -1, have one.
        """
        raise TypeError(f"{self.name} has no weights of its outputs.")

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
    """Squared hinge of Weston and Watkins, ``1/2 sum_{c != y} max(0, 1 + f_c - f_y)^2``.

    It adds up the margin violations of all wrong classes. It is smooth enough for Newton steps and
    a good first choice.
    """

    name = "weston_watkins"


@dataclass(frozen=True)
class CrammerSinger(_ClassLoss):
    """Squared hinge of Crammer and Singer, ``1/2 max(0, max_{c != y} 1 + f_c - f_y)^2``.

    It counts only the worst wrong class. The maximum has a kink where two wrong classes tie, and
    the iterates of a solver collect there. So it is rounded off near ties: where the worst wrong
    class leads the next by ``smoothing`` or more the loss is the plain one, and at a tie the
    maximum is larger by less than ``smoothing / 2``.

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


@dataclass(frozen=True)
class HuberisedWestonWatkins(_ClassLoss):
    """Huberised hinge of Weston and Watkins, ``sum_{c != y} huber(max(0, 1 + f_c - f_y))``.

    For labels of which some are wrong. It is the squared hinge up to a violation v of ``delta``,
    ``huber(v) = v^2 / 2``, and linear beyond, ``delta v - delta^2 / 2``: a row that is far on the
    wrong side pulls no harder than one that is ``delta`` beyond its margin.

    Parameters
    ----------
    delta : float, default=1.0
        In units of the scores, where the margin is 1. At 1, a row that all classes score alike
        still curves. Smaller is more robust, and further from the squared hinge.
    """

    delta: float = 1.0
    name = "huberised_weston_watkins"

    def __post_init__(self) -> None:
        check_real("delta", self.delta, positive=True)

    def one_against_rest(self) -> Loss:
        """Return the Huberised hinge of a single class, with the same ``delta``."""
        return HuberisedSquaredHinge(self.delta)


@dataclass(frozen=True)
class Logistic(_ClassLoss):
    """Multinomial logistic loss, ``log sum_c exp(f_c) - f_y``.

    It gives probabilities: ``predict_proba``.
    """

    name = "logistic"
    gives_probabilities = True


@dataclass(frozen=True)
class SquaredHinge(_SignedLoss):
    """Squared hinge of independent outputs, ``1/2 sum_c max(0, 1 - t_c f_c)^2``."""

    name = "squared_hinge"

    def weighed(self) -> Loss:
        """Return this loss with weights in the targets."""
        return WeighedSquaredHinge()


@dataclass(frozen=True)
class HuberisedSquaredHinge(_SignedLoss):
    """Huberised hinge of independent outputs, ``sum_c huber(max(0, 1 - t_c f_c))``.

    Squared up to a violation of ``delta`` and linear beyond; see :class:`HuberisedWestonWatkins`.
    """

    delta: float = 1.0
    name = "huberised_squared_hinge"

    def __post_init__(self) -> None:
        check_real("delta", self.delta, positive=True)

    def weighed(self) -> Loss:
        """Return this loss with weights in the targets."""
        return WeighedHuberisedSquaredHinge(self.delta)


@dataclass(frozen=True)
class BinaryLogistic(_SignedLoss):
    """Logistic loss of independent outputs, ``sum_c log(1 + exp(-t_c f_c))``."""

    name = "binary_logistic"
    gives_probabilities = True

    def weighed(self) -> Loss:
        """Return this loss with weights in the targets."""
        return WeighedBinaryLogistic()


@dataclass(frozen=True)
class SquaredError(Loss):
    """Squared error of independent outputs, ``1/2 sum_c (f_c - t_c)^2``.

    Targets t are any numbers, float64 of the shape of the scores: those of another machine, say.
    """

    name = "squared_error"
    curves_alike = True

    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return +1 for the output of the class, -1 for the others."""
        return _signs(labels, n_outputs, np.float64)


class _WeighedLoss(Loss):
    """A sum of losses of independent outputs, each with a weight in every row.

    Targets are signs times weights, float64 of the shape of the scores: the loss is
    ``sum_c |t_c| loss(f_c, sign of t_c)``.
    """

    def encode(self, labels: npt.NDArray[np.intp], n_outputs: int) -> Array:
        """Return +1 for the output of the class, -1 for the others: weights of 1."""
        return _signs(labels, n_outputs, np.float64)


@dataclass(frozen=True)
class WeighedSquaredHinge(_WeighedLoss):
    """Squared hinge of independent outputs with weights, ``1/2 sum_c |t_c| max(0, 1 - s_c f_c)^2``.

    ``s_c`` is the sign of the target ``t_c``; see :class:`SquaredHinge`.
    """

    name = "weighed_squared_hinge"


@dataclass(frozen=True)
class WeighedHuberisedSquaredHinge(_WeighedLoss):
    """Huberised hinge with weights, ``sum_c |t_c| huber(max(0, 1 - s_c f_c))``.

    ``s_c`` is the sign of the target ``t_c``; see :class:`HuberisedSquaredHinge`.
    """

    delta: float = 1.0
    name = "weighed_huberised_squared_hinge"

    def __post_init__(self) -> None:
        check_real("delta", self.delta, positive=True)


@dataclass(frozen=True)
class WeighedBinaryLogistic(_WeighedLoss):
    """Logistic loss of independent outputs with weights, ``sum_c |t_c| log(1 + exp(-s_c f_c))``.

    ``s_c`` is the sign of the target ``t_c``.
    """

    name = "weighed_binary_logistic"
    gives_probabilities = True


#: Those of independent outputs, by the names that ``loss`` of a multi-label estimator has for them.
LABEL_LOSSES: dict[str, type[Loss]] = {
    "squared_hinge": SquaredHinge,
    "huberised_squared_hinge": HuberisedSquaredHinge,
    "logistic": BinaryLogistic,
}

#: Those of the scores of all classes: what ``loss`` of a multiclass estimator may be.
CLASS_LOSSES: dict[str, type[Loss]] = {
    name: loss for name, loss in LOSSES.items() if issubclass(loss, _ClassLoss)
}


def all_losses() -> list[Loss]:
    """Return one of every loss, with its defaults, for tests that walk them."""
    return [loss() for loss in LOSSES.values()]

"""Weights of linear machines of all classes, in the form in which steps move them.

A multiple of the weights is kept, so that the regulariser, which shrinks all of them at every step,
costs nothing; and of their mean what changes only where a row has entries. ``subgradient.hpp`` has
the formulas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.kernels import Rows, as_native_rows

Array: TypeAlias = npt.NDArray[Any]

LOSSES = ("crammer_singer", "weston_watkins", "logistic", "perceptron")

_TOTALS = ("weight", "shrink", "mass", "averaged", "square")


@dataclass(frozen=True)
class StepSettings:
    """What a step does.

    Attributes
    ----------
    loss : str
        One of ``LOSSES``.
    is_joint : bool
        Whether the loss compares the scores of all classes; else each class is against the rest.
    is_exact : bool
        Whether steps maximise the dual; else they follow a subgradient.
    alpha : float
        Weight of the regulariser against the mean loss.
    average : bool
        Whether the mean of the weights is kept.
    batch_size : int
        Rows whose scores are taken before any of them changes the weights.
    project : bool
        Whether weights are brought into the ball that the optimum is in.
    constant : float
        The value of a feature that all rows have besides; 0 is none.
    """

    loss: str
    is_joint: bool
    is_exact: bool
    alpha: float
    average: bool = True
    batch_size: int = 1
    project: bool = False
    constant: float = 0.0

    @cached_property
    def native(self) -> Any:
        """The rule as native code takes it."""
        return _native.StepRule(
            loss=self.loss,
            is_joint=self.is_joint,
            is_exact=self.is_exact,
            projects=self.project,
            penalty=self.alpha,
            batch=self.batch_size,
        )


def padded(n_classes: int) -> int:
    """Return the columns of arrays of weights: whole groups of classes."""
    size = int(_native.CLASSES_AT_ONCE)
    return -(-n_classes // size) * size


def _totals_of(packed: dict[str, Any]) -> Any:
    """Return the native totals of a packed state; ValueError if there are none such."""
    totals = _native.StepTotals()
    for name in _TOTALS:
        value = packed[name]
        if type(value) is not float or not 0 <= value < np.inf:
            raise ValueError(f"has {name} that is no number of 0 or more")
        setattr(totals, name, value)
    if type(packed["steps"]) is not int or packed["steps"] < 0:
        raise ValueError("has steps that are no count")
    totals.steps = packed["steps"]
    return totals


@dataclass
class LinearSums:
    """Weights of all classes, as native steps move them.

    Attributes
    ----------
    n_classes : int
        Columns that are used.
    sums : ndarray of shape (n_features + 1, padded n_classes)
        A multiple of the weights; the last row is that of the constant feature.
    earlier : ndarray of the same shape, or None
        What the mean of the weights is made of besides; None without one.
    totals : native StepTotals
    """

    n_classes: int
    sums: Array
    earlier: Array | None
    totals: Any = field(default_factory=_native.StepTotals)

    @classmethod
    def begin(cls, n_features: int, n_classes: int, dtype: Any, *, average: bool) -> LinearSums:
        """Return weights of zero."""
        shape = (n_features + 1, padded(n_classes))
        sums = np.zeros(shape, dtype=dtype)
        return cls(n_classes, sums, np.zeros(shape, dtype=dtype) if average else None)

    def learn(
        self,
        rows: Any,
        targets: npt.NDArray[np.int32],
        weights: Array,
        order: npt.NDArray[np.int32],
        settings: StepSettings,
        coefficients: Array | None = None,
        *,
        revisits: bool = False,
    ) -> Any:
        """Learn rows in this order; return the native record of what they were like before."""
        return _native.learn_rows(
            settings.native,
            rows,
            settings.constant,
            targets,
            weights,
            self.n_classes,
            order,
            revisits,
            self.totals,
            self.sums,
            self.earlier,
            coefficients,
        )

    def begin_mean(self) -> None:
        """Forget all weights before in the mean."""
        if self.earlier is not None:
            self.earlier[:] = 0
            self.totals.mass = self.totals.averaged = 0.0

    def factors(self, alpha: float, *, mean: bool) -> tuple[float, float]:
        """Return what the sums and the earlier ones count in the weights, or in their mean."""
        totals = self.totals
        if totals.weight == 0:
            return 0.0, 0.0
        if mean and self.earlier is not None and totals.averaged > 0:
            whole = alpha * totals.averaged
            return totals.mass / whole, -1 / whole
        return totals.shrink / (alpha * totals.weight), 0.0

    def weights(self, alpha: float, *, mean: bool) -> Array:
        """Return the weights, or their mean, of the shape of the sums and in double precision."""
        own, before = self.factors(alpha, mean=mean)
        weights = own * self.sums.astype(np.float64)
        if before and self.earlier is not None:
            weights += before * self.earlier.astype(np.float64)
        return weights

    def scores(self, rows: Rows, settings: StepSettings) -> Array:
        """Return the scores of rows by the mean where there is one, of shape (n_rows, n_classes).

        For few rows: the weights are not written down for it.
        """
        native = as_native_rows(rows.astype(self.sums.dtype, copy=False))
        parts = zip((self.sums, self.earlier), self.factors(settings.alpha, mean=True), strict=True)
        total = np.zeros((rows.shape[0], self.n_classes))
        for part, factor in parts:
            if part is not None and factor:
                each = np.empty_like(total)
                _native.weigh_rows(native, settings.constant, part, each)
                total += factor * each
        return total

    def add_classes(self, count: int) -> None:
        """Add classes at the end, whose weights are zero."""
        self._resize(self.n_classes + count)

    def drop_class(self) -> None:
        """Let go of the last class."""
        for part in (self.sums, self.earlier):
            if part is not None:
                part[:, self.n_classes - 1] = 0
        self._resize(self.n_classes - 1)

    def add_features(self, count: int) -> None:
        """Add features at the end, whose weights are zero; the constant stays the last."""
        for name in ("sums", "earlier"):
            part = getattr(self, name)
            if part is not None:
                setattr(self, name, np.insert(part, [len(part) - 1] * count, 0, axis=0))

    def _resize(self, n_classes: int) -> None:
        width, before = padded(n_classes), self.sums.shape[1]
        if width != before:
            kept = min(width, before)
            for name in ("sums", "earlier"):
                part = getattr(self, name)
                if part is not None:
                    wider = np.zeros((len(part), width), dtype=part.dtype)
                    wider[:, :kept] = part[:, :kept]
                    setattr(self, name, wider)
        self.n_classes = n_classes

    def pack(self) -> dict[str, Any]:
        """Return what model files hold."""
        return {
            "n_classes": self.n_classes,
            "sums": self.sums.copy(),
            "earlier": None if self.earlier is None else self.earlier.copy(),
            **{name: float(getattr(self.totals, name)) for name in _TOTALS},
            "steps": int(self.totals.steps),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], n_features: int, n_classes: int) -> LinearSums:
        """Return what was packed; ValueError if it is none of so many features and classes."""
        parts: list[Any] = []
        shape = (n_features + 1, padded(n_classes))
        for name in ("sums", "earlier"):
            part = packed[name]
            if part is not None:
                fits = isinstance(part, np.ndarray) and part.shape == shape
                if not fits or part.dtype not in (np.float32, np.float64):
                    raise ValueError(f"has {name} that are of other features or classes")
                if part.dtype != packed["sums"].dtype or not np.isfinite(part).all():
                    raise ValueError(f"has {name} that are no numbers")
                part = np.array(part, order="C")
            parts.append(part)
        if packed["n_classes"] != n_classes or parts[0] is None:
            raise ValueError("has weights of other classes")
        return cls(n_classes, parts[0], parts[1], _totals_of(packed))

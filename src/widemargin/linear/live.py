"""Linear machines that go on learning: the stream behind ``partial_fit``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.streams import Stream, StreamClasses
from widemargin.kernels import Rows, as_native_rows
from widemargin.models import LinearMap
from widemargin.readouts import two_as_one
from widemargin.solvers.linear.sums import LinearSums, StepSettings

Array: TypeAlias = npt.NDArray[Any]

_ROWS_AT_ONCE = 1 << 14  # Ctrl-C is served in between


def linear_map(weights: Array, settings: StepSettings) -> LinearMap:
    """Return the model of weights with a row for each feature and one for the constant."""
    coef, intercept = weights[:-1], settings.constant * weights[-1]
    return LinearMap(*map(np.ascontiguousarray, _for_two(coef, intercept, settings)))


def _for_two(coef: Array, intercept: Array, settings: StepSettings) -> tuple[Array, Array]:
    """Return a single column for two classes: the second less the first.

    Where each class is against the rest, the one is the other with another sign, so that it is half
    of the difference.
    """
    if coef.shape[1] == 2 and not settings.is_joint:
        coef, intercept = coef / 2, intercept / 2
    return two_as_one(coef, intercept)


@dataclass
class Met:
    """What the rows of a call, or of a pass, were like when they came."""

    rows: int = 0
    weight: float = 0.0
    loss: float = 0.0
    mistakes: int = 0

    def add(self, other: Met) -> None:
        """Take in rows that came later."""
        self.rows += other.rows
        self.weight += other.weight
        self.loss += other.loss
        self.mistakes += other.mistakes

    def mean_loss(self) -> float:
        """Return the mean loss, by weight; 0 without rows."""
        return self.loss / self.weight if self.weight > 0 else 0.0

    def entries(self, epoch: int, steps: int) -> dict[str, float]:
        """Return what the record of a fit has of them."""
        return {
            "epoch": epoch,
            "steps": steps,
            "loss": self.mean_loss(),
            "mistakes": self.mistakes / max(1, self.rows),
            "gap": np.inf,
        }


@dataclass(kw_only=True)
class LinearStream(Stream):
    """Weights that go on learning.

    Attributes
    ----------
    sums : LinearSums
        With a column for each class, and maybe a spare one.
    settings : StepSettings
    met : Met
        What the rows of the last call were like.
    """

    sums: LinearSums
    settings: StepSettings
    met: Met = field(default_factory=Met)

    def add_columns(self, count: int) -> None:
        """Add columns of weights at the end, which are zero."""
        self.sums.add_classes(count)

    def drop_spare(self) -> None:
        """Let go of the last column; what the others have against it they keep."""
        self.sums.drop_class()
        self.classes.has_spare = False

    def learn(self, rows: Rows, columns: npt.NDArray[np.intp], caps: Array) -> None:
        """Learn rows in their order; one of weight zero might as well not be there."""
        self.met = Met()
        some = np.flatnonzero(caps > 0).astype(np.int32)
        native = as_native_rows(rows.astype(self.sums.sums.dtype, copy=False))
        targets = np.ascontiguousarray(columns, dtype=np.int32)
        caps = np.ascontiguousarray(caps, dtype=np.float64)
        batch = self.settings.batch_size
        size = max(1, _ROWS_AT_ONCE // batch) * batch
        for start in range(0, len(some), size):
            part = some[start : start + size]
            record = self.sums.learn(native, targets, caps, part, self.settings)
            self.rows_seen += len(part)
            weight = float(caps[part].sum())
            self.met.add(Met(len(part), weight, record.loss, record.mistakes))

    def weights(self) -> Array:
        """Return the weights that predict, with a column for each class, in their order."""
        weights = self.sums.weights(self.settings.alpha, mean=True)
        return np.asarray(weights[:, self.classes.columns])

    def scores(self, rows: Rows) -> Array:
        """Return the scores that the model would give, one for two classes."""
        scores = self.sums.scores(rows, self.settings)[:, self.classes.columns]
        none = np.zeros(scores.shape[1])
        return np.ascontiguousarray(_for_two(scores, none, self.settings)[0], dtype=rows.dtype)

    def pack(self) -> dict[str, Any]:
        """Return all that later rows depend on; the lock must be held."""
        return {
            "sums": self.sums.pack(),
            "classes": self.classes.pack(),
            "rows_seen": self.rows_seen,
        }


def unpack_stream(
    packed: dict[str, Any],
    labels: Array,
    n_features: int,
    settings: StepSettings,
    parameters: dict[str, Any],
) -> LinearStream:
    """Return the stream that was packed; ValueError if it is none of these classes and features."""
    try:
        if set(packed) != {"sums", "classes", "rows_seen"}:
            raise ValueError("has parts missing or surplus")
        classes = StreamClasses.unpack(packed["classes"], labels)
        sums = LinearSums.unpack(packed["sums"], n_features, classes.n_columns)
        if (sums.earlier is not None) != settings.average:
            raise ValueError("has no mean of the weights, or has one where there is none")
        if type(packed["rows_seen"]) is not int or packed["rows_seen"] < 0:
            raise ValueError("has rows that are no count")
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"is damaged: {error}") from error
    return LinearStream(
        classes=classes,
        parameters=parameters,
        rows_seen=packed["rows_seen"],
        sums=sums,
        settings=settings,
    )

"""What a linear classifier is while it goes on learning: its stream, and attributes made of it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.class_rows import LearnsClasses
from widemargin.estimation.streams import (
    StreamClasses,
    StreamingClassifier,
    names_of_the_past,
)
from widemargin.kernels import Rows
from widemargin.linear.live import LinearStream, Met, linear_map, unpack_stream
from widemargin.models import LinearMap
from widemargin.readouts import Link, Readout
from widemargin.solvers.linear.sums import LinearSums, StepSettings

Array: TypeAlias = npt.NDArray[Any]

_LIVE_ROWS = 1000  # more are predicted by a model that is written down


class StreamingLinearClassifier(LearnsClasses, StreamingClassifier):
    """A linear classifier that rows of a stream change one after the other."""

    model_: LinearMap
    _seen: dict[str, Any]  # the weight of all rows so far, the steps, and maybe a stream put away

    loss: str
    strategy: str
    solver: str
    alpha: float
    fit_intercept: bool
    average: bool
    batch_size: int
    project: bool

    _model_type = LinearMap
    _model_parts = frozenset({"intercept_"})
    _lasting_parameters = ("loss", "strategy", "solver", "alpha", "fit_intercept", "average")

    def _settings(self) -> StepSettings:
        return StepSettings(
            loss=self.loss,
            is_joint=self.strategy == "joint",
            is_exact=self._is_exact(),
            alpha=float(self.alpha),
            average=bool(self.average),
            batch_size=int(self.batch_size),
            project=bool(self.project),
            constant=1.0 if self.fit_intercept else 0.0,
        )

    def _is_exact(self) -> bool:
        return self.solver == "dual" or (self.solver == "auto" and self.loss != "perceptron")

    def _cap(self) -> float:
        return 1.0

    def _readout_of(self, classes: Array) -> Readout:
        link: Link = "softmax" if self.strategy == "joint" else "one_against_rest"
        return Readout.of_classes(classes, link if self.loss == "logistic" else None)

    def _begin(self, rows: Rows, classes: StreamClasses) -> LinearStream:
        settings = self._settings()
        sums = LinearSums.begin(
            rows.shape[1], classes.n_columns, rows.dtype, average=settings.average
        )
        return self._stream_of(sums, classes, settings, 0)

    def _widen(self, n_features: int) -> None:
        """Take rows of so many features from now on; those that are new have weights of zero."""
        stream: LinearStream = self.__dict__["_stream"]
        with stream.lock:
            stream.sums.add_features(n_features - self.n_features_in_)
            kind: Any = type(self)
            for name in names_of_the_past(kind):
                self.__dict__.pop(name, None)
            self.n_features_in_ = n_features

    def _stream_of(
        self, sums: LinearSums, classes: StreamClasses, settings: StepSettings, rows_seen: int
    ) -> LinearStream:
        return LinearStream(
            classes=classes,
            parameters=self._stream_parameters(),
            rows_seen=rows_seen,
            sums=sums,
            settings=settings,
        )

    def _resume(self) -> LinearStream:
        """Return a stream that goes on from what a stream, a fit or a file has left."""
        state = self.__getstate__() if "_stream" in self.__dict__ else self.__dict__
        seen, settings = state["_seen"], self._settings()
        if "state" in seen:
            parameters = self._stream_parameters()
            return unpack_stream(
                seen["state"], self.classes_, self.n_features_in_, settings, parameters
            )
        if seen["weight"] == 0:
            raise ValueError(
                "model_ is not the one that this machine has learned, so that nobody knows how "
                "much it counts. Call partial_fit of a clone, or fit."
            )
        # Nobody has said that no other class will come.
        classes = StreamClasses.begin(self.classes_, is_open=True)
        sums = self._sums_of_model(settings, seen)
        classes.rows_before = seen["steps"]
        return self._stream_of(sums, classes, settings, seen["steps"])

    def _sums_of_model(self, settings: StepSettings, seen: dict[str, Any]) -> LinearSums:
        """Return sums of which model_ is the weights, and their mean so far."""
        coef = np.vstack([self.model_.coef, self.model_.intercept])
        if coef.shape[1] == 1:
            half = coef / 2 if settings.is_joint else coef
            coef = np.hstack([-half, half])
        sums = LinearSums.begin(
            self.n_features_in_, coef.shape[1], np.float64, average=settings.average
        )
        weight = seen["weight"]
        sums.sums[:, : coef.shape[1]] = coef * (settings.alpha * weight)
        sums.totals.weight, sums.totals.steps = weight, seen["steps"]
        sums.totals.square = float(np.square(sums.sums).sum())
        # As if all weights before had been these.
        sums.totals.averaged, sums.totals.mass = weight**2 / 2, weight / 2
        return sums

    def _publish(self) -> None:
        """Write down the attributes of the stream that is alive; its lock must be held."""
        if "model_" in self.__dict__:
            return  # by another thread
        stream: LinearStream = self.__dict__["_stream"]
        attributes = self.attributes_of_stream(stream, stream.met)
        model = attributes.pop("model_")
        self.__dict__.update(attributes)
        self.__dict__["model_"] = model  # the last: it says that all are there

    def attributes_of_stream(self, stream: LinearStream, met: Met) -> dict[str, Any]:
        """Return the attributes of a machine that has learned a stream; rows were like ``met``."""
        weights, totals = stream.weights(), stream.sums.totals
        steps = int(totals.steps)
        record = {"seconds": 0.0, **met.entries(1, steps)}
        regulariser = 0.5 * stream.settings.alpha * float(np.square(weights).sum())
        return {
            "model_": linear_map(weights, stream.settings),
            "readout_": self._readout_of(self.classes_),
            "objective_": regulariser + met.mean_loss(),
            "dual_objective_": -np.inf,
            "gap_": np.inf,
            "n_iter_": 1,
            "t_": steps,
            "stop_reason_": "partial_fit",
            "history_": {name: np.asarray([value]) for name, value in record.items()},
            "_seen": {"weight": float(totals.weight), "steps": steps},
        }

    def _packed_stream(self, state: dict[str, Any]) -> dict[str, Any]:
        stream: LinearStream = self.__dict__["_stream"]
        return state | {"_seen": {**self._seen, "state": stream.pack()}}

    def _check_stream_state(self, packed: Any) -> None:
        """Require what a stream of this machine may have packed, or ValueError."""
        unpack_stream(packed, self.classes_, self.n_features_in_, self._settings(), {})

    def _make_way_for(self, model: Any) -> None:
        if "_stream" in self.__dict__:
            with self.__dict__["_stream"].lock:
                self._publish()
                del self._stream
        super()._make_way_for(model)
        if "_seen" in self.__dict__:
            self._seen = {"weight": 0.0, "steps": 0}

    def _scores_of(self, rows: Rows) -> Array:
        return self._live_scores(rows, super()._scores_of)

    def _best(self, rows: Rows) -> npt.NDArray[np.int64]:
        stream = self.__dict__.get("_stream")
        if stream is None or "model_" in self.__dict__ or rows.shape[0] > _LIVE_ROWS:
            return super()._best(rows)
        scores = self._scores_of(rows)
        if self.readout_.kind == "binary":
            return np.asarray(scores[:, 0] > 0, dtype=np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def _live_scores(self, rows: Rows, ask_model: Any) -> Array:
        """Return scores: of the machine that is alive, or of its model where that is written down.

        Few rows are told without writing down the model, which may have more weights than these.
        """
        stream: LinearStream | None = self.__dict__.get("_stream")
        if stream is not None and rows.shape[0] <= _LIVE_ROWS:
            with stream.lock:
                if "model_" not in self.__dict__:
                    return stream.scores(rows)
        return np.asarray(ask_model(rows))

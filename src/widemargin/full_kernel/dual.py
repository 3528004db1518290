"""Classifiers that a dual expansion is behind, which learn row by row, too.

Few rows at a time are predicted by the machine that is alive (:mod:`widemargin.full_kernel.live`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from widemargin._system.file_changes import Added
from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin._system.threads import thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.streams import (
    Stream,
    StreamClasses,
    StreamingClassifier,
    names_of_the_past,
)
from widemargin.full_kernel.live import LiveScores, live_scores
from widemargin.full_kernel.support import SupportAttributes
from widemargin.kernels import AdaptiveRBF, Kernel, Precomputed, Rows
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout, two_as_one
from widemargin.rows import rows_like, with_columns
from widemargin.solvers.duals.expansion import DualExpansion, Supports

Array: TypeAlias = npt.NDArray[Any]

BUDGET_POLICIES = ("redundant", "drop", "merge")

# Rows of a call that the living machine predicts at the most. For more, the time that it takes to
# write its model down counts for little, and the model needs no lock.
_LIVE_ROWS = 512


@dataclass(kw_only=True)
class DualStream(Stream):
    """A dual expansion that goes on learning."""

    machine: DualExpansion
    native: Any  # the solver that takes blocks of rows
    like: Rows  # no rows, of the form and dtype that all rows have
    averages: bool  # whether the coefficients that predict are means over all rows
    # Make a machine of so many columns about an origin, and its solver.
    remake: Callable[[Rows, int, Array | None], tuple[DualExpansion, Any]]
    is_unfinished: bool = False  # whether there is a batch whose rows are not yet put away
    live: LiveScores | None = None

    def add_columns(self, count: int) -> None:
        """Add columns of coefficients at the end, which are zero."""
        self.finish_batch()
        for _ in range(count):
            self.machine.add_class(self.machine.n_classes)

    def drop_spare(self) -> None:
        """Let go of the last column, as if no row had been learned against it.

        What a row has there goes back to its own class, so that rows sum to zero as before.
        """
        self.finish_batch()
        supports, spare = self.machine.supports(), self.machine.n_classes - 1
        parts = []
        for part in (supports.coef, supports.earlier):
            part[np.arange(len(part)), supports.labels] += part[:, spare]
            parts.append(np.ascontiguousarray(part[:, :spare]))
        machine, native = self.remake(self.vectors(supports), spare, self.machine.origin)
        first_id = self.rows_seen - len(supports.ids)  # names below those of rows to come
        machine.use_batch(self.vectors(supports), supports.labels, supports.caps, first_id=first_id)
        machine.restore(np.arange(len(supports.ids)), *parts)
        machine.let_go_of_batch()
        native.take_on(self.native.snapshot())
        self.classes.has_spare = False
        self.machine, self.native, self.live = machine, native, None

    def learn(self, rows: Rows, columns: npt.NDArray[np.intp], caps: Array) -> None:
        """Learn rows in their order; one of weight zero might as well not be there."""
        self.finish_batch()
        rows = rows_like_stream(rows, self.like)
        if not caps.all():
            some = np.flatnonzero(caps)
            rows, columns, caps = rows[some], columns[some], caps[some]
        batch = self.machine.use_batch(rows, columns, caps, first_id=self.rows_seen)
        self.rows_seen += batch.n_rows  # no name is given twice, even if not all are learned
        self.is_unfinished = True
        try:
            self.machine.learn(self.native, np.arange(batch.n_rows))
        finally:
            self.finish_batch()

    def finish_batch(self) -> None:
        """Put away the rows of the last batch.

        Ctrl-C may come in between, so whoever looks at the machine calls it first: what was begun
        is then done once more.
        """
        if not self.is_unfinished:
            return
        self.machine.set.release_all()  # of rows that were admitted but not learned
        self.machine.let_go_of_batch()
        self.is_unfinished = False

    def pack(self) -> dict[str, Any]:
        """Return all that later rows depend on, besides the vectors; the lock must be held."""
        return {
            "machine": self.machine.pack(),
            "learner": self.native.snapshot(),
            "problem": _problem_of(self.machine),
            "classes": self.classes.pack(),
        }

    def scores(self) -> LiveScores:
        """Return the scores of the machine as it is; the lock must be held while they are used."""
        self.finish_batch()
        if self.live is None:
            self.live = live_scores(self.machine, self.classes, averages=self.averages)
        return self.live

    def vectors(self, supports: Supports) -> Rows:
        """Return the rows of support patterns."""
        return rows_like_stream(self.machine.rows_in(supports.slots), self.like)

    def supports_by_class(self) -> Supports:
        """Return the support patterns, with classes where the machine has columns."""
        supports = self.machine.supports()
        if self.classes.is_plain:
            return supports
        columns = self.classes.columns
        numbers = np.empty(len(columns), dtype=np.int32)
        numbers[columns] = np.arange(len(columns))
        return replace(
            supports,
            labels=numbers[supports.labels],
            coef=np.ascontiguousarray(supports.coef[:, columns]),
            earlier=np.ascontiguousarray(supports.earlier[:, columns]),
        )


def _problem_of(machine: DualExpansion) -> dict[str, Any]:
    """Return what must be the same for a packed machine to go on."""
    return {"loss": machine.loss, "margin": machine.margin, "offset": machine.offset}


class DualClassifier(SupportAttributes, HasKernel, StreamingClassifier):
    """A classifier that a :class:`~widemargin.solvers.duals.expansion.DualExpansion` is behind."""

    # A machine of a file without it has no intercept, whatever the default is now.
    _file_changes = MappingProxyType({"fit_intercept": Added(2, lambda file: False)})

    model_: KernelExpansion
    cache_size: float
    budget: int | None
    budget_policy: str
    fit_intercept: bool
    random_state: Any
    _patterns: dict[str, Any]

    _lasting_parameters = (
        *("kernel", "gamma", "degree", "coef0", "fit_intercept"),
        *("loss", "margin", "average"),
    )

    @abstractmethod
    def _make_machine(
        self,
        kernel: Kernel,
        rows: Rows,
        origin: Array | None = None,
        n_columns: int | None = None,
    ) -> DualExpansion:
        """Return a machine without rows, with a column for each class, or so many."""

    @abstractmethod
    def _make_learner(self, machine: DualExpansion, seed: int, rows_seen: int) -> Any:
        """Return the native solver that ``partial_fit`` goes by."""

    @abstractmethod
    def _attributes_after(self, stream: DualStream) -> dict[str, Any]:
        """Return what a fit leaves besides the model, after rows of a stream."""

    def _check_learns_row_by_row(self) -> None:
        """Raise AttributeError, with a way out, where ``partial_fit`` cannot be."""
        if self._is_precomputed():
            raise AttributeError(
                "partial_fit does not go with a precomputed kernel: its columns are the training "
                "rows of fit."
            )

    def _averages(self) -> bool:
        """Whether the coefficients that predict are means over all rows seen."""
        return False

    def _averaged_over(self, n_patterns: int, rows_seen: int) -> float:
        """Return over how many rows; infinity where the last coefficients predict."""
        return np.inf

    def _check_stream_parameters(self) -> None:
        self._check_kernel_parameters()
        if isinstance(self.kernel, AdaptiveRBF):
            raise ValueError(
                f"kernel={self.kernel!r} belongs to the basis it was learned with. Use 'rbf'."
            )
        check_flag("fit_intercept", self.fit_intercept)
        check_random_state(self.random_state)
        check_real("cache_size", self.cache_size, positive=True)
        if self.budget is not None:
            check_integer("budget", self.budget, least=1)
        check_choice("budget_policy", self.budget_policy, BUDGET_POLICIES)

    def _begin(self, rows: Rows, classes: StreamClasses) -> DualStream:
        named = isinstance(self.kernel, str) and self.kernel != "linear"
        if named and self.gamma == "scale" and rows.shape[0] == 1:
            warn_user(
                "gamma='scale' is taken from the first call of partial_fit, which has one row. "
                "Give gamma a number, or 'auto', or begin with a batch.",
                UserWarning,
            )
        machine = self._make_machine(self._make_kernel(rows), rows, n_columns=classes.n_columns)
        return self._stream_of(machine, classes, rows[:0], 0, self._draw_seed())

    def _resume(self) -> DualStream:
        """Return a machine that goes on from what a stream, a fit or a file has left."""
        state = self.__getstate__() if "_stream" in self.__dict__ else self.__dict__
        patterns, rows = state["_patterns"], self.model_.basis
        self._check_learned(patterns)
        if isinstance(self.model_.kernel, Precomputed):
            raise ValueError(
                "partial_fit cannot go on from a machine with a precomputed kernel: its patterns "
                "are known by number alone."
            )
        if "state" in patterns:
            stream = self._unpack_stream(patterns["state"], patterns, rows)
            if stream is not None:
                return stream
        machine = self._make_machine(self.model_.kernel, rows)
        count, rows_seen = rows.shape[0], int(patterns["rows_seen"])
        # Names below those of rows to come.
        machine.use_batch(rows, patterns["labels"], patterns["caps"], first_id=rows_seen - count)
        machine.restore(np.arange(count), self._within_bounds(patterns), patterns["earlier"])
        machine.let_go_of_batch()
        # Nobody has said that no other class will come.
        classes = StreamClasses.begin(self.classes_, is_open=True)
        classes.rows_before = rows_seen
        return self._stream_of(machine, classes, rows[:0], rows_seen, self._draw_seed())

    def _unpack_stream(
        self, packed: dict[str, Any], patterns: dict[str, Any], rows: Rows
    ) -> DualStream | None:
        """Return the stream that was packed, or None if it was one of another problem."""
        classes = StreamClasses.unpack(packed["classes"], self.classes_)
        origin = packed["machine"]["origin"]
        machine = self._make_machine(self.model_.kernel, rows, origin, classes.n_columns)
        if _problem_of(machine) != packed["problem"]:
            return None
        machine.use_batch(rows, classes.columns[patterns["labels"]], patterns["caps"])
        # Vectors are in the order of their names.
        ids, held = packed["machine"]["set"]["ids"], packed["machine"]["set"]["held"] > 0
        rows_of_slots = np.zeros(len(ids), dtype=np.int64)
        rows_of_slots[held] = np.argsort(np.argsort(ids[held]))
        machine.take_on(packed["machine"], rows_of_slots)
        rows_seen = int(patterns["rows_seen"])
        stream = self._stream_of(machine, classes, rows[:0], rows_seen, seed=0)
        stream.native.take_on(packed["learner"])
        return stream

    def _widen(self, n_features: int) -> None:
        """Take rows of so many features from now on; rows so far have zeros in the new ones.

        No kernel value changes by that, so that the machine goes on as it was.
        """
        stream: DualStream = self.__dict__["_stream"]
        with stream.lock:
            self._publish()
            packed, basis = stream.pack(), self.model_.basis
            origin = packed["machine"]["origin"]
            if origin is not None:
                packed["machine"]["origin"] = np.pad(origin, (0, n_features - len(origin)))
            wider = self._unpack_stream(packed, self._patterns, with_columns(basis, n_features))
            assert wider is not None  # the problem is the same
            wider.lock = stream.lock  # that others may wait for
            kind: Any = type(self)
            for name in names_of_the_past(kind):
                self.__dict__.pop(name, None)
            self.n_features_in_, self._stream = n_features, wider

    def _check_stream_state(self, packed: Any) -> None:
        """Require what a stream of this machine may have packed, or ValueError."""
        try:
            if set(packed) != {"machine", "learner", "problem", "classes"}:
                raise ValueError("has parts missing or surplus")
            n_features, origin = self.n_features_in_, packed["machine"]["origin"]
            if origin is not None and (
                origin.shape != (n_features,)
                or origin.dtype != np.float64
                or not np.isfinite(origin).all()
            ):
                raise ValueError("has an origin that does not go with model_")
            classes = StreamClasses.unpack(packed["classes"], self.classes_)
            machine = self._make_machine(
                self.model_.kernel, self.model_.basis, origin, classes.n_columns
            )
            held = packed["machine"]["set"]["held"]
            machine.set.check_snapshot(packed["machine"]["set"], machine.n_classes)
            n_supports = len(packed["machine"]["set"]["supports"])
            if not np.count_nonzero(held) == n_supports == self.model_.n_basis:
                raise ValueError("does not go with model_")
            if hasattr(self, "partial_fit"):
                self._make_learner(machine, 0, 0).take_on(packed["learner"])
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"is damaged: {error}") from error

    def _make_way_for(self, model: Any) -> None:
        if "_stream" in self.__dict__:
            with self.__dict__["_stream"].lock:
                self._publish()
                del self._stream
        super()._make_way_for(model)
        self.__dict__.pop("_state", None)
        if "_patterns" in self.__dict__:
            self._patterns = self._patterns_of(model)

    def _patterns_of(self, model: KernelExpansion) -> dict[str, Any]:
        """Return patterns for a model that was not learned: without the coefficients of a dual."""
        # The class of a pattern is the one it speaks for, unless it is known from the fit.
        scores = np.hstack([-model.coef, model.coef]) if model.n_outputs == 1 else model.coef
        labels = np.asarray(scores.argmax(axis=1)).ravel().astype(np.int32)
        if (self.basis_indices_ >= 0).any():
            labels = self._patterns["labels"]
        return {
            "labels": labels,
            "caps": np.zeros(model.n_basis),
            "coef": np.zeros((model.n_basis, len(self.classes_))),
            "earlier": np.zeros((model.n_basis, len(self.classes_))),
            "rows_seen": 0,
        }

    def _check_learned(self, patterns: dict[str, Any]) -> None:
        """Require that the model was learned: every support pattern has coefficients then."""
        if len(patterns["coef"]) and not patterns["coef"].any():
            raise ValueError(
                "model_ is not the one that this machine has learned, so that there is nothing to "
                "go on from. Call fit without warm_start, or partial_fit of a clone."
            )

    def _within_bounds(self, patterns: dict[str, Any]) -> Array:
        """Return coefficients that the bounds allow, where there are any."""
        return np.asarray(patterns["coef"])

    def _draw_seed(self) -> int:
        return int(check_random_state(self.random_state).randint(1 << 31))

    def _stream_of(
        self, machine: DualExpansion, classes: StreamClasses, like: Rows, rows_seen: int, seed: int
    ) -> DualStream:
        def remake(rows: Rows, n_columns: int, origin: Array | None) -> tuple[DualExpansion, Any]:
            another = self._make_machine(machine.kernel, rows, origin, n_columns)
            return another, self._make_learner(another, 0, 0)

        return DualStream(
            classes=classes,
            parameters=self._stream_parameters(),
            rows_seen=rows_seen,
            machine=machine,
            native=self._make_learner(machine, seed, rows_seen),
            like=like,
            averages=self._averages(),
            remake=remake,
        )

    def _publish(self) -> None:
        """Write down the attributes of the machine that is alive; its lock must be held."""
        if "model_" in self.__dict__:
            return  # by another thread
        stream: DualStream = self.__dict__["_stream"]
        stream.finish_batch()
        supports = stream.supports_by_class()
        indices = np.full(len(supports.ids), -1)
        attributes = self._model_attributes(
            stream.machine.kernel, stream.vectors(supports), indices, supports, stream.rows_seen
        ) | self._attributes_after(stream)
        model = attributes.pop("model_")
        self.__dict__.update(attributes)
        self.__dict__["model_"] = model  # the last: it says that all are there

    def _model_attributes(
        self,
        kernel: Kernel,
        vectors: Rows,
        indices: npt.NDArray[np.intp],
        supports: Supports,
        rows_seen: int,
    ) -> dict[str, Any]:
        """Return the attributes that say what predicts, and what is needed to go on."""
        averaged = supports.coef
        if self._averages():
            over = self._averaged_over(len(supports.ids), rows_seen)
            averaged = supports.coef - supports.earlier / over
        coef, intercept = two_as_one(averaged, float(self.fit_intercept) * averaged.sum(axis=0))
        model = KernelExpansion(
            kernel, vectors, np.ascontiguousarray(coef), intercept, n_features=self.n_features_in_
        )
        return {
            "model_": model,
            "readout_": Readout.of_classes(self.classes_),
            "basis_indices_": indices,
            "_patterns": {
                "labels": supports.labels,
                "caps": supports.caps,
                "coef": supports.coef,
                "earlier": supports.earlier,
                "rows_seen": rows_seen,
            },
        }

    def _scores_of(self, rows: Rows) -> Array:
        return self._ask_stream("scores", rows, super()._scores_of)

    def _best(self, rows: Rows) -> npt.NDArray[np.int64]:
        return self._ask_stream("best", rows, super()._best)

    def _ask_stream(self, what: str, rows: Rows, ask_model: Any) -> Array:
        """Return scores or numbers of classes: of the machine that is alive, or of its model.

        A model that is written down answers, as it will in copies and files of the machine.
        """
        stream: DualStream | None = self.__dict__.get("_stream")
        if stream is None or rows.shape[0] > _LIVE_ROWS:
            return np.asarray(ask_model(rows))
        with stream.lock:
            if "model_" not in self.__dict__:
                over = self._averaged_over(stream.machine.set.n_supports, stream.rows_seen)
                answer = getattr(stream.scores(), what)
                # To ask joblib how many there are takes as long as a row.
                n_threads = 1 if rows.shape[0] == 1 else thread_count(self.n_jobs)
                return np.asarray(answer(rows, over, n_threads))
        return np.asarray(ask_model(rows))

    def _packed_stream(self, state: dict[str, Any]) -> dict[str, Any]:
        stream: DualStream = self.__dict__["_stream"]
        return state | {"_patterns": {**self._patterns, "state": stream.pack()}}

    def _why_no_probabilities(self) -> str:
        return (
            f"{type(self).__name__} gives scores, not probabilities. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


def rows_like_stream(rows: Rows, like: Rows) -> Rows:
    """Return rows of the form and dtype that the first ones had."""
    same = sp.issparse(rows) == sp.issparse(like) and rows.dtype == like.dtype
    return rows if same else rows_like(rows, like)

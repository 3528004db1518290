"""Classifiers that learn row by row: a dual machine that stays alive between calls.

``fit`` leaves an estimator whose attributes are all there. ``partial_fit`` leaves a machine that is
alive, and makes attributes of it when one is asked for: to write them down takes longer than to
learn a row. Few rows at a time are predicted by the machine itself (:mod:`widemargin._live`).
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from dataclasses import dataclass, field
from threading import Lock
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from widemargin._availability import available_if
from widemargin._file_changes import Added
from widemargin._kernel_machine import KernelMachine
from widemargin._live import LiveScores, live_scores
from widemargin._machines import two_as_one
from widemargin._parameters import check_choice, check_flag, check_integer, check_real
from widemargin._rows import canonical_rows, rows_like, validated_data
from widemargin._support import SupportAttributes
from widemargin._system.warnings import warn_user
from widemargin._threads import thread_count
from widemargin.kernels import AdaptiveRBF, Kernel, Precomputed, Rows
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout
from widemargin.solvers.dual import DualMachine, Supports

Array: TypeAlias = npt.NDArray[Any]

BUDGET_POLICIES = ("drop", "merge")

# Parameters that coefficients depend on: another value needs another machine.
_LASTING = ("kernel", "gamma", "degree", "coef0", "fit_intercept", "loss", "margin", "average")
# Rows of a call that the living machine predicts at the most. For more, the time that it takes to
# write its model down counts for little, and the model needs no lock.
_LIVE_ROWS = 512


@dataclass
class Stream:
    """A machine that goes on learning."""

    machine: DualMachine
    native: Any  # the solver that takes blocks of rows
    like: Rows  # no rows, of the form and dtype that all rows have
    rows_seen: int
    parameters: dict[str, Any]  # of the estimator, when it was made
    averages: bool  # whether the coefficients that predict are means over all rows
    is_unfinished: bool = False  # whether there is a batch whose rows are not yet put away
    live: LiveScores | None = None
    lock: Any = field(default_factory=Lock)  # one learns or looks at a time

    def learn(self, rows: Rows, labels: npt.NDArray[np.intp], caps: Array) -> None:
        """Learn rows in their order; one of weight zero might as well not be there."""
        self.finish_batch()
        if not caps.all():
            some = np.flatnonzero(caps)
            rows, labels, caps = rows[some], labels[some], caps[some]
        batch = self.machine.use_batch(rows, labels, caps, first_id=self.rows_seen)
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
        }

    def scores(self) -> LiveScores:
        """Return the scores of the machine as it is; the lock must be held while they are used."""
        self.finish_batch()
        if self.live is None:
            self.live = live_scores(self.machine, averages=self.averages)
        return self.live

    def vectors(self, supports: Supports) -> Rows:
        """Return the rows of support patterns."""
        return rows_like_stream(self.machine.rows_in(supports.slots), self.like)


def _problem_of(machine: DualMachine) -> dict[str, Any]:
    """Return what must be the same for a packed machine to go on."""
    return {"loss": machine.loss, "margin": machine.margin, "offset": machine.offset}


@functools.cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Return the names of all parameters but those that are read at every call."""
    read = ("C", "class_weight", "verbose")
    return tuple(name for name in kind._get_param_names() if name not in read)


@functools.cache
def _names_of_the_past(kind: Any) -> tuple[str, ...]:
    """Return attributes that a further row makes untrue; model_ first, as it stands for all."""
    kept = {"classes_", "readout_"}
    return "model_", *sorted(kind._fitted_names - kept | {"_state"})


def _learns_row_by_row(estimator: DualClassifier) -> None:
    estimator._check_learns_row_by_row()


class DualClassifier(SupportAttributes, KernelMachine):
    """A classifier that a :class:`~widemargin.solvers.dual.DualMachine` is behind."""

    # A machine of a file without it has no intercept, whatever the default is now.
    _file_changes = MappingProxyType({"fit_intercept": Added(2, lambda file: False)})

    model_: KernelExpansion
    cache_size: float
    budget: int | None
    budget_policy: str
    fit_intercept: bool
    random_state: Any
    _patterns: dict[str, Any]

    @abstractmethod
    def _check_parameters(self) -> None:
        """Require valid parameters."""

    @abstractmethod
    def _make_machine(self, kernel: Kernel, rows: Rows, origin: Array | None = None) -> DualMachine:
        """Return a machine without rows."""

    @abstractmethod
    def _make_learner(self, machine: DualMachine, seed: int, rows_seen: int) -> Any:
        """Return the native solver that ``partial_fit`` goes by."""

    @abstractmethod
    def _attributes_after(self, stream: Stream) -> dict[str, Any]:
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

    @available_if(_learns_row_by_row)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, in the order given: a batch, or one at a time.

        Where it fails in the middle of a batch, the rows before are learned.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like of shape (n_classes,), default=None
            All classes that will ever come. Needed in the first call, unless its rows have them
            all; later it may be left out.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
        """
        begun = "_stream" in self.__dict__ or hasattr(self, "model_")
        before = None if begun else dict(self.__dict__)
        try:
            rows, labels, caps = self._validate_batch(X, y, classes, sample_weight, begun)
            stream = self._running_stream(rows)
            with stream.lock:
                kind: Any = type(self)
                for name in _names_of_the_past(kind):
                    self.__dict__.pop(name, None)
                self._stream = stream
                stream.learn(rows_like_stream(rows, stream.like), labels, caps)
        except BaseException:
            if before is not None:
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        return self

    def _running_stream(self, rows: Rows) -> Stream:
        """Return the stream that is alive, or a new one, which goes on from what is fitted."""
        stream: Stream | None = self.__dict__.get("_stream")
        parameters = self._stream_parameters()
        if stream is not None and stream.parameters == parameters:
            return stream
        if stream is not None:
            for name in _LASTING:
                if name in parameters and parameters[name] != stream.parameters[name]:
                    raise ValueError(
                        f"{name} has changed from {stream.parameters[name]!r} to "
                        f"{parameters[name]!r} in the middle of a stream, which cannot go on with "
                        "it. Set it back, or begin anew with fit or a clone."
                    )
        return self._resume() if hasattr(self, "model_") else self._begin(rows)

    def _stream_parameters(self) -> dict[str, Any]:
        """Return all parameters but those that are read at every call."""
        kind: Any = type(self)
        return {name: self.__dict__[name] for name in _parameter_names(kind)}

    def _begin(self, rows: Rows) -> Stream:
        named = isinstance(self.kernel, str) and self.kernel != "linear"
        if named and self.gamma == "scale" and rows.shape[0] == 1:
            warn_user(
                "gamma='scale' is taken from the first call of partial_fit, which has one row. "
                "Give gamma a number, or 'auto', or begin with a batch.",
                UserWarning,
            )
        machine = self._make_machine(self._make_kernel(rows), rows)
        return self._stream_of(machine, rows[:0], 0, self._draw_seed())

    def _resume(self) -> Stream:
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
        return self._stream_of(machine, rows[:0], rows_seen, self._draw_seed())

    def _unpack_stream(
        self, packed: dict[str, Any], patterns: dict[str, Any], rows: Rows
    ) -> Stream | None:
        """Return the stream that was packed, or None if it was one of another problem."""
        machine = self._make_machine(self.model_.kernel, rows, packed["machine"]["origin"])
        if _problem_of(machine) != packed["problem"]:
            return None
        machine.use_batch(rows, patterns["labels"], patterns["caps"])
        # Vectors are in the order of their names.
        ids, held = packed["machine"]["set"]["ids"], packed["machine"]["set"]["held"] > 0
        rows_of_slots = np.zeros(len(ids), dtype=np.int64)
        rows_of_slots[held] = np.argsort(np.argsort(ids[held]))
        machine.take_on(packed["machine"], rows_of_slots)
        stream = self._stream_of(machine, rows[:0], int(patterns["rows_seen"]), seed=0)
        stream.native.take_on(packed["learner"])
        return stream

    def _check_stream_state(self, packed: Any) -> None:
        """Require what :meth:`Stream.pack` may have returned for this machine, or ValueError."""
        try:
            if set(packed) != {"machine", "learner", "problem"}:
                raise ValueError("has parts missing or surplus")
            n_features, origin = self.n_features_in_, packed["machine"]["origin"]
            if origin is not None and (
                origin.shape != (n_features,)
                or origin.dtype != np.float64
                or not np.isfinite(origin).all()
            ):
                raise ValueError("has an origin that does not go with model_")
            machine = self._make_machine(self.model_.kernel, self.model_.basis, origin)
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

    def _stream_of(self, machine: DualMachine, like: Rows, rows_seen: int, seed: int) -> Stream:
        learner = self._make_learner(machine, seed, rows_seen)
        parameters = self._stream_parameters()
        return Stream(machine, learner, like, rows_seen, parameters, self._averages())

    def _validate_batch(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, begun: bool
    ) -> tuple[Rows, npt.NDArray[np.intp], Array]:
        """Return rows, class numbers and caps; the first call sets classes_ and n_features_in_."""
        plain = begun and classes is None and sample_weight is None and self._is_plain(X, y)
        if plain and self._is_checked():
            # The checks of scikit-learn take longer than learning a row.
            labels = self._numbers_of(np.asarray(y))
            return X, labels, self._caps_of(labels)
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows at once, and partial_fit sees "
                "a part. Give a dict, or sample_weight."
            )
        X, y = validated_data(self, X, y, reset=not begun)
        self._set_classes(y, classes, begun)
        labels = self._numbers_of(y)
        caps = self._row_weights(X, labels, sample_weight, self.classes_, some=False)[1]
        return canonical_rows(X), labels, caps

    def _is_checked(self) -> bool:
        """Whether parameters are those of the call before."""
        stream = self.__dict__.get("_stream")
        known = stream is not None and stream.parameters == self._stream_parameters()
        return known and type(self._cap()) is float and 0 < self._cap() < np.inf

    def _is_plain(self, X: Any, y: Any) -> bool:
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and np.ndim(y) == 1
            and X.shape == (len(y), self.n_features_in_)
            and len(X) > 0
            and X.dtype in (np.float64, np.float32)
            and X.flags.c_contiguous
            and "feature_names_in_" not in self.__dict__
            and self.class_weight is None
            and bool(np.isfinite(X).all())
        )

    def _caps_of(self, labels: npt.NDArray[np.intp]) -> Array:
        return np.full(len(labels), float(self._cap()))

    def _set_classes(self, y: Array, classes: Any, begun: bool) -> None:
        if classes is None:
            if begun:
                return
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(
                    "The first call of partial_fit has rows of one class only, "
                    f"{self.classes_[0]!r}. Say which there will be: partial_fit(X, y, "
                    "classes=[...])."
                )
            self.readout_ = Readout.of_classes(self.classes_)
            return
        announced = np.unique(column_or_1d(classes))
        if begun and not np.array_equal(announced, self.classes_):
            raise ValueError(
                f"classes={announced} differs from those of the first call, {self.classes_}."
            )
        if len(announced) < 2:
            raise ValueError(f"classes must name at least 2 classes, got {announced}.")
        self.classes_ = announced
        self.readout_ = Readout.of_classes(announced)

    def _numbers_of(self, y: Array) -> npt.NDArray[np.intp]:
        labels = np.searchsorted(self.classes_, y)
        known = self.classes_[np.minimum(labels, len(self.classes_) - 1)] == y
        if not np.all(known):
            unseen = np.unique(y[~np.asarray(known)])
            raise ValueError(
                f"y has classes that were not announced: {unseen[:10]}. Those of the machine are "
                f"{self.classes_}; name all in the first call, partial_fit(X, y, classes=[...])."
            )
        return labels

    def _publish(self) -> None:
        """Write down the attributes of the machine that is alive; its lock must be held."""
        if "model_" in self.__dict__:
            return  # by another thread
        stream: Stream = self.__dict__["_stream"]
        stream.finish_batch()
        supports = stream.machine.supports()
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

    def __sklearn_is_fitted__(self) -> bool:
        return "_stream" in self.__dict__ or "model_" in self.__dict__

    def _scores_of(self, rows: Rows) -> Array:
        return self._ask_stream("scores", rows, super()._scores_of)

    def _best(self, rows: Rows) -> npt.NDArray[np.int64]:
        return self._ask_stream("best", rows, super()._best)

    def _ask_stream(self, what: str, rows: Rows, ask_model: Any) -> Array:
        """Return scores or numbers of classes: of the machine that is alive, or of its model.

        A model that is written down answers, as it will in copies and files of the machine.
        """
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None or rows.shape[0] > _LIVE_ROWS:
            return np.asarray(ask_model(rows))
        with stream.lock:
            if "model_" not in self.__dict__:
                over = self._averaged_over(stream.machine.set.n_supports, stream.rows_seen)
                answer = getattr(stream.scores(), what)
                return np.asarray(answer(rows, over, thread_count(self.n_jobs)))
        return np.asarray(ask_model(rows))

    def __getattr__(self, name: str) -> Any:
        # Only for what is not there: attributes of a machine that is alive, but not written down.
        lazy = name == "model_" or name in type(self)._fitted_names
        if lazy and "_stream" in self.__dict__ and "model_" not in self.__dict__:
            with self.__dict__["_stream"].lock:
                self._publish()
            return getattr(self, name)
        return object.__getattribute__(self, name)  # whose error says why

    def __getstate__(self) -> Any:
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            return super().__getstate__()
        with stream.lock:
            self._publish()
            state = dict(super().__getstate__())
            state["_patterns"] = {**self._patterns, "state": stream.pack()}
        del state["_stream"]
        return state

    def _why_no_probabilities(self) -> str:
        return (
            f"{type(self).__name__} gives scores, not probabilities. Wrap it in "
            "sklearn.calibration.CalibratedClassifierCV."
        )


def rows_like_stream(rows: Rows, like: Rows) -> Rows:
    """Return rows of the form and dtype that the first ones had."""
    same = sp.issparse(rows) == sp.issparse(like) and rows.dtype == like.dtype
    return rows if same else rows_like(rows, like)

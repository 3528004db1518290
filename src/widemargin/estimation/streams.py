"""Estimators that go on learning: ``partial_fit`` for any learner, with or without kernels.

``fit`` leaves an estimator whose attributes are all there. ``partial_fit`` leaves a *stream*, which
is alive, and attributes are made of it when one is asked for: to write them down can take longer
than to learn a row. Here are the checks of a batch, the classes, the lock and the attributes; what
is learned, and how, is the stream's own.

A class that nobody has announced joins when its first row comes, unless ``classes`` was given.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d

from widemargin._system.availability import available_if
from widemargin.estimation.base import BaseClassifier
from widemargin.kernels import Rows
from widemargin.readouts import Readout
from widemargin.rows import canonical_rows, validated_data

Array: TypeAlias = npt.NDArray[Any]
Numbers: TypeAlias = npt.NDArray[np.intp]

# A stream stops waiting for further classes once this many times the rows have come that came
# before the last new one, and so many in any case.
_PATIENCE, _LEAST_ROWS = 4, 500


@dataclass
class StreamClasses:
    """The classes that a stream knows, and the columns of its coefficients.

    Attributes
    ----------
    labels : ndarray of shape (n_classes,)
        The classes, in rising order.
    is_open : bool
        Whether another class may join.
    columns : ndarray of shape (n_classes,)
        The column of each class. Columns are in the order in which classes came.
    has_spare : bool
        Whether there is a last column that stands for classes to come. Rows are learned against it
        as against the others, or those of the first classes would not be told from later ones. The
        next class takes it over, with its coefficients.
    rows_before : int
        Rows that had been seen when the last class joined.
    """

    labels: Array
    is_open: bool
    columns: Numbers
    has_spare: bool = False
    rows_before: int = 0

    @classmethod
    def begin(cls, labels: Array, *, is_open: bool) -> StreamClasses:
        """Return the classes of a stream that has seen no row; a single one is told from others."""
        return cls(labels, is_open, np.arange(len(labels)), is_open and len(labels) == 1)

    @property
    def n_columns(self) -> int:
        """Number of columns of the coefficients."""
        return len(self.labels) + self.has_spare

    @property
    def is_plain(self) -> bool:
        """Whether columns are those of the classes, in their order."""
        return not self.has_spare and bool((self.columns == np.arange(len(self.labels))).all())

    def waits_in_vain(self, rows_seen: int) -> bool:
        """Whether there is a spare column that is no longer worth its cost."""
        if self.has_spare and not self.is_open:
            return len(self.labels) > 1
        most = max(_LEAST_ROWS, (1 + _PATIENCE) * self.rows_before)
        return self.has_spare and len(self.labels) > 1 and rows_seen > most

    @property
    def n_columns_to_add(self) -> int:
        """How many columns of zeros must be added at the end before another class can join."""
        return 1 if self.has_spare else 2

    def join(self, label: Any, rows_seen: int) -> None:
        """Take a class in."""
        place = int(np.searchsorted(self.labels, label))
        column = len(self.labels)  # that of the spare one, if there is one
        dtype = np.result_type(self.labels, np.asarray(label))
        self.labels = np.insert(self.labels.astype(dtype), place, label)
        self.columns = np.insert(self.columns, place, column)
        self.has_spare, self.rows_before = True, rows_seen

    def pack(self) -> dict[str, Any]:
        """Return what is not in ``classes_``, as what model files hold."""
        return {
            "is_open": self.is_open,
            "columns": self.columns,
            "has_spare": self.has_spare,
            "rows_before": self.rows_before,
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], labels: Array) -> StreamClasses:
        """Return what was packed; ValueError if it cannot have been."""
        columns = packed["columns"]
        fits = (
            set(packed) == {"is_open", "columns", "has_spare", "rows_before"}
            and columns.dtype == np.intp
            and np.array_equal(np.sort(columns), np.arange(len(labels)))
            and all(type(packed[name]) is bool for name in ("is_open", "has_spare"))
            and type(packed["rows_before"]) is int
            and packed["rows_before"] >= 0
        )
        if not fits:
            raise ValueError("has columns that do not go with classes_")
        return cls(
            labels,
            packed["is_open"],
            columns.copy(),
            has_spare=packed["has_spare"],
            rows_before=packed["rows_before"],
        )


@dataclass(kw_only=True)
class Stream(ABC):
    """A learner that is alive between calls."""

    classes: StreamClasses
    parameters: dict[str, Any]  # of the estimator, when it was made
    rows_seen: int
    lock: Any = field(default_factory=Lock)  # one learns or looks at a time

    @abstractmethod
    def add_columns(self, count: int) -> None:
        """Add columns of coefficients at the end, which are zero."""

    @abstractmethod
    def drop_spare(self) -> None:
        """Let go of the last column, as if no row had been learned against it."""

    @abstractmethod
    def learn(self, rows: Rows, columns: Numbers, caps: Array) -> None:
        """Learn rows in their order, each of the class with this column."""

    def join(self, labels: Array) -> None:
        """Take in those of the classes that are not known yet."""
        if labels is self.classes.labels:
            return
        for label in np.setdiff1d(labels, self.classes.labels):
            # Columns first: where Ctrl-C comes in between, no class is without one.
            self.add_columns(self.classes.n_columns_to_add)
            self.classes.join(label, self.rows_seen)


@functools.cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Return the names of all parameters but those that are read at every call."""
    read = ("C", "class_weight", "verbose")
    return tuple(name for name in kind._get_param_names() if name not in read)


@functools.cache
def names_of_the_past(kind: Any) -> tuple[str, ...]:
    """Return attributes that a further row makes untrue; model_ first, as it stands for all."""
    kept = {"classes_", "readout_"}
    return "model_", *sorted(kind._fitted_names - kept | {"_state"})


def _learns_row_by_row(estimator: StreamingClassifier) -> None:
    estimator._check_learns_row_by_row()


class StreamingClassifier(BaseClassifier):
    """A classifier with ``partial_fit``."""

    class_weight: Any

    #: Parameters that coefficients depend on: another value needs another machine.
    _lasting_parameters: tuple[str, ...] = ()

    @abstractmethod
    def _check_parameters(self) -> None:
        """Require valid parameters."""

    def _check_learns_row_by_row(self) -> None:
        """Raise AttributeError, with a way out, where ``partial_fit`` cannot be."""

    def _readout_of(self, classes: Array) -> Readout:
        """Return how the scores of these classes are read."""
        return Readout.of_classes(classes)

    @abstractmethod
    def _begin(self, rows: Rows, classes: StreamClasses) -> Stream:
        """Return a stream that has seen no row; these are the first to come."""

    @abstractmethod
    def _resume(self) -> Stream:
        """Return a stream that goes on from what a stream, a fit or a file has left."""

    def _widen(self, n_features: int) -> None:
        """Take rows of so many features from now on; rows so far have zeros in the new ones."""
        raise NotImplementedError(
            f"{type(self).__name__} learns rows of {self.n_features_in_} features, and one has "
            "come with others. Have the first row name all features that will come."
        )

    @abstractmethod
    def _publish(self) -> None:
        """Write down the attributes of the stream that is alive; its lock must be held."""

    @abstractmethod
    def _packed_stream(self, state: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of a copy or a file, with all that the stream goes on from."""

    @abstractmethod
    def _row_weights(
        self, X: Rows, labels: Numbers, sample_weight: Any, y: Array, *, some: bool = True
    ) -> tuple[Array, Array]:
        """Return the weights of rows, and what each counts."""

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
            All classes that will ever come; another one is then an error. Where nobody says so, a
            class joins when its first row comes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : object
        """
        begun = "_stream" in self.__dict__ or hasattr(self, "model_")
        before = dict(self.__dict__) if not begun else None
        known = {name: self.__dict__.get(name) for name in ("classes_", "readout_")}
        try:
            rows, y, is_plain = self._validate_batch(X, y, classes, sample_weight, begun)
            stream = self._running_stream(rows, y, classes)
            with stream.lock:
                wanted = self._wanted_classes(stream.classes, y, classes)
                try:
                    caps = self._know(wanted, rows, y, sample_weight, is_plain=is_plain)
                except BaseException:
                    self.__dict__.update({name: each for name, each in known.items() if begun})
                    raise
                kind: Any = type(self)
                for name in names_of_the_past(kind):
                    self.__dict__.pop(name, None)
                self._stream = stream
                stream.join(wanted)
                if self.classes_ is not stream.classes.labels:
                    self.classes_ = stream.classes.labels
                    self.readout_ = self._readout_of(self.classes_)
                numbers = np.searchsorted(self.classes_, y)
                stream.learn(rows, stream.classes.columns[numbers], caps)
                if classes is not None:
                    stream.classes.is_open = False
                if stream.classes.waits_in_vain(stream.rows_seen):
                    stream.drop_spare()
        except BaseException:
            if before is not None:
                self.__dict__.clear()
                self.__dict__.update(before)
            raise
        return self

    def _know(
        self, wanted: Array, rows: Rows, y: Array, sample_weight: Any, *, is_plain: bool
    ) -> Array:
        """Set ``classes_``; return what each row counts."""
        if wanted is not self.__dict__.get("classes_"):
            self.classes_ = wanted
            self.readout_ = self._readout_of(wanted)
        if is_plain:
            return np.full(len(y), float(self._cap()))
        numbers = np.searchsorted(wanted, y)
        return self._row_weights(rows, numbers, sample_weight, wanted, some=False)[1]

    def _running_stream(self, rows: Rows, y: Array, classes: Any) -> Stream:
        """Return the stream that is alive, or a new one, which goes on from what is fitted."""
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is not None and self._is_of(stream):
            return stream
        parameters = self._stream_parameters()
        if stream is not None:
            for name in self._lasting_parameters:
                if name in parameters and parameters[name] != stream.parameters[name]:
                    raise ValueError(
                        f"{name} has changed from {stream.parameters[name]!r} to "
                        f"{parameters[name]!r} in the middle of a stream, which cannot go on with "
                        "it. Set it back, or begin anew with fit or a clone."
                    )
        if hasattr(self, "model_"):
            return self._resume()
        is_open = classes is None
        labels = np.unique(y if is_open else column_or_1d(classes))
        if not is_open and len(labels) < 2:
            raise ValueError(f"classes must name at least 2 classes, got {labels}.")
        return self._begin(rows, StreamClasses.begin(labels, is_open=is_open))

    def _stream_parameters(self) -> dict[str, Any]:
        """Return all parameters but those that are read at every call."""
        kind: Any = type(self)
        return {name: self.__dict__[name] for name in _parameter_names(kind)}

    def _is_of(self, stream: Stream) -> bool:
        """Whether parameters are those with which the stream was made."""
        mine = self.__dict__
        parameters = stream.parameters.items()
        return all(mine[name] is value or mine[name] == value for name, value in parameters)

    def _validate_batch(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, begun: bool
    ) -> tuple[Rows, Array, bool]:
        """Return rows, labels, and whether they were so plain that nothing had to be checked."""
        plain = begun and classes is None and sample_weight is None and self._is_plain(X, y)
        if plain and self._is_checked():
            # The checks of scikit-learn take longer than learning a row.
            self._check_batch_rows(X)
            return X, np.asarray(y), True
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} needs all rows at once, and partial_fit sees "
                "a part. Give a dict, or sample_weight."
            )
        X, y = validated_data(self, X, y, reset=not begun)
        self._check_batch_rows(X)
        return canonical_rows(X), y, False

    def _check_new_rows(self, rows: Rows) -> None:
        """Require what the model requires of rows, and write none down for that."""
        if "model_" in self.__dict__:
            super()._check_new_rows(rows)
        else:
            self._check_batch_rows(rows)

    def _is_checked(self) -> bool:
        """Whether parameters are those of the call before."""
        stream = self.__dict__.get("_stream")
        known = stream is not None and self._is_of(stream)
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

    @staticmethod
    def _wanted_classes(known: StreamClasses, y: Array, classes: Any) -> Array:
        """Return all classes that the stream has to know for this batch."""
        announced = None if classes is None else np.unique(column_or_1d(classes))
        if announced is not None and not known.is_open:
            if not np.array_equal(announced, known.labels):
                raise ValueError(
                    f"classes={announced} differs from those of the first call, {known.labels}."
                )
            announced = None
        labels = known.labels
        if announced is not None:
            if not np.isin(labels, announced).all():
                raise ValueError(
                    f"classes={announced} lacks some that have been learned: {labels}."
                )
            labels = announced
        numbers = np.minimum(np.searchsorted(labels, y), len(labels) - 1)
        is_known = np.asarray(labels[numbers] == y)
        if is_known.all():
            return labels
        unseen = np.unique(y[~is_known])
        if announced is not None or not known.is_open:
            raise ValueError(
                f"y has classes that were not announced: {unseen[:10]}. Those of the machine are "
                f"{labels}; name all in the first call, partial_fit(X, y, classes=[...]), or none."
            )
        if (unseen.dtype.kind in "US") != (labels.dtype.kind in "US"):
            raise ValueError(
                f"y has classes of another kind than those before: {unseen[:10]} and {labels}."
            )
        return np.union1d(labels, unseen)

    def __sklearn_is_fitted__(self) -> bool:
        return "_stream" in self.__dict__ or "model_" in self.__dict__

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
            state = self._packed_stream(dict(super().__getstate__()))
        del state["_stream"]
        return state

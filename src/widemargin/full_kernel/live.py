"""Scores of a machine that goes on learning, without writing its model down after every row.

To make a model of thousands of patterns takes far longer than to learn a row or to predict one. So
coefficients are kept by slot here, and before a prediction only those that have changed since the
last one are brought up to date. Arithmetic is of double precision: scores are those of the model
but for rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.estimation.streams import StreamClasses
from widemargin.kernels import Linear, Rows, as_native_rows
from widemargin.models import LinearMap
from widemargin.solvers.duals.expansion import DualExpansion

Array: TypeAlias = npt.NDArray[Any]
Slots: TypeAlias = npt.NDArray[np.int64]

_SPARE = 8  # room is made for this share of the slots more


class LiveScores(ABC):
    """Scores of a dual expansion as it is now; whoever calls holds the lock of the machine.

    Parameters
    ----------
    machine : DualExpansion
    classes : StreamClasses
        Which columns of the machine are those of the classes.
    averages : bool
        Whether coefficients are averaged over the rows seen.
    """

    def __init__(self, machine: DualExpansion, classes: StreamClasses, *, averages: bool) -> None:
        self._machine, self._classes = machine, classes
        self._averages = averages
        self._begin()

    def _begin(self) -> None:
        """Begin anew, with nothing kept."""
        self._columns, self._is_plain = self._classes.columns, self._classes.is_plain
        self._n_outputs = 1 if len(self._columns) == 2 else len(self._columns)
        width = (2 if self._averages else 1) * self._n_outputs
        self._coef = np.zeros((0, width))  # by slot; of averages, and then what is taken off them
        self._total = np.zeros(width)

    def _vectors_of(self, slots: Slots) -> Array:
        """Return the rows that live in slots, dense and of double precision."""
        return np.asarray(self._machine.rows_in(slots), dtype=np.float64)

    def scores(self, rows: Rows, averaged_over: float, n_threads: int) -> Array:
        """Return the scores of rows, of their dtype.

        Coefficients are averaged over so many moments; infinity is those of the last one.
        """
        self._follow()
        if len(self._coef) == 0:  # nothing was ever learned
            return np.zeros((rows.shape[0], self._n_outputs), dtype=rows.dtype)
        sums = self._sums(rows, n_threads)
        scores = sums[:, : self._n_outputs]
        if self._averages:
            scores = scores - sums[:, self._n_outputs :] / averaged_over
        return np.ascontiguousarray(scores, dtype=rows.dtype)

    def best(self, rows: Rows, averaged_over: float, n_threads: int) -> npt.NDArray[np.int64]:
        """Return the number of the largest score of each row, as a model does."""
        scores = self.scores(rows, averaged_over, n_threads)
        if len(self._columns) == 2:
            return (scores[:, 0] > 0).astype(np.int64)
        return np.asarray(scores.argmax(axis=1), dtype=np.int64)

    def _follow(self) -> None:
        """Bring what is kept up to date."""
        state = self._machine.set
        if self._classes.columns is not self._columns:  # all patterns have changed by that
            self._begin()
        changed: Slots = state.take_changed()
        n_slots = int(state.n_slots)
        if n_slots > len(self._coef):
            wider = np.zeros((n_slots + n_slots // _SPARE, self._coef.shape[1]))
            wider[: len(self._coef)] = self._coef
            self._coef = wider
            self._replace(changed, self._coefficients(changed), grown=True)
        elif len(changed):
            self._replace(changed, self._coefficients(changed), grown=False)

    def _coefficients(self, slots: Slots) -> Array:
        values = np.empty((len(slots), self._machine.n_classes))
        earlier = np.empty_like(values)
        self._machine.set.coefficients(slots, values, earlier)
        if not self._is_plain:
            values, earlier = values[:, self._columns], earlier[:, self._columns]
        if len(self._columns) == 2:
            values, earlier = values[:, 1:] - values[:, :1], earlier[:, 1:] - earlier[:, :1]
        return np.hstack([values, earlier]) if self._averages else values

    def _put(self, slots: Slots, coef: Array, anew: bool) -> None:
        """Keep coefficients of slots, and the sums of all; ``anew`` lets go of their rounding."""
        if not anew:
            self._total += (coef - self._coef[slots]).sum(axis=0)
        self._coef[slots] = coef
        if anew:
            self._total = self._coef.sum(axis=0)

    def _intercept(self) -> Array:
        return np.asarray(self._machine.offset * self._total)

    @abstractmethod
    def _replace(self, slots: Slots, coef: Array, grown: bool) -> None:
        """Give slots other coefficients, and maybe other vectors; ``grown`` says there is room."""

    @abstractmethod
    def _sums(self, rows: Rows, n_threads: int) -> Array:
        """Return the scores for each column of the coefficients."""


class _PackedScores(LiveScores):
    """A native predictor whose vectors are replaced one by one; unused places are idle."""

    _native: Any = None

    def _replace(self, slots: Slots, coef: Array, grown: bool) -> None:
        self._put(slots, coef, anew=grown)
        if grown:
            vectors = self._vectors_of(np.arange(len(self._coef)))
            idle = ~self._coef.any(axis=1)
            vectors[idle] = vectors[~idle][:1] if not idle.all() else 0.0
            self._native = _native.PredictorFloat64(
                self._machine.kernel.native(), vectors, self._coef, self._intercept()
            )
        else:
            vectors = self._vectors_of(slots)
            self._native.replace(slots, vectors, np.ascontiguousarray(coef), self._intercept())

    def _sums(self, rows: Rows, n_threads: int) -> Array:
        sums = np.empty((rows.shape[0], self._coef.shape[1]))
        self._native.scores(as_native_rows(rows), sums, n_threads, False)
        return sums


class _LinearScores(LiveScores):
    """A linear kernel: weights of the features, to which every change is added."""

    _map: LinearMap
    _n_changes = 0

    def _replace(self, slots: Slots, coef: Array, grown: bool) -> None:
        vectors = self._vectors_of(slots)
        self._n_changes += len(slots)
        if grown or self._n_changes > len(self._coef):
            # Anew from time to time, so that rounding does not add up.
            self._put(slots, coef, anew=True)
            self._vectors = self._vectors_of(np.arange(len(self._coef)))
            self._weights = self._vectors.T @ self._coef
            self._n_changes = 0
        else:
            self._weights += vectors.T @ coef - self._vectors[slots].T @ self._coef[slots]
            self._put(slots, coef, anew=False)
            self._vectors[slots] = vectors
        self._map = LinearMap(self._weights.copy(), self._intercept())

    def _sums(self, rows: Rows, n_threads: int) -> Array:
        return self._map.scores(rows, n_threads, dtype=np.float64)


class _CalledScores(LiveScores):
    """A kernel that Python computes, of rows that the dual expansion keeps."""

    def _replace(self, slots: Slots, coef: Array, grown: bool) -> None:
        self._put(slots, coef, anew=grown)

    def _sums(self, rows: Rows, n_threads: int) -> Array:
        kernel, slots = self._machine.kernel, np.flatnonzero(self._coef.any(axis=1))
        wider = rows.astype(np.float64, copy=False) if kernel.native() is not None else rows
        values = kernel.block(wider, self._machine.rows_in(slots), n_threads)
        return np.asarray(values @ self._coef[slots] + self._intercept())


def live_scores(machine: DualExpansion, classes: StreamClasses, *, averages: bool) -> LiveScores:
    """Return the scores of a machine that goes on learning; see :class:`LiveScores`."""
    kind: type[LiveScores] = _PackedScores
    if machine.calls_python:
        kind = _CalledScores
    elif isinstance(machine.kernel, Linear):
        kind = _LinearScores
    return kind(machine, classes, averages=averages)

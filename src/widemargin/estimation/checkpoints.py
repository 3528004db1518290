"""Fits that were stopped, and go on where they were, to the bit.

What such a fit leaves, and when the next one is the same, :mod:`widemargin.estimation.resuming`
says. Here is the run of a fit that may leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy.typing as npt

from widemargin.estimation.fitting import FitProgress, Interrupted
from widemargin.estimation.resuming import STATE, fingerprint, keep, recall
from widemargin.kernels import Rows
from widemargin.solvers.progress import Progress, Solver, SolverState

Array: TypeAlias = npt.NDArray[Any]

#: Reasons of a fit that is not over, which may be gone on with.
EARLY = ("max_seconds", "callback", "interrupted")


class Checkpoint:
    """What a fit goes on from, if it can, and what it leaves for the next one.

    Parameters
    ----------
    estimator : the estimator whose ``fit`` this is
        Its ``_state`` is what the fit before has left.
    rows : array or CSR matrix
    labels, caps : array of shape (n_rows,)
    """

    def __init__(self, estimator: Any, rows: Rows, labels: Array, caps: Array) -> None:
        self._estimator, self._data = estimator, (rows, labels, caps)
        self._wanted = bool(estimator.warm_start)
        # Packed after the last round that was finished, those of a fit before included.
        self._last: dict[str, Any] | None = None

    def found(self) -> dict[str, Any] | None:
        """Return the packed state to go on from, or None."""
        self._last = recall(self._estimator, *self._data) if self._wanted else None
        return self._last

    def keep(self, state: SolverState) -> None:
        """Remember the state after a round, for Ctrl-C in the next one."""
        if self._wanted:
            self._last = state.pack()

    def left_by(self, state: SolverState, reason: str) -> dict[str, Any]:
        """Return the attribute for the next fit, if this one has ended for such a reason."""
        if not self._wanted or reason not in EARLY:
            return {}
        packed = self._last if reason == "interrupted" else state.pack()
        if packed is None:  # Ctrl-C came before the first round was put away
            return {}
        return {STATE: keep(self._estimator, fingerprint(*self._data), packed)}


def run_fit(
    estimator: Any,
    solver: Solver[Any],
    problem: Any,
    state: SolverState,
    checkpoint: Checkpoint,
    told: FitProgress,
    standing: Callable[[dict[str, list[float]]], str],
) -> dict[str, Any]:
    """Solve from a state on, and return the attributes of the fit.

    The estimator makes them by ``_attributes_of(state, reason, problem)``. Ctrl-C after the first
    round raises :class:`~widemargin.estimation.fitting.Interrupted`, with the machine as it is.
    """

    def attributes_so_far(reason: str) -> dict[str, Any]:
        attributes: dict[str, Any] = estimator._attributes_of(state, reason, problem)
        return attributes

    def after_round() -> bool:
        checkpoint.keep(state)
        return told.end_round(
            lambda: attributes_so_far(state.stopped_because), lambda: standing(state.history)
        )

    earlier = state.history["seconds"][-1] if state.history else 0.0
    progress = Progress(estimator.max_seconds, told.begin_round, after_round, earlier)
    try:
        solver.solve(problem, state, progress)
    except KeyboardInterrupt as stop:
        if not state.history:
            raise
        left = checkpoint.left_by(state, "interrupted")
        good = estimator._fitted_copy(attributes_so_far("interrupted") | left)
        raise Interrupted(estimator, good) from stop
    reason = state.stopped_because
    attributes = attributes_so_far(reason) | checkpoint.left_by(state, reason)
    told.end(lambda: attributes)
    return attributes

"""Fits that were stopped, and go on where they were, to the bit.

An estimator with ``warm_start`` whose fit ends before its time keeps the packed state of its solver
as ``_state``, with a fingerprint of all that the state belongs to. The next ``fit`` that has the
same fingerprint goes on from there; any other one starts as a warm start does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._fitting import FitProgress, Interrupted
from widemargin.kernels import Rows
from widemargin.solvers.progress import Progress, Solver, SolverState

Array: TypeAlias = npt.NDArray[Any]

#: Reasons of a fit that is not over, which may be gone on with.
EARLY = ("max_seconds", "callback", "interrupted")

# Parameters that may differ between the two fits. Random numbers go on from where they were.
_FREE = ("max_seconds", "n_jobs", "random_state", "verbose", "warm_start")


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
        self._last: dict[str, Any] | None = None  # packed after the last round that was finished

    def found(self) -> dict[str, Any] | None:
        """Return the packed state to go on from, or None."""
        kept = self._estimator.__dict__.get("_state")
        if not self._wanted or kept is None or kept["fingerprint"] != self._fingerprint():
            return None
        packed: dict[str, Any] = kept["solver"]
        return packed

    def keep(self, state: SolverState) -> None:
        """Remember the state after a round, for Ctrl-C in the next one."""
        if self._wanted:
            self._last = state.pack()

    def left_by(self, state: SolverState, reason: str) -> dict[str, Any]:
        """Return the attribute for the next fit, if this one has ended for such a reason."""
        if not self._wanted or reason not in EARLY:
            return {}
        packed = self._last if reason == "interrupted" else state.pack()
        return {"_state": {"fingerprint": self._fingerprint(), "solver": packed}}

    def _fingerprint(self) -> str:
        parameters = self._estimator.get_params(deep=False)
        lasting = {name: parameters[name] for name in sorted(parameters) if name not in _FREE}
        digest = hashlib.blake2b(digest_size=16)
        digest.update(f"{type(self._estimator).__name__} {lasting!r}".encode())
        rows, labels, caps = self._data
        parts = (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,)
        digest.update(repr(rows.shape).encode())
        for part in (*parts, labels, caps):
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype.str} {array.shape}".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


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
    round raises :class:`~widemargin._fitting.Interrupted`, with the machine as it is.
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


def check_state(value: Any) -> None:
    """Require what a file may hold as ``_state``; ValueError if it is none.

    What is within is checked by the solver that goes on from it.
    """
    is_state = type(value) is dict and set(value) == {"fingerprint", "solver"}
    if not is_state or type(value["fingerprint"]) is not str or type(value["solver"]) is not dict:
        raise ValueError("_state is no state of a solver")

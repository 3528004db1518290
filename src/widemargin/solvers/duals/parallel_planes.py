"""Parallel hyperplanes: machines of one kernel expansion and several thresholds.

Problem      maximise  sum_ci t_ci b_ci - 1/2 sum_m B_m' K B_m  with 0 <= t_ci b_ci <= cap_ci, and
             sum over the coefficients b_ci of a threshold = 0. Rows have copies c, each with a
             sign t and a cap; a copy belongs to a threshold, a threshold to a machine m, and B_m
             sums the copies of a row. Two copies with a threshold each are PSVM, whose dual (6) has
             alpha = t b and the same value; in (4), the term of alpha^2 is of x_i^1. The primal is
             1/2 sum_m B_m' K B_m + sum_ci cap_ci max(0, 1 - t_ci (f_mi + s_c)) with the scores
             f_m = K B_m and a shift s for each threshold
State        coefficients of all copies and scores of all machines; steps that were taken. Which
             pair moves next follows from these alone
Step         (a round) some steps of the native half, ``parallel_planes.hpp``, which says how a pair
             is chosen; then a look at the gap
Stops        when the duality gap is small, or after so many steps. Scores are summed in double
             precision, so that they need not be computed anew before the gap is believed

Source: Wang, Chang and Feng, "Parallel and Sequential Support Vector Machines for Multi-label
Classification", (3) to (6).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.kernels import Kernel, Rows, as_native_rows
from widemargin.solvers.duals.expansion import cache_bytes, make_slots
from widemargin.solvers.duals.state import count
from widemargin.solvers.progress import Progress, Solver, SolverState

Array: TypeAlias = npt.NDArray[Any]

_LEAST_STEPS = 500  # of a round, so that looking at the gap costs next to nothing
_LEAST_GAIN = 1e-15  # of the dual, in a round: less is rounding
_CALL_PRODUCTS = 1_000_000_000  # multiply-adds of one native call: some tenths of a second


@dataclass(frozen=True)
class PlanesProblem:
    """Rows to learn from, and on which side of which threshold they belong.

    Attributes
    ----------
    kernel : Kernel
    rows : array or CSR matrix
    signs : array of int8 of shape (n_copies, n_rows)
        1 where a copy of a row belongs above its threshold, else -1.
    caps : array of shape (n_copies, n_rows)
        The bound of each coefficient; 0 where a row lacks the copy.
    thresholds : tuple of int
        By copy: the threshold that it belongs to.
    machines : tuple of int
        By threshold: the machine that it belongs to.
    gap_limit : callable
        The gap at which a fit ends, of the primal objective.
    max_iter : int or None
        Steps at the most.
    cache_size : float
        Megabytes of kernel rows that are kept.
    n_threads : int
    """

    kernel: Kernel
    rows: Rows
    signs: npt.NDArray[np.int8]
    caps: Array
    thresholds: tuple[int, ...]
    machines: tuple[int, ...]
    gap_limit: Callable[[float], float]
    max_iter: int | None = None
    cache_size: float = 200.0
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.signs.shape[1])

    def begin(self) -> PlanesMachine:
        """Return machines without coefficients."""
        return PlanesMachine(self)

    def bounds(self) -> tuple[Array, Array]:
        """Return the lowest and the highest coefficients, each of shape (n_copies, n_rows)."""
        above = self.signs > 0
        return np.where(above, 0.0, -self.caps), np.where(above, self.caps, 0.0)


class PlanesMachine:
    """Coefficients and scores of all machines, and the kernel values that they need."""

    offset = 0.0  # of kernel values: thresholds are no part of the regulariser

    def __init__(self, problem: PlanesProblem) -> None:
        self.kernel = problem.kernel
        rows = problem.rows
        slots, called, _ = make_slots(problem.kernel, rows)
        if called is None:
            native = as_native_rows(rows)
            slots.use_batch(native, native)
        else:
            called.use_batch(rows, np.empty(0, dtype=np.int64))
        self.planes = _native.ParallelPlanes(
            slots,
            np.ascontiguousarray(problem.signs, dtype=np.int8),
            np.ascontiguousarray(problem.caps, dtype=np.float64),
            np.array(problem.thresholds, dtype=np.int64),
            np.array(problem.machines, dtype=np.int64),
            cache_bytes(problem.cache_size),
            problem.n_threads,
        )
        # A step may need two kernel rows, and passes over all copies.
        products = problem.n_rows * (2 * rows.shape[1] + 4 * len(problem.thresholds))
        self.steps_at_once = min(
            max(problem.n_rows, _LEAST_STEPS), max(1, _CALL_PRODUCTS // products)
        )
        self._machine_of_copy = np.array([problem.machines[each] for each in problem.thresholds])

    def coefficients(self) -> Array:
        """Return b, of shape (n_copies, n_rows)."""
        return np.asarray(self.planes.coefficients())

    def expansions(self) -> Array:
        """Return B, of shape (n_machines, n_rows): copies of a row are summed."""
        each = self.coefficients()
        sums = np.zeros((self._machine_of_copy.max() + 1, each.shape[1]))
        np.add.at(sums, self._machine_of_copy, each)
        return sums

    def scores(self) -> Array:
        """Return f, of shape (n_machines, n_rows), without thresholds."""
        return np.asarray(self.planes.scores())

    def intercepts(self) -> Array:
        """Return what is added to the scores, by threshold."""
        return np.asarray(self.planes.intercepts())

    def pack(self) -> dict[str, Any]:
        """Return all that moves."""
        return {"coefficients": self.coefficients(), "scores": self.scores()}

    def take_on(self, packed: dict[str, Any], bounds: tuple[Array, Array]) -> None:
        """Become the machines that were packed; ValueError if they cannot have been any."""
        coefficients, scores = packed["coefficients"], packed["scores"]
        for values, like in ((coefficients, self.coefficients()), (scores, self.scores())):
            if values.shape != like.shape or values.dtype != np.float64:
                raise ValueError("The state of a solver is damaged: it has another shape.")
            if not np.isfinite(values).all():
                raise ValueError("The state of a solver is damaged: it has no finite numbers.")
        if (coefficients < bounds[0]).any() or (coefficients > bounds[1]).any():
            raise ValueError("The state of a solver is damaged: coefficients are out of bounds.")
        self.planes.put(np.ascontiguousarray(coefficients), np.ascontiguousarray(scores))


@dataclass(kw_only=True)
class PlanesState(SolverState):
    """What moves.

    Attributes
    ----------
    machine : PlanesMachine
    steps : int
        Steps that were taken.
    gap, dual : float
        As they were last looked at.
    """

    machine: PlanesMachine
    steps: int = 0
    gap: float = np.inf
    dual: float = 0.0

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "machine": self.machine.pack(),
            "history": {name: np.asarray(values) for name, values in self.history.items()},
            "steps": self.steps,
            "gap": float(self.gap),
            "dual": float(self.dual),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: PlanesProblem) -> Self:
        """Return the state that was packed, bound to the same problem; ValueError if it is none."""
        try:
            machine = problem.begin()
            machine.take_on(packed["machine"], problem.bounds())
            return cls(
                machine=machine,
                history={str(name): list(v.tolist()) for name, v in packed["history"].items()},
                steps=count(packed, "steps"),
                gap=float(packed["gap"]),
                dual=float(packed["dual"]),
            )
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError(f"The state of a solver is damaged: {error}") from error

    def look(self) -> None:
        """Find gap and dual."""
        gap, self.dual = self.machine.planes.look()
        self.gap = max(gap, 0.0)  # as it is, but for rounding

    def entries(self) -> dict[str, float]:
        """Return where the machines are, to be written down."""
        vectors, patterns = self.machine.planes.supports()
        return {
            "steps": self.steps,
            "dual": self.dual,
            "primal": self.dual + self.gap,
            "gap": self.gap,
            "kernel_evaluations": self.machine.planes.kernel_evaluations,
            "support_vectors": vectors,
            "support_patterns": patterns,
        }


@dataclass(frozen=True)
class PairSteps(Solver[PlanesState]):
    """Exact steps on pairs of coefficients of one threshold (SMO), of all machines together."""

    name: ClassVar[str] = "parallel_planes"
    requires: ClassVar[tuple[str, ...]] = ("begin", "bounds", "gap_limit", "max_iter")

    def init(self, problem: PlanesProblem) -> PlanesState:
        """Begin without coefficients."""
        self.check(problem)
        state = PlanesState(machine=problem.begin())
        state.look()
        return state

    def step(
        self, problem: PlanesProblem, state: PlanesState, progress: Progress
    ) -> dict[str, float]:
        """Do some steps, and look at what has come of them."""
        at_once = state.machine.steps_at_once
        # Rounds end at the same steps wherever a fit was stopped.
        wanted = at_once - state.steps % at_once
        if problem.max_iter is not None:
            wanted = min(wanted, problem.max_iter - state.steps)
        taken, gain = state.machine.planes.move(max(wanted, 0))
        state.steps += taken
        state.look()
        if state.gap <= problem.gap_limit(state.dual + state.gap):
            state.stopped_because = "tol"
        elif (
            taken < wanted or not gain > _LEAST_GAIN * abs(state.dual) or not np.isfinite(state.gap)
        ):
            state.stopped_because = "stuck"
        elif problem.max_iter is not None and state.steps >= problem.max_iter:
            state.stopped_because = "max_iter"
        return state.entries()

    def finish(self, problem: PlanesProblem, state: PlanesState) -> PlanesMachine:
        """Return the machines; there is nothing left to do."""
        return state.machine


def standing(history: dict[str, list[float]]) -> str:
    """Say in a few words where the machines were when they were last put down."""
    last = {name: values[-1] for name, values in history.items()}
    return (
        f"{last['steps']} steps, {last['support_patterns']} support patterns, "
        f"dual {last['dual']:.6g}, gap {last['gap']:.3g}"
    )

"""Learned basis: Gaussian units that move, by variable projection.

Problem      that of :mod:`widemargin.solvers.units.problem`
State        the units, their optimal value and its gradient, what L-BFGS remembers, where the
             search along its direction stands, and the coefficients that the next inner solve
             begins with
Step         (an outer iteration) L-BFGS on the units alone. At each trial point A and b are solved
             for anew, by the joint Newton method from where they were; then the gradient of the
             optimal value in the units is that at fixed A and b: with G the gradient of the loss in
             the scores and W = (G A') * H, everything follows from W' Z and sums of W
Stops        after max_iter outer iterations, or three times as many trials; when ten of them, but
             not of the first, have lowered the objective by less than tol, relative, or one finds
             nothing lower; when the score on held-out rows has not risen for a while; when a
             callback says so, or the clock

Source: ours. Variable projection is due to Golub and Pereyra, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.newton import JointNewton
from widemargin.solvers.progress import Progress
from widemargin.solvers.units.lbfgs import LineSearch, Memory, Trial
from widemargin.solvers.units.problem import (
    LearnedPoint,
    LearnedProblem,
    UnitSolver,
    UnitState,
    moving_shapes,
)
from widemargin.solvers.units.values import Units

Array: TypeAlias = npt.NDArray[Any]

_STEP = {"centres": 1.0, "log_weights": 0.3, "log_widths": 1.0, "mapping": 0.1}
_WINDOW = 10  # moves that must bring something between them
_TRIALS_A_ROUND = 3  # on the average, at the most
_INNER = JointNewton(tol=1e-4, max_iter=10, max_products=40)


@dataclass(frozen=True)
class Evaluation:
    """The optimal value at a point, which is one vector: the units, scaled and laid end to end."""

    variables: Array
    gradient: Array
    point: LearnedPoint

    def pack(self) -> dict[str, Any]:
        """Return it as what model files hold."""
        return vars(self) | {"point": self.point.pack()}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Self:
        """Return what was packed."""
        return cls(**packed | {"point": LearnedPoint.unpack(packed["point"])})


@dataclass(frozen=True)
class Search:
    """A search along a direction: where it stands, and its best point, if any is lower."""

    direction: Array
    line: LineSearch
    lowest: Evaluation | None = None
    ended_at_no_number: bool = False  # the last trial

    def pack(self) -> dict[str, Any]:
        """Return it as what model files hold."""
        ends = {name: vars(getattr(self.line, name)) for name in ("start", "best", "other")}
        return vars(self) | {
            "line": vars(self.line) | ends,
            "lowest": None if self.lowest is None else self.lowest.pack(),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Self:
        """Return what was packed."""
        line = packed["line"]
        ends = {name: Trial(**line[name]) for name in ("start", "best", "other")}
        lowest = packed["lowest"]
        return cls(
            **packed
            | {
                "line": LineSearch(**line | ends),
                "lowest": None if lowest is None else Evaluation.unpack(lowest),
            }
        )


@dataclass(kw_only=True)
class ProjectionState(UnitState):
    """Everything that moves in variable projection.

    Attributes
    ----------
    begin : Units
        Those of the first round, from which variables count.
    at : Evaluation or None
        Of the last round; None before the first.
    memory : Memory
    search : Search or None
        Only where the time was over in the midst of a round.
    inner_start : ndarray or None
        Coefficients that the next inner solve begins with.
    n_trials : int
        Points at which the optimal value was evaluated.
    """

    begin: Units
    at: Evaluation | None = None
    memory: Memory
    search: Search | None = None
    inner_start: Array | None = None
    n_trials: int = 0

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "begin": dict(vars(self.begin)),
            "at": None if self.at is None else self.at.pack(),
            "memory": dict(vars(self.memory)),
            "search": None if self.search is None else self.search.pack(),
            "inner_start": self.inner_start,
            "n_trials": self.n_trials,
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        at, search = packed["at"], packed["search"]
        return cls(
            **cls._unpack_shared(packed, problem),
            begin=Units(**packed["begin"]),
            at=None if at is None else Evaluation.unpack(at),
            memory=Memory(**packed["memory"]),
            search=None if search is None else Search.unpack(search),
            inner_start=packed["inner_start"],
            n_trials=packed["n_trials"],
        )


@dataclass(frozen=True)
class VariableProjection(UnitSolver[ProjectionState]):
    """Learn centres, widths and metric of Gaussian units by variable projection.

    Parameters
    ----------
    tol : float
        Relative decrease of the objective in ten outer iterations below which it ends.
    first_moves : int
        Outer iterations before that counts: L-BFGS has to learn what curves how much.

    The others are those of :class:`UnitSolver`; a round is an outer iteration.
    """

    name: ClassVar[str] = "projection"
    requires: ClassVar[tuple[str, ...]] = ("map_rows", "solve_coefficients", "gradient", "finish")
    state_type: ClassVar[type[UnitState]] = ProjectionState

    tol: float = 1e-2
    first_moves: int = 40

    def init(self, problem: LearnedProblem, units: Units) -> ProjectionState:
        """Return the state in which units begin to move."""
        nowhere = LearnedPoint(units, problem.objective.zero_coefficients(), np.inf, np.inf)
        size = sum(int(np.prod(shape)) for shape in moving_shapes(problem, units).values())
        return ProjectionState(point=nowhere, begin=units, memory=Memory.empty(size))

    def step(
        self, problem: LearnedProblem, state: ProjectionState, progress: Progress
    ) -> dict[str, float] | None:
        """Do an outer iteration; None where the time was over in its midst."""
        walk = _Walk(problem, state)
        if walk.at is None:
            walk.evaluate_start()
        while not walk.is_done:
            if state.history and walk.n_trials > state.n_trials and progress.is_late():
                walk.pause()
                state.stopped_because = "max_seconds"
                return None
            walk.try_next()
        walk.settle()
        return self._end(problem, state, walk)

    def _end(
        self, problem: LearnedProblem, state: ProjectionState, walk: _Walk
    ) -> dict[str, float]:
        before = state.history.get("objective", [])[-_WINDOW:][:1]
        before = before if state.n_rounds + 1 >= self.first_moves else []
        objective = state.point.objective
        if walk.ended_at_no_number:
            state.stopped_because = "not_finite"
        elif walk.is_stuck:
            state.stopped_because = "tol"
        entries = self._judge(problem, state)
        if state.stopped_because in ("", "max_iter"):
            falls = not before or before[0] - objective >= self.tol * abs(objective)
            if self.tol > 0 and not falls:
                state.stopped_because = "tol"
            elif state.n_trials >= _TRIALS_A_ROUND * self.max_iter:
                state.stopped_because = "max_iter"
        return entries


class _Walk:
    """An outer iteration on its way. It leaves the state alone until it is paused or settled."""

    def __init__(self, problem: LearnedProblem, state: ProjectionState) -> None:
        self._problem, self._state = problem, state
        self._shapes = moving_shapes(problem, state.begin)
        self.at, self._memory, self._search = state.at, state.memory, state.search
        self._inner_start, self._n_newton = state.inner_start, state.n_newton
        self.n_trials = state.n_trials
        self.is_stuck = False

    def evaluate_start(self) -> None:
        """Evaluate the point where everything begins."""
        self.at = self._evaluate(np.zeros(self._memory.moves.shape[1]))
        if self.at is None:
            raise ValueError(
                "The objective is not finite where the basis begins. Check the scale of X, C and "
                "gamma."
            )

    @property
    def is_done(self) -> bool:
        """Whether the iteration has come to an end."""
        return self.is_stuck or (self._search is not None and bool(self._search.line.verdict))

    @property
    def ended_at_no_number(self) -> bool:
        """Whether there was nothing lower to be found, and at last no value at all."""
        return self.is_stuck and self._search is not None and self._search.ended_at_no_number

    def try_next(self) -> None:
        """Evaluate one more point on the line."""
        assert self.at is not None
        search = self._search or self._begin_search()
        if search is None:
            self.is_stuck = True
            return
        found = self._evaluate(self.at.variables + search.line.length * search.direction)
        if found is None:
            line, lowest = search.line.after(np.inf, np.inf), search.lowest
        else:
            slope = float(found.gradient @ search.direction)
            line = search.line.after(found.point.objective, slope)
            lowest = found if line.best.length == search.line.length else search.lowest
        self._search = replace(search, line=line, lowest=lowest, ended_at_no_number=found is None)
        if line.verdict == "failed":
            if len(self._memory):
                # What it remembers may be of a curvature that is no more: steepest descent, once.
                self._memory, self._search = Memory.empty(len(self.at.variables)), None
            else:
                self.is_stuck = True

    def _begin_search(self) -> Search | None:
        """Return a search along the direction of L-BFGS, or the steepest; None where it is flat."""
        assert self.at is not None
        gradient = self.at.gradient
        for memory in (self._memory, Memory.empty(len(gradient))):
            direction = memory.direction(gradient)
            slope = float(gradient @ direction)
            if slope < 0.0:
                self._memory = memory
                length = 1.0 if len(memory) else 1.0 / float(np.linalg.norm(direction))
                return Search(direction, LineSearch.begin(self.at.point.objective, slope, length))
        return None

    def pause(self) -> None:
        """Write down where the iteration stands, to be gone on with."""
        state = self._state
        state.at, state.memory, state.search = self.at, self._memory, self._search
        self._write_counts()

    def settle(self) -> None:
        """Write down where the iteration has ended."""
        assert self.at is not None
        at = self.at
        if not self.is_stuck:
            assert self._search is not None
            assert self._search.lowest is not None
            found = self._search.lowest
            self._memory = self._memory.with_pair(
                found.variables - at.variables, found.gradient - at.gradient
            )
            at = found
        state = self._state
        state.at, state.memory, state.search, state.point = at, self._memory, None, at.point
        self._write_counts()

    def _write_counts(self) -> None:
        state = self._state
        state.inner_start, state.n_newton = self._inner_start, self._n_newton
        state.n_trials, state.reference = self.n_trials, self._problem.reference

    def _evaluate(self, variables: Array) -> Evaluation | None:
        """Return the optimal value and its gradient; None where they are no numbers."""
        units = self._units(variables)
        mapped = self._problem.map_rows(units)
        result = self._problem.solve_coefficients(units, mapped, self._inner_start, _INNER)
        self.n_trials += 1
        self._n_newton += result.n_iter
        gradient = self._problem.gradient(units, mapped, result)
        flat = np.concatenate(
            [_STEP[name] * getattr(gradient, name).ravel() for name in self._shapes]
        )
        if not (np.isfinite(result.value) and np.isfinite(flat).all()):
            return None
        self._inner_start = result.coefficients
        return Evaluation(variables, flat, LearnedPoint.of(units, result))

    def _units(self, variables: Array) -> Units:
        parts, begin = {}, 0
        for name, shape in self._shapes.items():
            end = begin + int(np.prod(shape))
            moved = _STEP[name] * variables[begin:end].reshape(shape)
            parts[name], begin = getattr(self._state.begin, name) + moved, end
        return replace(self._state.begin, **parts)

"""Learned basis by stochastic gradients first and variable projection after them.

Problem      that of :mod:`widemargin.solvers.units.problem`
State        that of the solver at work, and which one it is
Step         one of that solver. Stochastic steps are cheap, and come a long way from where units
             begin; projection then goes to the optimum nearby, which they would circle around
Stops        when the last solver does; the first one only hands over

Source: ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

from widemargin.solvers.progress import Progress
from widemargin.solvers.units.problem import LearnedPoint, LearnedProblem, UnitSolver, UnitState
from widemargin.solvers.units.projection import ProjectionState, VariableProjection
from widemargin.solvers.units.stochastic import StochasticState, StochasticUnits
from widemargin.solvers.units.values import Units

_STATES: dict[str, type[UnitState]] = {
    "adam": StochasticState,
    "projection": ProjectionState,
}
_ENDS = ("not_finite", "early_stopping")  # reasons of the first solver that end the second one too


@dataclass(kw_only=True)
class StagedState(UnitState):
    """Everything that moves, whichever solver is at work.

    Attributes
    ----------
    stage : {"adam", "projection"}
    part : UnitState
        Of the solver at work.
    """

    stage: str
    part: UnitState

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {"stage": self.stage, "part": self.part.pack()}

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        return cls(
            **cls._unpack_shared(packed, problem),
            stage=packed["stage"],
            part=_STATES[packed["stage"]].unpack(packed["part"], problem),
        )


@dataclass(frozen=True, kw_only=True)
class StagedUnits(UnitSolver[StagedState]):
    """Learn units by stochastic gradients, then by variable projection.

    Parameters
    ----------
    stochastic : StochasticUnits
    projection : VariableProjection
    """

    name: ClassVar[str] = "auto"
    requires: ClassVar[tuple[str, ...]] = (
        *StochasticUnits.requires,
        *VariableProjection.requires,
    )
    state_type: ClassVar[type[UnitState]] = StagedState

    stochastic: StochasticUnits
    projection: VariableProjection

    def init(self, problem: LearnedProblem, units: Units) -> StagedState:
        """Return the state in which units begin to move."""
        part = self.stochastic.init(problem, units)
        return StagedState(point=part.point, stage="adam", part=part)

    def step(
        self, problem: LearnedProblem, state: StagedState, progress: Progress
    ) -> dict[str, float] | None:
        """Do a round of the solver at work; None where the time was over in its midst."""
        part: Any = state.part
        is_first = state.stage == "adam"
        part.stopped_because = ""
        solver: Any = self.stochastic if is_first else self.projection
        entries: dict[str, float] | None = solver.step(problem, part, progress)
        if entries is None:
            state.stopped_because = part.stopped_because
            return None
        for name, value in entries.items():
            part.history.setdefault(name, []).append(value)
        for name in ("point", "best", "best_score", "last_rise", "n_newton", "reference"):
            setattr(state, name, getattr(part, name))
        reason = part.stopped_because
        if not reason:
            return entries
        if is_first and reason not in _ENDS:
            state.stage, state.part = "projection", self._handed_over(problem, part)
        else:
            state.stopped_because = reason
        return entries

    def _handed_over(self, problem: LearnedProblem, part: UnitState) -> ProjectionState:
        """Return the state in which projection goes on."""
        state = self.projection.init(problem, part.point.units)
        state.inner_start = part.point.coefficients
        state.best, state.best_score, state.last_rise = part.best, part.best_score, 0
        state.n_newton, state.reference = part.n_newton, part.reference
        return state

    def finish(self, problem: LearnedProblem, state: StagedState) -> LearnedPoint:
        """Return the machine that is kept: the best on held-out rows, or else the last."""
        return self.projection.finish(problem, state)  # type: ignore[arg-type]

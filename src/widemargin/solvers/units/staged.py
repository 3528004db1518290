"""Learned basis by stochastic gradients first and variable projection after them.

Problem      that of :mod:`widemargin.solvers.units.problem`
State        that of the solver at work, and which one it is; where rows are held out, the best
             machine by its loss on these, and the factor of C that it is the best with
Step         one of the solver at work. Stochastic steps are cheap, and come a long way from where
             units begin; projection then goes to the optimum nearby, which they would circle
             around. Where rows are held out, the machine is judged by its loss on them at the end
             of each cycle of stochastic steps and after each move. With ``chooses_weight`` a cycle
             ends with a look at other values of C: units stay where they are, coefficients are
             solved for anew, and the C of the lowest loss is taken on. Moves that lower that loss
             by much can be trusted: C is looked at once more, the rows that were held out join
             the others, and projection goes on. With ``start_widths`` machines whose units stay
             where they begin are judged, too, before anything moves
Stops        when the last solver does; the first one only hands over. Where rows are held out,
             also when a cycle, or a number of moves, has not lowered the loss on them; and the
             first solver hands over when a cycle has lowered it by little

Source: ours.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from widemargin.solvers.newton import JointNewton
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
_LEAST_GAIN = 1e-3  # share of the held-out loss: a decrease by less is none
_CYCLE_GAIN = 0.12  # share that a cycle must have brought to be followed by another
_JOIN_GAIN, _JOIN_MOVES = 0.03, 5  # share that moves have brought, and how many, to be trusted
_MOVES_AFTER = 25  # that are made in any case once all rows have joined
_PATIENCE = 15  # moves without a lower loss after which it ends
# In which other values of C lie, and the share of the loss that each step that way must bring: a
# smaller C is the safer one.
_WAYS = ((10**-0.5, _LEAST_GAIN), (10**0.5, 0.01))
_FACTORS = (1e-4, 30.0)  # of C, at the least and at the most
# At another C. The gradient alone says little of it, next to that at zero coefficients.
_LOOK = JointNewton(tol=1e-3, excess=2e-3, max_iter=10, max_products=40)


@dataclass(kw_only=True)
class StagedState(UnitState):
    """Everything that moves, whichever solver is at work.

    Attributes
    ----------
    stage : {"adam", "projection"}
    part : UnitState
        Of the solver at work.
    factor : float
        Of C, at which the solver is at work.
    best_factor : float
        The one that the best machine on held-out rows has, be it one whose units stay.
    stays : dict
        Loss on held-out rows and factor of C of machines whose units stay, by how much narrower
        these are than where units begin.
    lowest, lowest_factor, lowest_effort : float, float, tuple of int
        Loss on held-out rows of the best machine whose units have moved, its factor of C, and the
        cycles and moves after which it was found.
    loss_of_cycles : float
        Of held-out rows, where the first solver handed over.
    has_joined : bool
        Whether all rows are learned from now.
    n_watched : int
        Moves that were made before that.
    """

    stage: str
    part: UnitState
    factor: float = 1.0
    best_factor: float = 1.0
    stays: dict[float, tuple[float, float]] = field(default_factory=dict)
    lowest: float = np.inf
    lowest_factor: float = 1.0
    lowest_effort: tuple[int, int] = (0, 0)
    loss_of_cycles: float = np.inf
    has_joined: bool = False
    n_watched: int = 0

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "stage": self.stage,
            "part": self.part.pack(),
            "factor": self.factor,
            "best_factor": self.best_factor,
            "stays": [[width, *stay] for width, stay in self.stays.items()],
            "lowest": self.lowest,
            "lowest_factor": self.lowest_factor,
            "lowest_effort": list(self.lowest_effort),
            "loss_of_cycles": self.loss_of_cycles,
            "has_joined": self.has_joined,
            "n_watched": self.n_watched,
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        cycles, moves = packed["lowest_effort"]
        shared = cls._unpack_shared(packed, problem)
        problem = (packed["has_joined"] and problem.whole) or problem
        return cls(
            **shared,
            stage=packed["stage"],
            part=_STATES[packed["stage"]].unpack(packed["part"], problem.times(packed["factor"])),
            stays={width: (loss, factor) for width, loss, factor in packed["stays"]},
            **{name: packed[name] for name in ("factor", "best_factor", "lowest", "lowest_factor")},
            lowest_effort=(cycles, moves),
            **{name: packed[name] for name in ("loss_of_cycles", "has_joined", "n_watched")},
        )


@dataclass(frozen=True, kw_only=True)
class StagedUnits(UnitSolver[StagedState]):
    """Learn units by stochastic gradients, then by variable projection.

    Parameters
    ----------
    stochastic : StochasticUnits
    projection : VariableProjection
        Of ``max_iter`` 0 where there is to be none.
    chooses_weight : bool
        Whether rows that are held out also choose C.
    start_widths : tuple of float
        Rows that are held out judge machines whose units stay as well, narrower by these factors
        than where units begin.
    """

    name: ClassVar[str] = "auto"
    requires: ClassVar[tuple[str, ...]] = (
        *StochasticUnits.requires,
        *VariableProjection.requires,
        "times",
    )
    state_type: ClassVar[type[UnitState]] = StagedState

    stochastic: StochasticUnits
    projection: VariableProjection
    chooses_weight: bool = False
    start_widths: tuple[float, ...] = ()

    def init(self, problem: LearnedProblem, units: Units) -> StagedState:
        """Return the state in which units begin to move."""
        part = self.stochastic.init(problem, units)
        return StagedState(point=part.point, stage="adam", part=part)

    def step(
        self, problem: LearnedProblem, state: StagedState, progress: Progress
    ) -> dict[str, float] | None:
        """Do a round of the solver at work; None where the time was over in its midst.

        An interrupt in its midst, or while the machine is judged, leaves the state as it was.
        """
        work = copy(state)
        history = {name: list(values) for name, values in state.part.history.items()}
        work.part = replace(state.part, history=history)
        entries = self._step(problem, work, progress)
        vars(state).update(vars(work))
        return entries

    def _step(
        self, problem: LearnedProblem, state: StagedState, progress: Progress
    ) -> dict[str, float] | None:
        part: Any = state.part
        is_first = state.stage == "adam"
        part.stopped_because = ""
        solver: Any = self.stochastic if is_first else self.projection
        is_start = bool(self.start_widths) and not state.stays
        if is_start:
            self._look_at_start(problem, state)
        if state.has_joined and problem.whole is not None:
            problem = problem.whole
            left = self.projection.max_iter - state.n_watched
            solver = replace(self.projection, first_moves=_MOVES_AFTER, max_iter=left)
        entries: dict[str, float] | None = solver.step(problem.times(state.factor), part, progress)
        if entries is None:
            state.stopped_because = part.stopped_because
            return None
        for name, value in entries.items():
            part.history.setdefault(name, []).append(value)
        if problem.held_out_loss is not None:
            loss = self._watch(problem, state)
            of_start = min(loss for loss, _ in state.stays.values()) if is_start else np.nan
            entries["held_out_loss"] = float(np.fmin(loss, of_start))
        elif state.has_joined:
            entries["held_out_loss"] = np.nan
            state.best = None
        else:
            for name in ("best", "best_score", "last_rise"):
                setattr(state, name, getattr(part, name))
        part = state.part
        for name in ("point", "n_newton", "reference"):
            setattr(state, name, getattr(part, name))
        reason = part.stopped_because
        if not reason or state.stopped_because:
            return entries
        if is_first and reason not in _ENDS and self.projection.max_iter > 0:
            state.stage, state.part = "projection", self._handed_over(problem, state)
            state.loss_of_cycles = state.lowest
        else:
            state.stopped_because = reason
        return entries

    def _watch(self, problem: LearnedProblem, state: StagedState) -> float:
        """Judge the machine by rows that are held out, where a cycle or a move has ended.

        Returns the loss; NaN in the midst of a cycle.
        """
        part: Any = state.part
        if state.stage == "projection":
            effort = (state.lowest_effort[0], part.n_rounds)
            loss = self._loss(problem, part.point)
        else:
            effort = (self.stochastic.cycles_in(part.n_rounds), 0)
            if effort[0] == self.stochastic.cycles_in(part.n_rounds - 1):
                return np.nan
            loss = self._weigh(problem, state)
        lowest = state.lowest
        may_join = problem.whole is not None and effort[1] < self.projection.max_iter
        if loss < (1.0 - _LEAST_GAIN) * lowest or lowest == np.inf:
            state.lowest, state.lowest_factor, state.lowest_effort = loss, state.factor, effort
            self._keep_if_best(state, part.point, loss, state.factor)
            if state.stage == "adam" and effort[0] > 1 and loss > (1.0 - _CYCLE_GAIN) * lowest:
                part.stopped_because = part.stopped_because or "tol"
            is_trusted = loss < (1.0 - _JOIN_GAIN) * state.loss_of_cycles
            if may_join and is_trusted and effort[1] >= _JOIN_MOVES:
                self._weigh(problem, state)
                self._join(problem, state)
        elif state.stage == "adam" or effort[1] - state.lowest_effort[1] >= _PATIENCE:
            is_trusted = lowest < (1.0 - _JOIN_GAIN) * state.loss_of_cycles
            if may_join and is_trusted and state.stage == "projection":
                # Moves have brought much, and then went too far for this C: back to the best of
                # them, and on from there with a smaller one.
                part.point, state.factor = state.best, state.best_factor
                if self.chooses_weight:
                    state.factor = max(_FACTORS[0], _rounded(state.factor * _WAYS[0][0]))
                self._join(problem, state)
            else:
                state.stopped_because = "held_out"
        return loss

    def _loss(self, problem: LearnedProblem, point: LearnedPoint) -> float:
        assert problem.held_out_loss is not None
        loss = problem.held_out_loss(point.units, point.coefficients)
        return loss if np.isfinite(loss) else np.inf

    def _keep_if_best(
        self, state: StagedState, point: LearnedPoint, loss: float, factor: float
    ) -> None:
        if state.best is None or loss < -state.best_score:
            state.best, state.best_score, state.best_factor = point, -loss, factor

    def _look_at_start(self, problem: LearnedProblem, state: StagedState) -> None:
        """Judge machines whose units stay where they begin, or are wider there."""
        begin, at_work = state.part.point, problem.times(state.factor)
        reference, stays = at_work.reference, {}
        for width in self.start_widths:
            units = begin.units.narrowed(width)
            point, n_newton = _solved(problem, replace(begin, units=units), state.factor)
            loss, factor, point, n_more = self._best_weight(problem, point, state.factor)
            state.part.n_newton += n_newton + n_more
            stays[width] = loss, factor
            self._keep_if_best(state, point, loss, factor)
        state.stays, at_work.reference = stays, reference

    def _weigh(self, problem: LearnedProblem, state: StagedState) -> float:
        """Take on the C of the lowest loss on held-out rows, with its coefficients."""
        part: Any = state.part
        begin = part.point
        loss, state.factor, point, n_newton = self._best_weight(problem, begin, state.factor)
        part.n_newton += n_newton
        if point is not begin:
            part.point, part.reference = point, problem.times(state.factor).reference
            if state.stage == "adam":
                of_outputs = problem.objective.output_coefficients(point.coefficients)
                part.moments = part.moments.with_coefficients(of_outputs)
        return loss

    def _best_weight(
        self, problem: LearnedProblem, begin: LearnedPoint, factor: float
    ) -> tuple[float, float, LearnedPoint, int]:
        """Return the lowest loss on held-out rows, its factor of C, the machine, Newton steps."""
        known = {factor: (self._loss(problem, begin), begin)}
        n_newton = 0
        for way, least in _WAYS if self.chooses_weight else ():
            while _FACTORS[0] <= (further := _rounded(factor * way)) <= _FACTORS[1]:
                point, n_steps = _solved(problem, begin, further)
                known[further] = self._loss(problem, point), point
                n_newton += n_steps
                if known[further][0] > (1.0 - least) * known[factor][0]:
                    break
                factor = further
            if len(known) > 2:
                break  # the other way was higher where it began
        loss, point = known[factor]
        return loss, factor, point, n_newton

    def _join(self, problem: LearnedProblem, state: StagedState) -> None:
        """Go on with all rows, from the machine and the C that there are now."""
        assert problem.whole is not None
        state.best_factor, state.has_joined = state.factor, True
        state.n_watched = state.part.n_rounds
        state.part = self._handed_over(problem.whole, state)
        state.part.stopped_because = ""

    def _handed_over(self, problem: LearnedProblem, state: StagedState) -> ProjectionState:
        """Return the state in which projection goes on."""
        part: Any = state.part
        after = self.projection.init(problem.times(state.factor), part.point.units)
        after.point = part.point
        after.inner_start = part.point.coefficients
        after.best, after.best_score, after.last_rise = part.best, part.best_score, 0
        after.n_newton = part.n_newton
        after.reference = problem.times(state.factor).reference  # of all rows, none as yet
        return after

    def finish(self, problem: LearnedProblem, state: StagedState) -> LearnedPoint:
        """Return the machine that is kept: the best on held-out rows, or else the last."""
        factor = state.factor if state.best is None else state.best_factor
        problem = problem.whole or problem
        return self.projection.finish(problem.times(factor), state)  # type: ignore[arg-type]


def _solved(
    problem: LearnedProblem, point: LearnedPoint, factor: float
) -> tuple[LearnedPoint, int]:
    """Return the units with coefficients for another C, and how many Newton steps that took."""
    weighed = problem.times(factor)
    weighed.reference = None
    result = weighed.solve_coefficients(
        point.units, weighed.map_rows(point.units), point.coefficients, _LOOK
    )
    return LearnedPoint.of(point.units, result), result.n_iter


def _rounded(factor: float) -> float:
    """Return a number without its last digits, so that there and back again is the same."""
    return float(f"{factor:.12g}")

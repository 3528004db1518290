"""MCSVM: gradients of all rows are held, and rows are solved exactly one after the other.

Problem      as :mod:`widemargin.solvers.duals.expansion`
State        the machine, which holds all rows, or without those that are well within their margin,
             and the round of sweeps that is under way
Step         (a sweep) rows in random order; where the violation is large, all coefficients of the
             row move to their joint optimum, the rows of all others fixed
Stops        when the duality gap is small; at the end of ``epochs`` sweeps

Source: Crammer and Singer (2001), sections 5 and 6. They look for the worst row before each step;
here a sweep takes all rows that violate at least 0.3 times as much as the worst one of the sweep
before. Rows that are let go on the way (shrinking) are looked at again before the end, so that the
gap is of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin._system.parameters import check_flag
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.state import DualProblem, DualSolver, DualState, count
from widemargin.solvers.duals.sweeps import LEAST_VIOLATION, ROUND_SWEEPS, Sweeps
from widemargin.solvers.progress import Progress

_SETTLED = 0.1  # of the objective: with a gap of so much it shows which rows are easy
_ROUGH = 0.05  # of the dual: gap of support patterns at which the other rows are looked at first
_INNER_SHARE = 0.5  # of the gap that is wanted, for rows that are held
_SLOW = 0.95  # of the gap, that is left after a round of sweeps: time for something else


@dataclass
class Polish:
    """Rounds of sweeps until the gap of all rows is small, as far as they have come.

    Attributes
    ----------
    sweeps : Sweeps
    holds_all : bool
        Whether all rows of the batch are held, and not only those that have coefficients.
    rough : bool
        Whether it is not worth much to be exact, as not all rows were seen.
    gap : float
        Of the rows that are held, after the last round.
    n_sweeps : int
        Of the round that is under way.
    gap_before : float or None
        Of the rows that are held, before the sweep that is under way; None between two.
    outcome : tuple of bool or None
        Whether the sweeps of the round have made the gap of held rows small, and whether nothing
        moves; None before they are over.
    """

    sweeps: Sweeps
    holds_all: bool
    rough: bool
    gap: float = np.inf
    n_sweeps: int = 0
    gap_before: float | None = None
    outcome: tuple[bool, bool] | None = None

    def pack(self) -> dict[str, Any]:
        """Return it as what model files hold."""
        return dict(vars(self)) | {"sweeps": self.sweeps.pack()}

    @classmethod
    def unpack(cls, packed: dict[str, Any], machine: DualExpansion) -> Self:
        """Return what was packed."""
        before, outcome = packed["gap_before"], packed["outcome"]
        return cls(
            Sweeps.unpack(packed["sweeps"], machine),
            bool(packed["holds_all"]),
            bool(packed["rough"]),
            float(packed["gap"]),
            count(packed, "n_sweeps", most=ROUND_SWEEPS),
            None if before is None else float(before),
            None if outcome is None else (bool(outcome[0]), bool(outcome[1])),
        )


def begin_polish(machine: DualExpansion, rng: np.random.RandomState, *, holds_all: bool) -> Polish:
    """Return the rounds before the first; ``holds_all`` says that all rows of it are held."""
    return Polish(Sweeps(machine, rng.randint(1 << 31)), holds_all, rough=not holds_all)


def polish_round(
    problem: DualProblem,
    state: DualState,
    polish: Polish,
    progress: Progress,
    *,
    shrinking: bool = True,
) -> float:
    """Do a round of sweeps, or the rest of one; return the gap, infinite if nobody knows it."""
    machine = state.machine
    if polish.outcome is None:
        polish.outcome = _sweep(problem, state, polish, progress)
    gap = float(machine.set.gap()[0]) if polish.holds_all else np.inf
    if polish.outcome is None:  # time is over
        if problem.is_small(machine, gap):
            state.stopped_because = "tol"
        return gap
    done, stuck = polish.outcome
    if (done or stuck) and not polish.holds_all:
        found = state.inspect(progress, machine.keep_above)
        if found is None:
            return np.inf
        gap, look = found
        polish.holds_all, polish.rough = look.keep_above == -np.inf, False
        stuck = stuck and look.violation <= LEAST_VIOLATION
    elif shrinking and polish.holds_all and gap < _SETTLED * abs(machine.set.dual):
        polish.holds_all = machine.set.release_satisfied(machine.keep_above()) == 0
    polish.outcome, polish.n_sweeps = None, 0
    if problem.is_small(machine, gap):
        state.stopped_because = "tol"
    elif stuck and gap != np.inf:
        state.stopped_because = "stuck"
    elif problem.is_over(state.epoch):
        state.stopped_because = "epochs"
    return gap


def _sweep(
    problem: DualProblem, state: DualState, polish: Polish, progress: Progress
) -> tuple[bool, bool] | None:
    """Sweep a few times; return whether the gap of held rows is small, and if nothing moves.

    None where time was over before.
    """
    machine, sweeps = state.machine, polish.sweeps
    share = 1.0 if polish.holds_all else _INNER_SHARE
    if polish.n_sweeps == 0 and polish.gap_before is None:
        sweeps.begin_round()
    while polish.n_sweeps < ROUND_SWEEPS:
        if polish.gap_before is None:
            gap = float(machine.set.gap()[0])
            rough_enough = polish.rough and gap <= _ROUGH * abs(machine.set.dual)
            if problem.is_small(machine, gap / share) or rough_enough:
                return True, False
            if problem.is_over(state.epoch):
                return False, False
            polish.gap_before = gap
        swept = sweeps.sweep(progress)
        if not swept.is_over:
            return None
        gap, polish.gap_before = polish.gap_before, None
        polish.n_sweeps += 1
        state.epoch += 1
        state.arg_max += swept.looked_at
        if swept.violation <= LEAST_VIOLATION or not np.isfinite(gap):
            return False, True
    gap, before = float(machine.set.gap()[0]), polish.gap
    polish.gap = gap
    return False, not sweeps.end_round(is_slow=gap > _SLOW * before)


@dataclass(kw_only=True)
class FullGradientState(DualState):
    """What moves: the machine, and its rounds of sweeps."""

    polish: Polish

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {"polish": self.polish.pack()}

    @classmethod
    def _unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        parts = cls.common_parts(packed, problem)
        return cls(**parts, polish=Polish.unpack(packed["polish"], parts["machine"]))


@dataclass(frozen=True)
class FullGradient(DualSolver[FullGradientState]):
    """Exact solves of one row at a time (MCSVM).

    Parameters
    ----------
    shrinking : bool, default=True
        Whether rows that are well within their margin are let go for a while, if the cache has not
        room for the kernel values of all.
    """

    shrinking: bool = True
    name: ClassVar[str] = "full_gradient"
    state_type: ClassVar[type[Any]] = FullGradientState

    def __post_init__(self) -> None:
        check_flag("shrinking", self.shrinking)

    def _begin(self, machine: DualExpansion, rng: np.random.RandomState) -> FullGradientState:
        machine.hold_all()
        polish = begin_polish(machine, rng, holds_all=True)
        return FullGradientState(machine=machine, rng=rng, polish=polish)

    def step(
        self, problem: DualProblem, state: FullGradientState, progress: Progress
    ) -> dict[str, float]:
        """Do a round of sweeps."""
        gap = polish_round(problem, state, state.polish, progress, shrinking=self.shrinking)
        return state.entries(gap)

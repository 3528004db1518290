"""SVMstruct: constraints are found one row after the other, and added to a problem that is solved.

Problem      as :mod:`widemargin.solvers.duals.expansion`
State        the machine, which holds rows that have a working set: classes that were once the worst
             of the row by more than epsilon; the pass that is under way, and the solve of the
             working sets
Step         look for new constraints in a block of rows; once there are ``new_constraints``, solve
             the problem of the working sets to within epsilon, by the row solves of MCSVM and
             conjugate gradients between them
Stops        when a pass finds no constraint and the duality gap is small; else epsilon shrinks

Source: Tsochantaridis, Joachims, Hofmann and Altun, "Large Margin Methods for Structured and
Interdependent Output Variables" (2005), algorithm 1, with slack variables for each row and a loss
of 1 for a wrong class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin._system.parameters import check_integer, check_real
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.state import DualProblem, DualSolver, DualState, count
from widemargin.solvers.duals.sweeps import ROUND_SWEEPS, Sweeps
from widemargin.solvers.progress import Progress

_SHRINK = 0.25  # of epsilon, after a pass without new constraints
_LEAST_EPSILON = 1e-7
_ROUNDS = 10  # of a pass


@dataclass
class WorkingSetSolve:
    """A solve of the problem of the working sets, as far as it has come.

    Attributes
    ----------
    epsilon : float
        The violation that it leaves.
    n_sweeps : int
        Of the round that is under way.
    is_slow : bool
        Whether a round has passed.
    """

    epsilon: float
    n_sweeps: int = 0
    is_slow: bool = False


@dataclass(kw_only=True)
class CuttingPlaneState(DualState):
    """What moves: the machine, its sweeps, and the pass that is under way.

    Attributes
    ----------
    sweeps : Sweeps
    epsilon : float
        By how much a constraint must be violated to join.
    joined : int
        Constraints that have joined in this pass.
    waiting : int
        Those of them that are not solved for.
    solving : WorkingSetSolve or None
        What is under way.
    is_certifying : bool
        Whether a pass found nothing, so that the gap is looked at next.
    is_settled : bool
        Whether the working sets are solved as the gap needs it.
    """

    sweeps: Sweeps
    epsilon: float
    joined: int = 0
    waiting: int = 0
    solving: WorkingSetSolve | None = None
    is_certifying: bool = False
    is_settled: bool = False

    def passes_begun(self) -> int:
        """Return how many passes over the rows were begun."""
        is_under_way = not self.is_between_passes() or self.solving is not None
        return super().passes_begun() + (is_under_way and not self.is_certifying)

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "sweeps": self.sweeps.pack(),
            "epsilon": self.epsilon,
            "joined": self.joined,
            "waiting": self.waiting,
            "solving": None if self.solving is None else dict(vars(self.solving)),
            "is_certifying": self.is_certifying,
            "is_settled": self.is_settled,
        }

    @classmethod
    def _unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        parts, solving = cls.common_parts(packed, problem), packed["solving"]
        if solving is not None:
            solving = WorkingSetSolve(
                float(solving["epsilon"]),
                count(solving, "n_sweeps", most=ROUND_SWEEPS),
                bool(solving["is_slow"]),
            )
        return cls(
            **parts,
            sweeps=Sweeps.unpack(packed["sweeps"], parts["machine"], working_sets=True),
            epsilon=float(packed["epsilon"]),
            joined=count(packed, "joined"),
            waiting=count(packed, "waiting"),
            solving=solving,
            is_certifying=bool(packed["is_certifying"]),
            is_settled=bool(packed["is_settled"]),
        )


@dataclass(frozen=True)
class CuttingPlane(DualSolver[CuttingPlaneState]):
    """Working sets of constraints (SVMstruct).

    Parameters
    ----------
    epsilon : float, default=0.1
        By how much a constraint must be violated to join, at first.
    new_constraints : int, default=100
        Constraints that join before the problem is solved again.
    """

    epsilon: float = 0.1
    new_constraints: int = 100
    name: ClassVar[str] = "cutting_plane"
    state_type: ClassVar[type[Any]] = CuttingPlaneState

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, positive=True)
        check_integer("new_constraints", self.new_constraints, least=1)

    def _begin(self, machine: DualExpansion, rng: np.random.RandomState) -> CuttingPlaneState:
        return CuttingPlaneState(
            machine=machine,
            rng=rng,
            sweeps=Sweeps(machine, rng.randint(1 << 31), working_sets=True),
            epsilon=float(self.epsilon),
        )

    def step(
        self, problem: DualProblem, state: CuttingPlaneState, progress: Progress
    ) -> dict[str, float]:
        """Look for constraints in a part of the rows; after a pass without any, find the gap."""
        if state.is_certifying:
            return self._certify(problem, state, progress)
        if state.is_between_parts() and state.solving is None:
            if state.is_between_passes():
                state.begin_pass(state.rng.permutation(problem.n_rows))
                state.joined = 0
            state.begin_part(_ROUNDS)
        is_done = self._search_part(state, progress)
        entries = state.entries()
        if is_done and state.is_between_passes():
            state.epoch += 1
            state.is_certifying = state.joined == 0
            if problem.is_over(state.epoch) and not state.is_certifying:
                state.stopped_because = "epochs"
        return entries

    def _search_part(self, state: CuttingPlaneState, progress: Progress) -> bool:
        """Search a part of the rows, or the rest of one; False where time was over before."""
        machine = state.machine
        if not _solve_working_sets(state, progress):
            return False
        for block in state.blocks(progress):
            found = machine.set.add_constraints(*machine.arguments(block), state.epsilon)
            state.arg_max += len(block)
            state.joined, state.waiting = state.joined + found, state.waiting + found
            if state.waiting >= self.new_constraints:
                state.waiting = 0
                if not _solve_working_sets(state, progress, state.epsilon):
                    return False
        if state.waiting and state.is_between_parts():
            state.waiting = 0
            return _solve_working_sets(state, progress, state.epsilon)
        return state.is_between_parts()

    def _certify(
        self, problem: DualProblem, state: CuttingPlaneState, progress: Progress
    ) -> dict[str, float]:
        if not state.is_settled:
            epsilon = _SHRINK * state.epsilon if state.solving is None else None
            if not _solve_working_sets(state, progress, epsilon):
                return state.entries()
            state.is_settled = True
        found = state.inspect(progress, lambda: np.inf)
        if found is None:
            return state.entries()
        if problem.is_small(state.machine, found[0]):
            state.stopped_because = "tol"
        elif state.epsilon <= _LEAST_EPSILON:
            state.stopped_because = "stuck"
        elif problem.is_over(state.epoch):
            state.stopped_because = "epochs"
        state.epsilon = max(_SHRINK * state.epsilon, _LEAST_EPSILON)
        state.is_certifying = state.is_settled = False
        return state.entries(found[0])


def _solve_working_sets(
    state: CuttingPlaneState, progress: Progress, epsilon: float | None = None
) -> bool:
    """Sweep until no violation is above epsilon, or nothing moves; without one, go on.

    False where time was over before.
    """
    sweeps = state.sweeps
    if epsilon is not None:
        state.solving = WorkingSetSolve(epsilon)
        sweeps.begin_problem()
        sweeps.begin_round()
    solve = state.solving
    while solve is not None:
        swept = sweeps.sweep(progress, solve.epsilon / 2)
        if not swept.is_over:
            return False
        solve.n_sweeps += 1
        if swept.violation <= solve.epsilon:
            break
        if solve.n_sweeps == ROUND_SWEEPS:
            if not sweeps.end_round(is_slow=solve.is_slow):
                break
            solve.n_sweeps, solve.is_slow = 0, True
            sweeps.begin_round()
    state.solving = None
    return True

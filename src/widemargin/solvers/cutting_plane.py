"""SVMstruct: constraints are found one row after the other, and added to a problem that is solved.

Problem      as :mod:`widemargin.solvers.dual`
State        the machine, which holds rows that have a working set: classes that were once the worst
             of the row by more than epsilon
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

import numpy as np

from widemargin._parameters import check_integer, check_real
from widemargin.solvers.dual import DualMachine, DualSolver, Watch
from widemargin.solvers.sweeps import ROUND_SWEEPS, Sweeps

_SHRINK = 0.25  # of epsilon, after a pass without new constraints
_LEAST_EPSILON = 1e-7
_ROUNDS = 10  # of a pass


@dataclass(frozen=True)
class CuttingPlane(DualSolver):
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
    name = "cutting_plane"

    def __post_init__(self) -> None:
        check_real("epsilon", self.epsilon, positive=True)
        check_integer("new_constraints", self.new_constraints, least=1)

    def solve(self, machine: DualMachine, watch: Watch, rng: np.random.RandomState) -> None:
        """Move the machine until the watch says stop."""
        sweeps = Sweeps(machine, watch, rng, working_sets=True)
        epsilon = float(self.epsilon)
        while not watch.reason:
            joined = self._pass(machine, watch, sweeps, rng, epsilon)
            watch.epoch += 1
            gap = np.inf
            if joined == 0 and not watch.reason:
                watch.before_round()
                gap, _ = machine.inspect(np.inf, watch)
                if watch.is_small(gap):
                    watch.reason = "tol"
                elif epsilon <= _LEAST_EPSILON:
                    watch.reason = watch.reason or "stuck"
                epsilon = max(_SHRINK * epsilon, _LEAST_EPSILON)
                watch.end_round(gap)
            if watch.epochs is not None and watch.epoch >= watch.epochs:
                watch.reason = watch.reason or "epochs"

    def _pass(
        self,
        machine: DualMachine,
        watch: Watch,
        sweeps: Sweeps,
        rng: np.random.RandomState,
        epsilon: float,
    ) -> int:
        order = rng.permutation(machine.batch.n_rows).astype(np.int64)
        joined = waiting = 0
        for part in np.array_split(order, min(_ROUNDS, len(order))):
            watch.before_round()
            for block in machine.blocks(part):
                if watch.is_late():
                    break
                found = machine.set.add_constraints(*machine.arguments(block), epsilon)
                watch.arg_max += len(block)
                watch.rows_seen += len(block)
                joined, waiting = joined + found, waiting + found
                if waiting >= self.new_constraints:
                    self._solve_working_sets(sweeps, epsilon)
                    waiting = 0
            if waiting:
                self._solve_working_sets(sweeps, epsilon)
                waiting = 0
            watch.end_round()
            if watch.reason:
                break
        if joined == 0 and not watch.reason:
            self._solve_working_sets(sweeps, _SHRINK * epsilon)
        return joined

    @staticmethod
    def _solve_working_sets(sweeps: Sweeps, epsilon: float) -> None:
        """Sweep until no violation is above epsilon, nothing moves, or it is late."""
        is_slow = False  # in the first round
        moves = True
        sweeps.begin_problem()
        while moves:
            sweeps.begin_round()
            for _ in range(ROUND_SWEEPS):
                swept = sweeps.sweep(epsilon / 2)
                if not swept.is_over or swept.violation <= epsilon:
                    return
            moves = sweeps.end_round(is_slow=is_slow)
            is_slow = True

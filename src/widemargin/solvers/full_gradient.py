"""MCSVM: gradients of all rows are held, and rows are solved exactly one after the other.

Problem      as :mod:`widemargin.solvers.dual`
State        the machine, which holds all rows, or without those that are well within their margin
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

import numpy as np

from widemargin._parameters import check_flag
from widemargin.solvers.dual import DualMachine, DualSolver, Watch
from widemargin.solvers.sweeps import LEAST_VIOLATION, ROUND_SWEEPS, Sweeps

_SETTLED = 0.1  # of the objective: with a gap of so much it shows which rows are easy
_ROUGH = 0.05  # of the dual: gap of support patterns at which the other rows are looked at first
_INNER_SHARE = 0.5  # of the gap that is wanted, for rows that are held
_SLOW = 0.95  # of the gap, that is left after a round of sweeps: time for something else


@dataclass(frozen=True)
class FullGradient(DualSolver):
    """Exact solves of one row at a time (MCSVM).

    Parameters
    ----------
    shrinking : bool, default=True
        Whether rows that are well within their margin are let go for a while, if the cache has not
        room for the kernel values of all.
    """

    shrinking: bool = True
    name = "full_gradient"

    def __post_init__(self) -> None:
        check_flag("shrinking", self.shrinking)

    def solve(self, machine: DualMachine, watch: Watch, rng: np.random.RandomState) -> None:
        """Move the machine until the watch says stop."""
        machine.hold_all()
        polish(machine, watch, rng, shrinking=self.shrinking, holds_all=True)


def polish(
    machine: DualMachine,
    watch: Watch,
    rng: np.random.RandomState,
    *,
    shrinking: bool = True,
    holds_all: bool,
) -> None:
    """Sweep over rows until the gap of all rows is small.

    ``holds_all`` says that all rows of the batch are held, and not only those that have
    coefficients.
    """
    sweeps = _GapSweeps(machine, watch, rng)
    rough = not holds_all  # until all rows were seen it is not worth much to be exact
    while not watch.reason:
        watch.before_round()
        done, stuck = sweeps.round(1.0 if holds_all else _INNER_SHARE, rough)
        gap = machine.set.gap()[0] if holds_all else np.inf
        if (done or stuck) and not holds_all and not watch.reason:
            keep_above = machine.keep_above()
            gap, violation = machine.inspect(keep_above, watch)
            holds_all, rough = keep_above == -np.inf, False
            stuck = stuck and violation <= LEAST_VIOLATION
        elif shrinking and holds_all and gap < _SETTLED * abs(machine.set.dual):
            holds_all = machine.set.release_satisfied(machine.keep_above()) == 0
        if watch.is_small(gap):
            watch.reason = "tol"
        elif stuck and gap != np.inf:
            watch.reason = "stuck"
        elif watch.epochs is not None and watch.epoch >= watch.epochs:
            watch.reason = watch.reason or "epochs"
        watch.end_round(gap)


class _GapSweeps:
    """Rounds of sweeps that end when the gap of the rows that are held is small."""

    def __init__(self, machine: DualMachine, watch: Watch, rng: np.random.RandomState) -> None:
        self._machine, self._watch = machine, watch
        self._sweeps = Sweeps(machine, watch, rng)
        self._gap = np.inf  # after the last round

    def round(self, share: float, rough: bool) -> tuple[bool, bool]:
        """Sweep a few times; return whether the gap of held rows is small, and if nothing moves."""
        state, watch = self._machine.set, self._watch
        self._sweeps.begin_round()
        for _ in range(ROUND_SWEEPS):
            gap = state.gap()[0]
            if watch.is_small(gap / share) or (rough and gap <= _ROUGH * abs(state.dual)):
                return True, False
            if watch.epochs is not None and watch.epoch >= watch.epochs:
                return False, False
            swept = self._sweeps.sweep()
            if not swept.is_over:
                return False, False
            watch.epoch += 1
            watch.arg_max += swept.looked_at
            if swept.violation <= LEAST_VIOLATION or not np.isfinite(gap):
                return False, True
        gap, before = state.gap()[0], self._gap
        self._gap = gap
        return False, not self._sweeps.end_round(is_slow=gap > _SLOW * before)

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
from typing import Any

import numpy as np

from widemargin import _native
from widemargin._parameters import check_flag
from widemargin.solvers.dual import DualMachine, DualSolver, Watch

_SETTLED = 0.1  # of the objective: with a gap of so much it shows which rows are easy
_ROUGH = 0.05  # of the dual: gap of support patterns at which the other rows are looked at first
_INNER_SHARE = 0.5  # of the gap that is wanted, for rows that are held
_LEAST_VIOLATION = 1e-10  # of scores, whose margin is 1
_ROUND_SWEEPS = 10
_LEAST_GAIN = 1e-13  # of the dual, in a round of sweeps


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
        for block in machine.blocks(np.arange(machine.batch.n_rows), 4096):
            machine.set.admit(*machine.arguments(block))
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
    sweeps = _native.RowSweeps(machine.set, False, rng.randint(1 << 31))
    rough = not holds_all  # until all rows were seen it is not worth much to be exact
    while not watch.reason:
        watch.before_round()
        done, stuck = _sweep(machine, watch, sweeps, 1.0 if holds_all else _INNER_SHARE, rough)
        gap = machine.set.gap()[0] if holds_all else np.inf
        if (done or stuck) and not holds_all and not watch.reason:
            keep_above = machine.keep_above()
            gap, violation = machine.inspect(keep_above, watch)
            holds_all, rough = keep_above == -np.inf, False
            stuck = stuck and violation <= _LEAST_VIOLATION
        elif shrinking and holds_all and gap < _SETTLED * abs(machine.set.dual):
            holds_all = machine.set.release_satisfied(machine.keep_above()) == 0
        if watch.is_small(gap):
            watch.reason = "tol"
        elif stuck and gap < np.inf:
            watch.reason = "stuck"
        elif watch.epochs is not None and watch.epoch >= watch.epochs:
            watch.reason = watch.reason or "epochs"
        watch.end_round(gap)


def _sweep(
    machine: DualMachine, watch: Watch, sweeps: Any, share: float, rough: bool
) -> tuple[bool, bool]:
    """Sweep a few times; return whether the gap of held rows is small, and if nothing moves."""
    before = machine.set.dual
    for _ in range(_ROUND_SWEEPS):
        gap = machine.set.gap()[0]
        if watch.is_small(gap / share) or (rough and gap <= _ROUGH * abs(machine.set.dual)):
            return True, False
        if watch.is_late() or (watch.epochs is not None and watch.epoch >= watch.epochs):
            return False, False
        violation, _, _, looked_at = sweeps.sweep(_LEAST_VIOLATION)
        watch.arg_max += looked_at
        watch.epoch += 1
        if violation <= _LEAST_VIOLATION:
            return False, True
    return False, machine.set.dual - before <= _LEAST_GAIN * abs(before)

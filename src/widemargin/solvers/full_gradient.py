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

from widemargin import _native
from widemargin._parameters import check_flag
from widemargin.solvers.dual import DualMachine, DualSolver, Watch

_SETTLED = 0.1  # of the objective: with a gap of so much it shows which rows are easy
_ROUGH = 0.05  # of the dual: gap of support patterns at which the other rows are looked at first
_INNER_SHARE = 0.5  # of the gap that is wanted, for rows that are held
_LEAST_VIOLATION = 1e-10  # of scores, whose margin is 1
_ROUND_SWEEPS = 10
_SHIFTED_ENTRIES = 500_000_000  # gradients that one native call changes: some tenths of a second
_SLOW = 0.95  # of the gap, that is left after a round of sweeps: time for something else
_LEAST_SHARE, _LARGEST_SHARE = 0.5, 64.0
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
    sweeps = _Sweeps(machine, watch, rng)
    rough = not holds_all  # until all rows were seen it is not worth much to be exact
    while not watch.reason:
        watch.before_round()
        done, stuck = sweeps.round(1.0 if holds_all else _INNER_SHARE, rough)
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
        elif stuck and gap != np.inf:
            watch.reason = "stuck"
        elif watch.epochs is not None and watch.epoch >= watch.epochs:
            watch.reason = watch.reason or "epochs"
        watch.end_round(gap)


class _Sweeps:
    """Rounds of sweeps over the rows that are held, with conjugate gradients where they pay."""

    def __init__(self, machine: DualMachine, watch: Watch, rng: np.random.RandomState) -> None:
        self._machine, self._watch = machine, watch
        self._native = _native.RowSweeps(machine.set, False, rng.randint(1 << 31))
        self._share = 0.0  # of the work of a round of sweeps, that conjugate steps may take
        self._gap = np.inf  # after the last round

    def round(self, share: float, rough: bool) -> tuple[bool, bool]:
        """Sweep a few times; return whether the gap of held rows is small, and if nothing moves."""
        state, watch = self._machine.set, self._watch
        dual, shifts = state.dual, state.n_shifts
        for _ in range(_ROUND_SWEEPS):
            gap = state.gap()[0]
            if watch.is_small(gap / share) or (rough and gap <= _ROUGH * abs(state.dual)):
                return True, False
            if watch.epochs is not None and watch.epoch >= watch.epochs:
                return False, False
            violation, is_over = self._sweep()
            if not is_over:
                return False, False
            if violation <= _LEAST_VIOLATION or not np.isfinite(gap):
                return False, True
        self._step_conjugate(state.n_shifts - shifts)
        return False, state.dual - dual <= _LEAST_GAIN * abs(dual)

    def _sweep(self) -> tuple[float, bool]:
        """Sweep once; return the largest violation, and whether there was the time."""
        most = max(100, _SHIFTED_ENTRIES // max(1, self._machine.set.n_slots))
        while not self._watch.is_late():
            violation, _, looked_at, is_over = self._native.sweep(_LEAST_VIOLATION, most)
            if is_over:
                self._watch.arg_max += looked_at
                self._watch.epoch += 1
                return violation, True
        return np.inf, False

    def _step_conjugate(self, shifts: int) -> None:
        """Take conjugate steps, the more the less the last rounds have done for the gap."""
        gap, before = self._machine.set.gap()[0], self._gap
        self._gap = gap
        if gap > _SLOW * before:
            self._share = min(2 * self._share + _LEAST_SHARE, _LARGEST_SHARE)
        else:
            self._share = self._share / 2 if self._share > _LEAST_SHARE else 0.0
        if self._share > 0:
            self._native.conjugate_steps(max(1, int(self._share * shifts)))

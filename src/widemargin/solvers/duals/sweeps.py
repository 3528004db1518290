"""Rounds of sweeps over the rows that a dual expansion holds, with conjugate gradients between.

Step         (a sweep) rows in random order; those that violate at least 0.3 times as much as the
             worst of the sweep before are solved exactly, the others fixed
Between      where sweeps get slow, because rows are nearly dependent (a linear kernel, features of
             unlike scale, a row under two labels), conjugate gradients of the coefficients that are
             strictly between their bounds take over more and more of the work
Stops        it does not: solvers look at violations and gap

The native half is in ``row_sweeps.hpp``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from widemargin import _native
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.progress import Progress

#: Sweeps of a round, after which there is time for something else.
ROUND_SWEEPS = 10
#: Violations of scores, whose margin is 1, that are no longer worth a step.
LEAST_VIOLATION = 1e-10
_SHIFTED_ENTRIES = 500_000_000  # gradients that one native call changes: some tenths of a second
_LEAST_SHARE, _LARGEST_SHARE = 0.5, 64.0
_LEAST_GAIN = 1e-13  # of the dual, in a round
_FALLS = 0.9  # of the least violation so far: the dual can no longer show what this still brings


class Swept(NamedTuple):
    """What a sweep has come to."""

    violation: float  # the largest that it met
    looked_at: int  # rows
    is_over: bool  # False: the time ran out on the way


class Sweeps:
    """Sweeps of one machine, and the conjugate steps that they need.

    Parameters
    ----------
    machine : DualExpansion
    seed : int
    working_sets : bool, default=False
        Whether a step moves the classes of a row's working set alone.
    """

    def __init__(self, machine: DualExpansion, seed: int, *, working_sets: bool = False) -> None:
        self._machine = machine
        self._native = _native.RowSweeps(machine.set, working_sets, seed)
        self._share = 0.0  # of the work of a round of sweeps, that conjugate steps may take
        self._violation = self._least = np.inf  # of the last sweep, and the least after a round
        self.begin_round()

    def pack(self) -> dict[str, Any]:
        """Return all that later sweeps depend on, besides the machine."""
        return {
            "native": self._native.snapshot(),
            "share": self._share,
            "violation": self._violation,
            "least": self._least,
            "shifts": self._shifts,
            "dual": self._dual,
        }

    @classmethod
    def unpack(
        cls, packed: dict[str, Any], machine: DualExpansion, *, working_sets: bool = False
    ) -> Self:
        """Return the sweeps that were packed; ValueError if they cannot have been."""
        sweeps = cls(machine, 0, working_sets=working_sets)
        sweeps._native.take_on(packed["native"])
        sweeps._share = float(packed["share"])
        sweeps._violation, sweeps._least = float(packed["violation"]), float(packed["least"])
        sweeps._shifts, sweeps._dual = int(packed["shifts"]), float(packed["dual"])
        return sweeps

    def begin_problem(self) -> None:
        """Forget what was found of the rows and classes that were swept before."""
        self._share, self._violation, self._least = 0.0, np.inf, np.inf

    def begin_round(self) -> None:
        """Count work and gain from here."""
        self._shifts: int = self._machine.set.n_shifts
        self._dual: float = self._machine.set.dual

    def sweep(self, progress: Progress, tol: float = LEAST_VIOLATION) -> Swept:
        """Sweep once, over violations above ``tol``; go on with a sweep that time has ended."""
        most = max(100, _SHIFTED_ENTRIES // max(1, self._machine.set.n_slots))
        while not progress.is_late():
            violation, _, looked_at, is_over = self._native.sweep(tol, most)
            if is_over:
                self._violation = violation
                return Swept(violation, looked_at, True)
        return Swept(np.inf, 0, False)

    def end_round(self, *, is_slow: bool) -> bool:
        """Take conjugate steps, the more the longer rounds are slow; return if anything moves.

        That is, the dual rises, or violations fall: near the optimum the gap falls as they do, and
        the dual rises by their squares, which are soon below its rounding.
        """
        state = self._machine.set
        if is_slow:
            self._share = min(2 * self._share + _LEAST_SHARE, _LARGEST_SHARE)
        else:
            self._share = self._share / 2 if self._share > _LEAST_SHARE else 0.0
        if self._share > 0:
            shifts = state.n_shifts - self._shifts
            self._native.conjugate_steps(max(1, int(self._share * shifts)))
        falls = self._violation < _FALLS * self._least
        self._least = min(self._least, self._violation)
        return bool(falls or state.dual - self._dual > _LEAST_GAIN * abs(self._dual))

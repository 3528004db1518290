"""Units that stay where they begin: coefficients alone are solved for.

Problem      that of :mod:`widemargin.solvers.units.problem`, centres, widths and metric fixed
State        the machine
Step         solves for the coefficients
Stops        after it

On few noisy rows every move of the units is learned by heart, and a machine that makes none tells
new rows apart better. Rows that are held out say where that is so.

Source: ours. Such a machine is a network of radial basis functions at the centres of k-means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin.solvers.newton import JointNewton
from widemargin.solvers.progress import Progress
from widemargin.solvers.units.problem import LearnedPoint, LearnedProblem, UnitSolver, UnitState
from widemargin.solvers.units.values import Units

_SOLVE = JointNewton(tol=1e-4, max_iter=10, max_products=40)


@dataclass(kw_only=True)
class StayingState(UnitState):
    """The machine, and nothing that moves."""

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        return cls(**cls._unpack_shared(packed, problem))


@dataclass(frozen=True)
class StayingUnits(UnitSolver[StayingState]):
    """Solve for the coefficients of units that stay where they begin."""

    name: ClassVar[str] = "staying"
    requires: ClassVar[tuple[str, ...]] = ("map_rows", "solve_coefficients", "finish")
    state_type: ClassVar[type[UnitState]] = StayingState

    max_iter: int = 1

    def init(self, problem: LearnedProblem, units: Units) -> StayingState:
        """Return the state in which no coefficient is known."""
        nowhere = LearnedPoint(units, problem.objective.zero_coefficients(), np.inf, np.inf)
        return StayingState(point=nowhere)

    def step(
        self, problem: LearnedProblem, state: StayingState, progress: Progress
    ) -> dict[str, float]:
        """Solve for the coefficients, which the last solve then brings to its tolerance."""
        units = state.point.units
        result = problem.solve_coefficients(
            units, problem.map_rows(units), state.point.coefficients, _SOLVE
        )
        state.point = LearnedPoint.of(units, result)
        state.n_newton += result.n_iter
        state.reference = problem.reference
        state.stopped_because = "held_out"
        return self._judge(problem, state)

"""Learned basis by stochastic gradients, for many units and classes.

Problem      that of :mod:`widemargin.solvers.units.problem`
State        units and coefficients together, the running moments of Adam, and how many batches of
             the epoch were seen; the order of the rows follows from the seed and the epoch's number
Step         (an epoch) Adam over batches of rows in a new order, all parameters at once: no inner
             solves, whose cost grows with units times classes squared. The step length falls from
             its start to nothing along half a cosine, once or in cycles, each twice as long
Stops        after max_iter epochs; where a cycle brought too little, or the first one enough; when
             the score on held-out rows has not risen for a while; when a callback says so; when the
             time is over. The coefficients are then solved for once, exactly

Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2015).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.newton import JointNewton
from widemargin.solvers.progress import Progress
from widemargin.solvers.units.moments import Moments
from widemargin.solvers.units.problem import (
    LearnedPoint,
    LearnedProblem,
    UnitSolver,
    UnitState,
)
from widemargin.solvers.units.values import Units, moving_parts

Array: TypeAlias = npt.NDArray[Any]

_BETWEEN = JointNewton(tol=1e-3, max_iter=10, max_products=40)  # of two cycles
_PRODUCTS = 2e9  # multiply-adds of a native call: between two of them Python can serve an interrupt
# Length of the first steps, in the units of each parameter; of centres, in spreads of the rows.
_LENGTHS = {
    "centres": 0.03,
    "log_widths": 0.015,
    "log_weights": 0.006,
    "mapping": 0.0015,
    "coefficients": 0.03,
}


@dataclass(kw_only=True)
class StochasticState(UnitState):
    """Everything that moves in stochastic gradients.

    Attributes
    ----------
    begin : Units
        Those of the first round, for what does not move of them.
    moments : Moments
    values : list of float
        The objective as the batches of the present epoch told it that were seen already.
    """

    begin: Units
    moments: Moments
    values: list[float] = field(default_factory=list)

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "begin": dict(vars(self.begin)),
            "moments": dict(vars(self.moments)),
            "values": list(self.values),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        return cls(
            **cls._unpack_shared(packed, problem),
            begin=Units(**packed["begin"]),
            moments=Moments(**packed["moments"]),
            values=list(packed["values"]),
        )


@dataclass(frozen=True)
class StochasticUnits(UnitSolver[StochasticState]):
    """Learn units and coefficients together from batches of rows.

    Parameters
    ----------
    seed : int
        Of the order of the rows.
    batch_size : int
    epochs_a_round : int
        Of few rows a round sees each several times.
    first_cycle : int or None
        Rounds after which the length of steps has fallen to nothing and begins anew, each time for
        twice as many rounds. None is a single cycle of all rounds.
    tol : float
        Relative decrease of the objective from the end of a cycle to that of the next one below
        which it ends.
    enough : float
        Share of the objective at zero coefficients below which the first cycle has come far enough.

    The others are those of :class:`UnitSolver`; in an epoch all rows are seen.
    """

    name: ClassVar[str] = "adam"
    requires: ClassVar[tuple[str, ...]] = (
        *("descend", "map_rows", "solve_coefficients", "value_at_zero", "finish"),
    )
    state_type: ClassVar[type[UnitState]] = StochasticState

    seed: int = 0
    batch_size: int = 64
    epochs_a_round: int = 1
    first_cycle: int | None = None
    tol: float = 0.0
    enough: float = 0.0

    def init(self, problem: LearnedProblem, units: Units) -> StochasticState:
        """Return the state in which units begin to move."""
        zero = problem.objective.zero_coefficients()
        of_outputs = problem.objective.output_coefficients(zero)
        return StochasticState(
            point=LearnedPoint(units, zero, np.inf, np.nan),
            begin=units,
            moments=Moments.begin(of_outputs, units),
        )

    def step(
        self, problem: LearnedProblem, state: StochasticState, progress: Progress
    ) -> dict[str, float] | None:
        """See all rows; None where the time was over in the midst of them.

        Ends at a gradient that is not finite.
        """
        n_rows = len(problem.working.rows)
        batches = self._batches(n_rows, state.n_rounds)
        n_batches = len(batches)
        lengths = _lengths(problem)
        at_once = max(1, int(_PRODUCTS / (self.batch_size * _products_a_row(problem, state.begin))))
        moments, values = state.moments, list(state.values)
        first = state.n_rounds * n_batches
        begin, end = self._cycle(state.n_rounds)
        while len(values) < n_batches:
            if state.history and len(values) > len(state.values) and progress.is_late():
                state.moments, state.values = moments, values
                state.stopped_because = "max_seconds"
                return None
            some = np.arange(len(values), min(len(values) + at_once, n_batches))
            gone = (first + some - begin * n_batches) / ((end - begin) * n_batches)
            shares = 0.5 * (1.0 + np.cos(np.pi * gone))
            moments, told = problem.descend(
                moments, state.begin, batches[some[0] : some[-1] + 1], shares, lengths
            )
            values += told.tolist()
            if len(told) < len(some):
                state.stopped_because = "not_finite"
                return self._judge(problem, state, failed=True)
        units, of_outputs = moments.machine(state.begin, problem.objective.n_outputs)
        if not np.isfinite(moments.parameters).all():
            state.stopped_because = "not_finite"
            return self._judge(problem, state, failed=True)
        coefficients = problem.objective.latent_coefficients(of_outputs)
        state.point = LearnedPoint(units, coefficients, float(np.mean(values)), np.nan)
        if state.n_rounds + 1 == end and self.first_cycle:
            # The objective of the best coefficients tells what a cycle has brought; batches tell
            # more of how well the coefficients have followed.
            result = problem.solve_coefficients(
                units, problem.map_rows(units), coefficients, _BETWEEN
            )
            state.point = LearnedPoint.of(units, result)
            state.n_newton += result.n_iter
            state.reference = problem.reference
            moments = moments.with_coefficients(
                problem.objective.output_coefficients(result.coefficients)
            )
        state.moments, state.values = moments, []
        entries = self._judge(problem, state)
        if state.n_rounds + 1 == end and self.first_cycle and not state.stopped_because:
            objective = state.point.objective
            if begin == 0:
                is_last = objective < self.enough * problem.value_at_zero()
            else:
                before = state.history["objective"][begin - 1]
                is_last = before - objective < self.tol * abs(before)
            state.stopped_because = "tol" if is_last else ""
        return entries

    def _batches(self, n_rows: int, n_rounds: int) -> list[Array]:
        """Return the batches of rows that the next round sees, one after the other."""
        count = max(1, n_rows // self.batch_size)
        ends = np.linspace(0, n_rows, count + 1).astype(np.intp)[1:-1]
        first = n_rounds * self.epochs_a_round
        epochs = range(first, first + self.epochs_a_round)
        orders = [np.random.default_rng([self.seed, epoch]).permutation(n_rows) for epoch in epochs]
        return [np.sort(batch) for order in orders for batch in np.split(order, ends)]

    def cycles_in(self, n_rounds: int) -> int:
        """Return how many cycles so many rounds have come to the end of."""
        return sum(end <= n_rounds for _, end in self._cycles(n_rounds))

    def _cycle(self, n_rounds: int) -> tuple[int, int]:
        """Return the first round of the cycle that the next round is in, and the one after it."""
        *_, last = self._cycles(n_rounds)
        return last

    def _cycles(self, n_rounds: int) -> Iterator[tuple[int, int]]:
        """Yield the first round of each cycle that has begun, and the one after its last."""
        begin, length = 0, self.first_cycle or self.max_iter
        while begin <= min(n_rounds, self.max_iter - 1):
            yield begin, min(begin + length, self.max_iter)
            begin, length = begin + length, 2 * length


def _products_a_row(problem: LearnedProblem, units: Units) -> int:
    """Return about how many multiply-adds a row takes in a step."""
    n_units, n_dimensions = units.centres.shape
    mapped = 0 if units.mapping is None else 2 * units.mapping.size
    n_outputs, n_linear = problem.objective.n_outputs, problem.columns.linear.shape[1]
    return int(3 * n_units * (n_dimensions + n_outputs) + mapped + 2 * n_linear * n_outputs)


def _lengths(problem: LearnedProblem) -> dict[str, float]:
    """Return how far a step goes at the most, for each part that moves."""
    spread = float(np.sqrt(np.mean(np.square(problem.working.rows), dtype=np.float64)))
    scale = _LENGTHS | {"centres": _LENGTHS["centres"] * (spread or 1.0)}
    return {name: scale[name] for name in ("coefficients", *moving_parts(problem.working.metric))}

"""Learned basis by stochastic gradients, for many units and classes.

Problem      that of :mod:`widemargin.solvers.units.problem`
State        units and coefficients together, the running moments of Adam, the random numbers that
             order the rows, and how many batches of the epoch were seen
Step         (an epoch) Adam over batches of rows in a new order, all parameters at once: no inner
             solves, whose cost grows with units times classes squared. The step length falls from
             its start to nothing along half a cosine
Stops        after max_iter epochs; when the score on held-out rows has not risen for a while; when
             a callback says so; when the time is over. The coefficients are then solved for once,
             exactly

Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.progress import Progress, pack_random, unpack_random
from widemargin.solvers.units.problem import (
    LearnedPoint,
    LearnedProblem,
    UnitSolver,
    UnitState,
    moving_shapes,
)
from widemargin.solvers.units.values import Units

Array: TypeAlias = npt.NDArray[Any]

_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8
# Length of the first steps, in the units of each parameter; of centres, in spreads of the rows.
_LENGTHS = {
    "centres": 0.1,
    "log_widths": 0.05,
    "log_weights": 0.02,
    "mapping": 0.005,
    "coefficients": 0.1,
}


@dataclass(frozen=True)
class Moments:
    """Where Adam is: parameters by name, running means of their gradients and of the squares."""

    parameters: dict[str, Array]
    means: dict[str, Array]
    squares: dict[str, Array]
    n_steps: int = 0

    @classmethod
    def begin(cls, parameters: dict[str, Array]) -> Self:
        """Return moments of nothing yet."""
        still = {name: np.zeros_like(value) for name, value in parameters.items()}
        return cls(parameters, still, still)

    def after(self, gradient: dict[str, Array], lengths: dict[str, float]) -> Self:
        """Return where Adam is after a step of at most these lengths."""
        n_steps = self.n_steps + 1
        parameters, means, squares = {}, {}, {}
        for name, value in self.parameters.items():
            first, second = self.means[name], self.squares[name]
            means[name] = first + (1 - _DECAY) * (gradient[name] - first)
            squares[name] = second + (1 - _SQUARE_DECAY) * (np.square(gradient[name]) - second)
            mean = means[name] / (1 - _DECAY**n_steps)
            spread = np.sqrt(squares[name] / (1 - _SQUARE_DECAY**n_steps))
            parameters[name] = value - lengths[name] * mean / (spread + _TINY)
        return type(self)(parameters, means, squares, n_steps)


@dataclass(kw_only=True)
class StochasticState(UnitState):
    """Everything that moves in stochastic gradients.

    Attributes
    ----------
    begin : Units
        Those of the first round, for what does not move of them.
    moments : Moments
    random : dict
        Packed random numbers, from which the order of the rows in the present epoch is drawn.
    values : list of float
        The objective as the batches of the present epoch told it that were seen already.
    """

    begin: Units
    moments: Moments
    random: dict[str, Any]
    values: list[float] = field(default_factory=list)

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return super().pack() | {
            "begin": dict(vars(self.begin)),
            "moments": {
                name: dict(part) if isinstance(part, dict) else part
                for name, part in vars(self.moments).items()
            },
            "random": dict(self.random),
            "values": list(self.values),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LearnedProblem) -> Self:
        """Return the state that was packed, bound to the same problem."""
        return cls(
            **cls._unpack_shared(packed, problem),
            begin=Units(**packed["begin"]),
            moments=Moments(**packed["moments"]),
            random=packed["random"],
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

    The others are those of :class:`UnitSolver`; a round is an epoch, in which all rows are seen.
    """

    name: ClassVar[str] = "adam"
    requires: ClassVar[tuple[str, ...]] = ("sample", "finish")
    state_type: ClassVar[type[UnitState]] = StochasticState

    seed: int = 0
    batch_size: int = 128

    def init(self, problem: LearnedProblem, units: Units) -> StochasticState:
        """Return the state in which units begin to move."""
        parameters = {
            name: np.array(getattr(units, name)) for name in moving_shapes(problem, units)
        }
        parameters["coefficients"] = problem.objective.zero_coefficients()
        return StochasticState(
            point=LearnedPoint(units, parameters["coefficients"], np.inf, np.nan),
            begin=units,
            moments=Moments.begin(parameters),
            random=pack_random(np.random.RandomState(self.seed)),
        )

    def step(
        self, problem: LearnedProblem, state: StochasticState, progress: Progress
    ) -> dict[str, float] | None:
        """See all rows once; None where the time was over in the midst of them.

        Ends at a gradient that is not finite.
        """
        rng = unpack_random(state.random)
        n_rows = len(problem.working.rows)
        n_batches = max(1, n_rows // self.batch_size)
        batches = np.array_split(rng.permutation(n_rows), n_batches)
        lengths = _lengths(problem)
        moments, values = state.moments, list(state.values)
        first = state.n_rounds * n_batches
        for place in range(len(values), n_batches):
            if state.history and len(values) > len(state.values) and progress.is_late():
                state.moments, state.values = moments, values
                state.stopped_because = "max_seconds"
                return None
            coefficients = moments.parameters["coefficients"]
            units = _units_of(moments, state.begin)
            value, gradient = problem.sample(units, coefficients, np.sort(batches[place]))
            if not all(np.isfinite(part).all() for part in gradient.values() if part is not None):
                state.stopped_because = "not_finite"
                return self._judge(problem, state, failed=True)
            values.append(value)
            share = (first + place) / (self.max_iter * n_batches)
            now = 0.5 * (1.0 + float(np.cos(np.pi * share)))
            moments = moments.after(
                gradient, {name: now * length for name, length in lengths.items()}
            )
        mean = float(np.mean(values))
        point = LearnedPoint(
            _units_of(moments, state.begin), moments.parameters["coefficients"], mean, np.nan
        )
        if not np.isfinite(mean):
            state.stopped_because = "not_finite"
            return self._judge(problem, state, failed=True)
        state.point, state.moments, state.values = point, moments, []
        state.random = pack_random(rng)
        return self._judge(problem, state)


def _lengths(problem: LearnedProblem) -> dict[str, float]:
    spread = float(np.sqrt(np.mean(np.square(problem.working.rows), dtype=np.float64)))
    return _LENGTHS | {"centres": _LENGTHS["centres"] * (spread or 1.0)}


def _units_of(moments: Moments, begin: Units) -> Units:
    moved = {name: part for name, part in moments.parameters.items() if name != "coefficients"}
    return replace(begin, **moved)

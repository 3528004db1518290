"""Learned basis by stochastic gradients, for many units and classes.

Problem      that of :mod:`widemargin.solvers.learned_basis`
State        units and coefficients together, and the running moments of Adam
Step         (an epoch) Adam over batches of rows in a new order, all parameters at once: no inner
             solves, whose cost grows with units times classes squared. The step length falls from
             its start to nothing along half a cosine
Stops        after max_iter epochs; when the score on held-out rows has not risen for a while; or
             when a callback says so. The coefficients are then solved for once, exactly

Source: Kingma and Ba, "Adam: a method for stochastic optimization" (2015).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.learned_basis import (
    NO_HOOKS,
    Hooks,
    LearnedProblem,
    LearnedState,
    Rounds,
    UnitSolver,
)
from widemargin.solvers.units import Units, moving_parts

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
class StochasticUnits(UnitSolver):
    """Learn units and coefficients together from batches of rows.

    Parameters
    ----------
    seed : int
        Of the order of the rows.
    batch_size : int

    The others are those of :class:`UnitSolver`; a round is an epoch, in which all rows are seen.
    """

    seed: int = 0
    batch_size: int = 128

    def solve(self, problem: LearnedProblem, units: Units, hooks: Hooks = NO_HOOKS) -> LearnedState:
        """Move the units from where they are."""
        walk = _Walk(problem, units, self.batch_size, np.random.RandomState(self.seed))
        steps = self.max_iter * walk.n_batches
        rounds = Rounds(hooks, self.patience)
        reason = ""
        for epoch in range(self.max_iter):
            rounds.begin()
            value = walk.epoch(epoch * walk.n_batches, steps)
            if not np.isfinite(value):
                rounds.end(walk.last_good, failed=True)
                reason = "not_finite"
                break
            reason = rounds.end(walk.state(value))
            if reason:
                break
        ended = problem.finish(rounds.best or walk.last_good, self.last_newton())
        return replace(ended, history=rounds.history, stopped_because=reason or "max_iter")


class _Walk:
    """Adam's way through the parameters, by name."""

    def __init__(
        self, problem: LearnedProblem, units: Units, batch_size: int, rng: np.random.RandomState
    ) -> None:
        self._problem = problem
        self._rng = rng
        self._batch_size = batch_size
        self._n_rows = len(problem.working.rows)
        self.n_batches = max(1, self._n_rows // batch_size)
        names = moving_parts(problem.working.metric)
        self._parameters = {name: np.array(getattr(units, name)) for name in names}
        self._units = units
        self._parameters["coefficients"] = problem.objective.zero_coefficients()
        self._moments = {
            name: (np.zeros_like(value), np.zeros_like(value))
            for name, value in self._parameters.items()
        }
        spread = float(np.sqrt(np.mean(np.square(problem.working.rows), dtype=np.float64)))
        self._lengths = _LENGTHS | {"centres": _LENGTHS["centres"] * (spread or 1.0)}
        self._taken = 0
        self.last_good = self.state(np.inf)

    def state(self, value: float) -> LearnedState:
        """Return units and coefficients as they are."""
        coefficients = self._parameters["coefficients"].copy()
        state = LearnedState(self._now(), coefficients, np.empty(0), value, np.nan)
        if np.isfinite(value):
            self.last_good = state
        return state

    def _now(self) -> Units:
        moved = {
            name: value.copy() for name, value in self._parameters.items() if name != "coefficients"
        }
        return replace(self._units, **moved)

    def epoch(self, first: int, steps: int) -> float:
        """See all rows once, from step ``first`` of ``steps``; return the mean objective.

        Ends at a gradient that is not finite, with NaN.
        """
        order = self._rng.permutation(self._n_rows)
        values = []
        for step, rows in enumerate(np.array_split(order, self.n_batches)):
            value, gradient = self._problem.sample(
                self._now(), self._parameters["coefficients"], np.sort(rows)
            )
            if not all(np.isfinite(part).all() for part in gradient.values() if part is not None):
                return float("nan")
            values.append(value)
            self._step(gradient, 0.5 * (1.0 + float(np.cos(np.pi * (first + step) / steps))))
        return float(np.mean(values))

    def _step(self, gradient: dict[str, Array], length: float) -> None:
        self._taken += 1
        for name, value in self._parameters.items():
            first, second = self._moments[name]
            first += (1 - _DECAY) * (gradient[name] - first)
            second += (1 - _SQUARE_DECAY) * (np.square(gradient[name]) - second)
            mean = first / (1 - _DECAY**self._taken)
            spread = np.sqrt(second / (1 - _SQUARE_DECAY**self._taken))
            value -= length * self._lengths[name] * mean / (spread + _TINY)

"""Learned basis: Gaussian units that move, by variable projection.

Problem      minimise  1/2 |A|^2 + 1/2 |b|^2 + sum_i weight_i loss(f_i, y_i),  F = H A + b,
             h_ij = exp(-width_j |(z_i - c_j) * r|^2),  z_i = x_i P,
             over the coefficients A, b and the units: centres c_j, widths, feature weights r, and
             (metric "full") the square map P
State        the units, the coefficients, the scores, and a record of the way
Step         (an outer iteration) L-BFGS on the units alone. At each trial point A and b are solved
             for anew, by the joint Newton method from where they were; then the gradient of the
             optimal value in the units is that at fixed A and b: with G the gradient of the loss in
             the scores and W = (G A') * H, everything follows from W' Z and sums of W
Stops        after max_iter outer iterations; when one lowers the objective by less than tol,
             relative; when the score on held-out rows has not risen for a while; or when a
             callback says so

The rows, the units and the gradient are those of :mod:`widemargin.solvers.units`.

Source: ours. Variable projection is due to Golub and Pereyra, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from widemargin.losses import Loss
from widemargin.objectives import BasisObjective
from widemargin.solvers.newton import JointNewton, NewtonResult
from widemargin.solvers.units import UnitColumns, Units, WorkingRows, moving_parts, unit_gradient

Array: TypeAlias = npt.NDArray[Any]

_STEP = {"centres": 1.0, "log_weights": 0.3, "log_widths": 1.0, "mapping": 0.1}
_MEMORY = 20  # pairs that L-BFGS keeps
_OUT_OF_TRIALS = 1  # status of L-BFGS-B


@dataclass
class LearnedState:
    """Everything that moves while units are learned."""

    units: Units
    coefficients: Array
    scores: Any  # a handle of the objective
    objective: float
    gradient: float  # of the coefficients, relative to the one at zero
    history: dict[str, list[float]] = field(default_factory=dict)
    n_iter: int = 0  # Newton steps
    converged: bool = True
    stopped_because: str = ""


@dataclass(frozen=True)
class Hooks:
    """What a solver calls on its way.

    Attributes
    ----------
    held_out : callable or None
        Gives the score of units and coefficients on rows that are not learned from.
    before_round, after_round : callable
        Called around every round; the second says whether to stop.
    """

    held_out: Callable[[Units, Array], float] | None = None
    before_round: Callable[[], None] = lambda: None
    after_round: Callable[[LearnedState], bool] = lambda state: False


NO_HOOKS = Hooks()


class Rounds:
    """The record of the rounds, and of the best of them on held-out rows.

    Parameters
    ----------
    hooks : Hooks
    patience : int
        Rounds without a better score on held-out rows after which it ends.
    """

    def __init__(self, hooks: Hooks, patience: int) -> None:
        self._hooks, self._patience = hooks, patience
        self._started = time.perf_counter()
        self._best_score, self._last_rise = -np.inf, 0
        self.best: LearnedState | None = None  # only where rows are held out
        self.history: dict[str, list[float]] = {"objective": [], "seconds": [], "gradient": []}

    def __len__(self) -> int:
        return len(self.history["objective"])

    def begin(self) -> None:
        """Begin a round."""
        self._hooks.before_round()

    def end(self, state: LearnedState, *, failed: bool = False) -> str:
        """End a round; return why it was the last, or nothing.

        One that failed has no objective and no score, and ``state`` is the one before.
        """
        held_out = self._hooks.held_out
        record = {
            "objective": np.nan if failed else state.objective,
            "seconds": time.perf_counter() - self._started,
            "gradient": state.gradient,
        }
        if held_out is not None:
            score = np.nan if failed else held_out(state.units, state.coefficients)
            record["validation_score"] = score
            if score > self._best_score:
                self.best, self._best_score, self._last_rise = state, score, len(self) + 1
        for name, value in record.items():
            self.history.setdefault(name, []).append(value)
        if self._hooks.after_round(replace(state, history=self.history)):
            return "callback"
        waited = len(self) - self._last_rise
        return "early_stopping" if held_out is not None and waited >= self._patience else ""


@dataclass(frozen=True)
class UnitSolver(ABC):
    """What solvers that move units have in common.

    Parameters
    ----------
    max_iter : int
        Rounds at the most.
    gradient_tol : float
        Relative gradient in the coefficients that the last solve reaches.
    newton_steps : int
        Steps of the last solve at the most.
    patience : int
        Rounds without a better score on held-out rows after which it ends.
    """

    max_iter: int = 60
    gradient_tol: float = 1e-4
    newton_steps: int = 100
    patience: int = 10

    def last_newton(self) -> JointNewton:
        """Return the solver of coefficients that are to be kept."""
        return JointNewton(self.gradient_tol, max_iter=self.newton_steps)

    @abstractmethod
    def solve(self, problem: LearnedProblem, units: Units, hooks: Hooks = NO_HOOKS) -> LearnedState:
        """Move the units from where they are."""


@dataclass(frozen=True)
class VariableProjection(UnitSolver):
    """Learn centres, widths and metric of Gaussian units by variable projection.

    Parameters
    ----------
    tol : float
        Relative decrease of the objective in an outer iteration below which it ends.

    The others are those of :class:`UnitSolver`; a round is an outer iteration.
    """

    tol: float = 1e-4

    def solve(self, problem: LearnedProblem, units: Units, hooks: Hooks = NO_HOOKS) -> LearnedState:
        """Move the units from where they are."""
        search = _Search(problem, units)
        rounds = Rounds(hooks, self.patience)
        reason = ""

        def after_iteration(intermediate_result: Any) -> None:
            nonlocal reason
            current = search.at(intermediate_result.x)
            before = rounds.history["objective"][-1:]
            reason = rounds.end(current)
            least = self.tol * abs(current.objective)
            if search.ended_at_no_number and reason != "callback":
                reason = "not_finite"  # however short the step
            elif not reason and self.tol > 0 and before and before[0] - current.objective < least:
                reason = "tol"
            elif not reason and len(rounds) >= self.max_iter:
                reason = "max_iter"
            if reason:
                raise StopIteration
            rounds.begin()

        rounds.begin()
        # The stopping rules of L-BFGS-B are for another scale than the objective's.
        options: dict[str, Any] = {"ftol": 0.0, "gtol": 0.0, "maxcor": _MEMORY}
        options |= {"maxiter": self.max_iter, "maxfun": 3 * self.max_iter}
        ended = minimize(
            search.evaluate,
            np.zeros(search.size),
            jac=True,
            method="L-BFGS-B",
            callback=after_iteration,
            options=options,
        )
        if not np.isfinite(search.best.objective):
            raise ValueError(
                "The objective is not finite where the basis begins. Check the scale of X, C and "
                "gamma."
            )
        if not reason:
            # It found nothing lower, or took too long about it, in a round that has begun.
            rounds.end(search.best)
            reason = "max_iter" if ended.status == _OUT_OF_TRIALS else "tol"
            reason = "not_finite" if search.ended_at_no_number else reason
        state = problem.finish(rounds.best or search.best, self.last_newton())
        return replace(
            state,
            history=rounds.history,
            n_iter=search.n_iter + state.n_iter,
            stopped_because=reason,
        )


class LearnedProblem:
    """The objective of units and coefficients, on some rows.

    Parameters
    ----------
    loss : Loss
    targets : ndarray
        As ``loss.encode`` makes them.
    weights : ndarray of shape (n_rows,)
        C times the weight of each row.
    n_outputs : int
    working : WorkingRows
    n_units : int
    fit_intercept : bool
    n_threads : int
    """

    def __init__(
        self,
        loss: Loss,
        targets: Array,
        weights: Array,
        n_outputs: int,
        working: WorkingRows,
        n_units: int,
        *,
        fit_intercept: bool,
        n_threads: int,
    ) -> None:
        self.working = working
        self.columns = UnitColumns(len(working.rows), n_units, fit_intercept, n_threads)
        self.objective = BasisObjective(loss, targets, weights, n_outputs, self.columns)
        self._loss, self._targets, self._weights = loss, targets, weights
        self._reference: float | None = None

    def map_rows(self, units: Units) -> Array:
        """Return the rows as the centres see them."""
        if units.mapping is None:
            return self.working.rows
        return self.working.rows @ units.mapping.astype(np.float32)

    def solve_coefficients(
        self, units: Units, mapped: Array, start: Array | None, newton: JointNewton
    ) -> NewtonResult:
        """Solve for the coefficients at given units."""
        self.columns.update(units, mapped, self.working.rest)
        objective = self.objective
        zero = objective.zero_coefficients()
        if self._reference is None:
            at_zero = objective.derivatives(objective.scores(zero))
            self._reference = float(np.linalg.norm(objective.gradient(zero, at_zero)))
        coefficients = zero if start is None else start
        return newton.solve(
            objective, coefficients, objective.scores(coefficients), self._reference
        )

    def gradient(self, units: Units, mapped: Array, result: NewtonResult) -> Units:
        """Return the gradient of the optimal value in the units, in the shape of units."""
        at = self.objective.derivatives(result.scores)
        return unit_gradient(
            units,
            self.working.rows,
            mapped,
            self.working.rest,
            self.columns.values,
            at.gradient,
            result.coefficients[self.columns.n_constant :],
            at.active,
            self.columns.n_threads,
        )

    def sample(
        self, units: Units, coefficients: Array, chosen: npt.NDArray[np.intp]
    ) -> tuple[float, dict[str, Array]]:
        """Return the objective and its gradient as some rows, which stand for all, tell them.

        The gradient is a dict: "coefficients", and the parameters of the units by name.
        """
        working, constant = self.working, self.columns.n_constant
        rows = working.rows[chosen]
        rest = None if working.rest is None else working.rest[chosen]
        mapped = rows if units.mapping is None else rows @ units.mapping.astype(np.float32)
        columns = UnitColumns(len(rows), len(units.centres), bool(constant), 1)
        columns.update(units, mapped, rest)
        objective = BasisObjective(
            self._loss,
            np.ascontiguousarray(self._targets[chosen]),
            self._weights[chosen] * (len(working.rows) / len(rows)),
            self.objective.n_outputs,
            columns,
        )
        at = objective.derivatives(objective.scores(coefficients))
        in_units = unit_gradient(
            units,
            rows,
            mapped,
            rest,
            columns.values,
            at.gradient,
            coefficients[constant:],
            at.active,
            columns.n_threads,
        )
        value = at.loss + 0.5 * float(np.vdot(coefficients, coefficients))
        return value, vars(in_units) | {"coefficients": objective.gradient(coefficients, at)}

    def finish(self, state: LearnedState, newton: JointNewton) -> LearnedState:
        """Solve for the coefficients of chosen units once more, as exactly as asked for."""
        mapped = self.map_rows(state.units)
        result = self.solve_coefficients(state.units, mapped, state.coefficients, newton)
        if not result.converged and result.n_iter < newton.max_iter:
            # Single precision ends before the gradient is as small as that.
            precise = self.objective.refined()
            begin, n_iter = result.coefficients, result.n_iter
            assert self._reference is not None
            result = newton.solve(precise, begin, precise.scores(begin), self._reference)
            result.n_iter += n_iter
        return _state_of(state.units, result)


def _state_of(units: Units, result: NewtonResult) -> LearnedState:
    return LearnedState(
        units,
        result.coefficients,
        result.scores,
        result.value,
        result.relative_gradient,
        n_iter=result.n_iter,
        converged=result.converged,
    )


class _Search:
    """The optimal value as a function of one vector: the units, scaled and laid end to end."""

    def __init__(self, problem: LearnedProblem, units: Units) -> None:
        self._problem = problem
        self._start = units
        names = moving_parts(problem.working.metric)
        self._shapes = {name: getattr(units, name).shape for name in names}
        self._newton = JointNewton(tol=1e-4, max_iter=10, max_products=40)
        self._seen: list[tuple[Array, LearnedState]] = []
        self.size = sum(int(np.prod(shape)) for shape in self._shapes.values())
        self.n_iter = 0
        self.ended_at_no_number = False  # the last evaluation
        self._coefficients: Array | None = None
        self.best = LearnedState(units, np.empty(0), np.empty(0), np.inf, np.inf)
        self._best_at = np.zeros(self.size)

    def _units(self, variables: Array) -> Units:
        parts, begin = {}, 0
        for name, shape in self._shapes.items():
            end = begin + int(np.prod(shape))
            moved = _STEP[name] * variables[begin:end].reshape(shape)
            parts[name], begin = getattr(self._start, name) + moved, end
        return replace(self._start, **parts)

    def evaluate(self, variables: Array) -> tuple[float, Array]:
        """Return the optimal value and its gradient."""
        units = self._units(variables)
        mapped = self._problem.map_rows(units)
        result = self._problem.solve_coefficients(units, mapped, self._coefficients, self._newton)
        self.n_iter += result.n_iter
        gradient = self._problem.gradient(units, mapped, result)
        flat = np.concatenate(
            [_STEP[name] * getattr(gradient, name).ravel() for name in self._shapes]
        )
        self.ended_at_no_number = not (np.isfinite(result.value) and np.isfinite(flat).all())
        if self.ended_at_no_number:
            return self._wall(variables)
        self._coefficients = result.coefficients
        state = _state_of(units, result)
        self._seen = [*self._seen[-4:], (variables.copy(), state)]
        if state.objective < self.best.objective:
            self.best, self._best_at = state, variables.copy()
        return result.value, flat

    def _wall(self, variables: Array) -> tuple[float, Array]:
        """Return a value and a gradient that send L-BFGS back, by which it shortens its step.

        They are those of a parabola that rises from the best point; infinity would end it.
        """
        if not np.isfinite(self.best.objective):
            return np.inf, np.zeros(self.size)
        away = variables - self._best_at
        height = 10.0 * max(abs(self.best.objective), 1.0)
        return self.best.objective + height, away * (2.0 * height / max(float(away @ away), 1e-300))

    def at(self, variables: Array) -> LearnedState:
        """Return the state at a point that was evaluated a moment ago."""
        for seen, state in reversed(self._seen):
            if np.array_equal(seen, variables):
                return state
        return self.best

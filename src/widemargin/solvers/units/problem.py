"""The problem of units that move, and what all solvers of it share.

Problem      minimise  1/2 |A|^2 + 1/2 |W|^2 + 1/2 |b|^2 + sum_i weight_i loss(f_i, y_i),
             F = H A + U W + b,  h_ij = exp(-width_j |(z_i - c_j) * r|^2),  z_i = x_i P,
             over the coefficients A, W, b and the units: centres c_j, widths, feature weights r,
             and (metric "full") the square map P. U W is the linear part, if there is one: U are
             the rows as :mod:`widemargin.solvers.units.linear_part` sees them
State        the machine after the last round, and the best on rows that are held out
Stops        after max_iter rounds; when the score on held-out rows has not risen for a while; when
             a callback says so, or the clock

The rows, the units and the gradient in them are those of :mod:`widemargin.solvers.units.values`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.losses import Loss
from widemargin.objectives import BasisObjective
from widemargin.priors import LabelPrior
from widemargin.solvers.newton import MOST_EXCESS, JointNewton, NewtonResult
from widemargin.solvers.progress import Solver, SolverState
from widemargin.solvers.units.moments import ADAM_RATES, PARTS, Moments
from widemargin.solvers.units.values import (
    COMMON_WIDTH,
    UnitColumns,
    Units,
    WorkingRows,
    moving_parts,
    unit_gradient,
)

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class LearnedPoint:
    """Units and coefficients: a machine.

    Attributes
    ----------
    units : Units
    coefficients : ndarray of shape (n_columns, n_latent)
        As the objective has them: those of the intercepts, the units and the linear part, one below
        the other, where there are such.
    objective : float
    gradient : float
        In the coefficients, relative to the one at zero.
    n_iter : int
        Newton steps that made it.
    converged : bool
    excess : float
        Share of the objective that could still be gained, where that was asked for.
    """

    units: Units
    coefficients: Array
    objective: float
    gradient: float
    n_iter: int = 0
    converged: bool = True
    excess: float = 0.0

    @classmethod
    def of(cls, units: Units, result: NewtonResult) -> Self:
        """Return the machine that a solve for the coefficients ended at."""
        return cls(
            units,
            result.coefficients,
            result.value,
            result.relative_gradient,
            result.n_iter,
            result.converged,
            result.excess,
        )

    def pack(self) -> dict[str, Any]:
        """Return it as what model files hold."""
        return vars(self) | {"units": dict(vars(self.units))}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Self:
        """Return what was packed."""
        return cls(**packed | {"units": Units(**packed["units"])})


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
    held_out : callable or None
        Gives the score of units and coefficients on rows that are not learned from.
    linear : ndarray of shape (n_rows, n_linear) or None
        The rows as a linear part sees them.
    held_out_loss : callable or None
        Gives their mean loss there, by which :class:`StagedUnits` chooses how far to go, and C.
    whole : LearnedProblem or None
        The same problem with the rows that are held out for that loss.
    prior : LabelPrior or None
        Of the outputs: the regulariser of all coefficients is ``1/2 tr(R^-1 B'B)`` then, and those
        of a :class:`LearnedPoint` are latent, as the objective has them.

    Attributes
    ----------
    reference : float or None
        Norm of the gradient at zero coefficients, of the units that were looked at first.
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
        held_out: Callable[[Units, Array], float] | None = None,
        held_out_loss: Callable[[Units, Array], float] | None = None,
        whole: LearnedProblem | None = None,
        linear: Array | None = None,
        prior: LabelPrior | None = None,
    ) -> None:
        self.working = working
        self.columns = UnitColumns(len(working.rows), n_units, fit_intercept, n_threads, linear)
        self.objective = BasisObjective(loss, targets, weights, n_outputs, self.columns, prior)
        self.held_out, self.held_out_loss, self.whole = held_out, held_out_loss, whole
        self.reference: float | None = None
        self._loss, self._targets, self._weights, self._prior = loss, targets, weights, prior
        self._narrow_weights = np.ascontiguousarray(weights, dtype=np.float32)
        self._weighed = {1.0: self}

    def times(self, factor: float) -> LearnedProblem:
        """Return the problem with so many times the C; rows and columns are the same ones."""
        if factor not in self._weighed:
            other = copy(self)
            other._weights = factor * self._weights
            other._narrow_weights = np.ascontiguousarray(other._weights, dtype=np.float32)
            other.objective = BasisObjective(
                self._loss,
                self._targets,
                other._weights,
                self.objective.n_outputs,
                self.columns,
                self._prior,
            )
            other.reference = None
            self._weighed[factor] = other
        return self._weighed[factor]

    def check_point(self, point: LearnedPoint) -> None:
        """Require a machine of the shapes that this problem has."""
        columns, n_dimensions = self.columns, self.working.rows.shape[1]
        n_units = columns.n_units
        has_common_width = self.working.metric in COMMON_WIDTH
        expected = {
            "centres": (n_units, n_dimensions),
            "log_widths": (n_units,),
            "log_weights": (1 if has_common_width else n_dimensions,),
            "mapping": (n_dimensions, n_dimensions) if self.working.metric == "full" else (),
            "coefficients": (columns.n_columns, self.objective.n_latent),
        }
        parts = vars(point.units) | {"coefficients": point.coefficients}
        for name, shape in expected.items():
            found = () if parts[name] is None else np.shape(parts[name])
            if found != shape:
                raise ValueError(
                    f"The state is one of another problem: it has {name} of shape {found}, and "
                    f"this problem has {shape}."
                )

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
        if self.reference is None:
            at_zero = objective.derivatives(objective.scores(zero))
            # Where classes have equal rows all of the gradient may be rounding error.
            least = 16 * float(np.finfo(np.float32).eps) * float(np.sum(self._weights))
            self.reference = max(least, float(np.linalg.norm(objective.gradient(zero, at_zero))))
        coefficients = zero if start is None else start
        return newton.solve(objective, coefficients, objective.scores(coefficients), self.reference)

    def value_at_zero(self) -> float:
        """Return the objective of zero coefficients, whatever the units are."""
        zero = self.objective.zero_coefficients()
        return self.objective.value(zero, self.objective.scores(zero))

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
            self.objective.output_coefficients(result.coefficients)[self.columns.of_units],
            at.active,
            self.columns.n_threads,
        )

    def descend(
        self,
        moments: Moments,
        begin: Units,
        batches: list[npt.NDArray[np.intp]],
        shares: Array,
        lengths: dict[str, float],
    ) -> tuple[Moments, Array]:
        """Make a step of Adam for each batch of rows, which stands for all.

        The coefficients of moments are those of the outputs, and the regulariser is the plain one:
        a prior counts where coefficients are solved for.

        Returns
        -------
        moments : Moments
            After the last step.
        values : ndarray
            The objective as each batch told it; fewer than batches where one was not finite.
        """
        working, objective = self.working, self.objective
        after = moments.copy()
        values = np.empty(len(batches))
        count = _native.adam_steps(
            self._loss.native(),
            self._targets,
            working.rows,
            self.columns.linear,
            working.rest,
            self._narrow_weights,
            (len(begin.centres), begin.centres.shape[1], objective.n_outputs),
            (
                bool(self.columns.n_constant),
                len(begin.log_weights) > 1,
                begin.mapping is not None,
            ),
            np.concatenate(batches).astype(np.int32),
            np.cumsum([0, *map(len, batches)], dtype=np.int64),
            np.ascontiguousarray(shares, dtype=np.float64),
            [lengths.get(name, 0.0) for name in PARTS],
            ADAM_RATES,
            moments.n_steps,
            after.parameters,
            after.means,
            after.squares,
            values,
        )
        return replace(after, n_steps=moments.n_steps + count), values[:count]

    def finish(self, point: LearnedPoint, newton: JointNewton) -> LearnedPoint:
        """Solve for the coefficients of chosen units once more, as exactly as asked for."""
        mapped = self.map_rows(point.units)
        result = self.solve_coefficients(point.units, mapped, point.coefficients, newton)
        if not result.converged and result.n_iter < newton.max_iter:
            # Single precision ends before the gradient is as small as that.
            precise = self.objective.refined()
            begin, n_iter = result.coefficients, result.n_iter
            assert self.reference is not None
            result = newton.solve(precise, begin, precise.scores(begin), self.reference)
            result.n_iter += n_iter
        return LearnedPoint.of(point.units, result)


@dataclass(kw_only=True)
class UnitState(SolverState):
    """What moves in every solver of units. Its arrays are replaced, never written to.

    Attributes
    ----------
    point : LearnedPoint
        The machine after the last round that was finished.
    best : LearnedPoint or None
        The best on rows that are held out.
    best_score : float
    last_rise : int
        The round that found it.
    n_newton : int
        Newton steps so far.
    reference : float or None
        That of the problem, once a solve has set it.
    """

    point: LearnedPoint
    best: LearnedPoint | None = None
    best_score: float = -np.inf
    last_rise: int = 0
    n_newton: int = 0
    reference: float | None = None

    @property
    def n_rounds(self) -> int:
        """Rounds that were finished."""
        return len(self.history.get("objective", ()))

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "history": {name: list(values) for name, values in self.history.items()},
            "stopped_because": self.stopped_because,
            "point": self.point.pack(),
            "best": None if self.best is None else self.best.pack(),
            "best_score": self.best_score,
            "last_rise": self.last_rise,
            "n_newton": self.n_newton,
            "reference": self.reference,
        }

    @staticmethod
    def _unpack_shared(packed: dict[str, Any], problem: LearnedProblem) -> dict[str, Any]:
        """Return the fields of :meth:`pack`, of machines for this problem."""
        best = None if packed["best"] is None else LearnedPoint.unpack(packed["best"])
        point = LearnedPoint.unpack(packed["point"])
        for each in (point, best):
            if each is not None:
                problem.check_point(each)
        problem.reference = packed["reference"]
        return {
            "history": {name: list(values) for name, values in packed["history"].items()},
            "stopped_because": packed["stopped_because"],
            "point": point,
            "best": best,
            "best_score": packed["best_score"],
            "last_rise": packed["last_rise"],
            "n_newton": packed["n_newton"],
            "reference": packed["reference"],
        }


State = TypeVar("State", bound=UnitState)


@dataclass(frozen=True)
class UnitSolver(Solver[State]):
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

    state_type: ClassVar[type[UnitState]]

    max_iter: int = 60
    gradient_tol: float = 1e-4
    newton_steps: int = 100
    patience: int = 10

    def last_newton(self) -> JointNewton:
        """Return the solver of coefficients that are to be kept."""
        return JointNewton(self.gradient_tol, max_iter=self.newton_steps, excess=MOST_EXCESS)

    def finish(self, problem: LearnedProblem, state: State) -> LearnedPoint:
        """Return the machine that is kept: the best on held-out rows, or else the last."""
        before = problem.reference
        try:
            return problem.finish(state.best or state.point, self.last_newton())
        finally:
            problem.reference = before  # what was looked at first in the rounds

    def _judge(
        self, problem: LearnedProblem, state: State, *, failed: bool = False
    ) -> dict[str, float]:
        """Return what is to be written down of a round, and stop where it was the last.

        One that failed has no objective and no score, and the state is that of the round before.
        """
        point, number = state.point, state.n_rounds + 1
        entries = {
            "objective": np.nan if failed else point.objective,
            "gradient": point.gradient,
        }
        if problem.held_out is not None:
            score = np.nan if failed else problem.held_out(point.units, point.coefficients)
            entries["validation_score"] = score
            if score > state.best_score:
                state.best, state.best_score, state.last_rise = point, score, number
            if not state.stopped_because and number - state.last_rise >= self.patience:
                state.stopped_because = "early_stopping"
        if not state.stopped_because and number >= self.max_iter:
            state.stopped_because = "max_iter"
        return entries


def moving_shapes(problem: LearnedProblem, units: Units) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters that move, by name."""
    return {name: getattr(units, name).shape for name in moving_parts(problem.working.metric)}

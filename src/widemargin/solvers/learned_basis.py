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

Rows are standardised first, and few of them in many dimensions are seen in their leading principal
directions only: centres stay in the span of these. All of it is folded into the vectors, widths and
metric of the model.

Source: ours. Variable projection is due to Golub and Pereyra, "The differentiation of
pseudo-inverses and nonlinear least squares problems whose variables separate" (1973).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from widemargin.kernels import RBF, AdaptiveRBF, Kernel
from widemargin.losses import Loss
from widemargin.objectives import BasisObjective
from widemargin.solvers.newton import JointNewton, NewtonResult

Array: TypeAlias = npt.NDArray[Any]

FEW_FEATURES = 20  # for which a map of all of them is learned
MANY_FEATURES = 100  # beyond which neither weights nor widths are, only centres
_DIRECTIONS = 40  # that centres may move in where there are many features
_START_EXPONENT = 8.0  # mean of |(z - c) r|^2 over rows and centres
_STEP = {"centres": 1.0, "log_weights": 0.3, "log_widths": 1.0, "mapping": 0.1}
_LARGEST_LOG = 25.0  # of a width or a weight, either way: no exponent over- or underflows
_CLUSTERED_ROWS = 4000  # of a class, that k-means looks at
_MEMORY = 20  # pairs that L-BFGS keeps
_OUT_OF_TRIALS = 1  # status of L-BFGS-B


@dataclass(frozen=True)
class Units:
    """Parameters of the units, in the coordinates of :class:`WorkingRows`.

    Attributes
    ----------
    centres : ndarray of shape (n_units, n_dimensions)
    log_widths : ndarray of shape (n_units,)
    log_weights : ndarray of shape (n_dimensions,), or (1,) for a common one
    mapping : ndarray of shape (n_features, n_dimensions) or None
    """

    centres: Array
    log_widths: Array
    log_weights: Array
    mapping: Array | None = None

    @property
    def widths(self) -> Array:
        """Widths, positive."""
        return np.asarray(np.exp(np.clip(self.log_widths, -_LARGEST_LOG, _LARGEST_LOG)))

    @property
    def weights(self) -> Array:
        """Weights of the dimensions, positive."""
        each = np.exp(np.clip(self.log_weights, -_LARGEST_LOG, _LARGEST_LOG))
        return np.broadcast_to(each, self.centres.shape[1])


class WorkingRows:
    """Rows as the units see them: standardised, and seen in few directions if they have many.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,)
        How much each row counts.
    metric : {"none", "diagonal", "full"}
    """

    def __init__(self, rows: Array, weights: Array, metric: str) -> None:
        self.share = weights / weights.sum()
        self.metric = metric
        self.mean = self.share @ rows.astype(np.float64)
        spread = _spread(rows, self.mean, self.share)
        if metric == "none":
            # Where a common width serves all features, what sets them apart is part of the data.
            spread = np.full_like(spread, np.hypot.reduce(spread))
        self.scale = np.where(spread > 0, spread, 1.0)
        self.directions: Array | None = None
        if metric == "none" and rows.shape[1] > MANY_FEATURES:
            placed = (rows - self.mean) / self.scale
            self.directions = _leading_directions(placed, self.share)
        self.rows, self.rest = self.see(rows)

    def see(self, rows: Array) -> tuple[Array, Array | None]:
        """Return rows in the working coordinates, and their squared distance from these if any."""
        placed = ((rows - self.mean) / self.scale).astype(np.float32)
        if self.directions is None:
            return np.ascontiguousarray(placed), None
        inside = placed @ self.directions.astype(np.float32)
        rest = np.einsum("ij,ij->i", placed, placed) - np.einsum("ij,ij->i", inside, inside)
        return np.ascontiguousarray(inside), np.maximum(rest, 0.0)

    def as_kernel(self, units: Units) -> tuple[Kernel, Array]:
        """Return the kernel and the basis vectors, in the units of the features."""
        if self.metric == "none":
            centres = units.centres
            if self.directions is not None:
                centres = centres @ self.directions.T
            gamma = float((units.weights[0] / self.scale[0]) ** 2)
            if not 0.0 < gamma < np.inf:
                raise ValueError(
                    f"Features of a spread of {self.scale[0]:.1e} have squared distances that "
                    "double precision cannot hold. Rescale X, or set metric='diagonal'."
                )
            kernel: Kernel = RBF(gamma)
            return kernel, self.mean + self.scale * centres
        if units.mapping is None:
            kernel = AdaptiveRBF(units.widths, units.weights / self.scale)
            return kernel, self.mean + self.scale * units.centres
        kernel = AdaptiveRBF(units.widths, (units.mapping / self.scale[:, None]) * units.weights)
        placed = np.linalg.lstsq(units.mapping.T, units.centres.T, rcond=None)[0].T
        return kernel, self.mean + self.scale * placed

    def from_kernel(self, kernel: Any, vectors: Array) -> Units:
        """Return the units that a kernel and its vectors are: the inverse of ``as_kernel``."""
        placed = (vectors - self.mean) / self.scale
        if self.metric == "none":
            centres = placed if self.directions is None else placed @ self.directions
            half = 0.5 * np.log(kernel.gamma) + np.log(self.scale[0])
            return Units(centres, np.zeros(len(vectors)), np.array([half]))
        if self.metric == "diagonal":
            weights = np.log(np.maximum(np.abs(kernel.metric) * self.scale, np.exp(-_LARGEST_LOG)))
            return Units(placed, np.log(kernel.widths), weights)
        mapping = kernel.metric * self.scale[:, None]
        return Units(placed @ mapping, np.log(kernel.widths), np.zeros(mapping.shape[1]), mapping)


def _spread(rows: Array, mean: Array, share: Array) -> Array:
    """Return the standard deviation of each feature, of whatever size they are."""
    largest = np.maximum(rows.max(axis=0) - mean, mean - rows.min(axis=0))
    largest = np.where(largest > 16 * np.finfo(np.float64).eps * np.abs(mean), largest, 0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(
        np.where(largest > 0, unit, 0.0) * np.sqrt(share @ np.square((rows - mean) / unit))
    )


def _leading_directions(placed: Array, share: Array) -> Array:
    """Return the leading principal directions of centred rows, one a column."""
    centred = (placed * np.sqrt(share)[:, None]).astype(np.float32)
    if placed.shape[0] < placed.shape[1]:
        values, left = np.linalg.eigh((centred @ centred.T).astype(np.float64))
        keep = np.flatnonzero(values > 1e-9 * values[-1])[-_DIRECTIONS:]
        vectors = centred.T.astype(np.float64) @ left[:, keep]
        return np.asarray(np.linalg.qr(vectors)[0])  # to the last digit, which rounding took
    values, vectors = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    return np.ascontiguousarray(vectors[:, -_DIRECTIONS:])


class UnitColumns:
    """The values of the units at the rows: the columns of a :class:`BasisObjective`.

    They are in single precision, which is enough to move by; ``refined`` gives them in double.
    """

    def __init__(
        self,
        n_rows: int,
        n_units: int,
        fit_intercept: bool,
        n_threads: int,
        dtype: Any = np.float32,
    ) -> None:
        self.n_threads = n_threads
        self.n_constant = int(fit_intercept)
        self.n_columns = self.n_constant + n_units
        self.features = np.ones((n_rows, self.n_columns), dtype=dtype)
        self._made_of: tuple[Units, Array, Array | None] | None = None

    @property
    def values(self) -> Array:
        """The values without the constant column."""
        return self.features[:, self.n_constant :]

    def update(self, units: Units, mapped: Array, rest: Array | None) -> None:
        """Compute the values anew; ``mapped`` are rows that have gone through the map."""
        self._made_of = units, mapped, rest
        rows = mapped.astype(self.features.dtype, copy=False)
        self.values[:] = unit_values(units, rows, rest, self.n_threads)

    def refined(self) -> UnitColumns:
        """Return the columns in double precision."""
        if self.features.dtype == np.float64 or self._made_of is None:
            return self
        units = self.n_columns - self.n_constant
        precise = UnitColumns(
            len(self.features), units, bool(self.n_constant), self.n_threads, np.float64
        )
        precise.update(*self._made_of)
        return precise


def unit_values(units: Units, mapped: Array, rest: Array | None, n_threads: int) -> Array:
    """Return ``exp(-width_j |(z_i - c_j) * r|^2)``, in the precision of the rows."""
    kernel = AdaptiveRBF(units.widths, np.array(units.weights))
    values = kernel.block(mapped, units.centres.astype(mapped.dtype), n_threads)
    if rest is not None:
        values *= np.exp(-(units.weights[0] ** 2) * rest)[:, None].astype(mapped.dtype)
    return values


@dataclass
class LearnedState:
    """Everything that moves while units are learned."""

    units: Units
    coefficients: Array
    scores: Array
    objective: float
    gradient: float  # of the coefficients, relative to the one at zero
    history: dict[str, list[float]] = field(default_factory=dict)
    n_iter: int = 0  # Newton steps
    converged: bool = True
    stopped_because: str = ""


@dataclass(frozen=True)
class LearnedBasis:
    """Learn centres, widths and metric of Gaussian units.

    Parameters
    ----------
    max_iter : int
        Outer iterations at the most.
    tol : float
        Relative decrease of the objective in an outer iteration below which it ends.
    gradient_tol : float
        Relative gradient in the coefficients that the last solve reaches.
    newton_steps : int
        Steps of the last solve at the most.
    patience : int
        Outer iterations without a better score on held-out rows after which it ends.
    """

    max_iter: int = 40
    tol: float = 1e-4
    gradient_tol: float = 1e-4
    newton_steps: int = 100
    patience: int = 10

    def last_newton(self) -> JointNewton:
        """Return the solver of coefficients that are to be kept."""
        return JointNewton(self.gradient_tol, max_iter=self.newton_steps)

    def solve(
        self,
        problem: LearnedProblem,
        units: Units,
        *,
        held_out: Callable[[Units, Array], float] | None = None,
        before_round: Callable[[], None] = lambda: None,
        after_round: Callable[[LearnedState], bool] = lambda state: False,
    ) -> LearnedState:
        """Move the units from where they are.

        Parameters
        ----------
        problem : LearnedProblem
        units : Units
        held_out : callable, default=None
            Gives the score of units and coefficients on rows that are not learned from.
        before_round, after_round : callable
            Called around every outer iteration; the second says whether to stop.
        """
        started = time.perf_counter()
        search = _Search(problem, units)
        best, best_score, last_rise = search.best, -np.inf, 0
        history: dict[str, list[float]] = {"objective": [], "seconds": [], "gradient": []}
        reason = ""

        def end_round(current: LearnedState) -> bool:
            nonlocal best, best_score, last_rise
            record = {
                "objective": current.objective,
                "seconds": time.perf_counter() - started,
                "gradient": current.gradient,
            }
            if held_out is not None:
                score = record["validation_score"] = held_out(current.units, current.coefficients)
                if score > best_score:
                    best, best_score, last_rise = current, score, len(history["objective"]) + 1
            for name, value in record.items():
                history.setdefault(name, []).append(value)
            return after_round(replace(current, history=history))

        def after_iteration(intermediate_result: Any) -> None:
            nonlocal reason
            current = search.at(intermediate_result.x)
            before = history["objective"][-1:]
            asked = end_round(current)
            number = len(history["objective"])
            least = self.tol * abs(current.objective)
            if asked:
                reason = "callback"
            elif held_out is not None and number - last_rise >= self.patience:
                reason = "early_stopping"
            elif self.tol > 0 and before and before[0] - current.objective < least:
                reason = "tol"
            elif number >= self.max_iter:
                reason = "learn_iter"
            if reason:
                raise StopIteration
            before_round()

        before_round()
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
            end_round(search.best)
            reason = "learn_iter" if ended.status == _OUT_OF_TRIALS else "tol"
        chosen = best if held_out is not None else search.best
        state = problem.finish(chosen, self.last_newton())
        return replace(
            state, history=history, n_iter=search.n_iter + state.n_iter, stopped_because=reason
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
        active, rest = at.active, self.working.rest
        return unit_gradient(
            units,
            self.working.rows[active],
            mapped[active],
            None if rest is None else rest[active],
            self.columns.values[active],
            at.gradient[active],
            result.coefficients[self.columns.n_constant :],
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
            units, rows, mapped, rest, columns.values, at.gradient, coefficients[constant:]
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


def unit_gradient(
    units: Units,
    rows: Array,
    mapped: Array,
    rest: Array | None,
    values: Array,
    score_gradient: Array,
    coef: Array,
) -> Units:
    """Return the gradient in the units at fixed coefficients, in the shape of units.

    Parameters
    ----------
    units : Units
    rows, mapped : ndarray of shape (n_rows, n_features), (n_rows, n_dimensions)
        Rows before and after the map.
    rest : ndarray of shape (n_rows,) or None
    values : ndarray of shape (n_rows, n_units)
    score_gradient : ndarray of shape (n_rows, n_outputs)
        Of the weighted loss.
    coef : ndarray of shape (n_units, n_outputs)
    """
    pull = (score_gradient @ coef.T.astype(np.float32)) * values  # W
    widths, weights, centres = units.widths, np.array(units.weights), units.centres
    squares = weights**2
    sums = pull.sum(axis=0, dtype=np.float64)
    moments = (pull.T @ mapped).astype(np.float64)
    # sum_i W_ij |(z_i - c_j) r|^2, multiplied out: no pass over rows and units more.
    lengths = np.square(mapped) @ squares.astype(np.float32)
    if rest is not None:
        lengths += np.float32(squares[0]) * rest
    apart = (pull.T @ lengths).astype(np.float64) + sums * (centres**2 @ squares)
    apart -= 2.0 * np.einsum("jd,jd->j", moments, centres * squares)
    in_centres = 2.0 * widths[:, None] * squares * (moments - centres * sums[:, None])
    by_row = pull @ widths.astype(np.float32)
    if len(units.log_weights) == 1:
        in_weights = np.array([-2.0 * np.sum(widths * apart)])
    else:
        in_weights = (-2.0 * squares) * (
            np.square(mapped).T @ by_row
            - 2.0 * np.einsum("jd,jd,j->d", centres, moments, widths)
            + np.einsum("jd,j->d", centres**2, widths * sums)
        )
    in_mapping = None
    if units.mapping is not None:
        back = (pull * widths.astype(np.float32)) @ centres.astype(np.float32)
        in_rows = (-2.0 * squares).astype(np.float32) * (mapped * by_row[:, None] - back)
        in_mapping = (rows.T @ in_rows).astype(np.float64)
    return Units(in_centres, -widths * apart, in_weights, in_mapping)


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
        metric = problem.working.metric
        names = ["centres", "log_weights"]
        names += [] if metric == "none" else ["log_widths"]
        names += ["mapping"] if metric == "full" else []
        self._shapes = {name: getattr(units, name).shape for name in names}
        self._newton = JointNewton(tol=1e-4, max_iter=10, max_products=40)
        self._seen: list[tuple[Array, LearnedState]] = []
        self.size = sum(int(np.prod(shape)) for shape in self._shapes.values())
        self.n_iter = 0
        self._coefficients: Array | None = None
        self.best = LearnedState(units, np.empty(0), np.empty(0), np.inf, np.inf)

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
        if not (np.isfinite(result.value) and np.isfinite(flat).all()):
            # A step too far: L-BFGS shortens it.
            return np.inf, np.zeros_like(flat)
        self._coefficients = result.coefficients
        state = _state_of(units, result)
        self._seen = [*self._seen[-4:], (variables.copy(), state)]
        if state.objective < self.best.objective:
            self.best = state
        return result.value, flat

    def at(self, variables: Array) -> LearnedState:
        """Return the state at a point that was evaluated a moment ago."""
        for seen, state in reversed(self._seen):
            if np.array_equal(seen, variables):
                return state
        return self.best


def start_units(
    working: WorkingRows,
    labels: npt.NDArray[np.intp],
    n_units: int,
    rng: np.random.RandomState,
    exponent: float | None = None,
) -> Units:
    """Place units by k-means within each class, all as wide as the data suggests.

    ``exponent`` is the weight of squared distances in the units of the features, where it is
    given; for a metric that scales the features, in those of the standardised ones.
    """
    rows = working.rows
    mapping = None
    if working.metric == "full":
        mapping = np.linalg.eigh((rows.T * working.share) @ rows)[1]
    centres = cluster_by_class(rows, labels, working.share, n_units, rng)
    apart = _mean_squared_distance(working, centres)
    squared = _START_EXPONENT / apart if apart > 0 else 1.0
    if exponent is not None:
        squared = exponent * (working.scale[0] ** 2 if working.metric == "none" else 1.0)
    count = 1 if working.metric == "none" else rows.shape[1]
    return Units(
        centres if mapping is None else centres @ mapping,
        np.zeros(len(centres)),
        np.full(count, 0.5 * np.log(squared)),
        mapping,
    )


def cluster_by_class(
    rows: Array,
    labels: npt.NDArray[np.intp],
    weights: Array,
    n_units: int,
    rng: np.random.RandomState,
) -> Array:
    """Return centres of k-means, as equal a number for each class as its rows allow.

    With fewer units than classes, they are clusters of all rows. A row of weight 2 is as two rows,
    and the order of the rows changes nothing, unless there are so many that some are drawn.
    """
    groups = [labels == number for number in np.unique(labels)]
    if n_units < len(groups):
        groups = [np.ones(len(rows), dtype=bool)]
    parts = [_distinct(rows[group], weights[group], rng) for group in groups]
    shares = _shares([len(distinct) for distinct, _ in parts], n_units, rng)
    # The sums of several threads are added in any order.
    with threadpool_limits(1, user_api="openmp"):
        centres = np.vstack(
            [_clusters(*part, share, rng) for part, share in zip(parts, shares, strict=True)]
        )
    # Two units in one place would never part.
    return centres[np.sort(np.unique(centres, axis=0, return_index=True)[1])]


def _shares(counts: list[int], n_units: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
    """Deal units out to classes, one at a time to those that have fewest of them, and rows left."""
    shares = np.zeros(len(counts), dtype=np.intp)
    tie = rng.permutation(len(counts))
    for _ in range(min(n_units, sum(counts))):
        open_classes = np.flatnonzero(shares < counts)
        shares[min(open_classes, key=lambda number: (shares[number], tie[number]))] += 1
    return shares


def _distinct(rows: Array, weights: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return the different ones among rows, some drawn from many, and their weights."""
    if len(rows) > _CLUSTERED_ROWS:
        some = rng.permutation(len(rows))[:_CLUSTERED_ROWS]
        rows, weights = rows[some], weights[some]
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights)


def _clusters(rows: Array, weights: Array, count: int, rng: np.random.RandomState) -> Array:
    if len(rows) <= count:
        return rows.astype(np.float64)
    seed = int(rng.randint(np.iinfo(np.int32).max))
    found = KMeans(count, n_init=1, random_state=seed).fit(rows, sample_weight=weights)
    return np.asarray(found.cluster_centers_, dtype=np.float64)


def _mean_squared_distance(working: WorkingRows, centres: Array) -> float:
    """Return it for rows and centres; rows count by their weights."""
    lengths = np.einsum("ij,ij->i", working.rows, working.rows, dtype=np.float64)
    if working.rest is not None:
        lengths += working.rest
    cross = (working.share @ working.rows) @ centres.mean(axis=0)
    spread = float(working.share @ lengths)
    return spread + float(np.mean(np.sum(centres**2, axis=1))) - 2.0 * float(cross)

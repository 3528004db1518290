"""A fit with a learned basis: from rows and labels to what the estimator keeps."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from widemargin._system.warnings import warn_user
from widemargin.kernels import AdaptiveRBF, Kernel, Rows
from widemargin.readouts import two_as_one
from widemargin.solvers.progress import Progress, pack_random, unpack_random
from widemargin.solvers.units.linear_part import LinearPart
from widemargin.solvers.units.problem import LearnedPoint, LearnedProblem
from widemargin.solvers.units.projection import VariableProjection
from widemargin.solvers.units.staged import StagedUnits
from widemargin.solvers.units.start import cluster_by_class, start_units
from widemargin.solvers.units.stochastic import StochasticUnits
from widemargin.solvers.units.values import UnitColumns, Units, WorkingRows
from widemargin.sparse_kernel.grown import Problem
from widemargin.sparse_kernel.settings import LearnedBasis

Array: TypeAlias = npt.NDArray[Any]

_FEW_FEATURES, _MANY_FEATURES = 20, 200  # up to which a map is learned, and weights are
_ROWS_A_PARAMETER = {"full": 2, "diagonal": 20}  # of a metric, below which a simpler one is taken
_MOST_BYTES = 2 << 30  # of sparse rows that are made dense
_SORTED_ENTRIES = 1 << 22  # of rows among which equal ones are looked for
_MEETING = 1e-6  # exponent between two units below which they are one
_MOVES = 1000  # by projection, at the most: it ends where ten of them bring too little
_WINDOW_TOL = 10.0  # times tol, relative: what ten moves must bring
_EPOCHS = 1000  # at the most
# The first cycle of stochastic steps: about so many, in so many epochs.
_FIRST_STEPS, _FIRST_EPOCHS = 7000, (3, 30)
_CYCLES = 5  # at the most, each twice as long as the one before
_ENOUGH = 0.03  # of the objective at zero coefficients: below it one cycle is enough
_CYCLE_TOL = 0.22  # relative decrease that another cycle must have brought to be followed by one


def metric_for(basis: LearnedBasis, n_rows: int, n_features: int) -> str:
    """Return the metric that is learned from so many rows of so many features."""
    if basis.metric != "auto":
        return basis.metric
    if n_features <= _FEW_FEATURES and n_rows >= _ROWS_A_PARAMETER["full"] * n_features**2:
        return "full"
    enough = n_rows >= _ROWS_A_PARAMETER["diagonal"] * n_features
    return "diagonal" if n_features <= _MANY_FEATURES and enough else "none"


def metric_of(kernel: Kernel) -> str:
    """Return the metric that a learned kernel has."""
    if not isinstance(kernel, AdaptiveRBF) or kernel.metric is None:
        return "none"
    return "diagonal" if kernel.metric.ndim == 1 else "full"


@dataclass(frozen=True)
class LearnSettings:
    """What the estimator asks for."""

    max_basis: int
    basis: LearnedBasis
    gamma: float | str
    tol: float
    max_iter: int
    fit_intercept: bool
    n_threads: int

    @property
    def has_linear_part(self) -> bool:
        """Whether features count by themselves, too; a search is who chooses, for "auto"."""
        asked = self.basis.linear_part
        return not isinstance(asked, str) and bool(asked)

    def n_rounds(self, solver: Any) -> int:
        """Return how many rounds a solver makes at the most."""
        if isinstance(solver, StagedUnits):
            return solver.stochastic.max_iter + solver.projection.max_iter
        return int(solver.max_iter)

    def make_solver(self, n_rows: int, rng: np.random.RandomState, *, is_warm: bool) -> Any:
        """Return the solver; units of an earlier fit are not to be scattered by large steps."""
        asked = self.basis.max_iter
        shared: dict[str, Any] = {
            "gradient_tol": self.basis.gradient_tol,
            "newton_steps": self.max_iter,
            "patience": self.basis.n_iter_no_change,
        }
        seed = int(rng.randint(np.iinfo(np.int32).max))
        epochs = _EPOCHS if isinstance(asked, str) else asked
        if self.basis.solver == "adam":
            return StochasticUnits(seed=seed, max_iter=epochs, **shared)
        alone = VariableProjection(
            tol=_WINDOW_TOL * self.tol,
            max_iter=_MOVES if isinstance(asked, str) else asked,
            **shared,
        )
        n_batches = max(1, n_rows // StochasticUnits.batch_size)
        cycle = int(np.clip(_FIRST_STEPS // n_batches, *_FIRST_EPOCHS))
        most = sum(cycle * 2**number for number in range(_CYCLES))
        most = most if isinstance(asked, str) else min(most, asked // 2)
        if self.basis.solver == "projection" or is_warm or most == 0:
            return alone
        stochastic = StochasticUnits(
            seed=seed, max_iter=most, first_cycle=cycle, tol=_CYCLE_TOL, enough=_ENOUGH, **shared
        )
        moves = alone.max_iter if isinstance(asked, str) else asked - most
        return StagedUnits(
            stochastic=stochastic, projection=replace(alone, max_iter=moves), **shared
        )


@dataclass(frozen=True)
class Learned:
    """A machine whose units were learned."""

    kernel: Kernel
    vectors: Array
    coef: Array
    intercept: Array
    linear: Array | None
    point: LearnedPoint
    history: dict[str, Array]
    n_iter: int
    stop_reason: str


def dense_rows(rows: Rows) -> Array:
    """Return rows as an array; centres are dense, so sparse rows gain little by staying so."""
    if not sp.issparse(rows):
        return np.asarray(rows)
    needed = rows.dtype.itemsize * rows.shape[0] * rows.shape[1]
    if needed > _MOST_BYTES:
        raise ValueError(
            f"A learned basis works on dense rows, which here take {needed / 1e9:.1f} GB, more "
            f"than the {_MOST_BYTES / 1e9:.1f} GB that it allows itself. Use basis='shared', fewer "
            "rows, or fewer features (TruncatedSVD)."
        )
    return np.asarray(rows.toarray())


class Learning:
    """A fit with a learned basis on its way.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    labels : ndarray of shape (n_rows,)
        Class numbers.
    problem : Problem
    weights : ndarray of shape (n_rows,)
        C times the weight of each row.
    settings : LearnSettings
    rng : RandomState
    previous : tuple of kernel and vectors, default=None
        Units to begin with; more are added up to ``max_basis``.
    packed : dict, default=None
        What :meth:`pack` gave of a fit of the same rows with the same settings, to be gone on with.
    """

    def __init__(
        self,
        rows: Array,
        labels: npt.NDArray[np.intp],
        problem: Problem,
        weights: Array,
        settings: LearnSettings,
        rng: np.random.RandomState,
        *,
        previous: tuple[Kernel, Array] | None = None,
        packed: dict[str, Any] | None = None,
    ) -> None:
        rng = rng if packed is None else unpack_random(packed["random"])
        self._begun_with = deepcopy(rng)
        self._task, self._settings = problem, settings
        used, kept_out = _split(labels, weights, settings, rng)
        self._used, self._counts = _each_once(rows, labels, weights, used)
        if packed is not None:
            self._metric = packed["metric"]
        elif previous is not None:
            self._metric = metric_of(previous[0])
        else:
            self._metric = metric_for(settings.basis, len(self._used), rows.shape[1])
        self._working = WorkingRows(rows[self._used], self._counts, self._metric)
        self._linear, linear = None, None
        if settings.has_linear_part:
            self._linear = LinearPart(rows[self._used], self._working.share)
            linear = self._linear.see(rows[self._used])
        self._held_out = None
        if settings.basis.early_stopping:
            self._held_out = self._accuracy_on(rows[kept_out], labels[kept_out], weights[kept_out])
        is_warm = previous is not None or bool(packed and packed["is_warm"])
        self._is_warm = is_warm
        self.solver = settings.make_solver(len(self._used), rng, is_warm=is_warm)
        if packed is None:
            units = _begin(self._working, labels[self._used], settings, previous, rng)
            self._problem = self._problem_of(len(units.centres), linear)
            self.state = self.solver.init(self._problem, units)
        else:
            n_units = len(packed["state"]["point"]["units"]["centres"])
            self._problem = self._problem_of(n_units, linear)
            self.state = self.solver.state_type.unpack(packed["state"], self._problem)
        _warn_if_all_equal(self._working)

    def _problem_of(self, n_units: int, linear: Array | None) -> LearnedProblem:
        return LearnedProblem(
            self._task.loss,
            np.ascontiguousarray(self._task.targets[self._used]),
            self._counts,
            self._task.n_outputs,
            self._working,
            n_units,
            fit_intercept=self._settings.fit_intercept,
            n_threads=self._settings.n_threads,
            held_out=self._held_out,
            linear=linear,
        )

    def _accuracy_on(
        self, rows: Array, labels: npt.NDArray[np.intp], weights: Array
    ) -> Callable[[Units, Array], float]:
        """Return what judges units and coefficients by rows."""
        seen, rest = self._working.see(rows)
        settings = self._settings
        linear = None if self._linear is None else self._linear.see(rows)

        def accuracy(units: Units, coefficients: Array) -> float:
            mapped = seen if units.mapping is None else seen @ units.mapping.astype(np.float32)
            columns = UnitColumns(
                len(rows), len(units.centres), settings.fit_intercept, settings.n_threads, linear
            )
            columns.update(units, mapped, rest)
            best = (columns.columns[0] @ coefficients).argmax(axis=1)
            return float(np.average(best == labels, weights=weights))

        return accuracy

    def solve(self, progress: Progress) -> None:
        """Move the units until there is a reason to stop."""
        self.solver.solve(self._problem, self.state, progress)

    def so_far(self) -> Learned:
        """Return the machine after the last round."""
        return self._learned(self.state.point, self.state.n_newton)

    def finished(self) -> Learned:
        """Return the machine that is kept; the state stays as it is."""
        point = self.solver.finish(self._problem, self.state)
        n_iter = self.state.n_newton + point.n_iter
        merged = _without_twins(point, self._problem.columns.of_units)
        if merged is not point:
            # One unit of twice the coefficient is dearer than two.
            alone = self._problem_of(len(merged.units.centres), self._problem.columns.linear)
            point = alone.finish(merged, self.solver.last_newton())
            n_iter += point.n_iter
        return self._learned(point, n_iter)

    def pack(self) -> dict[str, Any] | None:
        """Return what the fit can be gone on from; None if no file can hold its random numbers."""
        if self._begun_with.get_state(legacy=False)["bit_generator"] != "MT19937":
            return None
        return {
            "random": pack_random(self._begun_with),
            "metric": self._metric,
            "is_warm": self._is_warm,
            "state": self.state.pack(),
        }

    def _learned(self, point: LearnedPoint, n_iter: int) -> Learned:
        kernel, vectors = self._working.as_kernel(point.units)
        n_constant = int(self._settings.fit_intercept)
        constant, coef, linear = np.split(
            point.coefficients, [n_constant, n_constant + len(vectors)]
        )
        intercept = constant.sum(axis=0)  # zeros, where there is none
        in_features = None
        if self._linear is not None:
            linear, intercept = self._linear.in_features(linear, intercept)
            in_features = two_as_one(linear, intercept)[0]
        return Learned(
            kernel,
            np.ascontiguousarray(vectors),
            *two_as_one(coef, intercept),
            in_features,
            point,
            {name: np.array(values) for name, values in self.state.history.items()},
            n_iter,
            self.state.stopped_because,
        )


def _each_once(
    rows: Array, labels: npt.NDArray[np.intp], weights: Array, used: Array
) -> tuple[Array, Array]:
    """Return the different ones of the used rows, in an order of their own, and their weights.

    So neither the order of the rows nor their number tells a row of weight 2 from two rows: what
    rounding makes of such a difference, moving units magnify. Many rows are left as they are.
    """
    if len(used) * rows.shape[1] > _SORTED_ENTRIES:
        return used, weights[used]
    table = np.column_stack([rows[used], labels[used].astype(rows.dtype)])
    table += 0.0  # no negative zeros, whose bytes differ
    keys = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return used[first], np.bincount(place.ravel(), weights[used])


def _warn_if_all_equal(working: WorkingRows) -> None:
    if working.all_equal:
        warn_user(
            "All rows of X are equal, so that only the frequencies of the classes could be "
            "learned. Check X, and its scale.",
            UserWarning,
        )


def _begin(
    working: WorkingRows,
    labels: npt.NDArray[np.intp],
    settings: LearnSettings,
    previous: tuple[Kernel, Array] | None,
    rng: np.random.RandomState,
) -> Units:
    exponent = None if isinstance(settings.gamma, str) else settings.gamma
    if previous is None:
        return start_units(working, labels, settings.max_basis, rng, exponent)
    units = working.from_kernel(*previous)
    missing = settings.max_basis - len(units.centres)
    if missing == 0:
        return units
    mapped = working.rows if units.mapping is None else working.rows @ units.mapping
    fresh = cluster_by_class(
        np.asarray(mapped, dtype=np.float32), labels, working.share, missing, rng
    )
    return Units(
        np.vstack([units.centres, fresh]),
        np.concatenate([units.log_widths, np.full(len(fresh), np.median(units.log_widths))]),
        units.log_weights,
        units.mapping,
    )


def _split(
    labels: npt.NDArray[np.intp],
    weights: Array,
    settings: LearnSettings,
    rng: np.random.RandomState,
) -> tuple[Array, Array]:
    """Return the rows to learn from, and those to judge by; rows without weight are neither."""
    used = np.flatnonzero(weights > 0)
    if not settings.basis.early_stopping:
        return used, used[:0]
    single = np.bincount(labels[used]).min(initial=2, where=np.bincount(labels[used]) > 0) < 2
    try:
        parts = train_test_split(
            used,
            test_size=settings.basis.validation_fraction,
            stratify=None if single else labels[used],
            random_state=rng,
        )
    except ValueError as error:
        raise ValueError(
            f"early_stopping=True holds out a share of {settings.basis.validation_fraction} of "
            f"{len(used)} rows, which leaves too few: {error}"
        ) from error
    if len(np.unique(labels[parts[0]])) < len(np.unique(labels[used])):
        raise ValueError(
            "early_stopping=True holds out rows, and a class has too few to learn from the rest. "
            "Set early_stopping=False."
        )
    return np.sort(parts[0]), np.sort(parts[1])


def _without_twins(point: LearnedPoint, of_units: slice) -> LearnedPoint:
    """Merge units that have become one; ``of_units`` are the rows of their coefficients."""
    units = point.units
    centres = units.centres * units.weights
    norms = np.einsum("ij,ij->i", centres, centres)
    apart = np.maximum(norms[:, None] + norms - 2.0 * centres @ centres.T, 0.0)
    widths = np.log(units.widths)
    exponent = apart * np.sqrt(units.widths[:, None] * units.widths) + np.abs(
        widths[:, None] - widths
    )
    np.fill_diagonal(exponent, 0.0)
    first = np.argmax(exponent < _MEETING, axis=1)  # of all that a unit has become one with
    while (first[first] != first).any():
        first = first[first]  # which may have become one with another before
    keep = np.flatnonzero(first == np.arange(len(first)))
    if len(keep) == len(first):
        return point
    constant, each, linear = np.split(point.coefficients, [of_units.start, of_units.stop])
    coef = np.zeros_like(each)
    np.add.at(coef, first, each)
    warn_user(
        f"{len(first) - len(keep)} of {len(first)} units met others while they moved, and were "
        "merged with them. A smaller max_basis may do as well.",
        UserWarning,
    )
    kept = replace(units, centres=units.centres[keep], log_widths=units.log_widths[keep])
    return replace(point, units=kept, coefficients=np.vstack([constant, coef[keep], linear]))

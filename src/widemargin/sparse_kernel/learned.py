"""A fit with a learned basis: from rows and labels to what the estimator keeps."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from widemargin import _native
from widemargin._system.warnings import warn_user
from widemargin.kernels import Kernel
from widemargin.solvers.progress import Progress, pack_random, unpack_random
from widemargin.solvers.units.linear_part import LinearPart
from widemargin.solvers.units.problem import LearnedPoint, LearnedProblem
from widemargin.solvers.units.staged import StagedState
from widemargin.solvers.units.start import cluster_by_class, start_units
from widemargin.solvers.units.values import UnitColumns, Units, WorkingRows
from widemargin.sparse_kernel.effort import LearnSettings, Plan, metric_for, metric_of
from widemargin.sparse_kernel.grown import Problem
from widemargin.sparse_kernel.learning_rows import (
    each_once,
    split,
    warn_if_all_equal,
    which_row,
)

Array: TypeAlias = npt.NDArray[Any]

_MEETING = 1e-6  # exponent between two units below which they are one
#: Up to so many rows a fit is rehearsed, and then done with all of them. Of more rows a share is
#: held out while units move, and they count when coefficients are solved for at the end.
REHEARSED_ROWS = 3000
_HELD_OUT = (0.1, 0.2)  # shares that are held out, between which so many rows are:
_JUDGES = 1000
_LEAST_ROWS = 40  # of which some can be held out
_REHEARSALS, _REHEARSED_SHARE = 5, 0.8  # at the most, and of the rows that it learns from


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
    factor: float  # of C


@dataclass(frozen=True)
class Judges:
    """Rows that are not learned from, by which a machine is judged."""

    rows: Array
    labels: npt.NDArray[np.intp]
    targets: Array
    weights: Array


class Learning:
    """A fit with a learned basis on its way.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    labels : ndarray of shape (n_rows,)
        Class numbers; of rows with several labels, numbers of their sets of labels.
    problem : Problem
    weights : ndarray of shape (n_rows,)
        C times the weight of each row.
    settings : LearnSettings
    rng : RandomState
    previous : tuple of kernel and vectors, default=None
        Units to begin with; more are added up to ``max_basis``.
    factor : float, default=1.0
        Of C, where C is not chosen.
    packed : dict, default=None
        What :meth:`pack` gave of a fit of the same rows with the same settings, to be gone on with.
    judges : Judges, default=None
        Rows that say how far to go, and choose C. Without them these are some of the rows.
    most : Plan, default=None
        Cycles and moves at the most, where there are judges.
    may_stay : bool, default=False
        Whether judges also look at units that stay where they begin.
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
        factor: float = 1.0,
        packed: dict[str, Any] | None = None,
        judges: Judges | None = None,
        most: Plan | None = None,
        may_stay: bool = False,
    ) -> None:
        rng = rng if packed is None else unpack_random(packed["random"])
        self._begun_with = deepcopy(rng)
        self._rows, self._labels, self._task, self._settings = rows, labels, problem, settings
        used, kept_out = split(
            labels, weights, settings, rng, are_classes=problem.loss.compares_outputs
        )
        self._used, self._counts = each_once(rows, labels, weights, used)
        self._which_row = which_row(rows[self._used])
        if packed is not None:
            self._metric = packed["metric"]
        elif previous is not None:
            asked = settings.basis.metric
            self._metric = metric_of(previous[0]) if asked == "auto" else asked
        else:
            self._metric = metric_for(settings.basis, rows[self._used])
        self._is_warm = previous is not None or bool(packed and packed["is_warm"])
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self._plan: Plan | None = None
        self._judges = judges
        if packed is not None:
            self._plan = None if packed["plan"] is None else Plan(**packed["plan"])
            factor = packed["begin_factor"]
        elif judges is None and self._is_to_be_rehearsed():
            self._plan = self._rehearse(seed)
        self._begin_factor = factor if self._plan is None else self._plan.factor
        self._counts = self._begin_factor * self._counts
        self._learned_from = np.arange(len(self._used))
        if judges is None and self._plan is None and self._chooses():
            share = float(np.clip(_JUDGES / len(self._used), *_HELD_OUT))
            self._learned_from, others = self._held_out(seed, 1.0 - share)
            self._judges = self._as_judges(others)
        places = self._used[self._learned_from]
        counts = self._counts[self._learned_from]
        self._working = WorkingRows(rows[places], counts, self._metric)
        self._linear = None
        if settings.has_linear_part:
            self._linear = LinearPart(rows[places], self._working.share)
        self._kept_out = None
        if settings.basis.early_stopping:
            self._kept_out = self._accuracy_on(
                rows[kept_out], labels[kept_out], problem.targets[kept_out], weights[kept_out]
            )
        self.solver = settings.make_solver(
            len(places),
            rng,
            is_warm=self._is_warm,
            plan=most if settings.basis.early_stopping else self._plan or most,
            is_watched=self._judges is not None,
            may_stay=may_stay,
        )
        if packed is None:
            units = _begin(self._working, labels[places], settings, previous, rng)
            if self._plan is not None:
                units = units.narrowed(self._plan.narrower)
            self._problem = self._problem_of(len(units.centres))
            self.state = self.solver.init(self._problem, units)
        else:
            self._problem = self._problem_of(len(packed["state"]["point"]["units"]["centres"]))
            self.state = self.solver.state_type.unpack(packed["state"], self._problem)
        if judges is None:  # rather than in each rehearsal
            warn_if_all_equal(self._working)

    def _chooses(self) -> bool:
        """Whether rows that are held out have something to say."""
        basis = self._settings.basis
        is_open = basis.solver == "auto" and not basis.early_stopping
        # A single round has no cycle that could be judged.
        most = basis.max_iter
        enough = self._which_row[-1] + 1 >= _LEAST_ROWS and (isinstance(most, str) or most > 1)
        return enough and not self._is_warm and (is_open or self._settings.chooses_weight)

    def _is_to_be_rehearsed(self) -> bool:
        """Whether the fit is done twice, for rows are few or the solver does not watch others."""
        basis = self._settings.basis
        is_watching = basis.solver == "auto" and not basis.early_stopping
        return self._chooses() and (len(self._used) <= REHEARSED_ROWS or not is_watching)

    def _rehearse(self, seed: int) -> Plan:
        """Return how far to go, and with which C, by fits to a share of the rows."""
        asked = self._settings.basis
        basis = replace(asked, metric=self._metric, solver="auto", early_stopping=False)
        settings = replace(self._settings, basis=basis)
        count = int(np.clip(REHEARSED_ROWS // len(self._used), 1, _REHEARSALS))
        states: list[StagedState] = []
        for number in range(count):
            some, others = self._held_out(seed + number, _REHEARSED_SHARE)
            learning = Learning(
                self._rows[self._used[some]],
                self._labels[self._used[some]],
                replace(self._task, targets=self._task.targets[self._used[some]]),
                self._counts[some],
                settings,
                np.random.RandomState(seed),
                judges=self._as_judges(others),
                may_stay=asked.solver == "auto" and not asked.early_stopping,
            )
            learning.solve(Progress())
            states.append(learning.state)
        return _plan_of(states)

    def _held_out(self, seed: int, share: float) -> tuple[Array, Array]:
        """Return places among the used rows to learn from, and to judge by.

        A row of several classes, as a teacher makes them, is on one side with all of them.
        """
        heaviest = np.lexsort([-self._counts, self._which_row])
        first = np.searchsorted(self._which_row, np.arange(self._which_row[-1] + 1))
        class_of_row = self._labels[self._used[heaviest[first]]]
        n_rows = min(len(first), int(REHEARSED_ROWS / _REHEARSED_SHARE))
        n_rows = n_rows if self._is_to_be_rehearsed() else len(first)
        chosen = np.random.RandomState(seed).permutation(len(first))[:n_rows]
        labels = class_of_row[chosen]
        is_single = np.bincount(labels)[labels].min() < 2
        sides = train_test_split(
            chosen,
            train_size=share,
            stratify=None if is_single or len(chosen) * (1 - share) < labels.max() + 1 else labels,
            random_state=seed,
        )
        some, others = (np.flatnonzero(np.isin(self._which_row, side)) for side in sides)
        return some, others

    def _as_judges(self, places: Array) -> Judges:
        which = self._used[places]
        return Judges(
            self._rows[which],
            self._labels[which],
            self._task.targets[which],
            self._counts[places],
        )

    def _problem_of(self, n_units: int, *, whole: bool = False) -> LearnedProblem:
        """Return the problem of the rows that are learned from, or of all rows."""
        some = np.arange(len(self._used)) if whole else self._learned_from
        working, counts = self._working, self._counts[some]
        if len(some) > len(self._learned_from):
            working = working.with_rows(self._rows[self._used[some]], counts)
        loss, beside = None, None
        if self._judges is not None and not whole:
            loss = self._loss_on(self._judges)
        if len(some) < len(self._used):
            beside = self._problem_of(n_units, whole=True)
        return LearnedProblem(
            self._task.loss,
            np.ascontiguousarray(self._task.targets[self._used[some]]),
            counts,
            self._task.n_outputs,
            working,
            n_units,
            fit_intercept=self._settings.fit_intercept,
            n_threads=self._settings.n_threads,
            linear=None if self._linear is None else self._linear.see(self._rows[self._used[some]]),
            held_out=self._kept_out,
            held_out_loss=loss,
            whole=beside,
            prior=self._task.prior,
        )

    def _scores_of(self, rows: Array) -> Callable[[Units, Array], Array]:
        """Return what gives the scores of rows that are not learned from."""
        seen, rest = self._working.see(rows)
        settings = self._settings
        linear = None if self._linear is None else self._linear.see(rows)

        def scores(units: Units, coefficients: Array) -> Array:
            mapped = seen if units.mapping is None else seen @ units.mapping.astype(np.float32)
            columns = UnitColumns(
                len(rows), len(units.centres), settings.fit_intercept, settings.n_threads, linear
            )
            columns.update(units, mapped, rest)
            if self._task.prior is not None:
                coefficients = self._task.prior.to_outputs(coefficients)
            return np.asarray(columns.columns[0] @ coefficients)

        return scores

    def _accuracy_on(
        self, rows: Array, labels: npt.NDArray[np.intp], targets: Array, weights: Array
    ) -> Callable[[Units, Array], float]:
        """Return what judges units and coefficients by the share of rows, or labels, told right."""
        scores = self._scores_of(rows)
        if not self._task.loss.compares_outputs:
            signs = np.sign(targets)

            def share_of_labels(units: Units, coefficients: Array) -> float:
                told = np.where(scores(units, coefficients) > 0, 1, -1)
                return float(np.average((told == signs).mean(axis=1), weights=weights))

            return share_of_labels

        def accuracy(units: Units, coefficients: Array) -> float:
            best = scores(units, coefficients).argmax(axis=1)
            return float(np.average(best == labels, weights=weights))

        return accuracy

    def _loss_on(self, judges: Judges) -> Callable[[Units, Array], float]:
        """Return what judges units and coefficients by their mean loss."""
        scores, loss = self._scores_of(judges.rows), self._task.loss.native()
        weights = judges.weights / judges.weights.sum()
        targets = np.ascontiguousarray(judges.targets)

        def mean_loss(units: Units, coefficients: Array) -> float:
            given = np.ascontiguousarray(scores(units, coefficients), dtype=np.float64)
            return float(
                _native.loss_value(loss, targets, given, weights, self._settings.n_threads)
            )

        return mean_loss

    @property
    def factor(self) -> float:
        """Of the C that was given: what the machine has been learned with."""
        state = self.state
        best = getattr(state, "best_factor", 1.0) if state.best is not None else None
        return self._begin_factor * (getattr(state, "factor", 1.0) if best is None else best)

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
            alone = self._problem_of(len(merged.units.centres), whole=True)
            factor = self.factor / self._begin_factor
            point = alone.times(factor).finish(merged, self.solver.last_newton())
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
            "begin_factor": self._begin_factor,
            "plan": None if self._plan is None else dict(vars(self._plan)),
            "state": self.state.pack(),
        }

    def _learned(self, point: LearnedPoint, n_iter: int) -> Learned:
        kernel, vectors = self._working.as_kernel(point.units)
        n_constant = int(self._settings.fit_intercept)
        coefficients = self._problem.objective.output_coefficients(point.coefficients)
        constant, coef, linear = np.split(coefficients, [n_constant, n_constant + len(vectors)])
        intercept = constant.sum(axis=0)  # zeros, where there is none
        in_features = None
        if self._linear is not None:
            linear, intercept = self._linear.in_features(linear, intercept)
            in_features = linear
        return Learned(
            kernel,
            np.ascontiguousarray(vectors),
            coef,
            intercept,
            in_features,
            point,
            {name: np.array(values) for name, values in self.state.history.items()},
            n_iter,
            self.state.stopped_because,
            self.factor,
        )


def _plan_of(states: list[StagedState]) -> Plan:
    """Return how far to go by what rehearsals have found, on the average."""
    n_cycles, n_moves = sorted(each.lowest_effort for each in states)[len(states) // 2]
    moving = np.mean([each.lowest for each in states])
    plan = Plan(_mean_factor([each.lowest_factor for each in states]), max(n_cycles, 1), n_moves)
    stays = {width: [each.stays[width] for each in states] for width in states[0].stays}
    losses = {width: np.mean([loss for loss, _ in stays[width]]) for width in stays}
    if not losses or not min(losses.values()) < moving:
        return plan
    width = min(losses, key=lambda width: losses[width])
    return Plan(_mean_factor([factor for _, factor in stays[width]]), 0, 0, narrower=width)


def _mean_factor(factors: list[float]) -> float:
    return float(f"{np.exp(np.mean(np.log(factors))):.12g}")  # 1.0 of ones, say


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


def _without_twins(point: LearnedPoint, of_units: slice) -> LearnedPoint:
    """Merge units that have become one."""
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

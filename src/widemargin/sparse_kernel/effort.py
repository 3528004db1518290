"""How far a learned basis goes: metric, solver, and what a rehearsal has found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.kernels import AdaptiveRBF, Kernel
from widemargin.solvers.units.projection import VariableProjection
from widemargin.solvers.units.staged import StagedUnits
from widemargin.solvers.units.staying import StayingUnits
from widemargin.solvers.units.stochastic import StochasticUnits
from widemargin.solvers.units.values import have_one_unit
from widemargin.sparse_kernel.settings import LearnedBasis

Array: TypeAlias = npt.NDArray[Any]

_FEW_FEATURES, _MANY_FEATURES = 20, 200  # up to which a map is learned, and weights are
_ROWS_A_PARAMETER = {"full": 2, "diagonal": 20}  # of a metric, below which a simpler one is taken
_MOVES = 1000  # by projection, at the most: it ends where ten of them bring too little
_WINDOW_TOL = 10.0  # times tol, relative: what ten moves must bring
_EPOCHS = 1000  # at the most
#: About so many stochastic steps make the first cycle,
FIRST_STEPS = 7000
_FIRST_EPOCHS = (3, 30)  # in so many epochs
_BATCHES = 60  # of a round, where it sees each row several times
_CYCLES = 5  # at the most, each twice as long as the one before
# Factors of squared distances, of units that stay. Those that move begin narrow, and widen.
_START_WIDTHS = (1.0, 1 / 4, 1 / 16)
_ENOUGH = 0.03  # of the objective at zero coefficients: below it one cycle is enough
_CYCLE_TOL = 0.22  # relative decrease that another cycle must have brought to be followed by one


@dataclass(frozen=True)
class Plan:
    """How far to go: the factor of C, cycles, about how many steps the first has, and moves.

    Without cycles units stay where they begin, narrower by a factor.
    """

    factor: float
    n_cycles: int
    n_moves: int
    n_steps: int = FIRST_STEPS
    narrower: float = 1.0


@dataclass(frozen=True)
class Trial:
    """A fit that is to be judged: by which rows, and how far it may go.

    Attributes
    ----------
    X, y, sample_weight : the rows
        They say when to stop, and choose C where that is open.
    most : Plan
        Cycles and moves at the most.
    may_stay : bool
        Whether machines whose units stay where they begin are judged, too.
    """

    X: Any
    y: Any
    sample_weight: Any
    most: Plan
    may_stay: bool


def metric_for(basis: LearnedBasis, rows: Array) -> str:
    """Return the metric that is learned from these rows."""
    if basis.metric != "auto":
        return basis.metric
    n_rows, n_features = rows.shape
    if n_features <= _FEW_FEATURES and n_rows >= _ROWS_A_PARAMETER["full"] * n_features**2:
        return "full"
    enough = n_rows >= _ROWS_A_PARAMETER["diagonal"] * n_features
    if n_features <= _MANY_FEATURES and enough:
        return "diagonal"
    return plain_metric(rows)


def plain_metric(rows: Array) -> str:
    """Return the metric of which nothing is learned but a width."""
    return "none" if have_one_unit(rows) else "scaled"


def metric_of(kernel: Kernel) -> str:
    """Return the metric that a learned kernel has."""
    if not isinstance(kernel, AdaptiveRBF) or kernel.metric is None:
        return "none"
    if kernel.metric.ndim == 2:
        return "full"
    return "scaled" if np.all(kernel.widths == 1.0) else "diagonal"


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
    chooses_weight: bool = False  # whether C is chosen too

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

    def make_solver(
        self,
        n_rows: int,
        rng: np.random.RandomState,
        *,
        is_warm: bool,
        plan: Plan | None = None,
        is_watched: bool = False,
        may_stay: bool = False,
    ) -> Any:
        """Return the solver.

        Parameters
        ----------
        n_rows : int
        rng : RandomState
        is_warm : bool
            Whether units of an earlier fit are where it begins: large steps would scatter them.
        plan : Plan, default=None
            How far to go, where that is known; at the most, where rows are held out.
        is_watched : bool, default=False
            Whether rows that are held out say how far to go.
        may_stay : bool, default=False
            Whether they also judge machines whose units stay where they begin.
        """
        asked = self.basis.max_iter
        shared: dict[str, Any] = {
            "gradient_tol": self.basis.gradient_tol,
            "newton_steps": self.max_iter,
            "patience": self.basis.n_iter_no_change,
        }
        seed = int(rng.randint(np.iinfo(np.int32).max))
        if plan is not None and plan.n_cycles == 0:
            return StayingUnits(**shared)
        if self.basis.solver == "adam":
            epochs = _EPOCHS if isinstance(asked, str) else asked
            return StochasticUnits(seed=seed, max_iter=epochs, **shared)
        moves = _MOVES if isinstance(asked, str) else asked
        alone = VariableProjection(tol=_WINDOW_TOL * self.tol, max_iter=moves, **shared)
        n_batches = max(1, n_rows // StochasticUnits.batch_size)
        n_steps = FIRST_STEPS if plan is None else plan.n_steps
        cycle = int(np.clip(n_steps // n_batches, *_FIRST_EPOCHS))
        at_once = 1
        if isinstance(asked, str):
            at_once = next(each for each in (10, 5, 1) if each == 1 or each * n_batches <= _BATCHES)
        n_cycles = _CYCLES if plan is None else plan.n_cycles
        cycle = max(1, cycle // at_once)
        most = cycle * (2**n_cycles - 1)
        most = most if isinstance(asked, str) else min(most, asked // 2)
        if self.basis.solver == "projection" or is_warm or most == 0:
            return alone
        # Where something else says how far to go, what cycles bring in training does not.
        is_told = is_watched or plan is not None
        stochastic = StochasticUnits(
            seed=seed,
            max_iter=most,
            epochs_a_round=at_once,
            first_cycle=cycle,
            tol=-np.inf if is_told else _CYCLE_TOL,
            enough=_ENOUGH if is_watched or plan is None else -np.inf,
            **shared,
        )
        moves = moves if isinstance(asked, str) else moves - most
        moves = moves if plan is None else min(moves, plan.n_moves)
        return StagedUnits(
            stochastic=stochastic,
            projection=replace(alone, max_iter=moves),
            chooses_weight=is_watched and self.chooses_weight,
            start_widths=_START_WIDTHS if may_stay else (),
            **shared,
        )

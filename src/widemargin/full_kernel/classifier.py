"""Full kernel machines of all classes at once, by exact solvers or online."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.full_kernel.advice import warn_of_fit
from widemargin.full_kernel.dual import DualClassifier, DualStream
from widemargin.kernels import Kernel, Rows
from widemargin.rows import places_still_there
from widemargin.solvers.duals.cutting_plane import CuttingPlane
from widemargin.solvers.duals.expansion import DUAL_LOSSES, DualExpansion
from widemargin.solvers.duals.full_gradient import FullGradient
from widemargin.solvers.duals.larank import LaRank
from widemargin.solvers.duals.state import (
    DualProblem,
    DualSolver,
    DualState,
    machine_entries,
    standing,
)

Array: TypeAlias = npt.NDArray[Any]

SOLVERS: dict[str, type[DualSolver[Any]]] = {
    solver.name: solver for solver in (LaRank, FullGradient, CuttingPlane)
}

_GAP_SHARE = 0.01  # of the objective, that the gap may be at the most where tol is None


@with_shared_texts
class KernelClassifier(DualClassifier):
    """Support vector machine of all classes at once, with any kernel; exact or online.

    The scores of all classes are learned together, ``f_c(x) = sum_i beta_i(c) k(x_i, x) + b_c``,
    where they minimise ::

        1/2 sum_c (|w_c|^2 + b_c^2) + C sum_i weight_i loss(f(x_i), y_i)

    One kernel row serves all classes, and ``partial_fit`` learns row by row.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins"}, default="crammer_singer"
        What a wrong row costs: the hinge of the worst wrong class,
        ``max_c max(0, 1 + f_c - f_y)``, or the hinges of all wrong classes, summed. For two classes
        they are the same.

    C : float, default=1.0
        Weight of the summed loss against the regulariser.

    |kernel| |gamma| |degree| |coef0| |fit_intercept|

    solver : {"larank", "full_gradient", "cutting_plane"} or solver, default="larank"
        How the problem is solved: by LaRank, which goes through the rows one by one; by exact
        solves of one row after the other (MCSVM); or by working sets of constraints (SVMstruct).
        All find the same machine. An object of :mod:`widemargin.solvers`, such as
        :class:`~widemargin.solvers.duals.larank.LaRank`, has tolerances to set.

    epochs : int or None, default=None
        Passes over the rows. None is as many as it takes for the duality gap to be small. One pass
        of LaRank comes near, and takes a fraction of the time.

    tol : float or None, default=None
        Duality gap at which a fit ends, as a share of the objective. None is a gap below C, and
        below a hundredth of the objective.

    |max_seconds| |cache_size|

    budget : int or None, default=None
        Support patterns that ``partial_fit`` keeps at the most, so that a stream cannot make the
        machine grow without end.

    |budget_policy| |class_weight|

    warm_start : bool, default=False
        Whether ``fit`` starts from the coefficients of the fit before, of rows that are in X at the
        same places. A fit that was stopped, by ``max_seconds``, a callback or Ctrl-C, goes on where
        it was, to the bit, if rows and parameters are the same; what it needs for that is saved
        with the machine.

    random_state : int, RandomState instance or None, default=None
        Seed for the order of rows, and for draws among them. With a seed, results are the same to
        the bit.

    |n_jobs| |verbose|

    Attributes
    ----------
    |classes_| |n_features_in_| |feature_names_in_| |n_basis_|
    n_support_vectors_ : int
        Number of coefficients that are not zero.
    |basis_| |basis_indices_| |support_| |support_vectors_| |n_support_| |dual_coef_| |coef_|
    |intercept_|
    objective_ : float
        The primal objective; infinite where nobody computed it, see ``gap_``.
    dual_objective_ : float
        The dual objective, which is never larger.
    gap_ : float
        The difference: how far the objective is from the best at the most. It takes kernel values
        of all rows with all support patterns, so that a fit with a number of ``epochs`` leaves it
        out (infinite), unless the solver is ``LaRank(certify=True)``.
    |n_kernel_evaluations_| |n_iter_|
    stop_reason_ : str
        Why the fit ended: "tol", "epochs", "max_seconds", "callback", "interrupted", "stuck" (no
        step improves the machine, with a warning), or "partial_fit".
    history_ : dict of ndarray
        The way there: ``epoch``, ``rows_seen``, ``seconds``, ``dual``, ``primal``, ``gap``,
        ``kernel_evaluations``, ``arg_max`` (searches for the worst class), ``support_vectors``,
        ``support_patterns``. Where Ctrl-C ended the fit, the estimator is as it was before, but for
        an entry ``last_good`` here: a fitted copy.
    |model_| |readout_|

    See Also
    --------
    SparseKernelClassifier : Few basis vectors, for predictions in microseconds.
    KernelPerceptron, KernelMIRA : Simpler online learners.
    widemargin.compress : Makes a machine of few vectors of this one.
    sklearn.svm.SVC : One machine for each pair of classes.

    References
    ----------
    .. [1] A. Bordes, L. Bottou, P. Gallinari, J. Weston, "Solving MultiClass Support Vector
       Machines with LaRank", International Conference on Machine Learning, 2007.
    .. [2] K. Crammer, Y. Singer, "On the Algorithmic Implementation of Multiclass Kernel-based
       Vector Machines", Journal of Machine Learning Research, 2001.
    .. [3] I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun, "Large Margin Methods for
       Structured and Interdependent Output Variables", Journal of Machine Learning Research, 2005.
    .. [4] J. Weston, C. Watkins, "Support Vector Machines for Multi-Class Pattern Recognition",
       European Symposium on Artificial Neural Networks, 1999.
    .. [5] K. Crammer, J. Kandola, Y. Singer, "Online Classification on a Budget", Advances in
       Neural Information Processing Systems, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import KernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelClassifier(C=10, random_state=0).fit(X, y)
    >>> bool(machine.gap_ < 0.01 * machine.objective_)
    True
    >>> stream = KernelClassifier(C=10, gamma=0.5, random_state=0)
    >>> for row, label in zip(X, y):
    ...     stream = stream.partial_fit([row], [label], classes=[0, 1, 2])
    >>> bool(stream.score(X, y) > 0.9)
    True
    """

    _fitted_names = frozenset(
        {
            *("_patterns", "basis_", "basis_indices_", "classes_", "dual_coef_", "dual_objective_"),
            *("gap_", "history_", "intercept_", "n_basis_", "n_iter_", "n_kernel_evaluations_"),
            *("n_support_vectors_", "objective_", "readout_", "stop_reason_"),
        }
    )

    def __init__(
        self,
        *,
        loss: str = "crammer_singer",
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        solver: str | DualSolver[Any] = "larank",
        epochs: int | None = None,
        tol: float | None = None,
        max_seconds: float | None = None,
        cache_size: float = 200.0,
        budget: int | None = None,
        budget_policy: str = "drop",
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.epochs = epochs
        self.tol = tol
        self.max_seconds = max_seconds
        self.cache_size = cache_size
        self.budget = budget
        self.budget_policy = budget_policy
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the machine from rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; the kernel matrix of shape (n_samples, n_samples) for "precomputed".
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there, but that its class
            stays in ``classes_``. Two classes must have weight.

        Returns
        -------
        self : KernelClassifier
        """
        self._check_parameters()
        self._check_budget_has_a_use()
        previous = self._previous_fit()
        data = self._validate_training_data(X, y, sample_weight)
        rows = data.rows
        self.__dict__.pop("_stream", None)
        with one_blas_thread():
            kernel = self._make_kernel(rows, data.weights)
            problem = DualProblem(
                lambda: self._make_machine(kernel, rows),
                rows,
                data.targets.numbers,
                data.caps,
                epochs=self.epochs,
                gap_limit=self._gap_limit,
            )
            checkpoint = Checkpoint(self, rows, data.targets.numbers, data.caps)
            state = self._begin_fit(problem, checkpoint, previous)
            told = FitProgress(self, None, X, y, sample_weight)
            attributes = run_fit(self, self._solver(), problem, state, checkpoint, told, standing)
            warn_of_fit(self, state.machine, attributes, rows, self._gap_limit)
        self.__dict__.pop("_state", None)
        self.__dict__.update(attributes)
        return self

    def _begin_fit(
        self, problem: DualProblem, checkpoint: Checkpoint, previous: dict[str, Any] | None
    ) -> DualState:
        """Return where the fit begins: where one was stopped, at coefficients, or with nothing."""
        solver, packed = self._solver(), checkpoint.found()
        if packed is not None:
            stopped: DualState = solver.state_type.unpack(packed, problem)
            return stopped
        rng = check_random_state(self.random_state)
        start = None if previous is None else self._start_from(previous, problem)
        begun: DualState = solver.init(problem, rng, start)
        return begun

    def _gap_limit(self, primal: float) -> float:
        if self.tol is None:
            return min(float(self.C), _GAP_SHARE * primal)
        return float(self.tol) * primal

    def _attributes_of(self, state: DualState, reason: str, problem: DualProblem) -> dict[str, Any]:
        machine = state.machine
        supports = machine.supports()
        indices = supports.ids.astype(np.intp)
        vectors = machine.kernel.select(problem.rows, indices)
        return {
            **self._model_attributes(machine.kernel, vectors, indices, supports, state.rows_seen),
            **self._objectives(machine, state.gap),
            "n_iter_": state.passes_begun(),
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in state.history.items()},
        }

    @staticmethod
    def _objectives(machine: DualExpansion, gap: float) -> dict[str, Any]:
        dual = float(machine.set.gap()[1])
        return {
            "objective_": dual + gap,
            "dual_objective_": dual,
            "gap_": float(gap),
            "n_kernel_evaluations_": int(machine.set.kernel_evaluations),
            "n_support_vectors_": int(machine.set.n_vectors),
        }

    def _attributes_after(self, stream: DualStream) -> dict[str, Any]:
        searches = stream.native.arg_max
        entries = machine_entries(stream.machine, 1.0, stream.rows_seen, searches, np.inf)
        return {
            **self._objectives(stream.machine, np.inf),
            "n_iter_": 1,
            "stop_reason_": "partial_fit",
            "history_": {
                name: np.asarray([value]) for name, value in {"seconds": 0.0, **entries}.items()
            },
        }

    def _is_online(self) -> bool:
        return isinstance(self.solver, LaRank) or self.solver == LaRank.name

    def _check_learns_row_by_row(self) -> None:
        if not self._is_online():
            raise AttributeError(
                f"partial_fit learns by solver='larank'; {self.solver!r} needs all rows at once."
            )
        super()._check_learns_row_by_row()

    def _check_budget_has_a_use(self) -> None:
        """Refuse a budget where ``partial_fit``, which alone goes by it, cannot be."""
        try:
            self._check_learns_row_by_row()
        except AttributeError as error:
            if self.budget is not None:
                raise ValueError(
                    f"budget={self.budget} is a limit of partial_fit, which this machine does not "
                    f"have: {error} Leave budget at None."
                ) from None

    def _solver(self) -> DualSolver[Any]:
        return SOLVERS[self.solver]() if isinstance(self.solver, str) else self.solver

    def _make_machine(
        self,
        kernel: Kernel,
        rows: Rows,
        origin: Array | None = None,
        n_columns: int | None = None,
    ) -> DualExpansion:
        return DualExpansion(
            kernel,
            rows,
            len(self.classes_) if n_columns is None else n_columns,
            loss=self.loss,
            fit_intercept=bool(self.fit_intercept),
            cache_size=float(self.cache_size),
            n_threads=thread_count(self.n_jobs),
            origin=origin,
        )

    def _make_learner(self, machine: DualExpansion, seed: int, rows_seen: int) -> Any:
        solver = self._solver()
        assert isinstance(solver, LaRank)  # or there would be no partial_fit
        return solver.native(machine, seed, self.budget, self.budget_policy)

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, DUAL_LOSSES)
        self._check_loss_weight()
        if not isinstance(self.solver, DualSolver):
            check_choice("solver", self.solver, tuple(SOLVERS), ", or a solver")
        if self.epochs is not None:
            check_integer("epochs", self.epochs, least=1)
        if self.tol is not None:
            check_real("tol", self.tol, positive=True)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_flag("warm_start", self.warm_start)
        self._check_stream_parameters()

    def _previous_fit(self) -> dict[str, Any] | None:
        if not self.warm_start or not hasattr(self, "model_"):
            return None
        self._check_learned(self._patterns)
        return {
            "classes": self.classes_,
            "n_features": self.n_features_in_,
            "vectors": self.basis_,
            "indices": self.basis_indices_,
            "coef": self._patterns["coef"],
        }

    def _start_from(
        self, previous: dict[str, Any], problem: DualProblem
    ) -> tuple[npt.NDArray[np.int64], Array]:
        """Return rows that had coefficients in the fit before, and these, as far as they go."""
        rows = problem.rows
        same = np.array_equal(previous["classes"], self.classes_)
        if not same or previous["n_features"] != self.n_features_in_:
            raise ValueError(
                f"warm_start=True needs the classes and features of the fit before, "
                f"{previous['classes']} and {previous['n_features']}, but this data has "
                f"{self.classes_} and {self.n_features_in_}. Set warm_start=False to start anew."
            )
        coef, indices = previous["coef"], previous["indices"]
        usable = places_still_there(
            rows, previous["vectors"], indices, by_number=self._is_precomputed()
        )
        rows_kept = indices[usable].astype(np.int64)
        return rows_kept, self._scaled_to_bounds(
            coef[usable], problem.labels[rows_kept], problem.caps[rows_kept]
        )

    def _within_bounds(self, patterns: dict[str, Any]) -> Array:
        return self._scaled_to_bounds(patterns["coef"], patterns["labels"], patterns["caps"])

    def _scaled_to_bounds(self, coef: Array, labels: npt.NDArray[Any], caps: Array) -> Array:
        """Return rows of coefficients, scaled down where they are beyond the bounds.

        A row whose class is another now has none.
        """
        own = np.take_along_axis(coef, labels[:, np.newaxis].astype(np.intp), axis=1)[:, 0]
        bounded = own if self.loss == "crammer_singer" else -coef.min(axis=1, initial=0.0)
        most = np.where(own > 0, caps / np.maximum(bounded, np.finfo(np.float64).tiny), 0.0)
        return np.asarray(np.minimum(1.0, most)[:, np.newaxis] * coef)

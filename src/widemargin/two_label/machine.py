"""What the machines of two labels share: parameters, the fit, and what it leaves."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin._system.parameters import check_flag, check_integer, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin.estimation.advice import warn_of_kernel, warn_of_the_end
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.labels import check_label_weight, holds_sets
from widemargin.kernels import AdaptiveRBF
from widemargin.models import KernelExpansion
from widemargin.solvers.duals.parallel_planes import (
    PairSteps,
    PlanesMachine,
    PlanesProblem,
    PlanesState,
    standing,
)
from widemargin.two_label.chain import Answer, Copies
from widemargin.two_label.levels import LevelRows, validated_levels

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class PlanesData(PlanesProblem):
    """The problem of a fit, and the rows that it is made of."""

    data: LevelRows


class PlanesClassifier(HasKernel):
    """Machines of parallel hyperplanes, or of several that are solved together.

    An estimator says which copies of rows are learned (``_copies``), and what is answered then
    (``_answer``).
    """

    _fitted_names = frozenset(
        {
            *("basis_", "basis_indices_", "classes_", "dual_coef_", "dual_objective_", "gap_"),
            *("history_", "n_basis_", "n_iter_", "n_kernel_evaluations_"),
            *("n_support_vectors_", "objective_", "readout_", "stop_reason_"),
        }
    )

    #: Whether rows may have one of more than two classes each.
    _takes_chains: ClassVar[bool] = False

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        max_iter: int | None = None,
        max_seconds: float | None = None,
        cache_size: float = 200.0,
        class_weight: Any = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the machine from rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; the kernel matrix of shape (n_samples, n_samples) for "precomputed".
        y : {array-like, sparse matrix} of shape (n_samples, 2), iterable of sets, or classes
            1 where a row has a label, else 0; or the set of labels of each row. Every row has at
            least one of the two labels. An array of shape (n_samples,) has one class a row.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there.

        Returns
        -------
        self : the estimator itself
        """
        self._check_parameters()
        data = validated_levels(self, X, y, sample_weight)
        self._check_levels(data)
        with one_blas_thread():
            problem = self._make_problem(data)
            checkpoint = Checkpoint(self, data.rows, problem.signs, problem.caps)
            solver, packed = PairSteps(), checkpoint.found()
            state = solver.init(problem)
            if packed is not None:
                state = PlanesState.unpack(packed, problem)
            told = FitProgress(self, None, X, y, sample_weight)
            attributes = run_fit(self, solver, problem, state, checkpoint, told, standing)
            is_indefinite = warn_of_kernel(state.machine, data.rows, attributes["basis_indices_"])
        limit = problem.gap_limit(attributes["objective_"])
        warn_of_the_end(self, attributes, limit, is_indefinite=is_indefinite)
        self._warn_of_answer(state.machine, data)
        self.__dict__.pop("_state", None)
        self.__dict__.update(attributes)
        return self

    @abstractmethod
    def _copies(self, data: LevelRows) -> Copies:
        """Return what is learned of the rows."""

    @abstractmethod
    def _answer(self, columns: Array, machine: PlanesMachine, data: LevelRows) -> Answer:
        """Return the scores that are made of machines, and how they are read.

        Parameters
        ----------
        columns : array of shape (n_basis, n_machines)
            Coefficients of the support patterns.
        machine : PlanesMachine
            With scores of training rows, and shifts.
        data : LevelRows
        """

    def _warn_of_answer(self, machine: PlanesMachine, data: LevelRows) -> None:
        """Warn where the machine never answers what it could."""

    def _make_problem(self, data: LevelRows) -> PlanesData:
        copies = self._copies(data)
        return PlanesData(
            self._make_kernel(data.rows, data.weights),
            data.rows,
            copies.signs,
            copies.caps,
            copies.thresholds,
            copies.machines,
            lambda primal: float(self.tol) * primal,
            max_iter=self.max_iter,
            cache_size=float(self.cache_size),
            n_threads=thread_count(self.n_jobs),
            data=data,
        )

    def _attributes_of(
        self, state: PlanesState, reason: str, problem: PlanesData
    ) -> dict[str, Any]:
        expansions = state.machine.expansions()
        indices = np.flatnonzero(expansions.any(axis=0))
        columns = np.ascontiguousarray(expansions[:, indices].T)
        answer = self._answer(columns, state.machine, problem.data)
        model = KernelExpansion(
            problem.kernel,
            problem.kernel.select(problem.rows, indices),
            np.ascontiguousarray(answer.coef),
            np.ascontiguousarray(answer.intercept),
            n_features=self.n_features_in_,
        )
        vectors, _ = state.machine.planes.supports()
        return {
            "model_": model,
            "readout_": answer.readout,
            "basis_indices_": indices,
            "objective_": state.dual + state.gap,
            "dual_objective_": float(state.dual),
            "gap_": float(state.gap),
            "n_support_vectors_": int(vectors),
            "n_kernel_evaluations_": int(state.machine.planes.kernel_evaluations),
            "n_iter_": state.steps,
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in state.history.items()},
        }

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose answer is right: all labels, or the class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : as in ``fit``
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        if holds_sets(y):
            labels = self.classes_.tolist()
            y = np.array([[label in row for label in labels] for row in y], dtype=np.int64)
        return float(super().score(X, y, sample_weight))

    def _check_levels(self, data: LevelRows) -> None:
        if data.has_labels or data.n_levels == 2 or self._takes_chains:
            return
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{data.n_levels} classes. {type(self).__name__} tells two labels apart, of which a "
            "row may have both: give an indicator matrix of two columns. ParallelSVM takes any "
            "number of classes that lie in an order, KernelClassifier any others."
        )

    def _check_parameters(self) -> None:
        self._check_loss_weight()
        self._check_kernel_parameters()
        if isinstance(self.kernel, AdaptiveRBF):
            raise ValueError(
                f"kernel={self.kernel!r} belongs to the basis it was learned with. Use 'rbf'."
            )
        check_real("tol", self.tol, positive=True)
        if self.max_iter is not None:
            check_integer("max_iter", self.max_iter, least=1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_real("cache_size", self.cache_size, positive=True)
        check_flag("warm_start", self.warm_start)
        check_label_weight(self.class_weight)

    def _why_no_probabilities(self) -> str:
        return (
            f"{type(self).__name__} gives scores, not probabilities: the hinge loss has none. Take "
            "decision_function, or KernelMultiLabelClassifier(probability=True)."
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        tags.classifier_tags.multi_class = self._takes_chains
        return tags

"""Full kernel machines of label sets, with what is known of how labels go together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from widemargin._system.file_changes import Added, Change
from widemargin._system.parameters import check_choice, check_flag, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin.estimation.advice import warn_of_kernel, warn_of_the_end
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.labels import HasLabels, LabelRows
from widemargin.kernels import AdaptiveRBF
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout
from widemargin.rows import places_still_there
from widemargin.solvers.duals.label_ridge import solve_squared
from widemargin.solvers.duals.label_smo import LabelProblem, LabelSMO, LabelState
from widemargin.solvers.duals.state import standing
from widemargin.solvers.label_margins import MARGIN_LOSSES, check_dominant, correlated_margins

Array: TypeAlias = npt.NDArray[Any]

_GAP_SHARE = 0.01  # of the objective, that the gap may be at the most where tol is None
_WRONG_LABEL = 2.0  # what a wrong label costs: labels are -1 and 1


@with_shared_texts
class KernelMultiLabelClassifier(  # type: ignore[misc]  # rows of labels, not of classes
    HasLabels, HasKernel
):
    """Support vector machine of label sets, with any kernel: M3L, solved to a certified gap.

    Each label has a score ``f_l(x) = sum_i A_il k(x_i, x) + b_l``, and a row has the labels whose
    scores are above 0. With a prior R over labels, and the scores of all rows in F, the machine
    minimises ::

        1/2 tr(R^-1 A'KA) + 2 C sum_il weight_il max(0, 1 - y_il F_il)      y_il is 1 or -1

    so that labels that R relates learn from each other's rows. The 2 is that of the paper, where a
    wrong label costs as much as labels of -1 and 1 differ: without a prior it is one support
    vector machine a label, with the penalty 2 C. Kernel rows are computed once for all labels, so
    that twice as many unrelated labels take less than twice the time.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the regulariser.

    |label_prior|

    loss : {"hinge", "correlated_hamming", "squared"}, default="hinge"
        What a wrong label costs. "hinge" and "correlated_hamming" are those of
        :class:`LinearMultiLabelClassifier`: ``max(0, 1 - y f)`` with y of -1 and 1, and what a
        prior that is diagonally dominant makes of it.
        "squared": ``(1 - y f)^2``, on both sides of the margin (the least squares machine).
        Scores then rank classes by all their labels rather than by the uncertain ones, as zero-shot
        learning does. It is solved at once, from the kernel matrix of all rows, which must fit into
        memory: ``tol``, ``max_seconds``, ``cache_size`` and ``warm_start`` have nothing to say.
        All rows are support vectors.

    |kernel| |gamma| |degree| |coef0|

    fit_intercept : bool, default=True
        Whether each label has an intercept, regularised, and related by R, like the other
        coefficients: the kernel is ``k + 1`` then. False is the machine of the paper.

    tol : float or None, default=None
        Duality gap at which a fit ends, as a share of the objective. None is a gap below C for each
        label, on average, and below a hundredth of the objective.

    |max_seconds| |cache_size| |label_class_weight|

    warm_start : bool, default=False
        Whether ``fit`` starts from the coefficients of the fit before, of rows that are in X at the
        same places. A fit that was stopped, by ``max_seconds``, a callback or Ctrl-C, goes on where
        it was, to the bit, if rows and parameters are the same; what it needs for that is saved
        with the machine.

    |label_threshold| |label_threshold_metric| |label_probability|
    |label_sparse_output|

    random_state : int, RandomState instance or None, default=None
        Seed for the order of rows, and for the folds of "tuned" thresholds. With a seed, results
        are the same to the bit, for any number of threads.

    |n_jobs| |verbose|

    Attributes
    ----------
    |label_classes_| |label_n_labels_| |n_features_in_| |feature_names_in_| |label_thresholds_|
    |n_basis_|
    n_support_vectors_ : int
        Number of coefficients that are not zero, before R mixes those of a row.
    |basis_| |basis_indices_| |label_dual_coef_| |label_coef_| |label_intercept_|
    objective_ : float
        The primal objective.
    dual_objective_ : float
        The dual objective, (25) of the paper, which is never larger.
    gap_ : float
        The difference: how far the objective is from the best at the most.
    |n_kernel_evaluations_|
    n_iter_ : int
        Passes over the rows.
    stop_reason_ : str
        Why the fit ended: "tol", "max_seconds", "callback", "interrupted", or "stuck" (no step
        improves the machine, with a warning).
    history_ : dict of ndarray
        The way there: ``epoch``, ``rows_seen``, ``seconds``, ``dual``, ``primal``, ``gap``,
        ``kernel_evaluations``, ``support_vectors``, ``support_patterns``. Where Ctrl-C ended the
        fit, the estimator is as it was before, but for an entry ``last_good`` here: a fitted copy.
    |model_| |label_readout_|

    See Also
    --------
    KernelClassifier : One class a row.
    widemargin.priors : What makes priors.
    sklearn.multiclass.OneVsRestClassifier : One machine a label, each with kernel rows of its own.

    References
    ----------
    .. [1] B. Hariharan, S. V. N. Vishwanathan, M. Varma, "Efficient max-margin multi-label
       classification with applications to zero-shot learning", Machine Learning, 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from widemargin import KernelMultiLabelClassifier, priors
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> machine = KernelMultiLabelClassifier(prior=priors.from_labels(Y), random_state=0).fit(X, Y)
    >>> machine.predict(X[:2]).shape
    (2, 4)
    >>> bool(machine.gap_ < 0.01 * machine.objective_)
    True
    """

    _fitted_names = frozenset(
        {
            *("basis_", "basis_indices_", "classes_", "dual_coef_", "dual_objective_", "gap_"),
            *("history_", "intercept_", "n_basis_", "n_iter_", "n_kernel_evaluations_"),
            *("n_support_vectors_", "objective_", "readout_", "stop_reason_"),
        }
    )
    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType({"loss": Added(6)})

    # Coefficients before R mixes the labels of a row: R may be singular, so that nobody could tell
    # them from dual_coef_.
    _optional_fitted_names = HasLabels._optional_fitted_names | {"_free_coef"}

    def __init__(
        self,
        *,
        C: float = 1.0,
        prior: Any = None,
        loss: str = "hinge",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        tol: float | None = None,
        max_seconds: float | None = None,
        cache_size: float = 200.0,
        class_weight: Any = None,
        warm_start: bool = False,
        threshold: Any = 0.0,
        threshold_metric: str = "macro",
        probability: bool = False,
        sparse_output: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.prior = prior
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_seconds = max_seconds
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.threshold = threshold
        self.threshold_metric = threshold_metric
        self.probability = probability
        self.sparse_output = sparse_output
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
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            1 where a row has a label, else 0.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there.

        Returns
        -------
        self : KernelMultiLabelClassifier
        """
        self._check_parameters()
        previous = self._previous_fit()
        data = self._validate_training_data(X, y, sample_weight)
        # A wrong number of thresholds is told before the fit, not after it.
        readout = self._label_readout(data, tunes=False)
        with one_blas_thread():
            problem = self._make_problem(data, readout)
            told = FitProgress(self, None, X, y, sample_weight)
            if problem.n_labels == 0:
                attributes = self._attributes_of_none(problem)
                told.end(lambda: attributes)
            elif self.loss == "squared":
                attributes = self._solve_squared(problem, told)
            else:
                checkpoint = Checkpoint(self, data.rows, problem.signs, problem.caps)
                state = self._begin_fit(problem, checkpoint, previous)
                attributes = run_fit(self, LabelSMO(), problem, state, checkpoint, told, standing)
                is_indefinite = warn_of_kernel(
                    state.machine, data.rows, attributes["basis_indices_"]
                )
                limit = problem.gap_limit(attributes["objective_"])
                warn_of_the_end(self, attributes, limit, is_indefinite=is_indefinite)
        if isinstance(self.threshold, str) or self.probability:
            attributes["readout_"] = self._label_readout(data)
        for name in self._optional_fitted_names - {"feature_names_in_"}:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        return self

    def _make_problem(self, data: LabelRows, readout: Readout) -> _LabelData:
        prior = self._label_prior(data)
        learned = data.learned
        n_labels = len(learned)
        signs = data.learned_targets.signs()
        margins = None
        if self.loss == "correlated_hamming" and prior is not None:
            check_dominant(prior.matrix, data.targets.classes[learned])
            margins = np.ascontiguousarray(correlated_margins(prior.matrix, signs).T)

        def gap_limit(primal: float) -> float:
            if self.tol is None:
                return min(float(self.C) * n_labels, _GAP_SHARE * primal)
            return float(self.tol) * primal

        return _LabelData(
            self._make_kernel(data.rows, data.weights),
            data.rows,
            np.ascontiguousarray(signs.T),
            data.caps,
            np.stack([data.without_label[learned], data.with_label[learned]], axis=1),
            np.eye(n_labels) if prior is None else prior.matrix,
            bool(self.fit_intercept),
            gap_limit,
            cache_size=float(self.cache_size),
            n_threads=thread_count(self.n_jobs),
            margins=margins,
            data=data,
            readout=readout,
            has_prior=prior is not None,
        )

    def _solve_squared(self, problem: _LabelData, told: FitProgress) -> dict[str, Any]:
        """Return the attributes of the fit with a squared loss, which linear systems give."""
        started = time.perf_counter()
        used = np.flatnonzero(problem.caps > 0)
        rows = problem.rows if len(used) == problem.n_rows else problem.rows[used]
        without, present = problem.label_caps.T[:, :, None]
        of_label = np.where(problem.signs > 0, present, without).T
        told.begin_round()
        matrix = problem.kernel.block(rows, problem.kernel.select(problem.rows, used))
        solution = solve_squared(
            np.asarray(matrix, dtype=np.float64) + float(problem.fit_intercept),
            problem.signs.T[used].astype(np.float64),
            (problem.caps[:, None] * of_label)[used],
            problem.relation,
        )
        n_values = len(used) ** 2
        history: dict[str, float] = {
            "epoch": 1.0,
            "rows_seen": len(used),
            "seconds": time.perf_counter() - started,
            "dual": solution.dual,
            "primal": solution.primal,
            "gap": solution.gap,
            "kernel_evaluations": n_values,
            "support_vectors": int(np.count_nonzero(solution.coefficients)),
            "support_patterns": len(used),
        }
        attributes = {
            **self._model_attributes(problem, used, solution.coefficients),
            "objective_": solution.primal,
            "dual_objective_": solution.dual,
            "gap_": solution.gap,
            "n_support_vectors_": int(history["support_vectors"]),
            "n_kernel_evaluations_": n_values,
            "n_iter_": 1,
            "stop_reason_": "tol",
            "history_": {name: np.array([value]) for name, value in history.items()},
        }
        told.end_round(
            lambda: attributes, lambda: f"{n_values} kernel values, gap {solution.gap:.3g}"
        )
        told.end(lambda: attributes)
        return attributes

    def _begin_fit(
        self, problem: _LabelData, checkpoint: Checkpoint, previous: dict[str, Any] | None
    ) -> LabelState:
        """Return where the fit begins: where one was stopped, at coefficients, or with nothing."""
        packed = checkpoint.found()
        if packed is not None:
            return LabelState.unpack(packed, problem)
        start = None if previous is None else self._start_from(previous, problem)
        return LabelSMO().init(problem, check_random_state(self.random_state), start)

    def _attributes_of(self, state: LabelState, reason: str, problem: _LabelData) -> dict[str, Any]:
        free = state.machine.coefficients()
        indices = np.flatnonzero(free.any(axis=0))
        vectors, _ = state.machine.box.supports()
        return {
            **self._model_attributes(problem, indices, np.ascontiguousarray(free[:, indices].T)),
            "objective_": state.dual + state.gap,
            "dual_objective_": float(state.dual),
            "gap_": float(state.gap),
            "n_support_vectors_": int(vectors),
            "n_kernel_evaluations_": int(state.machine.box.kernel_evaluations),
            "n_iter_": state.passes,
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in state.history.items()},
        }

    def _attributes_of_none(self, problem: _LabelData) -> dict[str, Any]:
        """Return the attributes of a fit to labels of which none varies: intercepts are all."""
        nothing: Array = np.empty(0)
        names = ("epoch", "rows_seen", "seconds", "dual", "primal", "gap", "kernel_evaluations")
        return {
            **self._model_attributes(problem, np.empty(0, dtype=np.intp), np.empty((0, 0))),
            **dict.fromkeys(("objective_", "dual_objective_", "gap_"), 0.0),
            **dict.fromkeys(("n_support_vectors_", "n_kernel_evaluations_", "n_iter_"), 0),
            "stop_reason_": "tol",
            "history_": dict.fromkeys((*names, "support_vectors", "support_patterns"), nothing),
        }

    def _model_attributes(
        self, problem: _LabelData, indices: npt.NDArray[np.intp], free: Array
    ) -> dict[str, Any]:
        """Return what predicts, given the coefficients of support patterns and learned labels."""
        related = free @ problem.relation if problem.has_prior else free
        coef, intercept = problem.data.of_all_labels(
            related, float(problem.fit_intercept) * related.sum(axis=0)
        )
        model = KernelExpansion(
            problem.kernel,
            problem.kernel.select(problem.rows, indices),
            np.ascontiguousarray(coef),
            intercept,
            n_features=self.n_features_in_,
        )
        found = {"model_": model, "readout_": problem.readout, "basis_indices_": indices}
        if problem.has_prior:
            found["_free_coef"] = problem.data.of_all_labels(free, np.zeros(free.shape[1]))[0]
        return found

    def _check_parameters(self) -> None:
        self._check_loss_weight()
        self._check_kernel_parameters()
        if isinstance(self.kernel, AdaptiveRBF):
            raise ValueError(
                f"kernel={self.kernel!r} belongs to the basis it was learned with. Use 'rbf'."
            )
        check_choice("loss", self.loss, (*MARGIN_LOSSES, "squared"))
        check_flag("fit_intercept", self.fit_intercept)
        if self.tol is not None:
            check_real("tol", self.tol, positive=True)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_real("cache_size", self.cache_size, positive=True)
        check_flag("warm_start", self.warm_start)
        check_random_state(self.random_state)
        self._check_label_parameters()

    def _cap(self) -> float:
        return _WRONG_LABEL * float(self.C)

    def _make_way_for(self, model: Any) -> None:
        super()._make_way_for(model)
        self.__dict__.pop("_free_coef", None)

    def _previous_fit(self) -> dict[str, Any] | None:
        if not self.warm_start or not hasattr(self, "model_"):
            return None
        return {
            "classes": self.classes_,
            "n_features": self.n_features_in_,
            "vectors": self.basis_,
            "indices": self.basis_indices_,
            "coef": self.__dict__.get("_free_coef", self.dual_coef_),
        }

    def _start_from(self, previous: dict[str, Any], problem: _LabelData) -> Array:
        """Return coefficients of rows that had some in the fit before, and of others none."""
        same = np.array_equal(previous["classes"], self.classes_)
        if not same or previous["n_features"] != self.n_features_in_:
            raise ValueError(
                f"warm_start=True needs the labels and features of the fit before, "
                f"{previous['classes']} and {previous['n_features']}, but this data has "
                f"{self.classes_} and {self.n_features_in_}. Set warm_start=False to start anew."
            )
        places = places_still_there(
            problem.rows,
            previous["vectors"],
            previous["indices"],
            by_number=self._is_precomputed(),
        )
        start = np.zeros((problem.n_labels, problem.n_rows))
        found = previous["coef"][places][:, problem.data.learned]
        start[:, previous["indices"][places]] = found.T
        return start

    def _why_no_probabilities(self) -> str:
        return (
            f"{type(self).__name__} gives scores, not probabilities. Set probability=True and fit "
            "again, or take decision_function, which ranks labels."
        )


@dataclass(frozen=True, kw_only=True)
class _LabelData(LabelProblem):
    """The problem of a fit, and what it is made of."""

    data: LabelRows
    readout: Readout
    has_prior: bool

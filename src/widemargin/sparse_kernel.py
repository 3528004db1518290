"""Sparse kernel machines: classifiers with a capped number of basis vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._fitting import (
    FitProgress,
    Interrupted,
    all_or_nothing,
)
from widemargin._kernel_machine import KernelMachine
from widemargin._learning import Learned, LearnSettings, dense_rows, learn
from widemargin._machines import Grown, Problem, merge, order_of_choice, two_as_one
from widemargin._parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
)
from widemargin._rows import rows_like, same_rows
from widemargin._system.warnings import warn_user
from widemargin._threads import one_blas_thread, thread_count
from widemargin.basis import BasisColumns
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    Kernel,
    Rows,
    auto_gamma,
)
from widemargin.losses import CLASS_LOSSES, Loss, one_against_rest
from widemargin.models import KernelExpansion
from widemargin.objectives import BasisObjective
from widemargin.readouts import Link, Readout
from widemargin.solvers.greedy import GreedyNewton, GreedyState

Array: TypeAlias = npt.NDArray[Any]

_BASES = ("shared", "per_class", "learned")
_METRICS = ("auto", "none", "diagonal", "full")
_SOLVERS = ("auto", "projection", "adam")
# Not those that go with early_stopping, which have no use without it whatever the basis is.
_OF_LEARNED = ("metric", "solver", "learn_iter", "early_stopping")
_OF_CHOSEN = ("n_candidates",)


def _standing(learned: Learned) -> str:
    last = {name: values[-1] for name, values in learned.state.history.items()}
    text = f"{len(learned.vectors)} vectors, objective {last['objective']:.6g}"
    if "validation_score" in last:
        text += f", validation score {last['validation_score']:.4f}"
    return text


class SparseKernelClassifier(KernelMachine):
    """Kernel classifier with a cap on the number of basis vectors.

    The scores of all classes are expansions in one small set J of training rows,
    ``F = K_.J A + b``, chosen greedily to minimise ::

        1/2 tr(A' K_JJ A) + 1/2 |b|^2 + C sum_i weight_i loss(f_i, y_i)

    with A of shape (n_basis, n_classes). Prediction costs at most ``max_basis`` kernel values a
    row, however many rows the machine was trained on.

    Parameters
    ----------
    max_basis : int, default=100
        Basis vectors at the most. With ``basis="per_class"`` the cap holds for the set of each
        class.

    loss : {"weston_watkins", "crammer_singer", "logistic"} or Loss, default="weston_watkins"
        What a wrong row costs. "weston_watkins" is the squared hinge summed over the wrong classes
        (SMSVM), "crammer_singer" the squared hinge of the worst of them, "logistic" the multinomial
        logistic loss (ImVM), which adds ``predict_proba``. With ``basis="per_class"`` each class is
        set against the rest by the squared hinge, or by the logistic loss.

    C : float, default=10.0
        Weight of the summed loss against the regulariser. The papers' lambda is 1 / C.

    kernel : {"rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"}, Kernel or \
callable, default="rbf"
        A name; an object of :mod:`widemargin.kernels`; or any callable ``kernel(X, Y)`` that
        returns the matrix of values, such as the kernels of
        :mod:`sklearn.gaussian_process.kernels`. For "precomputed", X is the kernel matrix: square
        in ``fit``, with a column for each training row in ``predict``. For a kernel that is not
        positive semi-definite, as "sigmoid" is not, the regulariser is not K_JJ but a matrix near
        it that is.

    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels that are given by name. "scale" is 1 / (n_features * X.var()), or
        1 / (n_features * X.std()) for "laplacian"; rows count by ``sample_weight``. "auto" is
        1 / n_features for all of them. A learned basis begins with it, on standardised features
        unless ``metric="none"``; "scale" then is 8 / mean squared distance of rows and vectors.

    degree : int, default=3
        Degree of the kernel "poly".

    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".

    basis : {"shared", "per_class", "learned"}, default="shared"
        "shared": one set of training rows for all classes. "per_class": a set for each class
        against the rest (Sparse-OVA); ``n_basis_`` then counts the different vectors. "learned": as
        many vectors as ``max_basis``, which are no training rows but move, with their widths and a
        metric, to where the objective is least; it needs far fewer of them. The kernel is "rbf",
        the regulariser ``1/2 |A|^2 + 1/2 |b|^2``.

    n_candidates : int or "all", default=128
        Training rows drawn at random and compared for a vector that is added (the papers' kappa);
        where several are added at once, 8 more for each further one. Not of a learned basis.

    metric : {"auto", "none", "diagonal", "full"}, default="auto"
        What a learned basis learns of distances. "none": a common width. "diagonal": a width for
        each vector, and a weight for each feature. "full": a width for each vector, and a linear
        map of the features. "auto": "full" up to 20 features, "diagonal" up to 100, else "none".

    solver : {"auto", "projection", "adam"}, default="auto"
        How a learned basis is moved. "projection": variable projection, which solves for all
        coefficients at every move; the more accurate of the two. "adam": stochastic gradients, for
        many rows, vectors and classes. "auto": "adam" from 500 million rows times vectors times
        classes.

    learn_iter : int or "auto", default="auto"
        Times that a learned basis is moved at the most; epochs for "adam". "auto" is 60, 120 for
        more than ten classes, and 90 for "adam".

    early_stopping : bool, default=False
        Whether a learned basis is judged by rows that are held out, and the best on the way is
        taken.

    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` holds out.

    n_iter_no_change : int, default=10
        Moves without a better score on held-out rows after which ``early_stopping`` ends them.

    fit_intercept : bool, default=True
        Whether each class has an intercept, regularised like the other coefficients.

    tol : float, default=1e-3
        Growth ends before ``max_basis`` when a vector lowers the objective by less than this,
        relative; a learned basis stops when a move lowers it by less than a tenth of this. 0
        switches the rule off.

    gradient_tol : float, default=1e-4
        Norm of the gradient at the end, relative to the one at zero coefficients. The last solve
        also goes on while a step promises more than 1 % of the objective.

    max_iter : int, default=100
        Newton steps a solve at the most.

    class_weight : dict or "balanced", default=None
        Weights of the classes, multiplied with ``sample_weight``.

    warm_start : bool, default=False
        Whether ``fit`` starts from the vectors and coefficients of the fit before (a learned basis:
        from vectors, widths and metric), and adds up to ``max_basis`` in all. Fewer than there are
        is an error.

    random_state : int, RandomState instance or None, default=None
        Seed for the draws of candidates; of a learned basis, for where vectors begin, rows that
        are held out and the order of batches. With a seed, results are the same to the bit.

    n_jobs : int, default=None
        Number of threads. None is 1, -1 all cores. It changes the speed and nothing else.

    verbose : int, default=0
        Above 0, ``fit`` prints how far it has come: a line for each round, at most 20 a second.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Only where X has feature names that are all strings.
    n_basis_ : int
        Number of different basis vectors.
    basis_ : ndarray or CSR matrix of shape (n_basis, n_features)
        The vectors, in the order they were chosen. For a precomputed kernel, their row numbers.
    basis_indices_ : ndarray of shape (n_basis,)
        Their row numbers in X; -1 for vectors that are learned, or that a warm start brought from
        other data.
    dual_coef_ : ndarray of shape (n_basis, n_classes), or (n_basis, 1) for two classes
        Coefficients of the expansion.
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features; only with a linear kernel.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts.
    objective_ : float
        The objective at the end (summed over the machines with ``basis="per_class"``).
    n_iter_ : int
        Newton steps, all in all.
    history_ : dict of ndarray
        The way there, an entry a stage or move: ``n_basis``, ``objective``, ``seconds``,
        ``gradient`` (relative); with ``basis="per_class"`` also ``class_index``, one class after
        the other; with ``early_stopping`` also ``validation_score``. Where Ctrl-C ended the fit of
        a learned basis, the estimator is as it was before, but for an entry ``last_good`` here: a
        fitted copy, after the last move that was finished.
    stop_reason_ : str
        Why growth ended: "max_basis", "tol", "callback" or "exhausted" (every row is expressed by
        the basis); the last of the machines with ``basis="per_class"``. Why a learned basis moved
        no more: "learn_iter", "tol", "early_stopping", "callback", or "not_finite" (of the
        objective or its gradient, with a warning; the machine is the last one before).
    model_ : KernelExpansion
        What predicts. ``basis_``, ``n_basis_``, ``dual_coef_``, ``coef_`` and ``intercept_`` are
        read from it; to change them, put another one in its place.

    See Also
    --------
    SparseKernelClassifierCV : Chooses C, width and number of vectors by itself.
    sklearn.svm.SVC : Exact, one against one; the number of support vectors grows with the data.
    sklearn.kernel_approximation.Nystroem : Random basis vectors, to be followed by a linear model.

    References
    ----------
    .. [1] T. Ganu, S. Shevade, S. Sundararajan, "Sparse Max-Margin Multiclass and Multi-label
       Classifier Design for Fast Inference", SIAM International Conference on Data Mining, 2013.
    .. [2] J. Zhu, T. Hastie, "Kernel Logistic Regression and the Import Vector Machine", Journal of
       Computational and Graphical Statistics, 2005.
    .. [3] S. S. Keerthi, O. Chapelle, D. DeCoste, "Building Support Vector Machines with Reduced
       Classifier Complexity", Journal of Machine Learning Research, 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, C=10, random_state=0).fit(X, y)
    >>> machine.n_basis_
    5
    >>> bool(machine.score(X, y) > 0.95)
    True
    """

    model_: KernelExpansion

    _quick_settings: ClassVar[dict[str, Any]] = {"max_basis": 30}
    _fitted_names = frozenset(
        {
            *("_stages", "basis_", "basis_indices_", "classes_", "dual_coef_", "history_"),
            *("intercept_", "n_basis_", "n_iter_", "objective_", "stop_reason_"),
        }
    )

    def __init__(
        self,
        max_basis: int = 100,
        *,
        loss: str | Loss = "weston_watkins",
        C: float = 10.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        basis: str = "shared",
        n_candidates: int | str = 128,
        metric: str = "auto",
        solver: str = "auto",
        learn_iter: int | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        gradient_tol: float = 1e-4,
        max_iter: int = 100,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_basis = max_basis
        self.loss = loss
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.basis = basis
        self.n_candidates = n_candidates
        self.metric = metric
        self.solver = solver
        self.learn_iter = learn_iter
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.gradient_tol = gradient_tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the basis vectors and fit their coefficients.

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
        self : SparseKernelClassifier
        """
        self._check_parameters()
        self._check_settings_of_basis()
        previous = self._previous_fit()
        rows, labels, counts, weights = self._validate_training_data(X, y, sample_weight)
        self._check_same_problem(previous)
        n_rows = np.count_nonzero(weights)
        if previous is None and self.max_basis > n_rows:
            warn_user(
                f"max_basis={self.max_basis} is more than the {n_rows} rows to learn from, so that "
                "the machine may keep them all: there are never more vectors than rows. Lower "
                "max_basis for a machine that is smaller than its data.",
                UserWarning,
            )
        rng = check_random_state(self.random_state)
        data = (X, y, sample_weight)  # for callbacks that score
        with one_blas_thread():
            if self.basis == "learned":
                progress, attributes = self._learn(rows, labels, weights, previous, rng, data)
            else:
                progress, attributes = self._choose(
                    rows, labels, counts, weights, previous, rng, data
                )
        self.__dict__.update(attributes)
        progress.end(lambda: attributes)
        return self

    def _choose(
        self,
        rows: Rows,
        labels: npt.NDArray[np.intp],
        counts: Array,
        weights: Array,
        previous: dict[str, Any] | None,
        rng: np.random.RandomState,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitProgress, dict[str, Any]]:
        """Choose basis vectors among the rows; return the fitted attributes."""
        kernel = self._make_kernel(rows, counts)
        solver = GreedyNewton(
            max_basis=self.max_basis,
            n_candidates=self.n_candidates,
            tol=self.tol,
            gradient_tol=self.gradient_tol,
            max_iter=self.max_iter,
        )
        problems = self._problems(labels)
        progress = FitProgress(self, len(problems) * solver.count_rounds(), *data)
        grown: list[Grown] = []
        for problem in problems:
            basis = BasisColumns(
                kernel,
                rows,
                fit_intercept=self.fit_intercept,
                max_basis=self.max_basis,
                n_threads=thread_count(self.n_jobs),
            )
            start = self._warm_coefficients(previous, basis, len(grown))
            objective = BasisObjective(
                problem.loss, problem.targets, weights, problem.n_outputs, basis
            )
            state = solver.init(objective, weights, start)
            grown.append(self._grow(solver, objective, state, rng, progress, grown))
        return progress, self._fitted_attributes(kernel, grown)

    def _learn(
        self,
        rows: Rows,
        labels: npt.NDArray[np.intp],
        weights: Array,
        previous: dict[str, Any] | None,
        rng: np.random.RandomState,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitProgress, dict[str, Any]]:
        """Learn basis vectors; return the fitted attributes."""
        settings = LearnSettings(
            max_basis=self.max_basis,
            metric=self.metric,
            solver=self.solver,
            gamma=auto_gamma(rows) if self.gamma == "auto" else self.gamma,
            learn_iter=self.learn_iter,
            tol=self.tol,
            gradient_tol=self.gradient_tol,
            max_iter=self.max_iter,
            fit_intercept=self.fit_intercept,
            early_stopping=self.early_stopping,
            validation_fraction=self.validation_fraction,
            n_iter_no_change=self.n_iter_no_change,
            n_threads=thread_count(self.n_jobs),
        )
        (problem,) = self._problems(labels)
        # Rows that are equal, of no weight or held out may make the solver another.
        n_rounds = max(settings.n_rounds(n, problem.n_outputs) for n in (0, rows.shape[0]))
        progress = FitProgress(self, n_rounds, *data)
        last_good: Callable[[], Learned] | None = None

        def after_round(so_far: Callable[[], Learned]) -> bool:
            nonlocal last_good
            last_good = so_far
            return progress.end_round(
                lambda: self._learned_attributes(so_far()), lambda: _standing(so_far())
            )

        try:
            learned = learn(
                dense_rows(rows),
                labels,
                problem,
                weights,
                settings,
                rng,
                previous=self._previous_units(previous, settings),
                before_round=progress.begin_round,
                after_round=after_round,
            )
        except KeyboardInterrupt as stop:
            if last_good is None:
                raise
            machine = self._fitted_copy(self._learned_attributes(last_good()))
            raise Interrupted(self, machine) from stop
        if learned.state.stopped_because == "not_finite":
            warn_user(
                "The objective or its gradient was not finite on the way, and the machine is the "
                "last one before. Check the scale of X, or lower C.",
                ConvergenceWarning,
            )
        if not learned.state.converged:
            self._warn_not_converged(learned.state.gradient)
        return progress, self._learned_attributes(learned)

    def _learned_attributes(self, learned: Learned) -> dict[str, Any]:
        """Return the attributes of an estimator with these units."""
        count = len(learned.vectors)
        history = {name: np.array(values) for name, values in learned.state.history.items()}
        history["n_basis"] = np.full(len(history["objective"]), count)
        return self._attributes_of(
            KernelExpansion(learned.kernel, learned.vectors, learned.coef, learned.intercept),
            basis_indices_=np.full(count, -1),
            objective_=float(learned.state.objective),
            n_iter_=int(learned.state.n_iter),
            history_=history,
            stop_reason_=learned.state.stopped_because,
            _stages=[(learned.coef, learned.intercept)],
        )

    def _previous_units(
        self, previous: dict[str, Any] | None, settings: LearnSettings
    ) -> tuple[Kernel, Array] | None:
        if previous is None:
            return None
        kernel = previous["model_"].kernel
        axes = {"none": None, "diagonal": 1, "full": 2}[settings.metric_for(self.n_features_in_)]
        learned = (previous["basis_indices_"] == -1).all()
        same = (
            isinstance(kernel, RBF)
            if axes is None
            else isinstance(kernel, AdaptiveRBF)
            and kernel.metric is not None
            and kernel.metric.ndim == axes
        )
        if not (learned and same):
            raise ValueError(
                "warm_start=True with basis='learned' goes on from a learned basis of the same "
                "metric, and the fit before was another. Set warm_start=False to start anew."
            )
        return kernel, np.asarray(previous["basis_"], dtype=np.float64)

    def _warn_not_converged(self, gradient: float, excess: float = 0.0) -> None:
        if gradient > self.gradient_tol:
            what = (
                f"at a relative gradient of {gradient:.1e} where "
                f"gradient_tol={self.gradient_tol:.1e} was asked for. Raise max_iter or "
                "gradient_tol, lower C, check the scale of X, or pass float64 data."
            )
        else:
            what = (
                f"where about {100 * min(excess, 1.0):.2g} % of the objective could still be "
                "gained, as it does where kernel values are very large. Scale X, lower gamma, "
                "degree or C, or raise max_iter."
            )
        warn_user(f"The last solve stopped {what}", ConvergenceWarning)

    def staged_decision_function(self, X: Any) -> Iterator[Array]:
        """Yield the scores at each size on the way, from the first round to the end.

        The sizes are ``history_["n_basis"]``. With ``basis="per_class"`` every machine is taken at
        the same stage of its own history, or as it ended where that was shorter. Coefficients of
        sizes before the last are solved less exactly, as they were while the basis grew. A learned
        basis has one stage, the end.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for "precomputed".

        Yields
        ------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        rows = self._validate_rows(X)
        readout = self._readout()
        for scores in self.model_.staged_scores(rows, self._stages, thread_count(self.n_jobs)):
            yield readout.decision(scores)

    def _readout(self) -> Readout:
        one_against_rest = "class_index" in self.history_
        link: Link = "one_against_rest" if one_against_rest else "softmax"
        return Readout(
            self.classes_,
            kind="binary" if len(self.classes_) == 2 else "multiclass",
            link=link if self._loss().gives_probabilities else None,
        )

    def _check_gives_probabilities(self) -> None:
        if not self._loss().gives_probabilities:
            raise AttributeError(
                f"loss={self.loss!r} gives scores, not probabilities. Use loss='logistic', or "
                "wrap the classifier in sklearn.calibration.CalibratedClassifierCV."
            )

    def _loss(self) -> Loss:
        return self.loss if isinstance(self.loss, Loss) else CLASS_LOSSES[self.loss]()

    def _check_parameters(self) -> None:
        check_integer("max_basis", self.max_basis, least=1)
        self._check_loss_weight()
        name = self.loss.name if isinstance(self.loss, Loss) else self.loss
        check_choice("loss", name, tuple(CLASS_LOSSES), ", or a Loss of these")
        self._check_kernel_parameters()
        check_choice("basis", self.basis, _BASES)
        if self.basis == "learned" and self.kernel != "rbf":
            raise ValueError(
                f"basis='learned' moves Gaussian units, so that kernel must be 'rbf', got "
                f"{self.kernel!r}."
            )
        check_choice("metric", self.metric, _METRICS)
        check_choice("solver", self.solver, _SOLVERS)
        if isinstance(self.learn_iter, str):
            check_choice("learn_iter", self.learn_iter, ("auto",), ", or an integer")
        else:
            check_integer("learn_iter", self.learn_iter, least=1)
        check_flag("early_stopping", self.early_stopping)
        check_real("validation_fraction", self.validation_fraction, positive=True)
        if self.validation_fraction >= 1:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction}."
            )
        check_integer("n_iter_no_change", self.n_iter_no_change, least=1)
        if isinstance(self.n_candidates, str):
            check_choice("n_candidates", self.n_candidates, ("all",), ", or an integer")
        else:
            check_integer("n_candidates", self.n_candidates, least=1)
        check_flag("fit_intercept", self.fit_intercept)
        check_real("tol", self.tol, least=0.0)
        check_real("gradient_tol", self.gradient_tol, positive=True)
        check_integer("max_iter", self.max_iter, least=1)
        check_flag("warm_start", self.warm_start)

    def _check_settings_of_basis(self) -> None:
        """Refuse settings that this kind of basis has no use for. Files may have such."""
        learned = self.basis == "learned"
        defaults = signature(SparseKernelClassifier).parameters
        for name in _OF_CHOSEN if learned else _OF_LEARNED:
            value, default = getattr(self, name), defaults[name].default
            if value != default:
                other = "'shared' or 'per_class'" if learned else "'learned'"
                raise ValueError(
                    f"{name}={value!r} is a setting of basis={other}, and basis={self.basis!r} has "
                    f"no use for it. Change basis, or leave {name} at {default!r}."
                )

    def _problems(self, labels: npt.NDArray[np.intp]) -> list[Problem]:
        loss, n_classes = self._loss(), len(self.classes_)
        if self.basis != "per_class":
            return [Problem(loss, loss.encode(labels, n_classes), n_classes)]
        # Of two classes, the machine of the second serves both.
        alone = range(n_classes) if n_classes > 2 else range(1, 2)
        signed = one_against_rest(loss)
        return [
            Problem(signed, signed.encode((labels != number).astype(np.intp), 1), 1)
            for number in alone
        ]

    def _grow(
        self,
        solver: GreedyNewton,
        objective: BasisObjective,
        state: GreedyState,
        rng: np.random.RandomState,
        progress: FitProgress,
        finished: list[Grown],
    ) -> Grown:
        basis, number = objective.basis, len(finished) + 1

        def attributes_so_far() -> dict[str, Any]:
            return self._fitted_attributes(basis.kernel, [*finished, Grown.of(basis, state)])

        def standing() -> str:
            machine = f"machine {number}, " if self.basis == "per_class" else ""
            stage = state.stages[-1]
            return f"{machine}{stage.n_basis} vectors, objective {stage.objective:.6g}"

        solver.solve(
            objective,
            state,
            rng,
            before_round=progress.begin_round,
            after_round=lambda: progress.end_round(attributes_so_far, standing),
        )
        if not state.converged:
            self._warn_not_converged(state.stages[-1].gradient, state.excess)
        if basis.takes_no_row:
            warn_user(
                "No row of X can be a basis vector: all of them have a kernel value of zero with "
                "themselves. So only the frequencies of the classes could be learned. Take a "
                "positive semi-definite kernel, and check X.",
                UserWarning,
            )
        elif basis.sees_one_row:
            warn_user(
                "The kernel sees all rows of X as equal, so that only the frequencies of the "
                "classes could be learned. Check X, its scale, and gamma.",
                UserWarning,
            )
        return Grown.of(basis, state)

    def _fitted_attributes(self, kernel: Kernel, grown: list[Grown]) -> dict[str, Any]:
        """Return the attributes of an estimator that consists of these machines."""
        if self.basis == "shared":
            (machine,) = grown
            indices, vectors = machine.indices, machine.vectors
            stages = [two_as_one(*expansion) for expansion in machine.expansions]
            history = machine.history
        else:
            indices, vectors, stages = merge(grown, n_classes=len(self.classes_))
            sizes = [len(machine.expansions) for machine in grown]
            history = {
                name: np.concatenate([machine.history[name] for machine in grown])
                for name in grown[0].history
            }
            history["class_index"] = np.repeat(np.arange(len(grown)), sizes)
        coef, intercept = stages[-1]
        return self._attributes_of(
            KernelExpansion(kernel, vectors, coef, intercept, n_features=self.n_features_in_),
            basis_indices_=np.maximum(indices, -1),
            objective_=float(sum(machine.history["objective"][-1] for machine in grown)),
            n_iter_=int(sum(machine.n_iter for machine in grown)),
            history_=history,
            stop_reason_=grown[-1].stop_reason,
            _stages=stages,
        )

    @staticmethod
    def _attributes_of(model: KernelExpansion, **others: Any) -> dict[str, Any]:
        return {"model_": model, **others}

    def _previous_fit(self) -> dict[str, Any] | None:
        if not self.warm_start or not hasattr(self, "model_"):
            return None
        names = ("classes_", "n_features_in_", "basis_", "basis_indices_", "dual_coef_")
        previous = {name: getattr(self, name) for name in (*names, "intercept_", "model_")}
        return previous | {
            "feature_names_in_": getattr(self, "feature_names_in_", None),
            "stages": self._stages,
        }

    def _check_same_problem(self, previous: dict[str, Any] | None) -> None:
        if previous is None:
            return
        if self.basis != "per_class" and len(previous["basis_indices_"]) > self.max_basis:
            raise ValueError(
                f"warm_start=True adds vectors, and the fit before has "
                f"{len(previous['basis_indices_'])}, more than max_basis={self.max_basis}. Set "
                "warm_start=False to start anew with fewer."
            )
        for name in ("classes_", "n_features_in_"):
            if not np.array_equal(previous[name], getattr(self, name)):
                raise ValueError(
                    f"warm_start=True needs the {name} of the fit before, {previous[name]}, but "
                    f"this data has {getattr(self, name)}. Set warm_start=False to start anew."
                )
        names, new_names = previous["feature_names_in_"], getattr(self, "feature_names_in_", None)
        if names is not None and new_names is not None and not np.array_equal(names, new_names):
            raise ValueError(
                "warm_start=True needs the features of the fit before, in their order: "
                f"{names.tolist()}, but this data has {new_names.tolist()}. Reorder the columns, "
                "or set warm_start=False to start anew."
            )

    def _warm_coefficients(
        self, previous: dict[str, Any] | None, basis: BasisColumns, machine: int
    ) -> Array | None:
        """Put the vectors of the fit before into the basis; return their column coefficients."""
        if previous is None:
            return None
        coef, intercept = previous["dual_coef_"], previous["intercept_"]
        vectors, indices = previous["basis_"], previous["basis_indices_"]
        places = np.arange(len(indices))
        if self.basis == "per_class":
            coef, intercept = coef[:, [machine]], intercept[[machine]]
            places = order_of_choice(previous["stages"], coef[:, 0], machine)
            coef, vectors, indices = coef[places], vectors[places], indices[places]
        elif coef.shape[1] == 1:
            # The two columns of a two-class problem are opposite at the optimum.
            coef, intercept = np.hstack([-coef, coef]) / 2, np.hstack([-intercept, intercept]) / 2
        if self._is_precomputed():
            if len(indices) and indices.max() >= basis.rows.shape[0]:
                raise ValueError(
                    "warm_start=True with a precomputed kernel needs the kernel matrix of the same "
                    f"training rows: the basis has row {indices.max()}, X has "
                    f"{basis.rows.shape[0]} rows."
                )
            left = basis.rows[indices]
            diagonal = basis.diagonal[indices]
        else:
            vectors = rows_like(vectors, basis.rows)
            left, diagonal = vectors, basis.kernel.diagonal(vectors)
            if not same_rows(basis.rows, indices, vectors):
                # No rows of this data: known by their place in the old basis, as -1, -2, ...
                indices = -1 - places
        kept = basis.extend(vectors, indices, left, diagonal)
        start = basis.column_coefficients(coef[kept], intercept)
        if kept.all():
            return start
        return start + basis.projection(left[~kept], diagonal[~kept], coef[~kept])

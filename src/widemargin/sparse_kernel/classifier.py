"""Sparse kernel machines: classifiers with a capped number of basis vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, Interrupted, all_or_nothing
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.estimation.resuming import STATE, fingerprint, keep, recall
from widemargin.estimation.targets import ClassTargets, TrainingRows
from widemargin.kernels import Kernel
from widemargin.losses import CLASS_LOSSES, Loss
from widemargin.models import KernelExpansion
from widemargin.readouts import Link, Readout, two_as_one
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.advice import warn_of_cap, warn_of_growth
from widemargin.sparse_kernel.grown import (
    GreedyFit,
    Grown,
    Growth,
    Problem,
    merge,
    objective_of,
)
from widemargin.sparse_kernel.learned_fit import LearnsBasis
from widemargin.sparse_kernel.settings import (
    BasisSettings,
    ChosenBasis,
    HasBasisSettings,
    LearnedBasis,
    as_basis,
)
from widemargin.sparse_kernel.warm_start import StartsWarm

Array: TypeAlias = npt.NDArray[Any]

_BEGIN_C = 10.0  # of C="auto": where it is chosen from, or what it is


def _stop_reason(reasons: list[str]) -> str:
    """Return that of the last machine, or the time limit where that ended any of them."""
    return "max_seconds" if "max_seconds" in reasons else reasons[-1]


@with_shared_texts
class SparseKernelClassifier(HasBasisSettings, LearnsBasis, StartsWarm, HasKernel):
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

    loss : str or Loss, default="weston_watkins"
        What a wrong row costs: a name of ``widemargin.losses.CLASS_LOSSES``, or one of these losses
        with parameters of its own, such as ``CrammerSinger(smoothing=0.2)``. "weston_watkins" is
        the squared hinge summed over the wrong classes (SMSVM), "crammer_singer" the squared hinge
        of the worst of them, "logistic" the multinomial logistic loss (ImVM), which adds
        ``predict_proba``. With ``basis="per_class"`` each class is set against the rest by
        ``loss.one_against_rest()``: the squared hinge, or the logistic loss for "logistic".

    C : float or "auto", default="auto"
        Weight of the summed loss against the regulariser. The papers' lambda is 1 / C. "auto" is 10
        where vectors are chosen. Where they are learned, rows that are held out choose it, from
        0.001 to 300: see :class:`LearnedBasis`; a warm start goes on with the one it finds.

    kernel : str, Kernel or callable, default="rbf"
        A name of ``widemargin.kernels.KERNEL_NAMES``, "rbf", "poly", "linear" or "precomputed" say;
        an object of :mod:`widemargin.kernels`; or any callable ``kernel(X, Y)`` that
        returns the matrix of values, such as the kernels of
        :mod:`sklearn.gaussian_process.kernels`. For "precomputed", X is the kernel matrix: square
        in ``fit``, with a column for each training row in ``predict``. For a kernel that is not
        positive semi-definite, as "sigmoid" is not, the regulariser is not K_JJ but a matrix near
        it that is.

    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels that are given by name. "scale" is 1 / (n_features * X.var()), or
        1 / (n_features * X.std()) for "laplacian"; rows count by ``sample_weight``. "auto" is
        1 / n_features for all of them. A learned basis begins with it, on standardised features
        unless its metric is "none"; "scale" then is 8 / mean squared distance of rows and vectors.

    |degree| |coef0|

    basis : {"shared", "per_class", "learned"}, ChosenBasis or LearnedBasis, default="shared"
        How vectors are found. "shared", ``ChosenBasis()``: one set of training rows for all
        classes. "per_class", ``ChosenBasis(per_class=True)``: a set for each class against the rest
        (Sparse-OVA); ``n_basis_`` then counts the different vectors. "learned",
        ``LearnedBasis()``: as many vectors as ``max_basis``, which are no training rows but move,
        with their widths and a metric, to where the objective is least; it needs far fewer of
        them. The kernel is "rbf", the regulariser ``1/2 |A|^2 + 1/2 |b|^2``. Objects take
        settings: :class:`ChosenBasis`, :class:`LearnedBasis`. A search reaches these as
        ``basis__metric`` and so on.

    fit_intercept : bool, default=True
        Whether each class has an intercept, regularised like the other coefficients.

    tol : float, default=1e-3
        Growth ends before ``max_basis`` when a vector lowers the objective by less than this,
        relative; a learned basis stops when a move lowers it by less than a tenth of this. 0
        switches the rule off.

    max_iter : int, default=100
        Newton steps a solve at the most.

    max_seconds : float or None, default=None
        Time limit, looked at after each round, the rehearsals of a learned basis being before the
        first one; the last solve comes after it. A fit that runs into
        it keeps the machine it has, with a warning.

    |class_weight|

    warm_start : bool, default=False
        Whether ``fit`` starts from the vectors and coefficients of the fit before (a learned basis:
        from vectors, widths and metric), and adds up to ``max_basis`` in all. Fewer than there are
        is an error. A fit that ``max_seconds``, a callback or Ctrl-C stopped goes on to the bit as
        if nothing had stopped it, if ``fit`` is called again with the same data and parameters
        (but ``max_seconds``, ``n_jobs`` and ``verbose``), after saving and loading too. For that it
        keeps what it had computed: as many numbers as rows times vectors.

    random_state : int, RandomState instance or None, default=None
        Seed for the draws of candidates; of a learned basis, for where vectors begin, rows that
        are held out and the order of batches. With a seed, results are the same to the bit.

    |n_jobs| |verbose|

    Attributes
    ----------
    |classes_| |n_features_in_| |feature_names_in_|
    n_basis_ : int
        Number of different basis vectors.
    basis_ : ndarray or CSR matrix of shape (n_basis, n_features)
        The vectors, in the order they were chosen. For a precomputed kernel, their row numbers.
    basis_indices_ : ndarray of shape (n_basis,)
        Their row numbers in X; -1 for vectors that are learned, or that a warm start brought from
        other data.
    dual_coef_ : ndarray of shape (n_basis, n_classes), or (n_basis, 1) for two classes
        Coefficients of the expansion.
    |coef_|
    linear_coef_ : ndarray of shape (n_features, n_classes), or (n_features, 1) for two classes
        Coefficients of the features themselves; only with ``LearnedBasis(linear_part=True)``.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts.
    C_ : float
        The C that the machine was fitted with.
    objective_ : float
        The objective at the end (summed over the machines with ``basis="per_class"``).
    n_iter_ : int
        Newton steps, all in all.
    history_ : dict of ndarray
        The way there, an entry a stage or move: ``n_basis``, ``objective``, ``seconds``,
        ``gradient`` (relative); with ``basis="per_class"`` also ``class_index``, one class after
        the other; with ``early_stopping`` also ``validation_score``; where vectors are learned
        from more than 3,000 rows, ``held_out_loss``, NaN in the midst of a cycle. Where Ctrl-C
        ended the fit of a learned basis, the estimator is as it was before, but for an entry
        ``last_good`` here: a fitted copy, after the last move that was finished.
    stop_reason_ : str
        Why growth ended: "max_basis", "tol", "callback", "max_seconds" or "exhausted" (every row is
        expressed by the basis); the last of the machines with ``basis="per_class"``, and
        "max_seconds" if that ended any of them. Why a learned basis moved no more: "max_iter" (its
        own, or what a rehearsal has found), "tol", "held_out" (the loss of rows that are held out
        rose, or no move lowers it), "early_stopping", "callback", "max_seconds", or "not_finite"
        (of the objective or its gradient, with a warning; the machine is the last one before).
    |model_| |readout_|

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
            *("C_", "_is_learned", "_stages", "basis_", "basis_indices_", "classes_", "dual_coef_"),
            *("history_", "intercept_", "n_basis_", "n_iter_", "objective_", "readout_"),
            "stop_reason_",
        }
    )

    def __init__(
        self,
        max_basis: int = 100,
        *,
        loss: str | Loss = "weston_watkins",
        C: float | str = "auto",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        basis: Any = "shared",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 100,
        max_seconds: float | None = None,
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
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
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
        previous = self._previous_fit()
        training = self._validate_training_data(X, y, sample_weight)
        self._check_same_problem(previous)
        if previous is None:
            warn_of_cap(self.max_basis, int(np.count_nonzero(training.caps)))
        rng = check_random_state(self.random_state)
        data = (X, y, sample_weight)  # for callbacks that score
        with one_blas_thread():
            if isinstance(self._basis(), LearnedBasis):
                progress, attributes = self._learn(training, previous, rng, data)
            else:
                progress, attributes = self._choose(training, previous, rng, data)
        self.__dict__.pop(STATE, None)
        self.__dict__.update(attributes)
        progress.end(lambda: attributes)
        return self

    def _choose(
        self,
        training: TrainingRows,
        previous: dict[str, Any] | None,
        rng: np.random.RandomState,
        data: tuple[Any, Any, Any],
    ) -> tuple[FitProgress, dict[str, Any]]:
        """Choose basis vectors among the rows; return the fitted attributes."""
        rows, caps = training.rows, training.caps
        kernel = self._make_kernel(rows, training.weights)
        settings = self._basis()
        assert isinstance(settings, ChosenBasis)
        solver = GreedyNewton(
            max_basis=self.max_basis,
            n_candidates=settings.n_candidates,
            tol=self.tol,
            gradient_tol=settings.gradient_tol,
            max_iter=self.max_iter,
        )
        problems, labels = self._problems(training.targets), training.targets.numbers
        resumed = recall(self, rows, labels, caps)
        if resumed is not None:
            previous = resumed["previous"]  # which the machines that are still to come begin with
        fit = GreedyFit(
            solver,
            [
                partial(
                    objective_of,
                    problem,
                    kernel,
                    rows,
                    caps,
                    fit_intercept=self.fit_intercept,
                    max_basis=self.max_basis,
                    n_threads=thread_count(self.n_jobs),
                )
                for problem in problems
            ],
            rng,
            partial(self._warm_coefficients, previous),
            resumed=resumed,
            keep=self.warm_start,
        )
        progress = FitProgress(self, len(problems) * solver.count_rounds(), *data)

        def state_of(packed: dict[str, Any]) -> dict[str, Any]:
            packed["previous"] = previous if len(problems) > 1 else None
            return keep(self, fingerprint(rows, labels, caps), packed)

        try:
            grown = fit.run(self._watched(fit, kernel, progress), partial(warn_of_growth, settings))
        except KeyboardInterrupt as stop:
            if not (self.warm_start and fit.has_begun):
                raise
            raise Interrupted(self, state=state_of(fit.stopped or fit.pack())) from stop
        attributes = self._fitted_attributes(kernel, grown)
        if attributes["stop_reason_"] == "max_seconds":
            warn_user(
                f"The fit was ended by max_seconds={self.max_seconds:g}, at "
                f"{attributes['model_'].n_basis} vectors; max_basis is {self.max_basis}. The "
                "machine is the one it had come to.",
                ConvergenceWarning,
            )
        if fit.stopped is not None:
            attributes[STATE] = state_of(fit.stopped)
        return progress, attributes

    def _watched(
        self, fit: GreedyFit, kernel: Kernel, progress: FitProgress
    ) -> Callable[[Growth], Progress]:
        """Return a function that makes what watches over the growth of a machine."""
        whole = Progress(self.max_seconds)

        def watch(growth: Growth) -> Progress:
            state, number = growth.state, len(fit.finished) + 1

            def attributes_so_far() -> dict[str, Any]:
                return self._fitted_attributes(kernel, [*fit.finished, growth.so_far()])

            def standing() -> str:
                machine = f"machine {number}, " if self._basis().per_class else ""
                size, value = (state.history[name][-1] for name in ("n_basis", "objective"))
                return f"{machine}{size} vectors, objective {value:.6g}"

            return Progress(
                max_seconds=whole.seconds_left(),
                before_round=progress.begin_round,
                after_round=lambda: progress.end_round(attributes_so_far, standing),
                earlier=state.history["seconds"][-1],
            )

        return watch

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
        for scores in self.model_.staged_scores(rows, self._stages, thread_count(self.n_jobs)):
            yield self.readout_.decision(scores)

    def _readout(self, *, one_against_rest: bool) -> Readout:
        """Return how scores are read that a fit with these parameters learns."""
        link: Link = "one_against_rest" if one_against_rest else "softmax"
        return Readout.of_classes(self.classes_, link if self._would_give_probabilities() else None)

    def _would_give_probabilities(self) -> bool:
        return self._loss().gives_probabilities

    def _why_no_probabilities(self) -> str:
        fitted = "the machine was fitted with another loss"
        which = fitted if self._would_give_probabilities() else f"loss={self.loss!r}"
        return (
            f"{which} gives scores, not probabilities. Fit with loss='logistic', or wrap the "
            "classifier in sklearn.calibration.CalibratedClassifierCV."
        )

    def _cap(self) -> float:
        return _BEGIN_C if isinstance(self.C, str) else float(self.C)

    def _loss(self) -> Loss:
        return self.loss if isinstance(self.loss, Loss) else CLASS_LOSSES[self.loss]()

    def _check_parameters(self) -> None:
        check_integer("max_basis", self.max_basis, least=1)
        if isinstance(self.C, str):
            check_choice("C", self.C, ("auto",), ", or a positive number")
        else:
            self._check_loss_weight()
        name = self.loss.name if isinstance(self.loss, Loss) else self.loss
        check_choice("loss", name, tuple(CLASS_LOSSES), ", or a Loss of these")
        self._check_kernel_parameters()
        basis = self._basis()
        if isinstance(basis, LearnedBasis) and self.kernel != "rbf":
            raise ValueError(
                f"A learned basis is of Gaussian units, so that kernel must be 'rbf', got "
                f"{self.kernel!r}."
            )
        basis.check()
        check_flag("fit_intercept", self.fit_intercept)
        check_real("tol", self.tol, least=0.0)
        check_integer("max_iter", self.max_iter, least=1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_flag("warm_start", self.warm_start)

    def _basis(self) -> BasisSettings:
        return as_basis(self.basis)

    def _problems(self, targets: ClassTargets) -> list[Problem]:
        loss, n_classes = self._loss(), len(targets.classes)
        if not self._basis().per_class:
            return [Problem(loss, targets.encode(loss), n_classes)]
        # Of two classes, the machine of the second serves both.
        alone = range(n_classes) if n_classes > 2 else range(1, 2)
        signed = loss.one_against_rest()
        return [Problem(signed, targets.encode_against_rest(signed, number), 1) for number in alone]

    def _fitted_attributes(self, kernel: Kernel, grown: list[Grown]) -> dict[str, Any]:
        """Return the attributes of an estimator that consists of these machines."""
        if not self._basis().per_class:
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
            stop_reason_=_stop_reason([machine.stop_reason for machine in grown]),
            C_=self._cap(),
            _is_learned=False,
            _stages=stages,
        )

    def _attributes_of(self, model: KernelExpansion, **others: Any) -> dict[str, Any]:
        readout = self._readout(one_against_rest="class_index" in others["history_"])
        return {"model_": model, "readout_": readout, **others}

"""Sparse kernel machines: classifiers with a capped number of basis vectors."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import all_or_nothing
from widemargin.estimation.targets import TrainingRows
from widemargin.losses import CLASS_LOSSES, Loss
from widemargin.readouts import Link, Readout, two_as_one
from widemargin.sparse_kernel.grown import Problem
from widemargin.sparse_kernel.machine import SparseKernelMachine

Array: TypeAlias = npt.NDArray[Any]


@with_shared_texts
class SparseKernelClassifier(SparseKernelMachine):
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
        A name of ``widemargin.kernels.KERNEL_NAMES``, "rbf", "chi2", "linear" or "precomputed" say;
        an object of :mod:`widemargin.kernels`, such as a ``KernelSum`` of several over groups of
        columns; or any callable ``kernel(X, Y)`` that returns the matrix of values, such as the
        kernels of :mod:`sklearn.gaussian_process.kernels`. "chi2" is for histograms and counts,
        and takes no negative entries. For "precomputed", X is the kernel matrix: square
        in ``fit``, with a column for each training row in ``predict``. For a kernel that is not
        positive semi-definite, as "sigmoid" is not, the regulariser is not K_JJ but a matrix near
        it that is.

    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels that are given by name. "scale" is 1 / (n_features * X.var()), or
        1 / (n_features * X.std()) for "laplacian", or 1 / mean chi-square distance of rows to their
        mean for "chi2"; rows count by ``sample_weight``. "auto" is 1 / n_features for all of them.
        A learned basis begins with it, on standardised features
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

    _quick_settings: ClassVar[dict[str, Any]] = {"max_basis": 30}
    _losses = CLASS_LOSSES

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
        progress, _, attributes = self._fit(X, y, sample_weight)
        self._keep(progress, attributes)
        return self

    def _problems(self, training: TrainingRows) -> list[Problem]:
        targets = training.targets
        loss, n_classes = self._loss(), len(targets.classes)
        if not self._basis().per_class:
            return [Problem(loss, targets.encode(loss), n_classes)]
        # Of two classes, the machine of the second serves both.
        alone = range(n_classes) if n_classes > 2 else range(1, 2)
        signed = loss.one_against_rest()
        return [Problem(signed, targets.encode_against_rest(signed, number), 1) for number in alone]

    def _readout(self, training: Any, *, one_against_rest: bool) -> Readout:
        link: Link = "one_against_rest" if one_against_rest else "softmax"
        return Readout.of_classes(self.classes_, link if self._would_give_probabilities() else None)

    def _kept(self, training: Any, coef: Array, intercept: Array) -> tuple[Array, Array]:
        return two_as_one(coef, intercept)

    def _row_groups(self, training: TrainingRows) -> npt.NDArray[np.intp]:
        return training.targets.numbers

    def _begin_with(
        self, training: TrainingRows, coef: Array, intercept: Array
    ) -> tuple[Array, Array]:
        if coef.shape[1] > 1:
            return coef, intercept
        # The two columns of a two-class problem are opposite at the optimum.
        return np.hstack([-coef, coef]) / 2, np.hstack([-intercept, intercept]) / 2

"""Sparse kernel machines of label sets, with a prior over labels."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import all_or_nothing
from widemargin.estimation.labels import HasLabels, LabelRows
from widemargin.estimation.targets import LabelTargets
from widemargin.losses import LABEL_LOSSES, Loss
from widemargin.readouts import Link, Readout
from widemargin.sparse_kernel.effort import Trial
from widemargin.sparse_kernel.grown import Problem
from widemargin.sparse_kernel.learned import Judges
from widemargin.sparse_kernel.learning_rows import dense_rows
from widemargin.sparse_kernel.machine import SparseKernelMachine

Array: TypeAlias = npt.NDArray[Any]


@with_shared_texts
class SparseKernelMultiLabelClassifier(  # type: ignore[misc]  # rows of labels, not of classes
    HasLabels, SparseKernelMachine
):
    """Kernel classifier of label sets with a cap on the number of basis vectors.

    The scores of all labels are expansions in one small set J of training rows,
    ``F = K_.J A + b``, chosen greedily to minimise ::

        1/2 tr(R^-1 A' K_JJ A) + 1/2 b' R^-1 b + C sum_i weight_i sum_l loss(f_il, y_il)

    with A of shape (n_basis, n_labels), and the identity for R where there is no prior. Prediction
    costs at most ``max_basis`` kernel values a row, which all labels share. This is SM3L, and
    SM3L-P with a prior [1]_.

    Parameters
    ----------
    max_basis : int, default=100
        Basis vectors at the most, for all labels together.

    |label_prior|

    loss : {"squared_hinge", "logistic", "huberised_squared_hinge"} or Loss, default="squared_hinge"
        What a wrong label costs. "squared_hinge" is ``1/2 max(0, 1 - y f)^2``, with y of -1 and 1;
        "logistic" adds ``predict_proba``, a probability for each label;
        "huberised_squared_hinge" is linear beyond a violation of ``delta``, for labels of which
        some are wrong. Or one of :class:`widemargin.losses.SquaredHinge`, ``BinaryLogistic`` and
        ``HuberisedSquaredHinge`` with parameters of its own.

    C : float or "auto", default="auto"
        Weight of the summed loss against the regulariser. "auto" is 1 where vectors are chosen.
        Where they are learned, rows that are held out choose it: see :class:`LearnedBasis`.

    |kernel| |gamma| |degree| |coef0|

    basis : {"shared", "learned"}, ChosenBasis or LearnedBasis, default="shared"
        How vectors are found. "shared", ``ChosenBasis()``: one set of training rows for all
        labels. "learned", ``LearnedBasis()``: as many vectors as ``max_basis``, which move to where
        the objective is least; the kernel is "rbf" and the regulariser that of A itself,
        ``1/2 tr(R^-1 A'A)``. With a prior, stochastic steps take labels as unrelated while they
        move vectors; the coefficients that follow, and moves by projection, know the prior.

    fit_intercept : bool, default=True
        Whether each label has an intercept, regularised like the other coefficients.

    tol : float, default=1e-3
        Growth ends before ``max_basis`` when a vector lowers the objective by less than this,
        relative; a learned basis stops when a move lowers it by less than a tenth of this. 0
        switches the rule off.

    max_iter : int, default=100
        Newton steps a solve at the most.

    |max_seconds|

    |label_class_weight| |label_threshold| |label_threshold_metric| |label_probability|
    |label_sparse_output|

    warm_start : bool, default=False
        Whether ``fit`` starts from the vectors and coefficients of the fit before, and adds up to
        ``max_basis`` in all; a fit that was stopped goes on to the bit. As in
        :class:`SparseKernelClassifier`.

    random_state : int, RandomState instance or None, default=None
        Seed for the draws of candidates, the rows that are held out, and folds of thresholds. With
        a seed, results are the same to the bit.

    |n_jobs| |verbose|

    Attributes
    ----------
    |label_classes_| |label_n_labels_| |label_thresholds_| |n_features_in_| |feature_names_in_|
    n_basis_ : int
        Number of basis vectors.
    basis_ : ndarray or CSR matrix of shape (n_basis, n_features)
        The vectors, in the order they were chosen. For a precomputed kernel, their row numbers.
    basis_indices_ : ndarray of shape (n_basis,)
        Their row numbers in X; -1 for vectors that are learned, or that a warm start brought from
        other data.
    |label_dual_coef_| |label_coef_|
    linear_coef_ : ndarray of shape (n_features, n_labels)
        Coefficients of the features themselves; only with ``LearnedBasis(linear_part=True)``.
    |label_intercept_|
    C_ : float
        The C that the machine was fitted with.
    objective_ : float
        The objective at the end, of the labels that vary.
    n_iter_ : int
        Newton steps, all in all.
    history_ : dict of ndarray
        The way there, an entry a stage or move; see :class:`SparseKernelClassifier`.
    stop_reason_ : str
        Why growth ended, or vectors moved no more; see :class:`SparseKernelClassifier`.
    |model_| |label_readout_|

    See Also
    --------
    SparseKernelClassifier : Rows of one class each.
    widemargin.priors : Which labels go together.
    sklearn.multiclass.OneVsRestClassifier : One machine a label, each with vectors of its own.

    References
    ----------
    .. [1] T. Ganu, S. Shevade, S. Sundararajan, "Sparse Max-Margin Multiclass and Multi-label
       Classifier Design for Fast Inference", SIAM International Conference on Data Mining, 2013.
    .. [2] B. Hariharan, L. Zelnik-Manor, S. V. N. Vishwanathan, M. Varma, "Large Scale Max-Margin
       Multi-Label Classification with Priors", International Conference on Machine Learning, 2010.
    .. [3] R.-E. Fan, C.-J. Lin, "A Study on Threshold Selection for Multi-label Classification",
       National Taiwan University, 2007.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from widemargin import SparseKernelMultiLabelClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> machine = SparseKernelMultiLabelClassifier(max_basis=10, random_state=0).fit(X, Y)
    >>> machine.predict(X[:2]).shape
    (2, 5)
    >>> machine.predict_top_k(X[:2], k=3).shape
    (2, 3)
    """

    _quick_settings: ClassVar[dict[str, Any]] = {"max_basis": 30}
    _losses = LABEL_LOSSES
    _auto_weight = 1.0

    def __init__(
        self,
        max_basis: int = 100,
        *,
        prior: Any = None,
        loss: str | Loss = "squared_hinge",
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
        threshold: Any = 0.0,
        threshold_metric: str = "macro",
        probability: bool = False,
        sparse_output: bool = False,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_basis = max_basis
        self.prior = prior
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
        self.threshold = threshold
        self.threshold_metric = threshold_metric
        self.probability = probability
        self.sparse_output = sparse_output
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose or learn the basis vectors and fit their coefficients.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; the kernel matrix of shape (n_samples, n_samples) for "precomputed".
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            1 where a row has a label, else 0. Columns of a data frame name the labels. A label that
            no row has, or every row, is always answered so, with a warning.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there.

        Returns
        -------
        self : SparseKernelMultiLabelClassifier
        """
        progress, training, attributes = self._fit(X, y, sample_weight)
        attributes["readout_"] = self._label_readout(training, self._link())
        self._keep(progress, attributes)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_label_parameters()
        if self._basis().per_class:
            raise ValueError(
                "basis must be one for all labels, 'shared' or 'learned': a basis of its own for "
                "each label is what sklearn.multiclass.OneVsRestClassifier makes."
            )

    def _problems(self, training: LabelRows) -> list[Problem]:
        prior = self._label_prior(training)
        loss, targets = self._loss(), training.learned_targets
        if training.weighs_labels:
            return [Problem(loss.weighed(), training.signed_weights(), targets.n_outputs, prior)]
        return [Problem(loss, targets.encode(loss), targets.n_outputs, prior)]

    def _link(self) -> Link | None:
        return "one_against_rest" if self._would_give_probabilities() else None

    def _why_no_probabilities(self) -> str:
        return (
            "This machine gives scores, not probabilities. Fit with loss='logistic', or set "
            "probability=True and fit again."
        )

    def _readout(self, training: LabelRows, *, one_against_rest: bool) -> Readout:
        return self._label_readout(training, self._link(), tunes=False)

    def _kept(self, training: LabelRows, coef: Array, intercept: Array) -> tuple[Array, Array]:
        return training.of_all_labels(coef, intercept, is_logistic=self._would_give_probabilities())

    def _row_groups(self, training: LabelRows) -> npt.NDArray[np.intp]:
        return training.learned_targets.set_numbers()

    def _judges(self, trial: Trial, problem: Problem, training: LabelRows) -> Judges:
        targets = LabelTargets.of(trial.y).take_labels(training.learned)
        rows = np.ascontiguousarray(dense_rows(trial.X), dtype=np.float64)
        weights = np.ones(len(rows)) if trial.sample_weight is None else trial.sample_weight
        encoded = targets.encode(problem.loss)
        if training.weighs_labels:
            encoded = training.weighed_signs(encoded)
        return Judges(rows, targets.set_numbers(), encoded, np.asarray(weights))

    def _begin_with(
        self, training: LabelRows, coef: Array, intercept: Array
    ) -> tuple[Array, Array]:
        return coef[:, training.learned], intercept[training.learned]

"""Linear machines of label sets, with a prior over labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._system.file_changes import Added, Change
from widemargin._system.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
    check_verbose,
)
from widemargin._system.threads import thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.estimation.labels import HasLabels, LabelRows
from widemargin.estimation.weights import check_loss_weight
from widemargin.models import LinearMap
from widemargin.readouts import Readout
from widemargin.solvers.label_margins import MARGIN_LOSSES, check_dominant
from widemargin.solvers.linear.dual_ascent import (
    DualAscent,
    DualAscentState,
    LabelProblem,
    standing,
)

Array: TypeAlias = npt.NDArray[Any]

_KEPT = "_row_coef"  # dual coefficients, of shape (n_samples, n_labels), for a warm start


@dataclass(kw_only=True)
class _Training(LabelProblem):
    """The problem of a fit, and what else its attributes are made of."""

    training: LabelRows
    readout: Readout


@with_shared_texts
class LinearMultiLabelClassifier(HasLabels):
    """Linear support vector machine of label sets, with a prior over labels; for wide sparse rows.

    The scores of all labels, ``f_l(x) = x . w_l + b_l``, minimise ::

        1/2 tr(R^-1 (W W' + b b')) + 2 C sum_i weight_i sum_l max(0, 1 - y_il f_l(x_i))

    with y of -1 and 1, where W has a row for each label and R is the prior: this is linear M3L with
    the Hamming loss, by which a wrong label costs 2. Without a prior labels are machines of their
    own, those of ``LinearSVC(loss="hinge", C=2 * C)``. One look at a row serves all labels of a
    block, and the fit ends by a certificate, the duality gap.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the regulariser.

    |label_prior| |label_loss|

    fit_intercept : bool, default=True
        Whether each label has an intercept. It is the weight of a constant feature, and regularised
        and related by the prior like all weights.

    intercept_scaling : float, default=1.0
        The value of that feature. The larger it is, the less the regulariser is felt.

    tol : float, default=1e-3
        Duality gap at which a fit ends, as a share of the objective: of each label, or of all
        labels that the prior relates.

    max_iter : int, default=1000
        Passes over the rows at the most.

    |max_seconds| |label_class_weight|

    warm_start : bool, default=False
        Whether ``fit`` starts from the dual coefficients of the fit before, each row from those of
        the row that was in its place, and further rows without any; C, the prior, Y and weights may
        have changed. They are kept for that, a sparse number for each row and label, and saved with
        the machine. A fit that was stopped, by ``max_seconds``, a callback or Ctrl-C, goes on where
        it was, to the bit, if rows and parameters are the same.

    |label_threshold| |label_threshold_metric| |label_probability|
    |label_sparse_output|

    random_state : int, RandomState instance or None, default=None
        Seed for the order of rows. With a seed, results are the same to the bit.

    |n_jobs| |verbose|

    Attributes
    ----------
    |label_classes_| |label_n_labels_| |label_thresholds_| |n_features_in_| |feature_names_in_|
    coef_ : array or CSR matrix of shape (n_labels, n_features)
        Weights of the features; sparse where that takes less memory.
    |label_intercept_|
    objective_ : float
        The primal objective.
    dual_objective_ : float
        The dual objective, which is never larger.
    gap_ : float
        The difference, found from the scores of all rows: how far the objective is from the best at
        the most.
    n_iter_ : int
        Passes over the rows, of the label that took most.
    stop_reason_ : str
        Why the fit ended: "tol", "max_iter", "max_seconds", "callback", "interrupted", or "stuck"
        (rounding leaves no step that improves the machine; with a warning).
    history_ : dict of ndarray
        The way there: ``epoch`` (passes), ``seconds``, ``dual``, ``primal``, ``gap`` (infinite
        before all labels are done), ``labels_done``, ``active_rows`` (the most that a block of
        labels still goes through). Where Ctrl-C ended the fit, the estimator is as it was before,
        but for an entry ``last_good`` here: a fitted copy.
    model_ : LinearMap
        What predicts.
    |label_readout_|

    See Also
    --------
    sklearn.svm.LinearSVC : With ``OneVsRestClassifier`` the same machine without a prior.

    References
    ----------
    .. [1] B. Hariharan, S. V. N. Vishwanathan, M. Varma, "Efficient max-margin multi-label
       classification with applications to zero-shot learning", Machine Learning, 2012.
    .. [2] C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan, "A Dual Coordinate
       Descent Method for Large-scale Linear SVM", International Conference on Machine Learning,
       2008.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.preprocessing import normalize
    >>> from widemargin import LinearMultiLabelClassifier, priors
    >>> X, Y = make_multilabel_classification(n_classes=4, random_state=0)
    >>> X = normalize(X)
    >>> machine = LinearMultiLabelClassifier(prior=priors.from_labels(Y), random_state=0).fit(X, Y)
    >>> bool(machine.gap_ <= 1e-3 * machine.objective_)
    True
    >>> machine.predict(X[:3]).shape
    (3, 4)
    """

    _model_type = LinearMap
    _model_parts = frozenset({"intercept_"})
    _fitted_names = frozenset(
        {
            *("classes_", "dual_objective_", "gap_", "history_", "intercept_", "n_iter_"),
            *("objective_", "readout_", "stop_reason_"),
        }
    )

    _optional_fitted_names = HasLabels._optional_fitted_names | {_KEPT}
    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType({"loss": Added(6)})

    def __init__(
        self,
        C: float = 1.0,
        *,
        prior: Any = None,
        loss: str = "hinge",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_seconds: float | None = None,
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
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.max_seconds = max_seconds
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
            Training rows.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            1 where a row has a label, else 0.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a row of weight 0 might as well not be there.

        Returns
        -------
        self : LinearMultiLabelClassifier
        """
        self._check_parameters()
        training = self._validate_training_data(X, y, sample_weight)
        problem = self._problem(training)
        checkpoint = Checkpoint(self, problem.rows, problem.indicator, problem.caps)
        solver, packed = DualAscent(), checkpoint.found()
        if packed is None:
            start = self._start(problem) if self.warm_start else None
            state = solver.init(problem, check_random_state(self.random_state), start)
        else:
            state = DualAscentState.unpack(packed, problem)
        told = FitProgress(self, None, X, y, sample_weight)
        attributes = run_fit(self, solver, problem, state, checkpoint, told, standing)
        self._warn_of_the_end(attributes)
        for name in ("_state", _KEPT):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        return self

    def _problem(self, training: LabelRows) -> _Training:
        rows, indicator = training.rows, training.learned_targets.indicator
        caps, learned = 2.0 * training.caps, training.learned
        if not caps.all():
            used = np.flatnonzero(caps)
            rows, indicator, caps = rows[used], indicator[used], caps[used]
        prior = self._label_prior(training)
        is_correlated = False
        if self.loss == "correlated_hamming" and prior is not None:
            is_correlated = True
            check_dominant(prior.matrix, training.targets.classes[learned])
        return _Training(
            rows=rows,
            indicator=indicator,
            caps=caps,
            with_label=training.with_label[learned],
            without_label=training.without_label[learned],
            prior=None if prior is None else prior.matrix,
            constant=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            n_threads=thread_count(self.n_jobs),
            is_correlated=is_correlated,
            training=training,
            readout=self._label_readout(training),
        )

    def _attributes_of(
        self, state: DualAscentState, reason: str, problem: _Training
    ) -> dict[str, Any]:
        found = DualAscent().finish(problem, state)
        coef, intercept = problem.training.of_all_labels(found.coef, found.intercept)
        dual, gap = float(found.duals.sum()), max(float(found.gaps.sum()), 0.0)
        kept = {_KEPT: self._of_all_rows(state, problem)} if self.warm_start else {}
        return {
            **kept,
            "model_": LinearMap.in_the_smaller_form(coef, intercept),
            "readout_": problem.readout,
            "objective_": dual + gap,
            "dual_objective_": dual,
            "gap_": gap,
            "n_iter_": state.passes,
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in state.history.items()},
        }

    def _of_all_rows(self, state: DualAscentState, problem: _Training) -> sp.csr_matrix:
        """Return the coefficients of all rows and labels, those that none are learned of too."""
        training = problem.training
        found = state.coefficients(problem).tocoo()
        used = np.flatnonzero(training.caps)
        places = used[found.row], training.learned[found.col]
        shape = (len(training.caps), training.targets.n_outputs)
        return sp.csr_matrix((found.data, places), shape=shape)

    def _start(self, problem: _Training) -> sp.csr_matrix | None:
        """Return the coefficients of the fit before for the rows and labels of this one."""
        kept = self.__dict__.get(_KEPT)
        if kept is None:
            return None
        training, before = problem.training, self.readout_.classes
        n_features = self.model_.n_features
        if not np.array_equal(before, self.classes_) or n_features != self.n_features_in_:
            raise ValueError(
                f"warm_start=True needs the labels and features of the fit before, {before} and "
                f"{n_features}, but this data has {self.classes_} and {self.n_features_in_}. Set "
                "warm_start=False to start anew."
            )
        kept = kept.copy()
        kept.resize(len(training.caps), kept.shape[1])
        return kept[np.flatnonzero(training.caps)][:, training.learned]

    def _make_way_for(self, model: Any) -> None:
        super()._make_way_for(model)
        self.__dict__.pop(_KEPT, None)

    def _warn_of_the_end(self, attributes: dict[str, Any]) -> None:
        reason, gap = attributes["stop_reason_"], attributes["gap_"]
        ways = {
            "max_iter": f"after max_iter={self.max_iter} passes over the rows. Raise max_iter",
            "max_seconds": f"after max_seconds={self.max_seconds}. Raise max_seconds",
            "stuck": "as rounding leaves no step that improves the machine. Scale the features",
        }
        if reason in ways:
            share = gap / attributes["objective_"] if attributes["objective_"] > 0 else np.inf
            warn_user(
                f"The fit ended with a duality gap of {share:.2g} of the objective, where tol is "
                f"{self.tol:g}, {ways[reason]}, lower C, or raise tol.",
                ConvergenceWarning,
            )

    def _check_parameters(self) -> None:
        check_loss_weight(self.C, "labels")
        check_choice("loss", self.loss, MARGIN_LOSSES)
        check_flag("fit_intercept", self.fit_intercept)
        check_real("intercept_scaling", self.intercept_scaling, positive=True)
        check_real("tol", self.tol, positive=True)
        check_integer("max_iter", self.max_iter, least=1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_flag("warm_start", self.warm_start)
        check_random_state(self.random_state)
        check_verbose(self.verbose)
        self._check_label_parameters()

    def _why_no_probabilities(self) -> str:
        return (
            "LinearMultiLabelClassifier gives scores, not probabilities: the hinge loss has none. "
            "Set probability=True and fit again, or take decision_function, which ranks labels."
        )

"""Sparse machines of label sets that choose their own size, weight of the loss and width."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.metrics import check_scoring, f1_score
from sklearn.model_selection import check_cv

from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import all_or_nothing
from widemargin.estimation.labels import HasLabels, LabelRows
from widemargin.estimation.splits import Split
from widemargin.estimation.thresholds import label_folds
from widemargin.losses import Loss
from widemargin.sparse_kernel.multilabel import SparseKernelMultiLabelClassifier
from widemargin.sparse_kernel.searching import SearchesSettings

_FEW_ROWS = 2000  # up to which there are five folds, and four beyond
_REPEATED_ROWS = 1000  # below which rows are dealt to folds twice
_MOST_FIRST = 16  # vectors that "auto" begins with, however many labels there are


def mean_of_f1(machine: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the mean of micro and macro F1 of a machine on rows with labels."""
    told = machine.predict(X)
    each = [
        f1_score(y, told, average=average, sample_weight=sample_weight, zero_division=0)
        for average in ("micro", "macro")
    ]
    return float(np.mean(each))


@with_shared_texts
class SparseKernelMultiLabelClassifierCV(SearchesSettings, HasLabels):
    """Small kernel classifier of label sets that chooses its size and settings by cross-validation.

    Chooses ``C``, the metric of a learned basis and whether it has a linear part, the starting
    width and the number of vectors of a :class:`SparseKernelMultiLabelClassifier`, and fits it to
    all rows. The way is that of :class:`SparseKernelClassifierCV`.

    Parameters
    ----------
    max_basis : "auto", int or sequence of int, default="auto"
        Numbers of vectors to choose from, rising. "auto" begins with one a label, but 16 at the
        most, and doubles until that has brought nothing twice, up to 256 and to half of the rows
        that are learned from.

    Cs : "auto" or array-like, default="auto"
        Weights of the summed loss to choose from; "auto" as in :class:`SparseKernelClassifierCV`.

    widths : "auto" or array-like, default="auto"
        Factors of the ``gamma`` that "scale" stands for, to choose from; "auto" as in
        :class:`SparseKernelClassifierCV`.

    basis : {"learned", "shared"}, LearnedBasis or ChosenBasis, default="learned"
        Whether vectors are learned, or chosen from the training rows.

    |label_prior|

    loss : {"squared_hinge", "logistic", "huberised_squared_hinge"} or Loss, default="squared_hinge"
        What a wrong label costs, as for :class:`SparseKernelMultiLabelClassifier`.

    cv : int, cross-validation splitter, iterable or None, default=None
        How rows are split. None: 5 folds, 4 for more than 2,000 rows; fewer than 1,000 rows are
        split twice. An integer: that many folds. Rows are dealt to these so that each has its share
        of the rare labels. A label may be missing among the rows to learn from in a split.

    scoring : str or callable, default=None
        What is best: a name of scikit-learn's, or a callable ``scorer(machine, X, y)``, which is
        also given ``sample_weight`` where ``fit`` is. None is the mean of micro and macro F1.

    one_standard_error : bool, default=True
        Whether the fewest vectors are taken whose mean score is at most one standard error below
        the best, instead of the best. Never more than a quarter of a point (0.0025) is given away,
        nor more than a tenth of what the best score lacks of 1, nor, of learned vectors, more than
        2 % of the loss of the rows that judge.

    refit : bool, default=True
        Whether a machine is fitted to all rows in the end. Without it nothing is predicted.

    fit_intercept : bool, default=True
        Whether each label has an intercept.

    max_seconds : float or None, default=None
        Time limit. The search ends after 60 % of it, with a warning, and takes the best that it has
        found; the last fit has the rest. Rounds that have begun are finished.

    |label_class_weight| |label_threshold| |label_threshold_metric| |label_probability|
    |label_sparse_output|

    random_state : int, RandomState instance or None, default=None
        Seed for splits, draws of rows, and fits. With a seed, results are the same to the bit.

    n_jobs : int, default=None
        Number of processes in the search, and of threads in the last fit. None is 1, -1 all cores.
        It changes the speed and nothing else.

    verbose : int, default=0
        Above 0, ``fit`` prints how far it has come; above 1, also for each round of the last fit.

    Attributes
    ----------
    best_params_ : dict
        ``C``, ``gamma`` and ``max_basis`` of the machine that was chosen, and its ``basis`` where
        that is a learned one. Thresholds that are tuned are tuned for it alone: machines of the
        search have 0.
    best_score_ : float
        Its mean score over the splits, a little too good: it is the best of several.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of ndarray
        An entry for each candidate, as in :class:`SparseKernelClassifierCV`.
    n_splits_ : int
        Number of splits.
    best_estimator_ : SparseKernelMultiLabelClassifier
        The machine that was fitted to all rows. It is put together whenever it is asked for.
    |label_classes_| |label_n_labels_| |label_thresholds_| |n_features_in_| |feature_names_in_|
    model_ : KernelExpansion
        What predicts.
    |label_readout_|
    n_basis_, basis_, basis_indices_, dual_coef_, linear_coef_, intercept_, C_, objective_, \
n_iter_, history_, stop_reason_ :
        Those of ``best_estimator_``.

    See Also
    --------
    SparseKernelMultiLabelClassifier : The machine with settings of one's own.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from widemargin import SparseKernelMultiLabelClassifierCV
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> search = SparseKernelMultiLabelClassifierCV([4, 8], Cs=[1.0], cv=2, random_state=0)
    >>> search.fit(X, Y).n_basis_ in (4, 8)
    True
    """

    _quick_settings: ClassVar[dict[str, Any]] = {
        "max_basis": [2, 4],
        "Cs": [1.0, 10.0],
        "widths": [1.0],
        "basis": "shared",
        "cv": 2,
    }

    def __init__(
        self,
        max_basis: Any = "auto",
        *,
        Cs: Any = "auto",
        widths: Any = "auto",
        basis: Any = "learned",
        prior: Any = None,
        loss: str | Loss = "squared_hinge",
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = True,
        refit: bool = True,
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        class_weight: Any = None,
        threshold: Any = 0.0,
        threshold_metric: str = "macro",
        probability: bool = False,
        sparse_output: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_basis = max_basis
        self.Cs = Cs
        self.widths = widths
        self.basis = basis
        self.prior = prior
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.threshold = threshold
        self.threshold_metric = threshold_metric
        self.probability = probability
        self.sparse_output = sparse_output
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the settings, and fit a machine with them to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            1 where a row has a label, else 0. Columns of a data frame name the labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in fits and in scores.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that belong together, for a splitter ``cv`` that goes by them.

        Returns
        -------
        self : SparseKernelMultiLabelClassifierCV
        """
        self._search(X, y, sample_weight, groups)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of predictions: ``scoring``, or the mean of micro and macro F1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels)
            Indicators of their labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        if self.scoring is None:
            return mean_of_f1(self, X, y, sample_weight)
        return self._scored(X, y, sample_weight)

    def _machine(self, **settings: Any) -> SparseKernelMultiLabelClassifier:
        names = ("basis", "prior", "loss", "fit_intercept", "class_weight")
        labels = ("threshold", "threshold_metric", "probability", "sparse_output")
        shared = {name: getattr(self, name) for name in (*names, *labels)}
        return SparseKernelMultiLabelClassifier(**(shared | settings))

    def _machine_of_search(self, seed: int) -> SparseKernelMultiLabelClassifier:
        plain: dict[str, Any] = {"probability": False, "sparse_output": False}
        if isinstance(self.threshold, str):
            plain["threshold"] = 0.0
        return self._machine(random_state=seed, **plain)

    def _told(self, data: LabelRows) -> Any:
        return data.targets.indicator

    def _splits(self, data: LabelRows, seed: int, groups: Any) -> list[Split]:
        used = np.flatnonzero(data.weights > 0)
        indicator = data.targets.indicator
        if self.cv is None or isinstance(self.cv, (int, np.integer)):
            n_folds = int(self.cv or (5 if len(used) <= _FEW_ROWS else 4))
            if len(used) < 2 * n_folds:
                raise ValueError(
                    f"cv={n_folds} folds need {2 * n_folds} rows of positive weight or more, got "
                    f"n_samples={len(used)}. Lower cv, or pass more rows."
                )
            repeats = 2 if self.cv is None and len(used) < _REPEATED_ROWS else 1
            seeds = range(seed, seed + repeats)
            return [
                split for each in seeds for split in label_folds(indicator, used, each, n_folds)
            ]
        parts = check_cv(self.cv).split(data.rows, indicator, groups)
        places = np.arange(len(data.weights))
        weighed = [
            tuple(places[part][data.weights[places[part]] > 0] for part in split) for split in parts
        ]
        if not weighed or not all(len(part) for split in weighed for part in split):
            raise ValueError(
                "cv must give at least one split, each with rows to learn from and rows of "
                "positive weight to judge by."
            )
        return [(train, test) for train, test in weighed]

    def _scorer(self, machine: Any) -> Any:
        return mean_of_f1 if self.scoring is None else check_scoring(machine, scoring=self.scoring)

    def _least_size(self) -> int:
        return int(np.clip(len(self.classes_), 2, _MOST_FIRST))

"""Sparse kernel machines that choose their own size, weight of the loss and width."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, ClassVar, Self

from sklearn.base import ClassifierMixin
from sklearn.metrics import check_scoring

from widemargin._system.file_changes import Added
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import all_or_nothing
from widemargin.estimation.splits import Split, make_splits
from widemargin.losses import Loss
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.searching import SearchesSettings


@with_shared_texts
class SparseKernelClassifierCV(SearchesSettings):
    """Small kernel classifier that chooses its size and settings by cross-validation.

    Chooses ``C``, the metric of a learned basis and whether it has a linear part, the starting
    width and the number of vectors of a :class:`SparseKernelClassifier`, and fits it to all rows.
    All but the number of vectors comes first, at a middle size and on at most 3,000 rows; if
    another metric is about as good there, more rows or splits decide. Then comes the number of
    vectors, on at most 20,000 rows. Machines with a learned basis choose C, and when to stop, for
    themselves, by the rows that judge them; the C of a chosen basis is looked at once more, at the
    number of vectors that was chosen.

    Parameters
    ----------
    max_basis : "auto", int or sequence of int, default="auto"
        Numbers of vectors to choose from, rising. "auto" begins with one a class and doubles until
        that has brought nothing twice, up to 256 and to half of the rows that are learned from.
    Cs : "auto" or array-like, default="auto"
        Weights of the summed loss to choose from. With "auto", each machine with a learned basis
        chooses for itself, from 0.001 to 300, the one of the least loss on the rows that judge it.
        Of a chosen basis, "auto" begins with 10 and goes on by powers of ten while scores rise by
        more than chance, from 0.001 to 10,000; it ends with half powers on both sides, and goes on
        by these in the same way once the number of vectors is chosen.
    widths : "auto" or array-like, default="auto"
        Factors of the ``gamma`` that "scale" stands for, to choose from. A learned basis only
        starts with it: "auto" is 1 for each metric, and 1/8 for the best of them. Of a chosen basis
        "auto" begins with 1, and goes on by factors of 2 while scores rise by more than chance,
        from 1/8 to 8.
    basis : {"learned", "shared"}, LearnedBasis or ChosenBasis, default="learned"
        Whether vectors are learned, or chosen from the training rows. Objects take settings:
        :class:`LearnedBasis`, :class:`ChosenBasis`, but for ``per_class=True``. Where the metric of
        a learned basis is "auto", "none" is tried ("scaled", where features differ in range), and
        beside it "diagonal" up to 300 features and "full" up to 50, if there is at least a row for
        each parameter. Where its ``linear_part`` is "auto", the best of these is tried with one,
        unless that takes long: up to 1e9 for rows (3,000 at the most) times classes times squared
        features, or 2e10 with at most 20 rows a feature. Where C is open, machines of the search
        have the solver "auto" and no ``early_stopping``, whatever the last one has.
    loss : str or Loss, default="weston_watkins"
        What a wrong row costs, as for :class:`SparseKernelClassifier`; "logistic" adds
        ``predict_proba``.
    cv : int, cross-validation splitter, iterable or None, default=None
        How rows are split. None: 5 stratified folds, 4 for more than 2,000 rows, and with a warning
        fewer where a class has fewer rows; fewer than 1,000 rows are split twice. An
        integer: that many stratified folds. Every class must be among the rows to learn from in
        each split. Splitters that keep groups together, such as
        :class:`sklearn.model_selection.GroupKFold`, take the ``groups`` of ``fit``.
    scoring : str or callable, default=None
        What is best: a name of scikit-learn's, or a callable ``scorer(machine, X, y)``, which is
        also given ``sample_weight`` where ``fit`` is. None is the accuracy.
    one_standard_error : bool, default=True
        Whether the fewest vectors are taken whose mean score is at most one standard error below
        the best, instead of the best. Never more than a quarter of a point (0.0025) is given away,
        nor more than a tenth of what the best score lacks of 1, nor anything below what logistic
        regression has on the same splits; and of learned vectors, more than 2 % of the loss of the
        rows that judge, as few rows tell sizes apart by their loss sooner than by their score.
    refit : bool, default=True
        Whether a machine is fitted to all rows in the end. Without it nothing is predicted.
    fit_intercept : bool, default=True
        Whether each class has an intercept.
    max_seconds : float or None, default=None
        Time limit. The search ends after 60 % of it, with a warning, and takes the best that it has
        found; the last fit has the rest. Rounds that have begun are finished.
    |class_weight|
    random_state : int, RandomState instance or None, default=None
        Seed for splits, draws of rows, and fits. With a seed, results are the same to the bit.
    n_jobs : int, default=None
        Number of processes in the search, and of threads in the last fit. None is 1, -1 all cores.
        It changes the speed and nothing else.
    verbose : int, default=0
        Above 0, ``fit`` prints how far it has come: a line for each round of the search, at most 20
        a second; above 1, also for each round of the last fit.

    Attributes
    ----------
    best_params_ : dict
        ``C``, ``gamma`` and ``max_basis`` of the machine that was chosen, and its ``basis`` where
        that is a learned one, with metric and linear part. Where machines choose C for themselves,
        it is the geometric mean over the splits; "auto" where more than 3,000 rows are learned from
        in each split: the last machine then chooses once more.
    best_score_ : float
        Its mean score over the splits, a little too good: it is the best of several, and the rows
        that judge a learned basis also say when to stop. Machines of the search go less far than
        the last one: three cycles of stochastic steps and 20 moves at the most, the largest a
        single cycle and no moves.
    best_index_ : int
        Its place in ``cv_results_``.
    cv_results_ : dict of ndarray
        An entry for each candidate: ``stage`` ("screen": metric, width and linear part are chosen,
        of a chosen basis C and width; "metric": the best, and the best of another metric, where
        they were close; "size": the number of vectors; "C": that of a chosen basis once more),
        ``param_C`` (the geometric mean over the splits, where machines choose it), ``param_width``,
        ``param_max_basis``, ``param_metric``, ``param_linear_part``, ``mean_test_score``,
        ``std_test_score``, ``split0_test_score`` and so on (NaN where a split was not used),
        ``mean_test_loss`` (of the rows that judge, the least on the way; NaN where they do not say
        when to stop, as of a chosen basis), ``mean_fit_time`` (of the vectors added, for sizes of a
        chosen basis), ``n_basis`` and ``n_rows`` (means over the splits), and a list ``params``.
        Scores of "screen" may be of other rows and splits than those of the other stages.
    n_splits_ : int
        Number of splits.
    best_estimator_ : SparseKernelClassifier
        The machine that was fitted to all rows. It is put together whenever it is asked for. A
        clone of it that is fitted to the same rows is the same machine to the bit.
    |classes_| |n_features_in_| |feature_names_in_|
    model_ : KernelExpansion
        What predicts.
    |readout_|
    n_basis_, basis_, basis_indices_, dual_coef_, linear_coef_, intercept_, C_, objective_, \
n_iter_, history_, stop_reason_ :
        Those of ``best_estimator_``.

    See Also
    --------
    SparseKernelClassifier : The machine with settings of one's own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifierCV
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifierCV(random_state=0).fit(X, y)
    >>> sorted(machine.best_params_)
    ['C', 'basis', 'gamma', 'max_basis']
    >>> bool(machine.score(X, y) > 0.95)
    True
    """

    _quick_settings: ClassVar[dict[str, Any]] = {
        "max_basis": [2, 4],
        "Cs": [1.0, 10.0],
        "widths": [1.0],
        "basis": "shared",
        "cv": 2,
    }
    _file_changes = MappingProxyType({"max_seconds": Added(3)})

    def __init__(
        self,
        max_basis: Any = "auto",
        *,
        Cs: Any = "auto",
        widths: Any = "auto",
        basis: Any = "learned",
        loss: str | Loss = "weston_watkins",
        cv: Any = None,
        scoring: Any = None,
        one_standard_error: bool = True,
        refit: bool = True,
        fit_intercept: bool = True,
        max_seconds: float | None = None,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_basis = max_basis
        self.Cs = Cs
        self.widths = widths
        self.basis = basis
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.one_standard_error = one_standard_error
        self.refit = refit
        self.fit_intercept = fit_intercept
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the settings, and fit a machine with them to all rows.

        Callbacks see a round for each batch of candidates, for each size, and for the last fit. One
        that asks to stop ends the choice of C and width, or the growth, where it is.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in fits and in scores; a row of weight 0 might as well not be
            there, but that its class stays in ``classes_``. Two classes must have weight.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows that belong together, for a splitter ``cv`` that goes by them. With
            scikit-learn's metadata routing they are asked for, unless ``set_fit_request`` says
            otherwise.

        Returns
        -------
        self : SparseKernelClassifierCV
        """
        self._search(X, y, sample_weight, groups)
        return self

    def _machine(self, **settings: Any) -> SparseKernelClassifier:
        shared = {"basis": self.basis, "loss": self.loss, "fit_intercept": self.fit_intercept}
        return SparseKernelClassifier(class_weight=self.class_weight, **(shared | settings))

    def _told(self, data: Any) -> Any:
        return self.classes_[data.targets.numbers]

    def _splits(self, data: Any, seed: int, groups: Any) -> list[Split]:
        labels = data.targets.numbers
        return make_splits(self.cv, data.rows, labels, data.weights, self.classes_, seed, groups)

    def _scorer(self, machine: Any) -> Any:
        return check_scoring(machine, scoring=self.scoring)

    def _least_size(self) -> int:
        return len(self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of predictions: ``scoring``, or the accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        if self.scoring is None:
            return float(ClassifierMixin.score(self, X, y, sample_weight))
        return self._scored(X, y, sample_weight)

"""Sparse kernel machines that choose their own size, weight of the loss and width."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import check_scoring, get_scorer
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._system.file_changes import Added
from widemargin._system.parameters import (
    check_flag,
    check_integer,
    check_jobs,
    check_positive_numbers,
    check_real,
    check_sizes,
    check_verbose,
)
from widemargin._system.warnings import warn_user
from widemargin.estimation.base import BaseClassifier
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.estimation.splits import make_splits
from widemargin.estimation.targets import TrainingRows
from widemargin.kernels import Rows
from widemargin.losses import Loss
from widemargin.sparse_kernel.choices import MOST_SCREENS, fewest_within_one_standard_error
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.learned import REHEARSED_ROWS
from widemargin.sparse_kernel.search import MOST_LAST_LOOKS, Search
from widemargin.sparse_kernel.settings import HasBasisSettings, LearnedBasis, as_basis
from widemargin.sparse_kernel.trials import (
    Candidate,
    linear_parts_to_try,
    metrics_to_try,
    starting_gamma,
)

Array: TypeAlias = npt.NDArray[Any]
Integers: TypeAlias = npt.NDArray[np.intp]

_SEARCH_SHARE = 0.6  # of max_seconds, that the search may take
_SCREEN_SIZE = 64  # vectors, about, while C and width are chosen,
_ROWS_A_VECTOR = 8  # or fewer, so that each has so many rows
_MOST_VECTORS = 256  # of "auto"
_GROWTHS = 2  # of "auto" sizes without a better score after which they end


@with_shared_texts
class SparseKernelClassifierCV(HasBasisSettings, ClassifierMixin, BaseClassifier):  # type: ignore[misc]  # untyped base
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
        regression has on the same splits.
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

    # As of scikit-learn's splitters that need groups: who gives them need not ask for them too.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    _quick_settings: ClassVar[dict[str, Any]] = {
        "max_basis": [2, 4],
        "Cs": [1.0, 10.0],
        "widths": [1.0],
        "basis": "shared",
        "cv": 2,
    }
    _file_changes = MappingProxyType({"max_seconds": Added(3)})
    _fitted_names = SparseKernelClassifier._fitted_names | {
        *("_seed", "best_index_", "best_params_", "best_score_", "cv_results_", "n_splits_"),
    }

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
        started = time.perf_counter()
        self._check_parameters()
        data = self._validate_training_data(X, y, sample_weight)
        rows, labels, weights = data.rows, data.targets.numbers, data.weights
        rng = check_random_state(self.random_state)
        split_seed, self._seed, draw_seed = (
            int(rng.randint(np.iinfo(np.int32).max)) for _ in range(3)
        )
        machine = self._machine(random_state=self._seed)
        scorer = check_scoring(machine, scoring=self.scoring)
        splits = make_splits(self.cv, rows, labels, weights, self.classes_, split_seed, groups)
        sizes = self._sizes(min(len(train) for train, _ in splits))
        n_rounds = MOST_SCREENS + len(sizes) + MOST_LAST_LOOKS + 1
        progress = FitProgress(self, n_rounds, X, y, sample_weight)
        search = Search(
            machine,
            scorer,
            rows,
            self.classes_[labels],
            None if sample_weight is None else weights,
            splits,
            draw_seed,
            self.n_jobs,
            begin_round=progress.begin_round,
            end_round=lambda: progress.end_round(_no_machine_yet, search.standing),
            deadline=None
            if self.max_seconds is None
            else started + _SEARCH_SHARE * self.max_seconds,
        )
        counted = data.caps > 0
        self._choose(search, sizes, rows if counted.all() else rows[counted])
        if search.was_late:
            warn_user(
                f"The search was ended by max_seconds={self.max_seconds:g}, after "
                f"{len(search.records)} candidates; the best of these is taken. Raise max_seconds, "
                "or give fewer Cs and sizes to choose from.",
                ConvergenceWarning,
            )
        if self.refit:
            progress.begin_round()
            final = self._unfitted()
            if self.max_seconds is not None:
                # A machine is worth nothing if it is not fitted.
                left = self.max_seconds - (time.perf_counter() - started)
                final.max_seconds = max(left, (1 - _SEARCH_SHARE) * self.max_seconds)
            final, told = _fit_and_listen(final, rows, search.y, search.weights)
            self.__dict__.update(_fit_of(final))
            progress.end_round(lambda: {}, lambda: f"last fit, {self.n_basis_} vectors")
            for message in told:
                warn_user(message)
        progress.end(lambda: {})
        return self

    def _choose(self, search: Search, sizes: list[int], counted: Rows) -> None:
        """Search, and keep the choice and the record; ``counted`` are the rows with weight."""
        n_rows = min(len(train) for train, _ in search.splits)
        wanted = min(_SCREEN_SIZE, n_rows / _ROWS_A_VECTOR)
        middle = min(sizes, key=lambda size: abs(np.log(size / wanted)))
        metrics = metrics_to_try(as_basis(self.basis), counted, n_rows)
        linear_parts = linear_parts_to_try(as_basis(self.basis), counted, len(self.classes_))
        choice = search.best_start(
            metrics, _numbers(self.Cs), _numbers(self.widths), middle, linear_parts
        )
        patience = _GROWTHS if isinstance(self.max_basis, str) else len(sizes)
        grown = search.grow(choice, sizes, patience)
        scores = np.array([record.scores for record in grown])
        if self.one_standard_error:
            floor = search.linear_score() if len(grown) > 1 else -np.inf
            chosen = fewest_within_one_standard_error(sizes[: len(grown)], scores, floor)
        else:
            chosen = int(np.argmax(scores.mean(axis=1)))
        metric, _, width, linear = choice
        C: float | str = choice[1]
        size, best = sizes[chosen], grown[chosen]
        if metrics and isinstance(self.Cs, str):
            # Of many rows the machine may go further, and chooses C for itself once more.
            C = best.weight if n_rows <= REHEARSED_ROWS else "auto"
        elif isinstance(self.Cs, str):
            C = search.best_weight(choice, size, best.scores)
            settings = Candidate(float(C), width, size)
            judged = [record for record in search.records if record.stage == "C"]
            best = next(record for record in (best, *judged) if record.candidate == settings)
        self.cv_results_ = search.table()
        self.n_splits_ = len(search.splits)
        self.best_index_ = search.records.index(best)
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.best_params_: dict[str, Any] = {"C": C, "gamma": "scale", "max_basis": size}
        basis = as_basis(self.basis)
        if isinstance(basis, LearnedBasis):
            self.best_params_["basis"] = replace(basis, metric=metric, linear_part=linear)
        data = (search.rows, search.y, search.weights)
        self.best_params_["gamma"] = starting_gamma(self._unfitted(), *data, factor=width)

    def _sizes(self, n_rows: int) -> list[int]:
        """Return the sizes to choose from, where so many rows are learned from."""
        if isinstance(self.max_basis, str):
            sizes = [len(self.classes_)]
            while 2 * sizes[-1] <= min(_MOST_VECTORS, n_rows // 2):
                sizes.append(2 * sizes[-1])
            return sizes
        sizes = [int(size) for size in np.atleast_1d(self.max_basis)]
        if sizes[-1] > n_rows:
            raise ValueError(
                f"max_basis={sizes[-1]} is more vectors than there are rows to learn from in a "
                f"split, {n_rows}. Lower max_basis, or set it to 'auto'."
            )
        return sizes

    def _machine(self, **settings: Any) -> SparseKernelClassifier:
        shared = {"basis": self.basis, "loss": self.loss, "fit_intercept": self.fit_intercept}
        return SparseKernelClassifier(class_weight=self.class_weight, **(shared | settings))

    def _unfitted(self) -> SparseKernelClassifier:
        """Return the machine that was chosen."""
        return self._machine(
            random_state=self._seed,
            n_jobs=self.n_jobs,
            verbose=max(0, int(self.verbose) - 1),
            **self.best_params_,
        )

    @property
    def best_estimator_(self) -> SparseKernelClassifier:
        """The machine that was fitted to all rows."""
        check_is_fitted(self)
        machine = self._unfitted()
        machine.__dict__.update(_fit_of(self))
        return machine

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
            return float(super().score(X, y, sample_weight))
        weighed = {} if sample_weight is None else {"sample_weight": sample_weight}
        scorer = get_scorer(self.scoring) if isinstance(self.scoring, str) else self.scoring
        return float(scorer(self, X, y, **weighed))

    def _would_give_probabilities(self) -> bool:
        return self._machine()._would_give_probabilities()

    def _why_no_probabilities(self) -> str:
        return self._machine()._why_no_probabilities()

    def __sklearn_is_fitted__(self) -> bool:
        if hasattr(self, "cv_results_") and not hasattr(self, "model_"):
            raise NotFittedError(
                "There is no machine to predict with, because of refit=False. Set refit=True and "
                "call fit, or fit SparseKernelClassifier with best_params_."
            )
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        if as_basis(self.basis).per_class:
            raise ValueError(
                "SparseKernelClassifierCV chooses one number of vectors, for a basis that all "
                f"classes share; got basis={self.basis!r}. Use 'learned' or 'shared', or search "
                "over SparseKernelClassifier with scikit-learn's GridSearchCV."
            )
        check_sizes(self.max_basis)
        check_positive_numbers("Cs", self.Cs)
        check_positive_numbers("widths", self.widths)
        if not (self.cv is None or hasattr(self.cv, "split") or isinstance(self.cv, Iterable)):
            check_integer("cv", self.cv, least=2)
        if not (self.scoring is None or isinstance(self.scoring, str) or callable(self.scoring)):
            raise ValueError(
                f"scoring must be a name, a callable or None, got {self.scoring!r}: one score, by "
                "which one machine is the best."
            )
        for name in ("one_standard_error", "refit"):
            check_flag(name, getattr(self, name))
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        self._machine()._check_parameters()

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any) -> TrainingRows:
        """Return what is learned from; forgets the fit before, and sets classes_."""
        machine = self._machine()
        data = machine._validate_training_data(X, y, sample_weight)
        for name in _fit_of(self):
            del self.__dict__[name]
        self.__dict__.update(_fit_of(machine))
        return data


def _fit_of(estimator: Any) -> dict[str, Any]:
    """Return what an estimator has from the fit of a machine."""
    names = {"model_", "n_features_in_", "feature_names_in_", *SparseKernelClassifier._fitted_names}
    return {name: value for name, value in vars(estimator).items() if name in names}


def _fit_and_listen(
    machine: SparseKernelClassifier, *data: Any
) -> tuple[SparseKernelClassifier, list[Any]]:
    """Fit a machine; return it, and what it warned of, to be said where the user looks.

    In other threads than the main one warnings go their own way: their filters are shared.
    """
    if threading.current_thread() is not threading.main_thread():
        return machine.fit(*data), []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine.fit(*data)
    return machine, [warning.message for warning in caught]


def _no_machine_yet() -> Any:
    """Return no attributes: in the search there is no machine of all rows."""


def _numbers(values: Any) -> list[float] | None:
    return None if isinstance(values, str) else [float(value) for value in values]

"""Searches for the settings of a sparse machine, by cross-validation; of classes, or of labels."""

from __future__ import annotations

import threading
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import get_scorer
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

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
from widemargin.estimation.fitting import FitProgress
from widemargin.estimation.splits import Split
from widemargin.kernels import Rows
from widemargin.losses import Loss
from widemargin.sparse_kernel.choices import MOST_SCREENS, fewest_within_one_standard_error
from widemargin.sparse_kernel.learned import REHEARSED_ROWS
from widemargin.sparse_kernel.machine import SparseKernelMachine
from widemargin.sparse_kernel.search import MOST_LAST_LOOKS, Search
from widemargin.sparse_kernel.settings import HasBasisSettings, LearnedBasis, as_basis
from widemargin.sparse_kernel.trials import (
    Candidate,
    linear_parts_to_try,
    metrics_to_try,
    starting_gamma,
)

Array: TypeAlias = npt.NDArray[Any]

_SEARCH_SHARE = 0.6  # of max_seconds, that the search may take
_SCREEN_SIZE = 64  # vectors, about, while C and width are chosen,
_ROWS_A_VECTOR = 8  # or fewer, so that each has so many rows
_MOST_VECTORS = 256  # of "auto"
_GROWTHS = 2  # of "auto" sizes without a better score after which they end


class SearchesSettings(HasBasisSettings, ClassifierMixin, BaseClassifier):  # type: ignore[misc]  # untyped base
    """A sparse machine that chooses its size and settings by itself.

    A family says which machine that is (``_machine``), what its targets are (``_told``), how rows
    are split (``_splits``), what a score is (``_scorer``) and where sizes begin (``_least_size``).
    """

    max_basis: Any
    Cs: Any
    widths: Any
    basis: Any
    loss: str | Loss
    cv: Any
    scoring: Any
    one_standard_error: bool
    refit: bool
    fit_intercept: bool
    max_seconds: float | None
    class_weight: Any
    random_state: Any

    _fitted_names = SparseKernelMachine._fitted_names | {
        *("_seed", "best_index_", "best_params_", "best_score_", "cv_results_", "n_splits_"),
    }

    # As of scikit-learn's splitters that need groups: who gives them need not ask for them too.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    @abstractmethod
    def _machine(self, **settings: Any) -> SparseKernelMachine:
        """Return a machine of these settings, and of the parameters that are no choice."""

    def _machine_of_search(self, seed: int) -> SparseKernelMachine:
        """Return what candidates have in common."""
        return self._machine(random_state=seed)

    @abstractmethod
    def _told(self, data: Any) -> Any:
        """Return the targets as a machine takes them."""

    @abstractmethod
    def _splits(self, data: Any, seed: int, groups: Any) -> list[Split]:
        """Return row numbers to learn from and to judge by."""

    @abstractmethod
    def _scorer(self, machine: SparseKernelMachine) -> Any:
        """Return what judges machines."""

    @abstractmethod
    def _least_size(self) -> int:
        """Return the number of vectors that "auto" begins with."""

    def _search(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> None:
        """Choose the settings, and fit a machine with them to all rows."""
        started = time.perf_counter()
        self._check_parameters()
        data = self._validate_training_data(X, y, sample_weight)
        rows, weights = data.rows, data.weights
        rng = check_random_state(self.random_state)
        split_seed, self._seed, draw_seed = (
            int(rng.randint(np.iinfo(np.int32).max)) for _ in range(3)
        )
        machine = self._machine_of_search(self._seed)
        scorer = self._scorer(machine)
        splits = self._splits(data, split_seed, groups)
        sizes = self._sizes(min(len(train) for train, _ in splits))
        n_rounds = MOST_SCREENS + len(sizes) + MOST_LAST_LOOKS + 1
        progress = FitProgress(self, n_rounds, X, y, sample_weight)
        search = Search(
            machine,
            scorer,
            rows,
            self._told(data),
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
            losses = np.array([record.losses.mean() for record in grown])
            chosen = fewest_within_one_standard_error(sizes[: len(grown)], scores, floor, losses)
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
            sizes = [self._least_size()]
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

    def _unfitted(self) -> SparseKernelMachine:
        """Return the machine that was chosen."""
        return self._machine(
            random_state=self._seed,
            n_jobs=self.n_jobs,
            verbose=max(0, int(self.verbose) - 1),
            **self.best_params_,
        )

    @property
    def best_estimator_(self) -> SparseKernelMachine:
        """The machine that was fitted to all rows."""
        check_is_fitted(self)
        machine = self._unfitted()
        machine.__dict__.update(_fit_of(self))
        return machine

    def _scored(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Return the score of predictions by ``scoring``."""
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
                f"call fit, or fit {type(self._machine()).__name__} with best_params_."
            )
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        if as_basis(self.basis).per_class:
            raise ValueError(
                f"{type(self).__name__} chooses one number of vectors, for a basis that all "
                f"classes share; got basis={self.basis!r}. Use 'learned' or 'shared', or search "
                f"over {type(self._machine()).__name__} with scikit-learn's GridSearchCV."
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

    def _validate_training_data(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return what is learned from; forgets the fit before, and sets classes_."""
        machine = self._machine()
        data = machine._validate_training_data(X, y, sample_weight)
        for name in _fit_of(self):
            del self.__dict__[name]
        self.__dict__.update(_fit_of(machine))
        return data


def _fit_of(estimator: Any) -> dict[str, Any]:
    """Return what an estimator has from the fit of a machine."""
    names = {"model_", "n_features_in_", "feature_names_in_", *SparseKernelMachine._fitted_names}
    return {name: value for name, value in vars(estimator).items() if name in names}


def _fit_and_listen(
    machine: SparseKernelMachine, *data: Any
) -> tuple[SparseKernelMachine, list[Any]]:
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

"""Online kernel learners that see each row once: perceptron and MIRA."""

from __future__ import annotations

from abc import abstractmethod
from numbers import Real
from types import MappingProxyType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._system.file_changes import Added
from widemargin._system.parameters import check_flag, check_integer, check_real
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.full_kernel.dual import DualClassifier, DualStream
from widemargin.kernels import Kernel, Rows
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.online import OnlineRows, OnlineState, learner_entries
from widemargin.solvers.duals.state import RowProblem

Array: TypeAlias = npt.NDArray[Any]


class _OnlineClassifier(DualClassifier):
    """A learner that goes through the rows, and changes by each row once."""

    _fitted_names = frozenset(
        {
            *("_patterns", "basis_", "basis_indices_", "classes_", "dual_coef_", "history_"),
            *("intercept_", "n_basis_", "n_iter_", "n_kernel_evaluations_", "n_mistakes_"),
            *("readout_", "stop_reason_"),
        }
    )
    epochs: int
    shuffle: bool
    max_seconds: float | None
    warm_start: bool

    _file_changes = MappingProxyType({"stop_reason_": Added(2, lambda file: "epochs")})

    @abstractmethod
    def _rule(self) -> dict[str, bool]:
        """Return which rule the native learner goes by."""

    def _margin(self) -> float:
        return 0.0

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn rows, in random order unless ``shuffle=False``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; the kernel matrix of shape (n_samples, n_samples) for "precomputed".
        y : array-like of shape (n_samples,)
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Two classes must have weight.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        data = self._validate_training_data(X, y, sample_weight)
        rows = data.rows
        self.__dict__.pop("_stream", None)
        with one_blas_thread():
            kernel = self._make_kernel(rows, data.weights)
            problem = RowProblem(
                lambda: self._make_machine(kernel, rows),
                rows,
                data.targets.numbers,
                data.caps,
                self.epochs,
            )
            checkpoint = Checkpoint(self, rows, data.targets.numbers, data.caps)
            state = self._begin_fit(problem, checkpoint)
            told = FitProgress(self, self.epochs, X, y, sample_weight)
            attributes = run_fit(self, self._solver(), problem, state, checkpoint, told, _standing)
        if attributes["stop_reason_"] == "max_seconds":
            warn_user(
                f"The fit was ended by max_seconds={self.max_seconds:g}, after "
                f"{state.rows_seen} rows. The machine is the one it had come to.",
                ConvergenceWarning,
            )
        self.__dict__.pop("_state", None)
        self.__dict__.update(attributes)
        return self

    def _begin_fit(self, problem: RowProblem, checkpoint: Checkpoint) -> OnlineState:
        """Return where the fit begins: where one was stopped, or with nothing."""
        packed = checkpoint.found()
        if packed is not None:
            return OnlineState.unpack(packed, problem)
        rng = check_random_state(self.random_state)
        rng.randint(1 << 31)  # the seed of solvers that draw
        return self._solver().init(problem, rng)

    def _attributes_of(
        self, state: OnlineState, reason: str, problem: RowProblem
    ) -> dict[str, Any]:
        machine, learner = state.machine, state.native
        supports = machine.supports()
        indices = supports.ids.astype(np.intp)
        vectors = machine.kernel.select(problem.rows, indices)
        seen, history = int(learner.rows_seen), state.history
        return {
            **self._model_attributes(machine.kernel, vectors, indices, supports, seen),
            **_counts(machine, learner),
            "n_iter_": state.passes_begun(),
            "stop_reason_": reason,
            "history_": {name: np.asarray(history[name]) for name in history if name != "seconds"},
        }

    def _attributes_after(self, stream: DualStream) -> dict[str, Any]:
        record = {"epoch": 1, **learner_entries(stream.machine, stream.native)}
        return {
            **_counts(stream.machine, stream.native),
            "n_iter_": 1,
            "stop_reason_": "partial_fit",
            "history_": {name: np.asarray([value]) for name, value in record.items()},
        }

    def _solver(self) -> OnlineRows:
        return OnlineRows(
            **self._rule(),
            shuffle=bool(self.shuffle),
            budget=self.budget,
            policy=self.budget_policy,
        )

    def _make_machine(
        self,
        kernel: Kernel,
        rows: Rows,
        origin: Array | None = None,
        n_columns: int | None = None,
    ) -> DualExpansion:
        return DualExpansion(
            kernel,
            rows,
            len(self.classes_) if n_columns is None else n_columns,
            margin=self._margin(),
            fit_intercept=bool(self.fit_intercept),
            cache_size=float(self.cache_size),
            n_threads=thread_count(self.n_jobs),
            origin=origin,
        )

    def _make_learner(self, machine: DualExpansion, seed: int, rows_seen: int) -> Any:
        return self._solver().native(machine, rows_seen)

    def _check_parameters(self) -> None:
        check_integer("epochs", self.epochs, least=1)
        check_flag("shuffle", self.shuffle)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_flag("warm_start", self.warm_start)
        self._check_stream_parameters()


def _standing(history: dict[str, list[float]]) -> str:
    seen, mistakes = history["rows_seen"][-1], history["mistakes"][-1]
    patterns = history["support_patterns"][-1]
    return f"{seen} rows seen, {mistakes} mistakes, {patterns} support patterns"


def _counts(machine: DualExpansion, learner: Any) -> dict[str, int]:
    return {
        "n_kernel_evaluations_": int(machine.set.kernel_evaluations),
        "n_mistakes_": int(learner.mistakes),
    }


@with_shared_texts
class KernelPerceptron(_OnlineClassifier):
    """Kernel perceptron of all classes, averaged.

    A row whose class does not have the largest score adds its weight to its own class, and takes it
    from the class that is ahead. The coefficients of all moments are averaged.

    Parameters
    ----------
    average : bool, default=True
        Whether the coefficients that predict are the mean over all rows seen, which generalises
        better than the last ones. Once a ``budget`` is full they are the last ones, as it forgets.

    |kernel| |gamma| |degree| |coef0| |fit_intercept| |epochs| |shuffle| |max_seconds|
    |cache_size| |budget| |budget_policy| |class_weight| |warm_start| |random_state| |n_jobs|
    |verbose|

    Attributes
    ----------
    |classes_| |n_features_in_| |feature_names_in_| |n_basis_| |basis_| |basis_indices_|
    |support_| |support_vectors_| |n_support_| |dual_coef_| |coef_| |intercept_|
    n_mistakes_ : int
        Rows that were wrong when they came.
    |n_kernel_evaluations_| |n_iter_| |stop_reason_| |history_| |model_| |readout_|

    References
    ----------
    .. [1] Y. Freund, R. Schapire, "Large Margin Classification Using the Perceptron Algorithm",
       Computational Learning Theory, 1998.
    .. [2] M. Collins, "Discriminative Training Methods for Hidden Markov Models", Empirical Methods
       in Natural Language Processing, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import KernelPerceptron
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelPerceptron(epochs=5, random_state=0).fit(X, y)
    >>> bool(machine.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        average: bool = True,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        epochs: int = 1,
        shuffle: bool = True,
        max_seconds: float | None = None,
        cache_size: float = 200.0,
        budget: int | None = None,
        budget_policy: str = "drop",
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.average = average
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.shuffle = shuffle
        self.max_seconds = max_seconds
        self.cache_size = cache_size
        self.budget = budget
        self.budget_policy = budget_policy
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> dict[str, bool]:
        return {"mira": False, "averages": bool(self.average)}

    def _cap(self) -> float:
        return 1.0

    def _averages(self) -> bool:
        return bool(self.average)

    def _averaged_over(self, n_patterns: int, rows_seen: int) -> float:
        # A mean over all rows would count new patterns for little, and patterns that were dropped
        # not at all.
        is_full = self.budget is not None and n_patterns >= self.budget
        return np.inf if rows_seen == 0 or is_full else float(rows_seen)

    def _check_parameters(self) -> None:
        check_flag("average", self.average)
        super()._check_parameters()


@with_shared_texts
class KernelMIRA(_OnlineClassifier):
    """MIRA, the margin infused relaxed algorithm, with a kernel.

    A row that is wrong, or right by less than the margin, moves the scores of its class and of all
    classes that are in the way, by as little as puts it right; no further than C allows.

    Parameters
    ----------
    C : float, default=1.0
        Largest coefficient that a row gets at one time, times its weight. ``inf`` is MIRA without a
        cap, where weights above zero make no difference.

    margin : float, default=1.0
        By how much the right class is to be ahead. As small as it may be, it must be positive: all
        scores begin at zero, and would stay there.

    |kernel| |gamma| |degree| |coef0| |fit_intercept| |epochs| |shuffle| |max_seconds|
    |cache_size| |budget| |budget_policy| |class_weight| |warm_start| |random_state| |n_jobs|
    |verbose|

    Attributes
    ----------
    |classes_| |n_features_in_| |feature_names_in_| |n_basis_| |basis_| |basis_indices_|
    |support_| |support_vectors_| |n_support_| |dual_coef_| |coef_| |intercept_|
    n_mistakes_ : int
        Rows that were wrong, or short of the margin, when they came.
    |n_kernel_evaluations_| |n_iter_| |stop_reason_| |history_| |model_| |readout_|

    References
    ----------
    .. [1] K. Crammer, Y. Singer, "Ultraconservative Online Algorithms for Multiclass Problems",
       Journal of Machine Learning Research, 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import KernelMIRA
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KernelMIRA(epochs=5, random_state=0).fit(X, y)
    >>> bool(machine.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        margin: float = 1.0,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        epochs: int = 1,
        shuffle: bool = True,
        max_seconds: float | None = None,
        cache_size: float = 200.0,
        budget: int | None = None,
        budget_policy: str = "drop",
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.margin = margin
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.epochs = epochs
        self.shuffle = shuffle
        self.max_seconds = max_seconds
        self.cache_size = cache_size
        self.budget = budget
        self.budget_policy = budget_policy
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _rule(self) -> dict[str, bool]:
        return {"mira": True, "averages": False}

    def _margin(self) -> float:
        return float(self.margin)

    def _check_parameters(self) -> None:
        if not (isinstance(self.C, Real) and np.isposinf(float(self.C))):
            check_real("C", self.C, positive=True)
        check_real("margin", self.margin, positive=True)
        super()._check_parameters()

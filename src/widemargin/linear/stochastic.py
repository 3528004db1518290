"""Linear classifiers of all classes together that learn row by row, from memory or from streams."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from widemargin._system.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
    check_verbose,
)
from widemargin._system.threads import thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.checkpoints import Checkpoint, run_fit
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.estimation.fitting import FitProgress, all_or_nothing
from widemargin.estimation.targets import TrainingRows
from widemargin.kernels import Rows
from widemargin.linear.batches import fit_batches, gives_batches
from widemargin.linear.live import linear_map
from widemargin.linear.streaming import StreamingLinearClassifier
from widemargin.solvers.linear.subgradient import (
    ClassProblem,
    RowSteps,
    SubgradientState,
    standing,
)
from widemargin.solvers.linear.sums import LOSSES

Array: TypeAlias = npt.NDArray[Any]

STRATEGIES = ("joint", "one_vs_all")
SOLVERS = ("auto", "dual", "pegasos")

_LEAST_ALPHA = 1e-15  # one over it times a row must be a number in single precision
_USUAL_ROWS = 1e-8, 1e8  # mean squared lengths of rows, beyond which scaling them is advised
_LOOKED_AT = 1000  # rows by which that is judged


@with_shared_texts
class StochasticLinearClassifier(StreamingLinearClassifier):
    """Linear classifier of all classes together, learned row by row; for wide and endless data.

    The scores of all classes, ``f_c(x) = x . w_c + b_c``, minimise ::

        alpha / 2 (|W|^2 + |b|^2) + sum_i weight_i loss(f(x_i), y_i) / sum_i weight_i

    A pass over the rows costs as much as reading them, whatever their number; it takes fewer of
    them to the same accuracy the more there are. Data come as arrays, as CSR matrices, which are
    never made dense, as memory maps, or as batches of a stream, which need not fit in memory.

    Parameters
    ----------
    loss : {"crammer_singer", "weston_watkins", "logistic", "perceptron"}, default="crammer_singer"
        With the class y of a row: ``max(0, max_{c != y} 1 + f_c - f_y)``,
        ``sum_{c != y} max(0, 1 + f_c - f_y)``, ``log sum_c exp(f_c) - f_y``, which gives
        probabilities, or ``max_c f_c - f_y``. Under a regulariser the best machine for the last one
        is zero, so that it is known by the way it takes: that of the averaged perceptron.

    strategy : {"joint", "one_vs_all"}, default="joint"
        "one_vs_all" adds up a loss for each class against the rest: the hinge
        ``max(0, 1 - t f)`` with t of -1 and 1 for the first two losses (K-Pegasos),
        ``log(1 + exp(-t f))`` for "logistic", ``max(0, -t f)`` for "perceptron".

    solver : {"auto", "dual", "pegasos"}, default="auto"
        "pegasos" is the algorithm of the paper [1]_: a step of length ``1 / (alpha t)`` along a
        subgradient for each batch. "dual" solves for what a row should have added, by its scores
        after the step instead of those before it. It has no learning rate. For rows in memory it
        keeps what each has added, and is dual coordinate ascent from the second pass on, with a
        duality gap; rows of a stream are learned and forgotten. "auto" is "dual", and "pegasos"
        for the perceptron, which has no dual.

    alpha : float, default=1e-4
        Weight of the regulariser against the mean loss: the lambda of the paper. It is
        ``1 / (C n)`` for n rows and the C of other machines, which weighs a sum of losses; here it
        is the mean, as nobody knows how long a stream will be.

    fit_intercept : bool, default=True
        Whether each class has an intercept. It is the weight of a constant feature of value 1, and
        regularised like all weights.

    average : bool, default=True
        Whether the weights that predict are the mean of those after each step, the t-th counting t
        times, so that the first ones are soon forgotten. With "dual" and rows in memory it is the
        mean of the last pass. False predicts by the last weights.

    batch_size : int, default=1
        Of "pegasos": rows whose scores are taken before any of them changes the weights.

    project : bool, default=False
        Of "pegasos": whether weights are brought into the ball of radius ``1 / sqrt(alpha)`` after
        each step, which the optimum is in.

    max_iter : int, default=1000
        Passes over the rows at the most.

    tol : float or None, default=1e-2
        When ``fit`` ends. "dual": where the duality gap, of rows as they were met in a pass, is at
        the most this share of the objective. "pegasos", and streams: where the loss of rows as they
        came was not lowered by this share in ``n_iter_no_change`` passes. With ``early_stopping``:
        where the score did not rise by so much. None always does ``max_iter`` passes.

    early_stopping : bool, default=False
        Whether a share of the rows is held out, and the fit ends by the accuracy on these.

    validation_fraction : float, default=0.1
        The share of the rows that ``early_stopping`` holds out, of each class.

    n_iter_no_change : int, default=3
        Passes without improvement after which a fit ends, where ``tol`` goes by that.

    |max_seconds| |class_weight|

    warm_start : bool, default=False
        Whether a ``fit`` that was stopped, by ``max_seconds``, a callback or Ctrl-C, goes on where
        it was, to the bit, if the next one has the same rows and parameters; any other begins anew.
        Streams of batches always begin anew: ``partial_fit`` goes on with these.

    random_state : int, RandomState instance or None, default=None
        Seed for the order of rows. Batches of a stream are learned in the order in which they come.

    n_jobs : int, default=None
        Number of threads of predictions, and of the objective at the end of ``fit``. Steps follow
        one another, in one thread. None is 1, -1 all cores. It changes no bit of any result.

    |verbose|

    Attributes
    ----------
    |classes_| |n_features_in_| |feature_names_in_|
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        Weights of the features; for two classes, those of the second less those of the first, or
        half of that for "one_vs_all".
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        Intercepts; zeros without ``fit_intercept``.
    objective_ : float
        The objective of these weights. After rows of a stream, which are gone, the loss in it is
        that of the last pass, or of the last call of ``partial_fit``, as rows came.
    dual_objective_ : float
        The dual objective, which is never larger; minus infinity where it is not known.
    gap_ : float
        The difference: how far the objective is from the best at the most. Infinity where it is not
        known: for "pegasos", for streams, and before the first pass is over.
    n_iter_ : int
        Passes over the rows that were begun.
    t_ : int
        Steps that were taken.
    stop_reason_ : str
        Why the fit ended: "tol", "max_iter", "max_seconds", "callback", "interrupted" or
        "partial_fit".
    history_ : dict of ndarray
        After each pass: ``seconds``, ``epoch``, ``steps``, ``loss`` and ``mistakes`` (the mean loss
        and the share of wrong rows, each as it was when its turn came), ``gap`` (infinite where it
        is not known), and with ``early_stopping`` the ``score`` on rows that are held out.
    model_ : LinearMap
        What predicts.
    |readout_|

    See Also
    --------
    sklearn.linear_model.SGDClassifier : One machine for each class against the rest.
    LinearMultiLabelClassifier : Linear machines of rows that have any number of labels.

    References
    ----------
    .. [1] D. Chen, W. Chen, Q. Yang, "Characterizing Inverse Time Dependency in Multi-class
       Learning", International Conference on Data Mining, 2011.
    .. [2] S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin, "A Sequential Dual
       Method for Large Scale Multi-Class Linear SVMs", Knowledge Discovery and Data Mining, 2008.
    .. [3] S. Shalev-Shwartz, T. Zhang, "Stochastic Dual Coordinate Ascent Methods for Regularized
       Loss Minimization", Journal of Machine Learning Research, 2013.
    .. [4] S. Lacoste-Julien, M. Schmidt, F. Bach, "A simpler approach to obtaining an O(1/t)
       convergence rate for the projected stochastic subgradient method", arXiv:1212.2002, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import StochasticLinearClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = StochasticLinearClassifier(alpha=1e-2, random_state=0).fit(X, y)
    >>> bool(machine.score(X, y) > 0.9)
    True
    >>> stream = StochasticLinearClassifier()
    >>> for start in range(0, 150, 30):
    ...     rows = slice(start, start + 30)
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    >>> stream.t_
    150
    """

    _fitted_names = frozenset(
        {
            *("_seen", "classes_", "dual_objective_", "gap_", "history_", "intercept_", "n_iter_"),
            *("objective_", "readout_", "stop_reason_", "t_"),
        }
    )
    _quick_settings: ClassVar[dict[str, Any]] = {"max_iter": 20, "tol": None}

    def __init__(
        self,
        loss: str = "crammer_singer",
        *,
        strategy: str = "joint",
        solver: str = "auto",
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        average: bool = True,
        batch_size: int = 1,
        project: bool = False,
        max_iter: int = 1000,
        tol: float | None = 1e-2,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 3,
        max_seconds: float | None = None,
        class_weight: Any = None,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.strategy = strategy
        self.solver = solver
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.average = average
        self.batch_size = batch_size
        self.project = project
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.max_seconds = max_seconds
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn rows, in random order, or the batches of a stream.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or iterable of batches
            Training rows. Without y, an iterable of tuples ``(X, y)`` or ``(X, y, sample_weight)``,
            which is gone through once for each pass; an iterator gives a single one. Batches are
            learned as they come, and forgotten. Where the iterable has ``classes``, these are all
            that may come.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. Two classes must have weight.

        Returns
        -------
        self : StochasticLinearClassifier
        """
        self._check_parameters()
        if y is None and gives_batches(X):
            attributes = fit_batches(self, X, sample_weight)
        else:
            attributes = self._fit_rows(X, y, sample_weight)
        for name in ("_state", "_stream"):
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> dict[str, Any]:
        data = self._validate_training_data(X, y, sample_weight)
        rng = check_random_state(self.random_state)
        problem = self._problem(data, rng)
        checkpoint = Checkpoint(self, problem.rows, problem.numbers, problem.row_weights)
        solver, packed = RowSteps(), checkpoint.found()
        if packed is None:
            state = solver.init(problem, rng)
        else:
            state = SubgradientState.unpack(packed, problem)
        told = FitProgress(self, self.max_iter, X, y, sample_weight)
        attributes = run_fit(self, solver, problem, state, checkpoint, told, standing)
        self._warn_of_the_end(attributes)
        return attributes

    def _problem(self, data: TrainingRows, rng: np.random.RandomState) -> ClassProblem:
        return ClassProblem(
            data.rows,
            data.targets.numbers,
            data.caps,
            len(self.classes_),
            self._settings(),
            tol=None if self.tol is None else float(self.tol),
            max_iter=int(self.max_iter),
            n_iter_no_change=int(self.n_iter_no_change),
            held_out=self._held_out(data, rng),
            n_threads=thread_count(self.n_jobs),
        )

    def _held_out(self, data: TrainingRows, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
        if not self.early_stopping:
            return np.empty(0, dtype=np.intp)
        share, parts = float(self.validation_fraction), []
        for number in range(len(self.classes_)):
            own = rng.permutation(
                np.flatnonzero((data.targets.numbers == number) & (data.caps > 0))
            )
            # One at least, and one stays to be learned.
            parts.append(own[: min(max(1, round(share * len(own))), len(own) - 1)])
        held_out = np.sort(np.concatenate(parts))
        if len(held_out) == 0:
            raise ValueError(
                "early_stopping=True holds out rows of each class, and no class has two. Give more "
                "rows, or set early_stopping=False."
            )
        return held_out

    def _attributes_of(
        self, state: SubgradientState, reason: str, problem: ClassProblem
    ) -> dict[str, Any]:
        found, totals = RowSteps().finish(problem, state), state.sums.totals
        history = state.history or {"epoch": [0]}
        return {
            "model_": linear_map(found.weights, problem.settings),
            "readout_": self._readout_of(self.classes_),
            "objective_": found.objective,
            "dual_objective_": found.dual,
            "gap_": found.objective - found.dual,
            "n_iter_": state.passes + (state.next < len(state.order)),
            "t_": int(totals.steps),
            "stop_reason_": reason,
            "history_": {name: np.asarray(values) for name, values in history.items()},
            "_seen": {"weight": float(totals.weight), "steps": int(totals.steps)},
        }

    def _warn_of_the_end(self, attributes: dict[str, Any]) -> None:
        reason, gap = attributes["stop_reason_"], attributes["gap_"]
        if reason == "max_seconds":
            warn_user(
                f"The fit was ended by max_seconds={self.max_seconds:g}, after "
                f"{attributes['t_']} steps. The machine is the one it had come to.",
                ConvergenceWarning,
            )
        elif reason == "max_iter" and self.tol is not None and not self.early_stopping:
            share = gap / attributes["objective_"] if attributes["objective_"] > 0 else np.inf
            known = f", with a duality gap of {share:.2g} of the objective" * bool(gap < np.inf)
            warn_user(
                f"The fit ended after max_iter={self.max_iter} passes{known}, where tol is "
                f"{self.tol:g}. Raise max_iter, scale the features, raise alpha or tol, or set "
                "tol=None to say that so many passes are what is wanted.",
                ConvergenceWarning,
            )

    def _check_parameters(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("strategy", self.strategy, STRATEGIES)
        check_choice("solver", self.solver, SOLVERS)
        check_real("alpha", self.alpha, least=_LEAST_ALPHA)
        for name in ("fit_intercept", "average", "project", "early_stopping", "warm_start"):
            check_flag(name, getattr(self, name))
        check_integer("batch_size", self.batch_size, least=1)
        check_integer("max_iter", self.max_iter, least=1)
        if self.tol is not None:
            check_real("tol", self.tol, positive=True)
        check_real("validation_fraction", self.validation_fraction, positive=True)
        if not self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be below 1, got {self.validation_fraction}."
            )
        check_integer("n_iter_no_change", self.n_iter_no_change, least=1)
        if self.max_seconds is not None:
            check_real("max_seconds", self.max_seconds, positive=True)
        check_random_state(self.random_state)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        self._check_solver()

    def _check_solver(self) -> None:
        if self.solver == "dual" and self.loss == "perceptron":
            raise ValueError(
                "loss='perceptron' has no dual: the best machine under a regulariser is zero. Use "
                "solver='pegasos', or another loss."
            )
        if self._is_exact() and (self.batch_size != 1 or self.project):
            raise ValueError(
                f"batch_size={self.batch_size} and project={self.project} are of solver='pegasos'; "
                "dual steps take a row at a time and stay in the ball by themselves. Leave them at "
                "1 and False, or set solver='pegasos'."
            )

    def _check_batch_rows(self, X: Rows) -> None:
        """Advise scaling where rows are so long or short that alpha means nothing usual."""
        some = X[:_LOOKED_AT].astype(np.float64)
        values = some.data if sp.issparse(some) else some.ravel()
        square = float(np.dot(values, values)) / max(1, some.shape[0])
        least, most = _USUAL_ROWS
        if square > 0 and not least <= square <= most and "_stream" not in self.__dict__:
            share = "next to nothing" if square > most else "more than all rows"
            warn_user(
                f"Rows have a mean squared length of {square:.1e}, so that the regulariser with "
                f"alpha={self.alpha:g} counts {share}. Scale the features, for example by "
                "sklearn.preprocessing.StandardScaler or MaxAbsScaler.",
                UserWarning,
            )

    def _would_give_probabilities(self) -> bool:
        return bool(self.loss == "logistic")

    def _why_no_probabilities(self) -> str:
        return (
            f"loss={self.loss!r} gives scores, not probabilities. Use loss='logistic', or wrap it "
            "in sklearn.calibration.CalibratedClassifierCV."
        )

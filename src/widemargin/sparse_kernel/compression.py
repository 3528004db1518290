"""Compression: a fitted machine of many vectors made one of few, by fitting what it says."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, NuSVC
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    column_or_1d,
)

from widemargin._system.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
)
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.base import BaseClassifier
from widemargin.estimation.named_kernels import as_kernel, check_gamma
from widemargin.kernels import (
    KERNEL_NAMES,
    RBF,
    AdaptiveRBF,
    CustomKernel,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Rows,
    Sigmoid,
)
from widemargin.losses import CLASS_LOSSES, Loss, SquaredError
from widemargin.models import KernelExpansion
from widemargin.rows import canonical_rows, validated_data
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.grown import Grown, Growth, Problem, objective_of
from widemargin.sparse_kernel.settings import ChosenBasis

Array: TypeAlias = npt.NDArray[Any]

_TARGETS = ("scores", "classes")
_WEAK = 1e4  # C at which the regulariser no longer shrinks scores
# Relative gradient at the end. One step solves a squared error, so that double reaches it.
_GRADIENT_TOL = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


def compress(
    estimator: Any,
    max_basis: int,
    X: Any,
    y: Any = None,
    *,
    target: str = "scores",
    C: float | None = None,
    kernel: Any = None,
    gamma: float | str = "scale",
    n_candidates: int | str = 128,
    tol: float = 1e-3,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> SparseKernelClassifier:
    """Make a fitted kernel machine one of few vectors, and print what that cost.

    Vectors are chosen greedily among the rows of X, with the coefficients that minimise ::

        1/2 tr(A' K_JJ A) + 1/2 |b|^2 + C/2 sum_i weight_i |K_iJ A + b - t_i|^2

    where t_i are the scores that the machine gives row i. Labels play no part in it.

    Parameters
    ----------
    estimator : fitted estimator
        A kernel machine of this library, :class:`sklearn.svm.SVC` or :class:`sklearn.svm.NuSVC`.
    max_basis : int
        Vectors at the most.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows that are fitted, and that the vectors are chosen from. The training rows are the
        natural choice; others like them will do, as no labels are needed. For a precomputed
        kernel, the kernel matrix of the training rows.
    y : array-like of shape (n_samples,), default=None
        Classes of the rows, only to measure what the accuracy was and is. For an honest figure,
        call ``score`` of both machines with rows that neither has seen.
    target : {"scores", "classes"}, default="scores"
        What of the machine is fitted. "classes": the classes that it predicts, by the loss of the
        machine that is returned. Scores then are others, but far fewer classes change.
    C : float, default=None
        Weight of the loss of a row against the regulariser. None is 1e4 for scores, where the
        regulariser is there for stability and should not shrink anything; for classes, the C of
        the machine.
    kernel : str, Kernel or callable, default=None
        None is the machine's own, which suits its scores best. A learned basis whose vectors have
        widths and a metric has no kernel that other vectors could use, and needs one here.
    gamma : {"scale", "auto"} or float, default="scale"
        Width of a kernel that is given by name: as in :class:`SparseKernelClassifier`, by the
        variance of X or by the number of its features.
    n_candidates : int or "all", default=128
        Rows drawn at random and compared for a vector that is added.
    tol : float, default=1e-3
        Growth ends before ``max_basis`` when a vector lowers the objective by less than this,
        relative. 0 switches the rule off.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the fit and in what is measured.
    random_state : int, RandomState instance or None, default=None
        Seed for the draws of candidates.
    n_jobs : int, default=None
        Number of threads. None is 1, -1 all cores. It changes the speed and nothing else.
    verbose : bool, default=True
        Whether to print how many vectors there were and are, the share of rows whose class stays
        the same, the share of the scores' variance that is kept, and with y the accuracies.

    Returns
    -------
    machine : SparseKernelClassifier
        Fitted, and like any other: it compiles, saves and exports. Its parameters are those with
        which ``fit`` would train a machine of this size and kernel on labels, C and loss taken from
        the machine that was compressed; with ``warm_start=True`` it would go on from the vectors
        chosen here. Objective and ``history_`` are of the fit above, and ``history_`` has more
        entries, all measured on X: ``agreement``, the share of rows whose class stays the same;
        ``r2``, the share of variance of the scores (not for classes); with y ``accuracy``.

    Notes
    -----
    An SVC of more than two classes votes over pairs of them, and votes are steps that few vectors
    cannot follow. The score of a class is taken to be its smallest margin in any of its pairs, the
    largest for the class that wins them all. Where no class does, ``predict`` of the SVC may say
    another, about one row in 200, whatever the number of vectors.

    Probabilities are kept where the machine has a logistic loss. Those of ``SVC(probability=True)``
    are a fit of their own, and are not.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.svm import SVC
    >>> from widemargin import compress
    >>> X, y = load_digits(return_X_y=True)
    >>> full = SVC(C=10).fit(X[:1000], y[:1000])
    >>> small = compress(full, 60, X[:1000], random_state=0, verbose=False)
    >>> small.n_basis_
    60
    >>> bool(small.score(X[1000:], y[1000:]) > 0.85)
    True
    """
    _check_parameters(max_basis, target, C, kernel, gamma, n_candidates, tol, n_jobs, verbose)
    full = _full_machine(estimator)
    rows = _validate_rows(estimator, X)
    own = _kernel_for(full.machine, kernel, gamma, rows)
    labels, weights = _validate_labels(rows, y, sample_weight, full.attributes["classes_"])
    if max_basis >= full.n_vectors:
        warn_user(
            f"The machine has {full.n_vectors} vectors, so that max_basis={max_basis} saves "
            "nothing.",
            UserWarning,
        )
    before = np.asarray(estimator.predict(X))
    machine = SparseKernelClassifier(
        int(max_basis),
        kernel=own,
        basis=ChosenBasis(n_candidates=n_candidates),
        tol=tol,
        random_state=random_state,
        n_jobs=n_jobs,
        **full.settings,
    )
    if target == "scores":
        scores = full.scores(X, rows, thread_count(n_jobs))
        problem = Problem(SquaredError(), scores, scores.shape[1])
        C = _WEAK if C is None else C
    else:
        scores, loss, n_classes = None, machine._loss(), len(full.attributes["classes_"])
        numbers = np.searchsorted(full.attributes["classes_"], before)
        if len(present := np.unique(before[weights > 0])) < 2:
            raise ValueError(
                f"The machine predicts only 1 class, {present.tolist()[0]!r}, for all rows with "
                "weight, and target='classes' needs 2 or more. Pass more rows, or target='scores'."
            )
        problem = Problem(loss, loss.encode(numbers, n_classes), n_classes)
        C = machine.C if C is None else C
    grown, on_the_way = _grow(machine, problem, rows, weights, C)
    machine.__dict__.update(full.attributes, n_features_in_=int(rows.shape[1]))
    machine.__dict__.update(machine._fitted_attributes(own, [grown]))
    machine.history_.update(_measured(machine, on_the_way, scores, before, labels, weights))
    if verbose:
        accuracy = None if labels is None else np.average(before == labels, weights=weights)
        print(_summary(machine, full.n_vectors, accuracy))
    return machine


@dataclass(frozen=True)
class _Full:
    """A machine that is to be compressed, whoever fitted it.

    Attributes
    ----------
    machine : the estimator that has the scores
    n_vectors : int
    settings : dict
        Parameters of a SparseKernelClassifier that would be trained like it.
    attributes : dict
        What its result has in common with it: classes, and names of features.
    """

    machine: Any
    n_vectors: int
    settings: dict[str, Any]
    attributes: dict[str, Any]

    def scores(self, X: Any, rows: Rows, n_threads: int) -> Array:
        """Return what is to be fitted, of shape (n_rows, n_outputs)."""
        if isinstance(self.machine, BaseClassifier):
            scores = self.machine.model_.scores(rows, n_threads, dtype=np.float64)
            readout = self.machine.readout_
            # The result has a softmax, and this is what it makes the same probabilities of.
            rest = readout.link == "one_against_rest" and readout.kind == "multiclass"
            return np.ascontiguousarray(log_expit(scores) if rest else scores)
        pairs = copy(self.machine).set_params(decision_function_shape="ovo")
        margins = np.asarray(pairs.decision_function(X), dtype=np.float64)
        n_classes = len(self.attributes["classes_"])
        return margins[:, None] if n_classes == 2 else _smallest_margins(margins, n_classes)


def _smallest_margins(margins: Array, n_classes: int) -> Array:
    """Return the smallest margin of each class in its pairs, which come as (0, 1), (0, 2), ..."""
    smallest = np.full((len(margins), n_classes), np.inf)
    for margin, (first, second) in zip(margins.T, combinations(range(n_classes), 2), strict=True):
        np.minimum(smallest[:, first], margin, out=smallest[:, first])
        np.minimum(smallest[:, second], -margin, out=smallest[:, second])
    return smallest


def _full_machine(estimator: Any) -> _Full:
    if not isinstance(estimator, (BaseClassifier, SVC, NuSVC)):
        steps = getattr(estimator, "steps", None)
        raise TypeError(
            "compress takes a fitted kernel machine of widemargin, or an SVC or NuSVC of "
            f"scikit-learn, got {type(estimator).__name__}."
            + (" Compress its last step, with X as the steps before make it." if steps else "")
        )
    check_is_fitted(estimator)
    names = ("classes_", "feature_names_in_")
    attributes = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if isinstance(estimator, BaseClassifier):
        machine: Any = getattr(estimator, "best_estimator_", estimator)
        model = machine.model_
        if not isinstance(model, KernelExpansion):
            raise ValueError(
                f"{type(estimator).__name__} is linear and has no vectors: there is nothing to "
                "compress."
            )
        if machine.readout_.kind == "multilabel":
            raise ValueError("compress takes machines of classes, not of labels.")
        return _Full(machine, model.n_basis, _settings_of(machine), attributes)
    settings = {name: getattr(estimator, name) for name in ("C", "class_weight")}
    if isinstance(estimator, NuSVC):
        del settings["C"]
    return _Full(estimator, len(estimator.support_), settings, attributes)


def _settings_of(machine: Any) -> dict[str, Any]:
    known = machine.get_params(deep=False)
    settings = {name: known[name] for name in ("C", "class_weight") if name in known}
    loss = known.get("loss")
    if (loss.name if isinstance(loss, Loss) else loss) in CLASS_LOSSES:
        settings["loss"] = loss
    return settings


def _kernel_for(machine: Any, kernel: Any, gamma: float | str, rows: Rows) -> Kernel:
    """Return the kernel that was asked for, or the machine's own."""
    own = _own_kernel(machine) if kernel is None else as_kernel(kernel, rows, gamma=gamma)
    matrix = bool(get_tags(machine).input_tags.pairwise)
    if isinstance(own, Precomputed) != matrix:
        raise ValueError(
            "A machine with a precomputed kernel sees rows of a kernel matrix, and no other does. "
            "Leave kernel=None."
        )
    if matrix and rows.shape[0] != rows.shape[1]:
        raise ValueError(
            f"With a precomputed kernel X must be the kernel matrix of the {rows.shape[1]} "
            f"training rows, among which the vectors are chosen; got shape {rows.shape}."
        )
    if isinstance(own, AdaptiveRBF):
        raise ValueError(
            "The vectors of this machine have widths of their own, which other vectors lack. Pass "
            "kernel='rbf', with or without gamma, to compress it into a plain one."
        )
    return own


def _own_kernel(machine: Any) -> Kernel:
    if isinstance(machine, BaseClassifier):
        model: Any = machine.model_
        return model.kernel  # type: ignore[no-any-return]  # of an expansion
    if callable(machine.kernel):
        return CustomKernel(machine.kernel)
    if machine.kernel == "linear":
        return Linear()
    if machine.kernel == "precomputed":
        return Precomputed()
    if machine.kernel == "poly":
        return Polynomial(float(machine._gamma), int(machine.degree), float(machine.coef0))
    if machine.kernel == "rbf":
        return RBF(float(machine._gamma))
    return Sigmoid(float(machine._gamma), float(machine.coef0))


def _check_parameters(
    max_basis: Any,
    target: Any,
    C: Any,
    kernel: Any,
    gamma: Any,
    n_candidates: Any,
    tol: Any,
    n_jobs: Any,
    verbose: Any,
) -> None:
    check_integer("max_basis", max_basis, least=1)
    check_choice("target", target, _TARGETS)
    if C is not None:
        check_real("C", C, positive=True)
    if not (kernel is None or isinstance(kernel, Kernel) or callable(kernel)):
        check_choice("kernel", kernel, KERNEL_NAMES, ", a Kernel, a callable or None")
    check_gamma(gamma)
    if not isinstance(kernel, str) and gamma != "scale":
        raise ValueError("gamma is the width of a kernel that is given by name: pass kernel='rbf'.")
    if isinstance(n_candidates, str):
        check_choice("n_candidates", n_candidates, ("all",), ", or an integer")
    else:
        check_integer("n_candidates", n_candidates, least=1)
    check_real("tol", tol, least=0.0)
    check_jobs(n_jobs)
    check_flag("verbose", verbose)


def _validate_rows(estimator: Any, X: Any) -> Rows:
    return canonical_rows(validated_data(estimator, X, reset=False))


def _validate_labels(
    rows: Rows, y: Any, sample_weight: Any, classes: Array
) -> tuple[Array | None, Array]:
    """Return classes, if any, and weights of the rows."""
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; there is nothing to fit.")
    if y is None:
        return None, weights
    labels = column_or_1d(y)
    if len(labels) != rows.shape[0]:
        raise ValueError(f"X has {rows.shape[0]} rows, and y has {len(labels)}.")
    if not np.isin(labels, classes).any():
        raise ValueError(f"y has none of the classes of the machine: {classes!r}.")
    return labels, weights


def _grow(
    machine: SparseKernelClassifier, problem: Problem, rows: Rows, weights: Array, C: float
) -> tuple[Grown, list[Array]]:
    """Choose vectors; return what they make, and the scores at each size on the way."""
    objective = objective_of(
        problem,
        machine.kernel,
        rows,
        C * weights,
        fit_intercept=machine.fit_intercept,
        max_basis=machine.max_basis,
        n_threads=thread_count(machine.n_jobs),
    )
    quadratic = isinstance(problem.loss, SquaredError)
    solver = GreedyNewton(
        max_basis=machine.max_basis,
        n_candidates=machine.basis.n_candidates,
        tol=machine.tol,
        gradient_tol=(
            _GRADIENT_TOL[np.dtype(rows.dtype)] if quadratic else machine.basis.gradient_tol
        ),
    )
    with one_blas_thread():
        state = solver.init(objective, check_random_state(machine.random_state))
        growth = Growth(solver, objective, state)
        growth.run(Progress())
        grown, ended = growth.finish()
        stages = ended.stages[-len(grown.expansions) :]
        scores = [objective.gather(objective.scores(stage)) for stage in stages[:-1]]
    if not ended.converged:
        warn_user(
            f"The last solve stopped at a relative gradient of {ended.history['gradient'][-1]:.1e}."
            " Lower C, check the scale of X, or pass float64 data.",
            ConvergenceWarning,
        )
    return grown, [*scores, objective.gather(ended.scores)]


def _measured(
    machine: SparseKernelClassifier,
    on_the_way: list[Array],
    targets: Array | None,
    before: Array,
    labels: Array | None,
    weights: Array,
) -> dict[str, Array]:
    """Return entries of a history, one a size: what the machine kept of the full one."""
    history: dict[str, list[float]] = {"agreement": []}
    if targets is not None:
        history["r2"] = []
        spread = _spread(targets, weights)
    if labels is not None:
        history["accuracy"] = []
    for scores in on_the_way:
        if targets is not None:
            lost = _squares(scores - targets, weights)
            history["r2"].append(1.0 - lost / spread)
        gap = scores[:, -1] - scores[:, 0] if scores.shape[1] == 2 else scores[:, 0]
        binary = len(machine.classes_) == 2
        after = machine.classes_[(gap > 0).astype(np.intp) if binary else scores.argmax(axis=1)]
        history["agreement"].append(float(np.average(after == before, weights=weights)))
        if labels is not None:
            history["accuracy"].append(float(np.average(after == labels, weights=weights)))
    return {name: np.array(values) for name, values in history.items()}


def _spread(targets: Array, weights: Array) -> float:
    """Return the variance of scores, summed; of scores that are all equal, their squares."""
    about_mean = _squares(targets - np.average(targets, axis=0, weights=weights), weights)
    about_zero = _squares(targets, weights)
    rounding = np.finfo(np.float64).eps * about_zero
    return max(about_mean if about_mean > rounding else about_zero, np.finfo(np.float64).tiny)


def _squares(values: Array, weights: Array) -> float:
    return float(weights @ np.einsum("ij,ij->i", values, values, dtype=np.float64))


def _summary(machine: SparseKernelClassifier, n_vectors: int, accuracy: Any) -> str:
    last = {name: values[-1] for name, values in machine.history_.items()}
    text = (
        f"{n_vectors} vectors -> {machine.n_basis_}: {100 * last['agreement']:.2f} % of the rows "
        "keep their class"
    )
    if "r2" in last:
        text += f", {100 * last['r2']:.2f} % of the variance of the scores is kept"
    if accuracy is not None:
        text += f"\naccuracy {100 * accuracy:.2f} % -> {100 * last['accuracy']:.2f} %"
    return text

"""Compression: a fitted machine of many vectors made one of few, by fitting what it says."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from widemargin._system.parameters import (
    check_choice,
    check_flag,
    check_integer,
    check_jobs,
    check_real,
)
from widemargin._system.threads import one_blas_thread, thread_count
from widemargin._system.warnings import warn_user
from widemargin.estimation.named_kernels import as_kernel, check_gamma
from widemargin.kernels import KERNEL_NAMES, AdaptiveRBF, Kernel, Precomputed, Rows
from widemargin.losses import SquaredError
from widemargin.rows import canonical_rows, validated_data
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.distillation import LABEL_SHARE, distil
from widemargin.sparse_kernel.grown import Grown, Growth, Problem, objective_of
from widemargin.sparse_kernel.keeping import figures, summary
from widemargin.sparse_kernel.settings import BasisSettings, ChosenBasis, LearnedBasis, as_basis
from widemargin.sparse_kernel.teachers import KernelMachine, Teacher, is_kernel_machine

Array: TypeAlias = npt.NDArray[Any]

_TARGETS = ("scores", "classes")
_N_CANDIDATES = 128
_UNLABELLED = -1  # in y, as in scikit-learn's semi-supervised learning
_WEAK = 1e4  # C at which the regulariser no longer shrinks scores
# Relative gradient at the end. One step solves a squared error, so that double reaches it.
_GRADIENT_TOL = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-8}


def compress(
    estimator: Any,
    max_basis: int,
    X: Any,
    y: Any = None,
    *,
    basis: Any = "shared",
    target: str = "scores",
    label_share: float | None = None,
    C: float | None = None,
    kernel: Any = None,
    gamma: float | str = "scale",
    n_candidates: int | str = _N_CANDIDATES,
    tol: float = 1e-3,
    sample_weight: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: bool = True,
) -> SparseKernelClassifier:
    """Make a fitted classifier a machine of few vectors, and print what that cost.

    With ``basis="shared"`` vectors are chosen greedily among the rows of X, with the coefficients
    that minimise ::

        1/2 tr(A' K_JJ A) + 1/2 |b|^2 + C/2 sum_i weight_i |K_iJ A + b - t_i|^2

    where t_i are the scores that the machine gives row i. Labels play no part in it. With
    ``basis="learned"`` any classifier is distilled into vectors that move, to minimise ::

        1/2 |A|^2 + 1/2 |b|^2 + C sum_i weight_i sum_c q_ic loss(f_i, c),  f_i = h(x_i) A + b,
        q_i = (1 - label_share) p_i + label_share e(y_i)

    where p_i are the probabilities that it gives the classes, e(y_i) has a 1 at the label, and
    q_i = p_i for a row without a label. Its vectors are far fewer for the same accuracy.

    Parameters
    ----------
    estimator : fitted estimator
        For chosen vectors, a kernel machine of this library, :class:`sklearn.svm.SVC` or
        :class:`sklearn.svm.NuSVC`. For learned ones, any classifier: forests, boosted trees,
        networks, ensembles, pipelines, which see X as it is.
    max_basis : int
        Vectors at the most.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows that are fitted, and that the vectors are chosen from. The training rows are the
        natural choice; others like them will do, as no labels are needed. For a precomputed
        kernel, the kernel matrix of the training rows.
    y : array-like of shape (n_samples,), default=None
        Classes of the rows, to measure what the accuracy was and is; learned vectors also learn
        from them. -1 is a row without a label, unless it is a class. For an honest figure, call
        ``score`` of both machines with rows that neither has seen.
    basis : {"shared", "learned"}, ChosenBasis or LearnedBasis, default="shared"
        How vectors are found, as in :class:`SparseKernelClassifier`.
    target : {"scores", "classes"}, default="scores"
        What of the machine is fitted. "classes": the classes that it predicts, by the loss of the
        machine that is returned; of chosen vectors scores then are others, but far fewer classes
        change. Learned vectors follow probabilities for "scores", a softmax of its scores where a
        classifier has no others (or is an SVC). They are sharpened until in the median row the best
        class is e^6 times as probable as the next, unless the machine has a logistic loss.
    label_share : float, default=None
        Weight of the labels, from 0 to 1, in what learned vectors are fitted to. None is 0.5 where
        there is a y.
    C : float, default=None
        Weight of the loss of a row against the regulariser. None is 10 for learned vectors. For
        chosen ones it is 1e4 for scores, where the regulariser is there for stability and should
        not shrink anything; for classes, the C of the machine.
    kernel : str, Kernel or callable, default=None
        None is the machine's own, which suits its scores best. A learned basis whose vectors have
        widths and a metric has no kernel that other vectors could use, and needs one here. Vectors
        that are learned have "rbf".
    gamma : {"scale", "auto"} or float, default="scale"
        Width of a kernel that is given by name: as in :class:`SparseKernelClassifier`, by the
        variance of X or by the number of its features.
    n_candidates : int or "all", default=128
        Rows drawn at random and compared for a vector that is added, for ``basis="shared"``.
    tol : float, default=1e-3
        Growth ends before ``max_basis`` when a vector lowers the objective by less than this,
        relative; learned vectors end when a move lowers it by less than a tenth. 0 switches the
        rule off.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows, in the fit and in what is measured.
    random_state : int, RandomState instance or None, default=None
        Seed for the draws of candidates, or for where vectors begin and the order of batches.
    n_jobs : int, default=None
        Number of threads. None is 1, -1 all cores. It changes the speed and nothing else.
    verbose : bool, default=True
        Whether to print how many vectors there were and are, the share of rows whose class stays
        the same, the share of the scores' variance that is kept, and with y the accuracies.

    Returns
    -------
    machine : SparseKernelClassifier
        Fitted, and like any other: it compiles, saves and exports. Its parameters are those with
        which ``fit`` would train a machine of this size and kernel on labels; of chosen vectors, C
        and loss are taken from the machine that was compressed, of learned ones the loss where it
        is one of this library. With ``warm_start=True`` it would go on from the vectors found
        here. Objective and ``history_`` are of the fit above, and ``history_`` has more entries,
        all measured on X, for learned vectors at the end and NaN before: ``agreement``, the share
        of rows whose class stays the same; ``r2``, the share of variance of the scores (not for
        classes, nor for learned vectors); with y ``accuracy``, of the rows with a label.

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

    A forest, by fewer vectors that are learned:

    >>> from sklearn.ensemble import RandomForestClassifier
    >>> forest = RandomForestClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> small = compress(
    ...     forest, 20, X[:1000], y[:1000], basis="learned", random_state=0, verbose=False
    ... )
    >>> bool(small.score(X[1000:], y[1000:]) > forest.score(X[1000:], y[1000:]) - 0.01)
    True
    """
    settings = _basis_for(basis, n_candidates)
    _check_parameters(max_basis, target, C, kernel, gamma, tol, n_jobs, verbose)
    learns = isinstance(settings, LearnedBasis)
    share = _share_of_labels(label_share, has_labels=y is not None, learns=learns)
    # Chosen vectors follow a kernel machine alone; learned ones take its loss, where it is one.
    full = KernelMachine.of(estimator) if is_kernel_machine(estimator) or not learns else None
    teacher = Teacher(estimator)
    machine = SparseKernelClassifier(
        int(max_basis),
        basis=basis if learns else settings,
        tol=tol,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    if full is None or learns:
        rows = canonical_rows(validated_data(clone(machine), X, reset=True))
        machine.set_params(**_settings_of_student(full, kernel, gamma, C))
    else:
        rows = canonical_rows(validated_data(estimator, X, reset=False))
        machine.set_params(kernel=_kernel_for(full, kernel, gamma, rows), **full.settings)
    labels, weights = _validate_labels(rows, y, sample_weight, teacher.classes)
    if learns:
        _refuse_other_classes(y, labels, teacher.classes)
    _warn_if_no_smaller(max_basis, full)
    before = teacher.predict(X)
    scores = None
    if full is None or learns:
        distil(machine, teacher, X, before, target, labels, share, weights)
        on_the_way = [machine.model_.scores(rows, thread_count(n_jobs), dtype=np.float64)]
    else:
        if target == "scores":
            scores = full.scores(X, rows, thread_count(n_jobs))
        problem, own_C = _problem(machine, teacher, scores, before, weights)
        grown, on_the_way = _grow(machine, problem, rows, weights, own_C if C is None else C)
        machine.__dict__.update(full.attributes, n_features_in_=int(rows.shape[1]))
        machine.__dict__.update(machine._fitted_attributes(machine.kernel, [grown]))
    told = figures(on_the_way, scores, before, labels, weights)
    # Learned vectors are looked at once they no longer move.
    unseen = np.full(len(machine.history_["objective"]) - len(on_the_way), np.nan)
    machine.history_.update({name: np.append(unseen, each) for name, each in told.items()})
    if verbose:
        print(summary(_sizes(estimator, full, machine), machine, before, labels, weights))
    return machine


def _basis_for(basis: Any, n_candidates: Any) -> BasisSettings:
    """Return the settings of the basis, which of chosen vectors may be given by a parameter."""
    settings = as_basis(basis)
    if settings.per_class:
        raise ValueError("compress has one basis for all classes: 'shared' or 'learned'.")
    if isinstance(basis, str) and isinstance(settings, ChosenBasis):
        settings = ChosenBasis(n_candidates=n_candidates)
    elif n_candidates != _N_CANDIDATES:
        raise ValueError(
            "n_candidates goes with basis='shared'. A ChosenBasis has its own, and learned vectors "
            "have none."
        )
    settings.check()
    return settings


def _share_of_labels(label_share: Any, *, has_labels: bool, learns: bool) -> float:
    if label_share is None:
        return LABEL_SHARE if has_labels else 0.0
    check_real("label_share", label_share, least=0.0)
    if label_share > 1:
        raise ValueError(f"label_share must be 1 or less, got {label_share}.")
    if not learns:
        raise ValueError("Labels have a share only in learned vectors: pass basis='learned'.")
    if label_share > 0 and not has_labels:
        raise ValueError(f"label_share={label_share} needs labels: pass y, or label_share=0.")
    return float(label_share)


def _settings_of_student(
    full: KernelMachine | None, kernel: Any, gamma: Any, C: Any
) -> dict[str, Any]:
    """Return parameters of a machine whose vectors are learned."""
    if kernel not in (None, "rbf"):
        raise ValueError(
            f"Learned vectors are Gaussian units, so that kernel must be 'rbf', got {kernel!r}."
        )
    if full is not None and isinstance(full.kernel, Precomputed):
        raise ValueError(
            "The machine has a precomputed kernel and sees no features, among which vectors could "
            "be learned. Use basis='shared'."
        )
    loss = {} if full is None or "loss" not in full.settings else {"loss": full.settings["loss"]}
    return {"gamma": gamma, **({} if C is None else {"C": C}), **loss}


def _warn_if_no_smaller(max_basis: int, full: KernelMachine | None) -> None:
    if full is not None and max_basis >= full.n_vectors:
        warn_user(
            f"The machine has {full.n_vectors} vectors, so that max_basis={max_basis} saves "
            "nothing.",
            UserWarning,
        )


def _kernel_for(full: KernelMachine, kernel: Any, gamma: float | str, rows: Rows) -> Kernel:
    """Return the kernel that was asked for, or the machine's own."""
    own = full.kernel if kernel is None else as_kernel(kernel, rows, gamma=gamma)
    matrix = bool(get_tags(full.machine).input_tags.pairwise)
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
            "kernel='rbf', with or without gamma, to compress it into a plain one, or "
            "basis='learned'."
        )
    own.check_rows(rows)
    return own


def _check_parameters(
    max_basis: Any,
    target: Any,
    C: Any,
    kernel: Any,
    gamma: Any,
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
    check_real("tol", tol, least=0.0)
    check_jobs(n_jobs)
    check_flag("verbose", verbose)


def _validate_labels(
    rows: Rows, y: Any, sample_weight: Any, classes: Array
) -> tuple[npt.NDArray[np.intp] | None, Array]:
    """Return numbers of classes, if any, and weights of the rows.

    A row without a label has the number -1, and one of another class that of no class.
    """
    weights = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; there is nothing to fit.")
    if y is None:
        return None, weights
    labels = column_or_1d(y)
    if len(labels) != rows.shape[0]:
        raise ValueError(f"X has {rows.shape[0]} rows, and y has {len(labels)}.")
    known = np.isin(labels, classes)
    if not known.any():
        raise ValueError(f"y has none of the classes of the machine: {classes!r}.")
    numbers = np.full(len(labels), len(classes), dtype=np.intp)
    numbers[known] = np.searchsorted(classes, labels[known])
    numbers[~known & (labels.astype(object) == _UNLABELLED)] = -1
    return numbers, weights


def _refuse_other_classes(y: Any, labels: Array | None, classes: Array) -> None:
    if labels is not None and (labels == len(classes)).any():
        others = np.unique(column_or_1d(y)[labels == len(classes)])
        raise ValueError(
            f"y has classes that the teacher does not know: {others.tolist()!r}; it knows "
            f"{classes.tolist()!r}. Leave these rows out."
        )


def _problem(
    machine: SparseKernelClassifier,
    teacher: Teacher,
    scores: Array | None,
    told: npt.NDArray[np.intp],
    weights: Array,
) -> tuple[Problem, float]:
    """Return what chosen vectors are fitted to, scores or else classes, and the C for it."""
    if scores is not None:
        return Problem(SquaredError(), scores, scores.shape[1]), _WEAK
    if len(present := np.unique(told[weights > 0])) < 2:
        raise ValueError(
            f"The machine predicts only 1 class, {teacher.classes[present].tolist()[0]!r}, for all "
            "rows with weight, and target='classes' needs 2 or more. Pass more rows, or "
            "target='scores'."
        )
    loss, n_classes = machine._loss(), len(teacher.classes)
    return Problem(loss, loss.encode(told, n_classes), n_classes), machine._cap()


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


def _sizes(estimator: Any, full: KernelMachine | None, machine: SparseKernelClassifier) -> str:
    if full is None:
        return f"{type(estimator).__name__} -> {machine.n_basis_} vectors"
    return f"{full.n_vectors} vectors -> {machine.n_basis_}"

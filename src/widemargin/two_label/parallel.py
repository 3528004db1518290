"""Parallel hyperplanes of two labels that may overlap, or of classes in an order."""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin._system.warnings import warn_user
from widemargin.estimation.base import MODEL_PARTS
from widemargin.estimation.docstrings import with_shared_texts
from widemargin.solvers.duals.parallel_planes import PlanesMachine
from widemargin.two_label.chain import Answer, Copies, chain_answer, chain_copies
from widemargin.two_label.levels import LevelRows
from widemargin.two_label.machine import PlanesClassifier

Array: TypeAlias = npt.NDArray[Any]


@with_shared_texts
class ParallelSVM(PlanesClassifier):
    """Support vector machine with parallel hyperplanes: two labels that may overlap, or a chain.

    Rows with both of two labels A and B are expected to lie between those with one: a single
    function ``f(x) = sum_i a_i k(x_i, x)`` and two thresholds tell three sets apart (PSVM) ::

        {A}: f(x) + b1 > 0     {A, B}: f(x) + b1 < 0 < f(x) + b2     {B}: f(x) + b2 < 0

    so that no row is ever answered neither label. Where y has classes that lie in an order, it is
    an ordinal machine, with a threshold between each two that are neighbours; two classes make it
    the plain support vector machine with a bias. It minimises ::

        1/2 |f|^2 + C sum_ig weight_i max(0, 1 - t_ig (f(x_i) + b_g))

    over f and all b, where t_ig is 1 or -1 as row i belongs above threshold g or below. As every
    row counts for every threshold, the best thresholds are in order by themselves [2]_, unless
    ``class_weight`` makes rows count otherwise for one label than for the other. Where they are
    not, b1 < b2 fails, and no row would be answered both labels: the fit warns.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the regulariser.

    |kernel| |gamma| |degree| |coef0|

    tol : float, default=1e-4
        Duality gap at which a fit ends, as a share of the objective.

    max_iter : int or None, default=None
        Steps at the most, each of two coefficients. None is as many as it takes.

    |max_seconds| |cache_size|

    class_weight : dict or "balanced", default=None
        Weights of rows by their class, multiplied with ``sample_weight``. Of two labels, a dict has
        weights by label: rows that have the label count so much where it is asked for, rows that
        lack it 1. "balanced": both sides of each label weigh alike, and so do all classes.

    |warm_start| |n_jobs| |verbose|

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (n_classes,)
        The two labels in the order of the columns of y, or of sets in rising order: the first is A.
        Else the classes, in rising order, which is that of the chain.
    |n_features_in_| |feature_names_in_| |n_basis_|
    n_support_vectors_ : int
        Number of coefficients that are not zero; a row has one for each threshold.
    |basis_| |basis_indices_|
    dual_coef_ : ndarray of shape (n_basis, n_outputs)
        Coefficients of the scores: a and -a for two labels, a for two classes, and 0, a, 2 a, ...
        for a longer chain.
    coef_ : ndarray of shape (n_outputs, n_features)
        Weights of the features; only with a linear kernel.
    intercept_ : ndarray of shape (2,) or (n_classes - 1,)
        b1 and b2 of two labels; of a chain, the shift of each threshold, the lowest first. Those
        that came out of order are their mean.
    objective_ : float
        The primal objective.
    dual_objective_ : float
        The dual objective, (6) of the paper, which is never larger.
    gap_ : float
        The difference: how far the objective is from the best at the most.
    |n_kernel_evaluations_|
    n_iter_ : int
        Steps.
    stop_reason_ : str
        Why the fit ended: "tol", "max_iter", "max_seconds", "callback", "interrupted", or "stuck"
        (no step improves the machine, with a warning).
    history_ : dict of ndarray
        The way there: ``steps``, ``seconds``, ``dual``, ``primal``, ``gap``,
        ``kernel_evaluations``, ``support_vectors``, ``support_patterns``. Where Ctrl-C ended the
        fit, the estimator is as it was before, but for an entry ``last_good`` here: a fitted copy.
    |model_| |readout_|

    See Also
    --------
    SequentialSVM : First whether a row has both labels, then which.
    CrossTrainingSVM : A machine for each label.
    widemargin.two_label.PairwiseMultiLabel : More than two labels, by pairs.
    KernelMultiLabelClassifier : Any number of labels, and rows that may have none.

    References
    ----------
    .. [1] L. Wang, M. Chang, J. Feng, "Parallel and sequential support vector machines for
       multi-label classification", Center for Information Sciences, Peking University.
    .. [2] W. Chu, S. S. Keerthi, "Support vector ordinal regression", Neural Computation, 2007:
       chains of classes, with implicit constraints on the thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import ParallelSVM
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> Y = np.hstack([X > -1, X < 1]).astype(int)
    >>> machine = ParallelSVM(C=10).fit(X, Y)
    >>> machine.predict([[-2.0], [0.0], [2.0]])
    array([[0, 1],
           [1, 1],
           [1, 0]])
    """

    _takes_chains: ClassVar[bool] = True
    _model_parts: ClassVar[frozenset[str]] = MODEL_PARTS - {"intercept_"}

    @property
    def intercept_(self) -> Array:
        """Shifts of the thresholds."""
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'intercept_'")
        given = self.model_.intercept
        if self.readout_.kind == "multilabel":
            return np.array([-given[1], given[0]])
        return np.diff(given) if len(given) > 1 else given.copy()

    def decision_function(self, X: Any) -> Array:
        """Return scores that say how far a row is from the thresholds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        scores : ndarray
            Two labels, of shape (n_samples, 2): ``f + b2`` and ``-(f + b1)``, positive where a row
            has the label. Two classes, of shape (n_samples,): ``f + b``, positive for the second.
            More, of shape (n_samples, n_classes): the largest is that of the answer, and two
            neighbours differ by ``f + b`` of the threshold between them.
        """
        return super().decision_function(X)

    def _copies(self, data: LevelRows) -> Copies:
        return chain_copies(data)

    def _answer(self, columns: Array, machine: PlanesMachine, data: LevelRows) -> Answer:
        return chain_answer(columns[:, 0], machine.intercepts(), data)

    def _warn_of_answer(self, machine: PlanesMachine, data: LevelRows) -> None:
        shifts = machine.intercepts()
        skipped = np.flatnonzero(shifts[1:] >= shifts[:-1]) + 1
        # What no row of the data is on is not missed.
        missed = [level for level in skipped if ((data.levels == level) & (data.weights > 0)).any()]
        if not missed:
            return
        if data.has_labels:
            b1, b2 = shifts[1], shifts[0]
            never = f"b1 = {b1:.3g} is not below b2 = {b2:.3g}, so that no row is answered both"
        else:
            names = ", ".join(repr(name) for name in data.classes[missed].tolist())
            never = f"thresholds are out of order, so that no row is answered {names}"
        warn_user(
            f"In this machine {never}. At the optimum thresholds are in order where rows count the "
            "same for each: let the fit go on, by a smaller tol or a larger max_iter, or give the "
            "labels a larger class_weight.",
            UserWarning,
        )

"""Two labels in two steps: first whether a row has both, then which it has."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.docstrings import with_shared_texts
from widemargin.readouts import Readout
from widemargin.solvers.duals.parallel_planes import PlanesMachine
from widemargin.two_label.chain import Answer, Copies, chain_answer, chain_copies, signed
from widemargin.two_label.levels import LevelRows
from widemargin.two_label.machine import PlanesClassifier
from widemargin.two_label.map_threshold import nearness

Array: TypeAlias = npt.NDArray[Any]


@with_shared_texts
class SequentialSVM(PlanesClassifier):
    """Two labels that may overlap, in two steps: whether a row has both, then which it has.

    The first machine learns A against B from all rows, those with both labels twice, once on either
    side: they are drawn to its boundary. A row whose score is within a threshold of 0 has both
    labels. Of any other the second machine, which has learned from rows with one label alone, says
    whether it has A or B (SSVM). The threshold is that of :func:`widemargin.two_label.
    map_threshold` for the scores of the training rows. Both machines have a kernel expansion and a
    bias of their own, and are solved together, over the same kernel rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the regulariser, in either machine.

    |kernel| |gamma| |degree| |coef0|

    tol : float, default=1e-4
        Duality gap at which a fit ends, as a share of the objective; of both machines together.

    max_iter : int or None, default=None
        Steps at the most, each of two coefficients. None is as many as it takes.

    |max_seconds| |cache_size|

    class_weight : dict or "balanced", default=None
        Weights of labels, multiplied with ``sample_weight``: what a row counts where it stands for
        the label, by label. "balanced": as much as rows that have the label are fewer.

    |warm_start| |n_jobs| |verbose|

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels in the order of the columns of y, or of sets in rising order; or two classes.
    threshold_ : float
        Rows whose first score is nearer to 0 than this have both labels.
    |n_features_in_| |feature_names_in_| |n_basis_|
    n_support_vectors_ : int
        Number of coefficients that are not zero, in both machines.
    |basis_| |basis_indices_|
    dual_coef_ : ndarray of shape (n_basis, 2), or (n_basis, 1) for two classes
        Coefficients of the two machines.
    coef_ : ndarray of shape (2, n_features), or (1, n_features) for two classes
        Weights of the features; only with a linear kernel.
    intercept_ : ndarray of shape (2,), or (1,) for two classes
        The biases of the two machines.
    objective_ : float
        The primal objectives of both machines, summed.
    dual_objective_ : float
        The dual objectives, which are never larger.
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
    ParallelSVM : One function and two thresholds.
    CrossTrainingSVM : A machine for each label.

    References
    ----------
    .. [1] L. Wang, M. Chang, J. Feng, "Parallel and sequential support vector machines for
       multi-label classification", Center for Information Sciences, Peking University.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SequentialSVM
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> Y = np.hstack([X > -1, X < 1]).astype(int)
    >>> SequentialSVM().fit(X, Y).predict([[-2.0], [0.0], [2.0]])
    array([[0, 1],
           [1, 1],
           [1, 0]])
    """

    _fitted_names = PlanesClassifier._fitted_names | {"intercept_"}

    @property
    def threshold_(self) -> float:
        """How near to 0 the first score of rows with both labels is."""
        if "readout_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'threshold_'")
        thresholds = self.readout_.thresholds
        return 0.0 if thresholds is None else float(thresholds[1])

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the two machines.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples, 2), or (n_samples,) for two classes
            The first is near 0 for rows that have both labels; the second is positive for the first
            label, negative for the second. For two classes, the score of the second.
        """
        return super().decision_function(X)

    def _copies(self, data: LevelRows) -> Copies:
        if not data.has_labels:
            return chain_copies(data)
        assert data.with_label is not None
        as_first, as_second = (data.caps * weight for weight in data.with_label)
        both = data.has_both
        is_first = data.has(0)
        own = np.where(is_first, as_first, as_second)
        signs = [signed(is_first), np.full(len(both), -1, dtype=np.int8), signed(is_first)]
        caps = [own, np.where(both, as_second, 0.0), np.where(both, 0.0, own)]
        return Copies(np.stack(signs), np.stack(caps), (0, 0, 1), (0, 1))

    def _answer(self, columns: Array, machine: PlanesMachine, data: LevelRows) -> Answer:
        shifts = machine.intercepts()
        if not data.has_labels:
            return chain_answer(columns[:, 0], shifts, data)
        near = nearness(machine.scores()[0] + shifts[0], data.has_both, data.weights)
        return Answer(
            columns, shifts, Readout(data.classes, "two_step", thresholds=np.array([-near, near]))
        )

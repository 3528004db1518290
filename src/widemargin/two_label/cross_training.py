"""Two labels, a machine for each, and how far apart their scores are."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.estimation.docstrings import with_shared_texts
from widemargin.solvers.duals.parallel_planes import PlanesMachine
from widemargin.two_label.chain import (
    Answer,
    Copies,
    chain_answer,
    chain_copies,
    label_answer,
    signed,
)
from widemargin.two_label.levels import LevelRows
from widemargin.two_label.machine import PlanesClassifier
from widemargin.two_label.map_threshold import nearness

Array: TypeAlias = npt.NDArray[Any]


@with_shared_texts
class CrossTrainingSVM(PlanesClassifier):
    """Two labels that may overlap: a machine for each, whose scores are compared.

    Each label has a support vector machine with a bias, of rows that have it against rows that lack
    it, so that rows with both labels are learned from twice (cross-training). Scores of a row that
    are nearer to each other than a threshold speak for both labels, else the larger one is right
    (C-criterion). The threshold is that of :func:`widemargin.two_label.map_threshold` for the
    training rows. Both machines are solved together, over the same kernel rows.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the summed loss against the regulariser, in either machine.

    |kernel| |gamma| |degree| |coef0|

    tol : float, default=1e-4
        Duality gap at which a fit ends, as a share of the objective; of both machines together.

    max_iter : int or None, default=None
        Steps at the most, each of two coefficients. None is as many as it takes.

    |max_seconds| |cache_size| |label_class_weight| |warm_start| |n_jobs| |verbose|

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two labels in the order of the columns of y, or of sets in rising order; or two classes.
    threshold_ : float
        Rows whose two scores differ by less than this have both labels.
    |n_features_in_| |feature_names_in_| |n_basis_|
    n_support_vectors_ : int
        Number of coefficients that are not zero, in both machines.
    |basis_| |basis_indices_|
    dual_coef_ : ndarray of shape (n_basis, 2), or (n_basis, 1) for two classes
        Coefficients of the scores that ``decision_function`` gives.
    coef_ : ndarray of shape (2, n_features), or (1, n_features) for two classes
        Weights of the features; only with a linear kernel.
    intercept_ : ndarray of shape (2,), or (1,) for two classes
        Intercepts of these scores, in which the threshold is.
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
    SequentialSVM : First whether a row has both labels, then which.

    References
    ----------
    .. [1] M. R. Boutell, J. Luo, X. Shen, C. M. Brown, "Learning multi-label scene
       classification", Pattern Recognition, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import CrossTrainingSVM
    >>> X = np.linspace(-3, 3, 60)[:, np.newaxis]
    >>> Y = np.hstack([X > -1, X < 1]).astype(int)
    >>> CrossTrainingSVM().fit(X, Y).predict([[-2.0], [0.0], [2.0]])
    array([[0, 1],
           [1, 1],
           [1, 0]])
    """

    _fitted_names = PlanesClassifier._fitted_names | {"intercept_"}

    @property
    def threshold_(self) -> float:
        """By how much the scores of rows with both labels differ at the most."""
        if "model_" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'threshold_'")
        return float(self.model_.intercept.sum() / 2) if self.model_.n_outputs == 2 else 0.0

    def decision_function(self, X: Any) -> Array:
        """Return by how much more than the threshold each label is ahead.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples, 2), or (n_samples,) for two classes
            ``s_A - s_B + threshold_`` and ``s_B - s_A + threshold_`` with the scores s of the two
            machines: positive where a row has the label. For two classes, the score of the second.
        """
        return super().decision_function(X)

    def _copies(self, data: LevelRows) -> Copies:
        if not data.has_labels:
            return chain_copies(data)
        signs = np.stack([signed(data.has(0)), signed(data.has(1))])
        return Copies(signs, np.stack([data.label_caps(0), data.label_caps(1)]), (0, 1), (0, 1))

    def _answer(self, columns: Array, machine: PlanesMachine, data: LevelRows) -> Answer:
        shifts = machine.intercepts()
        if not data.has_labels:
            return chain_answer(columns[:, 0], shifts, data)
        shift = shifts[0] - shifts[1]
        first, second = machine.scores()
        near = nearness(first - second + shift, data.has_both, data.weights)
        return label_answer(columns[:, 0] - columns[:, 1], near + shift, near - shift, data)

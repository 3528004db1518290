"""Probabilities from scores of rows that were held out: a sigmoid for each label.

Source: J. Platt, "Probabilistic outputs for support vector machines" (1999), with the Newton steps
of H.-T. Lin, C.-J. Lin, R. C. Weng, "A note on Platt's probabilistic outputs for support vector
machines" (2007).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit, log_expit

from widemargin.estimation.thresholds import HeldOut, label_column

Array: TypeAlias = npt.NDArray[Any]

_MOST_STEPS = 100
_SMALL = 1e-8  # a gradient for each row of weight 1, at which a fit ends
_LEAST_STEP = 1e-10
_DAMPING = 1e-12  # of the Hessian, which is singular where all scores are equal


def calibrated(held_out: list[HeldOut], constant: npt.NDArray[np.int8]) -> Array:
    """Return the sigmoids of all labels, by rows that were held out in turn.

    ``constant`` is 1 for labels that all rows have and -1 for those that none has, whose
    probabilities are 1 and 0; else it is 0.
    """
    indicators = [part.indicator for part in held_out]
    stacked = sp.vstack(indicators) if sp.issparse(indicators[0]) else np.vstack(indicators)
    scores = np.vstack([part.scores for part in held_out])
    found = sigmoids(scores, stacked, np.concatenate([part.weights for part in held_out]))
    found[0, constant != 0] = 0.0
    found[1, constant != 0] = np.inf * constant[constant != 0]
    return found


def sigmoids(scores: Array, indicator: Any, weights: Array) -> Array:
    """Return slope and shift of the log odds of each label: ``slope * score + shift``.

    A label is at most as probable as n rows that all agree allow: the rows that have it say
    ``(P + 1) / (P + 2)`` and the others ``1 / (N + 2)``, with the weights P and N of both, the mean
    weight being 1. No slope is negative: where low scores spoke for a label, as they may for one
    that cannot be told, it is as probable in every row.

    Parameters
    ----------
    scores : ndarray of shape (n_rows, n_labels)
        Of machines that have not seen these rows.
    indicator : ndarray or sparse matrix of shape (n_rows, n_labels)
    weights : ndarray of shape (n_rows,)
        Above 0.

    Returns
    -------
    calibration : ndarray of shape (2, n_labels)
    """
    columns = sp.csc_matrix(indicator) if sp.issparse(indicator) else np.asarray(indicator)
    shares = weights / weights.mean()
    found = [
        _sigmoid(scores[:, label].astype(np.float64), label_column(columns, label), shares)
        for label in range(scores.shape[1])
    ]
    return np.array(found).T


def _sigmoid(scores: Array, own: npt.NDArray[np.bool_], weights: Array) -> tuple[float, float]:
    with_label, without = float(weights[own].sum()), float(weights[~own].sum())
    targets = np.where(own, (with_label + 1.0) / (with_label + 2.0), 1.0 / (without + 2.0))
    even = float(np.log((with_label + 1.0) / (without + 1.0)))
    # Scores of about 1, so that no step is wrong by their scale.
    size = float(np.abs(scores).max())
    if size == 0:
        return 0.0, even
    slope, shift = _newton(scores / size, targets, weights, even)
    return (slope / size, shift) if slope > 0 else (0.0, even)


def _newton(scores: Array, targets: Array, weights: Array, shift: float) -> tuple[float, float]:
    """Minimise the cross-entropy, which is convex, by Newton steps that never raise it."""
    features = np.stack([scores, np.ones_like(scores)])

    def loss(at: Array) -> float:
        odds = at @ features
        return float(-weights @ (targets * odds + log_expit(-odds)))

    at = np.array([0.0, shift])
    value = loss(at)
    for _ in range(_MOST_STEPS):
        told = expit(at @ features)
        gradient = features @ (weights * (told - targets))
        if np.abs(gradient).max() <= _SMALL * len(scores):
            break
        hessian = (features * (weights * told * (1.0 - told))) @ features.T
        hessian[np.diag_indices(2)] += _DAMPING * len(scores)
        step = np.linalg.solve(hessian, -gradient)
        length = 1.0
        while length >= _LEAST_STEP:
            tried = loss(at + length * step)
            if tried <= value + 1e-4 * length * float(gradient @ step):
                break
            length /= 2.0
        else:
            break
        at, value = at + length * step, tried
    return float(at[0]), float(at[1])

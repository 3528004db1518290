"""Parallel hyperplanes by a general method: accelerated projected gradients, slow and plain.

The dual of a chain of levels: a copy of each row for each threshold, each threshold with a sum of
coefficients that is zero. The projection on a box and a sum is found by bisection.
"""

import numpy as np


def signs_of(levels, n_levels):
    """Return 1 where a row is on a level or above, else -1: a row for each threshold."""
    return np.stack([np.where(levels >= level, 1.0, -1.0) for level in range(1, n_levels)])


def _projected(values, low, high):
    """Return the nearest numbers between bounds that sum to zero."""
    left, right = (values - high).min() - 1, (values - low).max() + 1
    for _ in range(100):
        middle = (left + right) / 2
        if np.clip(values - middle, low, high).sum() > 0:
            left = middle
        else:
            right = middle
    return np.clip(values - right, low, high)


def chain_dual(K, levels, n_levels, caps, n_iter=20_000):
    """Return the optimal dual, and the shifts of the thresholds."""
    signs = signs_of(levels, n_levels)
    low, high = np.where(signs > 0, 0.0, -caps), np.where(signs > 0, caps, 0.0)
    step = 1.0 / (len(signs) * np.linalg.eigvalsh(K)[-1])
    b = np.zeros_like(signs)
    momentum, ahead = 1.0, b
    for _ in range(n_iter):
        gradient = signs - K @ ahead.sum(axis=0)
        new = np.stack(
            [_projected(*each) for each in zip(ahead + step * gradient, low, high, strict=True)]
        )
        if np.sum((ahead - new) * (new - b)) > 0:  # momentum leads away: begin anew
            momentum = 1.0
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = new + (momentum - 1) / later * (new - b)
        if np.abs(new - b).max() < 1e-13 * caps.max():
            break
        b, momentum = new, later
    scores = K @ b.sum(axis=0)
    margin = 1e-6 * caps.max()
    free = (b > low + margin) & (b < high - margin)
    shifts = [
        np.mean((sign - scores)[some]) if some.any() else np.nan
        for sign, some in zip(signs, free, strict=True)
    ]
    return float(np.sum(signs * b) - 0.5 * b.sum(axis=0) @ scores), np.array(shifts)


def primal_value(K, levels, caps, expansion, shifts):
    """Return the objective of an expansion and shifts."""
    signs, scores = signs_of(levels, len(shifts) + 1), K @ expansion
    slack = np.maximum(0.0, 1.0 - signs * (scores + np.reshape(shifts, (-1, 1))))
    return float(0.5 * expansion @ scores + np.sum(caps * slack))


def kkt_violation(K, levels, caps, expansion, shifts):
    """Return by how much an expansion is outside what losses of its scores allow.

    The coefficient of a row is a sum over thresholds of its sign times a number from 0, where the
    margin is kept, to its cap, where it is not.
    """
    signs, scores = signs_of(levels, len(shifts) + 1), K @ expansion
    margins = signs * (scores + np.reshape(shifts, (-1, 1)))
    near = 1e-3
    least = np.where(margins < 1 - near, caps, 0.0)
    most = np.where(margins > 1 + near, 0.0, caps)
    low = np.where(signs > 0, least, -most).sum(axis=0)
    high = np.where(signs > 0, most, -least).sum(axis=0)
    return float(np.maximum(low - expansion, expansion - high).max() / caps.max())

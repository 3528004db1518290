"""How near to a boundary a row has both labels: the threshold of highest posterior probability."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_LEAST_SPREAD = 1e-3  # of all distances: rows that are equally far have a density all the same


def map_threshold(distances: Any, has_both: Any, sample_weight: Any = None) -> float:
    """Return the distance from a boundary below which a row more likely has both labels.

    Distances of rows with both labels, and of rows with one, are taken as normally distributed,
    each with its mean and variance, and with the share of such rows as prior probability. Below the
    threshold ``P(both) p(distance | both)`` is the larger of the two products, above it
    ``P(one) p(distance | one)``. This is the MAP rule of the C-criterion.

    Parameters
    ----------
    distances : array-like of shape (n_rows,)
        0 or more.
    has_both : array-like of shape (n_rows,)
        Whether each row has both labels.
    sample_weight : array-like of shape (n_rows,), default=None
        What rows count in means, variances and priors.

    Returns
    -------
    threshold : float
        0 where no distance speaks for both labels; infinite where all do.

    References
    ----------
    .. [1] M. R. Boutell, J. Luo, X. Shen, C. M. Brown, "Learning multi-label scene
       classification", Pattern Recognition, 2004.

    Examples
    --------
    >>> from widemargin.two_label import map_threshold
    >>> map_threshold([0, 2, 6, 8], [True, True, False, False])
    4.0
    """
    distances = np.asarray(distances, dtype=np.float64)
    both = np.asarray(has_both, dtype=bool)
    weights = np.ones(len(both)) if sample_weight is None else np.asarray(sample_weight)
    if not weights[both].sum() > 0:
        return 0.0
    if not weights[~both].sum() > 0:
        return np.inf
    center = np.average(distances, weights=weights)
    spread = float(np.average(np.square(distances - center), weights=weights))
    if spread == 0:  # all are equally far: what is more frequent is right more often
        return np.inf if weights[both].sum() > weights[~both].sum() else 0.0
    least = _LEAST_SPREAD**2 * spread
    of_both = _log_density(distances[both], weights[both], least)
    of_one = _log_density(distances[~both], weights[~both], least)
    return _end_of_first(of_both - of_one)


def _log_density(distances: Array, weights: Array, least: float) -> Array:
    """Return the logarithm of weight times normal density, as a polynomial: x^2, x and 1."""
    mean = np.average(distances, weights=weights)
    variance = max(float(np.average(np.square(distances - mean), weights=weights)), least)
    log_height = np.log(weights.sum()) - 0.5 * np.log(variance)
    density = np.array([-1.0, 2.0 * mean, -(mean**2)]) / (2.0 * variance)
    density[2] += log_height
    return density


def _end_of_first(polynomial: Array) -> float:
    """Return where the first interval from 0 on ends on which a quadratic is positive.

    Nearer than an interval that begins above 0 is within it, as nearer speaks for both labels; but
    one without an end, beyond distances that speak against it, is no nearness.
    """
    roots = np.roots(np.trim_zeros(polynomial, "f")) if polynomial[:2].any() else np.empty(0)
    ends = np.sort(roots.real[(np.abs(roots.imag) == 0) & (roots.real > 0)])
    bounds = np.concatenate([[0.0], ends])
    # The sign of an interval is that of its middle; the last has none, and is as far as it is wide.
    middles = np.append((bounds[:-1] + bounds[1:]) / 2, 2.0 * bounds[-1] + 1.0)
    is_positive = np.polyval(polynomial, middles) > 0
    if not is_positive.any():
        return 0.0
    first = int(np.argmax(is_positive))
    if first == len(ends):
        return np.inf if first == 0 else 0.0
    return float(ends[first])


def nearness(scores: Array, has_both: npt.NDArray[np.bool_], weights: Array) -> float:
    """Return that threshold for distances of scores from 0; a finite one, as machines keep it."""
    distances = np.abs(scores)
    used = weights > 0
    return min(
        map_threshold(distances[used], has_both[used], weights[used]),
        2.0 * float(distances[used].max()) + 1.0,
    )

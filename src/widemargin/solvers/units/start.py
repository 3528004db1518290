"""Where units begin: at the centres of k-means within each class, all equally wide."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from widemargin.solvers.units.values import COMMON_WIDTH, Units, WorkingRows

Array: TypeAlias = npt.NDArray[Any]

_START_EXPONENT = 8.0  # mean of |(z - c) r|^2 over rows and centres
_CLUSTERED_ROWS = 4000  # of a class, that k-means looks at


def start_units(
    working: WorkingRows,
    labels: npt.NDArray[np.intp],
    n_units: int,
    rng: np.random.RandomState,
    exponent: float | None = None,
) -> Units:
    """Place units by k-means within each class, all as wide as the data suggests.

    ``exponent`` is the weight of squared distances in the units of the features, where it is
    given; for a metric that scales the features, in those of the standardised ones.
    """
    rows = working.rows
    mapping = None
    if working.metric == "full":
        mapping = np.linalg.eigh((rows.T * working.share) @ rows)[1]
    centres = cluster_by_class(rows, labels, working.share, n_units, rng)
    apart = _mean_squared_distance(working, centres)
    squared = _START_EXPONENT / apart if apart > 0 else 1.0
    if exponent is not None:
        squared = exponent * (working.scale[0] ** 2 if working.metric == "none" else 1.0)
    count = 1 if working.metric in COMMON_WIDTH else rows.shape[1]
    return Units(
        centres if mapping is None else centres @ mapping,
        np.zeros(len(centres)),
        np.full(count, 0.5 * np.log(squared)),
        mapping,
    )


def cluster_by_class(
    rows: Array,
    labels: npt.NDArray[np.intp],
    weights: Array,
    n_units: int,
    rng: np.random.RandomState,
) -> Array:
    """Return centres of k-means, as equal a number for each class as its rows allow.

    With fewer units than classes, they are clusters of all rows. A row of weight 2 is as two rows,
    and the order of the rows changes nothing, unless there are so many that some are drawn.
    """
    groups = [labels == number for number in np.unique(labels)]
    if n_units < len(groups):
        groups = [np.ones(len(rows), dtype=bool)]
    parts = [_distinct(rows[group], weights[group], rng) for group in groups]
    shares = _shares([len(distinct) for distinct, _ in parts], n_units, rng)
    # The sums of several threads are added in any order. The import, which brings half of
    # scikit-learn with it, is before the limit, as that holds for threads that are loaded.
    import sklearn.cluster  # noqa: F401

    with threadpool_limits(1, user_api="openmp"):
        centres = np.vstack(
            [_clusters(*part, share, rng) for part, share in zip(parts, shares, strict=True)]
        )
    # Two units in one place would never part.
    return centres[np.sort(np.unique(centres, axis=0, return_index=True)[1])]


def _shares(counts: list[int], n_units: int, rng: np.random.RandomState) -> npt.NDArray[np.intp]:
    """Deal units out to classes, one at a time to those that have fewest of them, and rows left."""
    shares = np.zeros(len(counts), dtype=np.intp)
    tie = rng.permutation(len(counts))
    for _ in range(min(n_units, sum(counts))):
        open_classes = np.flatnonzero(shares < counts)
        shares[min(open_classes, key=lambda number: (shares[number], tie[number]))] += 1
    return shares


def _distinct(rows: Array, weights: Array, rng: np.random.RandomState) -> tuple[Array, Array]:
    """Return the different ones among rows, some drawn from many, and their weights."""
    if len(rows) > _CLUSTERED_ROWS:
        some = rng.permutation(len(rows))[:_CLUSTERED_ROWS]
        rows, weights = rows[some], weights[some]
    distinct, place = np.unique(rows, axis=0, return_inverse=True)
    return distinct, np.bincount(place.ravel(), weights)


def _clusters(rows: Array, weights: Array, count: int, rng: np.random.RandomState) -> Array:
    if len(rows) <= count:
        return rows.astype(np.float64)
    seed = int(rng.randint(np.iinfo(np.int32).max))
    from sklearn.cluster import KMeans

    found = KMeans(count, n_init=1, random_state=seed)
    method_of_sklearn(KMeans.fit)(found, rows, sample_weight=weights)
    return np.asarray(found.cluster_centers_, dtype=np.float64)


def method_of_sklearn(method: Any) -> Any:
    """Return a method of a scikit-learn class as scikit-learn defines it.

    Tools that track experiments put wrappers around the methods of all its estimators:
    ``mlflow.sklearn.autolog`` would take each of our clusterings for a model that the user
    fitted, and log it, which takes a hundred times as long as the fit. Wrappers name what they
    wrap in ``__wrapped__``, so the way back needs no such tool, and works in every thread. The
    switches of the tools hold for the whole process, and switch logging on again on leaving,
    where the caller had it off. scikit-learn has decorators of its own, which stay.
    """
    inner = method
    while not getattr(inner, "__globals__", {}).get("__name__", "").startswith("sklearn."):
        if not hasattr(inner, "__wrapped__"):
            return method  # another implementation, put in the place of scikit-learn's
        inner = inner.__wrapped__
    return inner


def _mean_squared_distance(working: WorkingRows, centres: Array) -> float:
    """Return it for rows and centres; rows count by their weights."""
    lengths = np.einsum("ij,ij->i", working.rows, working.rows, dtype=np.float64)
    if working.rest is not None:
        lengths += working.rest
    cross = (working.share @ working.rows) @ centres.mean(axis=0)
    spread = float(working.share @ lengths)
    return spread + float(np.mean(np.sum(centres**2, axis=1))) - 2.0 * float(cross)

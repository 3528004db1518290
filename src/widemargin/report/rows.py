"""Rows of tables, arrays and sparse matrices, and splits of them that keep classes."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import check_array
from sklearn.utils.multiclass import type_of_target

from widemargin.report.encoding import text_columns

Array: TypeAlias = npt.NDArray[Any]

FEWEST_ROWS = 20


def take(X: Any, places: Array) -> Any:
    """Return some rows, as what they were in."""
    return X.iloc[places] if hasattr(X, "iloc") else X[places]


def some_rows(y: Array, n_rows: int, seed: int) -> Array:
    """Draw places of rows, of each class its share and at least one row.

    The places for fewer rows are among those for more, but for rounding, so that what is learned
    from a part shows what the whole will cost.
    """
    if n_rows >= len(y):
        return np.arange(len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    if y.ndim == 2:
        return np.sort(order[:n_rows])
    shuffled = y[order]
    # A row's turn is its place among the rows of its class, as a share of them: the first of each
    # class come first, and after these all classes advance together.
    turn = np.empty(len(y))
    for label in np.unique(y):
        members = np.flatnonzero(shuffled == label)
        turn[members] = np.arange(len(members)) / len(members)
    return np.sort(order[np.argsort(turn, kind="stable")[:n_rows]])


def make_folds(X: Any, y: Array, n_folds: int, seed: int) -> list[tuple[Array, Array]]:
    """Split rows into folds, each of which is tested on once; those of classes are stratified.

    Raises
    ------
    ValueError
        If there are too few rows, or X and y differ in length.
    """
    if X.shape[0] != len(y):
        raise ValueError(f"X has {X.shape[0]} rows, and y has {len(y)}.")
    if len(y) < FEWEST_ROWS:
        raise ValueError(
            f"{len(y)} rows are too few to compare machines: give at least {FEWEST_ROWS}."
        )
    folds = KFold if y.ndim == 2 else StratifiedKFold
    splitter = folds(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # of classes with fewer rows than folds: they are what they are
        warnings.simplefilter("ignore", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


def checked_rows(X: Any) -> Any:
    """Return rows as a data frame, an array of numbers or a CSR matrix.

    Raises
    ------
    ValueError
        If there is a column that is neither numbers nor texts, or infinite numbers.
    """
    if hasattr(X, "iloc"):
        for name in X.columns:
            if X[name].dtype.kind in "mM":
                raise ValueError(
                    f"Column {name!r} has dates, which no machine here learns from: make numbers "
                    "of it (days since a date, weekday, month), or leave it out."
                )
        if text_columns(X):
            return X
    # Of numbers alone all make predictions sooner than of a table.
    return check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")


def checked_target(y: Any) -> Array:
    """Return classes as numbers from 0, or a dense indicator of labels.

    Raises
    ------
    ValueError
        If y has gaps, is continuous, or has a single class.
    """
    if sp.issparse(y):
        y = y.toarray()
    y = np.asarray(y)
    gaps = (
        np.flatnonzero([value is None or value != value for value in y]) if y.ndim == 1 else y[:0]
    )
    if len(gaps):
        raise ValueError(
            f"The target has no value in {len(gaps)} of {len(y)} rows, the first of them row "
            f"{gaps[0] + 1}: fill them in, or leave these rows out."
        )
    kind = type_of_target(y)
    if kind == "multilabel-indicator":
        indicator: Array = y.astype(np.int8)
        return indicator
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"The target is {kind}, and classes or an indicator of labels are asked for: these "
            "machines are no regressions. Cut numbers into classes, or name another column."
        )
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"The target is {classes[0]!r} in all rows: there is nothing to learn.")
    return codes.astype(np.int64)


def _missing(value: Any) -> bool:
    return value is None or bool(value != value)

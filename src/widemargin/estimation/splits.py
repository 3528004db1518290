"""Splits of the training rows into those to learn from and those to judge by."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, check_cv
from sklearn.utils.validation import check_consistent_length, column_or_1d

from widemargin._system.warnings import warn_user
from widemargin.kernels import Rows

Array: TypeAlias = npt.NDArray[Any]
Places: TypeAlias = npt.NDArray[np.intp]  # row numbers
Split: TypeAlias = tuple[Places, Places]

_FEW_ROWS = 2000  # up to which there are five folds, and four beyond: as many for 2 cores as 3
# Of fewer rows than that the luck of one split is more than a point, and folds are made anew.
_REPEATED_ROWS, _MOST_REPEATS = 1000, 2


def make_splits(
    cv: Any,
    rows: Rows,
    labels: npt.NDArray[np.intp],
    weights: Array,
    classes: Array,
    seed: int,
    groups: Any = None,
) -> list[Split]:
    """Return row numbers to learn from and to judge by, without those of weight 0.

    Called by ``fit`` itself, which warnings count on.

    Parameters
    ----------
    cv : None, int, splitter or iterable of splits
        None and integers are stratified folds.
    rows : rows of shape (n_rows, n_features)
    labels : ndarray of shape (n_rows,)
        Class numbers.
    weights : ndarray of shape (n_rows,)
    classes : ndarray of shape (n_classes,)
    seed : int
        For the order in which rows are dealt to folds.
    groups : array-like of shape (n_rows,), default=None
        For splitters that keep rows of a group together.
    """
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(rows, groups)
    weighed = np.flatnonzero(weights > 0)
    if cv is None or isinstance(cv, (int, np.integer)):
        if groups is not None:
            warn_user(
                f"cv={cv} makes folds without a look at groups, so that rows of a group are on "
                "both sides. Pass a splitter that goes by them, such as cv=GroupKFold().",
                UserWarning,
            )
        folds = _folds(cv, labels[weighed], classes, seed)
        parts = folds.split(np.empty((len(weighed), 0)), labels[weighed])
        splits = [(weighed[train], weighed[test]) for train, test in parts]
    else:
        try:
            splitter = check_cv(cv, labels, classifier=True)
            parts = list(splitter.split(rows, classes[labels], groups))
        except ValueError as error:
            raise ValueError(
                f"cv gave no splits: {error} Pass groups to fit where the splitter needs them; of "
                "one that needs more, pass the splits as a list."
            ) from error
        splits = [(_weighed(train, weights), _weighed(test, weights)) for train, test in parts]
    if not splits or not all(len(part) for split in splits for part in split):
        found = [(len(train), len(test)) for train, test in splits]
        raise ValueError(
            "cv must give at least one split, each with rows to learn from and rows of positive "
            f"weight to judge by; got these numbers of them: {found}."
        )
    for number, (train, _) in enumerate(splits):
        missing = np.setdiff1d(labels[weighed], labels[train])
        if len(missing):
            raise ValueError(
                f"Split {number} of cv has no row of class {_label(classes, missing[0])} to learn "
                "from. Every class must be in the training part of each split: set cv to an "
                "integer for stratified folds, or leave the class out."
            )
    return splits


def _folds(cv: Any, labels: npt.NDArray[np.intp], classes: Array, seed: int) -> Any:
    counts = np.bincount(labels)
    present = np.flatnonzero(counts)
    rarest = present[np.argmin(counts[present])]
    fewest, label = int(counts[rarest]), _label(classes, rarest)
    wanted = cv if cv is not None else (5 if len(labels) <= _FEW_ROWS else 4)
    if fewest < 2 or (cv is not None and fewest < wanted):
        raise ValueError(
            f"Class {label} has {fewest} row(s), fewer than the {max(2, wanted)} folds that shall "
            "each have one. Lower cv, leave the class out, or pass splits of your own as cv."
        )
    if fewest < wanted:
        warn_user(
            f"Class {label} has {fewest} rows, so that there are {fewest} folds instead of "
            f"{wanted}. Set cv={fewest} to say that this is meant.",
            UserWarning,
        )
    repeats = 1 if cv is not None else min(_MOST_REPEATS, -(-_REPEATED_ROWS // len(labels)))
    if repeats > 1:
        return RepeatedStratifiedKFold(
            n_splits=min(wanted, fewest), n_repeats=repeats, random_state=seed
        )
    return StratifiedKFold(min(wanted, fewest), shuffle=True, random_state=seed)


def _weighed(part: Any, weights: Array) -> Places:
    """Return the row numbers of positive weight; ``part`` may be a mask."""
    places = np.arange(len(weights))[part]
    return np.asarray(places[weights[places] > 0])


def _label(classes: Array, number: int) -> str:
    return repr(classes.tolist()[number])

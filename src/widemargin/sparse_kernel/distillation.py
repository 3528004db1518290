"""Distillation: learned vectors that are fitted to what a classifier says, and to labels."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import _safe_indexing

from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.teachers import Teacher

Array: TypeAlias = npt.NDArray[Any]

LABEL_SHARE = 0.5  # of labels in what is learned, where there are any
_LEAST = 0.01  # share of a class in a row below which it is left out: copies cost time


def distil(
    machine: SparseKernelClassifier,
    teacher: Teacher,
    X: Any,
    told: npt.NDArray[np.intp],
    target: str,
    labels: Array | None,
    label_share: float,
    weights: Array,
) -> None:
    """Fit a machine to what a teacher says of rows, mixed with the labels of those that have some.

    Each row is learned under every class that has a share in it, with the share as its weight: so
    any loss of classes learns from probabilities as it does from labels. Where ``early_stopping``
    holds rows out, such copies of one row may be on both sides, and its score is a little too good.

    Parameters
    ----------
    machine : SparseKernelClassifier
        It is fitted.
    teacher : Teacher
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        As the teacher sees them.
    told : ndarray of shape (n_rows,)
        Numbers of the classes that the teacher predicts.
    target : {"scores", "classes"}
        Whether its probabilities are learned, or the classes that it predicts.
    labels : ndarray of shape (n_rows,) or None
        Numbers of the true classes, -1 for rows without a label.
    label_share : float
        Of the label in a row that has one.
    weights : ndarray of shape (n_rows,)
    """
    used = np.flatnonzero(weights)
    if target == "scores":
        # A machine that gives probabilities itself is to give those of the teacher.
        sharpen = not machine._loss().gives_probabilities
        shares = teacher.probabilities(_safe_indexing(X, used), sharpen=sharpen)
    else:
        shares = np.eye(len(teacher.classes))[told[used]]
    if labels is not None:
        known = np.flatnonzero(labels[used] >= 0)
        shares[known] *= 1.0 - label_share
        shares[known, labels[used][known]] += label_share
    places, numbers, shared = _copies(shares, weights[used])
    if len(present := np.unique(numbers[shared > 0])) < 2:
        raise ValueError(
            f"All rows with weight are of 1 class, {teacher.classes[present].tolist()[0]!r}, and a "
            "machine learns to tell 2 or more apart. Pass more rows."
        )
    machine.fit(_safe_indexing(X, used[places]), teacher.classes[numbers], shared)


def _copies(shares: Array, weights: Array) -> tuple[Array, npt.NDArray[np.intp], Array]:
    """Return copies of rows, one for each class with a share: their rows, classes and weights."""
    # Of many classes the best may have less than that, though never half of its fair share.
    least = min(_LEAST, 0.5 / shares.shape[1])
    shares = np.where(shares >= least, shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    places, numbers = np.nonzero(shares)
    shared = weights[places] * shares[places, numbers]
    # The machine is to know every class of the teacher: a row without weight has its name.
    absent = np.setdiff1d(np.arange(shares.shape[1]), numbers)
    return (
        np.append(places, np.zeros_like(absent)),
        np.append(numbers, absent),
        np.append(shared, np.zeros(len(absent))),
    )

"""Data sets whose rows have several labels, from the folder ``multilabel``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification

from benchmarks.data import is_available, stored_set
from benchmarks.settings import Settings


@dataclass(frozen=True)
class LabelDataset:
    """Rows to learn from and rows to be judged by, with indicators of their labels."""

    name: str
    X: np.ndarray
    Y: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray


def load_labels(name: str, settings: Settings) -> LabelDataset | None:
    """Return a data set as dense arrays, of few rows in a quick run; None where it is not there."""
    if not is_available():
        return _stand_in(name) if settings.is_quick else None
    (X, Y), (X_test, Y_test) = (
        read_labels(name, split, settings.max_rows) for split in ("train", "test")
    )
    return LabelDataset(name, X.toarray(), Y.toarray(), X_test.toarray(), Y_test.toarray())


def read_labels(name: str, split: str, n_rows: int | None) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the first rows of a file, and indicators of their labels, both sparse."""
    X, Y = stored_set(name).read(split, np.float64)
    return X[:n_rows], Y[:n_rows]


def _stand_in(name: str) -> LabelDataset:
    X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    return LabelDataset(name, X[:120], Y[:120], X[120:], Y[120:])

"""Data sets whose rows have several labels, from the folder ``multilabel`` beside ``multiclass``.

Its index.json names for each set the number of features and of labels, and the files, of which that
of the split "train" is learned from.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file, make_multilabel_classification
from sklearn.preprocessing import MultiLabelBinarizer

from benchmarks.data import VARIABLE, is_available
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
    folder = Path(os.environ[VARIABLE]) / "multilabel"
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    (entry,) = (each for each in index["datasets"] if each["name"] == name)
    (file,) = (each["file"] for each in entry["files"] if each["split"] == split)
    X, labels = load_svmlight_file(
        str(folder / file), n_features=entry["features"], multilabel=True
    )
    sets = [{int(label) for label in each} for each in labels[:n_rows]]
    binarizer = MultiLabelBinarizer(classes=range(entry["labels"]), sparse_output=True)
    return sp.csr_matrix(X[:n_rows]), sp.csr_matrix(binarizer.fit_transform(sets))


def _stand_in(name: str) -> LabelDataset:
    X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    return LabelDataset(name, X[:120], Y[:120], X[120:], Y[120:])

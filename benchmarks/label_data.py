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
    folder = Path(os.environ[VARIABLE]) / "multilabel"
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    (entry,) = (each for each in index["datasets"] if each["name"] == name)
    rows, sets = [], []
    for split in ("train", "test"):
        (file,) = (each["file"] for each in entry["files"] if each["split"] == split)
        X, labels = load_svmlight_file(
            str(folder / file), n_features=entry["features"], multilabel=True
        )
        rows.append(X.toarray()[: settings.max_rows])
        sets.append([{int(label) for label in each} for each in labels][: settings.max_rows])
    binarizer = MultiLabelBinarizer(classes=range(entry["labels"]))
    first, second = (binarizer.fit_transform(each) for each in sets)
    return LabelDataset(name, rows[0], first, rows[1], second)


def _stand_in(name: str) -> LabelDataset:
    X, Y = make_multilabel_classification(n_samples=200, n_classes=4, random_state=0)
    return LabelDataset(name, X[:120], Y[:120], X[120:], Y[120:])

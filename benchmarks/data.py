"""Data sets: read once from a folder of svmlight files, then from a cache of arrays.

The folder is named by the environment variable WIDEMARGIN_DATA, and is one of those that
``widemargin.datasets.load`` reads.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs
from sklearn.model_selection import train_test_split

from widemargin.datasets.data_folders import VARIABLE, StoredSet, find_stored

HOW_TO_SET = (
    f"{VARIABLE} is not set, so that only what has synthetic data runs;\n"
    f"in a quick run the digits of scikit-learn stand in for data sets.\n"
    f"Set it to a folder with multiclass/index.json and the svmlight files that it lists:\n"
    f"    {VARIABLE}=path/to/data python -m benchmarks"
)


@dataclass(frozen=True)
class Dataset:
    """Rows to learn from and rows to be judged by."""

    name: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def thinned(self, n_rows: int | None) -> Dataset:
        """Return this many rows of both parts, evenly spaced (a file may be sorted by class)."""
        return self.with_rows(n_rows, n_rows)

    def with_rows(self, n_train: int | None, n_test: int | None) -> Dataset:
        train, test = _spaced(len(self.y), n_train), _spaced(len(self.y_test), n_test)
        return Dataset(
            self.name, self.X[train], self.y[train], self.X_test[test], self.y_test[test]
        )


def _spaced(n_rows: int, wanted: int | None) -> slice | np.ndarray:
    if wanted is None or wanted >= n_rows:
        return slice(None)
    return np.unique(np.linspace(0, n_rows - 1, wanted).astype(int))


def is_available() -> bool:
    return bool(os.environ.get(VARIABLE))


def load(name: str, dtype: str = "float64") -> Dataset:
    """Return a data set as dense arrays; where it has no file of test rows, a third are these."""
    parts = []
    for role in stored_set(name).parts:
        with np.load(cached_arrays(name, role, dtype)) as arrays:
            parts += [arrays["X"], arrays["y"]]
    if len(parts) == 2:
        X, X_test, y, y_test = train_test_split(
            *parts, test_size=1 / 3, stratify=parts[1], random_state=0
        )
        parts = [X, y, X_test, y_test]
    return Dataset(name, *parts)


def stand_in(name: str, dtype: str = "float64") -> Dataset:
    """Return the digits of scikit-learn under another name, for runs that show that they work."""
    X, y = load_digits(return_X_y=True)
    rows = (X / 16).astype(dtype)
    X, X_test, y, y_test = train_test_split(rows, y, test_size=1 / 3, stratify=y, random_state=0)
    return Dataset(name, X, y, X_test, y_test)


def cached_arrays(name: str, role: str, dtype: str) -> Path:
    """Return the .npz file with the arrays X and y of one file of a set; make it if need be."""
    stored = stored_set(name)
    checksum = stored.parts[role].sha256 or ""
    # Part of the checksum in the name: a changed file is never taken for an old one.
    target = _cache_folder() / f"{name}-{role}-{dtype}-{checksum[:12]}.npz"
    if not target.exists():
        X, y = stored.read(role, np.dtype(dtype))
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"unfinished-{os.getpid()}-{target.name}")
        np.savez(unfinished, X=X.toarray(), y=y)
        unfinished.replace(target)
    return target


def stored_set(name: str) -> StoredSet:
    """Return what the index of the folder says of a set."""
    stored = find_stored(name)
    if stored is None:
        raise SystemExit(f"{name} is not in the folder that {VARIABLE} names.")
    return stored


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "widemargin"


def synthetic(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return float32 rows of ten classes, three overlapping clouds each, in 20 dimensions.

    Fewer rows are the first of more rows.
    """
    X, cloud = make_blobs(
        n_samples=40_000, n_features=20, centers=30, cluster_std=5.0, random_state=0
    )
    return X[:n_rows].astype(np.float32), cloud[:n_rows] % 10

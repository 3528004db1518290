"""Data sets: read once from a folder of svmlight files, then from a cache of arrays.

The folder is named by the environment variable WIDEMARGIN_DATA. It has ``multiclass/index.json``,
which lists for each set its number of features and its files, and the files themselves.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_svmlight_file, make_blobs
from sklearn.model_selection import train_test_split

VARIABLE = "WIDEMARGIN_DATA"
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
    for role in _roles(name):
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
    folder = _folder()
    entry, file = _find(name, role)
    # Part of the checksum in the name: a changed file is never taken for an old one.
    target = _cache_folder() / f"{name}-{role}-{dtype}-{file['sha256'][:12]}.npz"
    if not target.exists():
        # A trailing feature can be zero in every row of a file: only the index knows the width.
        X, y = load_svmlight_file(
            folder / file["file"], n_features=entry["n_features"], dtype=np.dtype(dtype)
        )
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f"unfinished-{os.getpid()}-{target.name}")
        np.savez(unfinished, X=X.toarray(), y=y.astype(np.int64))
        unfinished.replace(target)
    return target


def _folder() -> Path:
    return Path(os.environ[VARIABLE]) / "multiclass"


def _roles(name: str) -> list[str]:
    return [
        role for role in ("train", "test") if role in {f["role"] for f in _entry(name)["files"]}
    ]


def _find(name: str, role: str) -> tuple[dict[str, Any], dict[str, Any]]:
    entry = _entry(name)
    for file in entry["files"]:
        if file["role"] == role:
            return entry, file
    raise SystemExit(f"{_folder() / 'index.json'} lists no file with the {role} rows of {name}.")


def _entry(name: str) -> dict[str, Any]:
    index = _folder() / "index.json"
    if not index.exists():
        raise SystemExit(f"There is no {index}. {VARIABLE} must name the folder above multiclass/.")
    entries: list[dict[str, Any]] = json.loads(index.read_text(encoding="utf-8"))["datasets"]
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise SystemExit(f"{index} does not list {name}.")


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

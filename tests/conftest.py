"""What all tests share. Data sets are read from the folder that WIDEMARGIN_DATA names, if any."""

import functools
import json
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file


def pytest_addoption(parser):
    group = parser.getgroup("hostile", "random problems, see tests/hostile")
    group.addoption(
        "--hostile", type=int, metavar="N", help="ask N new random problems instead of a few fixed"
    )
    group.addoption(
        "--hostile-seed", type=int, metavar="S", help="ask the random problem of this seed, alone"
    )


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def overlapping_classes(n_rows, n_classes, n_features=4, seed=0):
    """Return rows around a centre for each class, near enough to one another to be confused."""
    rng = np.random.RandomState(seed)
    centres = rng.randn(n_classes, n_features)
    y = np.arange(n_rows) % n_classes
    return centres[y] + 0.9 * rng.randn(n_rows, n_features), y


@pytest.fixture
def three_classes():
    """60 rows of 4 features in 3 classes that overlap."""
    return overlapping_classes(60, 3)


@pytest.fixture
def two_classes():
    """50 rows of 4 features in 2 classes that overlap."""
    return overlapping_classes(50, 2, seed=1)


@pytest.fixture
def larger_problem():
    """3000 rows of 10 features in 4 classes: enough for two threads to have work."""
    return overlapping_classes(3000, 4, n_features=10, seed=2)


@pytest.fixture(scope="session")
def real_data():
    """Read a data set by its name, as a dense X, and y; skips where there are none to read."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA names no folder of data sets")
    multiclass = Path(folder) / "multiclass"
    index = json.loads((multiclass / "index.json").read_text(encoding="utf-8"))
    entries = {entry["name"]: entry for entry in index["datasets"]}

    @functools.cache
    def read(name, role="train"):
        entry = entries[name]
        (file,) = (part["file"] for part in entry["files"] if part["role"] == role)
        X, y = load_svmlight_file(str(multiclass / file), n_features=entry["n_features"])
        return X.toarray(), y

    return read

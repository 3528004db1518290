"""Accuracy of machines with default settings, and of those that people use instead."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.data import Dataset
from benchmarks.parts.defaults.targets import (
    BESIDE_OTHERS,
    GROWING,
    N_SPLITS,
    PLAIN,
    SEARCH,
    SIZES,
    SPLIT_SET,
)
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import SparseKernelClassifier, SparseKernelClassifierCV

DATASETS = tuple(
    dict.fromkeys([name for name, _ in PLAIN] + [*SEARCH, *BESIDE_OTHERS, SPLIT_SET, *GROWING])
)
_MOST_TEST_ROWS = 50_000
_MOST_ROWS_OF_SVC = 30_000  # it takes hours beyond


@dataclass(frozen=True)
class Judged:
    """Test accuracy in percent and seconds of the fit, one each for every seed."""

    scores: list[float]
    seconds: list[float]
    n_basis: list[int]

    @property
    def mean(self) -> float:
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Found:
    """What was measured: by data set and size, by data set, and by data set and name."""

    plain: dict[tuple[str, int], Judged]
    searched: dict[str, Judged]
    others: dict[str, dict[str, float]]
    splits: dict[str, list[float]]  # by who: accuracy on each split
    growing: dict[str, dict[int, Judged]]


def measure(settings: Settings, wanted: list[str]) -> Found:
    """Fit everything as it comes."""
    plain, searched, others, growing = {}, {}, {}, {}
    splits: dict[str, list[float]] = {}
    for name in [each for each in DATASETS if each in wanted]:
        data = settings.load(name).with_rows(None, _MOST_TEST_ROWS)
        for size in [size for dataset, size in PLAIN if dataset == name]:
            say(f"{size} learned vectors on {name}")
            count = settings.amount(size, quick=10)
            plain[name, size] = _judge(
                data,
                settings,
                lambda seed: _learned(count, seed),  # noqa: B023  # called at once
            )
        if name in SEARCH or name in BESIDE_OTHERS:
            say(f"A search on {name}")
            searched[name] = _judge(data, settings, lambda seed: _search(settings, seed))
        if name in BESIDE_OTHERS:
            say(f"Others on {name}")
            others[name] = {
                who: _accuracy(machine, data)
                for who, machine in _others(len(data.y), settings.seeds[0]).items()
            }
        if name == SPLIT_SET:
            splits = _by_splits(data, settings)
        if name in GROWING:
            sizes = settings.amount(SIZES, quick=(5, 10))
            growing[name] = {
                size: _judge(data, settings, lambda seed: _learned(size, seed))  # noqa: B023
                for size in sizes
                if size <= len(data.y) // 2
            }
    return Found(plain, searched, others, splits, growing)


def _by_splits(data: Dataset, settings: Settings) -> dict[str, list[float]]:
    """Return the accuracy of each on random splits of all rows, seven tenths to learn from."""
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    found: dict[str, list[float]] = {}
    for seed in range(settings.amount(N_SPLITS, quick=1)):
        say(f"Split {seed} of {data.name}")
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.3, stratify=y, random_state=seed
        )
        part = Dataset(data.name, X_train, y_train, X_test, y_test)
        machines = _others(len(y_train), seed) | {
            "Nystroem": make_pipeline(
                StandardScaler(),
                Nystroem(random_state=seed, n_components=min(100, len(y_train))),
                LinearSVC(random_state=seed),
            ),
            "search": _search(settings, 0),
        }
        for who, machine in machines.items():
            found.setdefault(who, []).append(_accuracy(machine, part))
    return found


def _learned(size: int, seed: int) -> SparseKernelClassifier:
    return SparseKernelClassifier(size, basis="learned", random_state=seed)


def _search(settings: Settings, seed: int) -> SparseKernelClassifierCV:
    quick: dict[str, Any] = {"max_basis": [5, 10], "Cs": [1.0, 10.0], "cv": 2}
    return SparseKernelClassifierCV(
        random_state=seed, n_jobs=-1, **settings.amount({}, quick=quick)
    )


def _judge(data: Dataset, settings: Settings, make: Callable[[int], Any]) -> Judged:
    scores, seconds, sizes = [], [], []
    for seed in settings.seeds:
        machine = make(seed)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of units that met, and of rare classes
            machine.fit(data.X, data.y)
        seconds.append(time.perf_counter() - started)
        scores.append(100.0 * machine.score(data.X_test, data.y_test))
        sizes.append(int(machine.n_basis_))
    return Judged(scores, seconds, sizes)


def _accuracy(machine: Any, data: Dataset) -> float:
    numbers = {label: number for number, label in enumerate(np.unique(data.y))}
    labels = [np.array([numbers[each] for each in y]) for y in (data.y, data.y_test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        predicted = machine.fit(data.X, labels[0]).predict(data.X_test)
    return 100.0 * float(np.mean(np.ravel(predicted) == labels[1]))


def _others(n_rows: int, seed: int) -> dict[str, Any]:
    """Return the others at their defaults; those that are not installed are left out."""
    machines: dict[str, Any] = {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(random_state=seed)),
    }
    if n_rows <= _MOST_ROWS_OF_SVC:
        machines["SVC"] = make_pipeline(StandardScaler(), SVC())
    try:
        from lightgbm import LGBMClassifier

        machines["LightGBM"] = LGBMClassifier(random_state=seed, verbose=-1)
    except ImportError:
        say("LightGBM is not installed")
    try:
        from catboost import CatBoostClassifier

        machines["CatBoost, 200 trees"] = CatBoostClassifier(
            iterations=200, random_seed=seed, verbose=False, allow_writing_files=False
        )
    except ImportError:
        say("CatBoost is not installed")
    return machines

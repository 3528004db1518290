"""Prequential accuracy: every row is predicted by what has learned the rows before it.

The rows of letter, training and test, in random order. C and gamma are chosen by the accuracy on
the first rows alone; trees of river have the settings that they come with.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import KernelClassifier
from widemargin.river import RiverClassifier

DATASETS = ("letter.scale",)
BUDGET = 2000
FIRST, LAST = 2000, 5000  # rows to choose by, and rows that are judged
CS, GAMMAS = (1.0, 10.0), (0.25, 0.5, 1.0, 2.0, 4.0)

Stream = list[tuple[dict[str, float], int]]


@dataclass(frozen=True)
class Run:
    """A learner that went through the rows."""

    learner: str
    seed: int
    accuracy: float  # percent, of the last rows
    overall: float  # percent, of all
    microseconds: float  # a row, to predict it and to learn it


def measure(settings: Settings, wanted: list[str]) -> list[Run]:
    if "letter.scale" not in wanted:
        return []
    data = settings.load("letter.scale")
    X, y = np.concatenate([data.X, data.X_test]), np.concatenate([data.y, data.y_test])
    found = []
    for seed in settings.seeds:
        stream = _stream(X, y, seed)
        C, gamma = _chosen(stream[:FIRST], seed)
        machines: dict[str, Callable[[], Any]] = {
            f"KernelClassifier, {policy} (C {C:g}, gamma {gamma:g})": _ours(C, gamma, policy, seed)
            for policy in ("redundant", "merge", "drop")
        }
        machines |= _trees(seed) if seed == settings.seeds[0] else {}
        for name, make in machines.items():
            say(f"Prequential letter, seed {seed}: {name}")
            found.append(_run(name, seed, make(), stream))
    return found


def _stream(X: np.ndarray, y: np.ndarray, seed: int) -> Stream:
    order = np.random.RandomState(seed).permutation(len(y))
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in X[order].tolist()]
    return list(zip(rows, y[order].tolist(), strict=True))


def _ours(C: float, gamma: float, policy: str, seed: int) -> Callable[[], RiverClassifier]:
    machine = KernelClassifier(
        C=C, gamma=gamma, budget=BUDGET, budget_policy=policy, random_state=seed
    )
    return lambda: RiverClassifier(machine)


def _chosen(stream: Stream, seed: int) -> tuple[float, float]:
    """Return C and gamma of the best prequential accuracy on rows that come first."""
    scores = {
        (C, gamma): _run("", seed, _ours(C, gamma, "redundant", seed)(), stream).overall
        for C, gamma in product(CS, GAMMAS)
    }
    return max(scores, key=lambda each: scores[each])


def _trees(seed: int) -> dict[str, Callable[[], Any]]:
    """Return the tree learners of river, where it is installed."""
    if importlib.util.find_spec("river") is None:
        return {}
    from river import forest, tree

    return {
        "river ARFClassifier": lambda: forest.ARFClassifier(seed=seed),
        "river AMFClassifier": lambda: forest.AMFClassifier(seed=seed),
        "river HoeffdingAdaptiveTreeClassifier": lambda: tree.HoeffdingAdaptiveTreeClassifier(
            seed=seed
        ),
    }


def _run(name: str, seed: int, learner: Any, stream: Stream) -> Run:
    hits = np.zeros(len(stream), dtype=bool)
    started = time.perf_counter()
    for place, (x, y) in enumerate(stream):
        hits[place] = learner.predict_one(x) == y
        learner.learn_one(x, y)
    seconds = time.perf_counter() - started
    return Run(
        name,
        seed,
        100.0 * float(hits[-LAST:].mean()),
        100.0 * float(hits.mean()),
        1e6 * seconds / len(stream),
    )

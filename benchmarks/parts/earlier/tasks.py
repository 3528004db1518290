"""What is timed: calls that every version of the library has had.

Imports nothing of the benchmarks: an earlier version runs it, too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Task:
    """A data set, how many of its rows are used, evenly spaced, and what is done with them."""

    dataset: str
    n_rows: int
    prepare: Callable[[Any, Any], Callable[[], Any]]  # gives the call that is timed
    learned: bool = False  # whether it is a fit of learned vectors as they come


def _fit(make: Callable[[Any], Any]) -> Callable[[Any, Any], Callable[[], Any]]:
    import widemargin

    return lambda X, y: lambda: make(widemargin).fit(X, y)


def _predict(name: str) -> Callable[[Any, Any], Callable[[], Any]]:
    def prepare(X: Any, y: Any) -> Callable[[], Any]:
        import widemargin

        machine = widemargin.SparseKernelClassifier(100, C=10.0, random_state=0).fit(X, y)
        compiled = machine.compile()
        rows = np.tile(X, (4, 1))
        single = rows[:500].astype(np.float32)
        calls: dict[str, Callable[[], Any]] = {
            "predict": lambda: machine.predict(rows),
            "compiled": lambda: [compiled.predict(rows) for _ in range(5)],
            "alone": lambda: [compiled.predict_one(row) for row in single],
        }
        return calls[name]

    return prepare


def _chosen(n: int) -> Callable[[Any, Any], Callable[[], Any]]:
    return _fit(lambda wm: wm.SparseKernelClassifier(n, C=10.0, random_state=0))


def _learned(n: int) -> Callable[[Any, Any], Callable[[], Any]]:
    return _fit(lambda wm: wm.SparseKernelClassifier(n, basis="learned", random_state=0))


_KERNEL = {"C": 10.0, "gamma": 0.025, "random_state": 0}
_ALL = 1 << 40

TASKS: dict[str, Task] = {
    "usps, 83 chosen vectors": Task("usps", _ALL, _chosen(83)),
    "satimage, 68 chosen vectors": Task("satimage.scale", _ALL, _chosen(68)),
    "300 rows of satimage, 30 chosen vectors": Task("satimage.scale", 300, _chosen(30)),
    "4,000 rows of letter, one pass of LaRank": Task(
        "letter.raw", 4000, _fit(lambda wm: wm.KernelClassifier(epochs=1, **_KERNEL))
    ),
    "2,000 rows of usps, until the gap is closed": Task(
        "usps", 2000, _fit(lambda wm: wm.KernelClassifier(**_KERNEL))
    ),
    "4,000 rows of letter, perceptron": Task(
        "letter.raw",
        4000,
        _fit(lambda wm: wm.KernelPerceptron(gamma=0.025, epochs=5, random_state=0)),
    ),
    "usps, predict": Task("usps", 2000, _predict("predict")),
    "usps, compiled": Task("usps", 2000, _predict("compiled")),
    "usps, a row at a time": Task("usps", 2000, _predict("alone")),
    "usps, 29 learned vectors": Task("usps", _ALL, _learned(29), learned=True),
    "satimage, 24 learned vectors": Task("satimage.scale", _ALL, _learned(24), learned=True),
    "letter, 90 learned vectors": Task("letter.scale", _ALL, _learned(90), learned=True),
}


def silently(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()

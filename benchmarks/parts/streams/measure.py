"""Streams of millions of rows, each read by a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import load_svmlight_file

import widemargin
from benchmarks.parts.streams.child import N_FEATURES
from benchmarks.parts.streams.generate import write
from benchmarks.settings import Settings
from benchmarks.trials import say

CHILD = Path(__file__).with_name("child.py")
ROWS = {"folder": (5_000_000, 4_000), "parquet": (5_000_000, 4_000), "svmlight": (100_000, 1_000)}


@dataclass(frozen=True)
class Reading:
    """A pass over a stream."""

    kind: str
    learner: str
    rows: int
    rows_per_second: float
    megabytes: float  # the most that the process held
    accuracy: float  # on the first rows, after the pass


@dataclass(frozen=True)
class Found:
    """All passes, and how fast scikit-learn reads the same text at once, in rows a second."""

    readings: list[Reading]
    reader_alone: float


def learners() -> list[str]:
    """Return who is fed: nobody, and a linear learner, ours if there is one."""
    ours = "StochasticLinearClassifier"
    return ["none", ours if hasattr(widemargin, ours) else "SGDClassifier"]


def measure(settings: Settings, wanted: list[str]) -> Found:
    readings, alone = [], 0.0
    for kind, amounts in ROWS.items():
        n_rows = settings.amount(*amounts)
        with tempfile.TemporaryDirectory() as folder:
            say(f"Writing {n_rows} rows as {kind}")
            path = write(kind, Path(folder), n_rows)
            if kind == "svmlight":
                alone = _read_at_once(path, n_rows)
            for learner in learners():
                say(f"Reading {kind}, for {learner}")
                readings.append(_read(kind, path, learner))
    return Found(readings, alone)


def _read_at_once(path: Path, n_rows: int) -> float:
    started = time.perf_counter()
    load_svmlight_file(str(path), n_features=N_FEATURES, zero_based=False, dtype="float32")
    return n_rows / (time.perf_counter() - started)


def _read(kind: str, path: Path, learner: str) -> Reading:
    command = [sys.executable, str(CHILD), str(path), learner]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(output)
    speed = found["rows"] / found["seconds"]
    return Reading(kind, learner, found["rows"], speed, found["peak"], 100 * found["accuracy"])

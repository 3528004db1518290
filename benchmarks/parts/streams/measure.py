"""Streams of millions of rows, each read by a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from sklearn.datasets import load_svmlight_file

import widemargin
from benchmarks.parts.streams.child import N_FEATURES, open_stream
from benchmarks.parts.streams.generate import write
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say

CHILD = Path(__file__).with_name("child.py")
ROWS = {"folder": (5_000_000, 4_000), "parquet": (5_000_000, 4_000), "svmlight": (50_000, 1_000)}


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
    """All passes, and how fast the same text is read: by a stream, and at once by scikit-learn."""

    readings: list[Reading]
    text_stream: float  # rows a second
    text_at_once: float


def learners() -> list[str]:
    """Return who is fed: nobody, and a linear learner, ours if there is one."""
    ours = "StochasticLinearClassifier"
    return ["none", ours if hasattr(widemargin, ours) else "SGDClassifier"]


def measure(settings: Settings, wanted: list[str]) -> Found:
    readings: list[Reading] = []
    speeds = {"stream": 0.0, "at once": 0.0}
    for kind, amounts in ROWS.items():
        n_rows = settings.amount(*amounts)
        with tempfile.TemporaryDirectory() as folder:
            say(f"Writing {n_rows} rows as {kind}")
            path = write(kind, Path(folder), n_rows)
            if kind == "svmlight":
                speeds = _text_speeds(path, n_rows, settings.repeats)
            for learner in learners():
                say(f"Reading {kind}, for {learner}")
                readings.append(_read(kind, path, learner))
    return Found(readings, speeds["stream"], speeds["at once"])


def _text_speeds(path: Path, n_rows: int, repeats: int) -> dict[str, float]:
    """Return rows a second of a stream, and of the parser that it uses, given the whole text."""
    stream = open_stream(path)

    def read_stream() -> None:
        for _ in stream:
            pass

    def read_at_once() -> None:
        load_svmlight_file(str(path), n_features=N_FEATURES, zero_based=False, dtype="float32")

    say("Reading svmlight at once and as a stream, by turns")
    seconds = take_turns({"stream": read_stream, "at once": read_at_once}, repeats)
    return {name: n_rows / each for name, each in seconds.items()}


def _read(kind: str, path: Path, learner: str) -> Reading:
    command = [sys.executable, str(CHILD), str(path), learner]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = json.loads(output)
    speed = found["rows"] / found["seconds"]
    return Reading(kind, learner, found["rows"], speed, found["peak"], 100 * found["accuracy"])

"""Processor time of tasks, by today's code and by an earlier version in turn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.parts.earlier.tasks import TASKS
from benchmarks.settings import Settings
from benchmarks.trials import say

VARIABLE = "WIDEMARGIN_EARLIER"
DATASETS = tuple(dict.fromkeys(task.dataset for task in TASKS.values()))
_CHILD = Path(__file__).with_name("child.py")
_TURNS, _TIMES = 4, 4


@dataclass(frozen=True)
class Times:
    """Least seconds of processor time: of both, and whether it is a fit of learned vectors."""

    earlier: float
    now: float
    learned: bool

    @property
    def ratio(self) -> float:
        return self.now / self.earlier


def measure(settings: Settings, wanted: list[str]) -> dict[str, Times]:
    """Time every task in processes of its own; the least of several counts, as others only add."""
    earlier = os.environ.get(VARIABLE) or sys.executable
    turns, times = settings.amount((_TURNS, _TIMES), quick=(1, 1))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, task in TASKS.items():
            if task.dataset not in wanted:
                continue
            say(f"Today and earlier: {name}")
            data = settings.load(task.dataset)
            rows = Path(folder) / f"{task.dataset}.npz"
            np.savez(rows, X=data.X, y=data.y)
            seconds: dict[str, list[float]] = {"earlier": [], "now": []}
            for _ in range(turns):
                for who, python in (("earlier", earlier), ("now", sys.executable)):
                    seconds[who] += _seconds(python, name, rows, times)
            found[name] = Times(min(seconds["earlier"]), min(seconds["now"]), task.learned)
    return found


def _seconds(python: str, name: str, rows: Path, times: int) -> list[float]:
    run = subprocess.run(
        [python, str(_CHILD), name, str(rows), str(times)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        # The package that is installed there, whatever lies in the folder of the caller.
        env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
    )
    each: list[float] = json.loads(run.stdout)
    return each

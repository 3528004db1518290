"""Peak memory of a process that loads the rows of mnist and fits, and does nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from benchmarks import data
from benchmarks.settings import Settings
from benchmarks.trials import say

MNIST = "mnist"
CHILD = Path(__file__).with_name("child.py")


@dataclass(frozen=True)
class Peak:
    where: str
    n_vectors: int
    gigabytes: float  # of the whole process, 1 GB = 1e9 bytes
    loaded_gigabytes: float  # its peak before the fit began
    seconds: float  # of the fit


def measure(settings: Settings, wanted: list[str]) -> Peak:
    has_data = MNIST in wanted and data.is_available()
    say("Peak memory" + (" (reads mnist once, which takes a minute)" if has_data else ""))
    n_rows, n_vectors = settings.amount((60_000, 300), quick=(2_000, 20))
    arguments = [str(n_rows), str(n_vectors)]
    if has_data:
        arguments.append(str(data.cached_arrays(MNIST, "train", "float32")))
    output = subprocess.run(
        [sys.executable, str(CHILD), *arguments], check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(output)
    rows, features = found["shape"]
    where = f"{MNIST if has_data else 'synthetic'}, {rows} x {features} float32"
    return Peak(where, found["n_basis"], found["peak"], found["loaded"], found["seconds"])

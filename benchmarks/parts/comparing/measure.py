"""The command as a process, on a table like that of a census."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.parts.comparing.generate import write
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin.report import Comparison

ROWS = 30_000, 600
MINUTES = 5.0, 0.5
KEPT = Path("build") / "comparing.json"  # for pictures


@dataclass(frozen=True)
class Found:
    """What the command found, and how long it took from its start to its end."""

    comparison: Comparison
    allowed: float  # seconds
    seconds: float


def measure(settings: Settings, wanted: list[str]) -> Found:
    n_rows = settings.amount(*ROWS)
    minutes = settings.amount(*MINUTES)
    with tempfile.TemporaryDirectory() as folder:
        table = write(Path(folder) / "census.csv", n_rows)
        KEPT.parent.mkdir(exist_ok=True)
        say(f"Comparing on {n_rows} rows, for {minutes:g} minutes")
        command = [sys.executable, "-m", "widemargin.cli", "compare", str(table)]
        options = ["--target", "income", "--minutes", str(minutes), "-o", str(KEPT)]
        started = time.perf_counter()
        subprocess.run([*command, *options], check=True, capture_output=True)
        seconds = time.perf_counter() - started
        return Found(Comparison.load(KEPT), 60 * minutes, seconds)

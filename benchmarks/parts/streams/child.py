"""The process whose memory and time are measured: it reads a stream, and lets a machine learn.

``python child.py PATH LEARNER`` prints what it found as JSON. LEARNER is "none" for reading alone.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import widemargin

N_FEATURES, N_CLASSES = 20_000, 4
BATCH = 2_000


def peak_megabytes() -> float:
    """Return the most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: there a child begins with the peak of the parent that started it.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1e3
    import psutil

    memory = psutil.Process().memory_info()
    return float(getattr(memory, "peak_wset", memory.rss)) / 1e6


def open_stream(path: Path) -> Any:
    given: dict[str, Any] = {"classes": np.arange(N_CLASSES), "batch_size": BATCH}
    if path.suffix == ".parquet":
        given |= {"target": "label", "n_features": N_FEATURES}
    elif not path.is_dir():
        given |= {"n_features": N_FEATURES}
    return widemargin.stream(path, **given)


def make_learner(name: str) -> Any:
    if name == "SGDClassifier":
        from sklearn.linear_model import SGDClassifier

        return SGDClassifier(alpha=1e-6, random_state=0)
    return getattr(widemargin, name)(random_state=0)


def run(path: Path, learner: str) -> dict[str, float]:
    stream = open_stream(path)
    before = peak_megabytes()
    started = time.perf_counter()
    hits = 0.0
    if learner == "none":
        for _ in stream:
            pass
    else:
        machine = make_learner(learner)
        stream.feed(machine)
    seconds = time.perf_counter() - started
    n_rows = stream.rows_read
    if learner != "none":
        X, y = next(iter(stream))
        hits = float(np.mean(machine.predict(X) == y))
    return {
        "rows": n_rows,
        "seconds": seconds,
        "before": before,
        "peak": peak_megabytes(),
        "accuracy": hits,
    }


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), sys.argv[2])))

"""The process that is timed: it reads rows and does one task with the library it finds.

``python child.py TASK FILE.npz TIMES`` prints the seconds of processor time of each time.
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
from tasks import TASKS, silently  # beside this file: an earlier version has no benchmarks


def _run(name: str, path: str, times: int) -> list[float]:
    task = TASKS[name]
    with np.load(path) as arrays:
        X, y = arrays["X"], arrays["y"]
    places = np.unique(np.linspace(0, len(y) - 1, min(task.n_rows, len(y))).astype(int))
    call = task.prepare(X[places], y[places])
    seconds = []
    for _ in range(times):
        started = time.process_time()
        silently(call)
        seconds.append(time.process_time() - started)
    return seconds


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

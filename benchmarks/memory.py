"""Peak memory of a process that loads the rows of mnist and fits, and does nothing else.

Run as a module it is that process: ``python -m benchmarks.memory ROWS VECTORS [FILE.npz]``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.settings import Settings


@dataclass(frozen=True)
class Peak:
    where: str
    n_vectors: int
    gigabytes: float  # of the whole process, 1 GB = 1e9 bytes
    loaded_gigabytes: float  # its peak before the fit began
    seconds: float  # of the fit


def measure(settings: Settings, has_data: bool) -> Peak:
    # Imported here, so that the process that is measured does not carry it along.
    from benchmarks.data import cached_arrays
    from benchmarks.trials import say

    say("Peak memory" + (" (reads mnist once, which takes a minute)" if has_data else ""))
    arguments = [str(settings.memory_rows), str(settings.memory_vectors)]
    if has_data:
        arguments.append(str(cached_arrays("mnist", "train", "float32")))
    output = subprocess.run(
        [sys.executable, "-m", "benchmarks.memory", *arguments],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
    ).stdout
    found = json.loads(output)
    rows, features = found["shape"]
    where = f"{'mnist' if has_data else 'synthetic'}, {rows} x {features} float32"
    return Peak(where, found["n_basis"], found["peak"], found["loaded"], found["seconds"])


def peak_gigabytes() -> float:
    """Return the most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: there a child begins with the peak of the parent that started it.
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e9
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset / 1e9
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def _fit_and_report(n_rows: int, n_vectors: int, path: str | None) -> None:
    import numpy as np

    from widemargin import SparseKernelClassifier

    if path is None:
        X = np.random.default_rng(0).random((n_rows, 780), dtype=np.float32)
        y = X[:, :10].argmax(axis=1)
    else:
        with np.load(path) as arrays:
            X, y = arrays["X"][:n_rows], arrays["y"][:n_rows]
    loaded = peak_gigabytes()
    started = time.perf_counter()
    machine = SparseKernelClassifier(max_basis=n_vectors, tol=0, random_state=0, n_jobs=-1)
    machine.fit(X, y)
    found = {
        "shape": X.shape,
        "n_basis": machine.n_basis_,
        "seconds": time.perf_counter() - started,
        "loaded": loaded,
        "peak": peak_gigabytes(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    _fit_and_report(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None)

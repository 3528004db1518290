"""The process whose memory is measured: it loads rows and fits, and imports nothing else.

``python child.py ROWS VECTORS [FILE.npz]`` prints what it found as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


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

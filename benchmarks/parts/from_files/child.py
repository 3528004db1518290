"""A process that reads a file, or predicts its rows, and prints seconds and megabytes as JSON.

``python child.py plain|reader|predict MODEL FILE``
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from benchmarks.parts.memory.child import peak_gigabytes


def _plain(model: str, path: str) -> None:
    from pyarrow import csv

    for _ in csv.open_csv(path):
        pass


def _reader(model: str, path: str) -> None:
    import widemargin
    from widemargin.datasets.chunks import ChunkReader
    from widemargin.datasets.encoding import kinds_of

    machine = widemargin.load(model)
    for _ in ChunkReader(Path(path), kinds_of(machine), machine.n_features_in_):
        pass


def _predict(model: str, path: str) -> None:
    from widemargin.cli import main

    sys.argv = ["widemargin", "predict", model, path, "-o", f"{path}.answers"]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


KINDS: dict[str, Callable[[str, str], None]] = {
    "plain": _plain,
    "reader": _reader,
    "predict": _predict,
}


if __name__ == "__main__":
    import pyarrow.csv  # noqa: F401  # to load packages takes as long whatever the file is
    import sklearn.svm  # noqa: F401

    import widemargin.cli.predict
    import widemargin.datasets.chunks  # noqa: F401

    started = time.perf_counter()
    KINDS[sys.argv[1]](*sys.argv[2:4])
    seconds = time.perf_counter() - started
    print(json.dumps({"seconds": seconds, "megabytes": 1000 * peak_gigabytes()}))

"""What it costs to come from a file: each reading in a process of its own, by turns."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import SparseKernelClassifier
from widemargin.export import to_wasm
from widemargin.report import write_report

CHILD = Path(__file__).with_name("child.py")
BYTES = 1_000_000_000, 2_000_000
N_COLUMNS, N_VECTORS = 20, 20
KINDS = ("plain", "reader", "predict")
_IMPORTS = {
    "sklearn.svm": "import sklearn.svm",
    "widemargin": "from widemargin import SparseKernelClassifier",
}


@dataclass(frozen=True)
class Found:
    """Seconds, megabytes and kilobytes."""

    n_bytes: int  # of the file
    n_rows: int
    seconds: dict[str, float]  # of reading and predicting, without loading packages
    megabytes: dict[str, float]  # the most that a process held
    one_row: dict[str, float]  # microseconds: bare, folded
    page: float  # kilobytes
    wasm: float
    imports: dict[str, float]  # seconds


def measure(settings: Settings, wanted: list[str]) -> Found:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say("Writing a CSV")
        table, model, n_rows = _prepare(folder, settings.amount(*BYTES))
        runs: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        for _ in range(settings.amount(3, quick=1)):
            for kind in KINDS:
                say(f"Reading: {kind}")
                runs[kind].append(_run(kind, model, table))
        size, one_row = table.stat().st_size, _one_row(settings)
        page, wasm = _sizes(folder)
    return Found(
        size,
        n_rows,
        {kind: median(each["seconds"] for each in runs[kind]) for kind in KINDS},
        {kind: max(each["megabytes"] for each in runs[kind]) for kind in KINDS},
        one_row,
        page,
        wasm,
        _imports(settings.amount(7, quick=1)),
    )


def _prepare(folder: Path, n_bytes: int) -> tuple[Path, Path, int]:
    """Write a table of numbers, and a model of its first rows; return both and the rows."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((5_000, N_COLUMNS)).round(6)
    kinds = (rows[:, :3] ** 2).sum(axis=1) > 2.4
    names = [f"x{number}" for number in range(N_COLUMNS)]
    head = ",".join(names) + ",kind\n"
    lines = [
        ",".join(map(repr, row)) + (",far\n" if is_far else ",near\n")
        for row, is_far in zip(rows.tolist(), kinds.tolist(), strict=True)
    ]
    body = "".join(lines)
    copies = max(1, n_bytes // len(body))
    few, table, model = folder / "few.csv", folder / "rows.csv", folder / "rows.model"
    few.write_text(head + "".join(lines[:2_000]), encoding="ascii")
    with table.open("w", encoding="ascii") as file:
        file.write(head)
        for _ in range(copies):
            file.write(body)
    command = ["fit", str(few), "--target", "kind", "--max-basis", str(N_VECTORS)]
    subprocess.run(
        [sys.executable, "-m", "widemargin.cli", *command, "-o", str(model)],
        check=True,
        capture_output=True,
    )
    return table, model, copies * len(lines)


def _run(kind: str, model: Path, table: Path) -> dict[str, float]:
    command = [sys.executable, str(CHILD), kind, str(model), str(table)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _one_row(settings: Settings) -> dict[str, float]:
    """Return the microseconds of a row, of the machine of a pipeline and of the whole."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), SparseKernelClassifier(60, random_state=0))
    pipeline.fit(X, y)
    bare, folded = pipeline[-1].compile(), widemargin.compile(pipeline)
    scaled = pipeline[0].transform(X[:1])[0].astype(np.float32)
    calls = {
        "bare": lambda: bare.predict_one(scaled),
        "folded": lambda: folded.predict_one(X[0]),
    }
    return {
        name: 1e6 * seconds for name, seconds in take_turns(calls, 5 * settings.repeats).items()
    }


def _sizes(folder: Path) -> tuple[float, float]:
    """Return the kilobytes of a page and of a machine in WebAssembly."""
    X, y = load_digits(return_X_y=True)
    machine = SparseKernelClassifier(60, random_state=0).fit(X[::2] / 16, y[::2])
    page = write_report(folder / "digits.html", machine, X[1::2] / 16, y[1::2], image_shape=(8, 8))
    to_wasm(machine, folder / "digits.wasm")
    return page / 1000, (folder / "digits.wasm").stat().st_size / 1000


def _imports(repeats: int) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in _IMPORTS}
    for _ in range(repeats):
        for name, code in _IMPORTS.items():
            started = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            seconds[name].append(time.perf_counter() - started)
    return {name: median(each) for name, each in seconds.items()}

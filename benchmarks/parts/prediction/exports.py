"""C files: how large they are, and how long a large one takes to compile."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import CompiledPredictor, SparseKernelClassifier
from widemargin.export import ExportLoss, to_c
from widemargin.kernels import RBF
from widemargin.models import KernelExpansion
from widemargin.readouts import Readout

N_VECTORS = 60

COMPILER = shutil.which("cc") or shutil.which("gcc")


@dataclass(frozen=True)
class CSize:
    """Kilobytes (of 1000 bytes) of a source file and of its tables once compiled."""

    data: str
    numbers: str
    source: float
    tables: float
    loss: ExportLoss | None  # on the rows of the fit, where numbers are quantised


@dataclass(frozen=True)
class CompileTime:
    n_vectors: int
    n_features: int
    source: float  # kB
    export_seconds: float
    compile_seconds: float

    @property
    def seconds(self) -> float:
        return self.export_seconds + self.compile_seconds


def sizes() -> list[CSize]:
    """Return the sizes of a machine of digits; the first is held against the target."""
    say("Size of C files")
    X, y = load_digits(return_X_y=True)
    # Pixels are 0 to 16, so that sixteenths are short in decimal digits; standardised they are not.
    rows = {"digits / 16": X / 16, "digits, standardised": StandardScaler().fit_transform(X)}
    found = []
    with TemporaryDirectory() as folder:
        for data, scaled in rows.items():
            machine = SparseKernelClassifier(max_basis=N_VECTORS, C=10, tol=0, random_state=0)
            machine.fit(scaled, y)
            for quantize in (None, "int16"):
                judged_on = None if quantize is None else scaled
                file = to_c(machine, Path(folder) / "digits.c", quantize=quantize, X=judged_on)
                source, tables = file.n_bytes / 1e3, file.table_bytes / 1e3
                found.append(CSize(data, quantize or "float32", source, tables, file.loss))
    return found


def compile_time(settings: Settings) -> CompileTime:
    """Time a machine of arbitrary numbers, which have the longest text."""
    n_vectors, n_features, n_classes = settings.amount(768, quick=100), 64, 10
    say(f"Compilation of a C file of {n_vectors} vectors")
    rng = np.random.default_rng(0)
    model = KernelExpansion(
        RBF(1.0 / n_features),
        rng.standard_normal((n_vectors, n_features)),
        rng.standard_normal((n_vectors, n_classes)),
        rng.standard_normal(n_classes),
    )
    machine = CompiledPredictor(model, Readout(np.arange(n_classes), "multiclass"))
    export_seconds, compile_seconds = [], []
    with TemporaryDirectory() as folder:
        source = Path(folder) / "machine.c"
        for _ in range(settings.repeats):
            started = time.perf_counter()
            file = to_c(machine, source)
            exported = time.perf_counter()
            compile_c("-O2", "-c", source, "-o", source.with_suffix(".o"))
            export_seconds.append(exported - started)
            compile_seconds.append(time.perf_counter() - exported)
    return CompileTime(
        n_vectors,
        n_features,
        file.n_bytes / 1e3,
        median(export_seconds),
        median(compile_seconds),
    )


def compile_c(*words: Any) -> None:
    subprocess.run([str(COMPILER), "-std=c99", *map(str, words)], check=True)

"""Prediction by NumPy and BLAS alone, written as well as NumPy allows: the rival in throughput.

Rows are taken in chunks whose kernel values stay in cache, and every step works in place. Scaling
the vectors beforehand, by 2 gamma, saves a pass over the kernel values.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np
from threadpoolctl import ThreadpoolController

from widemargin.models import KernelExpansion

CHUNKS = (256, 512, 1024, 2048, 4096)

Form = Literal["plain", "folded"]
Predict = Callable[[np.ndarray], np.ndarray]
Step = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True)
class Way:
    """One way to predict; either BLAS has several threads, or Python has."""

    form: Form
    chunk: int
    blas_threads: int
    python_threads: int

    def __str__(self) -> str:
        threads = f", {self.python_threads} Python threads" if self.python_threads > 1 else ""
        return f"chunks of {self.chunk}{threads}"


def ways(n_threads: int) -> list[Way]:
    shares = sorted({(n_threads, 1), (1, n_threads)})
    forms: tuple[Form, ...] = ("plain", "folded")
    return [Way(form, chunk, *share) for form in forms for chunk in CHUNKS for share in shares]


class NumpyRival:
    """Labels of rows by an expansion in Gaussian kernels, in single precision."""

    def __init__(self, model: KernelExpansion, classes: np.ndarray) -> None:
        self.classes = classes
        self._threads = ThreadpoolController()
        gamma = model.kernel.gamma
        basis = np.asarray(model.basis, dtype=np.float64)
        norms = gamma * np.einsum("ij,ij->i", basis, basis)
        self.gamma = np.float32(gamma)
        self.scaled = np.ascontiguousarray((2 * gamma * basis).T, dtype=np.float32)
        self.norms = norms.astype(np.float32)
        self.coef = np.ascontiguousarray(model.coef, dtype=np.float32)
        self.intercept = model.intercept.astype(np.float32)
        self.folded_basis = np.vstack(
            [self.scaled, np.full_like(self.norms, -self.gamma), -self.norms]
        )

    def caller(self, way: Way, X: np.ndarray) -> Callable[[], np.ndarray]:
        """Return a function that predicts the rows in this way."""
        predict = self._in_chunks(way)
        parts = np.array_split(X, way.python_threads)

        def call() -> np.ndarray:
            with self._threads.limit(limits=way.blas_threads, user_api="blas"):
                if len(parts) == 1:
                    return predict(X)
                with ThreadPoolExecutor(len(parts)) as pool:
                    return np.concatenate(list(pool.map(predict, parts)))

        return call

    def _in_chunks(self, way: Way) -> Predict:
        make_step = self._plain if way.form == "plain" else self._folded

        def predict(X: np.ndarray) -> np.ndarray:
            best = np.empty(len(X), dtype=np.intp)
            step = make_step(way.chunk)
            for start in range(0, len(X), way.chunk):
                step(X[start : start + way.chunk], best[start : start + way.chunk])
            return self.classes[best]

        return predict

    def _plain(self, chunk: int) -> Step:
        all_values, all_scores = self._room(chunk)

        def step(rows: np.ndarray, best: np.ndarray) -> None:
            values, scores = all_values[: len(rows)], all_scores[: len(rows)]
            np.matmul(rows, self.scaled, out=values)
            norms = np.einsum("ij,ij->i", rows, rows)
            norms *= self.gamma
            values -= norms[:, np.newaxis]
            values -= self.norms
            np.minimum(values, 0, out=values)
            self._finish(values, scores, best)

        return step

    def _folded(self, chunk: int) -> Step:
        """Let BLAS subtract the norms too: rows get two features more, their norm and a one."""
        all_values, all_scores = self._room(chunk)
        n_features = len(self.scaled)
        all_wider = np.ones((chunk, n_features + 2), dtype=np.float32)

        def step(rows: np.ndarray, best: np.ndarray) -> None:
            values, scores = all_values[: len(rows)], all_scores[: len(rows)]
            wider = all_wider[: len(rows)]
            wider[:, :n_features] = rows
            np.einsum("ij,ij->i", rows, rows, out=wider[:, n_features])
            np.matmul(wider, self.folded_basis, out=values)
            np.minimum(values, 0, out=values)
            self._finish(values, scores, best)

        return step

    def _room(self, chunk: int) -> tuple[np.ndarray, np.ndarray]:
        n_vectors, n_classes = self.coef.shape
        return (
            np.empty((chunk, n_vectors), dtype=np.float32),
            np.empty((chunk, n_classes), dtype=np.float32),
        )

    def _finish(self, values: np.ndarray, scores: np.ndarray, best: np.ndarray) -> None:
        np.exp(values, out=values)
        np.matmul(values, self.coef, out=scores)
        scores += self.intercept
        scores.argmax(axis=1, out=best)

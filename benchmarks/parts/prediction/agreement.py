"""Whether every export gives the scores and labels of the machine that it was made of.

The measure is the estimator in double precision, on rows that single precision holds exactly.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

import widemargin
from benchmarks.parts.prediction.exports import COMPILER, compile_c
from benchmarks.parts.prediction.latency import LETTER, has_onnxruntime, onnx_session
from benchmarks.parts.prediction.targets import AGREEMENT
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin._registry import ESTIMATORS
from widemargin.export import to_c

KERNELS = ("rbf", "laplacian", "chi2", "poly", "sigmoid", "linear")
# Of those an estimator has what it knows; the rest of its parameters are its defaults.
PARAMETERS = {"max_basis": 40, "C": 10.0, "coef0": 1.0, "random_state": 0}

Answer = tuple[np.ndarray, np.ndarray]  # scores as decision_function gives them, labels


@dataclass(frozen=True)
class Agreement:
    """Worst differences by export and kernel."""

    n_rows: int
    data: list[str]
    n_machines: int
    worst: dict[tuple[str, str], float]  # of scores, relative to the largest score
    other_labels: int  # where the two best scores differ by more than the tolerance
    tied_labels: int  # where they do not


@dataclass(frozen=True)
class Problem:
    name: str
    X: np.ndarray
    y: np.ndarray
    rows: np.ndarray


def measure(settings: Settings, has_letter: bool) -> Agreement:
    problems = list(_problems(settings, has_letter))
    worst: dict[tuple[str, str], float] = {}
    others = ties = n_machines = 0
    with TemporaryDirectory() as folder:
        for problem, estimator in _machines(problems):
            kernel = getattr(estimator, "kernel", "none")
            expected = _from_estimator(estimator, problem.rows)
            for export, ask in _exports(estimator, Path(folder) / f"m{n_machines}").items():
                difference, other, tied = _compare(expected, ask(problem.rows))
                worst[export, kernel] = max(difference, worst.get((export, kernel), 0.0))
                others, ties = others + other, ties + tied
            n_machines += 1
    names = list(dict.fromkeys(problem.name for problem in problems))
    return Agreement(_n_rows(settings), names, n_machines, worst, others, ties)


def _n_rows(settings: Settings) -> int:
    return settings.amount(1_000, quick=200)


def _problems(settings: Settings, has_letter: bool) -> Iterator[Problem]:
    digits, numerals = load_digits(return_X_y=True)
    sets = {"digits, standardised": (StandardScaler().fit_transform(digits), numerals)}
    if has_letter:
        letter = settings.load_whole(LETTER)
        first_ten = letter.y <= 10
        sets[f"{LETTER}, A to J"] = (letter.X[first_ten], letter.y[first_ten])
    n_training = settings.amount(700, quick=100)
    for name, (X, y) in sets.items():
        chosen = np.random.default_rng(0).permutation(len(y))
        fitted, judged = np.split(chosen[: n_training + _n_rows(settings)], [n_training])
        X = X.astype(np.float32).astype(np.float64)
        for labels in (y, y % 2):
            yield Problem(name, X[fitted], labels[fitted], X[judged])


def _machines(problems: list[Problem]) -> Iterator[tuple[Problem, Any]]:
    for name, estimator_class in ESTIMATORS.items():
        tags = get_tags(estimator_class())
        if not tags.target_tags.single_output:
            continue  # of label sets, which the problems have not; the contract tests ask these
        known = estimator_class().get_params()
        parameters = {key: value for key, value in PARAMETERS.items() if key in known}
        kernels = [{"kernel": kernel} for kernel in KERNELS] if "kernel" in known else [{}]
        for problem in problems:
            n_classes = len(np.unique(problem.y))
            if n_classes > 2 and not tags.classifier_tags.multi_class:
                continue
            say(f"Agreement of exports: {name}, {problem.name}, {n_classes} classes")
            for kernel in kernels:
                estimator = estimator_class(**parameters, **kernel)
                takes_all = not get_tags(estimator).input_tags.positive_only
                suited = problem if takes_all else _from_zero_on(problem)
                yield suited, estimator.fit(suited.X, suited.y)


def _from_zero_on(problem: Problem) -> Problem:
    """Return the problem with features that begin at zero, in numbers of single precision."""
    least = np.minimum(problem.X.min(axis=0), problem.rows.min(axis=0))
    X, rows = (
        (each - least).astype(np.float32).astype(np.float64) for each in (problem.X, problem.rows)
    )
    return replace(problem, X=X, rows=rows)


def _compare(expected: Answer, got: Answer) -> tuple[float, int, int]:
    """Return the worst difference, and the number of other labels, clear ones and ties."""
    scores, labels = expected
    largest = np.abs(scores).max()
    if scores.ndim == 1:
        gap = np.abs(scores)
    else:
        ordered = np.sort(scores, axis=1)
        gap = ordered[:, -1] - ordered[:, -2]
    other = labels != got[1]
    clear = gap > AGREEMENT.bar * largest
    difference = np.abs(got[0].reshape(scores.shape) - scores).max() / largest
    return float(difference), int((other & clear).sum()), int((other & ~clear).sum())


def _from_estimator(estimator: Any, rows: np.ndarray) -> Answer:
    return estimator.decision_function(rows), estimator.predict(rows)


def _exports(estimator: Any, path: Path) -> dict[str, Callable[[np.ndarray], Answer]]:
    """Return the ways to ask a machine; those whose tools are missing are left out."""
    found: dict[str, Callable[[np.ndarray], Answer]] = {
        "compiled float32": lambda rows: _from_estimator(
            estimator.compile(), rows.astype(np.float32)
        ),
        "saved and loaded": lambda rows: _from_saved(estimator, path, rows),
    }
    if has_onnxruntime:
        found["ONNX float32"] = lambda rows: _from_onnx(estimator, rows)
    if COMPILER:
        found["C float32"] = lambda rows: _from_c(estimator, path, rows)
    return found


def _from_saved(estimator: Any, path: Path, rows: np.ndarray) -> Answer:
    file = path.with_suffix(".model")
    widemargin.save(estimator, file)
    return _from_estimator(widemargin.load(file, mmap=False), rows)


def _from_onnx(estimator: Any, rows: np.ndarray) -> Answer:
    asked = ["scores", "label"]
    scores, labels = onnx_session(estimator).run(asked, {"X": rows.astype(np.float32)})
    return scores, labels


def _from_c(estimator: Any, path: Path, rows: np.ndarray) -> Answer:
    source, library = path.with_suffix(".c"), path.with_suffix(".so")
    name = to_c(estimator, source).name
    compile_c("-O2", "-shared", "-fPIC", source, "-o", library, "-lm")
    loaded = ctypes.CDLL(str(library))
    get_scores, get_number = getattr(loaded, f"{name}_scores"), getattr(loaded, f"{name}_predict")
    get_scores.restype, get_scores.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    get_number.restype, get_number.argtypes = ctypes.c_int, [ctypes.c_void_p]
    single = np.ascontiguousarray(rows, dtype=np.float32)
    scores = np.empty((len(rows), estimator.model_.n_outputs), dtype=np.float32)
    numbers = np.empty(len(rows), dtype=np.intp)
    for number, (row, room) in enumerate(zip(single, scores, strict=True)):
        get_scores(row.ctypes.data, room.ctypes.data)
        numbers[number] = get_number(row.ctypes.data)
    return scores, estimator.classes_[numbers]

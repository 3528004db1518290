"""One trial: a contender is fitted to some rows of a split, and measured on others."""

from __future__ import annotations

import os
import pickle
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, hamming_loss
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

from widemargin.model_files import save
from widemargin.preparation import compile as compile_pipeline
from widemargin.report import encoding
from widemargin.report.contenders import TUNING_FOLDS, TUNING_ROWS, Contender, Task
from widemargin.report.rows import some_rows, take

Array: TypeAlias = npt.NDArray[Any]

METRICS: dict[str, Callable[[Any, Any], float]] = {
    "accuracy": accuracy_score,
    "balanced accuracy": balanced_accuracy_score,
    "macro F1": lambda y, found: float(f1_score(y, found, average="macro", zero_division=0)),
    "micro F1": lambda y, found: float(f1_score(y, found, average="micro", zero_division=0)),
    "labels right": lambda y, found: 1.0 - float(hamming_loss(y, found)),
}
_MOST_CALLS = 1000


@dataclass(frozen=True)
class Trial:
    """What was measured; the numbers are those of :class:`~widemargin.report.Candidate`."""

    score: float
    fit_seconds: float
    batch_us: float
    alone_us: float
    model_bytes: int
    n_basis: int | None
    chosen: dict[str, Any] = field(default_factory=dict)
    cut_short: bool = False
    compiled: bool = False


def run_trial(
    contender: Contender,
    task: Task,
    X: Any,
    y: Array,
    train: Array,
    test: Array,
    *,
    metric: str,
    seconds: float | None,
    timing: float,
) -> Trial:
    """Fit to some rows, and measure on others.

    Parameters
    ----------
    seconds : float or None
        Time limit, for those that have one.
    timing : float
        Seconds in which calls are timed, for each of the two speeds.
    """
    X_train, y_train = take(X, train), y[train]
    X_test, y_test = take(X, test), y[test]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        # Whether numbers are missing is a matter of the whole table.
        transformer = encoding.ENCODERS[contender.prepared](X)
        pipeline, chosen = _fit(contender, task, transformer, X_train, y_train, seconds)
        fit_seconds = time.perf_counter() - started
    cut_short = any("max_seconds" in str(warning.message) for warning in caught)
    machine = pipeline[-1]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        _predict_in_one_thread(machine)
        predictor = _compiled(pipeline) if contender.kind == "ours" else None
        call = pipeline if predictor is None else predictor
        call.predict(X_test[:2])
        batch_us, found = _timed(lambda: call.predict(X_test), timing)
        return Trial(
            score=float(METRICS[metric](y_test, found)),
            fit_seconds=fit_seconds,
            batch_us=batch_us / len(test),
            alone_us=_alone(call, X_test, timing),
            model_bytes=_model_bytes(pipeline, contender.kind == "ours"),
            n_basis=_n_basis(machine),
            chosen=chosen,
            cut_short=cut_short,
            compiled=predictor is not None,
        )


def _fit(
    contender: Contender, task: Task, transformer: Any, X: Any, y: Array, seconds: float | None
) -> tuple[Pipeline, dict[str, Any]]:
    """Return a fitted pipeline, and the parameters that a search has chosen."""
    started = time.perf_counter()
    prepared = X if transformer == "passthrough" else transformer.fit_transform(X)
    tuning = some_rows(y, TUNING_ROWS, task.seed)
    chosen: dict[str, Any] = {}
    if contender.grid is not None:
        estimator = contender.build(task, len(tuning), None)
        chosen = _tuned(estimator, contender.grid(prepared), prepared[tuning], y[tuning], task)
    left = None if seconds is None else max(0.1, seconds - (time.perf_counter() - started))
    estimator = contender.build(task, len(y), left).set_params(**chosen)
    estimator.fit(prepared, y)
    return Pipeline([("prepare", transformer), ("machine", estimator)]), chosen


def _tuned(estimator: Any, grid: dict[str, Any], X: Any, y: Array, task: Task) -> dict[str, Any]:
    if len(y) < 2 * TUNING_FOLDS:
        return {}
    folds = KFold if task.label_sets else StratifiedKFold
    cv = folds(TUNING_FOLDS, shuffle=True, random_state=task.seed)
    scoring = "f1_micro" if task.label_sets else "accuracy"
    search = GridSearchCV(estimator, grid, scoring=scoring, cv=cv, refit=False)
    found: dict[str, Any] = search.fit(X, y).best_params_
    return found


def _predict_in_one_thread(machine: Any) -> None:
    """Keep forests and boosted trees from starting threads for a single row."""
    names = [name for name in machine.get_params() if name.split("__")[-1] == "n_jobs"]
    if names:
        machine.set_params(**dict.fromkeys(names, 1))


def _compiled(pipeline: Pipeline) -> Any:
    """Return the quickest form of one of our pipelines; None where it has a step that we lack."""
    try:
        return compile_pipeline(pipeline)
    except TypeError:
        return None


def _timed(call: Callable[[], Any], seconds: float) -> tuple[float, Any]:
    """Return the median microseconds of a call, from as many as a moment allows; and its result."""
    times: list[float] = []
    while not times or (sum(times) < seconds and len(times) < _MOST_CALLS):
        started = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - started)
    return 1e6 * median(times), found


def _alone(call: Any, X: Any, seconds: float) -> float:
    """Return the median time of a row that comes by itself, in the form that rows come in."""
    rows = [take(X, np.array([i])) for i in range(min(20, X.shape[0]))]
    predict = call.predict
    if hasattr(call, "predict_one"):
        rows, predict = [_as_one(row) for row in rows], call.predict_one
    turns = cycle(rows)
    predict(rows[0])
    return _timed(lambda: predict(next(turns)), seconds)[0]


def _as_one(row: Any) -> Any:
    """Return a row as ``predict_one`` takes it; of a table, a list of its values."""
    if encoding.is_frame(row):
        return row.iloc[0].tolist()
    return row.toarray()[0] if sp.issparse(row) else row[0]


def _model_bytes(pipeline: Pipeline, ours: bool) -> int:
    """Return the length of a file: of ours the safe one, of others, which have none, a pickle."""
    if not ours:
        return len(pickle.dumps(pipeline))
    transformer, machine = pipeline[0], pipeline[-1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model")
        try:
            save(pipeline, path)
            return os.path.getsize(path)
        except (TypeError, ValueError):
            save(machine, path)
            return os.path.getsize(path) + len(pickle.dumps(transformer))


def _n_basis(machine: Any) -> int | None:
    """Return the vectors that a prediction is compared with, where these are few or many."""
    if hasattr(machine, "n_basis_"):
        return int(machine.n_basis_)
    if hasattr(machine, "support_"):
        return len(machine.support_)
    return None

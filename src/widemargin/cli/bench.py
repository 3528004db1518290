"""``widemargin bench``: what a prediction costs, alone and in batch."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import click
import numpy as np

from widemargin.cli._data import DataOptions, data_options
from widemargin.cli._machines import load_model
from widemargin.cli._models import facts_of
from widemargin.cli._output import json_option, print_table, show
from widemargin.cli.evaluate import read_known

_ROWS_ALONE = 2000
_LEAST_BATCH = 20_000  # rows; fewer are repeated until there are so many
_TURNS = 7


@click.command(
    epilog="""\b
Examples:
  widemargin bench flowers.model test.csv
  widemargin bench flowers.model test.csv --json | jq .p99_microseconds"""
)
@click.argument("model")
@click.argument("data")
@click.option("--jobs", type=int, default=1, show_default=True, help="Threads of a batch.")
@data_options()
@json_option
def command(model: str, data: str, jobs: int, options: DataOptions, as_json: bool) -> None:
    """Measure MODEL on the rows of DATA: µs for one row, µs a row in batch, bytes, accuracy."""
    import widemargin

    machine = load_model(model)
    table = read_known(machine, facts_of(model), data, options)
    predictor = widemargin.compile(machine, n_jobs=jobs)
    alone = _alone(predictor.predict_one, _single_rows(table.X))
    result = {
        "model": model,
        "rows": len(table),
        "p50_microseconds": float(np.percentile(alone, 50)),
        "p99_microseconds": float(np.percentile(alone, 99)),
        "batch_microseconds_a_row": _batch(predictor.predict, table.X),
        "threads": jobs,
        "bytes": os.path.getsize(model),
        "accuracy": float(machine.score(table.X, table.y)),
    }
    show(result, as_json, lambda: _print(result))


def _single_rows(X: Any) -> list[Any]:
    """Return rows as who asks for one at a time has them: arrays, or lists with texts in them."""
    some = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _ROWS_ALONE)).astype(int)
    if hasattr(X, "toarray"):
        return list(X[some].toarray().astype(np.float32))
    rows = X.iloc[some]
    if all(kind.kind == "f" for kind in rows.dtypes):
        return list(np.ascontiguousarray(rows.to_numpy(dtype=np.float32)))
    return [list(row) for row in rows.itertuples(index=False)]


def _alone(predict: Callable[[Any], Any], rows: list[Any]) -> list[float]:
    """Return the µs of each of many calls, after some that warm up."""
    for row in rows[:200]:
        predict(row)
    times = []
    for _ in range(max(1, _ROWS_ALONE // len(rows))):
        for row in rows:
            started = time.perf_counter()
            predict(row)
            times.append(1e6 * (time.perf_counter() - started))
    return times


def _batch(predict: Callable[[Any], Any], X: Any) -> float:
    """Return µs a row, the median of several calls, of rows that are there as arrays."""
    rows = X
    if hasattr(X, "iloc") and all(kind.kind == "f" for kind in X.dtypes):
        rows = np.ascontiguousarray(X.to_numpy(dtype=np.float32))
        rows = np.tile(rows, (-(-_LEAST_BATCH // len(rows)), 1))
    seconds = []
    warnings.filterwarnings("ignore", "X does not have valid feature names")
    for _ in range(_TURNS):
        started = time.perf_counter()
        predict(rows)
        seconds.append(time.perf_counter() - started)
    return 1e6 * float(np.median(seconds)) / int(rows.shape[0])


def _print(result: dict[str, Any]) -> None:
    lines = [
        ("one row, p50", f"{result['p50_microseconds']:.2f} µs"),
        ("one row, p99", f"{result['p99_microseconds']:.2f} µs"),
        ("in batch", f"{result['batch_microseconds_a_row']:.3f} µs a row"),
        ("model file", f"{result['bytes']:,} bytes"),
        ("accuracy", f"{100 * result['accuracy']:.2f} % of {result['rows']:,} rows"),
    ]
    print_table([], lines)

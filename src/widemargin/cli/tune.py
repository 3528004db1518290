"""``widemargin tune``: a machine that chooses its own settings by cross-validation."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from widemargin.cli._data import DataOptions, data_options, read_data, show_columns
from widemargin.cli._machines import (
    parsed_parameters,
    seed_option,
    telling,
    with_parameters,
)
from widemargin.cli._models import describe, save_model
from widemargin.cli._output import check_writable, json_option, note, print_table, show


@click.command(
    epilog="""\b
Examples:
  widemargin tune flowers.csv --target species -o flowers.model
  widemargin tune flowers.csv --target species --max-basis 50 --minutes 2
  widemargin tune films.csv --target drama,comedy,war --json"""
)
@click.argument("data")
@click.option("-o", "--output", metavar="MODEL", help="Model file; none is written unless given.")
@click.option(
    "--max-basis", type=click.IntRange(1), metavar="N", help="Vectors; chosen if not given."
)
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Time limit.")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="Of the search.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Processes; -1 is all cores.")
@seed_option
@data_options()
@json_option
def command(
    data: str,
    output: str | None,
    max_basis: int | None,
    minutes: float | None,
    params: tuple[str, ...],
    jobs: int,
    seed: int,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Choose the number of vectors and all other settings for DATA by cross-validation."""
    import widemargin
    from widemargin.datasets import pipeline_for

    if output is not None:
        check_writable(output)
    table = read_data(data, options)
    show_columns(table)
    search_class = (
        widemargin.SparseKernelMultiLabelClassifierCV
        if table.is_multilabel
        else widemargin.SparseKernelClassifierCV
    )
    given: dict[str, Any] = {"random_state": seed, "n_jobs": jobs, **parsed_parameters(params)}
    if max_basis is not None:
        given["max_basis"] = max_basis
    if minutes is not None:
        given["max_seconds"] = 60 * minutes
    search = with_parameters(search_class(), given)
    model = pipeline_for(table.kinds, search, table.X)
    started = time.perf_counter()
    with telling(search, "Searching"):
        model.fit(table.X, table.y)
    result: dict[str, Any] = {
        "machine": type(search).__name__,
        "best_score": search.best_score_,
        "best": {name: str(value) for name, value in search.best_params_.items()},
        "seconds": time.perf_counter() - started,
        "trials": _trials(search.cv_results_),
    }
    if output is not None:
        facts = {
            "data": Path(table.path).name,
            "n_rows": len(table),
            "target": list(table.target),
            "label_names": None if table.label_names is None else list(table.label_names),
            "cross_validated_score": float(search.best_score_),
        }
        save_model(model, output, facts)
        note(f"Written: {output}")
        result |= {"model": output, **describe(model, output)}
    show(result, as_json, lambda: _print(result))


def _trials(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was tried: one dict a candidate."""
    wanted = ["stage", "param_metric", "param_C", "param_width", "param_max_basis"]
    wanted += ["mean_test_score", "std_test_score", "mean_fit_time"]
    heads = [name for name in wanted if name in results]
    columns = [list(results[name]) for name in heads]
    return [dict(zip(heads, line, strict=True)) for line in zip(*columns, strict=True)]


def _print(result: dict[str, Any]) -> None:
    trials = result["trials"]
    heads = [name.removeprefix("param_").replace("_", " ") for name in trials[0]]
    print_table(heads, [tuple(trial.values()) for trial in trials], "What was tried")
    rest = {name: value for name, value in result.items() if name != "trials"}
    show(rest, as_json=False)

"""``widemargin fit``: from a data file to a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from widemargin.cli._data import STANDARD_INPUT, DataOptions, data_options, read_data, show_columns
from widemargin.cli._machines import (
    default_machine,
    machine_options,
    named_machine,
    parsed_parameters,
    seed_option,
    telling,
    with_parameters,
)
from widemargin.cli._models import describe, save_model
from widemargin.cli._output import check_writable, json_option, note, show


@click.command(
    epilog="""\b
Examples:
  widemargin fit flowers.csv --target species --max-basis 20 -o flowers.model
  widemargin fit films.csv --target drama,comedy,war -o films.model
  widemargin fit letter.svm -o letter.model
  widemargin fit yeast-train.arff -o yeast.model          labels are those of yeast.xml
  widemargin fit flowers.csv --machine KernelClassifier --param C=10 --param gamma=0.5
  zcat rows.svm.gz | widemargin fit - -o rows.model"""
)
@click.argument("data")
@click.option("-o", "--output", metavar="MODEL", help="Model file; DATA.model unless given.")
@machine_options
@seed_option
@click.option(
    "--stream/--no-stream",
    default=None,
    help="Learn rows as they are read, in little memory; done unasked where DATA is too large.",
)
@click.option("--passes", type=click.IntRange(1), default=3, show_default=True, help="Of a stream.")
@data_options()
@json_option
def command(
    data: str,
    output: str | None,
    max_basis: int | None,
    machine: str | None,
    params: tuple[str, ...],
    seed: int,
    stream: bool | None,
    passes: int,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Learn from DATA and write a model file.

    DATA is CSV, svmlight, Parquet, Arrow or ARFF, maybe compressed; "-" is standard input. Texts
    and missing values are taken care of in the model itself.
    """
    from widemargin.cli._streaming import fit_stream, is_too_large

    target = output or f"{'model' if data == STANDARD_INPUT else Path(data).name}.model"
    check_writable(target)
    given = {"random_state": seed, **parsed_parameters(params)}
    if max_basis is not None:
        given["max_basis"] = max_basis
    started = time.perf_counter()
    if stream or (stream is None and data != STANDARD_INPUT and is_too_large(Path(data))):
        named = None if machine is None else named_machine(machine)
        model, facts = fit_stream(data, options, named, given, passes)
    else:
        model, facts = _fit(data, options, machine, given)
    seconds = time.perf_counter() - started
    save_model(model, target, facts)
    note(f"Written: {target}")
    known = {name: value for name, value in facts.items() if value not in (None, [])}
    show({"model": target, **describe(model, target), **known, "seconds": seconds}, as_json)


def _fit(
    data: str, options: DataOptions, machine: str | None, given: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Read a file, fit a machine to it, and return the model and what is known of it."""
    from widemargin.datasets import pipeline_for

    table = read_data(data, options)
    show_columns(table)
    chosen = named_machine(machine) if machine else default_machine(table, given.get("max_basis"))
    if "random_state" not in chosen.get_params(deep=False):
        del given["random_state"]
    chosen = with_parameters(chosen, given)
    model = pipeline_for(table.kinds, chosen, table.X)
    with telling(chosen, f"Fitting {type(chosen).__name__}"):
        model.fit(table.X, table.y)
    facts = {
        "data": Path(table.path).name,
        "n_rows": len(table),
        "target": list(table.target),
        "label_names": None if table.label_names is None else list(table.label_names),
        "training_score": float(model.score(table.X, table.y)),
    }
    return model, facts

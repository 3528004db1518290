"""``widemargin report``: a page that shows a machine, and runs it."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from widemargin.cli._data import DataOptions, data_options, read_data, show_columns
from widemargin.cli._machines import (
    default_machine,
    load_model,
    machine_options,
    named_machine,
    parsed_parameters,
    seed_option,
    telling,
    with_parameters,
)
from widemargin.cli._models import facts_of
from widemargin.cli._output import check_writable, json_option, note, progress, show
from widemargin.cli.evaluate import read_known

if TYPE_CHECKING:
    from widemargin.report import Comparison

_KEPT_ASIDE = 0.25  # of the rows, where a machine is fitted


@click.command(
    epilog="""\b
Examples:
  widemargin report flowers.csv --target species -o flowers.html
  widemargin report flowers.csv --target species --max-basis 20 --minutes 0 -o flowers.html
  widemargin report test.csv --model flowers.model -o flowers.html
  widemargin report digits.svm --image 8x8 --comparison digits.json -o digits.html"""
)
@click.argument("data")
@click.option("-o", "--output", metavar="PAGE", help="HTML file; DATA.html unless given.")
@click.option("--model", metavar="MODEL", help="Report this one; DATA should be new to it.")
@machine_options
@click.option(
    "--minutes",
    type=click.FloatRange(min=0),
    default=2.0,
    show_default=True,
    help="Time for the comparison with other machines; 0 for none.",
)
@click.option("--comparison", metavar="FILE", help="Show what widemargin compare has written.")
@click.option("--image", metavar="HxW", help="Rows are images of this height and width.")
@seed_option
@data_options()
@json_option
def command(
    data: str,
    output: str | None,
    model: str | None,
    max_basis: int | None,
    machine: str | None,
    params: tuple[str, ...],
    minutes: float,
    comparison: str | None,
    image: str | None,
    seed: int,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Write a page about a machine for DATA, which runs in the page itself.

    A quarter of the rows is kept aside and the machine fitted to the others, unless --model names
    one. The page is one file, needs no network, and shows accuracy against time beside other
    machines, errors, vectors, speed and calibration.
    """
    from widemargin.report import Comparison, Source, write_report

    if model is not None and (machine or params or max_basis):
        raise click.UsageError(
            "--model is fitted: --machine, --max-basis and --param are for fits."
        )
    path = output or f"{'report' if data == '-' else os.path.basename(data)}.html"
    check_writable(path)
    shape = _image_shape(image)
    known = None if comparison is None else Comparison.load(comparison)
    if model is not None:
        fitted, facts = load_model(model), facts_of(model)
        table = read_known(fitted, facts, data, options)
        X, y = table.X, table.y
        words = (
            f"The machine is {os.path.basename(model)}. Where it has learned from these rows, "
            "figures flatter it."
        )
    else:
        # svmlight rows end with the last pixel that is not zero anywhere.
        n_pixels = None if shape is None else shape[0] * shape[1]
        table = read_data(data, options, n_features=n_pixels)
        show_columns(table)
        given = {"random_state": seed, **parsed_parameters(params)}
        if max_basis is not None:
            given["max_basis"] = max_basis
        fitted, X, y, words = _fitted(table, machine, given, seed)
    if known is None and minutes > 0:
        known = _compared(table, data, minutes, seed)
    again = shlex.join(["widemargin", *sys.argv[1:]])
    source = Source(os.path.basename(data), ", ".join(table.target), [again], [words])
    started = time.perf_counter()
    size = write_report(
        path,
        fitted,
        X,
        y,
        comparison=known,
        label_names=table.label_names,
        image_shape=shape,
        source=source,
    )
    note(f"Written: {path}, {size:,} bytes, in {time.perf_counter() - started:.1f} s")
    if as_json:
        show({"output": path, "bytes": size, "rows": len(y) if y.ndim == 1 else y.shape[0]}, True)


def _image_shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)[xX](\d+)", text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not like 28x28.", param_hint="--image")
    return int(found[1]), int(found[2])


def _fitted(
    table: Any, machine: str | None, given: dict[str, Any], seed: int
) -> tuple[Any, Any, Any, str]:
    """Fit a machine to most rows; return it, the other rows with their targets, and words."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    from widemargin.datasets import pipeline_for
    from widemargin.report.rows import take

    places = np.arange(len(table))
    classes = table.y if getattr(table.y, "ndim", 2) == 1 else None
    rare = classes is not None and np.unique(classes, return_counts=True)[1].min() < 4
    train, test = train_test_split(
        places, test_size=_KEPT_ASIDE, random_state=seed, stratify=None if rare else classes
    )
    chosen = named_machine(machine) if machine else default_machine(table, given.get("max_basis"))
    if "random_state" not in chosen.get_params(deep=False):
        given = {name: value for name, value in given.items() if name != "random_state"}
    chosen = with_parameters(chosen, given)
    model = pipeline_for(table.kinds, chosen, table.X)
    with telling(chosen, f"Fitting {type(chosen).__name__}"):
        model.fit(take(table.X, train), table.y[train])
    words = f"It has learned from {len(train):,} rows; {len(test):,} others were kept aside."
    return model, take(table.X, test), table.y[test], words


def _compared(table: Any, data: str, minutes: float, seed: int) -> Comparison:
    from widemargin.report import compare

    with progress("Comparing", 1.0) as tell:
        return compare(
            table.X,
            table.y,
            minutes=minutes,
            n_splits=3,
            random_state=seed,
            data=os.path.basename(data),
            target=", ".join(table.target),
            tell=tell,
        )

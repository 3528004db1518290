"""``widemargin card``: a README for the Hugging Face Hub."""

from __future__ import annotations

import os

import click

from widemargin.cli._data import DataOptions, data_options
from widemargin.cli._machines import load_model
from widemargin.cli._models import facts_of
from widemargin.cli._output import check_writable, json_option, note, show
from widemargin.cli.evaluate import read_known


@click.command(
    epilog="""\b
Examples:
  widemargin card flowers.model --data test.csv --license mit -o README.md
  widemargin card flowers.model > README.md"""
)
@click.argument("model")
@click.option("--data", metavar="FILE", help="Rows that were not learned from, for the figures.")
@click.option("--name", help="Title of the card; the name of the file unless given.")
@click.option(
    "--license", default="unknown", show_default=True, help="As the Hub writes it: mit, other, ..."
)
@click.option("--output", "-o", metavar="FILE", help="Where to; standard output unless given.")
@data_options()
@json_option
def command(
    model: str,
    data: str | None,
    name: str | None,
    license: str,
    output: str | None,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Write a model card of MODEL: what it is for, its data, figures, limits and sizes."""
    from widemargin._system.files import replace_file
    from widemargin.report import card

    if output is not None:
        check_writable(output)
    machine, facts = load_model(model), facts_of(model)
    table = None if data is None else read_known(machine, facts, data, options)
    text = card(
        machine,
        None if table is None else table.X,
        None if table is None else table.y,
        name=name or os.path.splitext(os.path.basename(model))[0],
        license=license,
        file=model,
        data="" if data is None else os.path.basename(data),
        notes=facts,
    )
    if output is not None:
        replace_file(output, [text.encode()])
        note(f"Written: {output}")
    if as_json or output is None:
        show({"model": model, "card": text}, as_json, lambda: click.echo(text, nl=False))

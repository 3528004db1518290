"""``widemargin compare``: our machines and what one would take instead, on one's own data."""

from __future__ import annotations

import math
import os
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import click

from widemargin.cli._data import DataOptions, data_options, read_data, show_columns
from widemargin.cli._machines import seed_option
from widemargin.cli._output import check_writable, json_option, note, print_table, progress, show

if TYPE_CHECKING:
    from widemargin.report import Candidate, Comparison

_METRICS = ("accuracy", "balanced accuracy", "macro F1", "micro F1", "labels right")


@click.command(
    epilog="""\b
Examples:
  widemargin compare flowers.csv --target species --minutes 2
  widemargin compare letter.scale --output letter.json
  widemargin compare flowers.csv --target species --only SVC --only "30 learned vectors"
  widemargin compare flowers.csv --target species --json | jq .recommendation"""
)
@click.argument("data")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0, min_open=True),
    default=5.0,
    show_default=True,
    help="Time limit. What would take longer learns from fewer rows or is left out, and is told.",
)
@click.option(
    "--metric",
    type=click.Choice(_METRICS),
    help="What counts; accuracy, or of label sets the share of labels that are right.",
)
@click.option("--splits", type=click.IntRange(2), default=5, show_default=True, help="Folds.")
@click.option("--only", metavar="NAME", multiple=True, help="Run this one; may be repeated.")
@seed_option
@click.option("--jobs", type=int, default=-1, show_default=True, help="Cores of fits; -1 for all.")
@click.option("--output", "-o", metavar="FILE", help="Write a JSON file, which report can show.")
@data_options()
@json_option
def command(
    data: str,
    minutes: float,
    metric: str | None,
    splits: int,
    only: tuple[str, ...],
    seed: int,
    jobs: int,
    output: str | None,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Compare machines on DATA: how good, how fast, how large, and which one to take.

    Our machines at several sizes run beside SVC, linear models, forests, boosted trees and a
    network, each with rows prepared as suits it, on the same splits. A star marks those that no
    other is as good and as fast as, rows in a batch; a circle, rows one by one.
    """
    from widemargin.report import compare

    started = time.monotonic()
    if output is not None:
        check_writable(output)
    table = read_data(data, options)
    show_columns(table)
    # Reading belongs to the time that was allowed.
    left = minutes - (time.monotonic() - started) / 60
    with progress("Comparing", 1.0) as tell:
        found = compare(
            table.X,
            table.y,
            minutes=max(left, 0.05),
            metric=metric,
            n_splits=splits,
            names=only or None,
            n_jobs=jobs,
            random_state=seed,
            data=os.path.basename(data),
            target=", ".join(table.target),
            tell=tell,
        )
    if output is not None:
        found.save(output)
    show(found.to_dict(), as_json, lambda: _print(found))
    if output is not None:
        note(f"Written to {output}; widemargin report shows it as a page.")


def _print(found: Comparison) -> None:
    heads = ("", "", f"{found.metric}, %", "± ", "behind", "µs a row", "alone, µs", "kB", "fit, s")
    rows = [_cells(row) for row in found.candidates if row.measured]
    title = (
        f"{found.data}: {found.n_rows:,} rows, {found.n_outputs} "
        f"{'labels' if found.label_sets else 'classes'}, {found.n_splits} splits, "
        f"{found.seconds:.0f} s"
    )
    print_table(heads, rows, title)
    click.echo()
    for words in found.recommendation:
        click.echo(_folded(words))
    click.echo()
    for row in found.candidates:
        if row.note:
            click.echo(_folded(f"{row.name}: {row.note}."))
    for words in found.notes:
        click.echo(_folded(words))


def _cells(row: Candidate) -> tuple[str, ...]:
    marks = ("*" if row.on_frontier else " ") + ("o" if row.on_frontier_alone else " ")
    name = row.name
    if row.n_basis is not None and not name[:1].isdigit():
        name += f" ({row.n_basis:,})"
    return (
        marks,
        name,
        f"{100 * row.mean:.2f}",
        _number(100 * row.spread, ".2f"),
        _number(abs(100 * row.difference), ".2f"),
        f"{row.batch_us:.3g}",
        f"{row.alone_us:.3g}",
        f"{row.model_bytes / 1000:,.1f}",
        f"{row.fit_seconds:.2f}",
    )


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else format(value, form)


def _folded(words: str) -> str:
    """Break lines for people; for a pipe, a line stays a line."""
    return textwrap.fill(words, 100, subsequent_indent="  ") if sys.stdout.isatty() else words

"""``widemargin datasets``: which data sets there are, and getting them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from widemargin.cli._output import check_writable, json_option, note, print_table, progress, show

_EXAMPLES = """\b
Examples:
  widemargin datasets
  widemargin datasets get letter.scale
  widemargin datasets write yeast --part train -o yeast.svm

Sets are looked for in the folder that WIDEMARGIN_DATA names, then in the cache; "get" downloads
them into the cache by scikit-learn's fetchers."""


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from widemargin.datasets import names

    return [name for name in names() if name.startswith(incomplete)]


@click.group(invoke_without_command=True, epilog=_EXAMPLES)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List data sets, get one, or write one to a file."""
    if ctx.invoked_subcommand is not None:
        return
    from widemargin.datasets import names
    from widemargin.datasets.data_folders import find_stored
    from widemargin.datasets.sets import known_sets

    known = known_sets()
    listed: list[dict[str, Any]] = []
    for name in names():
        entry = known.get(name)
        is_here = find_stored(name) is not None
        can_be_fetched = entry is not None and entry.can_be_fetched
        listed.append(
            {
                "name": name,
                "train_rows": None if entry is None else entry.train_rows,
                "test_rows": None if entry is None else entry.test_rows,
                "features": None if entry is None else entry.features,
                "outputs": None if entry is None else f"{entry.outputs} {entry.kind}",
                "where": "here" if is_here else "to download" if can_be_fetched else "not here",
                "licence": None if entry is None else entry.licence,
            }
        )
    heads = ("name", "train", "test", "features", "", "where", "licence")
    rows = [tuple(each.values()) for each in listed]
    show({"datasets": listed}, as_json, lambda: print_table(heads, rows))


@command.command("get")
@click.argument("name", shell_complete=_complete)
@json_option
def get(name: str, as_json: bool) -> None:
    """Download NAME into the cache, unless it is here."""
    from widemargin.datasets import load

    with progress(f"Getting {name}") as tell:
        tell(0, "")
        found = load(name)
    result = {
        "name": name,
        "train_rows": found.X_train.shape[0],
        "test_rows": found.X_test.shape[0],
        "features": found.X_train.shape[1],
        "split": found.split,
        "licence": found.licence,
        "citation": found.citation,
        "source": found.source,
    }
    show(result, as_json)


@command.command("write")
@click.argument("name", shell_complete=_complete)
@click.option("--part", type=click.Choice(["train", "test"]), default="train", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="NAME.PART.svm unless given.")
@json_option
def write(name: str, part: str, output: str | None, as_json: bool) -> None:
    """Write a part of NAME as svmlight, which all commands read."""
    from io import BytesIO

    from sklearn.datasets import dump_svmlight_file

    from widemargin._system.files import replace_file
    from widemargin.datasets import load

    path = output or f"{name}.{part}.svm"
    check_writable(path)
    found = load(name)
    X, y = found[f"X_{part}"], found[f"y_{part}"]
    written = BytesIO()
    dump_svmlight_file(X, y, written, zero_based=False, multilabel=y.ndim == 2)
    replace_file(path, [written.getbuffer()])
    note(f"Written: {Path(path)}, {X.shape[0]:,} rows")
    if as_json:
        result = {"output": path, "rows": X.shape[0], "bytes": os.path.getsize(path)}
        show(result, as_json)

"""What commands print: results on standard output, all else on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Number
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

Command = TypeVar("Command", bound=Callable[..., Any])
_PAUSE = 5.0  # seconds between lines that tell how far it has come, where there is no terminal


def json_option(command: Command) -> Command:
    """Give a command the flag ``--json``, as the argument ``as_json``."""
    help = "Print the result as JSON, for machines."
    return click.option("--json", "as_json", is_flag=True, help=help)(command)


def note(message: str) -> None:
    """Tell the user something, which is no result."""
    click.echo(message, err=True)


def check_writable(path: str) -> None:
    """Require that a file can be written, before the work that is to be written is done."""
    target = Path(path)
    folder = target.resolve().parent
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file in it.")
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise PermissionError(f"{path} cannot be written: that is not permitted.")


def show(values: dict[str, Any], as_json: bool, text: Callable[[], None] | None = None) -> None:
    """Print a result: as JSON, or by what prints it for people, or as names and values.

    Parameters
    ----------
    values : dict
        The result. NumPy's numbers and arrays may be in it.
    as_json : bool
        Whether ``--json`` was given.
    text : callable or None
        Prints the result for people.
    """
    if as_json:
        # No NaN: JSON has none, and readers refuse it.
        click.echo(json.dumps(_plain(values), ensure_ascii=False, allow_nan=False))
    elif text is not None:
        text()
    else:
        print_table([], [(name.replace("_", " "), _shown(each)) for name, each in values.items()])


def print_table(heads: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """Print a table on standard output; numbers are to the right."""
    from rich.console import Console
    from rich.table import Table

    rows = [tuple(row) for row in rows]
    table = Table(title=title or None, title_justify="left", show_header=bool(heads), box=None)
    for place in range(len(rows[0]) if rows else len(heads)):
        numbers = bool(rows) and all(isinstance(row[place], Number) for row in rows)
        head = heads[place] if heads else ""
        table.add_column(head, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_shown(value) for value in row))
    # Into a file or a pipe, lines are as long as they are.
    width = None if sys.stdout.isatty() else 400
    Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False).print(table)


@contextmanager
def progress(what: str, total: float | None = None) -> Iterator[Callable[..., None]]:
    """Tell on standard error how far a task has come: a bar on a terminal, else lines.

    Yields a function of how much is done, in the unit of ``total``, and of words that go with it.
    """
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TimeElapsedColumn

        columns = "{task.description}", BarColumn(), TimeElapsedColumn(), "{task.fields[words]}"
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(what, total=total, words="")

            def draw(done: float, words: str = "") -> None:
                bar.update(task, completed=done, words=words)

            yield draw
        return
    told = time.monotonic()

    def tell(done: float, words: str = "") -> None:
        nonlocal told
        if time.monotonic() - told >= _PAUSE:
            told = time.monotonic()
            share = f" {100 * done / total:.0f} %" if total else ""
            note(f"{what}:{share} {words}".rstrip())

    yield tell


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (bool, str)) or value is None:
        return "" if value is None else str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(str(each) for each in value)
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return str(value)


def _plain(value: Any) -> Any:
    """Return a value of types that JSON has."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

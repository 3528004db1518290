"""Data that commands are given: the options that say what a file is, and reading it."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from widemargin.cli._output import Command, note

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class DataOptions:
    """What the options of a command say of its file."""

    target: str | None = None
    format: str = "auto"
    header: bool = True
    drop: tuple[str, ...] = ()
    text: tuple[str, ...] = ()
    zero_based: bool = False
    skip_bad_rows: bool = False

    def targets(self, names: Callable[[], list[str]] | None = None) -> Any:
        """Return the column of ``--target``, or the list of those that it names with commas."""
        if self.target is None or "," not in self.target:
            return self.target
        if names is not None and self.target in names():  # a name that has a comma itself
            return self.target
        return [name.strip() for name in self.target.split(",") if name.strip()]


def data_options(*, with_target: bool = True) -> Callable[[Command], Command]:
    """Give a command the options that say what a data file is, as the argument ``options``."""
    given = [
        click.option(
            "--format",
            type=click.Choice(["auto", "csv", "svmlight", "parquet", "arrow", "arff"]),
            default="auto",
            help="What DATA is; found out unless given.",
        ),
        click.option("--no-header", is_flag=True, help="The first line of CSV has no names."),
        click.option("--zero-based", is_flag=True, help="Indices of svmlight begin with 0."),
        click.option("--skip-bad-rows", is_flag=True, help="Leave out lines that cannot be read."),
    ]
    if with_target:
        given = [
            click.option(
                "--target",
                metavar="COLUMN",
                help="What is learned: a column, or several with commas, each a label of 0 and 1.",
            ),
            click.option("--drop", metavar="COLUMN", multiple=True, help="Leave a column out."),
            click.option("--text", metavar="COLUMN", multiple=True, help="Take numbers as texts."),
            *given,
        ]

    def decorate(command: Command) -> Command:
        def gathered(**values: Any) -> Any:
            options = DataOptions(
                target=values.pop("target", None),
                format=values.pop("format"),
                header=not values.pop("no_header"),
                drop=values.pop("drop", ()),
                text=values.pop("text", ()),
                zero_based=values.pop("zero_based"),
                skip_bad_rows=values.pop("skip_bad_rows"),
            )
            return command(options=options, **values)

        gathered.__doc__, gathered.__name__ = command.__doc__, command.__name__
        wrapped: Any = gathered
        wrapped.__click_params__ = getattr(command, "__click_params__", [])
        for option in reversed(given):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def local_file(data: str) -> Path:
    """Return a file with the data; what comes from standard input is copied into one."""
    if data != STANDARD_INPUT:
        path = Path(data)
        if not path.exists():
            raise FileNotFoundError(f"There is no {path}.")
        return path
    folder = tempfile.mkdtemp(prefix="widemargin-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = Path(folder) / "standard input"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def read_data(
    data: str | Path,
    options: DataOptions,
    *,
    columns: Mapping[str, str] | None = None,
    target: Any = None,
    n_features: int | None = None,
) -> Any:
    """Read a file into a :class:`widemargin.datasets.Table`, and tell what was chosen.

    Parameters
    ----------
    data : str or Path
        The file, or "-" for standard input.
    options : DataOptions
    columns : mapping or None
        Columns that a model asks for.
    target : False or None
        False: nothing is learned from the file.
    n_features : int or None
        Of a model that takes svmlight rows.
    """
    from widemargin.datasets import read_table

    path = local_file(str(data))
    table = read_table(
        path,
        options.targets(lambda: _names(path, options)) if target is None else target,
        format=options.format,
        columns=columns,
        drop=options.drop,
        text=options.text,
        header=options.header,
        zero_based=options.zero_based,
        n_features=n_features,
        on_error="skip" if options.skip_bad_rows else "raise",
    )
    for line in table.notes:
        note(line)
    return table


def _names(path: Path, options: DataOptions) -> list[str]:
    """Return the names of the columns of CSV; of other files, none."""
    from widemargin.datasets.csv_files import CsvFile
    from widemargin.datasets.formats import format_of

    found = format_of(path) if options.format == "auto" else options.format
    return CsvFile(path, header=options.header).names if found == "csv" else []


def show_columns(table: Any) -> None:
    """Tell what the columns of a table were taken for, on standard error."""
    if not table.kinds:
        shape = f"{table.X.shape[0]:,} rows of {table.X.shape[1]:,} features"
        note(f"{table.path}: {shape}")
        return
    numbers = [name for name, kind in table.kinds.items() if kind == "number"]
    texts = {name: table.X[name].nunique() for name, k in table.kinds.items() if k == "text"}
    note(f"{table.path}: {len(table):,} rows")
    if numbers:
        note(f"  {len(numbers)} columns of numbers: {_some(numbers)}")
    if texts:
        counted = [f"{name} ({count} values)" for name, count in texts.items()]
        note(f"  {len(texts)} columns of texts: {_some(counted)}")


def _some(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")

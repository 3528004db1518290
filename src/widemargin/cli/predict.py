"""``widemargin predict``: what a model says of the rows of a file of any size."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from widemargin.cli._data import DataOptions, data_options, local_file
from widemargin.cli._machines import load_model
from widemargin.cli._models import facts_of
from widemargin.cli._output import check_writable, json_option, note, progress, show

_KINDS = {"scores": "decision_function", "probabilities": "predict_proba"}


@click.command(
    epilog="""\b
Examples:
  widemargin predict flowers.model new.csv -o answers.csv
  widemargin predict flowers.model new.csv --probabilities
  widemargin predict letter.model letter.t -o letter.out
  cut -f2- big.tsv | widemargin predict big.model - > answers.csv"""
)
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", metavar="OUT", help="CSV of answers; standard output unless given.")
@click.option("--scores", "beside", flag_value="scores", help="Scores of the classes, too.")
@click.option("--probabilities", "beside", flag_value="probabilities", help="Probabilities, too.")
@data_options(with_target=False)
@json_option
def command(
    model: str,
    data: str,
    output: str | None,
    beside: str | None,
    options: DataOptions,
    as_json: bool,
) -> None:
    """Write what MODEL says of each row of DATA, a line a row.

    Rows are read in chunks, so that DATA may be larger than memory. A table needs the columns that
    the model was fitted to, in any order; others are not looked at. Answers to svmlight rows have
    no line of names, as those of svm-predict.
    """
    from widemargin._system.files import replace_file
    from widemargin.datasets.chunks import ChunkReader
    from widemargin.datasets.encoding import kinds_of
    from widemargin.datasets.formats import format_of

    if output is not None:
        check_writable(output)
    machine = load_model(model)
    kind = _KINDS.get(beside or "", "predict")
    if kind != "predict" and not hasattr(machine, kind):
        raise ValueError(
            f"{model} has no {beside}. A machine with loss='logistic' has: widemargin fit "
            "--param loss=logistic."
        )
    path = local_file(data)
    found = format_of(path) if options.format == "auto" else options.format
    reader = ChunkReader(
        path,
        kinds_of(machine),
        int(machine.n_features_in_),
        found,
        options.header,
        options.zero_based,
        options.skip_bad_rows,
    )
    names = list(facts_of(model).get("label_names") or ())
    names = names or _label_names(machine)
    if as_json and output is None:
        raise click.UsageError("--json needs -o OUT: answers have standard output otherwise.")
    started, counts = time.perf_counter(), [0]
    pieces = _pieces(machine, reader, names, kind, found != "svmlight", counts)
    if output is None:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    replace_file(output, pieces)
    seconds = time.perf_counter() - started
    rate = counts[0] / max(seconds, 1e-9)
    note(f"{counts[0]:,} rows in {seconds:.1f} s, {rate:,.0f} rows/s. Written: {output}")
    if as_json:
        show({"output": output, "rows": counts[0], "seconds": seconds}, as_json)


def _label_names(machine: Any) -> list[str]:
    """Return numbers for labels whose names no one has written down; none for classes."""
    from widemargin.datasets.encoding import machine_of

    last = machine_of(machine)
    if not last.readout_.tells_labels:
        return []
    return [f"label {number}" for number in range(len(last.classes_))]


def _pieces(
    machine: Any, reader: Any, names: list[str], kind: str, named: bool, counts: list[int]
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of the answers, and count rows."""
    from io import BytesIO

    from pyarrow import csv

    from widemargin.cli._predicting import answers

    # pyarrow quotes all texts or none.
    words = [str(each) for each in getattr(machine, "classes_", ())]
    quoting = "needed" if any(set(word) & set(',"\r\n') for word in words) else "none"
    options = csv.WriteOptions(include_header=False, quoting_style=quoting)
    size = Path(reader.path).stat().st_size
    with progress("Predicting") as tell:
        for number, table in enumerate(answers(machine, reader, names, kind)):
            counts[0] += table.num_rows
            tell(0, f"{counts[0]:,} rows of {size / 1e6:,.0f} MB")
            written = BytesIO()
            if named and number == 0:
                yield _head(table.column_names)
            csv.write_csv(table, written, options)
            yield written.getbuffer()


def _head(names: list[str]) -> bytes:
    """Return the line of names; those that need quotes have them."""
    from csv import writer
    from io import StringIO

    line = StringIO()
    writer(line, lineterminator="\n").writerow(names)
    return line.getvalue().encode()

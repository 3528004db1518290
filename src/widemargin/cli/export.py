"""``widemargin export``: a model for where there is no Python."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from widemargin.cli._machines import load_model
from widemargin.cli._output import check_writable, json_option, note, show

_SUFFIXES = {"onnx": ".onnx", "c": ".h", "wasm": ".wasm"}


@click.command(
    epilog="""\b
Examples:
  widemargin export flowers.model --format c -o flowers.h
  widemargin export flowers.model --format onnx -o flowers.onnx
  widemargin export flowers.model --format wasm -o flowers.wasm"""
)
@click.argument("model")
@click.option("--format", type=click.Choice(list(_SUFFIXES)), required=True, help="What to write.")
@click.option("-o", "--output", metavar="FILE", help="MODEL with another ending unless given.")
@click.option("--name", help="Of the functions in C; that of the file unless given.")
@json_option
def command(model: str, format: str, output: str | None, name: str | None, as_json: bool) -> None:
    """Write MODEL as ONNX, as one C99 file, or as WebAssembly."""
    from widemargin import export

    machine = load_model(model)
    path = output or str(Path(model).with_suffix(_SUFFIXES[format]))
    check_writable(path)
    arguments: dict[str, Any] = {}
    if name is not None:
        if format != "c":
            raise click.UsageError("--name is that of functions in C.")
        arguments["name"] = name
    if format == "onnx":
        export.to_onnx(machine, path)
    elif format == "c":
        export.to_c(machine, path, **arguments)
    else:
        export.to_wasm(machine, path)
    size = os.path.getsize(path)
    note(f"Written: {path}, {size:,} bytes")
    if as_json:
        show({"output": path, "format": format, "bytes": size}, as_json)

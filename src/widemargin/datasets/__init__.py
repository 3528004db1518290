"""Data sets by name, tables from files, and streams of those that are larger than memory."""

from widemargin.datasets.blocks import StreamError
from widemargin.datasets.encoding import pipeline_for
from widemargin.datasets.folders import save_rows
from widemargin.datasets.opening import stream
from widemargin.datasets.reading import read_table
from widemargin.datasets.sets import load, names
from widemargin.datasets.streams import RowStream

__all__ = [
    "RowStream",
    "StreamError",
    "load",
    "names",
    "pipeline_for",
    "read_table",
    "save_rows",
    "stream",
]

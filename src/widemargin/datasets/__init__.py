"""Rows from files: streams of data sets that are larger than memory."""

from widemargin.datasets.blocks import StreamError
from widemargin.datasets.folders import save_rows
from widemargin.datasets.opening import stream
from widemargin.datasets.streams import RowStream

__all__ = ["RowStream", "StreamError", "save_rows", "stream"]

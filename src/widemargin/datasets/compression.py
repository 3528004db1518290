"""Files as plain bytes, compressed or not; which it is, their first bytes tell."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from pathlib import Path
from typing import BinaryIO, cast

from widemargin.datasets.blocks import needed

_MAGIC = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}

_PIECE = 1 << 20  # bytes

#: What reading damaged or cut compressed data raises.
DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


def compression_of(path: Path) -> str | None:
    """Return how a file is compressed, None if it is not."""
    with path.open("rb") as file:
        first = file.read(10)
    for magic, name in _MAGIC.items():
        if first.startswith(magic) and (name != "bz2" or first[4:10] == b"1AY&SY"):
            return name
    return None


def open_bytes(path: Path, compression: str | None) -> BinaryIO:
    """Open a file to read its bytes, uncompressed."""
    if compression == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if compression == "bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    if compression == "xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    if compression == "zstd":
        arrow = needed("pyarrow", f"Reading {path.name}, which is compressed by zstd,")
        return cast(BinaryIO, io.BufferedReader(arrow.input_stream(str(path), compression="zstd")))
    return path.open("rb")


def skip_bytes(file: BinaryIO, count: int) -> None:
    """Go so many bytes on from the beginning; compressed ones are read for that."""
    if file.seekable():
        file.seek(count)
        return
    while count > 0 and (read := len(file.read(min(count, _PIECE)))):
        count -= read

"""Which format a file has: what its first bytes say, else its name, else its first line."""

from __future__ import annotations

import re
from pathlib import Path

from widemargin.datasets.blocks import StreamError
from widemargin.datasets.compression import DAMAGE, compression_of, open_bytes

COMPRESSED = {".gz", ".bz2", ".xz", ".zst", ".zstd"}
_BY_NAME = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arff": "arff",
}
_BY_FIRST_BYTES = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_LOOKED_AT = 1 << 16  # bytes
# A label or several, none too; then an index with its value, or nothing.
_SVMLIGHT = re.compile(rb"^\s*([-+\d.eE]+(,[-+\d.eE]+)*)?\s*((^|\s)\d+:\S+|#|$)")


def format_by_name(path: Path) -> str | None:
    """Return the format that the name of a file or folder tells, None if it tells none."""
    if path.is_dir():
        return "rows"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return _BY_NAME.get(suffixes[-1] if suffixes else "")


def format_of(path: Path) -> str:
    """Return the format of a file; what cannot be data is an error that says what it is."""
    if path.is_dir():
        return "rows"
    try:
        with open_bytes(path, compression_of(path)) as file:
            first = file.read(_LOOKED_AT)
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise StreamError(f"{path}: the compressed data are damaged ({error}).") from error
    if not first.strip():
        raise StreamError(f"{path} has no rows.")
    if first[8:10] == b'{"' and b'"widemargin"' in first:
        raise StreamError(f"{path} is a model file, and data are asked for here.")
    for magic, name in {
        b"PAR1": "parquet",
        b"ARROW1": "arrow",
        b"\xff\xff\xff\xff": "arrow",
    }.items():
        if first.startswith(magic):
            return name
    named = format_by_name(path)
    if named is not None:
        return named
    line = first.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    if line.lower().startswith((b"@relation", b"%")):
        return "arff"
    return "svmlight" if _SVMLIGHT.match(line) else "csv"


def has_label_sets(path: Path) -> bool:
    """Whether the first rows of svmlight have several labels, or none."""
    with open_bytes(path, compression_of(path)) as file:
        lines = file.readlines(_LOOKED_AT)
    labels = [line.split(maxsplit=1)[0] for line in lines if line.strip() and line[:1] != b"#"]
    return any(b"," in label or b":" in label for label in labels)

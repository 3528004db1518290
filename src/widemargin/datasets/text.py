"""Files of lines: parsed a piece at a time, and line by line only where a piece is bad.

A piece begins with a line and ends with one. Where it begins says where it ends, so that the number
of the byte is all that it takes to read it again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from widemargin.datasets.blocks import (
    Array,
    Block,
    LabelledRows,
    Place,
    Source,
    StreamError,
    joined,
)
from widemargin.datasets.compression import DAMAGE, compression_of, open_bytes, skip_bytes

_PIECE = 1 << 20  # bytes that are parsed together
_LONGEST = 1 << 26  # bytes of a line
_SHOWN = 60  # bytes of a bad line that an error shows

#: What parsers raise for text that they cannot take; pyarrow's own errors are among them.
_BAD_TEXT = (ValueError, TypeError, OverflowError)


class Parser(ABC):
    """What knows the format of lines."""

    n_features: int | None
    classes: Array | None

    def read_head(self, path: Path, compression: str | None) -> tuple[int, int]:
        """Read what is above the rows; return the bytes and the lines of it."""
        return 0, 0

    @abstractmethod
    def parse(self, text: bytes) -> LabelledRows:
        """Return the rows of lines; one of ``_BAD_TEXT`` if any is bad."""

    @abstractmethod
    def explain(self, line: bytes, error: Exception) -> str:
        """Say what is wrong with a single line, which was refused with this error."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""


class TextSource(Source):
    """Rows of a file of lines.

    Parameters
    ----------
    path : Path
    parser : Parser
    skips : bool
        Whether bad lines are left out and counted; else they are errors.
    """

    def __init__(self, path: Path, parser: Parser, *, skips: bool) -> None:
        self.path, self.parser, self._skips = path, parser, skips
        self._compression = compression_of(path)
        self._head_bytes, self._head_lines = parser.read_head(path, self._compression)

    @property
    def n_features(self) -> int:  # type: ignore[override]  # the parser's to know
        """Number of features."""
        assert self.parser.n_features is not None
        return self.parser.n_features

    @property
    def classes(self) -> Array | None:  # type: ignore[override]
        """The classes, where they are known."""
        return self.parser.classes

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""
        return {**self.parser.settings(), "skips": self._skips}

    def share(self, place: Place) -> float | None:
        """Return how much of the file is before a place; None where it is compressed."""
        return None if self._compression else place["byte"] / max(1, self.path.stat().st_size)

    def blocks(self, place: Place | None, size: int) -> Iterator[Block]:
        """Yield the rows of one piece of text after the other."""
        begin = place or {"byte": self._head_bytes, "line": 1 + self._head_lines}
        byte, line = begin["byte"], begin["line"]
        for text in self._pieces(byte, line):
            parts, skipped = self._parse(text, line)
            rows = [part for part in parts if len(part)]
            if rows or skipped:
                kept = joined(rows) if rows else joined(parts)
                yield Block(kept, {"byte": byte, "line": line}, skipped)
            byte += len(text)
            line += text.count(b"\n")

    def _pieces(self, byte: int, line: int) -> Iterator[bytes]:
        """Yield pieces of the text from a byte on, which begins this line."""
        try:
            with open_bytes(self.path, self._compression) as file:
                skip_bytes(file, byte)
                while text := _read_lines(file):
                    yield text
                    line += text.count(b"\n")
        except DAMAGE as error:
            if self._compression is None or isinstance(error, StreamError):
                raise
            raise StreamError(
                f"{self.path}, about line {line}: the {self._compression} data are damaged or cut "
                f"off in the middle ({error}). Fetch the file again."
            ) from error
        except _LineTooLongError as error:
            raise StreamError(
                f"{self.path}, about line {line}: a line of more than {_LONGEST >> 20} MB. Is it "
                "text? Name its format, as in widemargin.stream(path, format='parquet')."
            ) from error

    def _parse(self, text: bytes, line: int) -> tuple[list[LabelledRows], int]:
        """Return the rows of a piece that begins with this line, and how many lines were bad."""
        try:
            return [self.parser.parse(text)], 0
        except _BAD_TEXT as error:
            lines = text.splitlines(keepends=True) if b"\r" not in text else _lines(text)
            if len(lines) > 1:
                half = len(lines) // 2
                parts, skipped = self._parse(b"".join(lines[:half]), line)
                more, others = self._parse(b"".join(lines[half:]), line + half)
                return parts + more, skipped + others
            if self._skips:
                return [self.parser.parse(b"")], 1
            raise self._bad_line(text, line, error) from error

    def _bad_line(self, text: bytes, line: int, error: Exception) -> StreamError:
        reason = self.parser.explain(text, error)
        if not text.endswith(b"\n"):
            reason += " (the file ends with this line, and may have been cut off in the middle)"
        shown = text[:_SHOWN].decode("utf-8", "replace").rstrip()
        return StreamError(
            f"{self.path}, line {line}: {reason}. The line begins {shown!r}. Mend it, or leave "
            "such lines out by on_error='skip', which counts them."
        )

    def scan(self, most_bytes: int | None) -> bool:
        """Look through the text for its width, its classes and its rows; whether all was seen."""
        width, n_rows, seen = 0, 0, 0
        labels: set[Any] = set()
        self.parser.n_features, given = None, self.parser.classes
        line = 1 + self._head_lines
        for text in self._pieces(self._head_bytes, line):
            parts, _ = self._parse(text, line)
            for part in parts:
                width = max(width, part.X.shape[1] if len(part) else 0)
                n_rows += len(part)
                if given is None:
                    labels.update(np.unique(part.y).tolist())
            line += text.count(b"\n")
            seen += len(text)
            if most_bytes is not None and seen >= most_bytes:
                self.parser.n_features = width
                return False
        if n_rows == 0:
            raise empty(self.path)
        self.parser.n_features, self.n_rows = width, n_rows
        if given is None:
            self.parser.classes = np.array(sorted(labels))
        return True


class _LineTooLongError(Exception):
    pass


def _read_lines(file: BinaryIO) -> bytes:
    text = file.read(_PIECE)
    if len(text) == _PIECE and not text.endswith(b"\n"):
        rest = file.readline(_LONGEST)
        if len(rest) == _LONGEST and not rest.endswith(b"\n"):
            raise _LineTooLongError
        text += rest
    return text


def _lines(text: bytes) -> list[bytes]:
    """Return lines that end with a line feed; a carriage return alone ends none."""
    lines = [line + b"\n" for line in text.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def empty(path: Path) -> StreamError:
    """Return the error of a stream without rows."""
    return StreamError(f"{path} has no rows.")

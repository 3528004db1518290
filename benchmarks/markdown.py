"""Tables and counts in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def table(head: Iterable[Any], rows: Iterable[Iterable[Any]]) -> str:
    first = list(head)
    lines = [first, ["---"] * len(first), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def count(number: int, word: str) -> str:
    return f"{number} {word}" + ("s" if number != 1 else "")

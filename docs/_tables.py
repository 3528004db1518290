"""Tables of the pages, made from what the library knows: a new loss or kernel is in them by itself.

A page says ``<!-- table: losses -->`` where the table is to be.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping

from widemargin.kernels import NAMED_KERNELS
from widemargin.losses import CLASS_LOSSES

PLACE = re.compile(r"^<!-- table: (\w+) -->$", flags=re.MULTILINE)


def described(kind: type) -> tuple[str, str, str]:
    """Return title, formula and explanation: the first line of a docstring, and what follows it."""
    paragraphs = (inspect.getdoc(kind) or "").split("\n\n")
    found = re.fullmatch(r"(.+?)(?:, ``(.+)``)?\.", paragraphs[0])
    if found is None:
        raise ValueError(
            f"The docstring of {kind.__name__} must begin with a title and, if it has one, a "
            f"formula, as 'Title, ``formula``.'; got {paragraphs[0]!r}."
        )
    before_sections = []
    for paragraph in paragraphs[1:]:
        if re.match(r"\w+\n-{4,}", paragraph):
            break
        before_sections.append(" ".join(paragraph.split()))
    return found[1], found[2] or "", " ".join(before_sections)


def parameters(kind: type) -> str:
    """Return the parameters as a call would give them."""
    each = [
        field.name if field.default is dataclasses.MISSING else f"{field.name}={field.default}"
        for field in dataclasses.fields(kind)
    ]
    return f"{kind.__name__}({', '.join(each)})"


def _rows(named: Mapping[str, type]) -> list[tuple[str, ...]]:
    rows = []
    for name, kind in named.items():
        title, formula, more = described(kind)
        formula = f", `{formula}`" if formula else ""
        rows.append((f'`"{name}"`', f"`{parameters(kind)}`", f"{title}{formula}. {more}".strip()))
    return rows


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    cells = [[cell.replace("|", r"\|").replace("``", "`") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def losses() -> str:
    """Return the losses of multiclass estimators."""
    return _table(("`loss`", "as an object", "what it is"), _rows(CLASS_LOSSES))


def kernels() -> str:
    """Return the kernels that have a name."""
    return _table(("`kernel`", "as an object", "what it is"), _rows(NAMED_KERNELS))


TABLES: dict[str, Callable[[], str]] = {"losses": losses, "kernels": kernels}


def filled(text: str) -> str:
    """Return a page with its tables."""
    return PLACE.sub(lambda place: TABLES[place[1]](), text)

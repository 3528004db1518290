"""HTML as values: what is text is escaped, and what is markup already is not."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

_WITHOUT_END = frozenset({"br", "col", "hr", "img", "input", "meta"})


class Html(str):
    """Text that is markup; any other text is escaped wherever it is put."""

    __slots__ = ()


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """Return an element.

    Parameters
    ----------
    name : str
    *children : Html, str or number, or None
        What is no Html is text. None is nothing.
    **attributes
        An underscore at the end is dropped, others are hyphens. True is the name alone, None and
        False are none at all.
    """
    parts = []
    for key, value in attributes.items():
        word = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(f" {word}")
        elif value is not None and value is not False:
            parts.append(f' {word}="{html.escape(str(value))}"')
    opening = f"<{name}{''.join(parts)}>"
    if name in _WITHOUT_END:
        return Html(opening)
    return Html(f"{opening}{together(children)}</{name}>")


def together(children: Iterable[Any]) -> Html:
    """Return children after one another, texts escaped."""
    return Html("".join(child if isinstance(child, Html) else _text(child) for child in children))


def _text(child: Any) -> str:
    return "" if child is None else html.escape(str(child), quote=False)


def rows_table(
    heads: Sequence[Any], rows: Iterable[Sequence[Any]], *, caption: str, **attributes: Any
) -> Html:
    """Return a table whose first column names the rows; columns of numbers stand right."""
    rows = [tuple(row) for row in rows]
    sides = [_side(column) for column in zip(*rows, strict=True)] or [None] * len(heads)
    sides[0] = None
    body = []
    for row in rows:
        first, *rest = zip(row, sides, strict=True)
        cells = [each if _is_cell(each) else tag("td", each, class_=side) for each, side in rest]
        body.append(tag("tr", tag("th", first[0], scope="row"), *cells))
    named = zip(heads, sides, strict=True)
    head = tag("tr", *(tag("th", each, scope="col", class_=side) for each, side in named))
    whole = tag(
        "table",
        tag("caption", caption),
        tag("thead", head),
        tag("tbody", *body),
        **attributes,
    )
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def _is_cell(cell: Any) -> bool:
    return isinstance(cell, Html) and cell.startswith("<td")


def _side(column: Sequence[Any]) -> str | None:
    """Return the class of cells of a column, all of which begin with a number or say nothing."""
    texts = [str(cell) for cell in column]
    numbers = all(text.lstrip("-")[:1].isdigit() or len(text) <= 1 for text in texts)
    return "number" if numbers else None


def script_json(value: Any) -> Html:
    """Return JSON that may stand in a script element, whatever texts it holds."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(text)

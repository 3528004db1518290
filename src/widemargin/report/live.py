"""The machine that runs in the page: its tables, the fields of a row, and rows to begin with."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.preparation import PreparedMachine
from widemargin.report.markup import Html, tag
from widemargin.report.rows import take
from widemargin.report.tables import machine_tables

Array: TypeAlias = npt.NDArray[Any]
Json: TypeAlias = dict[str, Any]

_EXAMPLES = 12
_FIELDS = 200
_SLIDER_STEPS = 200
_PIXEL_NAMES = re.compile(r"(?i)^(pix(el)?|px|p)?[\s_.-]*\d+([\s_x.-]+\d+)?$")
_LEAST_PIXELS = 16


def image_shape_of(names: Any, n_features: int) -> tuple[int, int] | None:
    """Return height and width of rows whose columns are named as pixels are; None for others."""
    side = round(n_features**0.5)
    if names is None or side * side != n_features or n_features < _LEAST_PIXELS:
        return None
    are_pixels = all(_PIXEL_NAMES.match(str(name)) for name in names)
    return (side, side) if are_pixels else None


def live_data(
    machine: PreparedMachine,
    X: Any,
    truths: list[str],
    wrong: npt.NDArray[np.bool_],
    *,
    class_names: list[str],
    image_shape: tuple[int, int] | None,
) -> Json:
    """Return what the script of the page reads.

    Parameters
    ----------
    machine : PreparedMachine
    X : data frame, array or CSR matrix
        Rows to begin with, and to take the ranges of fields from.
    truths : list of str
        What each row is, in words.
    wrong : ndarray of bool
        The rows that the machine is wrong about; some of them are shown.
    class_names : list of str
    image_shape : tuple of int or None
        Height and width, where rows are images.
    """
    fields = [] if image_shape else _fields(machine, X)
    return {
        "machine": machine_tables(machine),
        "classes": class_names,
        "tellsLabels": machine.readout.tells_labels,
        "nFeatures": machine.n_features,
        "fields": fields,
        "image": _image(X, image_shape),
        "examples": _examples(X, truths, wrong, machine.n_features),
    }


def _image(X: Any, shape: tuple[int, int] | None) -> Json | None:
    if shape is None:
        return None
    values = X.data if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    low = min(0.0, float(np.nanmin(values))) if sp.issparse(X) else float(np.nanmin(values))
    return {"height": shape[0], "width": shape[1], "low": low, "high": float(np.nanmax(values))}


def _fields(machine: PreparedMachine, X: Any) -> list[Json]:
    """Return a field for each value that is read, the most varied first where there are many."""
    read = {column.source: column for column in machine.columns}
    sources = sorted(read)
    if len(sources) > _FIELDS:
        spread = {source: _spread(_values(X, source)) for source in sources}
        sources = sorted(sorted(sources, key=lambda source: -spread[source])[:_FIELDS])
    names = machine.feature_names
    found = []
    for source in sources:
        name = f"feature {source}" if names is None else names[source]
        categories = read[source].categories
        if categories is None:
            found.append({"source": source, "name": name, **_range(_values(X, source))})
        else:
            values = [value if value is None else str(value) for value in categories.values]
            allows_other = categories.unknown is not None
            found.append(
                {
                    "source": source,
                    "name": name,
                    "kind": "category",
                    "values": values,
                    "allowsOther": allows_other,
                }
            )
    return found


def _values(X: Any, source: int) -> Array:
    if hasattr(X, "iloc"):
        return np.asarray(X.iloc[:, source])
    column = X[:, [source]].toarray() if sp.issparse(X) else np.asarray(X)[:, source]
    return np.asarray(column).ravel()


def _spread(values: Array) -> float:
    if values.dtype.kind not in "biuf":
        return np.inf
    deviation = float(np.nanstd(values.astype(np.float64)))
    size = float(np.nanmax(np.abs(values.astype(np.float64)), initial=0.0)) or 1.0
    return deviation / size


def _range(values: Array) -> Json:
    numbers = values.astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        numbers = np.array([0.0, 1.0])
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        low, high = low - 1.0, high + 1.0
    whole = bool((numbers == np.round(numbers)).all())
    # A power of ten times 1, 2 or 5 below the 200th part of the range.
    rough = (high - low) / _SLIDER_STEPS
    size = 10.0 ** np.floor(np.log10(rough))
    step = float(size * max(each for each in (1, 2, 5) if each * size <= rough * 1.001))
    if whole:
        step = max(1.0, float(np.round(step)))
    return {"kind": "number", "low": low, "high": high, "step": step, "whole": whole}


def _examples(
    X: Any, truths: list[str], wrong: npt.NDArray[np.bool_], n_features: int
) -> list[Json]:
    """Return rows of as many classes as there is room for, and some that the machine errs on."""
    count = _EXAMPLES if n_features <= 5000 else 4
    seen: set[str] = set()
    chosen = np.flatnonzero(wrong)[: count // 4].tolist()
    rest = np.flatnonzero(~wrong).tolist()
    new = []
    for place in rest:
        if truths[place] not in seen:
            seen.add(truths[place])
            new.append(place)
    chosen = [*new[: count - len(chosen)], *chosen]
    chosen += [place for place in rest if place not in chosen][: count - len(chosen)]
    chosen = chosen or [0]
    rows = take(X, np.array(chosen, dtype=np.intp))
    return [
        {
            "name": f"{truths[place]}{' (the machine errs)' if wrong[place] else ''}",
            **_row(_plain_values(rows, number)),
        }
        for number, place in enumerate(chosen)
    ]


def _plain_values(rows: Any, number: int) -> list[Any]:
    if hasattr(rows, "iloc"):
        values = rows.iloc[number].tolist()
    else:
        row = rows[[number]]
        values = np.asarray(row.toarray() if sp.issparse(row) else row).ravel().tolist()
    return [_plain(value) for value in values]


def _plain(value: Any) -> Any:
    if isinstance(value, (np.integer, np.floating)):
        value = value.item()
    if isinstance(value, (bool, int, float)):
        return None if isinstance(value, float) and not np.isfinite(value) else value
    return value if value is None or isinstance(value, str) else str(value)


def _row(values: list[Any]) -> Json:
    """Return values as they are, or of many zeros the others with their places."""
    places = [place for place, value in enumerate(values) if value != 0]
    if len(places) * 3 > len(values):
        return {"values": values}
    return {"places": places, "values": [values[place] for place in places]}


def live_section() -> Html:
    """Return the part of the page that the script fills."""
    controls = tag(
        "div",
        tag("label", "Begin with a row of the data", for_="live-example"),
        tag("select", id="live-example"),
        class_="live-begin",
    )
    inputs = tag(
        "div",
        controls,
        tag("div", id="live-inputs"),
        tag(
            "details",
            tag("summary", "The row as a line of values"),
            tag("label", "Values in the order of the columns, with commas", for_="live-line"),
            tag("textarea", id="live-line", rows=3, spellcheck="false"),
            tag("p", id="live-line-error", class_="error", role="alert"),
        ),
        class_="live-left",
    )
    results = tag(
        "div",
        tag("p", id="live-answer", class_="answer", role="status", aria_live="polite"),
        tag(
            "table",
            tag("caption", "Scores of this row"),
            tag("thead", tag("tr", id="live-heads")),
            tag("tbody", id="live-scores"),
            class_="scores",
        ),
        tag("p", id="live-more", class_="quiet"),
        tag("div", id="live-similar"),
        class_="live-right",
    )
    without = tag("noscript", tag("p", "This part needs JavaScript, which this page may not run."))
    return tag("div", without, tag("div", inputs, results, class_="live"), id="live")

"""What the vectors of a machine are: whose side they are on, and what they look like."""

from __future__ import annotations

import base64
import struct
import zlib
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from widemargin.displays import BasisDisplay
from widemargin.kernels import Precomputed
from widemargin.models import KernelExpansion
from widemargin.report.figures import meter
from widemargin.report.markup import Html, rows_table, tag
from widemargin.report.svg import percent, short_number

Array: TypeAlias = npt.NDArray[Any]

_MOST_SHOWN = 60
_MOST_TOLD = 12
_FEATURES_TOLD = 5
_NOTHING = 1e-9  # of the spread of a feature: what is left of zero after scaling to and fro
_CONTRAST = (1.0, 99.0)  # percentiles of the numbers that are white and black


@dataclass(frozen=True)
class Vectors:
    """The vectors of an expansion, in the form in which people know rows, as far as there is one.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_basis, n_features), or None
        None where a vector is only known as the number of a training row.
    names : list of str
        Of the features of these rows.
    typical, spread : ndarray of shape (n_features,)
        Mean and standard deviation of rows of data.
    shares : ndarray of shape (n_basis,)
        Of each in the sizes of all coefficients.
    spoken_for : list of str
        The class that each speaks for most.
    """

    rows: Any
    names: list[str]
    typical: Array
    spread: Array
    shares: Array
    spoken_for: list[str]

    @property
    def order(self) -> list[int]:
        """Numbers of the vectors, those of the largest coefficients first."""
        return list(np.argsort(-self.shares, kind="stable"))


def vectors_of(machine: Any, X: Any, class_names: list[str]) -> Vectors | None:
    """Return the vectors of a machine or pipeline; None where it has none.

    Parameters
    ----------
    machine : estimator of widemargin, or Pipeline that ends in one
    X : data frame, array or CSR matrix
        Rows of data, which vectors are told against.
    class_names : list of str
    """
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    model = last.model_
    if not isinstance(model, KernelExpansion) or not model.n_basis:
        return None
    display = BasisDisplay(model.basis, model.coef, np.arange(len(class_names)))
    spoken_for = [class_names[number] for number in display.spoken_for]
    if isinstance(model.kernel, Precomputed):
        none = np.empty(0)
        return Vectors(None, [], none, none, display.shares, spoken_for)
    rows, seen, names = model.basis, X, getattr(machine, "feature_names_in_", None)
    if isinstance(machine, Pipeline) and len(machine) > 1:
        before = machine[:-1]
        if hasattr(before, "inverse_transform"):
            rows = before.inverse_transform(rows)
        else:
            seen = before.transform(X)
            names = _names_after(before)
    mean, spread = _moments(seen)
    if names is None or len(names) != rows.shape[1]:
        names = [f"feature {number}" for number in range(rows.shape[1])]
    return Vectors(rows, list(map(str, names)), mean, spread, display.shares, spoken_for)


def _names_after(before: Any) -> Any:
    try:
        return before.get_feature_names_out()
    except (AttributeError, ValueError):  # a step that cannot tell them
        return None


def _moments(rows: Any) -> tuple[Array, Array]:
    """Return mean and standard deviation of columns; gaps do not count."""
    if sp.issparse(rows):
        mean = np.asarray(rows.mean(axis=0)).ravel()
        squares = np.asarray(rows.multiply(rows).mean(axis=0)).ravel()
        return mean, np.sqrt(np.maximum(squares - mean**2, 0.0))
    values = np.asarray(rows, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.nanmean(values, axis=0), np.nanstd(values, axis=0)


def class_counts(vectors: Vectors, class_names: list[str], noun: str) -> Html:
    """Return how many vectors speak for each class, as a table of bars."""
    counts = Counter(vectors.spoken_for)
    most = max(counts.values())
    rows = [(name, meter(counts[name] / most, str(counts[name]))) for name in class_names]
    heads = (noun.capitalize(), "Vectors")
    caption = f"Vectors by the {noun} that they speak for most"
    return rows_table(heads, rows, caption=caption, class_="meters")


def gallery(vectors: Vectors, shape: tuple[int, int], images: list[str]) -> Html:
    """Return vectors as pictures, with class and weight."""
    cards = []
    for number in vectors.order[:_MOST_SHOWN]:
        name, share = vectors.spoken_for[number], percent(float(vectors.shares[number]))
        picture = tag(
            "img",
            src=images[number],
            alt=f"Vector {number + 1}, which speaks for {name}",
            width=72,
            height=round(72 * shape[0] / shape[1]),
        )
        cards.append(tag("li", picture, tag("span", tag("b", name), f" {share}")))
    return tag("ul", *cards, class_="gallery")


def features_table(vectors: Vectors) -> Html:
    """Return the features in which each vector is furthest from what is usual."""
    spread = np.where(vectors.spread > 0, vectors.spread, np.inf)
    rows = []
    for number in vectors.order[:_MOST_TOLD]:
        row = vectors.rows[[number]]
        values = np.asarray(row.toarray() if sp.issparse(row) else row, dtype=np.float64).ravel()
        values[np.abs(values) < _NOTHING * vectors.spread] = 0.0
        far = (values - vectors.typical) / spread
        places = np.argsort(-np.abs(far), kind="stable")[:_FEATURES_TOLD]
        chips = [
            tag(
                "span",
                vectors.names[place],
                " ",
                tag("b", short_number(float(values[place]))),
                class_="chip high" if far[place] > 0 else "chip low",
                title=f"{far[place]:+.1f} standard deviations from the mean",
            )
            for place in places
        ]
        share = percent(float(vectors.shares[number]))
        chips_cell = tag("td", *chips, class_="chips")
        rows.append((f"{number + 1}", vectors.spoken_for[number], share, chips_cell))
    heads = ("Vector", "Speaks for", "Weight", "Where it is furthest from the mean of the data")
    return rows_table(heads, rows, caption="The vectors of the largest coefficients")


def vector_images(vectors: Vectors, shape: tuple[int, int]) -> list[str]:
    """Return each vector as the address of a picture that is in the page itself."""
    rows = vectors.rows.toarray() if sp.issparse(vectors.rows) else np.asarray(vectors.rows)
    low, high = np.percentile(rows, _CONTRAST)
    shades = np.clip((rows - low) / ((high - low) or 1.0), 0.0, 1.0)
    ink = np.round(255 * (1.0 - shades)).astype(np.uint8)
    return [_png(each.reshape(shape)) for each in ink]


def _png(pixels: npt.NDArray[np.uint8]) -> str:
    """Return a grey picture as a data address."""
    height, width = pixels.shape

    def chunk(name: bytes, content: bytes) -> bytes:
        checked = name + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    content = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")

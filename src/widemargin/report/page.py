"""The report: one HTML page of a machine, with all that it needs inside."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

import widemargin
from widemargin._system.files import replace_file
from widemargin.preparation import prepared
from widemargin.report import figures, sections
from widemargin.report.comparison import Comparison
from widemargin.report.live import image_shape_of, live_data
from widemargin.report.markup import Html, script_json, tag, together
from widemargin.report.measures import measure
from widemargin.report.vectors import Vectors, vector_images, vectors_of

_LARGEST_TABLES = 2_000_000  # characters of the machine in the page, which stays below 3 MB


@dataclass(frozen=True)
class Source:
    """What a page says of where its rows and its machine come from.

    Attributes
    ----------
    data, target : str
        Names of the data and of what is learned.
    commands : sequence of str
        Which make the page again.
    notes : sequence of str
        What a reader has to know of the rows: which were learned from, which left out.
    """

    data: str = ""
    target: str = ""
    commands: Sequence[str] = ()
    notes: Sequence[str] = ()


def write_report(path: str | os.PathLike[str], machine: Any, X: Any, y: Any, **options: Any) -> int:
    """Write the page of a machine, whole or not at all, and return its size in bytes.

    Parameters
    ----------
    path : path
        Of the HTML file.
    machine : estimator of widemargin, or Pipeline that ends in one
        A fitted one.
    X : data frame, array-like or CSR matrix
        Rows that it has not learned from.
    y : array-like
        Classes, or an indicator of labels.
    **options
        As in :func:`report_page`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.report import write_report
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, random_state=0).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = write_report(Path(folder) / "iris.html", machine, X[1::2], y[1::2])
    >>> size < 3_000_000
    True
    """
    data = report_page(machine, X, y, **options).encode()
    replace_file(path, [data])
    return len(data)


def report_page(
    machine: Any,
    X: Any,
    y: Any,
    *,
    comparison: Comparison | None = None,
    metric: str | None = None,
    label_names: Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    source: Source | None = None,
) -> str:
    """Return the page of a machine: measurements, pictures, and the machine itself, running.

    Parameters
    ----------
    machine : estimator of widemargin, or Pipeline that ends in one
        A fitted one.
    X : data frame, array-like or CSR matrix
        Rows that it has not learned from.
    y : array-like
        Classes, or an indicator of labels.
    comparison : Comparison, default=None
        For the frontier.
    metric : str, default=None
        As in :func:`compare`; None is that of the comparison.
    label_names : sequence of str, default=None
        Of the columns of an indicator; None takes their numbers.
    image_shape : tuple of int, default=None
        Height and width of rows that are images. None finds it out by the names of the columns.
    source : Source, default=None

    Returns
    -------
    page : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.report import report_page
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, random_state=0).fit(X[::2], y[::2])
    >>> report_page(machine, X[1::2], y[1::2]).startswith("<!doctype html>")
    True
    """
    source = source or Source()
    if not hasattr(X, "iloc") and not sp.issparse(X):
        X = np.asarray(X)
    if image_shape is not None and image_shape[0] * image_shape[1] != X.shape[1]:
        height, width = image_shape
        raise ValueError(
            f"Images of {height} x {width} have {height * width} pixels, and rows have "
            f"{X.shape[1]} values."
        )
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    names = [str(name) for name in (label_names if label_names is not None else last.classes_)]
    if metric is None and comparison is not None:
        metric = comparison.metric
    measures = measure(machine, X, y, metric=metric, names=names)
    vectors = vectors_of(machine, X, names)
    shape = image_shape or image_shape_of(getattr(X, "columns", None), X.shape[1])
    live, why_not = _live(machine, X, y, names, shape)
    images = _images(vectors, shape)
    if live is not None and vectors is not None:
        shown = images if images and sum(map(len, images)) < _LARGEST_TABLES / 2 else None
        live["vectors"] = {"speakFor": vectors.spoken_for, "images": shown}
    noun = "label" if last.readout_.tells_labels else "class"
    parts = [
        sections.live_part(live, why_not),
        sections.comparison_part(comparison),
        sections.sizes_part(measures, comparison, vectors),
        sections.errors_part(measures, noun),
        sections.vectors_part(vectors, names, noun, shape, images),
        tag("div", sections.speed_part(measures), sections.trust_part(measures), class_="halves"),
        sections.settings_part(machine, comparison, source.commands),
    ]
    first = sections.summary(machine, measures, vectors, source.notes)
    return _filled(_title(source), first, parts, live)


def _title(source: Source) -> str:
    if source.target and source.data:
        return f"{source.target} of {os.path.basename(source.data)}"
    return os.path.basename(source.data) or "A machine"


def _live(
    machine: Any, X: Any, y: Any, names: list[str], shape: tuple[int, int] | None
) -> tuple[dict[str, Any] | None, str]:
    """Return what the page computes from, or None and why there is nothing."""
    few = np.arange(min(2000, X.shape[0]))
    some = X.iloc[few] if hasattr(X, "iloc") else X[few]
    truth = y[few]
    truth = np.asarray(truth.toarray() if sp.issparse(truth) else truth)
    predictor = widemargin.compile(machine)
    answers = predictor.predict(some)
    if truth.ndim == 2:
        wrong = (answers != truth).any(axis=1)
        truths = [", ".join(names[k] for k in np.flatnonzero(row)) or "none" for row in truth]
    else:
        wrong = np.asarray(answers != truth)
        truths = [str(each) for each in truth]
    try:
        data = live_data(
            prepared(machine), some, truths, wrong, class_names=names, image_shape=shape
        )
    except TypeError as error:
        return None, str(error)
    size = len(script_json(data))
    if size > _LARGEST_TABLES:
        return None, (
            f"Its tables would take {figures.n_bytes(size)}, too much for a page. Fewer vectors, "
            "or widemargin.compress, make it small enough."
        )
    return data, ""


def _images(vectors: Vectors | None, shape: tuple[int, int] | None) -> list[str] | None:
    if vectors is None or shape is None or vectors.rows is None:
        return None
    if shape[0] * shape[1] != vectors.rows.shape[1]:
        return None
    return vector_images(vectors, shape)


def _filled(
    title: str, summary: Html, parts: Sequence[Html | None], live: dict[str, Any] | None
) -> str:
    assets = files("widemargin.report") / "assets"

    def text(name: str) -> str:
        return (assets / name).read_text(encoding="utf-8")

    scripts = [text("theme.js")]
    if live is not None:
        scripts += [text("predictor.js"), text("live.js")]
    return Template(text("page.html")).substitute(
        title=tag("title", f"{title} · widemargin"),
        heading=tag("h1", title),
        style=text("page.css"),
        summary=summary,
        sections=together(parts),
        made=together([f"widemargin {widemargin.__version__}, {time.strftime('%d %B %Y, %H:%M')}"]),
        data=script_json(live),
        script="\n".join(scripts),
    )

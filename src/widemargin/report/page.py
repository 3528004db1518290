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
from widemargin._system.threads import thread_count
from widemargin.preparation import prepared
from widemargin.report import figures
from widemargin.report.comparison import Comparison
from widemargin.report.live import image_shape_of, live_data, live_section
from widemargin.report.markup import Html, rows_table, script_json, tag, together
from widemargin.report.measures import Measures, measure
from widemargin.report.summary import environment
from widemargin.report.svg import percent, short_number
from widemargin.report.vectors import (
    Vectors,
    class_counts,
    features_table,
    gallery,
    vector_images,
    vectors_of,
)

_SIDE_BY_SIDE = 10  # classes of a matrix that leaves room for a table beside it
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
    sections = [
        _live_part(live, why_not),
        _comparison_part(comparison),
        _sizes_part(measures, comparison, vectors),
        _errors_part(measures, noun),
        _vectors_part(vectors, names, noun, shape, images),
        tag("div", _speed_part(measures), _trust_part(measures), class_="halves"),
        _settings_part(machine, comparison, source),
    ]
    return _filled(_title(source), _summary(machine, measures, vectors, source), sections, live)


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


def _summary(machine: Any, measures: Measures, vectors: Vectors | None, source: Source) -> Html:
    last = machine[-1] if isinstance(machine, Pipeline) else machine
    half = float(np.median(measures.alone_us))
    tiles = [
        (percent(measures.score), f"{measures.metric}, on {measures.n_rows:,} rows kept aside"),
        (
            f"{len(vectors.shares):,}" if vectors else f"{last.model_.n_features:,}",
            "vectors" if vectors else "features, and no vectors",
        ),
        (f"{short_number(half)} µs", "for one row; half of the calls take less"),
        (f"{short_number(measures.batch_us)} µs", "a row of many at once"),
    ]
    if measures.n_bytes is not None:
        tiles.append((figures.n_bytes(measures.n_bytes), "model file"))
    return together(
        [
            tag(
                "dl",
                *(tag("div", tag("dt", words), tag("dd", value)) for value, words in tiles),
                class_="tiles",
            ),
            *(tag("p", note, class_="quiet") for note in source.notes),
        ]
    )


def _section(name: str, title: str, *children: Any) -> Html:
    return tag(
        "section",
        tag("h2", title, id=f"{name}-title"),
        *children,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _live_part(live: dict[str, Any] | None, why_not: str) -> Html:
    if live is None:
        return _section("try", "Try it", tag("p", "The machine does not run here. ", why_not))
    words = "Draw a picture" if live["image"] else "Change a value"
    intro = tag(
        "p",
        f"{words}, and the machine answers. It runs in this page, from the very numbers that "
        "Python computes with; nothing leaves your computer.",
    )
    return _section("try", "Try it", intro, live_section())


def _comparison_part(comparison: Comparison | None) -> Html | None:
    if comparison is None:
        return None
    measured = [r for r in comparison.candidates if r.measured and r.family != "constant"]
    advice = tag("ul", *(tag("li", each) for each in comparison.recommendation), class_="advice")
    plots = None
    if measured:
        plots = tag(
            "div",
            figures.frontier_figure(comparison, alone=False),
            figures.frontier_figure(comparison, alone=True),
            class_="pair",
        )
    legend = tag(
        "p",
        tag("span", "widemargin", class_="key ours"),
        tag("span", "others", class_="key peer"),
        class_="legend",
    )
    reading = tag(
        "p",
        "Up and to the left is better; a line joins those that no other is as good and as fast as.",
        class_="quiet",
    )
    notes = tag("ul", *(tag("li", each) for each in comparison.notes), class_="quiet")
    details = tag(
        "details",
        tag("summary", f"All {len(comparison.candidates)} machines, and how they were measured"),
        figures.comparison_table(comparison),
        notes,
    )
    return _section("frontier", "Beside other machines", advice, legend, reading, plots, details)


def _sizes_part(
    measures: Measures, comparison: Comparison | None, vectors: Vectors | None
) -> Html | None:
    n_basis = 0 if vectors is None else len(vectors.shares)
    picture = figures.sizes_figure(measures, comparison, n_basis)
    if picture is None:
        return None
    return _section("sizes", "How many vectors it takes", picture)


def _errors_part(measures: Measures, noun: str) -> Html:
    title = "Where it errs" if noun == "class" else "How well each label is told"
    return _section(
        "errors",
        title,
        tag(
            "div",
            figures.confusion_section(measures),
            figures.classes_table(measures, noun),
            class_="pair" if 0 < len(measures.names) <= _SIDE_BY_SIDE else "stack",
        ),
    )


def _vectors_part(
    vectors: Vectors | None,
    names: list[str],
    noun: str,
    shape: tuple[int, int] | None,
    images: list[str] | None,
) -> Html | None:
    if vectors is None:
        return None
    intro = tag(
        "p",
        f"A row is compared with {len(vectors.shares):,} vectors; each speaks for some "
        f"{'classes' if noun == 'class' else 'labels'} and against others.",
    )
    look: Html | None = None
    if images and shape:
        look = gallery(vectors, shape, images)
    elif vectors.rows is not None:
        look = features_table(vectors)
    return _section(
        "vectors",
        "The vectors",
        intro,
        tag("div", class_counts(vectors, names, noun), look, class_="pair wide-right"),
    )


def _speed_part(measures: Measures) -> Html:
    return _section("speed", "How fast it answers", figures.latency_figure(measures))


def _trust_part(measures: Measures) -> Html:
    return _section("trust", "How far to trust it", figures.calibration_figure(measures))


def _settings_part(machine: Any, comparison: Comparison | None, source: Source) -> Html:
    steps = machine.steps if isinstance(machine, Pipeline) else [("machine", machine)]
    rows = [(f"step {name}", " ".join(repr(step).split())) for name, step in steps[:-1]]
    last = steps[-1][1]
    rows.append(("estimator", type(last).__name__))
    rows += [(name, repr(value)) for name, value in sorted(last.get_params(deep=False).items())]
    settings = rows_table(("Setting", "Value"), rows, caption="Settings", class_="plain")
    found = environment(thread_count(None)) if comparison is None else comparison.environment
    found = {"widemargin": widemargin.__version__, **found}
    around = rows_table(
        ("What", "Version"), list(found.items()), caption="Environment", class_="plain"
    )
    commands = None
    if source.commands:
        code = tag("code", "\n".join(source.commands))
        commands = tag("div", tag("h3", "To make it again"), tag("pre", code, tabindex=0))
    return _section(
        "settings",
        "What it is made of",
        commands,
        tag("div", settings, around, class_="pair"),
    )


def _filled(
    title: str, summary: Html, sections: Sequence[Html | None], live: dict[str, Any] | None
) -> str:
    shown = [section for section in sections if section is not None]
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
        sections=together(shown),
        made=together([f"widemargin {widemargin.__version__}, {time.strftime('%d %B %Y, %H:%M')}"]),
        data=script_json(live),
        script="\n".join(scripts),
    )

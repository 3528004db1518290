"""The sections of a page, in the order of the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import widemargin
from widemargin._system.threads import thread_count
from widemargin.report import figures
from widemargin.report.comparison import Comparison
from widemargin.report.live import live_section
from widemargin.report.markup import Html, rows_table, tag, together
from widemargin.report.measures import Measures
from widemargin.report.summary import environment
from widemargin.report.svg import percent, short_number
from widemargin.report.vectors import Vectors, class_counts, features_table, gallery

_SIDE_BY_SIDE = 10  # classes of a matrix that leaves room for a table beside it


def summary(
    machine: Any, measures: Measures, vectors: Vectors | None, notes: Sequence[str]
) -> Html:
    """Return the figures that a reader sees first, and what to know of the rows."""
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
            *(tag("p", note, class_="quiet") for note in notes),
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


def live_part(live: dict[str, Any] | None, why_not: str) -> Html:
    """Return the machine that runs, or why it does not."""
    if live is None:
        return _section("try", "Try it", tag("p", "The machine does not run here. ", why_not))
    words = "Draw a picture" if live["image"] else "Change a value"
    intro = tag(
        "p",
        f"{words}, and the machine answers. It runs in this page, from the very numbers that "
        "Python computes with; nothing leaves your computer.",
    )
    return _section("try", "Try it", intro, live_section())


def comparison_part(comparison: Comparison | None) -> Html | None:
    """Return the frontier, and what follows from it."""
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


def sizes_part(
    measures: Measures, comparison: Comparison | None, vectors: Vectors | None
) -> Html | None:
    """Return scores by number of vectors, where there are several numbers."""
    n_basis = 0 if vectors is None else len(vectors.shares)
    picture = figures.sizes_figure(measures, comparison, n_basis)
    if picture is None:
        return None
    return _section("sizes", "How many vectors it takes", picture)


def errors_part(measures: Measures, noun: str) -> Html:
    """Return what is taken for what."""
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


def vectors_part(
    vectors: Vectors | None,
    names: list[str],
    noun: str,
    shape: tuple[int, int] | None,
    images: list[str] | None,
) -> Html | None:
    """Return whom the vectors speak for, and what they look like."""
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


def speed_part(measures: Measures) -> Html:
    """Return how long answers take."""
    return _section("speed", "How fast it answers", figures.latency_figure(measures))


def trust_part(measures: Measures) -> Html:
    """Return how often answers are right, by how sure the machine is."""
    return _section("trust", "How far to trust it", figures.calibration_figure(measures))


def settings_part(machine: Any, comparison: Comparison | None, commands: Sequence[str]) -> Html:
    """Return settings, versions and commands."""
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
    again = None
    if commands:
        code = tag("code", "\n".join(commands))
        again = tag("div", tag("h3", "To make it again"), tag("pre", code, tabindex=0))
    return _section(
        "settings",
        "What it is made of",
        again,
        tag("div", settings, around, class_="pair"),
    )

"""The pictures of a page."""

from __future__ import annotations

import math

import numpy as np

from widemargin.report.comparison import Candidate, Comparison
from widemargin.report.markup import Html, rows_table, tag
from widemargin.report.measures import Measures
from widemargin.report.svg import UNKNOWN, Plot, padded, percent, short_number

_MOST_CLASSES = 20  # of a matrix that is shown whole
_MOST_CONFUSIONS = 15
_HISTOGRAM_BARS = 40
_WIDE = (1040, 320)  # a picture that has a section to itself


def figure(
    picture: Html, caption: str, numbers: Html | None = None, class_: str | None = None
) -> Html:
    """Return a picture with words below it, and its numbers for those who want them as a table."""
    details = None
    if numbers is not None:
        details = tag("details", tag("summary", "Numbers"), numbers)
    if class_ == "wide":  # on a narrow screen it is moved, not shrunk
        picture = tag(
            "div", picture, class_="scroll", tabindex=0, role="region", aria_label=caption
        )
    return tag("figure", picture, tag("figcaption", caption), details, class_=class_)


def frontier_figure(comparison: Comparison, *, alone: bool) -> Html:
    """Return scores against microseconds a row; a line joins what nothing else beats."""
    shown = [
        row
        for row in comparison.candidates
        if row.measured and row.family != "constant" and _cost(row, alone) > 0
    ]
    how = "one row at a time" if alone else "many rows at once"
    costs = [_cost(row, alone) for row in shown]
    plot = Plot(
        f"{comparison.metric.capitalize()} against microseconds a row, {how}",
        (min(costs) / 1.7, max(costs) * 2.5),
        padded([row.mean for row in shown]),
        x_label=f"µs a row, {how} (log scale)",
        y_label=comparison.metric,
        log=True,
        y_format=percent,
    )
    best = sorted((row for row in shown if _on_frontier(row, alone)), key=lambda r: _cost(r, alone))
    plot.line([(_cost(row, alone), row.mean) for row in best], class_="frontier")
    for row in shown:
        told = f"{row.name}: {percent(row.mean)}, {short_number(_cost(row, alone))} µs a row"
        ours = row.kind == "ours"
        plot.mark(
            _cost(row, alone),
            row.mean,
            class_="ours" if ours else "peer",
            told=told,
            square=not ours,
        )
    for row in sorted(shown, key=lambda row: (not _on_frontier(row, alone), row.kind != "ours")):
        plot.label(_cost(row, alone), row.mean, row.name, class_=row.kind)
    return figure(plot.svg(), f"{how.capitalize()}.")


def _cost(row: Candidate, alone: bool) -> float:
    cost = row.alone_us if alone else row.batch_us
    return cost if math.isfinite(cost) else 0.0


def _on_frontier(row: Candidate, alone: bool) -> bool:
    return row.on_frontier_alone if alone else row.on_frontier


def comparison_table(comparison: Comparison) -> Html:
    """Return all candidates with all numbers."""
    rows = []
    for row in comparison.candidates:
        spread = f" ± {percent(row.spread)}" if math.isfinite(row.spread) else ""
        rows.append(
            (
                tag("span", row.name, class_=row.kind),
                percent(row.mean) + spread if row.measured else UNKNOWN,
                short_number(row.batch_us),
                short_number(row.alone_us),
                n_bytes(row.model_bytes),
                short_number(row.fit_seconds),
                row.note or row.settings,
            )
        )
    heads = (
        "Machine",
        comparison.metric.capitalize(),
        "µs a row, many",
        "µs a row, one",
        "Size",
        "Fit, s",
        "Note",
    )
    return rows_table(heads, rows, caption="All machines that were compared")


def sizes_figure(measures: Measures, comparison: Comparison | None, n_basis: int) -> Html | None:
    """Return the score against the number of vectors; None where there is one number alone."""
    others = [] if comparison is None else list(comparison.candidates)
    ours = [row for row in others if row.kind == "ours" and row.measured and row.n_basis]
    stages = [each for each in measures.stages if each[0] > 0]
    same_metric = comparison is not None and comparison.metric == measures.metric
    ours = ours if same_metric else []
    if len(stages) < 2 and len(ours) < 2:
        return None
    points = [*stages, *((row.n_basis or 0, row.mean) for row in ours), (n_basis, measures.score)]
    points = [each for each in points if each[0] > 0]
    peers = [row for row in others if row.kind == "peer" and row.measured and same_metric]
    best = max(peers, key=lambda row: row.mean, default=None)
    heights = [score for _, score in points] + ([] if best is None else [best.mean])
    sizes = [size for size, _ in points]
    plot = Plot(
        f"{measures.metric.capitalize()} against the number of vectors",
        (min(sizes) / 1.3, max(sizes) * 1.6),
        padded(heights),
        x_label="vectors (log scale)",
        y_label=measures.metric,
        log=True,
        size=_WIDE,
        y_format=percent,
    )
    if best is not None:
        plot.line([(plot.x.low, best.mean), (plot.x.high, best.mean)], class_="reference")
        plot.label(plot.x.high, best.mean, f"best of the others: {best.name}", class_="peer")
    if stages:
        plot.line(stages, class_="curve")
    for row in ours:
        size = row.n_basis or 1
        told = f"{row.name}: {size} vectors, {percent(row.mean)}"
        plot.mark(size, row.mean, class_="ours faint", told=told)
    told = f"This machine: {n_basis} vectors, {percent(measures.score)}"
    if n_basis:
        plot.mark(n_basis, measures.score, class_="this", told=told)
        plot.label(n_basis, measures.score, "this machine", class_="this")
    numbers = rows_table(
        ("Vectors", measures.metric.capitalize()),
        [(size, percent(score)) for size, score in sorted(points)],
        caption="Score by number of vectors",
    )
    words = "The line is this machine on its way to its size. " if len(stages) > 1 else ""
    pale = "Pale points are machines of the comparison." if ours else ""
    return figure(plot.svg(), (words + pale).strip(), numbers, class_="wide")


def latency_figure(measures: Measures) -> Html:
    """Return a histogram of calls with one row."""
    times = measures.alone_us
    low, high = float(np.quantile(times, 0.001)), float(np.quantile(times, 0.995))
    low, high = low / 1.1, max(high * 1.3, low * 2)
    edges = np.geomspace(low, high, _HISTOGRAM_BARS + 1)
    counts = np.histogram(np.clip(times, low, high), edges)[0]
    plot = Plot(
        "How long the answers to single rows took",
        (low, high),
        (0.0, float(counts.max()) * 1.1),
        x_label="µs of a call with one row (log scale)",
        y_label="calls",
        log=True,
    )
    for count, left, right in zip(counts, edges[:-1], edges[1:], strict=True):
        if count:
            told = f"{count} calls of {short_number(left)} to {short_number(right)} µs"
            plot.bar((left, right), float(count), class_="bar", told=told)
    percentiles = {"50": 0.5, "90": 0.9, "99": 0.99}
    places = {name: min(float(np.quantile(times, q)), high) for name, q in percentiles.items()}
    for place in places.values():
        plot.line([(place, 0.0), (place, plot.y.high)], class_="reference")
    for name, place in places.items():
        plot.label(place, plot.y.high * 0.97, f"p{name}")
    rows = [
        (f"{name} % of calls within", f"{np.quantile(times, share):.3g} µs")
        for name, share in percentiles.items()
    ]
    rows.append(("A row of many at once", f"{measures.batch_us:.3g} µs"))
    numbers = rows_table(("What", "Time"), rows, caption="Time of predictions")
    caption = f"{len(times):,} calls of the compiled predictor with one row each, in one thread."
    return figure(plot.svg(), caption, numbers)


def calibration_figure(measures: Measures) -> Html:
    """Return the share of right answers by probability, or by the lead of the best score."""
    bins = measures.bins
    sure = [each.sure for each in bins]
    known = measures.has_probabilities
    word = "probability" if known else "lead of the best score"
    heights = [each.right for each in bins] + ([*sure] if known else [])
    plot = Plot(
        f"Share of answers that are right, by {word}",
        (min(sure), max(1.0 if known else 0.0, *sure)) if len(sure) > 1 else (0.0, 1.0),
        padded(heights),
        x_label=f"{word}, mean of a group of answers",
        y_label="answers that are right",
        x_format=percent if known else None,
        y_format=percent,
    )
    if known:
        low = max(plot.x.low, plot.y.low)
        plot.line([(low, low), (1.0, 1.0)], class_="reference")
    plot.line([(each.sure, each.right) for each in bins], class_="curve")
    for each in bins:
        said = percent(each.sure) if known else short_number(each.sure)
        told = f"{each.n_rows:,} answers at {said}: {percent(each.right)} right"
        plot.mark(each.sure, each.right, class_="this", told=told)
    numbers = rows_table(
        (word.capitalize(), "Right", "Answers"),
        [
            (percent(b.sure) if known else short_number(b.sure), percent(b.right), f"{b.n_rows:,}")
            for b in bins
        ],
        caption=f"Right answers by {word}",
    )
    caption = (
        f"On the dashed line, probabilities mean what they say; the mean distance from it is "
        f"{percent(measures.calibration_error)}."
        if known
        else "This machine gives scores, not probabilities: a larger lead should mean fewer "
        "errors. A logistic loss, or probability=True of label sets, gives probabilities."
    )
    return figure(plot.svg(), caption, numbers)


def confusion_section(measures: Measures) -> Html | None:
    """Return which classes are taken for which: a matrix, or of many classes the worst pairs."""
    if measures.confusion is None:
        return None
    counts, names = measures.confusion, measures.names
    if len(names) > _MOST_CLASSES:
        return _worst_pairs(measures)
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    rows = []
    for number, name in enumerate(names):
        cells = [
            tag(
                "td",
                str(int(count)) if count else tag("span", "0", class_="zero"),
                class_="right" if number == place else "wrong",
                style=f"--share:{count / totals[number, 0]:.3f}",
                title=f"{name} taken for {names[place]}: {int(count)}",
            )
            for place, count in enumerate(counts[number])
        ]
        rows.append((name, *cells))
    caption = "Confusion matrix: rows are what is true, columns what was answered"
    return rows_table(("true ↓ answered →", *names), rows, caption=caption, class_="confusion")


def _worst_pairs(measures: Measures) -> Html:
    assert measures.confusion is not None
    counts = measures.confusion.copy()
    np.fill_diagonal(counts, 0)
    order = np.argsort(-counts, axis=None, kind="stable")[:_MOST_CONFUSIONS]
    totals = measures.confusion.sum(axis=1)
    rows = []
    for place in order.tolist():
        true, answered = divmod(place, len(measures.names))
        if counts[true, answered]:
            share = counts[true, answered] / totals[true]
            rows.append(
                (
                    measures.names[true],
                    measures.names[answered],
                    str(int(counts[true, answered])),
                    percent(float(share)),
                )
            )
    heads = ("True", "Answered", "Rows", "Share of the class")
    return rows_table(heads, rows, caption="The most frequent confusions")


def classes_table(measures: Measures, noun: str) -> Html:
    """Return precision, recall and F1 of each class or label."""
    rows = [
        (
            each.name,
            meter(each.f1),
            percent(each.precision),
            percent(each.recall),
            f"{each.n_rows:,}",
        )
        for each in measures.classes
    ]
    heads = (noun.capitalize(), "F1", "Precision", "Recall", "Rows")
    return rows_table(heads, rows, caption=f"How well each {noun} is told", class_="meters")


def meter(share: float, text: str | None = None) -> Html:
    """Return a cell with a bar of this length behind its number."""
    shown = percent(share) if text is None else text
    return tag("td", tag("span", shown), class_="meter", style=f"--share:{share:.3f}")


def n_bytes(count: float) -> str:
    """Return a size in a unit that suits it."""
    if not math.isfinite(count):
        return UNKNOWN
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"

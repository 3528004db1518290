"""Machines of many labels as rows of the table of targets, and as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.many_labels.measure import RANKS, Found
from benchmarks.parts.many_labels.targets import LIBRARY, MEGABYTES, PRECISION, TUNED


def target_rows(found: Found) -> Iterator[Row]:
    ours = found.ranked[0]
    for k in RANKS:
        yield PRECISION[k], ours.precision[k], f"{ours.precision[k]:.1f} %"
    if ours.megabytes is not None:
        yield MEGABYTES, ours.megabytes, f"{ours.megabytes:.2f} MB"
    plain, tuned, *library = found.answered
    yield TUNED, tuned.macro - plain.macro, f"{tuned.macro:.2f} against {plain.macro:.2f} %"
    for other in library:
        lead = tuned.macro - other.macro
        yield LIBRARY, lead, f"{tuned.macro:.2f} against {other.macro:.2f} %"


def sections(found: Found) -> list[str]:
    ranked = [
        [
            each.name,
            *(f"{each.precision[k]:.1f}" for k in RANKS),
            f"{each.seconds:.0f}",
            "" if each.megabytes is None else f"{each.megabytes:.2f}",
        ]
        for each in found.ranked
    ]
    titles = ["machine", *(f"precision at {k}, %" for k in RANKS), "fit, s", "MB"]
    answered = [[each.name, f"{each.macro:.2f}", f"{each.micro:.2f}"] for each in found.answered]
    return [
        "## Many labels\n\ndelicious, 983 labels:\n\n" + table(titles, ranked),
        "rcv1subset1, 101 labels:\n\n" + table(["machine", "macro F1", "micro F1"], answered),
    ]

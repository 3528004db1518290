"""Distilled machines: rows of the table of targets, and a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.distil.measure import Taught
from benchmarks.parts.distil.targets import ACCURACY, LEAD, LESSONS, SPEED


def target_rows(found: dict[str, Taught]) -> Iterator[Row]:
    for who, taught in found.items():
        mean = float(np.mean(taught.students))
        yield ACCURACY[who], mean, _listed(taught.students)
        yield LEAD[who], mean - taught.teacher, f"{mean - taught.teacher:+.2f}"
        ratio = taught.teacher_time / taught.student_time
        yield SPEED[who], ratio, f"{ratio:.0f}"


def sections(found: dict[str, Taught]) -> list[str]:
    titles = [
        *("teacher", "data", "vectors", "teacher, %", "students, %", "from labels alone, %"),
        *("teacher, µs a row", "student, µs a row"),
    ]
    rows = [
        [
            who,
            LESSONS[who][0],
            str(LESSONS[who][1]),
            f"{taught.teacher:.2f}",
            _listed(taught.students),
            _listed(taught.alone),
            f"{taught.teacher_time:.1f}",
            f"{taught.student_time:.2f}",
        ]
        for who, taught in found.items()
    ]
    return [
        "## Distilled machines\n\nTest accuracy; times of one thread, all test rows at once, of "
        "students that were compiled.\n\n" + table(titles, rows)
    ]


def _listed(scores: list[float]) -> str:
    each = ", ".join(f"{score:.2f}" for score in scores)
    return f"{np.mean(scores):.2f} ± {np.std(scores):.2f} ({each})"

"""Prequential accuracy as rows of the table of targets, and as a table of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.prequential.measure import BUDGET, LAST, Run
from benchmarks.parts.prequential.targets import ACCURACY, TIME


def target_rows(found: list[Run]) -> Iterator[Row]:
    ours = [run for run in found if "redundant" in run.learner]
    if not ours:
        return
    accuracies = [run.accuracy for run in ours]
    trees = [run for run in found if run.learner.startswith("river")]
    beside = ""
    if trees:
        best = max(trees, key=lambda run: run.accuracy)
        beside = f"; {best.learner}: {best.accuracy:.2f} %, {best.microseconds:.0f} µs"
    listed = ", ".join(f"{each:.2f}" for each in accuracies)
    mean = float(np.mean(accuracies))
    yield ACCURACY, mean, f"{mean:.2f} % ({listed}){beside}"
    slowest = max(run.microseconds for run in ours)
    yield TIME, slowest, f"{slowest:.0f} µs"


def sections(found: list[Run]) -> list[str]:
    titles = ["learner", "seed", f"last {LAST}, %", "all, %", "µs a row"]
    rows = [
        [
            run.learner,
            run.seed,
            f"{run.accuracy:.2f}",
            f"{run.overall:.2f}",
            f"{run.microseconds:.0f}",
        ]
        for run in found
    ]
    about = f"Letter, 20,000 rows in random order; a budget of {BUDGET} patterns."
    return [f"## Row by row\n\n{about}\n\n" + table(titles, rows)] if found else []

"""Wrong labels as rows of the table of targets, and as a table of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.wrong_labels.measure import TITLES, Accuracies
from benchmarks.parts.wrong_labels.targets import GAINS


def target_rows(found: list[Accuracies]) -> Iterator[Row]:
    for each in found:
        gain = float(each.gains.mean())
        yield GAINS[each.share], gain, f"{_shown(each.gains)} points of {each.dataset}"


def sections(found: list[Accuracies]) -> list[str]:
    rows = [
        [
            each.dataset,
            f"{each.share:.0%}",
            *(_shown(each.accuracy[loss]) for loss in TITLES),
            *(_settings(each.parameters[loss]) for loss in TITLES),
        ]
        for each in found
    ]
    titles = ["data", "labels wrong", *TITLES.values()]
    titles += [f"parameters, {title}" for title in TITLES.values()]
    return ["## Wrong labels\n\nTest accuracy in percent, each seed.\n\n" + table(titles, rows)]


def _settings(parameters: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in parameters.items())


def _shown(values: Any) -> str:
    spread = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{spread} ({', '.join(f'{value:.2f}' for value in values)})"

"""Times of today beside earlier ones."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.earlier.measure import Times
from benchmarks.parts.earlier.targets import LEARNED, OTHERS


def target_rows(found: dict[str, Times]) -> Iterator[Row]:
    for target, learned in ((OTHERS, False), (LEARNED, True)):
        ratios = {name: each.ratio for name, each in found.items() if each.learned == learned}
        if ratios:
            worst = max(ratios, key=lambda name: ratios[name])
            yield target, ratios[worst], f"{ratios[worst]:.2f}x: {worst}"


def sections(found: dict[str, Times]) -> list[str]:
    rows = [
        [name, f"{each.earlier:.3f}", f"{each.now:.3f}", f"{each.ratio:.2f}"]
        for name, each in found.items()
    ]
    titles = ["", "earlier, s", "now, s", "now / earlier"]
    return [
        "## Processor time, today's code and an earlier version in turn\n\n" + table(titles, rows)
    ]

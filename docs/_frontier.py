"""Draw docs/frontier.png from a comparison: python docs/_frontier.py [build/comparing.json].

The comparison is docs/comparison.json unless another is given, which then takes its place.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from widemargin.report import Comparison

HERE = Path(__file__).parent
KEPT = HERE / "comparison.json"
OURS, OTHERS = "#0b5cad", "#70757d"
SHOWN, APART = 0.05, 0.24  # who is shown, by the share below the best; names, by points of accuracy
POINTS = 50.0  # of paper, for a point of accuracy


def draw(comparison: Comparison, path: Path) -> None:
    """Write the picture."""
    rows = [row for row in comparison.candidates if row.measured]
    best = max(row.mean for row in rows)
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    for panel, cost, title in (
        (panels[0], "batch_us", "in a batch"),
        (panels[1], "alone_us", "alone"),
    ):
        _draw_panel(panel, [row for row in rows if getattr(row, cost) > 0], cost, best)
        panel.set(xscale="log", xlabel=f"µs a row, {title}")
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("accuracy, %")
    figure.savefig(path, dpi=130)


def _draw_panel(panel: Any, rows: list[Any], cost: str, best: float) -> None:
    shown = [row for row in rows if row.mean > best - SHOWN]
    for kind, color, marker, side, align in (
        ("ours", OURS, "o", -9, "right"),
        ("peer", OTHERS, "s", 9, "left"),
    ):
        lowest, last = 101.0, 0.0
        for row in sorted((row for row in shown if row.kind == kind), key=lambda row: -row.mean):
            at = getattr(row, cost), 100 * row.mean
            is_near = 0.05 < at[0] / (last or at[0]) < 20
            # Names of neighbours do not lie on each other.
            lowest, last = min(lowest - APART, at[1]) if is_near else at[1], at[0]
            panel.plot(*at, marker=marker, color=color, markersize=6)
            panel.annotate(
                row.name,
                at,
                xytext=(side, POINTS * (lowest - at[1])),
                textcoords="offset points",
                horizontalalignment=align,
                verticalalignment="center",
                fontsize=8,
                color=color,
            )
    panel.margins(x=0.75)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        shutil.copyfile(sys.argv[1], KEPT)
    draw(Comparison.load(KEPT), HERE / "frontier.png")

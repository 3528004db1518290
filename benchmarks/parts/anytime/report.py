"""Accuracy against time: rows of the table of targets, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.anytime.measure import OURS, Curves
from benchmarks.parts.anytime.targets import BEHIND

FOLDER = Path("build") / "anytime"
_BUDGETS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def target_rows(found: list[Curves]) -> Iterator[Row]:
    for curves in found:
        behind, budget = curves.worst()
        yield BEHIND[curves.dataset], behind, f"{behind:+.2f} at {budget:.2f} s"


def sections(found: list[Curves]) -> list[str]:
    return [_section(curves) for curves in found]


def _section(curves: Curves) -> str:
    rows = []
    for budget in _BUDGETS:
        own, theirs = (curves.best(budget, is_ours=each) for each in (True, False))
        rows.append(
            [
                f"{budget:g}",
                "" if own is None else f"{own.accuracy:.2f}",
                "" if theirs is None else f"{theirs.accuracy:.2f}",
                "" if theirs is None else f"{theirs.machine}, {theirs.setting}",
            ]
        )
    titles = ["seconds", "accuracy, %", "best other, %", "which"]
    picture = _draw(curves)
    return f"## Any time: {curves.dataset}\n\n{table(titles, rows)}\n\nPicture: `{picture}`."


def _draw(curves: Curves) -> Path:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    for machine in dict.fromkeys(point.machine for point in curves.points):
        own = sorted(
            (point.seconds, point.accuracy) for point in curves.points if point.machine == machine
        )
        style = {"linewidth": 3, "color": "black"} if machine == OURS else {}
        axes.plot(*zip(*own, strict=True), "o-", label=machine, **style)
    axes.set(xscale="log", xlabel="seconds", ylabel="accuracy, %", title=curves.dataset)
    top = max(point.accuracy for point in curves.points)
    axes.set_ylim(top - 15, top + 1)
    axes.legend(fontsize="small")
    figure.tight_layout()
    FOLDER.mkdir(parents=True, exist_ok=True)
    name = FOLDER / f"{curves.dataset}.png"
    figure.savefig(name, dpi=110)
    plt.close(figure)
    return name

"""Linear machines row by row: rows of the table of targets, tables of their own, and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.stochastic.measure import LIBLINEAR, Found, Race
from benchmarks.parts.stochastic.paths import MACHINES, Path
from benchmarks.parts.stochastic.targets import (
    AGAINST_LIBLINEAR,
    AGAINST_SGD,
    OF_OBJECTIVES,
    OF_SECONDS,
    OF_STEP_COST,
    OF_STEPS,
)
from benchmarks.text_data import NEWS

FOLDER = FilePath("build") / "stochastic"
_FIXED_ACCURACY = 75.0
_FIXED_STEPS = 10_000
_JOINT = ("SVM", "LR", "perceptron")


def target_rows(found: Found) -> Iterator[Row]:
    for race in found.races:
        ratio = race.theirs / race.ours
        at_least = "" if race.rival_reaches else "at least "
        words = f"{at_least}{ratio:.1f}x ({race.ours * 1e3:.0f} ms)"
        value = ratio if race.we_reach else None
        if (race.dataset, race.rival) in AGAINST_SGD:
            yield AGAINST_SGD[race.dataset, race.rival], value, words
        elif race.rival == LIBLINEAR:
            yield AGAINST_LIBLINEAR, value, words
            yield OF_SECONDS, race.ours if race.we_reach else None, f"{race.ours:.3f} s"
    for loss, excess in found.excess.items():
        yield OF_OBJECTIVES[loss], excess, f"{excess:.4f}"
    if found.costs:
        cached, all_rows = (
            max(costs) / min(costs)
            for costs in (
                [each.cached for each in found.costs],
                [each.microseconds for each in found.costs],
            )
        )
        words = f"{all_rows:.2f}x; {cached:.2f}x where rows are in a cache"
        yield OF_STEP_COST, all_rows, words
    steps = {
        path.n_rows: path.reach(_FIXED_ACCURACY)
        for path in found.paths
        if (path.dataset, path.machine) == (NEWS, "SVM")
    }
    few, many = steps.get(2000), steps.get(11314)
    if few is not None and many is not None:
        ratio = many[0] / few[0]
        yield OF_STEPS, ratio, f"{ratio:.2f}x ({few[0]} and {many[0]} steps)"


def sections(found: Found) -> list[str]:
    parts = []
    if found.races:
        titles = ["data", "rival", "accuracy", "s", "s, rival", "passes", "rival's passes or tol"]
        parts.append("## Time to an accuracy\n\n" + table(titles, map(_race, found.races)))
    if found.costs:
        rows = [
            [each.n_rows, f"{each.cached:.2f}", f"{each.microseconds:.2f}"] for each in found.costs
        ]
        titles = ["rows", "µs, drawn from the first 10,000", "µs, drawn from all"]
        parts.append("## Cost of a step\n\n" + table(titles, rows))
    if found.paths:
        parts.append(_paths(found.paths))
        pictures = _draw(found)
        parts.append("Pictures: " + ", ".join(f"`{each}`" for each in pictures) + ".")
    if found.planes:
        titles = ["rows", "s", "s, cutting plane", "accuracy", "accuracy, cutting plane"]
        rows = [
            [
                *(each.n_rows, f"{each.ours:.3f}", f"{each.theirs:.2f}"),
                *(f"{each.our_accuracy:.1f}", f"{each.their_accuracy:.1f}"),
            ]
            for each in found.planes
        ]
        parts.append("## Against cutting planes, linear kernel\n\n" + table(titles, rows))
    return parts


def _race(race: Race) -> list[str]:
    late = {"us": race.we_reach, "the rival": race.rival_reaches}
    missing = " or ".join(name for name, is_there in late.items() if not is_there)
    reached = f"{race.wanted:.1f}" + (f", not reached by {missing}" if missing else "")
    seconds = f"{race.ours:.3f}", f"{race.theirs:.2f}"
    return [
        race.dataset,
        race.rival,
        reached,
        *seconds,
        f"{race.our_passes}",
        f"{race.their_setting:g}",
    ]


def _paths(paths: list[Path]) -> str:
    rows = []
    for path in paths:
        reached = path.reach(_FIXED_ACCURACY)
        at = max(i for i, steps in enumerate(path.steps) if steps <= _FIXED_STEPS)
        told = ("", "") if reached is None else (f"{reached[0]}", f"{1e3 * reached[1]:.1f}")
        rows.append([path.dataset, path.machine, path.n_rows, *told, f"{path.accuracies[at]:.1f}"])
    titles = ["data", "machine", "rows", f"steps to {_FIXED_ACCURACY:g} %", "ms", "accuracy, %"]
    return f"## Inverse time dependency (accuracy after {_FIXED_STEPS} steps)\n\n" + table(
        titles, rows
    )


def _draw(found: Found) -> list[str]:
    """Draw what the paper's Figures 1 to 4 show, and return the names of the files."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    FOLDER.mkdir(parents=True, exist_ok=True)
    names = []
    datasets = list(dict.fromkeys(path.dataset for path in found.paths))
    for dataset in datasets:
        paths = [path for path in found.paths if path.dataset == dataset]
        figure, axes = plt.subplots(1, 3, figsize=(15, 4))
        for machine in MACHINES:
            own = [path for path in paths if path.machine == machine]
            if machine in _JOINT:
                _time_to_accuracy(axes[0], machine, own)
                _accuracy_at_steps(axes[1], machine, own)
            largest = max(own, key=lambda path: path.n_rows)
            style = "-" if machine in _JOINT else "--"
            axes[2].plot(largest.steps, largest.accuracies, style, label=machine)
        axes[0].set(
            xscale="log", yscale="log", xlabel="rows", ylabel="ms to the accuracy of few rows"
        )
        axes[1].set(xscale="log", xlabel="rows", ylabel="accuracy after a third of the steps, %")
        axes[2].set(
            xscale="log", xlabel="steps", ylabel="accuracy, %", title="joint, and one vs all"
        )
        for each in axes:
            each.legend()
        figure.suptitle(dataset)
        figure.tight_layout()
        name = FOLDER / f"{dataset}.png"
        figure.savefig(name, dpi=110)
        plt.close(figure)
        names.append(str(name))
    if found.planes:
        figure, axes_ = plt.subplots(figsize=(5, 4))
        sizes = [each.n_rows for each in found.planes]
        axes_.plot(sizes, [each.theirs for each in found.planes], "s-", label="cutting plane")
        axes_.plot(sizes, [each.ours for each in found.planes], "o-", label="row by row")
        axes_.set(yscale="log", xlabel="rows", ylabel="s")
        axes_.legend()
        figure.tight_layout()
        name = FOLDER / "cutting_plane.png"
        figure.savefig(name, dpi=110)
        plt.close(figure)
        names.append(str(name))
    return names


def _time_to_accuracy(axes: object, machine: str, paths: list[Path]) -> None:
    """Draw the time to what the fewest rows reach at last."""
    wanted = min(path.accuracies[-1] for path in paths)
    found = [(path.n_rows, path.reach(wanted)) for path in paths]
    points = [(size, 1e3 * reached[1]) for size, reached in found if reached is not None]
    axes.plot(*zip(*points, strict=True), "o-", label=machine)  # type: ignore[attr-defined]


def _accuracy_at_steps(axes: object, machine: str, paths: list[Path]) -> None:
    points = []
    for path in paths:
        at = max(i for i, steps in enumerate(path.steps) if 3 * steps <= path.steps[-1])
        points.append((path.n_rows, path.accuracies[at]))
    axes.plot(*zip(*points, strict=True), "o-", label=machine)  # type: ignore[attr-defined]

"""Tuning: the same for every machine, on training rows only.

Sets of fewer than 6000 training rows are tuned by 5-fold cross-validation, twice, larger ones on
fixed fifths of their training rows: as many as make about 4000 rows, so that a difference of half a
point is more than noise. The grid is a product of geometric axes. While its best point lies on
an edge, the axis gets one point more on that side, so that no optimum lies on an edge. What was
found, and the grid that found it, is kept in tuned.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedShuffleSplit

from benchmarks.data import Dataset
from benchmarks.models import MODELS, Model
from benchmarks.trials import run, say

FILE = Path(__file__).with_name("tuned.json")
FEW_ROWS = 6000
MOST_POINTS = 12  # on an axis; an optimum that is still on an edge then is reported as such

Point = tuple[int, ...]


@dataclass(frozen=True)
class Tuned:
    chosen: dict[str, float]
    validation: float  # accuracy there, percent
    on_edge: list[str]  # parameters whose grid ended before their optimum was inside
    grid: dict[str, list[float]]
    scores: list[Any]  # validation accuracy at each point, axes nested in the order of the grid
    judged_by: str = "not recorded"  # protocol() at the time


def splits(X: np.ndarray, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    if len(y) < FEW_ROWS:
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0)
    else:
        folds = StratifiedShuffleSplit(_fifths(len(y)), test_size=0.2, random_state=0)
    return list(folds.split(X, y))


def _fifths(n_rows: int) -> int:
    return max(1, round(4000 / (0.2 * n_rows)))


def protocol(n_rows: int) -> str:
    if n_rows < FEW_ROWS:
        return "5-fold cross-validation, twice"
    fifths = _fifths(n_rows)
    return "a fixed fifth of the training rows" + (f", {fifths} times" if fifths > 1 else "")


def tune(model: Model, dataset: Dataset, size: int, near: Tuned | None = None) -> Tuned:
    """Search the grid for one size. ``near``, the result of another size, is where to begin."""
    names = list(model.axes)
    bases = {name: model.axes[name].base for name in names}
    axes = {name: _begin(model, name, dataset, near) for name in names}
    scores: dict[Point, float] = {}
    while True:
        _evaluate(model, dataset, size, axes, scores)
        best = _best(axes, scores)
        edges = _edges(axes, best)
        open_edges = {name: end for name, end in edges.items() if len(axes[name]) < MOST_POINTS}
        if not open_edges:
            break
        for name, end in open_edges.items():
            exponents = axes[name]
            axes[name] = (
                [exponents[0] - 1, *exponents] if end < 0 else [*exponents, exponents[-1] + 1]
            )
    chosen = {name: bases[name] ** e for name, e in zip(names, best, strict=True)}
    grid = {name: [bases[name] ** e for e in axes[name]] for name in names}
    table = np.array([round(scores[point], 3) for point in product(*axes.values())])
    shape = [len(axis) for axis in axes.values()]
    say(f"    {chosen}: {scores[best]:.2f} % in validation, {len(scores)} points")
    return Tuned(
        chosen,
        round(scores[best], 3),
        list(edges),
        grid,
        table.reshape(shape).tolist(),
        protocol(len(dataset.y)),
    )


def _begin(model: Model, name: str, dataset: Dataset, near: Tuned | None) -> list[int]:
    axis = model.axes[name]
    if near is None:
        return axis.begin(dataset.X)
    centre = round(float(np.log(near.chosen[name]) / np.log(axis.base)))
    return [centre - 1, centre, centre + 1]


def _evaluate(
    model: Model,
    dataset: Dataset,
    size: int,
    axes: dict[str, list[int]],
    scores: dict[Point, float],
) -> None:
    """Fill in the points of the grid that have no score yet."""
    X, y = dataset.X, dataset.y
    folds = splits(X, y)
    fresh = [point for point in product(*axes.values()) if point not in scores]
    jobs = []
    for point in fresh:
        values = {
            name: model.axes[name].base ** exponent
            for name, exponent in zip(axes, point, strict=True)
        }
        for seed, (fitted, held_out) in enumerate(folds):
            estimator = model.build(size, seed, **values)
            jobs.append((estimator, X[fitted], y[fitted], X[held_out], y[held_out]))
    accuracies = np.array([trial.accuracy for trial in run(jobs)]).reshape(len(fresh), len(folds))
    scores.update(zip(fresh, accuracies.mean(axis=1).tolist(), strict=True))


def _best(axes: dict[str, list[int]], scores: dict[Point, float]) -> Point:
    """Return the best point; among equals one inside the grid, then the smoothest machine."""
    return max(
        scores, key=lambda point: (scores[point], -len(_edges(axes, point)), [-e for e in point])
    )


def _edges(axes: dict[str, list[int]], point: Point) -> dict[str, int]:
    """Return the axes on whose end the point lies: -1 for the lower end, 1 for the upper."""
    ends = {}
    for (name, exponents), exponent in zip(axes.items(), point, strict=True):
        if exponent in (exponents[0], exponents[-1]):
            ends[name] = -1 if exponent == exponents[0] else 1
    return ends


class TunedFile:
    """The parameters found so far: data set, then model, then size."""

    def __init__(self, path: Path = FILE) -> None:
        self.path = path

    def get(self, dataset: str, model: str, size: int) -> tuple[int, Tuned]:
        """Return the size and parameters tuned for this size, or the nearest below (else above)."""
        found = self._read().get(dataset, {}).get(model, {})
        if not found:
            raise SystemExit(
                f"{self.path.name} has no parameters of {model} for {dataset}: run with --tune."
            )
        sizes = [int(key) for key in found]
        nearest = max((tuned for tuned in sizes if tuned <= size), default=min(sizes))
        return nearest, Tuned(**found[str(nearest)])

    def has(self, dataset: str, model: str) -> bool:
        return bool(self._read().get(dataset, {}).get(model))

    def put(self, dataset: str, model: str, size: int, tuned: Tuned) -> None:
        """Keep a result, in the file at once: a long search loses nothing when it is stopped."""
        everything = self._read()
        everything.setdefault(dataset, {}).setdefault(model, {})[str(size)] = asdict(tuned)
        self.path.write_text(_compact(everything), encoding="utf-8")

    def _read(self) -> dict[str, dict[str, dict[str, Any]]]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}


def _compact(found: Any) -> str:
    """Write JSON with a line for each list of numbers, not for each number."""
    text = json.dumps(found, indent=1)
    return re.sub(r"\[[^\[\]{}]*\]", lambda match: " ".join(match.group().split()), text) + "\n"


def tune_all(
    dataset: Dataset, sizes_of: dict[str, list[int]], models: Mapping[str, Model] = MODELS
) -> None:
    """Tune each named model on a data set at its sizes; each size begins near the one before."""
    file = TunedFile()
    for name, sizes in sizes_of.items():
        near = None
        for size in sizes:
            say(f"Tuning {name} on {dataset.name}, size {size}")
            near = tune(models[name], dataset, size, near)
            file.put(dataset.name, name, size, near)

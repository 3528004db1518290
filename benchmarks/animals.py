"""Animals with Attributes: images of 50 animals, 10 of which are never learned from.

Three kinds of histograms describe an image, and 85 attributes an animal. A quick run without data
sets has animals that are made up.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.data import VARIABLE, is_available
from benchmarks.label_data import load_labels
from benchmarks.settings import Settings

HISTOGRAMS = ("surf", "lss", "phog")


@dataclass(frozen=True)
class Animals:
    """Images of known animals, images of new ones, and what is known of all of them.

    Rows have the histograms of an image side by side, each summing to 1; ``columns`` says which
    are whose. ``y`` and ``y_new`` are places in ``names``. ``graded`` has an attribute of an animal
    as people judged it, ``binary`` whether it counts as there.
    """

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    columns: dict[str, slice]
    names: list[str]
    graded: np.ndarray
    binary: np.ndarray

    def rows(self, which: np.ndarray) -> Animals:
        """Return the same with some of the known rows."""
        return replace(self, X=self.X[which], y=self.y[which])


def load_animals(settings: Settings) -> Animals | None:
    """Return all images; in a quick run few of each animal. None where they are not there."""
    if not is_available():
        return _made_up() if settings.is_quick else None
    folder = Path(os.environ[VARIABLE]) / "multilabel"
    # All rows, whatever the settings: files are sorted by animal.
    parts = {name: load_labels(f"awa_{name}", Settings()) for name in HISTOGRAMS}
    known, new = (
        np.hstack([_sum_to_one(getattr(part, rows)) for part in parts.values()])
        for rows in ("X", "X_test")
    )
    ends = np.cumsum([part.X.shape[1] for part in parts.values()])
    columns = {
        name: slice(int(end - part.X.shape[1]), int(end))
        for (name, part), end in zip(parts.items(), ends, strict=True)
    }
    with (folder / "awa_rows.csv").open(encoding="utf-8") as file:
        of_rows = [(row["split"], int(row["class_index"])) for row in csv.DictReader(file)]
    y, y_new = (
        np.array([number for split, number in of_rows if split == wanted])
        for wanted in ("train", "test")
    )
    names, graded = _table(folder / "awa_class_attributes_continuous.csv")
    _, binary = _table(folder / "awa_class_attributes_binary.csv")
    # A judgement that is missing is -1.
    animals = Animals(known, y, new, y_new, columns, names, np.maximum(graded, 0.0), binary)
    if not settings.is_quick:
        return animals
    few, few_new = (
        np.concatenate([np.flatnonzero(each == animal)[:5] for animal in np.unique(each)])
        for each in (y, y_new)
    )
    return replace(animals.rows(few), X_new=new[few_new], y_new=y_new[few_new])


def _sum_to_one(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-12)


def _table(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the names of the animals and a row of attributes for each."""
    with path.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    return [row[0] for row in rows], np.array([row[2:] for row in rows], dtype=np.float64)


def _made_up() -> Animals:
    rng = np.random.RandomState(0)
    graded = rng.rand(14, 6)
    rows = np.abs(rng.randn(6, 30))
    y = np.repeat(np.arange(14), 8)  # sorted, as the files are
    X = _sum_to_one(graded[y] @ rows + 0.3 * rng.rand(len(y), 30))
    new = y >= 10
    columns = {name: slice(10 * k, 10 * k + 10) for k, name in enumerate(HISTOGRAMS)}
    names = [f"animal {number}" for number in range(14)]
    return Animals(
        X[~new], y[~new], X[new], y[new], columns, names, graded, (graded > 0.5).astype(float)
    )

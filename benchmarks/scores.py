"""Test accuracy of a machine with its tuned parameters, over seeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Dataset
from benchmarks.models import MODELS, Model
from benchmarks.trials import Trial, run
from benchmarks.tuning import Tuned, TunedFile


@dataclass(frozen=True)
class Score:
    """Test accuracy of one machine, over seeds where it is random."""

    title: str
    size: int | None
    trials: list[Trial]

    @property
    def mean(self) -> float:
        return float(np.mean([trial.accuracy for trial in self.trials]))

    def __str__(self) -> str:
        values = [trial.accuracy for trial in self.trials]
        if len(values) == 1:
            return f"{values[0]:.2f}"
        spread = np.std(values, ddof=1)
        return f"{self.mean:.2f} ± {spread:.2f} ({min(values):.2f} to {max(values):.2f})"


@dataclass(frozen=True)
class Search:
    """How one machine was tuned."""

    title: str
    size: int | None
    tuned: Tuned


def score_over_seeds(
    name: str,
    dataset: Dataset,
    size: int,
    file: TunedFile,
    seeds: tuple[int, ...],
    models: Mapping[str, Model] = MODELS,
) -> Score:
    model = models[name]
    _, tuned = file.get(dataset.name, name, size)
    jobs = [
        (
            model.build(size, seed, **tuned.chosen),
            dataset.X,
            dataset.y,
            dataset.X_test,
            dataset.y_test,
        )
        for seed in (seeds if model.is_random else seeds[:1])
    ]
    return Score(model.title, size if model.has_size else None, run(jobs))

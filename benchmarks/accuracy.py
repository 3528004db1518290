"""Accuracy at a given number of vectors, and how many vectors Nystroem needs for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.data import Dataset, load
from benchmarks.models import MODELS, SELECTED, full_svc
from benchmarks.settings import Settings
from benchmarks.targets import ACCURACY, FEWER_VECTORS, AccuracyTarget
from benchmarks.trials import Trial, run, say
from benchmarks.tuning import Tuned, TunedFile

SMALLEST_FACTOR, LARGEST_FACTOR = 1 / 8, 8  # Nystroem sizes tried, in multiples of ours


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


@dataclass(frozen=True)
class SetResult:
    """All that was measured on one data set; ours is the first of the scores."""

    target: AccuracyTarget
    scores: list[Score]
    searches: list[Search]
    nystroem_curve: dict[int, Score] | None
    nystroem_needed: float | None

    @property
    def ours(self) -> Score:
        return self.scores[0]


def measure(settings: Settings, wanted: list[str]) -> list[SetResult]:
    return [_measure_set(target, settings) for target in ACCURACY if target.dataset in wanted]


def _measure_set(target: AccuracyTarget, settings: Settings) -> SetResult:
    dataset = load(target.dataset).thinned(settings.max_rows)
    file = TunedFile()
    scores, searches = [], []
    for name in SELECTED:
        model = MODELS[name]
        say(f"Accuracy on {dataset.name}: {model.title}")
        scores.append(score_over_seeds(name, dataset, target.n_vectors, file, settings.seeds))
        _, tuned = file.get(dataset.name, name, target.n_vectors)
        searches.append(Search(model.title, scores[-1].size, tuned))
    say(f"Accuracy on {dataset.name}: SVC")
    svc = run([(full_svc(dataset.name), dataset.X, dataset.y, dataset.X_test, dataset.y_test)])
    scores.append(Score("SVC, all the support vectors that it wants", svc[0].n_support, svc))

    curve, needed = None, None
    if dataset.name in FEWER_VECTORS:
        by_size = {target.n_vectors: scores[SELECTED.index("nystroem")]}
        curve, needed = _nystroem_needed(
            scores[0].mean,
            by_size,
            lambda size: score_over_seeds("nystroem", dataset, size, file, settings.seeds),
            largest=len(dataset.y),
        )
        for size in curve:
            tuned_size, tuned = file.get(dataset.name, "nystroem", size)
            if tuned_size == size and size != target.n_vectors:
                searches.append(Search(MODELS["nystroem"].title, size, tuned))
    return SetResult(target, scores, searches, curve, needed)


def score_over_seeds(
    name: str, dataset: Dataset, size: int, file: TunedFile, seeds: tuple[int, ...]
) -> Score:
    model = MODELS[name]
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


def _nystroem_needed(
    accuracy: float, curve: dict[int, Score], score: Callable[[int], Score], largest: int
) -> tuple[dict[int, Score], float | None]:
    """Double (or halve) the size until the accuracy lies between two sizes, then interpolate.

    Returns the sizes tried and the size needed; None where the search ended without a crossing.
    """
    (ours,) = curve
    upwards = curve[ours].mean < accuracy
    size = ours
    while True:
        before, size = size, size * 2 if upwards else size // 2
        if not SMALLEST_FACTOR * ours <= size <= min(LARGEST_FACTOR * ours, largest):
            return curve, None
        say(f"    Nystroem with {size} components")
        curve[size] = score(size)
        if (curve[size].mean >= accuracy) == upwards:
            break
    below, above = sorted((before, size))
    low, high = curve[below].mean, curve[above].mean
    share = (accuracy - low) / (high - low) if high > low else 1.0
    return curve, below * (above / below) ** share

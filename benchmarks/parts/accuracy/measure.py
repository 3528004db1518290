"""Accuracy at a given number of vectors, and how many vectors Nystroem needs for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.models import MODELS, SELECTED, full_svc
from benchmarks.parts.accuracy.targets import ACCURACY, FEWER_VECTORS
from benchmarks.scores import Score, Search, score_over_seeds
from benchmarks.settings import Settings
from benchmarks.targets import AccuracyTarget
from benchmarks.trials import run, say
from benchmarks.tuning import TunedFile

SMALLEST_FACTOR, LARGEST_FACTOR = 1 / 8, 8  # Nystroem sizes tried, in multiples of ours


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
    dataset = settings.load(target.dataset)
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

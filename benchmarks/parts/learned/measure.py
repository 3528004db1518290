"""A learned basis: how accurate it is at a size, and how many vectors others need for the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks import plans
from benchmarks.data import Dataset
from benchmarks.models import MODELS, SVC_PARAMETERS, full_svc, learned
from benchmarks.parts.learned.targets import LEAD_SETS
from benchmarks.plans import LEARNED_PLAN, LEARNED_SIZES
from benchmarks.scores import Score, Search, score_over_seeds
from benchmarks.settings import Settings
from benchmarks.trials import run, say
from benchmarks.tuning import TunedFile

_NEAR = 0.5  # points below SVC that count as about as accurate
_LONG = ("mnist",)  # where rivals are fitted once, not for every seed


@dataclass
class SetScores:
    """Test accuracies on one set: by machine, then by size."""

    dataset: str
    tuned: dict[str, dict[int, Score]] = field(default_factory=dict)
    untuned: dict[str, dict[int, Score]] = field(default_factory=dict)
    svc: Score | None = None
    searches: list[Search] = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, ...]:
        return LEARNED_SIZES[self.dataset]

    def leads(self, of: dict[str, dict[int, Score]]) -> list[float]:
        """Return the lead over MLPClassifier at each size, in points."""
        return [of["learned"][size].mean - of["mlp"][size].mean for size in self.sizes]

    def greedy_needed(self, size: int) -> float | None:
        """Return how many greedily chosen vectors are as accurate as so many learned ones."""
        return size_needed(self.tuned["sparse"], self.tuned["learned"][size].mean)

    def near_svc(self) -> tuple[int, Score] | None:
        """Return the fewest learned vectors that are about as accurate as SVC."""
        assert self.svc is not None
        for size, score in sorted(self.tuned["learned"].items()):
            if score.mean >= self.svc.mean - _NEAR:
                return size, score
        return None


def measure(settings: Settings, wanted: list[str]) -> list[SetScores]:
    return [_measure_set(name, settings) for name in LEARNED_SIZES if name in wanted]


def _measure_set(name: str, settings: Settings) -> SetScores:
    dataset = settings.load(name, plans.precision(name))
    file = TunedFile()
    found = SetScores(name)
    for model, sizes in LEARNED_PLAN.sizes_of(name).items():
        if model == "svc":
            continue
        say(f"Learned basis on {name}: {MODELS[model].title}")
        ours = model in ("learned", "sparse")
        seeds = settings.seeds[:1] if name in _LONG and not ours else settings.seeds
        found.tuned[model] = {}
        for size in sizes:
            found.tuned[model][size] = score_over_seeds(model, dataset, size, file, seeds)
            tuned_size, tuned = file.get(name, model, size)
            shown = tuned_size if MODELS[model].has_size else None
            found.searches.append(Search(MODELS[model].title, shown, tuned))
    if name in LEAD_SETS:
        say(f"Learned basis on {name}: nothing tuned")
        for model in ("learned", "mlp"):
            found.untuned[model] = {
                size: _untuned(model, dataset, size, settings.seeds) for size in found.sizes
            }
    if name not in _LONG:
        say(f"Learned basis on {name}: SVC")
        found.svc = _svc(dataset, file)
    return found


def _untuned(model: str, dataset: Dataset, size: int, seeds: tuple[int, ...]) -> Score:
    """Score a machine of which only the size and the seed are set."""

    def build(seed: int) -> Any:
        if model == "learned":
            return learned(size, seed)
        return make_pipeline(StandardScaler(), MLPClassifier((size,), random_state=seed))

    rows = dataset.X, dataset.y, dataset.X_test, dataset.y_test
    trials = run([(build(seed), *rows) for seed in seeds])
    return Score(f"{MODELS[model].title}, nothing tuned", size, trials)


def _svc(dataset: Dataset, file: TunedFile) -> Score:
    if dataset.name in SVC_PARAMETERS:
        machine = full_svc(dataset.name)
    else:
        _, tuned = file.get(dataset.name, "svc", 0)
        machine = MODELS["svc"].build(0, 0, **tuned.chosen)
    trials = run([(machine, dataset.X, dataset.y, dataset.X_test, dataset.y_test)])
    return Score(MODELS["svc"].title, trials[0].n_support, trials)


def size_needed(curve: dict[int, Score], accuracy: float) -> float | None:
    """Return the size at which a curve first reaches an accuracy, between sizes by interpolation.

    None where it does not; the least size where that is enough already.
    """
    sizes = sorted(curve)
    if curve[sizes[0]].mean >= accuracy:
        return float(sizes[0])
    for below, above in pairwise(sizes):
        low, high = curve[below].mean, curve[above].mean
        if high >= accuracy:
            share = (accuracy - low) / (high - low)
            return float(below * (above / below) ** share)
    return None

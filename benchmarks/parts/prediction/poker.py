"""Poker: 25,010 rows to learn from, a million to predict (Ganu et al. 2013, section 5.1.2).

Half of the hands hold nothing, so that a constant is right on half of them: it stands beside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.models import MODELS, sparse
from benchmarks.parts.prediction.throughput import Machine, many_rows
from benchmarks.plans import POKER, POKER_VECTORS
from benchmarks.scores import Score, score_over_seeds
from benchmarks.settings import Settings
from benchmarks.trials import fit_and_score, say
from benchmarks.tuning import Tuned, TunedFile

N_FEATURES = 10


@dataclass(frozen=True)
class PokerResult:
    """Test accuracies, ours first, and the machine of the first seed to be timed."""

    scores: list[Score]
    constant: float  # accuracy of the largest class of the training rows, percent
    tuned: Tuned
    machine: Machine


def measure(settings: Settings) -> PokerResult:
    dataset = settings.load_whole(POKER, "float32").with_rows(
        settings.max_rows, many_rows(settings)
    )
    # A hand is five cards of two numbers. What stands in for it in a quick run has more.
    dataset = replace(dataset, X=dataset.X[:, :N_FEATURES], X_test=dataset.X_test[:, :N_FEATURES])
    file = TunedFile()
    _, tuned = file.get(POKER, "sparse", POKER_VECTORS)
    say(f"Accuracy on {POKER}: {MODELS['sparse'].title}")
    machines = [sparse(POKER_VECTORS, seed, n_jobs=-1, **tuned.chosen) for seed in settings.seeds]
    rows = dataset.X, dataset.y, dataset.X_test, dataset.y_test
    trials = [fit_and_score(machine, *rows) for machine in machines]
    scores = [Score(MODELS["sparse"].title, POKER_VECTORS, trials)]
    for name, model in MODELS.items():
        if name != "sparse" and file.has(POKER, name):
            say(f"Accuracy on {POKER}: {model.title}")
            scores.append(score_over_seeds(name, dataset, POKER_VECTORS, file, settings.seeds))
    classes, counts = np.unique(dataset.y, return_counts=True)
    constant = 100.0 * float(np.mean(dataset.y_test == classes[counts.argmax()]))
    first = machines[0]
    return PokerResult(
        scores,
        constant,
        tuned,
        Machine(POKER, first.model_, first.classes_, dataset.X_test),
    )

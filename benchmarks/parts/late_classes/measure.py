"""Streams of a data set whose classes come one after another, with and without ``classes``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import KernelClassifier

DATASETS = ("letter.scale",)
BATCH = 100


@dataclass(frozen=True)
class Streams:
    """Test accuracy in percent of both streams, one for each seed."""

    dataset: str
    order: str
    announced: list[float]
    unannounced: list[float]

    @property
    def gains(self) -> np.ndarray:
        """Points by which the stream is ahead that had to find out."""
        return np.subtract(self.unannounced, self.announced)


def measure(settings: Settings, wanted: list[str]) -> list[Streams]:
    """Learn rows class by class, and in random order, in batches."""
    found = []
    for name in [each for each in DATASETS if each in wanted]:
        dataset = settings.load(name)
        for order in ("by class", "in random order"):
            say(f"A stream of {name}, rows {order}")
            scores: dict[bool, list[float]] = {True: [], False: []}
            for seed in settings.seeds:
                rows = np.random.RandomState(seed).permutation(len(dataset.y))
                if order == "by class":
                    rows = rows[np.argsort(dataset.y[rows], kind="stable")]
                for is_announced, each in scores.items():
                    machine = KernelClassifier(C=10.0, gamma=4.0, random_state=seed)
                    classes = np.unique(dataset.y) if is_announced else None
                    for start in range(0, len(rows), BATCH):
                        some = rows[start : start + BATCH]
                        machine.partial_fit(dataset.X[some], dataset.y[some], classes=classes)
                    each.append(100.0 * machine.score(dataset.X_test, dataset.y_test))
            found.append(Streams(name, order, scores[True], scores[False]))
    return found

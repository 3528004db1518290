"""Both losses fitted to the same wrong labels; test labels are right.

    python -m benchmarks.parts.wrong_labels.measure    tunes, and rewrites tuned.json beside it

Labels are flipped to another class, drawn evenly. The same is done without a flip, to see what the
robust loss costs where there is nothing to be robust against. Both losses are tuned on training
rows as they are, wrong labels included: some are fitted, others judge. Either loss gets as many
fits: first at points that are spread over the box of parameters, then at some about the best.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from benchmarks.data import Dataset, load
from benchmarks.settings import Settings
from benchmarks.trials import run, say
from widemargin import SparseKernelClassifier
from widemargin.losses import HuberisedWestonWatkins, Loss, WestonWatkins

FILE = Path(__file__).with_name("tuned.json")
N_VECTORS = 150
N_ROWS = 5_000  # that are learned from
SHARES = (0.1, 0.0)  # of wrong labels
TITLES = {"plain": "squared hinge", "huberised": "Huberised hinge"}

TUNED_ON, JUDGED_BY = 2_500, 5_000  # training rows; fewer judge where there are not so many
TUNED_VECTORS = 100
SPREAD, ABOUT_THE_BEST = 12, 8  # points that either loss is tried at
BOXES = {  # by data set
    "letter.scale": {"C": (1.0, 200.0), "gamma": (0.2, 1.6), "delta": (0.25, 2.0)},
}


@dataclass(frozen=True)
class Accuracies:
    """Test accuracy of either loss with a share of wrong labels, one for each seed."""

    dataset: str
    share: float
    parameters: dict[str, dict[str, float]]
    accuracy: dict[str, list[float]]

    @property
    def gains(self) -> np.ndarray:
        """Points by which the Huberised hinge is ahead: seeds have the same wrong labels."""
        return np.subtract(self.accuracy["huberised"], self.accuracy["plain"])


def flipped(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return labels of which a share has become another class, each with the same probability."""
    # Another stream than that of whoever orders the rows by the same seed: the rows that come first
    # would be the wrong ones.
    rng = np.random.default_rng([seed, 1])
    classes, numbers = np.unique(y, return_inverse=True)
    wrong = rng.permutation(len(y))[: round(share * len(y))]
    numbers[wrong] = (numbers[wrong] + rng.integers(1, len(classes), len(wrong))) % len(classes)
    return classes[numbers]


def machine(n_vectors: int, seed: int, parameters: dict[str, float]) -> SparseKernelClassifier:
    """Return the machine of these parameters; one that has a delta is Huberised."""
    settings = dict(parameters)
    delta = settings.pop("delta", None)
    loss: Loss = WestonWatkins() if delta is None else HuberisedWestonWatkins(delta)
    return SparseKernelClassifier(n_vectors, loss=loss, random_state=seed, **settings)


def tune(dataset: Dataset, share: float) -> dict[str, Any]:
    """Return the best parameters of either loss, and all that was tried."""
    order = np.random.RandomState(99).permutation(len(dataset.y))
    fitted, judging = order[:TUNED_ON], order[TUNED_ON : TUNED_ON + JUDGED_BY]
    y = flipped(dataset.y, share, 99)
    parts = dataset.X[fitted], y[fitted], dataset.X[judging], y[judging]
    box = BOXES[dataset.name]
    found = {}
    for name in TITLES:
        axes = {axis: box[axis] for axis in box if axis != "delta" or name == "huberised"}
        low, high = np.log(list(axes.values())).T
        tried: list[tuple[float, dict[str, float]]] = []

        def judge(unit, axes=axes, low=low, high=high, tried=tried):
            points = np.exp(low + np.clip(unit, 0.0, 1.0) * (high - low)).tolist()
            each = [dict(zip(axes, point, strict=True)) for point in points]
            trials = run([(machine(TUNED_VECTORS, 99, one), *parts) for one in each])
            tried += [(one.accuracy, point) for one, point in zip(trials, each, strict=True)]

        say(f"Tuning on {dataset.name}, {share:.0%} of the labels wrong: {TITLES[name]}")
        draws = qmc.Halton(len(axes), seed=0)
        spread = draws.random(SPREAD)
        judge(spread)
        best = spread[int(np.argmax([accuracy for accuracy, _ in tried]))]
        judge(best + 0.4 * (draws.random(ABOUT_THE_BEST) - 0.5))
        accuracy, chosen = max(tried, key=lambda one: one[0])
        found[name] = {"chosen": chosen, "validation": accuracy, "tried": tried}
    return found


def measure(settings: Settings, wanted: list[str]) -> list[Accuracies]:
    """Fit both losses to the same wrong labels, for each seed; test labels are right."""
    tuned = json.loads(FILE.read_text(encoding="utf-8"))
    rows = []
    for name, shares in tuned.items():
        if name not in wanted:
            continue
        most = settings.max_rows
        dataset = settings.load_whole(name).with_rows(most or N_ROWS, most)
        for share in SHARES:
            if str(share) not in shares:
                continue
            say(f"Wrong labels on {name}: {share:.0%}")
            chosen = {loss: shares[str(share)][loss]["chosen"] for loss in TITLES}
            accuracy = {}
            for loss, parameters in chosen.items():
                jobs = [
                    (
                        machine(20 if settings.is_quick else N_VECTORS, seed, parameters),
                        dataset.X,
                        flipped(dataset.y, share, seed),
                        dataset.X_test,
                        dataset.y_test,
                    )
                    for seed in settings.seeds
                ]
                accuracy[loss] = [trial.accuracy for trial in run(jobs)]
            rows.append(Accuracies(name, share, chosen, accuracy))
    return rows


if __name__ == "__main__":
    tuned = {name: {str(share): tune(load(name), share) for share in SHARES} for name in BOXES}
    FILE.write_text(json.dumps(tuned, indent=1) + "\n", encoding="utf-8")

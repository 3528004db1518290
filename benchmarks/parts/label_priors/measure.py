"""Machines with a prior and without, where the labels of test rows go together otherwise.

The settings of machines are those of all others here: nothing is tuned on rows that are judged by.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import hamming_loss

from benchmarks.animals import Animals, load_animals
from benchmarks.label_data import LabelDataset, load_labels
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import KernelMultiLabelClassifier, SparseKernelMultiLabelClassifier, priors

_N_TRAIN = 200  # as in the paper
_CORRELATIONS = (-0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.9)
_SIZES = (12, 18, 24, 30, 36, 48, 72)
_SAME = 0.1  # points of Hamming loss, up to which two machines are equally good
_PAIR = (0, 42)  # places of "black" and "weak" among the attributes


@dataclass(frozen=True)
class Judged:
    """Hamming loss in percent, a number for each seed."""

    problem: str
    machine: str
    losses: list[float]

    @property
    def mean(self) -> float:
        return float(np.mean(self.losses))


@dataclass(frozen=True)
class Found:
    judged: list[Judged]
    # By vectors of the sparse machine with a prior: Hamming loss of each seed.
    by_size: dict[int, list[float]]

    def loss(self, problem: str, machine: str) -> float:
        return next(
            each.mean for each in self.judged if (each.problem, each.machine) == (problem, machine)
        )


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    """Judge machines with priors and without, and answers that look at no row."""
    found, by_size = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels that all of few rows have
        yeast = load_labels("yeast", settings)
        if yeast is not None:
            found += _on_yeast(yeast, settings)
        animals = load_animals(settings)
        if animals is not None:
            found += _on_two_attributes(animals, settings)
            more, by_size = _on_attributes(animals, settings)
            found += more
    return Found(found, by_size) if found else None


def _full(prior: Any, seed: int) -> KernelMultiLabelClassifier:
    return KernelMultiLabelClassifier(prior=prior, random_state=seed, n_jobs=2)


def _sparse(n_vectors: int) -> Callable[[Any, int], SparseKernelMultiLabelClassifier]:
    def make(prior: Any, seed: int) -> SparseKernelMultiLabelClassifier:
        return SparseKernelMultiLabelClassifier(n_vectors, prior=prior, random_state=seed)

    return make


def _on_yeast(data: LabelDataset, settings: Settings) -> Iterator[Judged]:
    """Learn from rows whose labels go together least as usual, and judge by those that do most."""
    say("yeast: rows that disagree")
    X = np.concatenate([data.X, data.X_test])
    Y = np.concatenate([data.Y, data.Y_test])
    signs = 2.0 * Y - 1.0
    usual = np.einsum("ij,jk,ik->i", signs, signs.T @ signs / len(signs), signs)
    order = np.argsort(usual, kind="stable")
    odd, plain = order[: len(order) // 4], order[len(order) // 2 :]
    prior = priors.from_labels(Y[plain])
    for name, given in (("no prior", None), ("prior of test labels", prior)):
        losses = []
        for seed in settings.seeds:
            some = np.random.RandomState(seed).permutation(odd)[:_N_TRAIN]
            losses.append(_loss(_full(given, seed), X[some], Y[some], X[plain], Y[plain]))
        yield Judged("yeast", name, losses)
    yield from _constants("yeast", Y[odd], Y[plain])


def _on_two_attributes(animals: Animals, settings: Settings) -> Iterator[Judged]:
    """Vary the correlation of two attributes that agree in training rows, and not in test rows."""
    say("AwA: two attributes")
    pair = list(_PAIR) if animals.binary.shape[1] > max(_PAIR) else [0, 1]
    X, X_new = (rows[:, animals.columns["phog"]] for rows in (animals.X, animals.X_new))
    Y, Y_new = (animals.binary[each][:, pair].astype(int) for each in (animals.y, animals.y_new))
    for correlation in settings.amount(_CORRELATIONS, quick=(-0.6, 0.0)):
        prior = priors.from_correlation([[1.0, correlation], [correlation, 1.0]])
        losses = []
        for seed in settings.seeds:
            some = _some_rows(animals, seed)
            losses.append(_loss(_full(prior, seed), X[some], Y[some], X_new, Y_new))
        yield Judged("two attributes", f"r = {correlation:g}", losses)
    yield from _constants("two attributes", Y, Y_new)


def _on_attributes(
    animals: Animals, settings: Settings
) -> tuple[list[Judged], dict[int, list[float]]]:
    """Take all attributes, with the prior that the animals of test rows make."""
    X, X_new = (rows[:, animals.columns["phog"]] for rows in (animals.X, animals.X_new))
    Y, Y_new = (animals.binary[each].astype(int) for each in (animals.y, animals.y_new))
    prior = priors.from_signatures(animals.binary[np.unique(animals.y_new)].astype(int))
    sizes = settings.amount(_SIZES, quick=(4, 8))
    judged = []
    by_size: dict[int, list[float]] = {}
    kinds: dict[str, Callable[[Any, int], Any]] = {
        "M3L": _full,
        **{f"SM3L, {size} vectors": _sparse(size) for size in sizes},
    }
    for name, make in kinds.items():
        say(f"AwA, all attributes: {name}")
        for given in (None, prior):
            losses = []
            for seed in settings.seeds:
                some = _some_rows(animals, seed)
                losses.append(_loss(make(given, seed), X[some], Y[some], X_new, Y_new))
            ending = "" if given is None else ", prior of test animals"
            judged.append(Judged("attributes", name + ending, losses))
            if given is not None and name != "M3L":
                by_size[int(name.split()[1])] = losses
    return [*judged, *_constants("attributes", Y, Y_new)], by_size


def _some_rows(animals: Animals, seed: int) -> np.ndarray:
    return np.random.RandomState(seed).permutation(len(animals.y))[:_N_TRAIN]


def _loss(
    machine: Any, X: np.ndarray, Y: np.ndarray, X_test: np.ndarray, Y_test: np.ndarray
) -> float:
    return 100 * float(hamming_loss(Y_test, machine.fit(X, Y).predict(X_test)))


def _constants(problem: str, Y: np.ndarray, Y_test: np.ndarray) -> Iterator[Judged]:
    """Yield answers that look at no row: by label frequencies of training and of test rows."""
    for name, labels in (("training", Y), ("test", Y_test)):
        answer = np.broadcast_to(labels.mean(axis=0) > 0.5, Y_test.shape).astype(int)
        loss = 100 * float(hamming_loss(Y_test, answer))
        yield Judged(problem, f"constant, by {name} rows", [loss])


def vectors_as_good(found: Found) -> int | None:
    """Return the fewest vectors with a prior that have the Hamming loss of the full machine."""
    full = found.loss("attributes", "M3L, prior of test animals")
    good = [size for size, losses in found.by_size.items() if np.mean(losses) <= full + _SAME]
    return min(good, default=None)

"""Machines that answer animals without training rows, tuned as if some others were unseen."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from benchmarks.animals import Animals, load_animals
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import KernelMultiLabelClassifier
from widemargin.kernels import ChiSquare, KernelSum
from widemargin.zero_shot import (
    AttributeZeroShotClassifier,
    BilinearZeroShotClassifier,
    harmonic_mean_accuracy,
)

_FOLDS = 4
_RIDGES = (0.03, 0.1, 0.3, 1.0, 3.0)
_CS, _SQUARED_CS = (1.0, 3.0, 10.0, 30.0), (0.1, 0.3, 1.0, 3.0, 10.0)
_HELD_OUT = 5  # one in so many rows of seen animals is judged by, where all animals are answered
_SAMPLE = 500  # rows whose distances give the width of a kernel
_JOBS = 2

Make = Callable[..., Any]


@dataclass(frozen=True)
class Judged:
    """What a machine does, in percent."""

    name: str
    settings: str
    folds: float  # mean accuracy over seen animals that were held out
    unseen: float  # mean accuracy over unseen animals
    seen_of_all: float  # where all animals may be answered: over seen ones,
    unseen_of_all: float  # over unseen ones,
    harmonic: float  # and the harmonic mean


@dataclass(frozen=True)
class Values:
    """Kernel values of known images with one another, and of new images with them."""

    known: np.ndarray
    new: np.ndarray


def measure(settings: Settings, wanted: list[str]) -> list[Judged] | None:
    """Judge every machine with the mean of the kernels of three histograms."""
    animals = load_animals(settings)
    if animals is None:
        return None
    say("Kernel values of images")
    values = _kernel_values(animals)
    ridges = settings.amount(_RIDGES, quick=(0.1, 1.0))
    Cs = settings.amount(_CS, quick=(1.0,))
    kinds: dict[str, tuple[Make, list[dict[str, float]]]] = {
        "ESZSL": (
            _bilinear,
            [
                {"row_ridge": one, "signature_ridge": other}
                for one, other in product(ridges, ridges)
            ],
        ),
        "attributes, hinge, correlation": (_by("correlation"), [{"C": C} for C in Cs]),
        "attributes, hinge, probabilistic": (_by("probabilistic"), [{"C": C} for C in Cs[:2]]),
        "attributes, squared, correlation": (
            _by("correlation", "squared"),
            [{"C": C} for C in settings.amount(_SQUARED_CS, quick=(1.0,))],
        ),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of attributes that all of few animals have
        return [_judged(name, animals, values, *kind) for name, kind in kinds.items()]


def _kernel_values(animals: Animals) -> Values:
    """Return the mean of exponential chi-square kernels, each of the width of a mean distance."""
    parts = []
    for columns in animals.columns.values():
        sample = np.ascontiguousarray(animals.X[:: max(1, len(animals.X) // _SAMPLE), columns])
        distances = -np.log(ChiSquare(1.0).block(sample, sample))
        parts.append((ChiSquare(float(1.0 / distances.mean())), columns))
    kernel = KernelSum(parts)
    return Values(
        *(kernel.block(rows, animals.X, n_threads=_JOBS) for rows in (animals.X, animals.X_new))
    )


def _bilinear(animals: Animals, **parameters: Any) -> BilinearZeroShotClassifier:
    return BilinearZeroShotClassifier(animals.graded, kernel="precomputed", **parameters)


def _by(rule: str, loss: str = "hinge") -> Make:
    def make(animals: Animals, C: float, **parameters: Any) -> AttributeZeroShotClassifier:
        attributes = KernelMultiLabelClassifier(
            C=C, loss=loss, kernel="precomputed", random_state=0, n_jobs=_JOBS
        )
        return AttributeZeroShotClassifier(attributes, animals.graded, rule=rule, **parameters)

    return make


def _judged(
    name: str, animals: Animals, values: Values, make: Make, choices: list[dict[str, float]]
) -> Judged:
    say(f"{name}: tuned on seen animals")
    found = [_accuracy_in_folds(animals, values, make, choice) for choice in choices]
    best = choices[int(np.argmax(found))]
    say(f"{name}: unseen animals")
    machine = make(animals, **best).fit(values.known, animals.y)
    unseen = balanced_accuracy_score(animals.y_new, machine.predict(values.new))
    say(f"{name}: all animals")
    is_judged = np.arange(len(animals.y)) % _HELD_OUT == 0
    train, test = np.flatnonzero(~is_judged), np.flatnonzero(is_judged)
    both = make(animals, candidates="all", **best).fit(
        values.known[np.ix_(train, train)], animals.y[train]
    )
    rows = np.vstack([values.known[np.ix_(test, train)], values.new[:, train]])
    truth = np.concatenate([animals.y[test], animals.y_new])
    answers = both.predict(rows)
    is_new = np.arange(len(truth)) >= len(test)
    parts = [
        100 * float(balanced_accuracy_score(truth[some], answers[some]))
        for some in (~is_new, is_new)
    ]
    return Judged(
        name,
        ", ".join(f"{key} {value:g}" for key, value in best.items()),
        100 * float(max(found)),
        100 * float(unseen),
        *parts,
        100 * harmonic_mean_accuracy(truth, answers, both.seen_classes_),
    )


def _accuracy_in_folds(
    animals: Animals, values: Values, make: Make, choice: dict[str, float]
) -> float:
    """Return the mean accuracy of seen animals that were held out in turn, among themselves."""
    seen = np.unique(animals.y)
    order = np.random.RandomState(0).permutation(seen)
    found = []
    for number in range(_FOLDS):
        held_out = order[number::_FOLDS]
        is_held_out = np.isin(animals.y, held_out)
        train, test = np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
        # Only the animals of this trial have signatures: those that are new stay unknown.
        known = np.concatenate([np.setdiff1d(seen, held_out), held_out])
        part = replace(animals, graded=animals.graded[known], binary=animals.binary[known])
        places = {animal: place for place, animal in enumerate(known.tolist())}
        y = np.array([places[animal] for animal in animals.y.tolist()])
        machine = make(part, **choice).fit(values.known[np.ix_(train, train)], y[train])
        answers = machine.predict(values.known[np.ix_(test, train)])
        found.append(balanced_accuracy_score(y[test], answers))
    return float(np.mean(found))

"""Fits of sparse machines of label sets, tuned on training rows, and what is simpler than they."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import f1_score, hamming_loss
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from benchmarks.label_data import LabelDataset, load_labels
from benchmarks.parts.labels.targets import TARGETS
from benchmarks.settings import Settings
from benchmarks.trials import say
from widemargin import SparseKernelMultiLabelClassifier

DATASETS = ("scene", "yeast")
_STEPS = {"C": 10**0.5, "gamma": 2.0}  # of the walk over settings
_FOLDS = 5
_LOSSES = ("squared_hinge", "huberised_squared_hinge")


@dataclass(frozen=True)
class Judged:
    """What a machine does on test rows, in percent: a number for each seed."""

    dataset: str
    name: str
    settings: str
    hamming: list[float]
    micro: list[float]
    macro: list[float]
    promised: tuple[str, bool] | None = None  # the key of its promise


def measure(settings: Settings, wanted: list[str]) -> list[Judged] | None:
    """Judge every machine on every data set that is there."""
    found: list[Judged] = []
    for name in DATASETS:
        data = load_labels(name, settings)
        if data is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # few rows of a quick run make constant labels
                found += _on(data, settings)
    return found or None


def _on(data: LabelDataset, settings: Settings) -> list[Judged]:
    found = list(_constant(data))
    say(f"{data.name}: one linear machine a label")
    C = _walk(data, {"C": 0.1}, _linear, settings)["C"]
    found.append(_judged(data, "one-vs-rest LinearSVC", f"C {C:.3g}", [_linear(C=C, seed=0)]))
    for is_learned in (False, True):
        n_vectors, _ = TARGETS[data.name, is_learned]
        n_vectors = settings.amount(n_vectors, quick=5)
        how = "learned" if is_learned else "chosen"
        say(f"{data.name}: {n_vectors} {how} vectors")

        def make(seed: int, n_vectors: int = n_vectors, how: str = how, **values: Any) -> Any:
            basis = "learned" if how == "learned" else "shared"
            return SparseKernelMultiLabelClassifier(
                n_vectors, basis=basis, random_state=seed, **values
            )

        choices: list[dict[str, Any]] = [{"loss": loss} for loss in _LOSSES]
        if not is_learned:  # a learned basis chooses C and widths for itself
            start = {"C": 1.0, "gamma": float(1 / (data.X.shape[1] * data.X.var()))}
            choices = [
                each | _walk(data, start, partial(make, **each), settings) for each in choices
            ]
        tuned = min(choices, key=lambda values, make=make: _loss_in_folds(data, make, values))
        words = ", ".join(f"{key} {_short(value)}" for key, value in tuned.items())
        machines = [make(seed=seed, **tuned) for seed in settings.seeds]
        promised = (data.name, is_learned)
        found.append(_judged(data, f"{n_vectors} {how} vectors", words, machines, promised))
    return found


def _linear(C: float, seed: int) -> Any:
    return make_pipeline(StandardScaler(), OneVsRestClassifier(LinearSVC(C=C, random_state=seed)))


def _walk(
    data: LabelDataset,
    start: dict[str, float],
    make: Callable[..., Any],
    settings: Settings,
) -> dict[str, float]:
    """Return settings that no step from them betters, by Hamming loss in folds of training rows.

    So no optimum is at the edge of a grid.
    """
    known: dict[tuple[float, ...], float] = {}

    def loss(values: dict[str, float]) -> float:
        key = tuple(round(float(np.log(value)), 6) for value in values.values())
        if key not in known:
            known[key] = _loss_in_folds(data, make, values)
        return known[key]

    here = start
    for _ in range(settings.amount(20, quick=1)):
        around = [
            here | {name: here[name] * _STEPS[name] ** way} for name in here for way in (-1, 1)
        ]
        best = min(around, key=loss)
        if loss(best) >= loss(here):
            break
        here = best
    return here


def _loss_in_folds(data: LabelDataset, make: Callable[..., Any], values: dict[str, Any]) -> float:
    """Return the mean Hamming loss of training rows that were held out."""
    folds = KFold(_FOLDS, shuffle=True, random_state=0).split(data.X)
    losses = []
    for fold, (train, test) in enumerate(folds):
        machine = make(seed=fold, **values).fit(data.X[train], data.Y[train])
        losses.append(hamming_loss(data.Y[test], machine.predict(data.X[test])))
    return float(np.mean(losses))


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.3g}"


def _constant(data: LabelDataset) -> list[Judged]:
    """Return two answers that look at no row: by label frequencies of training and of test rows."""
    return [
        _scores(data, name, "", [np.broadcast_to(share > 0.5, data.Y_test.shape).astype(int)])
        for name, share in (
            ("constant, by training rows", data.Y.mean(axis=0)),
            ("constant, by test rows", data.Y_test.mean(axis=0)),
        )
    ]


def _judged(
    data: LabelDataset,
    name: str,
    settings: str,
    machines: list[Any],
    promised: tuple[str, bool] | None = None,
) -> Judged:
    answers = [machine.fit(data.X, data.Y).predict(data.X_test) for machine in machines]
    return _scores(data, name, settings, answers, promised)


def _scores(
    data: LabelDataset,
    name: str,
    settings: str,
    answers: list[np.ndarray],
    promised: tuple[str, bool] | None = None,
) -> Judged:
    def f1(average: str) -> list[float]:
        return [
            100 * float(f1_score(data.Y_test, each, average=average, zero_division=0))
            for each in answers
        ]

    hamming = [100 * float(hamming_loss(data.Y_test, each)) for each in answers]
    return Judged(data.name, name, settings, hamming, f1("micro"), f1("macro"), promised)

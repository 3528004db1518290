"""Fits and predictions of full machines of label sets, and of one SVC a label, in turn."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

import numpy as np
from sklearn.metrics import hamming_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from benchmarks.label_data import LabelDataset, load_labels
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds, take_turns
from benchmarks.trials import say
from widemargin import KernelMultiLabelClassifier, priors

DATASETS = ("awa_phog", "yeast")
_C = 1.0
_JOBS = 2
_PREDICTED = 2_000  # test rows at the most


@dataclass(frozen=True)
class Beside:
    """Seconds of both on one data set, kernel values included, and what they do on test rows."""

    dataset: str
    n_rows: int
    n_labels: int
    fit: float
    fit_svc: float
    predict: float
    predict_svc: float
    gap: float  # share of the objective
    hamming: float
    hamming_svc: float
    hamming_constant: float  # of the answer that looks at no row: labels of most test rows


@dataclass(frozen=True)
class Found:
    beside: list[Beside] = field(default_factory=list)
    # By whether there is a dense prior: seconds by number of labels.
    doubling: dict[bool, dict[int, float]] = field(default_factory=dict)

    def growth(self, related: bool) -> float:
        times = [self.doubling[related][n] for n in sorted(self.doubling[related])]
        return max(after / before for before, after in pairwise(times))


def measure(settings: Settings, wanted: list[str]) -> Found | None:
    """Time both machines on every data set that is there, and ours as labels double."""
    found = Found()
    for name in DATASETS:
        data = load_labels(name, settings)
        if data is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few rows of a quick run make constant labels
            found.beside.append(_beside(data))
            if name == "awa_phog":
                for related in (False, True):
                    found.doubling[related] = _doubling(data, settings, related)
    return found if found.beside else None


def _beside(data: LabelDataset) -> Beside:
    gamma = float(1 / (data.X.shape[1] * data.X.var()))
    ours = KernelMultiLabelClassifier(C=_C, gamma=gamma, random_state=0, n_jobs=_JOBS)
    svc = OneVsRestClassifier(SVC(C=2 * _C, gamma=gamma), n_jobs=_JOBS)
    rows, Y_test = data.X_test[:_PREDICTED], data.Y_test[:_PREDICTED]
    say(f"{data.name}: our machine")
    times = [fit_seconds(ours, data.X, data.Y)]
    say(f"{data.name}: one SVC a label")
    fit_svc = fit_seconds(svc, data.X, data.Y)
    times += [fit_seconds(ours, data.X, data.Y) for _ in range(2)]
    started = time.perf_counter()
    of_svc = svc.predict(rows)
    predict_svc = time.perf_counter() - started
    predict = take_turns({"ours": lambda: ours.predict(rows)}, 3)["ours"]
    constant = np.broadcast_to(Y_test.mean(axis=0) > 0.5, Y_test.shape).astype(int)
    answers = (ours.predict(rows), of_svc, constant)
    losses = [100 * float(hamming_loss(Y_test, each)) for each in answers]
    share = ours.gap_ / ours.objective_
    return Beside(
        data.name, *data.Y.shape, median(times), fit_svc, predict, predict_svc, share, *losses
    )


def _doubling(data: LabelDataset, settings: Settings, related: bool) -> dict[int, float]:
    """Return the seconds of fits to the first labels of those that some rows have and some not."""
    varies = np.flatnonzero((data.Y.min(axis=0) == 0) & (data.Y.max(axis=0) == 1))
    counts = settings.amount((10, 20, 40, 80), quick=(2, 4))
    fits = {}
    for n_labels in counts:
        Y = data.Y[:, varies[:n_labels]]
        prior = priors.from_labels(Y) if related else None
        machine = KernelMultiLabelClassifier(C=_C, prior=prior, random_state=0, n_jobs=_JOBS)
        fits[n_labels] = lambda machine=machine, Y=Y: machine.fit(data.X, Y)
    say(f"{data.name}: {', '.join(map(str, counts))} labels{', related' * related}")
    return take_turns(fits, settings.repeats)

"""Fit time of a learned basis: beside MLPClassifier, as things double, and with a search."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import plans
from benchmarks.data import synthetic
from benchmarks.doubling import Doubling, rows_that_double, vectors_of_doubling
from benchmarks.models import MODELS, learned
from benchmarks.parts.learned_speed.targets import CHOSEN_SETS, LEARNED_FIT_RATIO
from benchmarks.plans import LEARNED_SIZES
from benchmarks.scores import Score, score_over_seeds
from benchmarks.settings import Settings
from benchmarks.timing import fit_seconds
from benchmarks.trials import Trial, say
from benchmarks.tuning import TunedFile
from widemargin import SparseKernelClassifierCV


@dataclass(frozen=True)
class Beside:
    """Seconds of fits that take turns, one thread each."""

    dataset: str
    size: int
    ours: list[float]
    two_threads: list[float]
    mlp: list[float]

    @property
    def ratios(self) -> list[float]:
        return [ours / mlp for ours, mlp in zip(self.ours, self.mlp, strict=True)]


@dataclass(frozen=True)
class Choice:
    """What a search with default settings chose, by seed, and the machine tuned by hand."""

    dataset: str
    score: Score
    seconds: list[float]
    chosen: list[dict[str, Any]]
    by_hand: Score

    @property
    def loss(self) -> float:
        return self.by_hand.mean - self.score.mean


@dataclass(frozen=True)
class LearnedSpeed:
    beside: list[Beside]
    doubling: dict[str, Doubling]  # of "rows" and of "vectors"
    choices: list[Choice]


def measure(settings: Settings, wanted: list[str]) -> LearnedSpeed:
    return LearnedSpeed(
        [_beside(name, settings) for name in LEARNED_FIT_RATIO if name in wanted],
        {"rows": _as_rows_double(settings), "vectors": _as_vectors_double(settings)},
        [_choice(name, settings) for name in CHOSEN_SETS if name in wanted],
    )


def _beside(name: str, settings: Settings) -> Beside:
    size, _ = LEARNED_FIT_RATIO[name]
    dataset = settings.load(name, plans.precision(name))
    file = TunedFile()
    parameters = {model: file.get(name, model, size)[1].chosen for model in ("learned", "mlp")}
    times = Beside(name, size, [], [], [])
    for repeat in range(settings.repeats):
        say(f"Fit of a learned basis on {name}, run {repeat + 1} of {settings.repeats}")
        with threadpool_limits(1):
            mlp = MODELS["mlp"].build(size, repeat, **parameters["mlp"])
            times.mlp.append(fit_seconds(mlp, dataset.X, dataset.y))
        for n_jobs, seconds in ((1, times.ours), (2, times.two_threads)):
            machine = learned(size, repeat, n_jobs=n_jobs, **parameters["learned"])
            seconds.append(fit_seconds(machine, dataset.X, dataset.y))
    return times


def _as_rows_double(settings: Settings) -> Doubling:
    size = vectors_of_doubling(settings) // 2
    times: dict[int, list[float]] = {n_rows: [] for n_rows in rows_that_double(settings)}
    for repeat in range(settings.repeats):
        say(f"Learned basis as rows double, run {repeat + 1} of {settings.repeats}")
        for n_rows, seconds in times.items():
            # tol=0: as many moves for all.
            seconds.append(fit_seconds(learned(size, repeat, tol=0), *synthetic(n_rows)))
    return Doubling(size, {n_rows: median(seconds) for n_rows, seconds in times.items()})


def _as_vectors_double(settings: Settings) -> Doubling:
    n_rows = rows_that_double(settings)[1]
    rows = synthetic(n_rows)
    sizes = [vectors_of_doubling(settings) * factor // 4 for factor in (1, 2, 4, 8)]
    times: dict[int, list[float]] = {size: [] for size in sizes}
    for repeat in range(settings.repeats):
        say(f"Learned basis as vectors double, run {repeat + 1} of {settings.repeats}")
        for size, seconds in times.items():
            seconds.append(fit_seconds(learned(size, repeat, tol=0), *rows))
    return Doubling(n_rows, {size: median(seconds) for size, seconds in times.items()})


def _choice(name: str, settings: Settings) -> Choice:
    dataset = settings.load(name, plans.precision(name))
    largest = LEARNED_SIZES[name][-1]
    by_hand = score_over_seeds("learned", dataset, largest, TunedFile(), settings.seeds)
    trials, times, chosen = [], [], []
    for seed in settings.seeds:
        say(f"SparseKernelClassifierCV on {name}, seed {seed}")
        few = settings.amount({}, quick={"max_basis": [5, 10], "Cs": [1.0, 10.0], "cv": 2})
        machine = SparseKernelClassifierCV(random_state=seed, n_jobs=2, **few)
        times.append(fit_seconds(machine, dataset.X, dataset.y))
        accuracy = 100.0 * float(machine.score(dataset.X_test, dataset.y_test))
        trials.append(Trial(accuracy, converged=True))
        chosen.append(machine.best_params_ | {"n_basis": machine.n_basis_})
    title = "SparseKernelClassifierCV, defaults"
    return Choice(name, Score(title, None, trials), times, chosen, by_hand)

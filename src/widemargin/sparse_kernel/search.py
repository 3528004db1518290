"""The search for the settings of a sparse kernel machine, judged on splits of the rows.

C and width come first. :func:`climb` goes uphill in both, by machines of a middle size that are
fitted to few rows. The number of vectors comes next: on each split one machine grows from size to
size. :func:`fewest_within_one_standard_error` then chooses.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from sklearn.utils import check_random_state

from widemargin.estimation.named_kernels import as_kernel
from widemargin.estimation.splits import Places, Split
from widemargin.kernels import Rows
from widemargin.solvers.units.start import start_units
from widemargin.solvers.units.values import WorkingRows
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.learned import dense_rows, metric_for
from widemargin.sparse_kernel.settings import LearnedBasis, as_basis

Array: TypeAlias = npt.NDArray[Any]
Data: TypeAlias = tuple[Rows, Array, Array | None]  # rows, labels and weights
Pair: TypeAlias = tuple[float, float]  # C and width

#: Calls of ``judge`` that :func:`climb` makes at the most.
MOST_SCREENS = 8

_SCREEN_ROWS = 3000  # that C and width are chosen by, where there are more
_SCREEN_SPLITS = 2  # that are used then
_SEARCH_ROWS = 20_000  # that sizes are chosen by, and that scores are of, where there are more
_MOVES = 20  # of a learned basis in the search, at the most: more change scores, not their order
_START = (10.0, 1.0)  # C and width
_C_RANGE, _WIDTH_RANGE = (1e-3, 1e4), (1 / 8, 8.0)

_pool_of: int | None = None  # the process that has begun to search by several


@dataclass(frozen=True)
class Candidate:
    """Settings to be judged; ``width`` is a factor of the gamma that "scale" stands for."""

    C: float
    width: float
    max_basis: int


@dataclass(frozen=True)
class Judged:
    """What became of a candidate on one split."""

    machine: SparseKernelClassifier
    score: float
    seconds: float
    n_rows: int


@dataclass(frozen=True)
class Record:
    """What became of a candidate; ``by_split`` has the numbers of the splits that were used."""

    stage: str
    candidate: Candidate
    by_split: dict[int, Judged]

    @property
    def scores(self) -> Array:
        """The scores of the splits that were used."""
        return np.array([judged.score for judged in self.by_split.values()])

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(self.scores.mean())


@dataclass
class Search:
    """Judges candidates on splits of the rows, and keeps the record.

    Attributes
    ----------
    machine : SparseKernelClassifier
        What candidates have in common.
    scorer : callable
        As those of scikit-learn: ``scorer(machine, X, y)``.
    rows, y, weights : the training data
        Weights may be None.
    splits : list of (train, test)
        Row numbers.
    seed : int
        For the draw of rows where there are many.
    n_jobs : int or None
        Number of processes.
    begin_round, end_round : callable
        Called around each batch of fits; the second says whether to end the stage.
    records : list of Record
        All candidates in the order in which they were judged.
    """

    machine: SparseKernelClassifier
    scorer: Any
    rows: Rows
    y: Array
    weights: Array | None
    splits: list[Split]
    seed: int
    n_jobs: int | None
    begin_round: Callable[[], None]
    end_round: Callable[[], bool]
    records: list[Record] = field(default_factory=list)

    def best_pair(
        self, Cs: Sequence[float] | None, widths: Sequence[float] | None, max_basis: int
    ) -> Pair:
        """Return the best C and width for machines of one size on few rows; see :func:`climb`."""
        large = max(len(train) for train, _ in self.splits) > _SCREEN_ROWS
        numbers = range(len(self.splits))[: _SCREEN_SPLITS if large else None]
        stopped = False

        def judge(pairs: list[Pair]) -> dict[Pair, Array]:
            nonlocal stopped
            if stopped:
                return {}
            self.begin_round()
            machines = dict.fromkeys(numbers, self.machine)
            candidates = [(Candidate(*pair, max_basis), machines) for pair in pairs]
            records = self._judge("screen", candidates, _SCREEN_ROWS)
            stopped = self.end_round()
            return {pair: record.scores for pair, record in zip(pairs, records, strict=True)}

        return climb(judge, Cs, widths)

    def grow(self, pair: Pair, sizes: Sequence[int], patience: int) -> list[Record]:
        """Judge machines that grow from size to size, one for each split.

        Ends early when ``patience`` sizes, one after the other, were not better than the best.
        """
        machines = dict.fromkeys(range(len(self.splits)), self.machine)
        grown: list[Record] = []
        best = 0
        for place, size in enumerate(sizes):
            self.begin_round()
            grown += self._judge("size", [(Candidate(*pair, size), machines)], _SEARCH_ROWS)
            machines = {number: judged.machine for number, judged in grown[-1].by_split.items()}
            if grown[-1].mean > grown[best].mean:
                best = place
            if self.end_round() or place - best >= patience:
                break
        return grown

    def standing(self) -> str:
        """Say what the last round of the search has found."""
        last = self.records[-1]
        of_stage = [record for record in self.records if record.stage == last.stage]
        best = max(of_stage, key=lambda record: record.mean)
        what = best.candidate
        return (
            f"{len(self.records)} candidates judged, best of stage {last.stage!r} "
            f"{best.mean:.4f} with C={what.C:g}, width={what.width:g}, {what.max_basis} vectors"
        )

    def table(self) -> dict[str, Any]:
        """Return the record as columns, an entry for each candidate."""
        records = self.records
        scores = np.full((len(self.splits), len(records)), np.nan)
        for place, record in enumerate(records):
            scores[list(record.by_split), place] = record.scores

        def means(number: Callable[[Judged], float]) -> Array:
            return np.array(
                [np.mean([number(each) for each in r.by_split.values()]) for r in records]
            )

        return {
            "stage": np.array([record.stage for record in records]),
            **{
                f"param_{each.name}": np.array([getattr(r.candidate, each.name) for r in records])
                for each in fields(Candidate)
            },
            "params": [asdict(record.candidate) for record in records],
            "mean_test_score": np.nanmean(scores, axis=0),
            "std_test_score": np.nanstd(scores, axis=0),
            **{f"split{number}_test_score": row.copy() for number, row in enumerate(scores)},
            "mean_fit_time": means(lambda judged: judged.seconds),
            "n_basis": means(lambda judged: judged.machine.n_basis_),
            "n_rows": means(lambda judged: judged.n_rows),
        }

    def _judge(
        self,
        stage: str,
        candidates: list[tuple[Candidate, dict[int, SparseKernelClassifier]]],
        most_rows: int,
    ) -> list[Record]:
        """Fit the machines of candidates, by the number of the split, and write down the result."""
        tasks = []
        for candidate, machines in candidates:
            for number, machine in machines.items():
                train, test = self.splits[number]
                train = _some(train, self.y, most_rows, self.seed)
                test = _some(test, self.y, _SEARCH_ROWS, self.seed)
                tasks.append((machine, candidate, train, test))
        results = iter(
            Parallel(n_jobs=_usable_jobs(self.n_jobs))(
                delayed(_fit_and_score)(
                    machine,
                    candidate,
                    self.scorer,
                    self._part(train),
                    self._part(test),
                )
                for machine, candidate, train, test in tasks
            )
        )
        judged = [
            Record(stage, candidate, {number: next(results) for number in machines})
            for candidate, machines in candidates
        ]
        self.records += judged
        return judged

    def _part(self, places: Places) -> Data:
        weights = None if self.weights is None else self.weights[places]
        return self.rows[places], self.y[places], weights


def _usable_jobs(n_jobs: int | None) -> int | None:
    """Return how many processes a search may have.

    The pool of joblib does not survive a fork: a child that inherits one would wait for it for
    ever, and so searches alone.
    """
    global _pool_of
    if effective_n_jobs(n_jobs) == 1:
        return n_jobs
    _pool_of = _pool_of or os.getpid()
    return n_jobs if _pool_of == os.getpid() else 1


def _some(places: Places, y: Array, most: int, seed: int) -> Places:
    """Return so many of the rows at the most, of each class its share and at least one."""
    if len(places) <= most:
        return places
    drawn = np.random.RandomState(seed).permutation(places)
    _, labels = np.unique(y[drawn], return_inverse=True)
    counts = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    place_in_class = np.arange(len(drawn)) - np.repeat(np.cumsum(counts) - counts, counts)
    quota = np.maximum(1, counts * most // len(drawn))
    return np.sort(drawn[order[place_in_class < np.repeat(quota, counts)]])


@contextmanager
def _silence() -> Iterator[None]:
    """Mute warnings: the last fit says them again where they hold for that.

    Only in the main thread of a process, for filters belong to the process: threads that set them
    at the same time would leave them set for good.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _fit_and_score(
    machine: SparseKernelClassifier,
    candidate: Candidate,
    scorer: Any,
    train: Data,
    test: Data,
) -> Judged:
    """Fit a copy of a machine with the settings of a candidate, or grow a fitted one."""
    started = time.perf_counter()
    machine = copy(machine).set_params(
        C=candidate.C, max_basis=candidate.max_basis, warm_start=True, n_jobs=1
    )
    basis = as_basis(machine.basis)
    if isinstance(basis, LearnedBasis):
        moves = _MOVES if isinstance(basis.max_iter, str) else min(_MOVES, basis.max_iter)
        machine.basis = replace(basis, max_iter=moves, solver="projection")
    with _silence():
        if not hasattr(machine, "model_"):
            machine.gamma = starting_gamma(machine, *train, factor=candidate.width)
        machine.fit(*train)
    seconds = time.perf_counter() - started
    rows, y, weights = test
    try:
        score = float(
            scorer(machine, rows, y, **({} if weights is None else {"sample_weight": weights}))
        )
    except Exception as error:
        raise ValueError(
            f"scoring failed on {len(y)} rows that were held out, with {type(error).__name__}: "
            f"{error}"
        ) from error
    if not np.isfinite(score):
        raise ValueError(
            f"scoring gave {score} on {len(y)} rows that were held out, for {candidate}. Use "
            "another scoring, or fewer folds."
        )
    return Judged(machine, score, seconds, len(train[1]))


def starting_gamma(
    machine: SparseKernelClassifier, X: Rows, y: Array, weights: Array | None, factor: float
) -> float | str:
    """Return ``factor`` times the gamma that "scale" stands for on these rows."""
    if factor == 1:
        return "scale"
    data = machine._validate_training_data(X, y, weights)
    rows = data.rows
    basis = as_basis(machine.basis)
    if not isinstance(basis, LearnedBasis):
        kernel: Any = as_kernel("rbf", rows, gamma="scale", weights=data.weights)
        return float(factor * kernel.gamma)
    used = np.flatnonzero(data.caps > 0)
    metric = metric_for(basis, rows.shape[1])
    working = WorkingRows(dense_rows(rows)[used], data.caps[used], metric)
    rng = check_random_state(machine.random_state)
    units = start_units(working, data.targets.numbers[used], machine.max_basis, rng)
    squared_unit = working.scale[0] ** 2 if metric == "none" else 1.0  # of distances
    gamma = float(factor * units.weights[0] ** 2 / squared_unit)
    if not 0.0 < gamma < np.inf:
        raise ValueError(
            f"Features of a spread of {working.scale[0]:.1e} have squared distances that double "
            "precision cannot hold. Rescale X, or set metric='diagonal'."
        )
    return gamma


def climb(
    judge: Callable[[list[Pair]], dict[Pair, Array]],
    Cs: Sequence[float] | None,
    widths: Sequence[float] | None,
) -> Pair:
    """Return the C and the width of the best scores.

    Values that are given are all tried, each C with each width. Where C is None, it starts at 10
    and goes uphill by factors of 10; then the width, where it is None, from 1 by factors of 2;
    and in the end C by a factor of the root of 10 either way. A step must raise the mean score by
    more than the standard error of that rise: or what is chosen from few rows is chance.

    Parameters
    ----------
    judge : callable
        Returns the scores of pairs of C and width on each split; of none, to end the search.
    Cs, widths : sequence of float, or None
    """
    known: dict[Pair, Array] = {}

    def look_at(pairs: Sequence[Pair]) -> list[Pair]:
        """Judge pairs that are unknown; return those that are known then."""
        unknown = [pair for pair in pairs if pair not in known]
        if unknown:
            known.update(judge(unknown))
        return [pair for pair in pairs if pair in known]

    def better(at: Pair, *others: Pair) -> Pair:
        """Return the best of the others where it is better, else where we are."""
        best = max(look_at([at, *others]), key=lambda pair: known[pair].mean(), default=at)
        return best if best != at and _rises(known[at], known[best]) else at

    def uphill(at: Pair, times: Callable[[Pair, float], Pair], factor: float) -> Pair:
        """Go on by a factor, or by its inverse, while scores rise."""
        best = better(at, times(at, 1 / factor), times(at, factor))
        way = factor if best > at else 1 / factor
        while best != at:
            at, best = best, better(best, times(best, way))
        return at

    given = list(dict.fromkeys(product(Cs or _START[:1], widths or _START[1:])))
    at = given[0]
    if len(given) > 1:
        at = _middle_best([(pair, known[pair].mean()) for pair in look_at(given)])
    if Cs is None:
        at = uphill(at, lambda pair, by: (_within(pair[0] * by, _C_RANGE), pair[1]), 10.0)
    if widths is None:
        at = uphill(at, lambda pair, by: (pair[0], _within(pair[1] * by, _WIDTH_RANGE)), 2.0)
    if Cs is None:
        at = better(at, (at[0] * 10**-0.5, at[1]), (at[0] * 10**0.5, at[1]))
    return at


def _rises(before: Array, after: Array) -> bool:
    """Whether scores of the same splits are better by more than chance."""
    return bool((after - before).mean() > _standard_error(after - before))


def _standard_error(values: Array) -> float:
    """Return that of the mean; 0 for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _within(value: float, limits: tuple[float, float]) -> float:
    return float(f"{min(max(value, limits[0]), limits[1]):.12g}")  # 0.1 * 0.1 is 0.01 then


def _middle_best(judged: list[tuple[Pair, float]]) -> Pair:
    """Return the pair of the highest score, the middle one of equal ones."""
    highest = max(score for _, score in judged)
    ties = [pair for pair, score in judged if score == highest]
    return ties[(len(ties) - 1) // 2]


def fewest_within_one_standard_error(counts: Sequence[int], scores: Array) -> int:
    """Return the place of the fewest vectors that are about as good as the best.

    Parameters
    ----------
    counts : sequence of int
        Number of vectors of each candidate.
    scores : ndarray of shape (n_candidates, n_splits)
        Higher is better. The standard error is that of the mean of the best candidate; 0 for a
        single split.
    """
    means = scores.mean(axis=1)
    error = _standard_error(scores[np.argmax(means)])
    good = np.flatnonzero(means >= means.max() - error).tolist()
    return int(min(good, key=lambda place: (counts[place], -means[place])))

"""The search for the settings of a sparse kernel machine, judged on splits of the rows.

First come the metric of a learned basis, C and the width, by machines of a middle size that are
fitted to few rows. A learned basis chooses C for itself on the way, by the rows that judge it, so
that only metrics and two widths are compared (`survey`); of a chosen one, `climb` goes uphill in C
and width. The number of vectors comes next. On each split one chosen basis grows from size to
size; learned ones begin anew. `fewest_within_one_standard_error` then chooses. The C of a chosen
basis is looked at once more, by machines of that number of vectors.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs

from widemargin.estimation.splits import Places, Split
from widemargin.kernels import Rows
from widemargin.sparse_kernel.choices import (
    C_RANGE,
    Choice,
    Outcome,
    Pair,
    climb,
    rises,
    survey,
    within,
)
from widemargin.sparse_kernel.learned import REHEARSED_ROWS
from widemargin.sparse_kernel.machine import SparseKernelMachine
from widemargin.sparse_kernel.trials import (
    SCREEN_ROWS,
    Candidate,
    Data,
    Judged,
    count_outputs,
    fit_and_score,
    linear_score,
)

Array: TypeAlias = npt.NDArray[Any]

#: Rounds in which C is looked at once more, at the most.
MOST_LAST_LOOKS = 12

_SCREEN_SPLITS, _FIRST_SPLITS = 2, 5  # that are used then, and where there are few rows
_SEARCH_ROWS = 20_000  # that sizes are chosen by, and that scores are of, where there are more
_LINEAR_WORK = 5e7  # rows times features times classes, up to which a linear model is looked at

_pool_of: int | None = None  # the process that has begun to search by several


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

    @property
    def losses(self) -> Array:
        """The losses of the splits that were used."""
        return np.array([judged.loss for judged in self.by_split.values()])

    @property
    def weight(self) -> float:
        """The C that was given, or else the geometric mean of those that machines chose."""
        if not np.isnan(self.candidate.C):
            return self.candidate.C
        chosen = [judged.machine.C_ for judged in self.by_split.values()]
        return within(float(np.exp(np.mean(np.log(chosen)))), C_RANGE)


@dataclass
class Search:
    """Judges candidates on splits of the rows, and keeps the record.

    Attributes
    ----------
    machine : SparseKernelMachine
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
    deadline : float or None
        Of ``time.perf_counter``, after which no further candidates are judged.
    was_late : bool
        Whether that has ended a stage.
    records : list of Record
        All candidates in the order in which they were judged.
    """

    machine: SparseKernelMachine
    scorer: Any
    rows: Rows
    y: Array
    weights: Array | None
    splits: list[Split]
    seed: int
    n_jobs: int | None
    begin_round: Callable[[], None]
    end_round: Callable[[], bool]
    deadline: float | None = None
    records: list[Record] = field(default_factory=list)
    was_late: bool = False
    _ended: set[str] = field(default_factory=set)
    _judged: dict[tuple[str, int, int], Judged] = field(default_factory=dict)

    def best_start(
        self,
        metrics: Sequence[str],
        Cs: Sequence[float] | None,
        widths: Sequence[float] | None,
        max_basis: int,
        linear_parts: Sequence[bool] = (False,),
    ) -> Choice:
        """Return the best settings for machines of one size on few rows.

        Without metrics, the basis is a chosen one.
        """
        large = max(len(train) for train, _ in self.splits) > SCREEN_ROWS
        numbers = range(len(self.splits))[: _SCREEN_SPLITS if large else _FIRST_SPLITS]
        judge = partial(self._judge_choices, "screen", max_basis, numbers, SCREEN_ROWS)
        if metrics:
            every = range(len(self.splits))[: _SCREEN_SPLITS if large else None]
            by_all = partial(self._judge_choices, "metric", max_basis, every, _SEARCH_ROWS)
            several = large or len(self.splits) > len(numbers)
            again = by_all if several else None
            return survey(judge, again, metrics, Cs, widths, linear_parts)

        def judge_pairs(pairs: list[Pair]) -> dict[Pair, Array]:
            found = judge([("", *pair, False) for pair in pairs])
            return {choice[1:3]: outcome.scores for choice, outcome in found.items()}

        return "", *climb(judge_pairs, Cs, widths), False

    def best_weight(self, choice: Choice, max_basis: int, scores: Array) -> float:
        """Return the best C for machines of the number of vectors that was chosen.

        Goes by half powers of ten from the one they had, whose scores are known.
        """
        numbers = range(len(self.splits))
        judge = partial(self._judge_choices, "C", max_basis, numbers, _SEARCH_ROWS)
        metric, C, width, linear = choice
        known = {C: scores}

        def look_at(values: list[float]) -> None:
            unknown = [value for value in values if value not in known]
            found = judge([(metric, value, width, linear) for value in unknown]) if unknown else {}
            known.update({each[1]: told.scores for each, told in found.items()})

        for way in (10**0.5, 10**-0.5):
            begun = C
            while True:
                ahead = within(C * way, C_RANGE)
                look_at([ahead])
                if ahead not in known or not rises(known[C], known[ahead]):
                    break
                C = ahead
            if begun != C:
                break  # the other way was lower where it began
        return C

    def _judge_choices(
        self,
        stage: str,
        max_basis: int,
        numbers: Sequence[int],
        most_rows: int,
        choices: list[Choice],
    ) -> dict[Choice, Outcome]:
        """Return what became of choices; of none, where the stage is to end."""
        if self.is_over(stage):
            return {}
        self.begin_round()
        machines = dict.fromkeys(numbers, self.machine)
        candidates = [
            (Candidate(C, width, max_basis, metric, linear), machines)
            for metric, C, width, linear in choices
        ]
        records = self._judge(stage, candidates, most_rows)
        self._ended |= {stage} if self.end_round() else set()
        return {
            choice: Outcome(record.scores, record.losses)
            for choice, record in zip(choices, records, strict=True)
        }

    def is_over(self, stage: str) -> bool:
        """Whether a stage is to end: a callback has said so, or the clock."""
        late = self.deadline is not None and time.perf_counter() >= self.deadline
        self.was_late |= late
        return bool(self.records) and (late or stage in self._ended)

    def grow(self, choice: Choice, sizes: Sequence[int], patience: int) -> list[Record]:
        """Judge machines of rising size, of a chosen basis one for each split that grows.

        Ends early when ``patience`` sizes, one after the other, were not better than the best.
        """
        machines = dict.fromkeys(range(len(self.splits)), self.machine)
        metric, C, width, linear = choice
        grown: list[Record] = []
        best = 0
        for place, size in enumerate(sizes):
            if grown and self.is_over("size"):
                break
            self.begin_round()
            candidate = Candidate(C, width, size, metric, linear)
            grown += self._judge("size", [(candidate, machines)], _SEARCH_ROWS)
            if not metric:
                machines = {number: judged.machine for number, judged in grown[-1].by_split.items()}
            if grown[-1].mean > grown[best].mean:
                best = place
            if self.end_round() or place - best >= patience:
                break
        return grown

    def linear_score(self) -> float:
        """Return the mean score of a linear model on the splits; minus infinity if that takes long.

        It is what no machine should fall below.
        """
        n_rows, n_features = self.rows.shape
        is_quick = n_rows * n_features * count_outputs(self.y) <= _LINEAR_WORK
        if not is_quick or self.is_over("size"):
            return -np.inf
        scores = Parallel(n_jobs=_usable_jobs(self.n_jobs))(
            delayed(linear_score)(self.scorer, self._part(train), self._part(test))
            for train, test in self.splits
        )
        return float(np.mean(scores))

    def standing(self) -> str:
        """Say what the last round of the search has found."""
        last = self.records[-1]
        of_stage = [record for record in self.records if record.stage == last.stage]
        best = max(of_stage, key=lambda record: record.mean)
        what = best.candidate
        return (
            f"{len(self.records)} candidates judged, best of stage {last.stage!r} "
            f"{best.mean:.4f} with C={best.weight:g}, width={what.width:g}, "
            f"{what.max_basis} vectors" + (f", metric {what.metric!r}" if what.metric else "")
        )

    def table(self) -> dict[str, Any]:
        """Return the record as columns, an entry for each candidate."""
        records = self.records
        settings = [asdict(record.candidate) | {"C": record.weight} for record in records]
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
                f"param_{name}": np.array([params[name] for params in settings])
                for name in settings[0]
            },
            "params": settings,
            "mean_test_score": np.nanmean(scores, axis=0),
            "std_test_score": np.nanstd(scores, axis=0),
            **{f"split{number}_test_score": row.copy() for number, row in enumerate(scores)},
            "mean_fit_time": means(lambda judged: judged.seconds),
            "mean_test_loss": means(lambda judged: judged.loss),
            "n_basis": means(lambda judged: judged.machine.n_basis_),
            "n_rows": means(lambda judged: judged.n_rows),
        }

    def _judge(
        self,
        stage: str,
        candidates: list[tuple[Candidate, dict[int, SparseKernelMachine]]],
        most_rows: int,
    ) -> list[Record]:
        """Fit the machines of candidates, by the number of the split, and write down the result.

        A learned basis that was judged before, by the same rows, is not learned once more.
        """
        keys, tasks = [], []
        for candidate, machines in candidates:
            for number, machine in machines.items():
                train, test = self.splits[number]
                train = _some(train, self.y, most_rows, self.seed)
                test = _some(test, self.y, _SEARCH_ROWS, self.seed)
                keys.append((str(candidate), number, len(train)))  # by its text: C may be NaN
                if not (candidate.metric and keys[-1] in self._judged):
                    tasks.append((keys[-1], machine, candidate, train, test))
        results = Parallel(n_jobs=_usable_jobs(self.n_jobs))(
            delayed(fit_and_score)(
                machine,
                candidate,
                self.scorer,
                self._part(train),
                self._part(test),
                may_stay=self.rows.shape[0] <= REHEARSED_ROWS,
            )
            for _, machine, candidate, train, test in tasks
        )
        self._judged |= {key: judged for (key, *_), judged in zip(tasks, results, strict=True)}
        found = iter([self._judged[key] for key in keys])
        records = [
            Record(stage, candidate, {number: next(found) for number in machines})
            for candidate, machines in candidates
        ]
        self.records += records
        return records

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
    """Return so many of the rows at the most, of each class its share and at least one.

    Rows with sets of labels are drawn without a look at these.
    """
    if len(places) <= most:
        return places
    drawn = np.random.RandomState(seed).permutation(places)
    if y.ndim == 2:  # of sets of labels there may be as many as rows
        return np.sort(drawn[:most])
    _, labels = np.unique(y[drawn], return_inverse=True)
    counts = np.bincount(labels)
    order = np.argsort(labels, kind="stable")
    place_in_class = np.arange(len(drawn)) - np.repeat(np.cumsum(counts) - counts, counts)
    quota = np.maximum(1, counts * most // len(drawn))
    return np.sort(drawn[order[place_in_class < np.repeat(quota, counts)]])

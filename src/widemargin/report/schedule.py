"""Trials in an order that keeps a time limit.

Each contender is first run on few rows, then on four times as many, as long as that takes a moment.
What that cost says how many rows, and how many splits, the time is good for. A round is one split
for all contenders, those that take least first; who would take more than its share learns from
fewer rows. Whatever takes far longer than expected is ended, and tried with fewer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import median

from widemargin.report.contenders import Contender
from widemargin.report.costs import Costs, fair_share
from widemargin.report.trials import Trial
from widemargin.report.worker import FailedError, Order, TooSlowError, Worker

_KEPT = 0.97  # of the time; the rest is for what no trial is: start, kills, words
_PILOT_ROWS = (500, 2000, 8000, 32_000)  # up to a fourth of the rows
_FEWEST_PILOT_ROWS = 50
_ALL_PILOTS = 0.3  # of the time; who has had none by then is run without
_PILOT_TEST_ROWS = 1000
_PILOT_SHARE = 0.01  # of the time, that a larger pilot may take
_PILOT_PATIENCE = 4.0  # seconds beyond that
_TIMING_SECONDS = 0.2  # that predictions are timed in
_MARGIN = 1.1  # by which trials may take longer than expected without harm to the others
_PATIENCE = 2.0  # times what was expected
_MORE = 1.25  # times as many rows are worth another trial
_UNKNOWN_SECONDS = 1.0  # that a trial takes, where nothing is known of any
_UNKNOWN_SHARE = 0.1  # of the time, that a trial may take of which nothing is known
_ENOUGH_OF_A_ROUND = 0.7  # of the contenders
_FEWEST_ROWS = 500  # that are worth showing
_WANTED_SPLITS = 3
# Of those that do what they can in their time: what is kept for them, the most that they get, both
# shares of all of the time, and the seconds that are worth anything.
_ANYTIME = 0.06
_MOST_OF_ANYTIME = 0.1
_LEAST_SECONDS = 2.0
# Who comes first where nothing is known.
_QUICK_FIRST = ("constant", "linear", "trees", "network", "kernel")

Tell = Callable[[float, str], None]


@dataclass
class Runner:
    """A contender, what is known of its costs, and its trials."""

    contender: Contender
    note: str = ""
    costs: Costs = field(default_factory=lambda: Costs(fixed=_TIMING_SECONDS))
    trials: dict[int, Trial] = field(default_factory=dict)
    n_rows: int = 0  # that it learns from
    seconds: float | None = None  # that it was given, where it ends by itself
    out: bool = False
    failed: bool = False  # by an error, or by taking far too long

    def leave_out(self, note: str, failed: bool = False) -> None:
        """Run it no more, or not now."""
        self.out, self.note, self.failed = True, note, failed


class Schedule:
    """Runs contenders on splits until the time is over.

    Parameters
    ----------
    worker : Worker
    runners : sequence of Runner
    n_train, n_test : int
        Rows of a split.
    n_splits : int
        Splits at the most.
    deadline : float
        By ``time.monotonic``.
    seconds : float
        All of the time.
    tell : callable
        Told the share of the time that is over, and what is being done.
    """

    def __init__(
        self,
        worker: Worker,
        runners: Sequence[Runner],
        *,
        n_train: int,
        n_test: int,
        n_splits: int,
        seconds: float,
        deadline: float,
        tell: Tell,
    ) -> None:
        self.worker, self.runners = worker, list(runners)
        self.n_train, self.n_test, self.n_splits = n_train, n_test, n_splits
        self.seconds, self.tell = seconds, tell
        self.deadline = deadline - (1 - _KEPT) * seconds
        self._start_seconds = 0.0  # that the worker takes to start

    @property
    def left(self) -> float:
        """Seconds until the end."""
        return self.deadline - time.monotonic()

    @property
    def running(self) -> list[Runner]:
        """Those that have not been left out."""
        return [runner for runner in self.runners if not runner.out]

    def run(self) -> None:
        """Run all that there is time for."""
        self._pilots()
        steady = [one for one in self.running if not one.contender.anytime]
        elastic = [one for one in self.running if one.contender.anytime]
        self._first_split(steady, elastic)
        # Where others took less than expected, there may be time for those that were left out; of
        # whom something is known, first.
        left_out = [one for one in steady if one.out and not one.failed]
        for known in (True, False):
            again = [one for one in left_out if one.costs.known == known]
            for runner in again:
                runner.out, runner.note = False, ""
            self._first_split(again, elastic)
        self._again_with_more_rows(elastic)
        self._first_split(elastic, [])
        for split in range(1, self.n_splits):
            self._further_split(split)

    def _pilots(self) -> None:
        """Run pilots, of who is likely to be quick first, in a part of the time."""
        enough = self.left - _ALL_PILOTS * self.seconds
        for runner in sorted(self.running, key=_likely_speed):
            if self.left > enough:
                self._pilot(runner)

    def _pilot(self, runner: Runner) -> None:
        """Find out what few rows cost, and more of them while that takes a moment."""
        allowed = _PILOT_SHARE * self.seconds
        n_test = min(_PILOT_TEST_ROWS, self.n_test)
        for n_rows in self._pilot_rows():
            if self.left <= 0:
                return
            if not self._worth_a_pilot(runner, n_rows, n_test):
                return
            order = Order(runner.contender.name, 0, n_rows, n_test, 5 * allowed, timing=0.0)
            if self._try(runner, order, min(self.left, 5 * allowed + _PILOT_PATIENCE)) is None:
                if not runner.out:
                    words = f"left out: {n_rows:,} rows took too long already"
                    runner.leave_out(words, failed=True)
                return

    def _pilot_rows(self) -> list[int]:
        fourth = self.n_train // 4
        if fourth < _FEWEST_PILOT_ROWS:
            return []
        return [n_rows for n_rows in _PILOT_ROWS if n_rows <= fourth] or [fourth]

    def _worth_a_pilot(self, runner: Runner, n_rows: int, n_test: int) -> bool:
        """Whether more rows are a matter of a moment; of a single pilot little can be told."""
        allowed = _PILOT_SHARE * self.seconds
        n_pilots = len(runner.costs.fit.points)
        if n_pilots == 0:
            return True
        if n_pilots == 1:
            return self._cost(runner, *runner.costs.fit.points) < allowed
        return runner.costs.seconds(n_rows, n_test) < allowed

    def _first_split(self, runners: Sequence[Runner], later: Sequence[Runner]) -> None:
        """Run the first split of some contenders, with time kept for those that come later."""
        waiting = [one for one in runners if not one.out]
        waiting.sort(
            key=lambda one: (not one.costs.known, self._full_cost(one), _likely_speed(one))
        )
        while waiting:
            runner = waiting.pop(0)
            self._make_room(runner, waiting, later)
            for _ in range(2):
                if self._allot(runner, [*waiting, *later]):
                    self._try_split(runner, 0, min(self.left, self._limit(runner)))
                if runner.out or runner.trials:
                    break
            else:
                runner.leave_out("left out: it took far longer than expected", failed=True)

    def _make_room(self, runner: Runner, waiting: list[Runner], later: Sequence[Runner]) -> None:
        """Leave out who takes most while there is no time for all, even with few rows."""
        few = min(_FEWEST_ROWS, self.n_train)

        def needs() -> float:
            others = [one for one in (*waiting, *later) if not one.out]
            return sum(self._cost(one, few) for one in (runner, *others))

        while waiting and needs() > self.left / _MARGIN:
            dearest = max(waiting, key=lambda one: self._cost(one, few))
            waiting.remove(dearest)
            dearest.leave_out(self._no_time(dearest))

    def _no_time(self, runner: Runner) -> str:
        return (
            f"left out: about {self._full_cost(runner):.0f} s a split, which there is no time for"
        )

    def _again_with_more_rows(self, later: Sequence[Runner]) -> None:
        """Give back rows to those that were denied them, where others took less than expected."""
        denied = [one for one in self.running if one.trials and one.n_rows < self.n_train]
        while denied:
            runner = min(denied, key=self._full_cost)
            denied.remove(runner)
            before, trials = runner.n_rows, runner.trials
            runner.trials = {}
            enough = self._allot(runner, [*denied, *later]) and runner.n_rows > _MORE * before
            if enough:
                self._try_split(runner, 0, min(self.left, self._limit(runner)))
            if not runner.trials:
                runner.n_rows, runner.trials, runner.out, runner.note = before, trials, False, ""

    def _limit(self, runner: Runner) -> float:
        """Return after how many seconds a trial has taken far longer than expected."""
        expected = runner.seconds or self._cost(runner, runner.n_rows)
        margin = _PILOT_SHARE if runner.costs.known else _UNKNOWN_SHARE
        return _PATIENCE * expected + margin * self.seconds

    def _further_split(self, split: int) -> None:
        """Run a split if there is time for most; those that take least come first."""
        able = [(self._cost(one, one.n_rows), one) for one in self.running if one.trials]
        able.sort(key=lambda pair: pair[0])
        reached = accumulate(_MARGIN * cost for cost, _ in able)
        n_within = sum(end < self.left for end in reached)
        if n_within < _ENOUGH_OF_A_ROUND * len(able):
            return
        for _, runner in able[:n_within]:
            self._try_split(runner, split, min(self.left, self._limit(runner)))

    def _rounds(self, waiting: Sequence[Runner]) -> int:
        """Return for how many splits the time is planned, as costs are known so far.

        Up to three splits rows are given up for them; beyond, no longer.
        """
        few = min(_FEWEST_ROWS, self.n_train)
        full = sum(self._full_cost(runner) for runner in waiting)
        least = sum(self._cost(runner, few) for runner in waiting)
        done = self._spent()
        affordable, possible = ((self.left + done) / (each + done) for each in (full, least))
        wanted = max(affordable, min(_WANTED_SPLITS, possible))
        return max(1, min(int(wanted), self.n_splits))

    def _spent(self) -> float:
        """Return what a split takes of those that have had the first one."""
        return sum(self._cost(one, one.n_rows) for one in self.running if one.trials)

    def _allot(self, runner: Runner, others: Sequence[Runner]) -> bool:
        """Say how many rows a contender learns from; none leaves it out."""
        waiting = (runner, *others)
        rounds = self._rounds(waiting)
        for_first = (self.left / _MARGIN - (rounds - 1) * self._spent()) / rounds
        needs = [self._full_cost(one) for one in waiting]
        share = fair_share(needs, max(for_first, 0.0))
        if runner.contender.anytime:
            runner.n_rows = self.n_train
            spare = for_first - sum(min(need, share) for need in needs[1:])
            runner.seconds = min(spare, _MOST_OF_ANYTIME * self.seconds)
            enough = runner.seconds >= _LEAST_SECONDS
        else:
            runner.n_rows = self._rows_within(runner, share)
            enough = runner.n_rows >= min(_FEWEST_ROWS, self.n_train)
        if not enough:
            runner.leave_out(self._no_time(runner))
        return enough

    def _rows_within(self, runner: Runner, seconds: float) -> int:
        if runner.costs.known:
            return runner.costs.rows_within(seconds, self.n_train, self.n_test)
        return self.n_train if self._full_cost(runner) <= seconds else 0

    def _try_split(self, runner: Runner, split: int, limit: float) -> None:
        seconds = runner.seconds or 0.8 * limit
        order = Order(runner.contender.name, split, runner.n_rows, self.n_test, seconds)
        trial = self._try(runner, order, limit)
        if trial is not None:
            runner.trials[split] = trial

    def _try(self, runner: Runner, order: Order, limit: float) -> Trial | None:
        """Run a trial and learn what it cost, whether it ends or has to be ended."""
        if self.left <= (0.0 if self.worker.is_running else self._start_seconds):
            return None
        done = 1 - max(self.left, 0.0) / self.seconds
        self.tell(done, f"{order.name}, split {order.split + 1}, {order.n_rows:,} rows")
        self._start()
        started = time.monotonic()
        try:
            trial = self.worker.run(order, min(limit, self.left))
        except TooSlowError:
            runner.costs.add(order.n_rows, order.n_test, 2 * (time.monotonic() - started), 0.0)
            return None
        except FailedError as error:
            if not runner.trials:
                runner.leave_out(f"failed: {error}", failed=True)
            return None
        took = time.monotonic() - started - 2 * order.timing
        runner.costs.add(order.n_rows, order.n_test, took, 1e-6 * trial.batch_us)
        return trial

    def _start(self) -> None:
        """Start the worker where it was ended, and learn how long that takes."""
        if not self.worker.is_running:
            started = time.monotonic()
            self.worker.start()
            self._start_seconds = time.monotonic() - started

    def _full_cost(self, runner: Runner) -> float:
        if runner.contender.anytime and not runner.trials:
            return _ANYTIME * self.seconds
        return self._cost(runner, self.n_train)

    def _cost(self, runner: Runner, n_rows: int) -> float:
        """Return what a trial takes; who has had none is taken for one of the others."""
        if runner.costs.known:
            return runner.costs.seconds(n_rows, self.n_test)
        others = [one.costs.seconds(n_rows, self.n_test) for one in self.runners if one.costs.known]
        return max(median(others), _UNKNOWN_SECONDS) if others else _UNKNOWN_SECONDS


def _likely_speed(runner: Runner) -> int:
    return _QUICK_FIRST.index(runner.contender.family)

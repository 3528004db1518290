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

from widemargin.report.contenders import Contender
from widemargin.report.costs import Costs, fair_share
from widemargin.report.trials import Trial
from widemargin.report.worker import FailedError, Order, TooSlowError, Worker

_KEPT = 0.97  # of the time; the rest is for what no trial is: start, kills, words
_PILOT_ROWS = (500, 2000, 8000, 32_000)
_PILOT_TEST_ROWS = 1000
_PILOT_SHARE = 0.007  # of the time, that a larger pilot may take
_PILOT_PATIENCE = 4.0  # seconds beyond that
_TIMING_SECONDS = 0.2  # that predictions are timed in
_PATIENCE = 2.0  # times what was expected
_FEWEST_ROWS = 500  # that are worth showing
_WANTED_SPLITS = 3
_LEAST_SECONDS = 3.0  # that a contender without end of its own can do something in

Tell = Callable[[float, str], None]


@dataclass
class Runner:
    """A contender, what is known of its costs, and its trials."""

    contender: Contender
    note: str = ""
    costs: Costs = field(default_factory=Costs)
    trials: dict[int, Trial] = field(default_factory=dict)
    n_rows: int = 0  # that it learns from
    full_seconds: float = 0.0  # what all rows would take, where it learns from fewer
    seconds: float | None = None  # that it was given, where it ends by itself
    out: bool = False

    def leave_out(self, note: str) -> None:
        """Run it no more."""
        self.out, self.note = True, note


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
        for runner in self.running:
            self._pilot(runner)
        self._first_split()
        for split in range(1, self.n_splits):
            self._further_split(split)

    def _pilot(self, runner: Runner) -> None:
        """Find out what few rows cost, and more of them while that takes a moment."""
        allowed = _PILOT_SHARE * self.seconds
        half, n_test = self.n_train // 2, min(_PILOT_TEST_ROWS, self.n_test)
        for n_rows in [n for n in _PILOT_ROWS if n <= half] or [half]:
            if self.left <= 0:
                return
            if runner.costs.known and runner.costs.seconds(n_rows, n_test) > allowed:
                return
            order = Order(runner.contender.name, 0, n_rows, n_test, 5 * allowed, timing=0.0)
            if self._try(runner, order, min(self.left, 5 * allowed + _PILOT_PATIENCE)) is None:
                if not runner.out:
                    runner.leave_out(f"left out: {n_rows:,} rows took too long already")
                return

    def _first_split(self) -> None:
        rounds = self._rounds()
        waiting = sorted(self.running, key=self._full_cost)
        while waiting:
            runner = waiting.pop(0)
            for _ in range(2):
                if self._allot(runner, waiting, rounds):
                    expected = runner.seconds or self._cost(runner, runner.n_rows)
                    limit = _PATIENCE * (expected + _PILOT_SHARE * self.seconds)
                    self._try_split(runner, 0, min(self.left, limit))
                if runner.out or runner.trials:
                    break
            else:
                runner.leave_out("left out: it took far longer than expected")

    def _further_split(self, split: int) -> None:
        """Run a split if all that the first one had can have it, or three are not there yet."""
        able = sorted(
            (one for one in self.running if one.trials), key=lambda one: self._cost(one, one.n_rows)
        )
        total = sum(self._cost(runner, runner.n_rows) for runner in able)
        if total > self.left and split >= _WANTED_SPLITS:
            return
        for runner in able:
            expected = 1.1 * self._cost(runner, runner.n_rows)
            if expected < self.left:
                self._try_split(runner, split, self.left)

    def _rounds(self) -> int:
        """Return for how many splits the time is planned.

        Up to three splits rows are given up for them; beyond, no longer.
        """
        few = min(_FEWEST_ROWS, self.n_train)
        full = sum(self._full_cost(runner) for runner in self.running)
        least = sum(self._cost(runner, few) for runner in self.running)
        wanted = max(self.left / full, min(_WANTED_SPLITS, self.left / least)) if full else 1.0
        return max(1, min(int(wanted), self.n_splits))

    def _allot(self, runner: Runner, waiting: Sequence[Runner], rounds: int) -> bool:
        """Say how many rows a contender learns from; none leaves it out."""
        done = sum(self._cost(one, one.n_rows) for one in self.running if one.trials)
        for_first = (self.left - (rounds - 1) * done) / rounds
        needs = [self._full_cost(one) for one in (runner, *waiting)]
        share = fair_share(needs, max(for_first, 0.0))
        full = self._full_cost(runner)
        if runner.contender.anytime:
            runner.n_rows = self.n_train
            runner.seconds = min(share, self.left) - _TIMING_SECONDS
            enough = runner.seconds >= min(_LEAST_SECONDS, full)
        else:
            runner.n_rows = runner.costs.rows_within(share, self.n_train, self.n_test)
            enough = runner.n_rows >= min(_FEWEST_ROWS, self.n_train)
        if not enough:
            runner.leave_out(f"left out: about {full:.0f} s a split, which there is no time for")
        elif runner.n_rows < self.n_train:
            runner.full_seconds = full
        return enough

    def _try_split(self, runner: Runner, split: int, limit: float) -> None:
        seconds = runner.seconds or 0.8 * limit
        order = Order(runner.contender.name, split, runner.n_rows, self.n_test, seconds)
        trial = self._try(runner, order, limit)
        if trial is not None:
            runner.trials[split] = trial

    def _try(self, runner: Runner, order: Order, limit: float) -> Trial | None:
        """Run a trial and learn what it cost, whether it ends or has to be ended."""
        done = 1 - max(self.left, 0.0) / self.seconds
        self.tell(done, f"{order.name}, split {order.split + 1}, {order.n_rows:,} rows")
        self.worker.start()
        started = time.monotonic()
        try:
            trial = self.worker.run(order, limit)
        except TooSlowError:
            runner.costs.add(order.n_rows, order.n_test, 2 * (time.monotonic() - started), 0.0)
            return None
        except FailedError as error:
            if not runner.trials:
                runner.leave_out(f"failed: {error}")
            return None
        took = time.monotonic() - started + _TIMING_SECONDS - 2 * order.timing
        runner.costs.add(order.n_rows, order.n_test, took, 1e-6 * trial.batch_us)
        return trial

    def _full_cost(self, runner: Runner) -> float:
        return self._cost(runner, self.n_train)

    def _cost(self, runner: Runner, n_rows: int) -> float:
        return runner.costs.seconds(n_rows, self.n_test)

"""Comparisons keep their time limit, whatever contenders cost, and give the time to good use."""

from types import SimpleNamespace

import numpy as np
import pytest

from widemargin.report import schedule
from widemargin.report.contenders import Contender
from widemargin.report.costs import Costs, PowerLaw, fair_share
from widemargin.report.schedule import Runner, Schedule
from widemargin.report.trials import Trial
from widemargin.report.worker import FailedError, TooSlowError


class Clock:
    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


class MadeUpWorker:
    """Takes as long as a contender's ``build`` says, by a clock that it moves itself."""

    def __init__(self, clock, contenders, start_seconds=2.0):
        self.clock, self.contenders = clock, {one.name: one for one in contenders}
        self.start_seconds, self.is_running = start_seconds, False
        self.orders = []

    def start(self):
        if not self.is_running:
            self.clock.now += self.start_seconds
            self.is_running = True

    def run(self, order, limit):
        self.orders.append(order)
        contender = self.contenders[order.name]
        took = contender.build(order.n_rows)
        if contender.anytime:
            took = min(took, order.seconds + 0.5)
        if took > limit:
            self.clock.now += limit
            self.is_running = False
            raise TooSlowError
        self.clock.now += took
        if order.name == "failing":
            raise FailedError("ValueError: no")
        return Trial(0.5, took, 1.0, 10.0, 100, None)


def a_contender(name, cost, anytime=False):
    return Contender(name, "peer", "kernel", cost, "", anytime=anytime)


def run(contenders, monkeypatch, *, seconds=300.0, n_train=24_000, n_splits=5):
    clock = Clock()
    monkeypatch.setattr(schedule, "time", SimpleNamespace(monotonic=clock.monotonic))
    worker = MadeUpWorker(clock, contenders)
    runners = [Runner(one) for one in contenders]
    told = []
    Schedule(
        worker,
        runners,
        n_train=n_train,
        n_test=6000,
        n_splits=n_splits,
        seconds=seconds,
        deadline=seconds,
        tell=lambda share, text: told.append((share, text)),
    ).run()
    assert clock.now <= seconds
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    return {runner.contender.name: runner for runner in runners}, clock.now


def test_where_all_is_cheap_all_rows_and_splits_are_used(monkeypatch):
    cheap = [a_contender(f"c{i}", lambda n: 1e-5 * n) for i in range(10)]
    found, took = run(cheap, monkeypatch)
    assert all(set(one.trials) == {0, 1, 2, 3, 4} for one in found.values())
    assert all(one.n_rows == 24_000 for one in found.values())
    assert took < 100


def test_who_takes_too_long_learns_from_fewer_rows(monkeypatch):
    many = [a_contender(f"c{i}", lambda n: 1e-4 * n) for i in range(10)]
    found, took = run([*many, a_contender("slow", lambda n: 1e-6 * n**2)], monkeypatch)
    assert all(found[f"c{i}"].n_rows == 24_000 for i in range(10))
    assert 2000 < found["slow"].n_rows < 24_000
    assert found["slow"].costs.seconds(24_000, 6000) == pytest.approx(576, rel=0.1)
    assert len(found["slow"].trials) >= 3
    assert took > 200  # time that there is, is used


def test_what_nobody_could_foresee_is_ended_and_tried_with_fewer_rows(monkeypatch):
    def cliff(n):
        return 0.1 if n <= 2000 else 1e-2 * n

    quick = [a_contender(f"c{i}", lambda n: 1e-5 * n) for i in range(5)]
    found, _ = run([*quick, a_contender("cliff", cliff)], monkeypatch, seconds=100)
    assert all(len(found[f"c{i}"].trials) == 5 for i in range(5))
    assert found["cliff"].out or found["cliff"].n_rows < 24_000


def test_who_fails_or_never_ends_is_left_out_and_says_why(monkeypatch):
    rows = [
        a_contender("fine", lambda n: 1e-4 * n),
        a_contender("failing", lambda n: 0.1),
        a_contender("endless", lambda n: 1e9),
    ]
    found, _ = run(rows, monkeypatch, seconds=60)
    assert found["fine"].trials
    assert found["failing"].note == "failed: ValueError: no"
    assert "500 rows took too long" in found["endless"].note


def test_who_can_use_any_time_gets_what_others_leave(monkeypatch):
    rows = [a_contender(f"c{i}", lambda n: 1e-4 * n) for i in range(10)]
    found, _ = run([*rows, a_contender("any", lambda n: 1e6, anytime=True)], monkeypatch)
    assert found["any"].n_rows == 24_000
    assert 15 < found["any"].seconds < 31
    assert all(len(found[f"c{i}"].trials) >= 3 for i in range(10))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("seconds", [20.0, 60.0, 300.0])
@pytest.mark.every_case
def test_the_time_is_kept_whatever_contenders_cost(seed, seconds, monkeypatch):
    rng = np.random.default_rng(seed)

    def some_cost():
        scale, power = 10 ** rng.uniform(-2, 1.5), rng.uniform(0.2, 2.8)
        cliff, factor = rng.integers(500, 60_000), rng.choice([1, 1, 30])
        return lambda n: scale * (n / 2000) ** power * (factor if n > cliff else 1)

    rows = [a_contender(f"c{i}", some_cost(), anytime=i == 0) for i in range(17)]
    n_train = int(10 ** rng.uniform(1.5, 5.5))
    found, _ = run(rows, monkeypatch, seconds=seconds, n_train=n_train)
    for one in found.values():
        assert one.trials or one.note


def test_a_law_goes_by_the_largest_measurements():
    law = PowerLaw()
    for n_rows in (500, 2000, 8000):
        law.add(n_rows, 1.0 + 1e-6 * n_rows**2)
    assert 1.5 < law.exponent < 2
    law.add(8001, 65.0)  # too near to tell anything
    assert 1.5 < law.exponent < 2
    assert law.at(16_000) == pytest.approx(256, rel=0.2)


def test_rows_within_a_time_are_as_many_as_fit():
    costs = Costs(fixed=0.2)
    assert costs.seconds(1000, 10) == 1.0  # nothing is known
    costs.add(1000, 100, 1.0, 1e-4)
    costs.add(4000, 100, 4.0, 4e-4)
    n_rows = costs.rows_within(6.0, 100_000, 100)
    assert costs.seconds(n_rows, 100) <= 6.0 < costs.seconds(int(1.1 * n_rows), 100)
    assert costs.rows_within(1e9, 100_000, 100) == 100_000
    assert costs.rows_within(0.1, 100_000, 100) == 0


@pytest.mark.parametrize(
    ("needs", "seconds", "share"),
    [([1, 1, 10], 6, 4), ([1, 1, 1], 6, np.inf), ([5, 5], 6, 3), ([1, 2, 30, 30], 13, 5)],
)
def test_who_needs_less_leaves_the_rest_to_others(needs, seconds, share):
    assert fair_share(needs, seconds) == pytest.approx(share)

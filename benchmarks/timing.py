"""Clocks: for a fit, for calls that take turns, and for calls so short that many must be timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

PAUSE = 0.05  # seconds
LONG_ENOUGH = 0.01  # seconds


def fit_seconds(estimator: Any, X: np.ndarray, y: np.ndarray) -> float:
    started = time.perf_counter()
    estimator.fit(X, y)
    return time.perf_counter() - started


def take_turns(calls: dict[Any, Callable[[], Any]], repeats: int) -> dict[Any, float]:
    """Return the median seconds of each call; in each round all are called once.

    Calls shorter than ``LONG_ENOUGH`` are repeated within their turn until it has passed.
    """
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            # The threads of a BLAS or of OpenMP spin for a while after their work is done.
            time.sleep(PAUSE)
            seconds[name].append(_seconds(call))
    return {name: median(each) for name, each in seconds.items()}


def _seconds(call: Callable[[], Any]) -> float:
    times: list[float] = []
    while sum(times) < LONG_ENOUGH:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return median(times)


@dataclass(frozen=True)
class Call:
    """A function of one argument, and different arguments to call it with."""

    title: str
    function: Callable[[Any], Any]
    arguments: Sequence[Any]


@dataclass(frozen=True)
class CallTimes:
    """Microseconds of a call."""

    title: str
    one_by_one: float  # median of calls timed one by one, the reading of the clock included
    in_a_loop: float  # median of the means of loops


def time_calls(calls: dict[str, Call], n_calls: int, rounds: int) -> dict[str, CallTimes]:
    """Time this many calls of each function; in each round all functions have their share."""
    share = max(1, n_calls // rounds)
    singles: dict[str, list[float]] = {name: [] for name in calls}
    loops: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            arguments = [call.arguments[i % len(call.arguments)] for i in range(share)]
            _one_by_one(call.function, arguments[:50])  # until caches and branches have settled
            singles[name] += _one_by_one(call.function, arguments)
            loops[name] += [_in_a_loop(call.function, arguments) for _ in range(3)]
    return {
        name: CallTimes(call.title, median(singles[name]), median(loops[name]))
        for name, call in calls.items()
    }


def _one_by_one(function: Callable[[Any], Any], arguments: Sequence[Any]) -> list[float]:
    clock = time.perf_counter_ns
    times = []
    for argument in arguments:
        started = clock()
        function(argument)
        times.append((clock() - started) / 1e3)
    return times


def _in_a_loop(function: Callable[[Any], Any], arguments: Sequence[Any]) -> float:
    started = time.perf_counter_ns()
    for argument in arguments:
        function(argument)
    return (time.perf_counter_ns() - started) / 1e3 / len(arguments)

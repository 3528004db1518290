"""What all solvers have in common: a protocol, and the progress of a fit.

A solver has settings and nothing that moves; a *state* has all that moves, random numbers
included. So a fit that was stopped goes on from its state as if it had never been stopped, to the
bit, and a state is made of what model files hold.

    state = solver.init(problem, ...)       where it begins
    solver.solve(problem, state, progress)  rounds, until there is a reason to stop
    solver.finish(problem, state)           what the estimator keeps, exact to its tolerance

``finish`` leaves the state as it is: whoever goes on does so from the last round.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np


@dataclass(kw_only=True)
class SolverState(ABC):
    """Everything that moves while a solver works.

    Attributes
    ----------
    history : dict of list
        The way so far, an entry a round.
    stopped_because : str
        Why the last round was the last; empty as long as there are more.
    """

    history: dict[str, list[float]] = field(default_factory=dict)
    stopped_because: str = ""

    @abstractmethod
    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold: arrays, numbers, strings, lists and dicts."""

    @classmethod
    @abstractmethod
    def unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        """Return the state that was packed, bound to the same problem."""


State = TypeVar("State", bound=SolverState)


@dataclass
class Progress:
    """Watches over the rounds of a fit: writes them down, tells callbacks, looks at the clock.

    Parameters
    ----------
    max_seconds : float or None, default=None
        Time limit of the rounds.
    before_round : callable
        Called before each round.
    after_round : callable
        Called after each round that was finished; True asks to stop.
    earlier : float, default=0.0
        Seconds that the fit had taken before it was stopped, where it goes on: they are part of
        the record, and not of the time limit.
    """

    max_seconds: float | None = None
    before_round: Callable[[], None] = lambda: None
    after_round: Callable[[], bool] = lambda: False
    earlier: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def begin_round(self) -> None:
        """Say that a round begins."""
        self.before_round()

    def seconds(self) -> float:
        """Return the time since the fit began, or went on."""
        return time.perf_counter() - self.started

    def seconds_left(self) -> float | None:
        """Return how much of the time limit is left, for a part of the fit; None without one."""
        return None if self.max_seconds is None else max(self.max_seconds - self.seconds(), 0.0)

    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.max_seconds is not None and self.seconds() >= self.max_seconds

    def end_round(self, state: SolverState, entries: dict[str, float]) -> None:
        """Write the round down; a callback or the clock may be a reason to stop.

        One that came to nothing has no entries, and is not written down.
        """
        if entries:
            for name, value in {"seconds": self.earlier + self.seconds(), **entries}.items():
                state.history.setdefault(name, []).append(value)
        asked = self.after_round()
        if not state.stopped_because:
            state.stopped_because = "callback" if asked else "max_seconds" * self.is_late()


class Solver(ABC, Generic[State]):
    """Settings of a way to solve a problem.

    Attributes
    ----------
    name : str
    requires : tuple of str
        Methods that the problem must have. A problem without them is refused before anything moves.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def step(self, problem: Any, state: State, progress: Progress) -> dict[str, float] | None:
        """Do a round, which may set ``state.stopped_because``; return what is to be written down.

        A round that takes long asks ``progress.is_late()`` on its way. Where it stops in its midst
        it returns None, and the state has all that the rest of it needs: whoever goes on begins
        with that rest, and the round is written down at its end.
        """

    def solve(self, problem: Any, state: State, progress: Progress) -> State:
        """Do rounds until there is a reason to stop; a state that was stopped goes on."""
        self.check(problem)
        state.stopped_because = ""
        while not state.stopped_because:
            progress.begin_round()
            entries = self.step(problem, state, progress)
            if entries is not None:
                progress.end_round(state, entries)
        return state

    @abstractmethod
    def finish(self, problem: Any, state: State) -> Any:
        """Return what the estimator keeps; the state stays as it is."""

    def check(self, problem: Any) -> None:
        """Refuse a problem that lacks what this solver needs of it."""
        missing = [name for name in self.requires if not hasattr(problem, name)]
        if missing:
            raise TypeError(
                f"{type(self).__name__} needs {', '.join(missing)} of its problem, which "
                f"{type(problem).__name__} does not have."
            )


def pack_random(rng: np.random.RandomState) -> dict[str, Any]:
    """Return the state of random numbers as what model files hold."""
    _, keys, place, has_gauss, gauss = rng.get_state(legacy=True)
    return {"keys": keys, "place": place, "has_gauss": has_gauss, "gauss": gauss}


def unpack_random(packed: dict[str, Any]) -> np.random.RandomState:
    """Return random numbers that go on from a packed state."""
    rng = np.random.RandomState()
    rng.set_state(
        ("MT19937", packed["keys"], packed["place"], packed["has_gauss"], packed["gauss"])
    )
    return rng

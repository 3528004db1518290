"""What a fit will take, from what smaller ones took, and who gets how much of the time.

Seconds grow like a power of the rows, by an exponent that the fits so far show. Time
is shared as water fills vessels: who needs less than an equal share gets what it needs, and the
others share what that leaves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

_EXPONENTS = 0.5, 2.3  # beyond these, what was measured is start-up time or noise
_UNKNOWN_EXPONENT = 1.0  # of a single measurement, which is of few rows and mostly of start-up


@dataclass
class PowerLaw:
    """A cost that was measured for some numbers of rows."""

    points: dict[int, float] = field(default_factory=dict)

    def add(self, n_rows: int, cost: float) -> None:
        """Take note of a measurement; the last one of a number of rows counts."""
        self.points[n_rows] = max(cost, 1e-9)

    @property
    def exponent(self) -> float:
        """By which power of the rows it grows, from the largest measurement and one of half."""
        many = max(self.points)
        few = max((n_rows for n_rows in self.points if n_rows <= many / 2), default=0)
        if few == 0:
            return _UNKNOWN_EXPONENT
        found = math.log(self.points[many] / self.points[few]) / math.log(many / few)
        return min(max(found, _EXPONENTS[0]), _EXPONENTS[1])

    def at(self, n_rows: int) -> float:
        """Return the cost for so many rows, once there is a measurement."""
        nearest = max(self.points)
        return float(self.points[nearest] * (n_rows / nearest) ** self.exponent)


@dataclass
class Costs:
    """What trials of a contender take: to predict their test rows, and for all else."""

    fit: PowerLaw = field(default_factory=PowerLaw)
    row: PowerLaw = field(default_factory=PowerLaw)  # seconds a predicted row
    fixed: float = 0.0  # seconds that do not grow with the rows

    @property
    def known(self) -> bool:
        """Whether there was a trial."""
        return bool(self.fit.points)

    def add(self, n_rows: int, n_test: int, seconds: float, row_seconds: float) -> None:
        """Take note of a trial, which took so many seconds, without the fixed ones."""
        self.fit.add(n_rows, seconds - n_test * row_seconds)
        self.row.add(n_rows, row_seconds)

    def seconds(self, n_rows: int, n_test: int) -> float:
        """Return how long a trial will take, once there was one."""
        return self.fit.at(n_rows) + n_test * self.row.at(n_rows) + self.fixed

    def rows_within(self, seconds: float, n_rows: int, n_test: int) -> int:
        """Return how many of the rows can be learned from in this time."""
        if self.seconds(n_rows, n_test) <= seconds:
            return n_rows
        few, many = 0, n_rows
        while many - few > max(1, n_rows // 1000):
            middle = (few + many) // 2
            fits = self.seconds(middle, n_test) <= seconds
            few, many = (middle, many) if fits else (few, middle)
        return few


def fair_share(needs: Sequence[float], seconds: float) -> float:
    """Return the most that anyone gets, so that all together get no more than ``seconds``.

    Parameters
    ----------
    needs : sequence of float
        What each would take.
    seconds : float
        What there is.
    """
    left = seconds
    for served, need in enumerate(sorted(needs)):
        share = left / (len(needs) - served)
        if need > share:
            return share
        left -= need
    return math.inf

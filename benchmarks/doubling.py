"""How the time of a fit grows as its rows, or its vectors, double."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from benchmarks.settings import Settings


def rows_that_double(settings: Settings) -> tuple[int, ...]:
    return settings.amount((5_000, 10_000, 20_000, 40_000), quick=(500, 1_000, 2_000))


def vectors_of_doubling(settings: Settings) -> int:
    return settings.amount(100, quick=12)


@dataclass(frozen=True)
class Doubling:
    """Seconds by number of rows; the median of several runs that take turns."""

    n_vectors: int
    seconds: dict[int, float]

    @property
    def growth(self) -> list[float]:
        times = [self.seconds[n_rows] for n_rows in sorted(self.seconds)]
        return [after / before for before, after in pairwise(times)]

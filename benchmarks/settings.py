"""How much of everything is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from benchmarks import data
from benchmarks.data import Dataset

Amount = TypeVar("Amount")


@dataclass(frozen=True)
class Settings:
    """Defaults are the full run. ``QUICK`` only shows that the programs work."""

    seeds: tuple[int, ...] = (0, 1, 2)
    repeats: int = 3  # timed runs, of which the median counts
    max_rows: int | None = None  # rows used of each file; None: all
    is_quick: bool = False

    def amount(self, full: Amount, quick: Amount) -> Amount:
        """Return how much of something one part measures, in a full run or in a quick one."""
        return quick if self.is_quick else full

    def load(self, name: str, dtype: str = "float64") -> Dataset:
        """Return the rows of a data set that are used."""
        return self.load_whole(name, dtype).thinned(self.max_rows)

    def load_whole(self, name: str, dtype: str = "float64") -> Dataset:
        """Return a data set; in a quick run without data sets, one of scikit-learn's instead."""
        if self.is_quick and not data.is_available():
            return data.stand_in(name, dtype)
        return data.load(name, dtype)


QUICK = Settings(seeds=(0,), repeats=1, max_rows=200, is_quick=True)

"""How much of everything is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Defaults are the full run. ``QUICK`` only shows that the programs work."""

    seeds: tuple[int, ...] = (0, 1, 2)
    repeats: int = 3  # timed runs, of which the median counts
    max_rows: int | None = None  # rows used of each file; None: all
    doubling_rows: tuple[int, ...] = (5_000, 10_000, 20_000, 40_000)
    doubling_vectors: int = 100
    memory_rows: int = 60_000
    memory_vectors: int = 300
    prediction_rows: int = 1_000_000
    wide_rows: int = 100_000  # where rows have hundreds of features
    single_calls: int = 5_000  # timed calls with one row
    batch_rows: int = 10_000
    agreement_rows: int = 1_000
    compiled_vectors: int = 768
    stream_patterns: int = 5_000  # that a machine has when single rows are learned
    stream_calls: int = 500  # timed calls that learn one row
    kernlab_rows: int = 3_000
    is_quick: bool = False


QUICK = Settings(
    seeds=(0,),
    repeats=1,
    max_rows=1_000,
    doubling_rows=(1_000, 2_000, 4_000),
    doubling_vectors=30,
    memory_rows=5_000,
    memory_vectors=50,
    prediction_rows=20_000,
    wide_rows=2_000,
    single_calls=200,
    batch_rows=1_000,
    agreement_rows=200,
    compiled_vectors=100,
    stream_patterns=300,
    stream_calls=100,
    kernlab_rows=300,
    is_quick=True,
)

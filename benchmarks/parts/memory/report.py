"""Peak memory as a row of the table of targets."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.part import Row
from benchmarks.parts.memory.measure import Peak
from benchmarks.parts.memory.targets import MEMORY


def target_rows(peak: Peak) -> Iterator[Row]:
    text = (
        f"{peak.gigabytes:.2f} GB ({peak.loaded_gigabytes:.2f} before the fit, which took "
        f"{peak.seconds:.0f} s), {peak.where}, {peak.n_vectors} vectors"
    )
    yield MEMORY, peak.gigabytes, text


def sections(peak: Peak) -> list[str]:
    return []

"""What is promised of memory."""

from __future__ import annotations

from benchmarks.targets import Target

MEMORY = Target("peak memory, 60000 x 780 float32 (mnist), 300 vectors", 1.5, 0.8, "lower", " GB")

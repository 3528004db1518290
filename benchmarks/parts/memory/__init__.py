"""Peak memory of a large fit."""

from benchmarks.part import Part
from benchmarks.parts.memory.measure import measure
from benchmarks.parts.memory.report import sections, target_rows

PART = Part(measure, target_rows, sections, ("mnist",))

"""Animals that were never seen, by their attributes, beside the closed form of ESZSL."""

from benchmarks.part import Part
from benchmarks.parts.zero_shot.measure import measure
from benchmarks.parts.zero_shot.report import sections, target_rows

PART = Part(measure, target_rows, sections)

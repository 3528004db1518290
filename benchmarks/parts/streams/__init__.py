"""A stream of five million rows: memory, and rows a second."""

from benchmarks.part import Part
from benchmarks.parts.streams.measure import measure
from benchmarks.parts.streams.report import sections, target_rows

PART = Part(measure, target_rows, sections)

"""Sparse machines of label sets beside constant answers and one linear machine a label."""

from benchmarks.part import Part
from benchmarks.parts.labels.measure import measure
from benchmarks.parts.labels.report import sections, target_rows

PART = Part(measure, target_rows, sections)

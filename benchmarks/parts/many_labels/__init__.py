"""Hundreds of labels: precision of a model of a megabyte, and thresholds for rare labels."""

from benchmarks.part import Part
from benchmarks.parts.many_labels.measure import measure
from benchmarks.parts.many_labels.report import sections, target_rows

PART = Part(measure, target_rows, sections)

"""Machines as they come, with no setting but their size, beside what people use instead."""

from benchmarks.part import Part
from benchmarks.parts.defaults.measure import DATASETS, measure
from benchmarks.parts.defaults.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

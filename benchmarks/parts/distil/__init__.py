"""Learned vectors taught by an SVC and by boosted trees, beside those that learn alone."""

from benchmarks.part import Part
from benchmarks.parts.distil.measure import DATASETS, measure
from benchmarks.parts.distil.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

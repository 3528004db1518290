"""Linear machines row by row: time to an accuracy, cost of a step, inverse time dependency."""

from benchmarks.part import Part
from benchmarks.parts.stochastic.measure import DATASETS, measure
from benchmarks.parts.stochastic.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

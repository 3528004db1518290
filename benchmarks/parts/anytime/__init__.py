"""Accuracy of linear machines against time, from hundredths of a second on, beside all rivals."""

from benchmarks.part import Part
from benchmarks.parts.anytime.measure import DATASETS, measure
from benchmarks.parts.anytime.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

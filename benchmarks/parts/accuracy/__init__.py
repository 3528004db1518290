"""Accuracy at a number of vectors, beside Nystroem, networks, SVC and linear models."""

from benchmarks.part import Part
from benchmarks.parts.accuracy.measure import measure
from benchmarks.parts.accuracy.report import sections, target_rows
from benchmarks.plans import SELECTED_PLAN, SELECTED_SIZES

PART = Part(measure, target_rows, sections, tuple(SELECTED_SIZES), SELECTED_PLAN)

"""Fit time beside SVC and as rows double, and how near to the optimum a fit comes."""

from benchmarks.part import Part
from benchmarks.parts.speed.measure import measure
from benchmarks.parts.speed.report import sections, target_rows
from benchmarks.plans import SELECTED_PLAN, SELECTED_SIZES

PART = Part(measure, target_rows, sections, tuple(SELECTED_SIZES), SELECTED_PLAN)

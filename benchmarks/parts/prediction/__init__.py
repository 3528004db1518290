"""Prediction: throughput, single rows, exports and whether they agree."""

from benchmarks.part import Part
from benchmarks.parts.prediction.measure import measure
from benchmarks.parts.prediction.report import sections, target_rows
from benchmarks.plans import SELECTED_PLAN, TUNED_SIZES

PART = Part(measure, target_rows, sections, tuple(TUNED_SIZES), SELECTED_PLAN)

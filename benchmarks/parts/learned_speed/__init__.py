"""Fit time of a learned basis: beside MLPClassifier, as things double, with a search."""

from benchmarks.part import Part
from benchmarks.parts.learned_speed.measure import measure
from benchmarks.parts.learned_speed.report import sections, target_rows
from benchmarks.plans import LEARNED_PLAN, LEARNED_SIZES

PART = Part(measure, target_rows, sections, tuple(LEARNED_SIZES), LEARNED_PLAN)

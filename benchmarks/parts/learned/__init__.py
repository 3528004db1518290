"""A learned basis beside the others: accuracy at a size, vectors for an accuracy."""

from benchmarks.part import Part
from benchmarks.parts.learned.measure import measure
from benchmarks.parts.learned.report import sections, target_rows
from benchmarks.plans import LEARNED_PLAN, LEARNED_SIZES

PART = Part(measure, target_rows, sections, tuple(LEARNED_SIZES), LEARNED_PLAN)

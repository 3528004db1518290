"""Machines of two labels that may overlap: exact values, fit times beside SVC, cross-validation."""

from benchmarks.part import Part
from benchmarks.parts.two_label.measure import measure
from benchmarks.parts.two_label.report import sections, target_rows

PART = Part(measure, target_rows, sections)

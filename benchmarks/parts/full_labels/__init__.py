"""Full kernel machines of label sets beside one SVC a label: times of fits and predictions."""

from benchmarks.part import Part
from benchmarks.parts.full_labels.measure import measure
from benchmarks.parts.full_labels.report import sections, target_rows

PART = Part(measure, target_rows, sections)

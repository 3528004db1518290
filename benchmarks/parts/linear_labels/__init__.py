"""Linear machines of label sets against one LinearSVC a label, with and without a prior."""

from benchmarks.part import Part
from benchmarks.parts.linear_labels.measure import DATASETS, measure
from benchmarks.parts.linear_labels.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

"""Classes that come one after another in a stream, announced and not."""

from benchmarks.part import Part
from benchmarks.parts.late_classes.measure import DATASETS, measure
from benchmarks.parts.late_classes.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

"""A tenth of the training labels is wrong: the squared hinge beside the Huberised one."""

from benchmarks.part import Part
from benchmarks.parts.wrong_labels.measure import measure
from benchmarks.parts.wrong_labels.report import sections, target_rows

PART = Part(measure, target_rows, sections, ("letter.scale",))

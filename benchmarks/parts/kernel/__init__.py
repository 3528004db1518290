"""Full kernel machines: exact, in one pass, row by row."""

from benchmarks.part import Part
from benchmarks.parts.kernel.measure import measure
from benchmarks.parts.kernel.report import sections, target_rows
from benchmarks.parts.kernel.targets import KERNEL_PARAMETERS

PART = Part(measure, target_rows, sections, tuple(KERNEL_PARAMETERS))

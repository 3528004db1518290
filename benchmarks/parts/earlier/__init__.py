"""Time of today's code beside that of an earlier version, which WIDEMARGIN_EARLIER names.

The variable names the Python of an environment in which the earlier version is installed. Without
it, today's code stands beside itself, which shows how far times of the same code are apart.
"""

from benchmarks.part import Part
from benchmarks.parts.earlier.measure import DATASETS, measure
from benchmarks.parts.earlier.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

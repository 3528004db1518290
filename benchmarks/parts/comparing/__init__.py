"""``widemargin compare`` on a table with texts: whether it keeps its time, and what it says."""

from benchmarks.part import Part
from benchmarks.parts.comparing.measure import measure
from benchmarks.parts.comparing.report import sections, target_rows

PART = Part(measure, target_rows, sections)

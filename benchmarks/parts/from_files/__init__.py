"""From a file to a model that is used: reading, pipelines, pages and imports."""

from benchmarks.part import Part
from benchmarks.parts.from_files.measure import measure
from benchmarks.parts.from_files.report import sections, target_rows

PART = Part(measure, target_rows, sections)

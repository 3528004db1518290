"""Letter row by row: each is predicted, then learned, beside the trees of river."""

from benchmarks.part import Part
from benchmarks.parts.prequential.measure import DATASETS, measure
from benchmarks.parts.prequential.report import sections, target_rows

PART = Part(measure, target_rows, sections, DATASETS)

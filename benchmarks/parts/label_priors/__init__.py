"""Label priors where training and test rows disagree, beside answers that look at no row."""

from benchmarks.part import Part
from benchmarks.parts.label_priors.measure import measure
from benchmarks.parts.label_priors.report import sections, target_rows

PART = Part(measure, target_rows, sections)

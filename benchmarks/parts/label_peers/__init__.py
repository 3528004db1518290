"""Learned machines of label sets beside a network of as many units, and simpler ones."""

from benchmarks.part import Part
from benchmarks.parts.label_peers.measure import measure
from benchmarks.parts.label_peers.report import sections, target_rows

PART = Part(measure, target_rows, sections)

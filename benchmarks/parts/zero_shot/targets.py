"""What is promised of classes that were never seen, in points of percent against ESZSL."""

from __future__ import annotations

from benchmarks.targets import Target

UNSEEN = Target(
    "zero-shot AwA, mean accuracy of 10 unseen animals: lead over ESZSL of the same kernel, points",
    0.0,
    5.0,
    "higher",
)
HARMONIC = Target(
    "zero-shot AwA, harmonic mean over seen and unseen animals: lead over ESZSL, points",
    None,
    0.0,
    "higher",
)

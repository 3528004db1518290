"""What is promised of machines with many labels, in percent."""

from __future__ import annotations

from benchmarks.targets import Target

# Stretch: FastXML with 37 MB.
PRECISION = {
    k: Target(f"delicious, learned, model of 1 MB, precision at {k}", bar, stretch, "higher", " %")
    for k, bar, stretch in ((1, 66.0, 69.4), (3, 61.0, 64.2), (5, 56.0, 59.8))
}
MEGABYTES = Target("delicious, that model as an ONNX file", 1.0, None, "lower", " MB")
TUNED = Target("rcv1subset1, macro F1: tuned thresholds against 0, points", 0.0, None, "higher")
LIBRARY = Target(
    "rcv1subset1, macro F1: tuned thresholds against LibMultiLabel's, points", 0.0, None, "higher"
)

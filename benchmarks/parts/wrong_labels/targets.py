"""What is promised of a loss that is robust to wrong labels."""

from __future__ import annotations

from benchmarks.targets import Target

# Points of test accuracy by which the Huberised hinge is ahead, by the share of wrong labels.
GAINS = {
    0.1: Target("a tenth of letter's labels wrong: Huberised - squared hinge", 0.01, 1.0, "higher"),
    0.0: Target("no label of letter's wrong: Huberised - squared hinge", -0.5, 0.0, "higher"),
}

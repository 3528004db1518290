"""What is promised of machines that were distilled: test accuracy in percent, mean of the seeds."""

from __future__ import annotations

from benchmarks.targets import Target

# Data set and number of vectors of the student of each teacher.
LESSONS = {
    "SVC": ("letter.scale", 180),
    "LightGBM": ("avila", 200),
    "CatBoost": ("avila", 200),
}

ACCURACY = {
    who: Target(f"student of {who} on {name}, {size} vectors, %", bar, None, "higher")
    for (who, (name, size)), bar in zip(LESSONS.items(), (97.6, 99.3, 99.3), strict=True)
}
LEAD = {who: Target(f"the same, lead over {who}, points", None, 0.0, "higher") for who in LESSONS}
SPEED = {
    who: Target(f"the same, times as fast as {who} in a batch", 50.0, None, "higher")
    for who in LESSONS
}

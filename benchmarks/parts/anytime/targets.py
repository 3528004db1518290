"""What is promised of linear machines at any time."""

from __future__ import annotations

from benchmarks.targets import Target

BEHIND = {
    name: Target(
        f"{name}: points behind the best of all others, at the worst budget from 0.05 s on",
        0.3,
        0.0,
        "lower",
    )
    for name in ("news20_bydate", "rcv1")
}

"""Times of a learned basis as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.learned_speed.measure import Beside, Choice, LearnedSpeed
from benchmarks.parts.learned_speed.targets import (
    CHOICE_LOSS,
    CHOICE_SECONDS,
    LEARNED_DOUBLING,
    LEARNED_FIT_RATIO,
)


def target_rows(found: LearnedSpeed) -> Iterator[Row]:
    for each in found.beside:
        ratio = median(each.ratios)
        text = (
            f"{ratio:.2f}x ({median(each.ours):.2f} against {median(each.mlp):.2f} s; "
            f"2 threads: {median(each.two_threads):.2f} s)"
        )
        yield LEARNED_FIT_RATIO[each.dataset][1], ratio, text
    for name, doubling in found.doubling.items():
        growth = doubling.growth
        steps = ", ".join(f"{factor:.2f}" for factor in growth)
        seconds = ", ".join(f"{n} {name} {s:.2f} s" for n, s in doubling.seconds.items())
        text = f"{max(growth):.2f}x ({steps}: {seconds})"
        yield LEARNED_DOUBLING[name], max(growth), text
    for choice in found.choices:
        yield CHOICE_LOSS[choice.dataset], choice.loss, _choice(choice)
    for choice in found.choices:
        longest = max(choice.seconds)
        every = ", ".join(f"{seconds:.0f}" for seconds in choice.seconds)
        yield CHOICE_SECONDS[choice.dataset], longest, f"{longest:.0f} s (by seed: {every})"


def _choice(choice: Choice) -> str:
    vectors = ", ".join(str(each["n_basis"]) for each in choice.chosen)
    return (
        f"{choice.loss:+.2f} ({choice.score} % with {vectors} vectors; by hand {choice.by_hand} % "
        f"with {choice.by_hand.size})"
    )


def sections(found: LearnedSpeed) -> list[str]:
    return [_times(found)] if found.beside else []


def _times(found: LearnedSpeed) -> str:
    def row(each: Beside) -> list[str]:
        seconds = (each.ours, each.two_threads, each.mlp)
        return [each.dataset, str(each.size), *(f"{median(s):.2f}" for s in seconds)]

    head = ["data set", "size", "ours, s", "ours with 2 threads, s", "MLPClassifier, s"]
    return "## Fit time of a learned basis\n\n" + table(head, [row(each) for each in found.beside])

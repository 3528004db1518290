"""Unseen animals as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.zero_shot.measure import Judged
from benchmarks.parts.zero_shot.targets import HARMONIC, UNSEEN

_RIVAL = "ESZSL"


def target_rows(found: list[Judged]) -> Iterator[Row]:
    (rival,) = (each for each in found if each.name == _RIVAL)
    # Which of ours is taken is said by animals that were held out, not by those that are judged.
    ours = max((each for each in found if each.name != _RIVAL), key=lambda each: each.folds)
    words = f"{ours.unseen:.1f} against {rival.unseen:.1f} % ({ours.name})"
    yield UNSEEN, ours.unseen - rival.unseen, words
    words = f"{ours.harmonic:.1f} against {rival.harmonic:.1f} %"
    yield HARMONIC, ours.harmonic - rival.harmonic, words


def sections(found: list[Judged]) -> list[str]:
    titles = ["machine", "tuned on seen animals", "held-out seen, %", "unseen, %"]
    titles += ["of all: seen, %", "of all: unseen, %", "harmonic mean, %"]
    rows = [
        [each.name, each.settings]
        + [
            f"{value:.1f}"
            for value in (
                each.folds,
                each.unseen,
                each.seen_of_all,
                each.unseen_of_all,
                each.harmonic,
            )
        ]
        for each in found
    ]
    text = (
        "## Animals that were never seen\n\nThe mean accuracy of animals, with the mean of "
        "exponential chi-square kernels over three histograms; one animal of ten by chance.\n\n"
    )
    return [text + table(titles, rows)]

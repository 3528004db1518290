"""What follows from a comparison, in words, also where it is not in our favour.

A machine is *as good* as the best if it loses at most a quarter of a point, or no more than the
standard error of the paired difference; never more than half a point. Among those it says to take
one of the frontier, or a linear one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from widemargin.report.comparison import Candidate, Comparison

ALWAYS_AS_GOOD = 0.0025
NEVER_AS_GOOD = 0.005
MUCH_WORSE = 0.05  # what nobody gives away for speed
MOST_TRADES = 3


def recommend(found: Comparison) -> tuple[str, ...]:
    """Return sentences, the most important first."""
    able = [row for row in found.candidates if row.measured and row.family != "constant"]
    if not able:
        return ("Nothing could be measured in this time: allow more minutes.",)
    best = next((row for row in able if row.difference == 0), able[0])
    words = [_choice(able, best), *_trade(able, best), *_warnings(found, able, best)]
    return tuple(words)


def as_good(row: Candidate) -> bool:
    """Whether a candidate is as good as the best, as far as the splits can tell."""
    loss = -row.difference
    if math.isnan(loss):
        return False
    noise = 0.0 if math.isnan(row.difference_error) else row.difference_error
    return loss <= max(ALWAYS_AS_GOOD, min(noise, NEVER_AS_GOOD))


def _choice(able: Sequence[Candidate], best: Candidate) -> str:
    """Say what to take."""
    equals = [row for row in able if as_good(row)]
    linear = [row for row in equals if row.family == "linear"]
    if linear:
        quickest = min(linear, key=lambda row: row.batch_us)
        if quickest is best:
            return f"A linear model is the best: take {_named(best)}."
        return (
            f"A linear model is as good: take it. {_capital(_named(quickest))} "
            f"{_loses(quickest, best)}."
        )
    frontier = [row for row in equals if _on_frontier(row)] or [best]
    quickest = min(frontier, key=lambda row: row.batch_us)
    if quickest is best:
        return f"Take {_named(best)}: nothing faster is as good."
    return f"Take {_named(quickest)}: it {_loses(quickest, best)} and {_speed(quickest, best)}."


def _trade(able: Sequence[Candidate], best: Candidate) -> list[str]:
    """Say what our machines give away for their speed, or that they do not gain any."""
    ours = [row for row in able if row.kind == "ours" and row is not best]
    frontier = [row for row in ours if _on_frontier(row)]
    worth = [row for row in frontier if not as_good(row) and row.difference > -MUCH_WORSE]
    words = [
        f"{_capital(_named(row))} {_lose(row, best)} and {_speed(row, best, many=_many(row))}."
        for row in worth[:MOST_TRADES]
    ]
    if not frontier and best.kind == "peer":
        ahead = max(ours, key=lambda row: row.mean, default=None)
        if ahead is not None:
            words.append(
                f"None of ours is on the frontier here: the best of them, {_named(ahead)}, "
                f"{_loses(ahead, best)}."
            )
    return words


def _warnings(found: Comparison, able: Sequence[Candidate], best: Candidate) -> list[str]:
    words: list[str] = []
    constant = next((row for row in found.candidates if row.family == "constant"), None)
    if constant is not None and constant.measured and best.mean - constant.mean < ALWAYS_AS_GOOD:
        words.insert(
            0,
            f"Nothing is better than the constant answer ({100 * constant.mean:.1f} %): these "
            "columns say little about the target.",
        )
    few = [row.name for row in able if 0 < row.n_rows < found.n_train]
    if few:
        words.append(
            f"Learned from fewer rows, and maybe better with all of them: {', '.join(few)}. "
            "More --minutes let them have these."
        )
    if found.n_splits < 3:
        words.append("Differences are of few splits: allow more minutes to be sure of them.")
    return words


def _on_frontier(row: Candidate) -> bool:
    return row.on_frontier or row.on_frontier_alone


def _named(row: Candidate) -> str:
    if row.name == "vectors by search" and row.n_basis is not None:
        return f"{row.n_basis} vectors by search"
    return row.name


def _many(row: Candidate) -> bool:
    return "vectors" in row.name


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _loses(row: Candidate, best: Candidate) -> str:
    return _lost(row, best, "loses")


def _lose(row: Candidate, best: Candidate) -> str:
    return _lost(row, best, "lose" if _many(row) else "loses")


def _lost(row: Candidate, best: Candidate, verb: str) -> str:
    points = -100 * row.difference
    if points < 0.05:
        return f"{verb} nothing against {_named(best)}"
    return f"{verb} {points:.1f} points against {_named(best)}"


def _speed(row: Candidate, best: Candidate, many: bool = False) -> str:
    """Compare two speeds by the one of the two in which they differ more."""
    verb = "predict" if many else "predicts"
    batch, alone = best.batch_us / row.batch_us, best.alone_us / row.alone_us
    if max(batch, alone) < 1.15:
        return f"{verb} no faster"
    if batch < 1.15:
        return f"{verb} single rows {_times(alone)} faster"
    single = f" (single rows {_times(alone)})" if alone > 3 * batch else ""
    return f"{verb} {_times(batch)} faster{single}"


def _times(ratio: float) -> str:
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"

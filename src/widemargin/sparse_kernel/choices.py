"""How settings are chosen, by whoever gives their scores: all of a few, uphill, the fewest.

None of this knows of machines or rows: a function ``judge`` returns the scores of settings on each
split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Pair: TypeAlias = tuple[float, float]  # C and width
# Metric, C, width, and whether there is a linear part; of a chosen basis no metric.
Choice: TypeAlias = tuple[str, float, float, bool]

#: Calls of ``judge`` that :func:`survey` or :func:`climb` make at the most.
MOST_SCREENS = 8
#: The least and the largest C that is looked at.
C_RANGE = (1e-3, 1e4)

_WIDTH_RANGE = (1 / 8, 8.0)
_START = (10.0, 1.0)  # C and width
_WIDE = 1 / 8  # a factor of gamma, with which learned units begin far wider
# Of a score, for fewer vectors: absolute, and as a share of what the best lacks of 1.
_MOST_LOST, _MOST_LOST_SHARE = 0.0025, 0.1
_CHANCE = 0.003  # of a score, that may set choices apart in any case
_SAME_LOSS = 1.02  # times the least one, up to which losses are about the same
# Of a score, within which two choices are judged once more: absolute, and as a share of what the
# best lacks of 1. Where much is lacking, much can still change.
_CLOSE, _CLOSE_SHARE = 0.01, 0.1


@dataclass(frozen=True)
class Outcome:
    """What became of a choice on each split: scores, and losses of the rows that were held out."""

    scores: Array
    losses: Array


def survey(
    judge: Callable[[list[Choice]], dict[Choice, Outcome]],
    judge_again: Callable[[list[Choice]], dict[Choice, Outcome]] | None,
    metrics: Sequence[str],
    Cs: Sequence[float] | None,
    widths: Sequence[float] | None,
    linear_parts: Sequence[bool] = (False,),
) -> Choice:
    """Return the settings of the best machines whose basis is learned.

    Each metric is tried with each C and each width that is given. Without widths the start is a
    usual one, and a far wider one for the metric that is the best with that; so with a linear
    part, beside the best without. Without Cs machines choose it for themselves, and it is NaN
    here. The best of the other metrics is judged once more beside the best, by more rows or
    splits, if it is about as good.

    Parameters
    ----------
    judge, judge_again : callable
        Return what became of choices, the second one (None: there is none) by more rows or splits;
        of no choice, to end the search.
    metrics : sequence of str
        The simplest first.
    Cs, widths : sequence of float, or None
    linear_parts : sequence of bool, default=(False,)
        Whether there may be none, and whether there may be one.
    """
    known: dict[Choice, Outcome] = {}

    def best_of(choices: list[Choice]) -> Choice:
        unknown = [choice for choice in choices if choice not in known]
        if unknown:
            known.update(judge(unknown))
        return _best({choice: known[choice] for choice in choices if choice in known}, choices[0])

    begin = (Cs or (np.nan,), widths or _START[1:], linear_parts[:1])
    tried = list(dict.fromkeys(product(metrics, *begin)))
    if len(tried) == 1 and widths is not None and len(linear_parts) == 1:
        return tried[0]
    best = best_of(tried)
    if widths is None:
        best = best_of([best, (*best[:2], _WIDE, best[3])])
    for linear in linear_parts[1:]:
        best = best_of([best, (*best[:3], linear)])
    if judge_again is None or best not in known:
        return best
    best_score = known[best].scores.mean()
    close = max(_CLOSE, _CLOSE_SHARE * (1.0 - best_score))
    near = [
        choice
        for choice, outcome in known.items()
        if choice[0] != best[0] and best_score - outcome.scores.mean() < close
    ]
    if near:
        rival = max(near, key=lambda choice: known[choice].scores.mean())
        best = _best(judge_again([best, rival]), best)
    return best


def _best(known: dict[Choice, Outcome], otherwise: Choice) -> Choice:
    """Return the choice of the best score; of those that only chance sets apart, the least loss.

    Of losses that are about the same, the first: choices come with the simplest first.
    """
    if not known:
        return otherwise
    first = max(known, key=lambda choice: known[choice].scores.mean())
    lead = {each: known[first].scores - known[each].scores for each in known}
    ties = [
        each
        for each in known
        if lead[each].mean() <= max(_CHANCE, _standard_error(lead[each]))  # of few splits too
    ]
    least = min(known[each].losses.mean() for each in ties)
    return next(each for each in ties if not known[each].losses.mean() > _SAME_LOSS * least)


def climb(
    judge: Callable[[list[Pair]], dict[Pair, Array]],
    Cs: Sequence[float] | None,
    widths: Sequence[float] | None,
) -> Pair:
    """Return the C and the width of the best scores.

    Values that are given are all tried, each C with each width. Where C is None, it starts at 10
    and goes uphill by factors of 10; then the width, where it is None, from 1 by factors of 2;
    and in the end C by a factor of the root of 10 either way. A step must raise the mean score by
    more than the standard error of that rise: or what is chosen from few rows is chance.

    Parameters
    ----------
    judge : callable
        Returns the scores of pairs of C and width on each split; of none, to end the search.
    Cs, widths : sequence of float, or None
    """
    known: dict[Pair, Array] = {}

    def look_at(pairs: Sequence[Pair]) -> list[Pair]:
        """Judge pairs that are unknown; return those that are known then."""
        unknown = [pair for pair in pairs if pair not in known]
        if unknown:
            known.update(judge(unknown))
        return [pair for pair in pairs if pair in known]

    def better(at: Pair, *others: Pair) -> Pair:
        """Return the best of the others where it is better, else where we are."""
        best = max(look_at([at, *others]), key=lambda pair: known[pair].mean(), default=at)
        return best if best != at and rises(known[at], known[best]) else at

    def uphill(at: Pair, times: Callable[[Pair, float], Pair], factor: float) -> Pair:
        """Go on by a factor, or by its inverse, while scores rise."""
        best = better(at, times(at, 1 / factor), times(at, factor))
        way = factor if best > at else 1 / factor
        while best != at:
            at, best = best, better(best, times(best, way))
        return at

    given = list(dict.fromkeys(product(Cs or _START[:1], widths or _START[1:])))
    at = given[0]
    if len(given) > 1:
        at = _middle_best([(pair, known[pair].mean()) for pair in look_at(given)])
    if Cs is None:
        at = uphill(at, lambda pair, by: (within(pair[0] * by, C_RANGE), pair[1]), 10.0)
    if widths is None:
        at = uphill(at, lambda pair, by: (pair[0], within(pair[1] * by, _WIDTH_RANGE)), 2.0)
    if Cs is None:
        at = better(at, (at[0] * 10**-0.5, at[1]), (at[0] * 10**0.5, at[1]))
    return at


def rises(before: Array, after: Array) -> bool:
    """Whether scores of the same splits are better by more than chance."""
    return bool((after - before).mean() > _standard_error(after - before))


def _standard_error(values: Array) -> float:
    """Return that of the mean; 0 for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def within(value: float, limits: tuple[float, float]) -> float:
    """Return the value between two limits that is nearest, without its last digits."""
    return float(f"{min(max(value, limits[0]), limits[1]):.12g}")  # 0.1 * 0.1 is 0.01 then


def _middle_best(judged: list[tuple[Pair, float]]) -> Pair:
    """Return the pair of the highest score, the middle one of equal ones."""
    highest = max(score for _, score in judged)
    ties = [pair for pair, score in judged if score == highest]
    return ties[(len(ties) - 1) // 2]


def fewest_within_one_standard_error(
    counts: Sequence[int],
    scores: Array,
    floor: float = -np.inf,
    losses: Array | None = None,
) -> int:
    """Return the place of the fewest vectors that are about as good as the best.

    Never more than a quarter of a point is given away, nor more than a tenth of what the best one
    lacks of 1, which is its error where scores are accuracies. Few rows tell sizes apart by their
    losses sooner than by scores, so that the loss must be about the least of all that are as good.

    Parameters
    ----------
    counts : sequence of int
        Number of vectors of each candidate.
    scores : ndarray of shape (n_candidates, n_splits)
        Higher is better. The standard error is that of the mean of the best candidate; 0 for a
        single split.
    floor : float, default=-inf
        A mean score below which no machine is taken, if another one is above it.
    losses : ndarray of shape (n_candidates,), default=None
        Mean losses of the rows that judged. Where they are NaN, only scores count.
    """
    means = scores.mean(axis=1)
    lacking = max(1.0 - float(means.max()), 0.0)
    error = min(_standard_error(scores[np.argmax(means)]), _MOST_LOST, _MOST_LOST_SHARE * lacking)
    good = np.flatnonzero(means >= max(means.max() - error, min(floor, means.max())))
    if losses is not None:
        good = good[~(losses[good] > _SAME_LOSS * np.fmin.reduce(losses[good]))]
    return int(min(good.tolist(), key=lambda place: (counts[place], -means[place])))

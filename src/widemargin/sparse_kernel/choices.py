"""How settings are chosen, by whoever gives their scores: all of a few, uphill, the fewest.

None of this knows of machines or rows: a function ``judge`` returns the scores of settings on each
split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Pair: TypeAlias = tuple[float, float]  # C and width
Choice: TypeAlias = tuple[str, float, float]  # metric, C and width; of a chosen basis no metric

#: Calls of ``judge`` that :func:`survey` or :func:`climb` make at the most.
MOST_SCREENS = 8
#: The least and the largest C that is looked at.
C_RANGE = (1e-3, 1e4)

_WIDTH_RANGE = (1 / 8, 8.0)
_START = (10.0, 1.0)  # C and width
_SURVEYED = (0.1, 1.0, 10.0, 100.0)  # values of C that each metric is tried with
_MOST_LOST = 0.005  # of a score, for fewer vectors
_CLOSE = 0.01  # of a score, within which metrics are judged once more


def survey(
    judge: Callable[[list[Choice]], dict[Choice, Array]],
    judge_again: Callable[[list[Choice]], dict[Choice, Array]] | None,
    metrics: Sequence[str],
    Cs: Sequence[float] | None,
    widths: Sequence[float] | None,
) -> Choice:
    """Return the metric, the C and the width of the best scores.

    Each metric is tried with each C and each width. Where Cs are None these are powers of ten; if
    the first or the last one is the best it goes on beyond, and in the end by half powers either
    way. Metrics that are about as good are judged once more, by more rows or splits.

    Parameters
    ----------
    judge, judge_again : callable
        Return the scores of choices on each split, the second one (None: there is none) of more
        rows or splits; of no choice, to end the search.
    metrics : sequence of str
        The simplest first.
    Cs, widths : sequence of float, or None
    """
    known: dict[Choice, Array] = {}

    def best_of(choices: list[Choice]) -> Choice:
        unknown = [choice for choice in choices if choice not in known]
        if unknown:
            known.update(judge(unknown))
        seen = [choice for choice in choices if choice in known]
        return max(seen, key=lambda choice: known[choice].mean(), default=choices[0])

    tried = list(dict.fromkeys(product(metrics, Cs or _SURVEYED, widths or _START[1:])))
    if len(tried) == 1:
        return tried[0]
    best = best_of(tried)
    by_metric = [best_of([each for each in tried if each[0] == metric]) for metric in metrics]
    rivals = [
        each
        for each in by_metric
        if each in known and known[best].mean() - known[each].mean() < _CLOSE
    ]
    if len(rivals) > 1 and judge_again is not None:
        told = judge_again(rivals)
        best = max(told, key=lambda choice: told[choice].mean(), default=best)
    if Cs is None:
        for edge, way in ((_SURVEYED[0], 0.1), (_SURVEYED[-1], 10.0)):
            while best[1] == edge and edge not in C_RANGE:
                edge = within(edge * way, C_RANGE)
                best = best_of([best, (best[0], edge, best[2])])
        near = [(best[0], within(best[1] * by, C_RANGE), best[2]) for by in (10**-0.5, 10**0.5)]
        best = best_of([best, *near])
    return best


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
    counts: Sequence[int], scores: Array, floor: float = -np.inf
) -> int:
    """Return the place of the fewest vectors that are about as good as the best.

    Never more than half a point is given away.

    Parameters
    ----------
    counts : sequence of int
        Number of vectors of each candidate.
    scores : ndarray of shape (n_candidates, n_splits)
        Higher is better. The standard error is that of the mean of the best candidate; 0 for a
        single split.
    floor : float, default=-inf
        A mean score below which no machine is taken, if another one is above it.
    """
    means = scores.mean(axis=1)
    error = min(_standard_error(scores[np.argmax(means)]), _MOST_LOST)
    good = np.flatnonzero(means >= max(means.max() - error, min(floor, means.max()))).tolist()
    return int(min(good, key=lambda place: (counts[place], -means[place])))

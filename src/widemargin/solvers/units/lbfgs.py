"""L-BFGS that can be stopped anywhere and gone on with: all that moves is in values.

Problem      minimise a smooth function of a vector
State        the pairs of moves and changes of the gradient (:class:`Memory`), and how far the
             search along the present direction has come (:class:`LineSearch`)
Step         (an iteration) a direction from the pairs, then trials along it until the value has
             fallen enough and the slope is flat enough (the strong Wolfe conditions)

Both are frozen: whoever holds one from before can begin there again. Neither evaluates the
function; they say where it is to be evaluated next.

Sources: Nocedal, "Updating quasi-Newton matrices with limited storage" (1980); the search is that
of Moré and Thuente, "Line search algorithms with guaranteed sufficient decrease" (1994), sections
2 to 4, for functions whose values may also be no numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

PAIRS = 20  # that are kept
_ENOUGH_DECREASE = 1e-3  # share of what the first slope promises
_FLAT_ENOUGH = 0.9  # slope at the end, as a share of the first
_NARROW = 0.1  # bracket, relative to its far end, in which a better trial is not worth its cost
_MOST_TRIALS = 20
_SHRINK = 0.66  # that two trials make the bracket narrower by, at the least
_FARTHER = (1.1, 4.0)  # that a trial without a bracket goes beyond the last, of their distance


@dataclass(frozen=True)
class Memory:
    """Moves and changes of the gradient, the oldest first.

    Attributes
    ----------
    moves, changes : ndarray of shape (n_pairs, n_variables)
    """

    moves: Array
    changes: Array

    @classmethod
    def empty(cls, n_variables: int) -> Memory:
        """Return a memory of nothing, whose direction is the steepest descent."""
        return cls(np.empty((0, n_variables)), np.empty((0, n_variables)))

    def __len__(self) -> int:
        return len(self.moves)

    def with_pair(self, move: Array, change: Array) -> Memory:
        """Return the memory with one pair more; one without curvature is not remembered."""
        if not float(move @ change) > np.finfo(float).eps * float(change @ change):
            return self
        keep = slice(max(0, len(self) + 1 - PAIRS), None)
        return Memory(np.vstack([self.moves[keep], move]), np.vstack([self.changes[keep], change]))

    def direction(self, gradient: Array) -> Array:
        """Return minus the inverse Hessian, as the pairs tell it, times the gradient."""
        ahead = -gradient
        curvatures = np.einsum("ij,ij->i", self.moves, self.changes)
        shares = np.empty(len(self))
        for place in reversed(range(len(self))):
            shares[place] = self.moves[place] @ ahead / curvatures[place]
            ahead = ahead - shares[place] * self.changes[place]
        if len(self):
            ahead = ahead * (curvatures[-1] / float(self.changes[-1] @ self.changes[-1]))
        for place in range(len(self)):
            back = self.changes[place] @ ahead / curvatures[place]
            ahead = ahead + (shares[place] - back) * self.moves[place]
        return ahead


@dataclass(frozen=True)
class Trial:
    """A point on the line: how far out, with the value and the slope there."""

    length: float
    value: float
    slope: float

    def lowered(self, by: float) -> Trial:
        """Return the trial on the function less a line of this slope through the start."""
        return Trial(self.length, self.value - by * self.length, self.slope - by)


@dataclass(frozen=True)
class LineSearch:
    """How far a search along a line has come.

    Attributes
    ----------
    start : Trial
        Of length 0.
    length : float
        Where to look next.
    best : Trial
        The lowest so far, from which the search goes on.
    other : Trial
        The other end of the bracket, or the best one before.
    is_bracketed : bool
        Whether a minimum lies between the two.
    lowers : bool
        Whether the function less the line of enough decrease is what is minimised, which it is
        until a trial has fallen below that line.
    longest : float
        Beyond which the function has no value.
    widths : tuple of float
        Of the bracket, now and a trial ago.
    n_trials : int
    verdict : {"", "accepted", "best", "failed"}
        Empty while the search goes on. "accepted": the last trial fulfils both conditions. "best":
        nothing better is to be found than the best so far. "failed": nor is that below the start.
    """

    start: Trial
    length: float
    best: Trial
    other: Trial
    is_bracketed: bool = False
    lowers: bool = True
    longest: float = np.inf
    widths: tuple[float, float] = (np.inf, np.inf)
    n_trials: int = 0
    verdict: str = ""

    @classmethod
    def begin(cls, value: float, slope: float, length: float) -> LineSearch:
        """Return a search that looks at ``length`` first, from where the slope is negative."""
        start = Trial(0.0, value, slope)
        return cls(start, length, start, start)

    def after(self, value: float, slope: float) -> LineSearch:
        """Return where the search stands once the trial at ``length`` is known."""
        count = self.n_trials + 1
        if not (np.isfinite(value) and np.isfinite(slope)):
            return self._nearer(count)
        trial = Trial(self.length, value, slope)
        limit = _ENOUGH_DECREASE * self.start.slope
        falls = value <= self.start.value + limit * self.length
        if falls and abs(slope) <= _FLAT_ENOUGH * -self.start.slope:
            return replace(self, best=trial, n_trials=count, verdict="accepted")
        lowers = self.lowers and not (falls and slope >= 0.0)
        if lowers and value <= self.best.value and not falls:
            # The bracket closes in on a minimum below the line, not on any.
            known = {each.length: each for each in (self.other, self.best, trial)}
            length, best, other, closed = _next_trial(
                self.best.lowered(limit),
                self.other.lowered(limit),
                trial.lowered(limit),
                self.is_bracketed,
                self.longest,
            )
            best, other = known[best.length], known[other.length]
        else:
            length, best, other, closed = _next_trial(
                self.best, self.other, trial, self.is_bracketed, self.longest
            )
        ahead = replace(self, length=length, best=best, other=other, lowers=lowers, n_trials=count)
        return ahead._bracketed() if closed else ahead._checked()

    def _nearer(self, count: int) -> LineSearch:
        """Return the search that has learned that there is no value as far out as that."""
        halfway = 0.5 * (self.best.length + self.length)
        return replace(self, longest=self.length, length=halfway, n_trials=count)._checked()

    def _bracketed(self) -> LineSearch:
        """Return the search with a bracket, which must get narrower quickly."""
        width = abs(self.other.length - self.best.length)
        length, ends = self.length, sorted((self.best.length, self.other.length))
        slow = self.is_bracketed and width >= _SHRINK * self.widths[1]
        if slow or not ends[0] < length < ends[1]:
            length = 0.5 * (ends[0] + ends[1])
        widths = (width, self.widths[0])
        return replace(self, is_bracketed=True, length=length, widths=widths)._checked()

    def _checked(self) -> LineSearch:
        """Return the search with a verdict, where it can get no better."""
        ends = sorted((self.best.length, self.other.length))
        inside = not self.is_bracketed or ends[0] < self.length < ends[1]
        narrow = self.is_bracketed and ends[1] - ends[0] <= _NARROW * ends[1]
        if inside and not narrow and self.n_trials < _MOST_TRIALS and self.length > 0.0:
            return self
        below = self.best.value < self.start.value
        return replace(self, verdict="best" if below else "failed")


def _next_trial(
    best: Trial, other: Trial, trial: Trial, is_bracketed: bool, longest: float
) -> tuple[float, Trial, Trial, bool]:
    """Return where to look next, the ends of the bracket, and whether they are one.

    The four cases of Moré and Thuente, section 4.
    """
    turned = np.sign(trial.slope) * np.sign(best.slope) < 0
    if trial.value > best.value:  # a minimum lies between, by the values
        cubic = _cubic_minimum(best, trial)
        parabola = best.length + (trial.length - best.length) * 0.5 * best.slope / (
            best.slope + (best.value - trial.value) / (trial.length - best.length)
        )
        if not np.isfinite(cubic):
            return parabola, best, trial, True
        near = abs(cubic - best.length) < abs(parabola - best.length)
        return (cubic if near else 0.5 * (cubic + parabola)), best, trial, True
    if turned:  # a minimum lies between, by the slopes
        cubic, secant = _cubic_minimum(best, trial), _secant(best, trial)
        far = abs(cubic - trial.length) > abs(secant - trial.length)
        return (cubic if far else secant), trial, best, True
    if abs(trial.slope) < abs(best.slope):  # it falls less steeply: the minimum may be ahead
        cubic, secant = _cubic_minimum(best, trial), _secant(best, trial)
        if (cubic - trial.length) * (trial.length - best.length) <= 0:
            cubic = np.inf  # that minimum lies behind
        if is_bracketed:
            near = abs(cubic - trial.length) < abs(secant - trial.length)
            length = cubic if near else secant
            limit = trial.length + _SHRINK * (other.length - trial.length)
            length = min(length, limit) if trial.length > best.length else max(length, limit)
            return length, trial, other, True
        far = abs(cubic - trial.length) > abs(secant - trial.length)
        length = cubic if far else secant
        return _within_reach(length, best, trial, longest), trial, best, False
    if is_bracketed:  # it falls as steeply as before, towards the other end
        return _cubic_minimum(other, trial), trial, other, True
    return _within_reach(np.inf, best, trial, longest), trial, best, False


def _within_reach(length: float, best: Trial, trial: Trial, longest: float) -> float:
    """Return a length beyond the trial, not too far, and where the function has a value."""
    gone = trial.length - best.length
    nearest, farthest = (trial.length + share * gone for share in _FARTHER)
    if longest < np.inf:
        farthest = min(farthest, 0.5 * (trial.length + longest))
        nearest = min(nearest, farthest)
    return float(min(max(length, nearest), farthest))


def _secant(first: Trial, second: Trial) -> float:
    """Return where a parabola of these two slopes has its minimum."""
    share = second.slope / (second.slope - first.slope)
    return second.length + share * (first.length - second.length)


def _cubic_minimum(first: Trial, second: Trial) -> float:
    """Return where a cubic of these two values and slopes has its minimum; infinity if nowhere."""
    apart = second.length - first.length
    bend = 3.0 * (first.value - second.value) / apart + first.slope + second.slope
    scale = max(abs(bend), abs(first.slope), abs(second.slope))
    if scale == 0.0:
        return np.inf
    root = (bend / scale) ** 2 - (first.slope / scale) * (second.slope / scale)
    if root < 0.0:
        return np.inf
    root = scale * np.sqrt(root) * np.sign(apart)
    below = second.slope - first.slope + 2.0 * root
    if below == 0.0:
        return np.inf
    return float(second.length - apart * (second.slope + root - bend) / below)

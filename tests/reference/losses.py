"""Losses of one row, as the formulas say: value, gradient and the whole Hessian.

A row is ``scores`` of shape (n_outputs,) with its ``target``: the number of the right class, a sign
for each output, or a number for each. ``twin`` finds the class that belongs to a loss.
"""

import dataclasses

import numpy as np


def margins(scores, right):
    """Return ``1 + f_c - f_y`` for the wrong classes c, and the matrix that takes scores there."""
    wrong = np.delete(np.arange(len(scores)), right)
    differences = np.eye(len(scores))[wrong]
    differences[:, right] -= 1.0
    return 1.0 + differences @ scores, differences


def project_on_simplex(point):
    """Return the nearest vector of non-negative entries that sum to 1."""
    falling = np.sort(point)[::-1]
    excess = (np.cumsum(falling) - 1.0) / np.arange(1, len(point) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(point - excess[last], 0.0)


class WestonWatkins:
    """``1/2 sum_{c != y} max(0, 1 + f_c - f_y)^2``."""

    def value(self, scores, right):
        margin, _ = margins(scores, right)
        return 0.5 * np.sum(np.maximum(margin, 0.0) ** 2)

    def gradient(self, scores, right):
        margin, differences = margins(scores, right)
        return differences.T @ np.maximum(margin, 0.0)

    def hessian(self, scores, right):
        margin, differences = margins(scores, right)
        return differences.T @ np.diag((margin > 0.0).astype(float)) @ differences


class CrammerSinger:
    """``1/2 max(0, m)^2``, m the largest of ``1 + f_c - f_y``, rounded off where wrong classes tie.

    ``m = max over distributions p of  p . margin + smoothing/2 (1 - |p|^2)``
    """

    def __init__(self, smoothing):
        self.smoothing = smoothing

    def rounded_maximum(self, margin):
        """Return m and the p that attains it, which is the gradient of m."""
        weight = project_on_simplex(margin / self.smoothing)
        return weight @ margin + 0.5 * self.smoothing * (1.0 - weight @ weight), weight

    def value(self, scores, right):
        largest, _ = self.rounded_maximum(margins(scores, right)[0])
        return 0.5 * max(largest, 0.0) ** 2

    def gradient(self, scores, right):
        margin, differences = margins(scores, right)
        largest, weight = self.rounded_maximum(margin)
        return max(largest, 0.0) * differences.T @ weight

    def hessian(self, scores, right):
        margin, differences = margins(scores, right)
        largest, weight = self.rounded_maximum(margin)
        if largest <= 0.0:
            return np.zeros((len(scores), len(scores)))
        member = (weight > 0.0).astype(float)
        bend = (np.diag(member) - np.outer(member, member) / member.sum()) / self.smoothing
        return differences.T @ (np.outer(weight, weight) + largest * bend) @ differences


def huber(violation, delta):
    """Return half the square up to ``delta``, the tangent there beyond; and its two derivatives."""
    curved = (violation > 0.0) & (violation <= delta)
    value = np.where(violation <= delta, 0.5 * violation**2, delta * violation - 0.5 * delta**2)
    return value, np.clip(violation, 0.0, delta), curved.astype(float)


class HuberisedWestonWatkins:
    """``sum_{c != y} huber(max(0, 1 + f_c - f_y))``."""

    def __init__(self, delta):
        self.delta = delta

    def value(self, scores, right):
        margin, _ = margins(scores, right)
        return huber(np.maximum(margin, 0.0), self.delta)[0].sum()

    def gradient(self, scores, right):
        margin, differences = margins(scores, right)
        return differences.T @ huber(np.maximum(margin, 0.0), self.delta)[1]

    def hessian(self, scores, right):
        margin, differences = margins(scores, right)
        return differences.T @ np.diag(huber(np.maximum(margin, 0.0), self.delta)[2]) @ differences


class Logistic:
    """``log sum_c exp(f_c) - f_y``."""

    def value(self, scores, right):
        return np.logaddexp.reduce(scores) - scores[right]

    def probabilities(self, scores):
        return np.exp(scores - np.logaddexp.reduce(scores))

    def gradient(self, scores, right):
        return self.probabilities(scores) - np.eye(len(scores))[right]

    def hessian(self, scores, right):
        chance = self.probabilities(scores)
        return np.diag(chance) - np.outer(chance, chance)


class SquaredHinge:
    """``1/2 sum_c max(0, 1 - t_c f_c)^2``."""

    def value(self, scores, signs):
        return 0.5 * np.sum(np.maximum(1.0 - signs * scores, 0.0) ** 2)

    def gradient(self, scores, signs):
        return -signs * np.maximum(1.0 - signs * scores, 0.0)

    def hessian(self, scores, signs):
        return np.diag((signs * scores < 1.0).astype(float))


class HuberisedSquaredHinge:
    """``sum_c huber(max(0, 1 - t_c f_c))``."""

    def __init__(self, delta):
        self.delta = delta

    def value(self, scores, signs):
        return huber(np.maximum(1.0 - signs * scores, 0.0), self.delta)[0].sum()

    def gradient(self, scores, signs):
        return -signs * huber(np.maximum(1.0 - signs * scores, 0.0), self.delta)[1]

    def hessian(self, scores, signs):
        return np.diag(huber(np.maximum(1.0 - signs * scores, 0.0), self.delta)[2])


class BinaryLogistic:
    """``sum_c log(1 + exp(-t_c f_c))``."""

    def value(self, scores, signs):
        return np.sum(np.logaddexp(0.0, -signs * scores))

    def gradient(self, scores, signs):
        return -signs * np.exp(-np.logaddexp(0.0, signs * scores))

    def hessian(self, scores, signs):
        return np.diag(np.exp(-np.logaddexp(0.0, scores) - np.logaddexp(0.0, -scores)))


class Weighed:
    """``sum_c |t_c| loss(f_c, sign of t_c)`` for a loss of independent outputs."""

    loss = None

    def __init__(self, **parameters):
        self.each = self.loss(**parameters)

    def value(self, scores, targets):
        parts = zip(scores[:, np.newaxis], np.sign(targets), np.abs(targets), strict=True)
        return sum(weight * self.each.value(score, sign) for score, sign, weight in parts)

    def gradient(self, scores, targets):
        return np.abs(targets) * self.each.gradient(scores, np.sign(targets))

    def hessian(self, scores, targets):
        return np.abs(targets) * self.each.hessian(scores, np.sign(targets))


class WeighedSquaredHinge(Weighed):
    loss = SquaredHinge


class WeighedHuberisedSquaredHinge(Weighed):
    loss = HuberisedSquaredHinge


class WeighedBinaryLogistic(Weighed):
    loss = BinaryLogistic


class SquaredError:
    """``1/2 sum_c (f_c - t_c)^2``."""

    def value(self, scores, targets):
        return 0.5 * np.sum((scores - targets) ** 2)

    def gradient(self, scores, targets):
        return scores - targets

    def hessian(self, scores, targets):
        return np.eye(len(scores))


def twin(loss):
    """Return the slow twin of a loss: the class here of the same name, with the same parameters.

    A KeyError says that there is none yet.
    """
    return globals()[type(loss).__name__](**dataclasses.asdict(loss))

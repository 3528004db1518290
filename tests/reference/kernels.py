"""Kernels as sums over features in float64, a pair of rows at a time.

``twin`` finds the function that belongs to a kernel.
"""

import dataclasses

import numpy as np


def _each_pair(function, rows, others):
    rows, others = np.asarray(rows, dtype=np.float64), np.asarray(others, dtype=np.float64)
    return np.array([[function(row, other) for other in others] for row in rows])


def rbf(rows, others, gamma):
    """Return ``exp(-gamma |x - b|^2)``."""
    return _each_pair(lambda x, b: np.exp(-gamma * np.sum((x - b) ** 2)), rows, others)


def laplacian(rows, others, gamma):
    """Return ``exp(-gamma |x - b|_1)``."""
    return _each_pair(lambda x, b: np.exp(-gamma * np.sum(np.abs(x - b))), rows, others)


def chisquare(rows, others, gamma):
    """Return ``exp(-gamma sum (x - b)^2 / (x + b))``, in which 0 / 0 is 0."""

    def value(x, b):
        there = x + b > 0
        return np.exp(-gamma * np.sum((x - b)[there] ** 2 / (x + b)[there]))

    return _each_pair(value, rows, others)


def kernelsum(rows, others, parts):
    """Return the weighted sum of the twins of kernels, each of its columns."""
    return sum(
        weight * twin(kernel)(rows[:, list(columns)], others[:, list(columns)])
        for kernel, columns, weight in parts
    )


def polynomial(rows, others, gamma, degree, coef0):
    """Return ``(gamma x.b + coef0)^degree``."""
    return _each_pair(lambda x, b: (gamma * np.sum(x * b) + coef0) ** degree, rows, others)


def sigmoid(rows, others, gamma, coef0):
    """Return ``tanh(gamma x.b + coef0)``."""
    return _each_pair(lambda x, b: np.tanh(gamma * np.sum(x * b) + coef0), rows, others)


def linear(rows, others):
    """Return ``x.b``."""
    return _each_pair(lambda x, b: np.sum(x * b), rows, others)


def suited(kernel, rows):
    """Return rows that the kernel takes: their sizes, where it takes nothing negative."""
    return abs(rows) if kernel.positive_only else rows


def twin(kernel):
    """Return ``values(rows, others)``, by the function here that is called as the kernel's class.

    A KeyError says that there is none yet.
    """
    function = globals()[type(kernel).__name__.lower()]
    parameters = {field.name: getattr(kernel, field.name) for field in dataclasses.fields(kernel)}
    return lambda rows, others: function(rows, others, **parameters)

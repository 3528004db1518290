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


def polynomial(rows, others, gamma, degree, coef0):
    """Return ``(gamma x.b + coef0)^degree``."""
    return _each_pair(lambda x, b: (gamma * np.sum(x * b) + coef0) ** degree, rows, others)


def sigmoid(rows, others, gamma, coef0):
    """Return ``tanh(gamma x.b + coef0)``."""
    return _each_pair(lambda x, b: np.tanh(gamma * np.sum(x * b) + coef0), rows, others)


def linear(rows, others):
    """Return ``x.b``."""
    return _each_pair(lambda x, b: np.sum(x * b), rows, others)


def twin(kernel):
    """Return ``values(rows, others)``, by the function here that is called as the kernel's class.

    A KeyError says that there is none yet.
    """
    function, parameters = globals()[type(kernel).__name__.lower()], dataclasses.asdict(kernel)
    return lambda rows, others: function(rows, others, **parameters)

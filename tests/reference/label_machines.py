"""The dual of M3L, one coefficient at a time; and the one binary machine that it is.

    maximise over b (n x L)   sum_il y_il b_il - 1/2 sum_lm R_lm b_l' K b_m
    where 0 <= y_il b_il <= cap_il

With scores F = K b R, the primal is 1/2 sum_il b_il F_il + sum_il cap_il max(0, 1 - y_il F_il).
"""

import numpy as np


def scores(K, R, b):
    return K @ b @ R


def dual_value(K, R, y, b):
    return np.sum(y * b) - 0.5 * np.sum(b * scores(K, R, b))


def primal_value(K, R, y, caps, b):
    F = scores(K, R, b)
    return 0.5 * np.sum(b * F) + np.sum(caps * np.maximum(0.0, 1.0 - y * F))


def solve(K, R, y, caps, n_sweeps=2000, gap=1e-9):
    """Return b by exact steps on one coefficient after the other, until the gap is closed."""
    b = np.zeros_like(y, dtype=float)
    F = scores(K, R, b)
    for _ in range(n_sweeps):
        for i in range(len(y)):
            for label in range(y.shape[1]):
                curvature = K[i, i] * R[label, label]
                sign, cap = y[i, label], caps[i, label]
                wanted = sign * b[i, label] + (1.0 - sign * F[i, label]) / curvature
                change = sign * np.clip(wanted, 0.0, cap) - b[i, label]
                if change:
                    b[i, label] += change
                    F += change * np.outer(K[:, i], R[label])
        if primal_value(K, R, y, caps, b) - dual_value(K, R, y, b) <= gap:
            return b
    raise AssertionError("the reference did not come to its optimum")


def as_one_binary_machine(X, R, y, caps):
    """Return rows, signs and caps of the binary machine on the products of features with R's root.

    Row (i, l) has the features of x_i times row l of the root; linear kernel, no bias.
    """
    values, vectors = np.linalg.eigh(R)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    rows = np.stack([np.kron(x, root[label]) for x in X for label in range(len(R))])
    return rows, y.ravel(), caps.ravel()

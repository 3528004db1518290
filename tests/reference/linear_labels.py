"""Linear machines of label sets with a prior R, dense and slow: no blocks, no order, no threads.

    max over 0 <= a_il <= cap_il of sum_il a_il - 1/2 sum_kl R_kl z_k . z_l,
    z_l = sum_i a_il y_il x_i

By exact solves of one coefficient after the other, with the matrix of all of them.
"""

import numpy as np


def solve(X, Y, caps, R, n_passes=3000):
    """Return coefficients, and the weights of all labels: u_l = sum_k R_kl z_k.

    ``Y`` is of 0 and 1, ``caps`` of shape (n_rows, n_labels).
    """
    signs = 2.0 * Y - 1.0
    gram = X @ X.T
    a = np.zeros(Y.shape)
    for _ in range(n_passes):
        biggest = 0.0
        for i, label in np.ndindex(a.shape):
            gradient = 1.0 - signs[i, label] * (gram[i] @ (signs * a) @ R[:, label])
            curvature = gram[i, i] * R[label, label]
            wanted = a[i, label] + gradient / curvature if curvature > 0 else caps[i, label]
            wanted = np.clip(wanted, 0.0, caps[i, label])
            biggest = max(biggest, abs(wanted - a[i, label]))
            a[i, label] = wanted
        if biggest < 1e-12:
            break
    return a, X.T @ (signs * a) @ R


def dual(X, Y, a, R):
    """Return the dual objective."""
    Z = X.T @ ((2.0 * Y - 1.0) * a)
    return a.sum() - 0.5 * np.sum(R * (Z.T @ Z))


def primal(X, Y, caps, U, R, intercept=0.0):
    """Return the primal objective of weights u of shape (n_features, n_labels), by R inverted."""
    slack = np.maximum(0.0, 1.0 - (2.0 * Y - 1.0) * (X @ U + intercept))
    return 0.5 * np.sum(np.linalg.pinv(R) * (U.T @ U)) + np.sum(caps * slack)

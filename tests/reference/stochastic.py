"""Pegasos for many classes, dense and slow: Algorithm 1 as it is printed, with weights themselves.

w <- (t - 1) / t w - 1 / (alpha t r) (sum of subgradients of r rows at the old w)
"""

import numpy as np
from scipy.special import expit, softmax


def subgradient(loss, strategy, f, y):
    """Return a subgradient of the loss of one row in its scores."""
    k = len(f)
    own = np.arange(k) == y
    if strategy == "one_vs_all":
        t = np.where(own, 1.0, -1.0)
        slopes = {
            "logistic": -expit(-t * f),
            "perceptron": -(t * f <= 0).astype(float),
        }
        return t * slopes.get(loss, -(t * f < 1).astype(float))
    if loss == "logistic":
        return softmax(f) - own
    g = np.zeros(k)
    if loss == "weston_watkins":
        g[~own] = 1 + f[~own] - f[y] > 0
        g[y] = -g.sum()
        return g
    margin = np.where(own, -np.inf, f) if loss == "crammer_singer" else f
    worst = int(np.argmax(margin))
    if loss == "perceptron" or 1 + f[worst] - f[y] > 0:
        g[worst] += 1
        g[y] -= 1
    return g


def value(loss, strategy, F, y):
    """Return the loss of each row."""
    rows = np.arange(len(y))
    own = np.arange(F.shape[1]) == y[:, None]
    if strategy == "one_vs_all":
        m = np.where(own, F, -F)
        each = {"logistic": np.logaddexp(0, -m), "perceptron": np.maximum(0, -m)}
        return each.get(loss, np.maximum(0, 1 - m)).sum(axis=1)
    if loss == "logistic":
        return np.logaddexp.reduce(F, axis=1) - F[rows, y]
    if loss == "perceptron":
        return F.max(axis=1) - F[rows, y]
    margins = np.maximum(0, 1 + F - F[rows, y][:, None])
    margins[own] = 0
    return margins.sum(axis=1) if loss == "weston_watkins" else margins.max(axis=1)


def objective(loss, strategy, alpha, W, X, y, weights=None):
    """Return alpha / 2 |W|^2 + the mean loss, with weights of shape (n_features, n_classes)."""
    each = value(loss, strategy, X @ W, y)
    return 0.5 * alpha * np.sum(W * W) + np.average(each, weights=weights)


def pegasos(loss, strategy, alpha, X, y, n_classes, batch_size=1, *, project=False):
    """Return the weights after each step over rows in their order."""
    W, path = np.zeros((X.shape[1], n_classes)), []
    for t, start in enumerate(range(0, len(y), batch_size), start=1):
        rows = range(start, min(start + batch_size, len(y)))
        step = np.zeros_like(W)
        for i in rows:
            step += np.outer(X[i], subgradient(loss, strategy, X[i] @ W, y[i]))
        W = (t - 1) / t * W - step / (alpha * t * len(rows))
        if project:
            W = W * min(1.0, 1 / (np.sqrt(alpha) * max(np.linalg.norm(W), 1e-300)))
        path.append(W)
    return path


def later_weigh_more(path):
    """Return the mean of the weights after each step, the t-th counting t times."""
    steps = np.arange(1, len(path) + 1)
    return np.tensordot(steps / steps.sum(), np.array(path), axes=1)

"""Duals of kernel machines without a bias, one row at a time; and two machines that learn online.

    maximise over beta (n x k)   sum_i beta[i, y_i] - 1/2 sum_c beta[:, c]' K beta[:, c]
    where every row of beta sums to 0, and for all c
        crammer_singer   beta[i, c] <= cap_i [c = y_i]
        weston_watkins   -cap_i <= beta[i, c] <= 0 for c != y_i

With g_i(c) = [c = y_i] - sum_j K_ij beta[j, c], the gradient in beta[i, c], the primal is

    1/2 sum_c beta[:, c]' K beta[:, c] + sum_i cap_i max(0, hinge_i)

where hinge_i is the largest of g_i(y_i) - g_i(c), or their sum, each from zero on.
"""

import numpy as np

LOSSES = ("crammer_singer", "weston_watkins")


def right_classes(labels, n_classes):
    """Return the n x k matrix of [c = y_i]."""
    return np.eye(n_classes)[labels]


def bounds(labels, caps, n_classes, loss):
    """Return the least and the largest value of each coefficient, both n x k."""
    right = right_classes(labels, n_classes).astype(bool)
    caps = np.broadcast_to(np.asarray(caps, dtype=float)[:, None], right.shape)
    if loss == "crammer_singer":
        return np.full(right.shape, -np.inf), np.where(right, caps, 0.0)
    assert loss == "weston_watkins"
    return np.where(right, -np.inf, -caps), np.where(right, np.inf, 0.0)


def gradient(K, labels, beta):
    return right_classes(labels, beta.shape[1]) - K @ beta


def norm(K, beta):
    """Return 1/2 |w|^2."""
    return 0.5 * np.sum(beta * (K @ beta))


def dual_value(K, labels, beta):
    return beta[np.arange(len(beta)), labels].sum() - norm(K, beta)


def primal_value(K, labels, caps, beta, loss):
    slopes = gradient(K, labels, beta)
    right = slopes[np.arange(len(beta)), labels]
    hinges = np.maximum(right[:, None] - slopes, 0.0)  # 0 in the column of the right class
    each = hinges.max(axis=1) if loss == "crammer_singer" else hinges.sum(axis=1)
    return norm(K, beta) + np.dot(caps, each)


def gap(K, labels, caps, beta, loss):
    return primal_value(K, labels, caps, beta, loss) - dual_value(K, labels, beta)


def is_feasible(labels, caps, beta, loss, atol=1e-9):
    low, high = bounds(labels, caps, beta.shape[1], loss)
    within = np.all((beta >= low - atol) & (beta <= high + atol))
    return bool(within and np.all(np.abs(beta.sum(axis=1)) <= atol))


def kkt_violation(K, labels, caps, beta, loss, room=0.0):
    """Return the steepest rise of the dual that is left to any two coefficients of one row.

    A coefficient counts as able to rise or fall if it can do so by more than ``room`` times the
    cap of its row. A pair with that much room which rises by v adds ``room cap v`` to the gap: so
    a solution to a finite tolerance is judged with a room above zero.
    """
    slopes = gradient(K, labels, beta)
    low, high = bounds(labels, caps, beta.shape[1], loss)
    margin = room * np.asarray(caps, dtype=float)[:, None]
    rising = np.where(beta < high - margin, slopes, -np.inf).max(axis=1)
    falling = np.where(beta > low + margin, slopes, np.inf).min(axis=1)
    return max(0.0, np.max(rising - falling))


def project_row(point, low, high):
    """Return the nearest vector between low and high whose entries sum to 0.

    It is ``clip(point - shift, low, high)``; its sum falls with the shift, and is linear between
    the shifts at which an entry meets a bound.
    """
    kinks = np.concatenate([point - low, point - high])
    kinks = np.unique(kinks[np.isfinite(kinks)])
    sums = np.minimum(np.maximum(point - kinks[:, None], low), high).sum(axis=1)
    after = np.searchsorted(-sums, 0.0)  # the first kink at which the sum is no longer positive
    ends = np.concatenate([kinks[:1] - 1.0, kinks, kinks[-1:] + 1.0])
    between = 0.5 * (ends[after] + ends[after + 1])
    inside = np.clip(point - between, low, high)
    free = (inside > low) & (inside < high)
    if not free.any():  # the sum is 0 all along: only where nothing may move
        return inside
    shift = (point[free].sum() + inside[~free].sum()) / free.sum()
    return np.clip(point - shift, low, high)


def exact_optimum(K, labels, caps, loss, n_classes=None, tol=1e-10, max_passes=20_000):
    """Return the largest dual and its beta, by best steps of one row after the other.

    ``tol`` bounds the gap, relative to the primal.
    """
    labels, caps = np.asarray(labels), np.asarray(caps, dtype=float)
    n_classes = labels.max() + 1 if n_classes is None else n_classes
    low, high = bounds(labels, caps, n_classes, loss)
    # A row of no length has a linear dual: a curvature of next to nothing takes it to its corner.
    # Much less would cost digits, and more than there is makes shorter steps, which still rise.
    curvature = np.maximum(np.diag(K), 1e-6 * max(np.diag(K).max(), 1.0))
    beta = np.zeros((len(labels), n_classes))
    slopes = gradient(K, labels, beta)
    for number in range(max_passes):
        for row in range(len(labels)):
            best = project_row(beta[row] + slopes[row] / curvature[row], low[row], high[row])
            slopes -= np.outer(K[:, row], best - beta[row])
            beta[row] = best
        if number % 10 == 9:
            slopes = gradient(K, labels, beta)  # without the rounding of all those steps
            primal = primal_value(K, labels, caps, beta, loss)
            if primal - dual_value(K, labels, beta) <= tol * primal:
                return dual_value(K, labels, beta), beta
    raise AssertionError("the reference solver did not converge")


def perceptron(K, labels, weights, average=True, epochs=1, n_classes=None):
    """Return beta of the perceptron that takes the rows in their order.

    A row whose own score is not above all others moves by its weight, towards its class and away
    from the first of the best others. The average is over beta after each row, all epochs.
    """
    n_classes = np.max(labels) + 1 if n_classes is None else n_classes
    beta = np.zeros((len(labels), n_classes))
    total = np.zeros_like(beta)
    for _ in range(epochs):
        for row, label in enumerate(labels):
            scores = K[row] @ beta
            others = scores.copy()
            others[label] = -np.inf
            rival = np.argmax(others)
            if scores[label] <= scores[rival]:
                beta[row, label] += weights[row]
                beta[row, rival] -= weights[row]
            total += beta
    return total / (epochs * len(labels)) if average else beta


def mira(K, labels, caps, margin=0.0, epochs=1, average=False, n_classes=None):
    """Return beta of MIRA, rows in their order: each is moved as little as gives it the margin.

    The step of a row is the nearest to ``(margin [c = y] - score_c) / K_ii`` that sums to 0 with no
    entry above ``cap [c = y]``. Steps of later epochs come on top.
    """
    n_classes = np.max(labels) + 1 if n_classes is None else n_classes
    beta = np.zeros((len(labels), n_classes))
    total = np.zeros_like(beta)
    low, high = bounds(np.asarray(labels), caps, n_classes, "crammer_singer")
    for _ in range(epochs):
        for row, label in enumerate(labels):
            wish = -(K[row] @ beta)
            wish[label] += margin
            beta[row] += project_row(wish / K[row, row], low[row], high[row])
            total += beta
    return total / (epochs * len(labels)) if average else beta

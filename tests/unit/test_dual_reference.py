"""The slow duals are right themselves: a general solver agrees, and so do values known exactly."""

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference.dual_machines import (
    LOSSES,
    bounds,
    dual_value,
    exact_optimum,
    gap,
    gradient,
    is_feasible,
    kkt_violation,
    mira,
    norm,
    perceptron,
    primal_value,
    project_row,
    right_classes,
)
from scipy.optimize import LinearConstraint, minimize
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

every_loss = pytest.mark.parametrize("loss", LOSSES)


def small_problem(n_classes, n_rows=12, seed=3):
    X, labels = overlapping_classes(n_rows, n_classes, seed=seed)
    return rbf_kernel(X, gamma=0.4), labels, np.random.RandomState(seed).uniform(0.2, 3.0, n_rows)


def optimum_of_scipy(K, labels, caps, loss, n_classes):
    """Return the largest dual by sequential quadratic programming on all coefficients at once."""
    shape = (len(labels), n_classes)
    low, high = (limit.ravel() for limit in bounds(labels, caps, n_classes, loss))
    result = minimize(
        lambda flat: -dual_value(K, labels, flat.reshape(shape)),
        np.zeros(low.size),
        jac=lambda flat: -gradient(K, labels, flat.reshape(shape)).ravel(),
        method="SLSQP",
        bounds=list(zip(low, high, strict=True)),
        constraints=LinearConstraint(np.kron(np.eye(shape[0]), np.ones(n_classes)), 0.0, 0.0),
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    assert result.success
    return -result.fun


@every_loss
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_a_general_solver_finds_the_same_optimum(loss, n_classes):
    K, labels, caps = small_problem(n_classes)
    value, beta = exact_optimum(K, labels, caps, loss)
    assert value == pytest.approx(optimum_of_scipy(K, labels, caps, loss, n_classes), rel=1e-8)
    assert value == dual_value(K, labels, beta)
    assert is_feasible(labels, caps, beta, loss)
    assert 0.0 <= gap(K, labels, caps, beta, loss) <= 1e-9 * value
    assert kkt_violation(K, labels, caps, beta, loss) < 1e-7


@every_loss
def test_the_gap_is_the_gain_of_the_best_corner(loss, rng):
    """Primal less dual is, for any feasible beta, the most that its gradient can gain: a way to
    the gap that knows neither hinges nor norms.
    """
    K, labels, caps = small_problem(3)
    low, high = bounds(labels, caps, 3, loss)
    points = rng.randn(12, 3)
    beta = np.array([project_row(points[row], low[row], high[row]) for row in range(12)])
    slopes = gradient(K, labels, beta)
    best = np.zeros_like(beta)
    for row, label in enumerate(labels):
        rising = slopes[row, label] - slopes[row]
        wrong = [np.argmax(rising)] if loss == "crammer_singer" else np.flatnonzero(rising > 0)
        for other in wrong:
            if other != label:
                best[row, label] += caps[row]
                best[row, other] -= caps[row]
    assert is_feasible(labels, caps, best, loss)
    gain = np.sum(slopes * (best - beta))
    assert gain > 1.0
    assert gap(K, labels, caps, beta, loss) == pytest.approx(gain, rel=1e-12)


@every_loss
def test_the_gradient_is_the_derivative(loss, rng):
    K, labels, caps = small_problem(3)
    beta, step = rng.randn(12, 3), rng.randn(12, 3)
    numerical = (
        dual_value(K, labels, beta + 1e-5 * step) - dual_value(K, labels, beta - 1e-5 * step)
    ) / 2e-5
    assert np.sum(gradient(K, labels, beta) * step) == pytest.approx(numerical, rel=1e-6)
    # Of w = 0 the loss is the number of pairs within the margin, all of them.
    pairs = 1 if loss == "crammer_singer" else 2
    assert primal_value(K, labels, caps, np.zeros((12, 3)), loss) == pytest.approx(
        pairs * caps.sum()
    )


@every_loss
def test_what_is_not_allowed_is_noticed(loss):
    labels, caps = np.array([0, 1, 2]), np.array([1.0, 2.0, 1.0])
    good = np.array([[0.5, -0.5, 0.0], [-1.0, 2.0, -1.0], [0.0, 0.0, 0.0]])
    assert is_feasible(labels, caps, good, loss)
    for row, bad in [(0, [0.5, -0.4, 0.0]), (1, [0.5, -0.5, 0.0]), (2, [-1.5, 0.0, 1.5])]:
        beta = good.copy()
        beta[row] = bad
        assert not is_feasible(labels, caps, beta, loss)
    both_at_their_caps = good.copy()
    both_at_their_caps[0] = [2.0, -1.0, -1.0]
    assert is_feasible(labels, caps, both_at_their_caps, loss) == (loss == "weston_watkins")


@every_loss
def test_a_row_that_could_rise_is_a_violation(loss):
    """At zero every row may rise by 1, and one without room may not."""
    K, labels, caps = small_problem(3)
    nothing = np.zeros((12, 3))
    assert kkt_violation(K, labels, caps, nothing, loss) == pytest.approx(1.0)
    assert kkt_violation(K, labels, 0.0 * caps, nothing, loss) == 0.0


@every_loss
def test_a_row_of_no_length_goes_to_its_corner(loss):
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    labels, caps = np.array([0, 1, 2, 1]), np.array([0.5, 1.0, 1.0, 2.0])
    value, beta = exact_optimum(linear_kernel(X), labels, caps, loss)
    assert is_feasible(labels, caps, beta, loss)
    wrong = 1 if loss == "crammer_singer" else 2
    assert_allclose(beta[[0, 3], [0, 1]], wrong * caps[[0, 3]])
    alone, _ = exact_optimum(linear_kernel(X[1:3]), labels[1:3], caps[1:3], loss, n_classes=3)
    assert value == pytest.approx(alone + wrong * 2.5, rel=1e-9)


def test_two_classes_have_one_dual(two_classes):
    X, labels = two_classes
    K, caps = rbf_kernel(X, gamma=0.4), np.full(len(X), 1.5)
    (first, one), (second, other) = (exact_optimum(K, labels, caps, loss) for loss in LOSSES)
    assert first == pytest.approx(second, rel=1e-9)
    assert_allclose(K @ one, K @ other, atol=1e-4)


def test_a_row_alone_is_known_by_hand():
    """One row of k(x, x) = 2 and three classes: half of w against class 1, half against class 2."""
    K, labels = np.array([[2.0]]), np.array([0])
    for loss in LOSSES:
        value, beta = exact_optimum(K, labels, np.array([10.0]), loss, n_classes=3)
        assert_allclose(beta, [[1 / 3, -1 / 6, -1 / 6]], atol=1e-8)
        assert value == pytest.approx(1 / 3 - 0.5 * 2 * (1 / 9 + 2 / 36))
        assert norm(K, beta) == pytest.approx(1 / 6)


def test_a_perceptron_by_hand():
    K = linear_kernel(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    labels, weights = np.array([0, 0, 1, 1]), np.array([1.0, 1.0, 1.0, 0.5])
    # Row 0: all scores equal, against class 1. Row 1 is right. Row 2: a tie again, against class
    # 0, the first of the others. Row 3 has 1 - 1 = 0 for class 0 and -1 + 1 = 0 for class 1.
    steps = np.array([[1, -1, 0], [0, 0, 0], [-1, 1, 0], [-0.5, 0.5, 0]])
    assert_array_equal(perceptron(K, labels, weights, average=False, n_classes=3), steps)
    shares = np.array([4, 3, 2, 1])[:, None] / 4  # of the four steps, those that a row is in
    assert_allclose(perceptron(K, labels, weights, n_classes=3), shares * steps)


def test_mira_by_hand():
    K = linear_kernel(np.array([[2.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    labels = np.array([0, 1, 1])
    # Row 0 wants a margin of 1 at squared length 4: 1/8 to either side. Row 1 then has the scores
    # 1/4 and -1/4, and needs 3/4. Row 2 may move by no more than its cap.
    beta = mira(K, labels, np.array([5.0, 5.0, 0.25]), margin=1.0)
    assert_allclose(beta, [[0.125, -0.125], [-0.75, 0.75], [-0.25, 0.25]])
    for row, label in enumerate(labels[:2]):
        scores = K[row, : row + 1] @ beta[: row + 1]
        assert scores[label] - scores[1 - label] == pytest.approx(1.0)


def test_mira_without_margin_leaves_what_is_right(three_classes):
    X, labels = three_classes
    K = rbf_kernel(X, gamma=0.4)
    assert not mira(K, labels, np.ones(60)).any()  # nothing is wrong where all scores are equal
    beta = mira(K, labels, np.ones(60), margin=1.0)
    moved = beta.any(axis=1)
    assert 10 < moved.sum() < 60
    assert_allclose(beta.sum(axis=1), 0.0, atol=1e-12)
    assert np.all(beta <= right_classes(labels, 3) + 1e-12)

"""A prior over labels, by its root, against the dense problem in which it is inverted."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference.label_prior import PriorBasis
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.basis import BasisColumns
from widemargin.kernels import RBF
from widemargin.losses import all_losses
from widemargin.objectives import BasisObjective
from widemargin.priors import LabelPrior
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.newton import JointNewton
from widemargin.solvers.progress import Progress

pytestmark = pytest.mark.combinations

GAMMA = 0.3
N_BASIS = 10
N_OUTPUTS = 3
every_loss = pytest.mark.parametrize("loss", all_losses(), ids=lambda loss: loss.name)


def _correlated():
    mixed = np.random.RandomState(5).randn(N_OUTPUTS, N_OUTPUTS)
    return mixed @ mixed.T + 0.5 * np.eye(N_OUTPUTS)


def _symmetric_root(R):
    values, vectors = np.linalg.eigh(R)
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T


_THIN = np.random.RandomState(6).randn(N_OUTPUTS, 2)  # a root of rank 2
ROOTS = {
    "triangular": np.linalg.cholesky(_correlated()),
    "symmetric": _symmetric_root(_correlated()),
    "wide": np.random.RandomState(7).randn(N_OUTPUTS, 5),
    "singular, thin": _THIN,
    "singular, square": _symmetric_root(_THIN @ _THIN.T),
    "one output unused": np.diag([1.5, 0.7, 0.0]),
    "common shift alone": np.ones((N_OUTPUTS, 1)),
}
every_root = pytest.mark.parametrize("root", ROOTS.values(), ids=list(ROOTS))


def fixed_problem(loss, root, X, y, *, n_basis=N_BASIS, C=3.0):
    """Return the objective on the first rows as basis, and its dense twin."""
    targets, weights = loss.encode(y, N_OUTPUTS), C * (1.0 + np.arange(len(y)) % 2)
    basis = BasisColumns(RBF(GAMMA), X, fit_intercept=True, max_basis=n_basis, n_threads=1)
    first = np.arange(n_basis)
    assert basis.extend(X[first], first, X[first], np.ones(n_basis)).all()
    K_nJ = rbf_kernel(X, X[first], gamma=GAMMA)
    twin = PriorBasis(root @ root.T, loss, targets, weights, K_nJ, K_nJ[first], N_OUTPUTS)
    return BasisObjective(loss, targets, weights, N_OUTPUTS, basis, LabelPrior(root)), twin


def turn(problem, twin):
    """Return the orthogonal matrix that takes coefficients of our columns to those of the twin."""
    coef, intercept = problem.basis.expansion(np.eye(problem.basis.n_columns))
    return np.vstack([intercept, np.linalg.pinv(twin.transform) @ coef])


def solve(problem, tol=1e-11):
    start = problem.zero_coefficients()
    scores = problem.scores(start)
    reference = np.linalg.norm(problem.gradient(start, problem.derivatives(scores)))
    return JointNewton(tol=tol).solve(problem, start, scores, reference)


def near(found, expected, share=1e-8):
    size = max(np.abs(expected).max(), 1.0)
    assert_allclose(found, expected, rtol=share, atol=share * size)


@every_loss
@every_root
def test_value_gradient_and_hessian_product_are_those_with_the_inverse(
    loss, root, three_classes, rng
):
    problem, twin = fixed_problem(loss, root, *three_classes)
    turned = turn(problem, twin)
    # What the root maps to nothing is no part of B, and only the regulariser knows it.
    seen = np.linalg.pinv(root) @ root
    shape = problem.zero_coefficients().shape
    W, D = (0.5 * rng.randn(*shape) @ seen for _ in range(2))
    flat = twin.flatten(turned @ W @ root.T)
    scores = problem.scores(W)
    at = problem.derivatives(scores)
    near(problem.value(W, scores), twin.value(flat))
    near(at.loss + 0.5 * np.vdot(W, W), twin.value(flat))

    into_latent = twin.inside.T @ root
    expected = turned.T @ twin.gradient(flat).reshape(-1, twin.inside.shape[1]) @ into_latent
    near(problem.gradient(W, at), expected)
    moved = twin.hessian(flat) @ twin.flatten(turned @ D @ root.T)
    expected = turned.T @ moved.reshape(-1, twin.inside.shape[1]) @ into_latent
    near(problem.hessian_product(scores, at, D), expected)


@every_loss
@every_root
def test_newton_finds_the_point_of_the_problem_with_the_inverse(loss, root, three_classes):
    problem, twin = fixed_problem(loss, root, *three_classes)
    result = solve(problem)
    flat = twin.solve_newton(tol=1e-11)
    near(result.value, twin.value(flat))
    B = problem.output_coefficients(result.coefficients)
    near(turn(problem, twin) @ B, twin.coefficients(flat))
    assert_allclose(B, result.coefficients @ root.T, atol=1e-14)
    coef, intercept = problem.expansion(result.coefficients)
    near(
        rbf_kernel(three_classes[0], three_classes[0][:N_BASIS], gamma=GAMMA) @ coef + intercept,
        twin.scores(flat),
    )


@every_loss
@pytest.mark.parametrize("name", ["triangular", "singular, thin", "singular, square"])
def test_a_greedy_fit_with_all_rows_is_the_full_problem(loss, name, three_classes):
    X, y = three_classes[0][:40], three_classes[1][:40]
    root, weights = ROOTS[name], np.full(40, 2.0)
    targets = loss.encode(y, N_OUTPUTS)
    basis = BasisColumns(RBF(GAMMA), X, fit_intercept=True, max_basis=40, n_threads=1)
    problem = BasisObjective(loss, targets, weights, N_OUTPUTS, basis, LabelPrior(root))
    solver = GreedyNewton(40, n_candidates="all", tol=0.0, gradient_tol=1e-10)
    state = solver.init(problem, np.random.RandomState(0))
    ended = solver.finish(problem, solver.solve(problem, state, Progress()))
    K = rbf_kernel(X, gamma=GAMMA)
    twin = PriorBasis(root @ root.T, loss, targets, weights, K, K, N_OUTPUTS)
    flat = twin.solve_newton()
    near(ended.history["objective"][-1], twin.value(flat))
    coef, intercept = problem.expansion(ended.coefficients)
    near(K[:, basis.indices] @ coef + intercept, twin.scores(flat), share=1e-7)


@every_loss
def test_a_prior_of_unrelated_labels_changes_nothing(loss, three_classes):
    problem, _ = fixed_problem(loss, np.eye(N_OUTPUTS), *three_classes)
    plain = BasisObjective(loss, problem._targets, problem._all_weights, N_OUTPUTS, problem.basis)
    found, expected = solve(problem), solve(plain)
    near(found.coefficients, expected.coefficients)
    near(found.value, expected.value)
    assert found.n_iter == expected.n_iter


def test_outputs_that_a_prior_leaves_out_stay_at_zero(three_classes):
    loss = all_losses()[0]
    problem, _ = fixed_problem(loss, ROOTS["one output unused"], *three_classes)
    coef, intercept = problem.expansion(solve(problem).coefficients)
    assert_array_equal(coef[:, 2], 0.0)
    assert intercept[2] == 0.0
    assert np.abs(coef[:, :2]).min() > 0.0


@every_loss
@pytest.mark.parametrize("name", ["wide", "singular, square"])
def test_few_products_find_where_nothing_but_the_regulariser_curves(loss, name, three_classes):
    problem, _ = fixed_problem(loss, ROOTS[name], *three_classes, C=100.0)
    scores = problem.scores(problem.zero_coefficients())
    at = problem.derivatives(scores)
    factors = problem.preconditioner(at)
    flat = problem._prior.flat_directions(common_shift=loss.compares_outputs)
    assert flat.shape[1] == (2 if name == "wide" else 1) + (
        loss.compares_outputs and name == "wide"
    )
    hidden = np.random.RandomState(1).randn(problem.basis.n_columns, flat.shape[1]) @ flat.T
    near(problem.precondition(factors, problem.hessian_product(scores, at, hidden)), hidden, 1e-6)


@pytest.mark.parametrize("root", [np.full((3, 3), np.nan), np.ones((3, 0)), np.ones((2, 2, 2))])
def test_a_root_that_is_no_matrix_of_numbers_is_refused(root):
    with pytest.raises(ValueError, match="root of a label prior"):
        LabelPrior(root)


def test_a_prior_of_other_labels_is_refused(three_classes):
    with pytest.raises(ValueError, match="one of 2 outputs, and there are 3"):
        fixed_problem(all_losses()[0], np.eye(3)[:2], *three_classes)

"""The joint Newton solver on a fixed basis, against scipy and against the dense twin."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference.machine import FixedBasis, objective
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.basis import BasisColumns
from widemargin.kernels import RBF
from widemargin.losses import CLASS_LOSSES, all_losses
from widemargin.objectives import BasisObjective
from widemargin.solvers.newton import JointNewton

pytestmark = pytest.mark.combinations

GAMMA = 0.3
N_BASIS = 12
every_loss = pytest.mark.parametrize("loss", all_losses(), ids=lambda loss: loss.name)


def fixed_problem(loss, X, y, C=1.0, n_threads=1, fit_intercept=True):
    """Return the objective on the first rows as basis, and its dense twin."""
    kernel, n_outputs = RBF(GAMMA), y.max() + 1
    basis = BasisColumns(
        kernel, X, fit_intercept=fit_intercept, max_basis=N_BASIS, n_threads=n_threads
    )
    first = np.arange(N_BASIS)
    assert basis.extend(X[first], first, X[first], kernel.diagonal(X[first])).all()
    targets, weights = loss.encode(y, n_outputs), C * (1.0 + np.arange(len(y)) % 2)
    wide = X.astype(np.float64)
    K_nJ = rbf_kernel(wide, wide[first], gamma=GAMMA)
    twin = FixedBasis(loss, targets, weights, K_nJ, K_nJ[first], n_outputs, fit_intercept)
    return BasisObjective(loss, targets, weights, n_outputs, basis).refined(), twin


def solve(problem, tol, max_iter=100):
    start = problem.zero_coefficients()
    scores = problem.scores(start)
    reference = np.linalg.norm(problem.gradient(start, problem.derivatives(scores)))
    return JointNewton(tol=tol, max_iter=max_iter).solve(problem, start, scores, reference)


@every_loss
@pytest.mark.parametrize(("C", "fit_intercept"), [(0.1, False), (100.0, True)])
def test_joint_newton_reaches_the_optimum_of_scipy(loss, C, fit_intercept, three_classes):
    problem, twin = fixed_problem(loss, *three_classes, C=C, fit_intercept=fit_intercept)
    result = solve(problem, tol=1e-7)
    assert result.converged
    assert result.value == pytest.approx(twin.value(twin.solve_lbfgs()), rel=1e-6)


@every_loss
def test_the_preconditioner_is_exact_where_all_outputs_move_together(loss, three_classes, rng):
    problem, _ = fixed_problem(loss, *three_classes, C=100.0)
    scores = problem.scores(problem.zero_coefficients())
    at = problem.derivatives(scores)
    factors = problem.preconditioner(at)
    together = np.repeat(rng.randn(N_BASIS + 1, 1), problem.n_outputs, axis=1)
    solved = problem.precondition(factors, problem.hessian_product(scores, at, together))
    exact = np.allclose(solved, together, rtol=1e-6)
    assert exact or not loss.compares_outputs
    # Symmetric and positive, or conjugate gradients go astray.
    one, other = (rng.randn(*together.shape) for _ in range(2))
    left = np.vdot(one, problem.precondition(factors, other))
    assert left == pytest.approx(np.vdot(other, problem.precondition(factors, one)), rel=1e-6)
    assert np.vdot(one, problem.precondition(factors, one)) > 0


def test_few_products_are_enough_for_many_classes(rng):
    X = rng.randn(300, 4)
    y = np.arange(300) % 12
    problem, _ = fixed_problem(CLASS_LOSSES["weston_watkins"](), X, y, C=100.0)
    products = []
    true = problem.hessian_product
    problem.hessian_product = lambda *args: products.append(None) or true(*args)
    result = solve(problem, tol=1e-4)
    assert result.converged
    assert len(products) <= 8 * result.n_iter


@every_loss
def test_joint_newton_reaches_the_point_of_the_dense_twin(loss, three_classes):
    problem, twin = fixed_problem(loss, *three_classes)
    result = solve(problem, tol=1e-9)
    flat = twin.solve_newton()
    assert result.value == pytest.approx(twin.value(flat), rel=1e-12)
    assert_allclose(problem.gather(result.scores), twin.scores(flat), atol=1e-6)
    coef, intercept = problem.basis.expansion(result.coefficients)
    expected_coef, expected_intercept = twin.expansion(flat)
    assert_allclose(coef, expected_coef, atol=1e-4)
    assert_allclose(intercept, expected_intercept, atol=1e-5)


@every_loss
@pytest.mark.parametrize("C", [1.0, 1000.0])
def test_relative_gradient_of_1e_6_is_reached(loss, C, three_classes):
    problem, twin = fixed_problem(loss, *three_classes, C=C)
    result = solve(problem, tol=1e-6)
    assert result.converged
    # Not by the solver's own word: the gradient of the twin, in its own columns.
    coef, intercept = problem.basis.expansion(result.coefficients)
    inverse = np.linalg.pinv(twin.transform)
    flat = np.vstack([intercept[None, :], inverse @ coef]).ravel()
    at_zero = np.linalg.norm(twin.gradient(np.zeros_like(flat)))
    assert np.linalg.norm(twin.gradient(flat)) <= 1.01e-6 * at_zero
    assert result.relative_gradient == pytest.approx(
        np.linalg.norm(twin.gradient(flat)) / at_zero, rel=1e-2, abs=1e-9
    )


@every_loss
def test_objective_value_and_gradient_are_those_of_the_twin(loss, three_classes, rng):
    problem, twin = fixed_problem(loss, *three_classes)
    coefficients = 0.5 * rng.randn(*problem.zero_coefficients().shape)
    scores = problem.scores(coefficients)
    coef, intercept = problem.basis.expansion(coefficients)
    X, _ = three_classes
    K_nJ = rbf_kernel(X, X[:N_BASIS], gamma=GAMMA)
    expected = objective(loss, twin.targets, twin.weights, K_nJ, K_nJ[:N_BASIS], coef, intercept)
    assert problem.value(coefficients, scores) == pytest.approx(expected, rel=1e-10)
    assert_allclose(problem.basis.column_coefficients(coef, intercept), coefficients, atol=1e-9)

    gradient = problem.gradient(coefficients, problem.derivatives(scores))
    direction = rng.randn(*coefficients.shape)

    def along(length):
        moved = coefficients + length * direction
        return problem.value(moved, problem.scores(moved))

    numerical = (along(1e-6) - along(-1e-6)) / 2e-6
    assert np.vdot(gradient, direction) == pytest.approx(numerical, rel=1e-6)


@every_loss
def test_hessian_product_is_the_derivative_of_the_gradient(loss, three_classes, rng):
    problem, _ = fixed_problem(loss, *three_classes)
    coefficients = 0.5 * rng.randn(*problem.zero_coefficients().shape)
    direction = rng.randn(*coefficients.shape)

    def gradient(length):
        moved = coefficients + length * direction
        return problem.gradient(moved, problem.derivatives(problem.scores(moved)))

    scores = problem.scores(coefficients)
    product = problem.hessian_product(scores, problem.derivatives(scores), direction)
    numerical = (gradient(1e-7) - gradient(-1e-7)) / 2e-7
    assert_allclose(product, numerical, rtol=1e-5, atol=1e-5 * np.abs(product).max())


@every_loss
def test_float32_solves_as_far_as_float32_goes(loss, three_classes):
    X, y = three_classes
    problem, twin = fixed_problem(loss, X.astype(np.float32), y)
    result = solve(problem, tol=1e-4)
    assert result.converged
    assert result.value == pytest.approx(twin.value(twin.solve_lbfgs()), rel=1e-5)


@every_loss
def test_threads_change_no_bit_of_the_solve(loss, larger_problem):
    X, y = larger_problem
    problems = [fixed_problem(loss, X, y, n_threads=n_threads)[0] for n_threads in (1, 2)]
    alone, both = (solve(problem, tol=1e-4) for problem in problems)
    assert np.array_equal(alone.coefficients, both.coefficients)
    assert np.array_equal(problems[0].gather(alone.scores), problems[1].gather(both.scores))


def test_too_few_steps_are_not_called_converged(three_classes):
    problem, _ = fixed_problem(all_losses()[0], *three_classes, C=1000.0)
    result = solve(problem, tol=1e-10, max_iter=1)
    assert not result.converged
    assert result.relative_gradient > 1e-10


@pytest.mark.parametrize("loss", CLASS_LOSSES)
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_a_fit_reaches_the_gradient_that_was_asked_for(loss, basis, three_classes):
    X, y = three_classes
    machine = sparse_machine(
        15, loss=loss, basis=basis, C=100.0, gamma=GAMMA, gradient_tol=1e-6, random_state=0, tol=0
    ).fit(X, y)
    last = np.flatnonzero(machine.history_["n_basis"] == 15)
    assert len(last) == (1 if basis == "shared" else 3)
    assert (machine.history_["gradient"][last] <= 1e-6).all()

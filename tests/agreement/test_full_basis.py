"""With every row in the basis, the greedy machine is the full machine: a dense solve agrees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference.machine import FixedBasis, objective
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES

GAMMA = 0.4
every_class_loss = pytest.mark.parametrize(
    "loss", [loss() for loss in CLASS_LOSSES.values()], ids=list(CLASS_LOSSES)
)


def full_machine(**parameters):
    settings = {"gamma": GAMMA, "n_candidates": "all", "tol": 0, "gradient_tol": 1e-6}
    return sparse_machine(max_basis=10_000, **(settings | parameters))


@pytest.mark.combinations
@every_class_loss
@pytest.mark.parametrize(("C", "fit_intercept"), [(0.3, False), (10.0, True)])
def test_full_basis_reaches_the_optimum_of_a_dense_solve(loss, fit_intercept, C, three_classes):
    X, y = three_classes
    machine = full_machine(loss=loss, C=C, fit_intercept=fit_intercept).fit(X, y)
    assert machine.n_basis_ == len(X)
    assert machine.stop_reason_ in ("exhausted", "max_basis")

    K = rbf_kernel(X, gamma=GAMMA)
    weights = np.full(len(X), C)
    dense = FixedBasis(loss, loss.encode(y, 3), weights, K, K, 3, fit_intercept)
    best = dense.value(dense.solve_lbfgs())
    assert machine.objective_ == pytest.approx(best, rel=1e-6)

    order = machine.basis_indices_
    ours = objective(
        loss,
        loss.encode(y, 3),
        weights,
        K[:, order],
        K[np.ix_(order, order)],
        machine.dual_coef_,
        machine.intercept_,
    )
    assert ours == pytest.approx(machine.objective_, rel=1e-9)


@every_class_loss
def test_full_basis_per_class_reaches_the_optimum_of_dense_solves(loss, three_classes):
    X, y = three_classes
    machine = full_machine(loss=loss, basis="per_class", C=2.0).fit(X, y)
    K = rbf_kernel(X, gamma=GAMMA)
    single = loss.one_against_rest()
    solved = []
    for number in range(3):
        targets = single.encode((y != number).astype(int), 1)
        dense = FixedBasis(single, targets, np.full(len(X), 2.0), K, K, 1)
        solved.append((dense, dense.solve_lbfgs()))
    assert machine.objective_ == pytest.approx(
        sum(dense.value(flat) for dense, flat in solved), rel=1e-6
    )
    scores = np.hstack([dense.scores(flat) for dense, flat in solved])
    assert_allclose(machine.decision_function(X), scores, atol=1e-3)


@every_class_loss
def test_linear_kernel_is_the_linear_machine(loss, three_classes):
    X, y = three_classes
    machine = full_machine(loss=loss, C=1.0, kernel="linear").fit(X, y)
    assert machine.n_basis_ == X.shape[1]  # more rows than features express nothing new
    assert machine.stop_reason_ == "exhausted"
    identity = np.eye(X.shape[1])
    linear = FixedBasis(loss, loss.encode(y, 3), np.ones(len(X)), X, identity, 3)
    flat = linear.solve_newton()
    assert machine.objective_ == pytest.approx(linear.value(flat), rel=1e-6)
    coef, _ = linear.expansion(flat)
    assert_allclose(machine.basis_.T @ machine.dual_coef_, coef, atol=1e-4)


def test_a_larger_cap_comes_nearer_to_the_full_machine(three_classes):
    X, y = three_classes
    full = full_machine(C=3.0).fit(X, y).objective_
    capped = [
        full_machine(C=3.0).set_params(max_basis=size).fit(X, y).objective_
        for size in (2, 10, 30, len(X))
    ]
    assert (np.diff(capped) < 0).all()
    assert capped[0] > 1.05 * full
    assert capped[-1] == pytest.approx(full, rel=1e-9)

"""The correlated Hamming loss, held against its definition over all sets of labels."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from widemargin import KernelMultiLabelClassifier, LinearMultiLabelClassifier, priors
from widemargin.solvers.label_margins import correlated_margins

N_LABELS = 4
C = 0.6


def dominant_prior(seed=0, n_labels=N_LABELS):
    """Return a prior with entries of either sign whose diagonal is just above what it must be."""
    root = np.random.RandomState(seed).randn(n_labels, n_labels)
    R = (root + root.T) / 2
    np.fill_diagonal(R, 0.0)
    return R + np.diag(1.05 * np.abs(R).sum(axis=1))


def rows(n_rows=20, n_labels=N_LABELS, seed=1):
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, 3)
    return X, (X @ rng.randn(3, n_labels) + rng.randn(n_rows, n_labels) > 0).astype(int)


def loss_by_definition(R, signs, scores):
    """Return the loss of each row: that of the worst set of labels, of all there are."""
    sets = np.array(list(itertools.product([-1.0, 1.0], repeat=len(R))))
    worst = []
    for y, f in zip(signs, scores, strict=True):
        violations = [y @ R @ (y - other) + (other - y) @ f for other in sets]
        worst.append(max(violations))
    return np.array(worst)


def optimum(K, R, signs, caps):
    """Return the optimum of the dual (25), by a solver for any function in a box.

    Delta^- and Delta^+ of each label are those of section 3.2, as they are printed.
    """
    n_rows, n_labels = signs.shape
    share = np.einsum("il,lk,ik->i", signs, R, signs)[:, None] / n_labels
    right, wrong = share - signs * (signs @ R), share + signs * (signs @ R)
    differences = wrong - right

    def negative(flat):
        alpha = flat.reshape(n_rows, n_labels)
        mixed = K @ (alpha * signs) @ R
        value = np.sum(alpha * differences) - 2 * np.sum(alpha * signs * mixed)
        return -value, (4 * signs * mixed - differences).ravel()

    bounds = [(0.0, cap) for cap in caps.ravel()]
    start = np.zeros(signs.size)
    settings = {"maxiter": 20_000, "maxfun": 200_000, "ftol": 1e-15, "gtol": 1e-10}
    found = minimize(negative, start, jac=True, bounds=bounds, method="L-BFGS-B", options=settings)
    alpha = found.x.reshape(n_rows, n_labels)
    return -found.fun, 2 * K @ (alpha * signs) @ R


@pytest.mark.parametrize("seed", range(3))
def test_margins_are_what_the_definition_makes_of_the_worst_set(seed):
    R = dominant_prior(seed)
    _, Y = rows(seed=seed)
    signs = 2.0 * Y - 1
    scores = np.random.RandomState(seed).randn(*Y.shape)
    hinges = np.maximum(0.0, correlated_margins(R, signs) - signs * scores)
    assert_allclose(2 * hinges.sum(axis=1), loss_by_definition(R, signs, scores), atol=1e-12)


@pytest.mark.parametrize("kind", ["kernel", "linear"])
def test_machines_come_to_the_optimum_of_the_definition(kind):
    X, Y = rows()
    R = dominant_prior()
    weights = np.random.RandomState(3).randint(0, 3, len(X)).astype(float)
    settings = {
        "prior": R,
        "loss": "correlated_hamming",
        "C": C,
        "fit_intercept": False,
        "tol": 3e-6,
        "class_weight": {1: 2.0},
        "random_state": 0,
    }
    if kind == "kernel":
        K = rbf_kernel(X, gamma=0.4)
        machine = KernelMultiLabelClassifier(gamma=0.4, **settings)
    else:
        K = linear_kernel(X)
        machine = LinearMultiLabelClassifier(max_iter=100_000, **settings)
    machine.fit(X, Y, sample_weight=weights)
    counts = np.where(Y * [0, 1, 0, 0] > 0, 2.0, 1.0) * weights[:, None]
    best, scores = optimum(K, R, 2.0 * Y - 1, C * counts)
    assert machine.stop_reason_ == "tol"
    assert machine.dual_objective_ == pytest.approx(best, rel=5e-6)
    assert machine.dual_objective_ <= best * (1 + 1e-6) <= machine.objective_ * (1 + 2e-6)
    assert_allclose(machine.decision_function(X), scores, atol=2e-2)


def test_the_objective_is_that_of_the_definition():
    X, Y = rows(60)
    R = dominant_prior()
    signs = 2.0 * Y - 1
    for machine in (
        KernelMultiLabelClassifier(kernel="linear", prior=R, loss="correlated_hamming", C=C),
        LinearMultiLabelClassifier(prior=R, loss="correlated_hamming", C=C),
    ):
        machine.set_params(fit_intercept=False, tol=1e-4, random_state=0).fit(X, Y)
        W = machine.coef_
        regulariser = 0.5 * np.trace(np.linalg.solve(R, W @ W.T))
        losses = loss_by_definition(R, signs, machine.decision_function(X))
        assert machine.objective_ == pytest.approx(regulariser + C * losses.sum(), rel=1e-5)


@pytest.mark.parametrize("kind", [KernelMultiLabelClassifier, LinearMultiLabelClassifier])
def test_it_differs_from_the_hinge_by_what_lies_beside_the_diagonal_alone(kind):
    X, Y = rows(80)
    for prior in (None, np.eye(N_LABELS)):
        plain, correlated = (
            kind(prior=prior, loss=loss, random_state=0).fit(X, Y)
            for loss in ("hinge", "correlated_hamming")
        )
        assert_array_equal(plain.decision_function(X), correlated.decision_function(X))
        assert plain.objective_ == correlated.objective_
    R = dominant_prior()
    plain, correlated = (
        kind(prior=R, loss=loss, random_state=0).fit(X, Y)
        for loss in ("hinge", "correlated_hamming")
    )
    far = np.abs(plain.decision_function(X) - correlated.decision_function(X))
    assert far.max() > 0.1


@pytest.mark.parametrize("kind", [KernelMultiLabelClassifier, LinearMultiLabelClassifier])
def test_a_prior_that_is_not_dominant_is_refused_with_what_would_do(kind):
    X, Y = rows(40, n_labels=3)
    R = np.array([[1.0, 0.8, 0.7], [0.8, 1.0, 0.6], [0.7, 0.6, 1.0]])
    with pytest.raises(ValueError, match=r"label 0 .* sum 1\.5, and the diagonal is 1\. .*0\.6667"):
        kind(prior=R, loss="correlated_hamming").fit(X, Y)
    factor = np.where(np.eye(3) > 0, 1.0, 0.6666)
    kind(prior=R * factor, loss="correlated_hamming").fit(X, Y)
    kind(prior=priors.from_labels(Y, shrinkage=0.9), loss="correlated_hamming").fit(X, Y)
    with pytest.raises(ValueError, match="loss must be one of 'hinge', 'correlated_hamming'"):
        kind(loss="squared_hinge").fit(X, Y)


@pytest.mark.parametrize("kind", [KernelMultiLabelClassifier, LinearMultiLabelClassifier])
def test_labels_that_never_vary_are_left_out(kind):
    X, Y = rows(50)
    wide = np.insert(Y, 2, 1, axis=1)
    R = dominant_prior(5, n_labels=5)
    others = [0, 1, 3, 4]
    settings = {"loss": "correlated_hamming", "random_state": 0}
    with pytest.warns(UserWarning, match="every row has"):
        whole = kind(prior=R, **settings).fit(X, wide)
    part = kind(prior=R[np.ix_(others, others)], **settings).fit(X, Y)
    assert whole.objective_ == pytest.approx(part.objective_, rel=1e-9)
    scores = part.decision_function(X)
    assert_allclose(whole.decision_function(X)[:, others], scores, atol=1e-6)

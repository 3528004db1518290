"""Sparse machines of label sets against what they must agree with: each label alone, dense R^-1."""

import numpy as np
import pytest
import scipy.sparse as sp
from label_machine import label_problem
from numpy.testing import assert_allclose, assert_array_equal
from reference.label_prior import PriorBasis
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import LearnedBasis, SparseKernelMultiLabelClassifier, priors
from widemargin.losses import LABEL_LOSSES

X, Y = label_problem(n_rows=60, n_labels=4)
GAMMA = 0.2
pytestmark = pytest.mark.turns("loss", "basis", "solver", "rank")
every_loss = pytest.mark.parametrize("loss", list(LABEL_LOSSES))


def machine(**settings):
    exact = {"tol": 0.0, "gamma": GAMMA, "C": 2.0, "random_state": 0}
    return SparseKernelMultiLabelClassifier(**({"max_basis": 12} | exact | settings))


def solved(**settings):
    """Return a machine of all rows, solved far, so that the choice of vectors does not matter."""
    return machine(max_basis=60, basis=exactly(), **settings)


def exactly():
    from widemargin import ChosenBasis

    return ChosenBasis(gradient_tol=1e-10, n_candidates="all")


def twin(loss, R, weights, signs=None):
    """Return the dense problem of all rows, in which R is inverted."""
    K = rbf_kernel(X, gamma=GAMMA)
    signs = 2 * Y - 1 if signs is None else signs
    return PriorBasis(R, loss, signs, weights, K, K, Y.shape[1])


@every_loss
def test_a_machine_with_all_rows_is_the_dense_one_with_the_inverse_of_the_prior(loss):
    R = priors.from_labels(Y).matrix
    found = solved(loss=loss, prior=R).fit(X, Y)
    dense = twin(LABEL_LOSSES[loss](), R, np.full(60, 2.0))
    flat = dense.solve_newton()
    assert found.objective_ == pytest.approx(dense.value(flat), rel=1e-7)
    assert_allclose(found.decision_function(X), dense.scores(flat), atol=1e-4)


@every_loss
def test_weights_of_labels_are_those_of_the_dense_problem(loss):
    found = solved(loss=loss, class_weight={1: 3.0}).fit(X, Y)
    counts = np.where((Y == 1) & (np.arange(4) == 1), 3.0, 1.0)
    weighed = LABEL_LOSSES[loss]().weighed()
    dense = twin(weighed, np.eye(4), np.full(60, 2.0), counts * (2 * Y - 1))
    assert found.objective_ == pytest.approx(dense.value(dense.solve_newton()), rel=1e-7)


def test_balanced_labels_are_weights_by_hand():
    share = Y.mean(axis=0)
    balanced = solved(class_weight="balanced").fit(X, Y)
    for label in range(4):
        weights = np.where(Y[:, label] == 1, 0.5 / share[label], 0.5 / (1 - share[label]))
        alone = solved().fit(X, Y[:, [label]], sample_weight=weights)
        assert_allclose(
            balanced.decision_function(X)[:, label], alone.decision_function(X)[:, 0], atol=1e-5
        )


@every_loss
@pytest.mark.parametrize("basis", ["shared", LearnedBasis(max_iter=12)], ids=["chosen", "learned"])
def test_the_identity_is_no_prior(loss, basis):
    plain = machine(loss=loss, basis=basis).fit(X, Y)
    for prior in (np.eye(4), priors.identity(4)):
        other = machine(loss=loss, basis=basis, prior=prior).fit(X, Y)
        assert_allclose(other.decision_function(X), plain.decision_function(X), atol=1e-6)
        assert_array_equal(other.basis_indices_, plain.basis_indices_)


@every_loss
def test_a_label_alone_on_the_same_vectors_is_its_column(loss):
    together = machine(loss=loss, basis=exactly()).fit(X, Y)
    K = rbf_kernel(X, together.basis_, gamma=GAMMA)
    inside = rbf_kernel(together.basis_, gamma=GAMMA)
    for label in range(4):
        signs = 2 * Y[:, [label]] - 1
        alone = PriorBasis(np.eye(1), LABEL_LOSSES[loss](), signs, np.full(60, 2.0), K, inside, 1)
        expected = alone.scores(alone.solve_newton())[:, 0]
        assert_allclose(together.decision_function(X)[:, label], expected, atol=1e-5)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_singular_prior_keeps_scores_in_its_range(rank):
    root = np.random.RandomState(0).randn(4, rank)
    for basis in ("shared", LearnedBasis(max_iter=12)):
        found = machine(prior=root @ root.T, basis=basis).fit(X, Y)
        outside = np.eye(4) - root @ np.linalg.pinv(root)
        assert np.abs(found.dual_coef_ @ outside).max() < 1e-7 * np.abs(found.dual_coef_).max()


@pytest.mark.parametrize("solver", ["auto", "projection"])
def test_learned_vectors_lower_the_objective_with_the_prior(solver):
    prior = priors.from_labels(Y)
    found = machine(max_basis=6, prior=prior, basis=LearnedBasis(solver=solver, max_iter=30)).fit(
        X, Y
    )
    inverse = np.linalg.inv(prior.matrix)
    signs = 2 * Y - 1
    violated = np.maximum(0, 1 - signs * found.decision_function(X))
    coef = np.vstack([found.intercept_, found.dual_coef_])
    by_hand = 0.5 * np.trace(coef @ inverse @ coef.T) + 0.5 * found.C_ * np.sum(violated**2)
    assert found.objective_ == pytest.approx(by_hand, rel=1e-4)
    first = machine(max_basis=6, prior=prior, basis=LearnedBasis(solver=solver, max_iter=1)).fit(
        X, Y
    )
    assert found.objective_ < 0.95 * first.objective_


def test_sparse_labels_make_the_machine_of_dense_ones():
    for basis in ("shared", LearnedBasis(max_iter=8)):
        dense = machine(basis=basis).fit(X, Y)
        sparse = machine(basis=basis).fit(X, sp.csc_matrix(Y))
        assert_array_equal(sparse.decision_function(X), dense.decision_function(X))


def test_more_labels_than_rows():
    many = np.random.RandomState(1).randint(0, 2, (60, 90))
    found = machine(max_basis=5).fit(X, many)
    assert found.dual_coef_.shape == (5, 90)


def test_labels_that_never_vary_take_no_part():
    spoilt = np.column_stack([np.zeros(60, int), Y, np.ones(60, int)])
    for settings in ({}, {"basis": LearnedBasis(max_iter=8)}, {"loss": "logistic"}):
        with pytest.warns(UserWarning, match="1 that no row has"):
            found = machine(**settings).fit(X, spoilt)
        plain = machine(**settings).fit(X, Y)
        assert_array_equal(found.decision_function(X)[:, 1:-1], plain.decision_function(X))
        assert_array_equal(found.predict(X)[:, [0, -1]], [[0, 1]] * 60)
        assert found.objective_ == plain.objective_


@pytest.mark.parametrize("basis", ["shared", "learned"])
def test_nothing_to_learn_makes_a_machine_without_vectors(basis):
    with pytest.warns(UserWarning, match="2 that every row has"):
        found = machine(basis=basis).fit(X, np.ones((60, 2), int))
    assert found.n_basis_ == 0
    assert found.predict(X).all()
    assert found.compile().predict(X).all()


def test_a_warm_start_goes_on_to_the_machine_of_one_fit():
    prior = priors.from_labels(Y)
    grown = machine(max_basis=60, prior=prior, basis=exactly(), warm_start=True).set_params(
        max_basis=20
    )
    grown.fit(X, Y)
    indices = grown.basis_indices_
    grown.set_params(max_basis=60).fit(X, Y)
    assert_array_equal(grown.basis_indices_[:20], indices)
    whole = solved(prior=prior).fit(X, Y)
    assert grown.objective_ == pytest.approx(whole.objective_, rel=1e-7)


def test_probabilities_are_logistic_functions_of_scores():
    found = machine(loss="logistic").fit(X, Y)
    assert_allclose(
        found.predict_proba(X), 1 / (1 + np.exp(-found.decision_function(X))), rtol=1e-9
    )
    assert not hasattr(machine().fit(X, Y), "predict_proba")


def test_stages_have_all_labels():
    found = machine().fit(X, Y)
    stages = list(found.staged_decision_function(X))
    assert len(stages) == len(found.history_["n_basis"])
    assert_allclose(stages[-1], found.decision_function(X), atol=1e-9)
    assert {stage.shape for stage in stages} == {(60, 4)}


def test_a_basis_for_each_label_is_refused():
    with pytest.raises(ValueError, match="basis must be one for all labels"):
        machine(basis="per_class").fit(X, Y)

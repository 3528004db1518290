"""How the basis grows: what ``history_`` records, the stages on the way, and why growth ends."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES

pytestmark = pytest.mark.combinations

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)


def grown(X, y, max_basis=20, **parameters):
    settings = {"gamma": 0.4, "tol": 0, "random_state": 0}
    return sparse_machine(max_basis, **(settings | parameters)).fit(X, y)


@every_loss
@pytest.mark.parametrize("n_candidates", [1, 5, "all"])
def test_the_objective_falls_as_the_basis_grows(loss, n_candidates, three_classes):
    machine = grown(*three_classes, loss=loss, n_candidates=n_candidates)
    history = machine.history_
    assert {"n_basis", "objective", "seconds", "gradient"} <= set(history)
    assert (np.diff(history["n_basis"]) > 0).all()
    assert (np.diff(history["objective"]) < 0).all()
    assert (np.diff(history["seconds"]) >= 0).all()
    assert history["n_basis"][-1] == machine.n_basis_ == 20
    assert history["objective"][-1] == machine.objective_
    assert history["gradient"][-1] <= machine.basis.gradient_tol
    assert machine.stop_reason_ == "max_basis"


@every_loss
def test_per_class_history_falls_for_each_class(loss, three_classes):
    machine = grown(*three_classes, loss=loss, basis="per_class", max_basis=8)
    for number in range(3):
        mine = machine.history_["class_index"] == number
        assert machine.history_["n_basis"][mine][-1] == 8
        assert (np.diff(machine.history_["objective"][mine]) < 0).all()
    assert 8 <= machine.n_basis_ <= 24


@every_loss
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_the_last_stage_is_the_machine(loss, basis, three_classes, two_classes):
    for X, y in (three_classes, two_classes):
        machine = grown(X, y, loss=loss, basis=basis, max_basis=12)
        *_, last = machine.staged_decision_function(X[:7])
        assert_allclose(last, machine.decision_function(X[:7]), rtol=1e-10, atol=1e-10)


def test_a_stage_uses_the_vectors_that_history_counts(three_classes):
    X, y = three_classes
    machine = grown(X, y, max_basis=12)
    stages = list(machine.staged_decision_function(X))
    sizes = machine.history_["n_basis"]
    K = rbf_kernel(X, machine.basis_, gamma=0.4)
    assert len(stages) == len(sizes)

    def out_of_reach(scores, size):
        """Return what the first ``size`` vectors and a constant cannot express of the scores."""
        columns = np.hstack([np.ones((len(X), 1)), K[:, :size]])
        best = columns @ np.linalg.lstsq(columns, scores, rcond=None)[0]
        return np.abs(scores - best).max()

    for scores, size in zip(stages, sizes, strict=True):
        assert scores.shape == (len(X), 3)
        assert out_of_reach(scores, size) < 1e-8
        if size > 0:
            assert out_of_reach(scores, size - 1) > 1e-5


def test_a_stage_is_near_the_machine_that_stops_there(three_classes):
    X, y = three_classes
    longer = grown(X, y, max_basis=14, n_candidates="all")
    sizes = list(longer.history_["n_basis"])
    shorter = grown(X, y, max_basis=6, n_candidates="all", gradient_tol=1e-6)
    assert_array_equal(longer.basis_indices_[:6], shorter.basis_indices_)
    objective = longer.history_["objective"][sizes.index(6)]
    assert objective == pytest.approx(shorter.objective_, rel=1e-2)
    assert objective >= shorter.objective_ * (1 - 1e-9)


def test_per_class_stages_end_together(three_classes):
    X, y = three_classes
    machine = grown(X, y, basis="per_class", max_basis=6)
    lengths = np.bincount(machine.history_["class_index"])
    assert len(list(machine.staged_decision_function(X))) == lengths.max()


def test_stages_of_a_sparse_and_of_a_precomputed_fit_are_the_same(three_classes):
    X, y = three_classes
    K = rbf_kernel(X, gamma=0.4)
    stages = [
        list(grown(X, y, max_basis=6).staged_decision_function(X)),
        list(grown(sp.csr_matrix(X), y, max_basis=6).staged_decision_function(sp.csr_matrix(X))),
        list(grown(K, y, max_basis=6, kernel="precomputed").staged_decision_function(K)),
    ]
    for same in zip(*stages, strict=True):
        assert_allclose(same[1], same[0], atol=1e-6)
        assert_allclose(same[2], same[0], atol=1e-6)


def test_growth_ends_when_vectors_no_longer_help(three_classes):
    X, y = three_classes
    machine = grown(X, y, max_basis=len(X), tol=0.02, n_candidates="all")
    assert machine.stop_reason_ == "tol"
    assert 1 < machine.n_basis_ < len(X)
    objective, size = machine.history_["objective"], machine.history_["n_basis"]
    last_gain = (objective[-2] - objective[-1]) / objective[-2] / (size[-1] - size[-2])
    assert last_gain < 0.03  # of a vector; the last solve may take a little more than was seen
    stricter = grown(X, y, max_basis=len(X), tol=1e-3, n_candidates="all")
    assert stricter.n_basis_ > machine.n_basis_
    assert stricter.objective_ < machine.objective_


def test_better_candidates_lower_the_objective(larger_problem):
    X, y = larger_problem
    settings = {"max_basis": 10, "gamma": 0.05}
    best = grown(X, y, n_candidates=300, **settings).objective_
    one = np.mean(
        [grown(X, y, n_candidates=1, random_state=seed, **settings).objective_ for seed in range(3)]
    )
    assert best < 0.98 * one


def test_no_vector_is_chosen_twice(three_classes):
    X, y = three_classes
    doubled = np.vstack([X, X])
    machine = grown(doubled, np.hstack([y, y]), max_basis=200, n_candidates=7)
    assert machine.n_basis_ == len(X)
    assert machine.stop_reason_ == "exhausted"
    assert len(np.unique(machine.basis_, axis=0)) == len(X)


@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_fitted_attributes_fit_together(basis, three_classes):
    X, y = three_classes
    machine = grown(X, y, basis=basis, max_basis=9)
    assert_array_equal(machine.basis_, X[machine.basis_indices_])
    assert machine.dual_coef_.shape == (machine.n_basis_, 3)
    assert machine.intercept_.shape == (3,)
    scores = rbf_kernel(X, machine.basis_, gamma=0.4) @ machine.dual_coef_ + machine.intercept_
    assert_allclose(machine.decision_function(X), scores, atol=1e-10)
    assert_allclose(machine.model_.scores(X), scores, atol=1e-10)
    assert machine.model_.n_basis == machine.n_basis_
    assert machine.n_iter_ >= 1

"""Parallel hyperplanes against other solvers of the same problems, and what must hold of them."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference.planes import chain_dual, kkt_violation, primal_value
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from widemargin import CrossTrainingSVM, ParallelSVM, SequentialSVM, load, save
from widemargin.two_label import map_threshold

EXACT = {"tol": 1e-9}
GAMMA = 0.3


def two_labels(n_rows=90, seed=0, n_features=3):
    """Return rows with one of two labels or both; those with both lie between, but for noise."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, n_features)
    place = X[:, 0] + 0.5 * np.square(X[:, 1]) + 0.4 * rng.randn(n_rows)
    return X, np.stack([place > -0.1, place < 0.7], axis=1).astype(int)


def levels_of(Y):
    return 1 + Y[:, 0] - Y[:, 1]


def in_chain(n_levels, n_rows=80, seed=1):
    X, _ = two_labels(n_rows, seed)
    place = X[:, 0] + 0.3 * np.random.RandomState(seed + 9).randn(n_rows)
    return X, np.searchsorted(np.quantile(place, np.arange(1, n_levels) / n_levels), place)


@pytest.mark.parametrize("C", [0.3, 2.0])
@pytest.mark.parametrize("n_levels", [2, 4])
def test_a_general_solver_finds_the_same_chain(n_levels, C):
    X, y = in_chain(n_levels, 16)
    machine = ParallelSVM(C=C, gamma=GAMMA, **EXACT).fit(X, y)
    K = rbf_kernel(X, gamma=GAMMA)
    dual, _ = chain_dual(K, y, n_levels, np.full(len(y), C))
    assert machine.dual_objective_ == pytest.approx(dual, rel=1e-6)
    assert machine.objective_ == pytest.approx(dual, rel=1e-6)
    assert machine.gap_ <= 1e-9 * machine.objective_


@pytest.mark.parametrize("n_levels", [2, 3, 5])
def test_the_objective_is_that_of_scores_and_thresholds(n_levels):
    X, y = in_chain(n_levels)
    machine = ParallelSVM(C=2.0, gamma=GAMMA, **EXACT).fit(X, y)
    K = rbf_kernel(X, gamma=GAMMA)
    expansion = np.zeros(len(y))
    own = machine.dual_coef_[:, -1] / max(1, n_levels - 1)
    expansion[machine.basis_indices_] = own
    caps = np.full(len(y), 2.0)
    found = primal_value(K, y, caps, expansion, machine.intercept_)
    assert found == pytest.approx(machine.objective_, rel=1e-6)
    assert kkt_violation(K, y, caps, expansion, machine.intercept_) < 1e-4
    # No other thresholds are better, nor is another length of the expansion.
    rng = np.random.RandomState(0)
    for _ in range(20):
        moved = machine.intercept_ + 1e-2 * rng.randn(n_levels - 1)
        scaled = expansion * (1 + 1e-2 * rng.randn())
        assert primal_value(K, y, caps, scaled, moved) >= found * (1 - 1e-6)


def test_a_general_solver_finds_the_same_two_thresholds():
    X, Y = two_labels(24)
    K = rbf_kernel(X, gamma=GAMMA)
    for C in (0.5, 3.0):
        machine = ParallelSVM(C=C, gamma=GAMMA, **EXACT).fit(X, Y)
        dual, shifts = chain_dual(K, levels_of(Y), 3, np.full(len(Y), C))
        assert machine.dual_objective_ == pytest.approx(dual, rel=1e-6)
        assert_allclose(machine.intercept_, shifts[::-1], atol=1e-4)
        b1, b2 = machine.intercept_
        assert b1 < b2


def test_two_classes_are_the_machine_of_libsvm():
    X, y = overlapping_classes(150, 2)
    rng = np.random.RandomState(0)
    weights = rng.uniform(0.2, 3.0, len(y))
    for kernel in ("rbf", "linear", "poly"):
        settings = {"C": 0.7, "kernel": kernel, "gamma": 0.2, "coef0": 1.0, "degree": 2}
        ours = ParallelSVM(**settings, **EXACT).fit(X, y, sample_weight=weights)
        theirs = SVC(**settings, tol=1e-8).fit(X, y, sample_weight=weights)
        scores = theirs.decision_function(X)
        assert np.abs(ours.decision_function(X) - scores).max() < 1e-4 * np.abs(scores).max()
        assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4)


@pytest.mark.parametrize("kind", [SequentialSVM, CrossTrainingSVM, ParallelSVM])
def test_two_classes_make_a_plain_machine_of_each(kind):
    X, y = overlapping_classes(120, 2)
    names = np.array(["oak", "ash"])[y]
    ours = kind(C=2.0, **EXACT).fit(X, names)
    theirs = SVC(C=2.0, tol=1e-8).fit(X, names)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert_array_equal(ours.predict(X), theirs.predict(X))


def test_cross_training_is_two_machines_of_libsvm():
    X, Y = two_labels(120)
    ours = CrossTrainingSVM(C=3.0, gamma=GAMMA, **EXACT).fit(X, Y)
    first, second = (
        SVC(C=3.0, gamma=GAMMA, tol=1e-8).fit(X, Y[:, label]).decision_function(X)
        for label in (0, 1)
    )
    expected = first - second
    near = map_threshold(np.abs(expected), Y.all(axis=1))
    assert 0 < near < np.abs(expected).max()
    assert ours.threshold_ == pytest.approx(near, rel=1e-3)
    scores = ours.decision_function(X)
    assert_allclose(scores, np.stack([expected + near, near - expected], axis=1), atol=5e-3)
    answers = np.where(
        (np.abs(expected) < near)[:, None], [1, 1], np.where(expected[:, None] > 0, [1, 0], [0, 1])
    )
    clear = np.abs(np.abs(expected) - near) > 1e-2
    assert_array_equal(ours.predict(X)[clear], answers[clear])


def test_sequential_machines_are_those_of_libsvm():
    X, Y = two_labels(120)
    ours = SequentialSVM(C=3.0, gamma=GAMMA, **EXACT).fit(X, Y)
    both = Y.all(axis=1)
    doubled = np.vstack([X, X[both]])
    signs = np.r_[Y[:, 0], np.zeros(both.sum(), dtype=int)]
    first = SVC(C=3.0, gamma=GAMMA, tol=1e-8).fit(doubled, signs).decision_function(X)
    second = SVC(C=3.0, gamma=GAMMA, tol=1e-8).fit(X[~both], Y[~both, 0]).decision_function(X)
    assert_allclose(ours.decision_function(X), np.stack([first, second], axis=1), atol=5e-3)
    near = map_threshold(np.abs(first), both)
    assert near > 0
    assert ours.threshold_ == pytest.approx(near, rel=1e-3)
    answers = np.where(
        (np.abs(first) < near)[:, None], [1, 1], np.where(second[:, None] > 0, [1, 0], [0, 1])
    )
    clear = (np.abs(np.abs(first) - near) > 1e-2) & (np.abs(second) > 1e-2)
    assert_array_equal(ours.predict(X)[clear], answers[clear])


@pytest.mark.parametrize("kind", [SequentialSVM, CrossTrainingSVM, ParallelSVM])
def test_forms_of_rows_and_kernels_make_one_machine(kind):
    X, Y = two_labels()
    settings = {"C": 2.0, "gamma": GAMMA, **EXACT}
    one = kind(**settings).fit(X, Y)
    expected = one.decision_function(X)
    near = {"rtol": 0, "atol": 2e-5 * np.abs(expected).max()}
    K = rbf_kernel(X, gamma=GAMMA)
    assert_allclose(
        kind(**settings).fit(sp.csr_matrix(X), Y).decision_function(X), expected, **near
    )
    assert_allclose(
        kind(**settings, kernel="precomputed").fit(K, Y).decision_function(K), expected, **near
    )
    called = kind(**settings, kernel=lambda A, B: rbf_kernel(A, B, gamma=GAMMA)).fit(X, Y)
    assert_allclose(called.decision_function(X), expected, **near)
    wide = sp.csr_matrix((X.ravel(), np.tile([0, 1, 2999], len(X)), np.arange(0, X.size + 1, 3)))
    assert_allclose(kind(**settings).fit(wide, Y).decision_function(wide), expected, **near)
    tight = kind(**settings, cache_size=1e-3).fit(X, Y)
    assert_array_equal(tight.decision_function(X), expected)
    assert tight.n_kernel_evaluations_ > one.n_kernel_evaluations_
    single = kind(**settings).fit(X.astype(np.float32), Y)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32
    assert single.objective_ == pytest.approx(one.objective_, rel=1e-4)


def test_another_kernel_is_solved_too():
    X, Y = two_labels(20)
    machine = ParallelSVM(C=0.5, kernel="poly", degree=2, coef0=1.0, gamma=0.5, **EXACT).fit(X, Y)
    K = polynomial_kernel(X, degree=2, coef0=1.0, gamma=0.5)
    dual, _ = chain_dual(K, levels_of(Y), 3, np.full(len(Y), 0.5))
    assert machine.dual_objective_ == pytest.approx(dual, rel=1e-5)


@pytest.mark.parametrize("kind", [SequentialSVM, CrossTrainingSVM, ParallelSVM])
def test_a_weight_is_a_row_that_is_there_so_often(kind):
    X, Y = two_labels(60)
    counts = np.random.RandomState(3).randint(0, 4, len(X))
    weighted = kind(C=0.7, gamma=GAMMA, **EXACT).fit(X, Y, sample_weight=counts)
    repeated = kind(C=0.7, gamma=GAMMA, **EXACT).fit(
        np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=2e-3)
    assert not np.isin(weighted.basis_indices_, np.flatnonzero(counts == 0)).any()


def test_the_other_order_of_labels_is_the_same_machine():
    X, Y = two_labels()
    one = ParallelSVM(gamma=GAMMA, **EXACT).fit(X, Y)
    other = ParallelSVM(gamma=GAMMA, **EXACT).fit(X, Y[:, ::-1])
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-8)
    assert_allclose(other.intercept_, -one.intercept_[::-1], atol=1e-5)
    assert_array_equal(other.predict(X), one.predict(X)[:, ::-1])


@pytest.mark.parametrize("kind", [SequentialSVM, CrossTrainingSVM, ParallelSVM])
@pytest.mark.parametrize("cache_size", [200.0, 1e-3])
def test_a_fit_that_is_stopped_saved_and_gone_on_with_is_one_that_ran_through(
    kind, cache_size, tmp_path
):
    X, Y = two_labels(250, n_features=6)
    settings = {"C": 50.0, "gamma": 0.05, "tol": 1e-7, "cache_size": cache_size, "warm_start": True}
    whole = kind(**settings).fit(X, Y)
    assert len(whole.history_["gap"]) > 2
    stopped = kind(**settings, max_seconds=1e-9)
    n_stops = 0
    while n_stops == 0 or stopped.stop_reason_ == "max_seconds":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            stopped.fit(X, Y)
        save(stopped, tmp_path / "stopped")
        stopped = load(tmp_path / "stopped")
        n_stops += 1
    assert n_stops > 2
    assert stopped.n_iter_ == whole.n_iter_
    assert_array_equal(stopped.dual_coef_, whole.dual_coef_)
    assert_array_equal(stopped.model_.intercept, whole.model_.intercept)
    assert_array_equal(stopped.history_["dual"], whole.history_["dual"])


@pytest.fixture(scope="module")
def scene(real_labels):
    """Return rows of scene with mountain or field, and these two labels."""
    (X, Y), (X_test, Y_test) = (real_labels("scene", split) for split in ("train", "test"))
    rows, labels = np.vstack([X, X_test]), np.vstack([Y, Y_test])[:, [4, 3]]
    kept = labels.any(axis=1)
    assert [(labels[kept].sum(axis=1) == 2).sum(), kept.sum()] == [76, 890]
    return rows[kept], labels[kept]


class TestScene:
    """Exact values, which a general solver of quadratic programs agrees with."""

    def test_two_thresholds(self, scene):
        machine = ParallelSVM(C=10.0, gamma=1.0, tol=1e-8).fit(*scene)
        assert machine.dual_objective_ == pytest.approx(1512.08509, rel=1e-6)
        assert_allclose(machine.intercept_, [-0.755000, 1.219199], atol=1e-4)

    def test_a_wider_kernel(self, scene):
        machine = ParallelSVM(C=10.0, gamma=0.1, tol=1e-8).fit(*scene)
        assert machine.dual_objective_ == pytest.approx(1468.14130, rel=1e-6)

    def test_every_third_row(self, scene):
        X, Y = scene
        machine = ParallelSVM(C=10.0, gamma=1.0, tol=1e-8).fit(X[::3], Y[::3])
        assert machine.dual_objective_ == pytest.approx(507.403137, rel=1e-6)
        assert_allclose(machine.intercept_, [-0.572622, 1.012319], atol=1e-4)

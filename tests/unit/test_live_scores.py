"""Machines that predict and learn in turn: the answers of their models, and nothing left behind."""

import gc
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron

pytestmark = pytest.mark.combinations

LEARNERS = [
    KernelClassifier(gamma=0.3, random_state=0),
    KernelClassifier(gamma=0.3, loss="weston_watkins", fit_intercept=False, random_state=0),
    KernelMIRA(gamma=0.3, random_state=0),
    KernelPerceptron(gamma=0.3, random_state=0),
    KernelPerceptron(gamma=0.3, average=False, random_state=0),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=str)


def own_kernel(left, right):
    return rbf_kernel(left, right, gamma=0.3)


def wide(X):
    """Return rows with so many features that they are kept sparse."""
    return sp.csr_matrix(np.hstack([X, np.zeros((len(X), 3000))]))


@every_learner
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", own_kernel])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, wide], ids=["dense", "csr", "wide"])
@pytest.mark.parametrize(("n_classes", "budget"), [(2, None), (3, 30)])
def test_a_living_machine_answers_as_its_model(learner, kernel, form, n_classes, budget):
    X, y = overlapping_classes(84, n_classes, seed=3)
    rows = form(X)
    learner = clone(learner).set_params(kernel=kernel, budget=budget)
    for start in range(0, 84, 7):
        some = slice(start, start + 7)
        learner.partial_fit(rows[some], y[some], classes=range(n_classes))
        living, labels = learner.decision_function(rows[:20]), learner.predict(rows[:20])
        assert "model_" not in vars(learner)  # nobody has written it down
        if start % 3 == 0:
            scores = learner.readout_.decision(learner.model_.scores(rows[:20]))
            assert living.dtype == scores.dtype
            assert living.shape == scores.shape
            assert_allclose(living, scores, atol=1e-11 * np.abs(scores).max())
            assert_array_equal(labels, learner.predict(rows[:20]))


@every_learner
def test_single_precision_is_near_its_model(learner):
    X, y = overlapping_classes(150, 3, seed=4)
    X = X.astype(np.float32)
    learner = clone(learner).partial_fit(X, y)
    living = learner.decision_function(X[:50])
    scores = learner.model_.scores(X[:50])
    assert living.dtype == scores.dtype == np.float32
    assert_allclose(living, scores, atol=1e-5 * np.abs(scores).max())


@every_learner
def test_many_rows_are_the_affair_of_the_model(learner):
    X, y = overlapping_classes(1000, 3, seed=5)
    learner = clone(learner).partial_fit(X[:100], y[:100])
    scores = learner.decision_function(X)
    assert "model_" in vars(learner)
    assert_array_equal(scores, learner.model_.scores(X))


@every_learner
def test_what_was_written_down_answers_until_a_row_is_learned(learner):
    """As copies and files of the machine answer."""
    X, y = overlapping_classes(100, 3, seed=6)
    learner = clone(learner).partial_fit(X[:90], y[:90])
    assert learner.n_basis_ > 0
    assert_array_equal(learner.decision_function(X), learner.model_.scores(X))
    learner.partial_fit(X[90:], y[90:])
    assert "model_" not in vars(learner)


class Owner:
    """Something that has a learner, and a kernel that refers to it."""

    def __init__(self, learner, gamma):
        self.gamma = gamma
        self.learner = clone(learner).set_params(kernel=self.kernel)

    def kernel(self, left, right):
        return rbf_kernel(left, right, gamma=self.gamma)


@every_learner
def test_a_kernel_that_refers_to_the_owner_of_the_learner_leaves_no_garbage(learner):
    X, y = (each[::3] for each in load_iris(return_X_y=True))
    alive = []
    for _ in range(5):
        owner = Owner(learner, 0.3)
        owner.learner.partial_fit(X, y)
        owner.learner.predict(X[:3])
        alive.append(weakref.ref(owner))
    del owner
    gc.collect()
    assert not any(each() for each in alive)


@pytest.mark.parametrize("solver", ["larank", "full_gradient", "cutting_plane"])
def test_fits_with_such_a_kernel_leave_no_garbage_either(solver):
    X, y = (each[::3] for each in load_iris(return_X_y=True))
    owner = Owner(KernelClassifier(solver=solver), 0.3)
    owner.learner.fit(X, y)
    alive = weakref.ref(owner)
    del owner
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("scale", [2.0**332, 2.0**-332], ids=["huge", "tiny"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@every_learner
def test_the_unit_of_features_may_be_beyond_single_precision(learner, kernel, scale):
    X, y = load_iris(return_X_y=True)
    learner = clone(learner).set_params(kernel=kernel, gamma="scale")
    near, far = clone(learner).fit(X, y), clone(learner).fit(X * scale, y)
    assert_allclose(far.decision_function(X * scale), near.decision_function(X), atol=1e-4)
    assert_array_equal(far.predict(X * scale), near.predict(X))


@pytest.mark.parametrize("learner", LEARNERS[2:], ids=str)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_rows_of_weight_zero_are_no_mistakes(learner, method):
    X, y = overlapping_classes(120, 3, seed=7)
    weights = np.arange(120) % 4 > 0
    learner = clone(learner).set_params(shuffle=False)
    weighted = getattr(clone(learner), method)(X, y, sample_weight=weights.astype(float))
    fewer = getattr(clone(learner), method)(X[weights], y[weights])
    assert weighted.n_mistakes_ == fewer.n_mistakes_ > 0
    assert_allclose(weighted.dual_coef_, fewer.dual_coef_, atol=1e-6)


@every_learner
def test_intercepts_are_sums_of_coefficients(learner):
    X, y = overlapping_classes(120, 3, seed=8)
    for machine in (clone(learner).fit(X, y), clone(learner).partial_fit(X, y)):
        sums = machine.dual_coef_.sum(axis=0)
        expected = sums if machine.fit_intercept else np.zeros(3)
        assert_allclose(machine.intercept_, expected, atol=1e-12)


def test_an_intercept_is_what_a_constant_feature_gives():
    X, y = overlapping_classes(150, 3, seed=9)
    X = X + 3.0
    settings = {"kernel": "linear", "C": 1.0, "tol": 1e-7, "random_state": 0}
    own = KernelClassifier(**settings).fit(X, y)
    constant = np.hstack([X, np.ones((150, 1))])
    by_feature = KernelClassifier(fit_intercept=False, **settings).fit(constant, y)
    assert own.objective_ == pytest.approx(by_feature.objective_, rel=1e-6)
    assert_allclose(own.decision_function(X), by_feature.decision_function(constant), atol=1e-2)


def test_an_intercept_counts_where_kernel_values_are_far_smaller():
    """It is added in double precision: in single, 1 + 1e-10 is 1."""
    X, y = overlapping_classes(90, 3, seed=10)
    X = X * 2.0**-17
    machine = KernelClassifier(kernel="linear", C=2.0**36, random_state=0, max_seconds=20)
    assert machine.fit(X, y).score(X, y) > 0.8

"""Kernelised M3L against slow twins, against other machines, and against itself after a stop."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference import label_machines as twin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC, LinearSVC

from widemargin import KernelMultiLabelClassifier, load, priors, save

EXACT = {"tol": 3e-6, "random_state": 0}


def label_rows(n_rows=40, n_labels=3, seed=0):
    """Return rows, and labels that follow from them but for noise, of which some go together."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, 3)
    wanted = X @ rng.randn(3, n_labels) + 0.8 * rng.randn(n_rows, n_labels)
    wanted[:, 1] += wanted[:, 0]
    return X, (wanted > 0.2).astype(int)


def dense_prior(n_labels, rank=None, seed=1):
    root = np.random.RandomState(seed).randn(n_labels, rank or n_labels)
    return root @ root.T / n_labels


PRIORS = {
    "none": lambda k: None,
    "diagonal": lambda k: np.diag(np.linspace(0.3, 2.0, k)),
    "dense": dense_prior,
    "singular": lambda k: dense_prior(k, rank=1),
}


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_the_twin_comes_to_the_same_machine(name, fit_intercept):
    X, Y = label_rows()
    prior = PRIORS[name](3)
    weights = np.random.RandomState(2).randint(0, 3, len(X)).astype(float)
    machine = KernelMultiLabelClassifier(
        C=0.7, gamma=0.4, prior=prior, fit_intercept=fit_intercept, class_weight="balanced", **EXACT
    ).fit(X, Y, sample_weight=weights)
    own = weights @ Y
    balanced = np.where(Y > 0, 1 / own, 1 / (weights.sum() - own)) * weights.sum() / 2
    K, y = rbf_kernel(X, gamma=0.4) + fit_intercept, 2.0 * Y - 1
    R = np.eye(3) if prior is None else prior
    caps = 2 * 0.7 * weights[:, None] * balanced
    b = twin.solve(K, R, y, caps, gap=1e-7)
    optimum = twin.dual_value(K, R, y, b)
    assert_allclose(machine.dual_objective_, optimum, rtol=4e-6)
    assert optimum <= machine.objective_ * (1 + 1e-6)
    assert machine.stop_reason_ == "tol"
    assert machine.gap_ <= 3e-6 * machine.objective_
    assert_allclose(machine.decision_function(X), twin.scores(K, R, b), atol=5e-3)


def test_without_a_prior_each_label_is_a_machine_of_its_own_with_twice_the_penalty():
    X, Y = label_rows(120)
    machine = KernelMultiLabelClassifier(C=0.5, kernel="linear", **EXACT).fit(X, Y)
    alone = [
        LinearSVC(C=1.0, loss="hinge", tol=1e-8, max_iter=10**6, random_state=0).fit(X, column)
        for column in Y.T
    ]
    expected = np.stack([each.decision_function(X) for each in alone], axis=1)
    # The objective is strongly convex, so the gap bounds how far off weights may be.
    furthest = np.sqrt(2 * machine.gap_ * (1 + np.square(X).sum(axis=1).max()))
    assert furthest < 0.15
    assert_allclose(machine.decision_function(X), expected, atol=furthest)


def test_a_dense_prior_is_one_binary_machine_on_products_of_features():
    X, Y = label_rows(25)
    R = dense_prior(3)
    machine = KernelMultiLabelClassifier(
        C=0.5, kernel="linear", prior=R, fit_intercept=False, **EXACT
    ).fit(X, Y)
    y = 2.0 * Y - 1
    rows, signs, caps = twin.as_one_binary_machine(X, R, y, np.full(y.shape, 1.0))
    b = twin.solve(linear_kernel(rows), np.ones((1, 1)), signs[:, None], caps[:, None], gap=1e-7)
    optimum = twin.dual_value(linear_kernel(rows), np.ones((1, 1)), signs[:, None], b)
    assert_allclose(machine.dual_objective_, optimum, rtol=4e-6)
    weights = (rows.T @ b).ravel()
    assert_allclose(machine.decision_function(X).ravel(), rows @ weights, atol=5e-3)


def test_scores_of_separable_rows_have_the_signs_of_an_svc():
    X, Y = label_rows(100)
    machine = KernelMultiLabelClassifier(C=5.0, gamma=1.0, **EXACT).fit(X, Y)
    for label in range(3):
        alone = SVC(C=10.0, gamma=1.0).fit(X, Y[:, label])
        assert np.mean(alone.predict(X) == machine.predict(X)[:, label]) > 0.97


@pytest.mark.parametrize("name", PRIORS)
def test_the_gap_is_that_of_the_machine_that_is_kept(name):
    X, Y = label_rows(150, 4)
    prior = PRIORS[name](4)
    machine = KernelMultiLabelClassifier(
        kernel="rbf", gamma=0.5, prior=prior, fit_intercept=False, tol=1e-3, random_state=0
    ).fit(X, Y)
    F, y = machine.decision_function(X), 2.0 * Y - 1
    R = np.eye(4) if prior is None else prior
    free = machine.__dict__.get("_free_coef", machine.dual_coef_)
    assert_allclose(free @ R, machine.dual_coef_, atol=1e-12)
    b = np.zeros(Y.shape)
    b[machine.basis_indices_] = free
    assert (y * b >= 0).all()
    assert (np.abs(b) <= 2.0).all()
    primal = 0.5 * np.sum(b * F) + 2.0 * np.sum(np.maximum(0.0, 1.0 - y * F))
    assert_allclose(machine.objective_, primal, rtol=1e-5)
    assert_allclose(machine.gap_, primal - np.sum(y * b) + 0.5 * np.sum(b * F), rtol=1e-2)


def test_weights_are_repeated_rows():
    X, Y = label_rows(60)
    weights = np.random.RandomState(0).randint(0, 4, len(X))
    R = dense_prior(3)
    weighted = KernelMultiLabelClassifier(gamma=0.5, prior=R, **EXACT)
    weighted.fit(X, Y, sample_weight=weights)
    repeated = KernelMultiLabelClassifier(gamma=0.5, prior=R, **EXACT)
    repeated.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert_allclose(weighted.dual_objective_, repeated.dual_objective_, rtol=4e-6)
    scores = weighted.decision_function(X)
    assert_allclose(scores, repeated.decision_function(X), atol=5e-3)


@pytest.mark.parametrize("name", PRIORS)
def test_threads_change_no_bit(name):
    X, Y = label_rows(700, 5)
    machines = [
        KernelMultiLabelClassifier(prior=PRIORS[name](5), n_jobs=jobs, random_state=3).fit(X, Y)
        for jobs in (1, 2, 3)
    ]
    for other in machines[1:]:
        assert_array_equal(other.dual_coef_, machines[0].dual_coef_)
        assert other.gap_ == machines[0].gap_


def test_neither_the_cache_nor_the_form_of_rows_changes_the_optimum():
    X, Y = label_rows(300, 4)
    R = dense_prior(4)
    one = KernelMultiLabelClassifier(prior=R, **EXACT).fit(X, Y)
    tight = KernelMultiLabelClassifier(prior=R, cache_size=0.1, **EXACT).fit(X, Y)
    assert tight.n_kernel_evaluations_ > one.n_kernel_evaluations_
    assert_allclose(tight.dual_objective_, one.dual_objective_, rtol=4e-6)
    K = rbf_kernel(X, gamma=1 / (X.shape[1] * X.var()))
    given = KernelMultiLabelClassifier(kernel="precomputed", prior=R, **EXACT).fit(K, Y)
    assert_allclose(given.dual_objective_, one.dual_objective_, rtol=4e-6)


@pytest.mark.parametrize("name", ["none", "dense"])
def test_a_fit_that_was_stopped_goes_on_to_the_bit(name, tmp_path):
    X, Y = label_rows(400, 4)
    settings = {"prior": PRIORS[name](4), "tol": 1e-5, "random_state": 0, "warm_start": True}
    whole = KernelMultiLabelClassifier(**settings).fit(X, Y)
    stopped = KernelMultiLabelClassifier(**settings, max_seconds=1e-9)
    rounds = 0
    while rounds < 3:
        with pytest.warns(ConvergenceWarning, match="max_seconds"):
            stopped.fit(X, Y)
        assert stopped.stop_reason_ == "max_seconds"
        path = tmp_path / "machine.widemargin"
        save(stopped, path)
        stopped = load(path)
        rounds += 1
    stopped.set_params(max_seconds=None).fit(X, Y)
    assert stopped.stop_reason_ == "tol"
    assert_array_equal(stopped.dual_coef_, whole.dual_coef_)
    assert stopped.n_iter_ == whole.n_iter_
    assert stopped.gap_ == whole.gap_


@pytest.mark.parametrize("name", ["none", "singular"])
def test_a_warm_start_goes_on_from_the_coefficients(name):
    X, Y = label_rows(200, 4)
    machine = KernelMultiLabelClassifier(
        prior=PRIORS[name](4), tol=1e-4, random_state=0, warm_start=True
    )
    cold = machine.fit(X, Y).n_iter_
    assert machine.fit(X, Y).n_iter_ < cold / 3
    machine.set_params(C=1.5).fit(X, Y)
    assert machine.gap_ <= 1e-4 * machine.objective_
    with pytest.raises(ValueError, match="labels and features of the fit before"):
        machine.set_params(prior=None).fit(X, Y[:, :3])


def test_labels_that_are_strongly_related_take_few_passes():
    X, Y = label_rows(300, 20)
    R = np.full((20, 20), 0.7) + 0.3 * np.eye(20)
    for seed in range(2):
        machine = KernelMultiLabelClassifier(prior=R, tol=1e-3, random_state=seed).fit(X, Y)
        assert machine.stop_reason_ == "tol"
        assert machine.n_iter_ <= 16  # a single turn of labels in a block takes 35 or more


def test_labels_that_relate_learn_from_each_other():
    X, Y = label_rows(60, 2)
    copied = np.stack([Y[:, 0], Y[:, 0]], axis=1)
    copied[:40, 1] = 1 - copied[:40, 1]  # what the second label is told is wrong for most rows
    scores = {}
    for r in (0.0, 0.9):
        machine = KernelMultiLabelClassifier(prior=[[1.0, r], [r, 1.0]], **EXACT).fit(X, copied)
        scores[r] = machine.decision_function(X)
    agree = {r: np.mean(np.sign(s[:, 0]) == np.sign(s[:, 1])) for r, s in scores.items()}
    assert agree[0.9] > agree[0.0]


@pytest.fixture
def yeast(real_labels):
    return real_labels("yeast")


class TestYeast:
    """Optima of D2, of an independent solver. Labels of rows 500 and up are the prior."""

    @staticmethod
    def prior(Y):
        signs = 2.0 * Y[500:1500] - 1
        return signs.T @ signs / len(signs)

    def test_unrelated_labels(self, yeast):
        X, Y = yeast
        machine = KernelMultiLabelClassifier(gamma=1.0, fit_intercept=False, **EXACT)
        machine.fit(X[:500], Y[:500])
        assert_allclose(machine.dual_objective_, 3156.9897, rtol=4e-6)

    def test_a_dense_prior(self, yeast):
        X, Y = yeast
        R = priors.from_correlation(self.prior(Y))
        machine = KernelMultiLabelClassifier(gamma=1.0, prior=R, fit_intercept=False, **EXACT)
        machine.fit(X[:500], Y[:500])
        assert_allclose(machine.dual_objective_, 2818.84, atol=2e-3)

    def test_a_dense_prior_with_a_linear_kernel(self, yeast):
        X, Y = yeast
        machine = KernelMultiLabelClassifier(
            kernel="linear", prior=self.prior(Y), fit_intercept=False, **EXACT
        ).fit(X[:150], Y[:150])
        assert_allclose(machine.dual_objective_, 2151.36658, rtol=4e-6)

    def test_intercepts_are_a_feature_of_ones(self, yeast):
        X, Y = yeast
        machine = KernelMultiLabelClassifier(C=0.5, kernel="linear", tol=1e-5, random_state=0)
        assert_allclose(machine.fit(X, Y).dual_objective_, 8652.27, rtol=1e-5)

"""Streams: what belongs to whom, what may change on the way, threads, and scales of all sizes."""

import pickle
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import widemargin
from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron
from widemargin.solvers.duals.larank import LaRank

pytestmark = pytest.mark.combinations

LEARNERS = [
    KernelClassifier(gamma=0.5, random_state=0),
    KernelMIRA(gamma=0.5, random_state=0),
    KernelPerceptron(gamma=0.5, random_state=0),
]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda each: type(each).__name__)


def wide(X):
    """Return rows with so many features that they are kept sparse."""
    return sp.csr_matrix(np.hstack([X, np.zeros((len(X), 3000))]))


@pytest.mark.parametrize("kind", ["rbf", "callable", "wide"])
@every_learner
def test_the_rows_of_a_batch_stay_the_callers(learner, kind):
    X, y = overlapping_classes(90, 3, seed=1)
    kernel = (lambda A, B: rbf_kernel(A, B, gamma=0.5)) if kind == "callable" else "rbf"
    kept, reused = (clone(learner).set_params(kernel=kernel) for _ in range(2))
    for start in range(0, 90, 10):
        rows = X[start : start + 10]
        rows = wide(rows) if kind == "wide" else rows.copy()
        kept.partial_fit(rows.copy(), y[start : start + 10], classes=range(3))
        reused.partial_fit(rows, y[start : start + 10], classes=range(3))
        (rows.data if sp.issparse(rows) else rows)[:] = 7.0
    probe = wide(X) if kind == "wide" else X
    assert_array_equal(reused.decision_function(probe), kept.decision_function(probe))


@pytest.mark.parametrize("change", [{"gamma": 2.0}, {"kernel": "laplacian"}, {"degree": 2}])
@every_learner
def test_what_coefficients_depend_on_does_not_change_on_the_way(learner, change):
    X, y = overlapping_classes(60, 3, seed=2)
    machine = clone(learner).partial_fit(X, y)
    before = machine.decision_function(X)
    with pytest.raises(ValueError, match=f"{next(iter(change))} has changed"):
        machine.set_params(**change).partial_fit(X, y)
    assert_array_equal(machine.decision_function(X), before)


@every_learner
def test_a_budget_may_change_on_the_way(learner):
    X, y = overlapping_classes(200, 3, seed=3)
    machine = clone(learner).partial_fit(X[:100], y[:100])
    machine.set_params(budget=10).partial_fit(X[100:], y[100:])
    assert machine.n_basis_ <= 10


@every_learner
def test_parameters_are_checked_at_every_call(learner):
    X, y = overlapping_classes(60, 3, seed=4)
    machine = clone(learner).partial_fit(X, y)
    with pytest.raises((TypeError, ValueError), match="budget"):
        machine.set_params(budget="many").partial_fit(X, y)


def test_another_loss_after_a_fit_begins_within_its_bounds():
    X, y = overlapping_classes(120, 4, seed=5)
    machine = KernelClassifier(loss="weston_watkins", C=0.05, gamma=0.5, random_state=0).fit(X, y)
    machine.set_params(loss="crammer_singer").partial_fit(X[:5], y[:5])
    assert machine._patterns["coef"].max() <= 0.05 + 1e-12


def test_merged_patterns_keep_their_bounds():
    X, y = overlapping_classes(2000, 3, seed=6)
    machine = KernelClassifier(C=0.1, gamma=5.0, budget=20, budget_policy="merge", random_state=0)
    for start in range(0, 2000, 100):
        machine.partial_fit(X[start : start + 100], y[start : start + 100])
    assert machine._patterns["caps"].max() == 0.1
    assert machine._patterns["coef"].max() <= 0.1 + 1e-12


@pytest.mark.parametrize("C", [1.0, 100.0, 1e6])
def test_large_kernel_values_are_learned_too(C):
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500]
    settings = {"kernel": "poly", "gamma": 1.0, "epochs": 1, "C": C, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding
        machine = KernelClassifier(**settings).fit(X, y)
    assert machine.score(X, y) > 0.95
    coef, K = machine._patterns["coef"], (machine.basis_ @ machine.basis_.T) ** 3
    own = coef[np.arange(len(coef)), machine._patterns["labels"]].sum()
    assert machine.dual_objective_ == pytest.approx(own - 0.5 * np.sum(coef * (K @ coef)), rel=1e-3)


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("solver", ["larank", "full_gradient", "cutting_plane"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.filterwarnings("ignore:Kernel values are of single precision")
def test_features_of_unlike_scale_take_no_age(solver, C, load):
    X, y = load(return_X_y=True)
    machine = KernelClassifier(kernel="linear", C=C, solver=solver, max_seconds=20, random_state=0)
    machine.fit(X, y)
    assert machine.stop_reason_ == "tol"


@pytest.mark.parametrize("solver", ["larank", "full_gradient", "cutting_plane"])
@pytest.mark.filterwarnings("ignore:Kernel values are of single precision")
def test_equal_rows_of_any_length_under_two_labels(solver):
    X = np.full((3, 1), 1e4)
    machine = KernelClassifier(kernel="linear", solver=solver, max_seconds=20, fit_intercept=False)
    machine.fit(X, [0, 0, 1])
    assert machine.stop_reason_ == "tol"
    assert machine.dual_objective_ == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_of_coefficients_sum_to_zero_however_long_it_takes(loss, fit_intercept):
    rng = np.random.RandomState(0)
    for solver in ("larank", "full_gradient", "cutting_plane"):
        X = rng.uniform(-1, 1, (40, 2)) * [1e-3, 1e3]
        y, weights = np.arange(40) % 5, rng.uniform(0, 2, 40)
        machine = KernelClassifier(
            kernel="linear", C=10.0, loss=loss, solver=solver, fit_intercept=fit_intercept, tol=1e-8
        )
        machine.set_params(max_seconds=5, random_state=0).fit(X, y, sample_weight=weights)
        coef, caps = machine._patterns["coef"], machine._patterns["caps"]
        assert np.all(np.abs(coef.sum(axis=1)) <= 1e-14 * caps)


def test_the_same_row_under_two_labels_at_any_weight():
    X, y = overlapping_classes(30, 3, seed=7)
    X, y = np.vstack([X, X]), np.concatenate([y, (y + 1) % 3])
    machine = KernelClassifier(C=1e6, gamma=0.5, max_seconds=20, random_state=0).fit(X, y)
    assert machine.stop_reason_ == "tol"
    assert machine._patterns["coef"].max() <= 1e6


def test_rounding_of_large_kernel_values_is_told():
    X, y = load_breast_cancer(return_X_y=True)  # features from thousandths to thousands
    machine = KernelClassifier(kernel="linear", C=100, max_seconds=20, random_state=0)
    with pytest.warns(ConvergenceWarning, match="single precision.*Scale the features"):
        machine.fit(X, y)


@every_learner
def test_kernel_values_that_overflow_are_an_error(learner):
    X, y = overlapping_classes(40, 3, seed=9)
    for kernel in ("linear", lambda A, B: 1e39 * (A @ B.T + 1)):
        machine = clone(learner).set_params(kernel=kernel)
        with pytest.raises(ValueError, match="single precision"):
            machine.fit(1e20 * X, y)


def test_a_machine_without_patterns_is_told_of_and_kept_in_a_file(tmp_path):
    X, y = overlapping_classes(40, 3, seed=10)
    machine = KernelClassifier(solver=LaRank(tau=5), epochs=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="no support pattern"):
        machine.fit(X, y)
    widemargin.save(machine, tmp_path / "empty.widemargin")
    again = widemargin.load(tmp_path / "empty.widemargin")
    assert_array_equal(again.predict(X), machine.predict(X))


@every_learner
def test_rows_without_weight_change_nothing(learner):
    X, y = overlapping_classes(60, 3, seed=11)
    weights = {0: 1.0, 1: 0.0, 2: 1.0}
    machine = clone(learner).set_params(class_weight=weights).partial_fit(X, y)
    before = machine.dual_coef_.copy()
    machine.partial_fit(X[y == 1][:1], [1])
    assert_allclose(machine._patterns["coef"].sum(axis=1), 0, atol=1e-9)
    assert machine.dual_coef_.shape == before.shape


@every_learner
def test_a_width_from_a_single_row_is_told(learner):
    X, y = overlapping_classes(20, 3, seed=14)
    with pytest.warns(UserWarning, match="has one row") as caught:
        clone(learner).set_params(gamma="scale").partial_fit(X[:1], y[:1], classes=range(3))
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(learner).set_params(gamma="scale").partial_fit(X, y)


def test_what_is_not_there_says_why():
    for estimator, name, why in (
        (KernelClassifier(solver="full_gradient"), "partial_fit", "learns by solver='larank'"),
        (KernelMIRA(kernel="precomputed"), "partial_fit", "does not go with a precomputed kernel"),
        (KernelPerceptron(), "predict_proba", "scores, not probabilities"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(estimator, name)
        assert why in str(caught.value)


@every_learner
def test_threads_may_look_while_one_learns(learner):
    X, y = overlapping_classes(150, 3, seed=12)
    machine = clone(learner).partial_fit(X[:20], y[:20])
    failures, ready = [], threading.Event()

    def look():
        while not ready.is_set():
            try:
                machine.predict(X[:5])
                pickle.dumps(machine)
            except Exception as error:  # whatever it is, it is what the test is about
                failures.append(error)
                return

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for each in lookers:
        each.start()
    for i in range(20, 150):
        machine.partial_fit(X[i : i + 1], y[i : i + 1])
    ready.set()
    for each in lookers:
        each.join()
    assert not failures, failures[0]


@every_learner
def test_threads_that_learn_take_turns(learner):
    X, y = overlapping_classes(400, 3, seed=13)
    machine = clone(learner).partial_fit(X[:20], y[:20])

    def learn(first):
        for i in range(first, 400, 4):
            machine.partial_fit(X[i : i + 1], y[i : i + 1])

    learners = [threading.Thread(target=learn, args=(20 + k,)) for k in range(4)]
    for each in learners:
        each.start()
    for each in learners:
        each.join()
    assert machine._patterns["rows_seen"] == 400
    assert_allclose(machine._patterns["coef"].sum(axis=1), 0, atol=1e-9)

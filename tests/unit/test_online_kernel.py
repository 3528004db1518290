"""Kernel machines that learn row by row: slow twins agree, and a stream may come in any pieces."""

import inspect
import os
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference import dual_machines, kernels
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron
from widemargin.solvers.duals.cutting_plane import CuttingPlane
from widemargin.solvers.duals.full_gradient import FullGradient
from widemargin.solvers.duals.larank import LaRank

pytestmark = pytest.mark.combinations

GAMMA = 0.4
every_form = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
every_policy = pytest.mark.parametrize("policy", ["drop", "merge", "redundant"])


def average(**parameters):
    settings = {"gamma": GAMMA, "shuffle": False, "fit_intercept": False}
    return KernelPerceptron(**(settings | parameters))


def last(**parameters):
    return average(**({"average": False} | parameters))


def mira(**parameters):
    settings = {"gamma": GAMMA, "shuffle": False, "C": 0.7, "margin": 1.0, "fit_intercept": False}
    return KernelMIRA(**(settings | parameters))


def larank(**parameters):
    settings = {"gamma": GAMMA, "C": 2.0, "solver": LaRank(shuffle=False), "random_state": 0}
    return KernelClassifier(**(settings | {"fit_intercept": False} | parameters))


TWINS = {
    average: lambda K, y, weights, epochs: dual_machines.perceptron(K, y, weights, True, epochs),
    last: lambda K, y, weights, epochs: dual_machines.perceptron(K, y, weights, False, epochs),
    mira: lambda K, y, weights, epochs: dual_machines.mira(K, y, 0.7 * weights, 1.0, epochs),
}
every_twin = pytest.mark.parametrize("make", TWINS)
every_machine = pytest.mark.parametrize("make", [*TWINS, larank])


def as_scores(K, beta):
    scores = K @ beta
    return scores[:, 1] - scores[:, 0] if beta.shape[1] == 2 else scores


def in_pieces(machine, X, y, ends, **of_first):
    """Learn the rows up to each end in turn, a call of partial_fit each."""
    for begin, end in zip([0, *ends], [*ends, len(y)], strict=True):
        machine.partial_fit(X[begin:end], y[begin:end], **(of_first if begin == 0 else {}))
    return machine


def dense(rows):
    return rows.toarray() if sp.issparse(rows) else rows


def full_coefficients(machine):
    """Return beta of the basis, all classes."""
    halves = np.array([[-0.5, 0.5]]) if len(machine.classes_) == 2 else 1.0
    return machine.dual_coef_ * halves


def dual_of(machine):
    """Return the dual of a machine with the RBF kernel; only right classes have a beta above 0."""
    beta, basis = full_coefficients(machine), dense(machine.basis_)
    norm = 0.5 * np.sum(beta * (rbf_kernel(basis, gamma=GAMMA) @ beta))
    return np.maximum(beta, 0.0).sum() - norm


def same_state(machine, before):
    """Return whether an estimator has the attributes that it had, the very same objects."""
    after = vars(machine)
    return list(after) == list(before) and all(after[name] is before[name] for name in before)


# ---- what is learnt ---------------------------------------------------------------------------


@every_twin
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_fit_is_the_twin(make, epochs, n_classes, weighted, fit_intercept):
    X, y = overlapping_classes(80, n_classes)
    weights = np.random.RandomState(1).uniform(0.2, 2.0, 80) if weighted else np.ones(80)
    machine = make(epochs=epochs, fit_intercept=fit_intercept)
    machine.fit(X, y, sample_weight=weights if weighted else None)
    K = rbf_kernel(X, gamma=GAMMA) + float(fit_intercept)
    beta = TWINS[make](K, y, weights, epochs)
    assert_allclose(machine.decision_function(X), as_scores(K, beta), atol=1e-6)
    learnt = np.flatnonzero(beta.any(axis=1))
    assert_array_equal(np.sort(machine.basis_indices_), learnt)
    assert machine.n_basis_ == len(learnt)
    assert_array_equal(machine.basis_, X[machine.basis_indices_])
    assert_allclose(full_coefficients(machine), beta[machine.basis_indices_], atol=1e-6)
    assert machine.n_iter_ == epochs
    sums = machine.dual_coef_.sum(axis=0)
    assert_allclose(machine.intercept_, sums if fit_intercept else 0.0 * sums, rtol=1e-12)


@every_twin
@every_form
@pytest.mark.parametrize(
    "kernel", ["linear", "poly", "laplacian", "chi2", "sigmoid", "precomputed", "callable"]
)
def test_other_kernels_are_the_twin(make, form, kernel):
    X, y = overlapping_classes(60, 3)
    X = np.abs(X) if kernel == "chi2" else X
    K = {
        "linear": lambda: kernels.linear(X, X),
        "poly": lambda: kernels.polynomial(X, X, GAMMA, 2, 1.0),
        "laplacian": lambda: kernels.laplacian(X, X, GAMMA),
        "chi2": lambda: kernels.chisquare(X, X, GAMMA),
        "sigmoid": lambda: kernels.sigmoid(X, X, GAMMA, 1.0),
    }.get(kernel, lambda: kernels.rbf(X, X, GAMMA))()
    choice = {"callable": lambda left, right: rbf_kernel(left, right, gamma=GAMMA)}
    machine = make(kernel=choice.get(kernel, kernel), degree=2, coef0=1.0)
    rows = K if kernel == "precomputed" else form(X)
    expected = as_scores(K, TWINS[make](K, y, np.ones(60), 1))
    assert_allclose(machine.fit(rows, y).decision_function(rows), expected, atol=1e-6)


@every_twin
def test_weights_of_classes_multiply(make):
    X, y = overlapping_classes(60, 3)
    weights = np.random.RandomState(1).uniform(0.2, 2.0, 60)
    machine = make(class_weight={0: 2.0, 1: 0.5, 2: 1.0}).fit(X, y, sample_weight=weights)
    K = rbf_kernel(X, gamma=GAMMA)
    beta = TWINS[make](K, y, weights * np.array([2.0, 0.5, 1.0])[y], 1)
    assert_allclose(machine.decision_function(X), as_scores(K, beta), atol=1e-6)


@pytest.mark.parametrize("make", [last, mira, larank])
def test_a_batch_without_weight_teaches_nothing(make):
    X, y = overlapping_classes(20, 3)
    machine = make().partial_fit(X[:1], y[:1], classes=[0, 1, 2], sample_weight=[0.0])
    assert not machine.decision_function(X).any()
    machine.partial_fit(X[:10], y[:10])
    before = machine.decision_function(X)
    machine.partial_fit(X[10:12], y[10:12], sample_weight=[0.0, 0.0])
    if make is not larank:  # which may take steps of rows it knows
        assert_array_equal(machine.decision_function(X), before)


@pytest.mark.parametrize("make", [last, mira, larank])
def test_a_row_of_weight_zero_teaches_nothing(make):
    X, y = overlapping_classes(60, 3)
    weights = (np.arange(60) % 4 > 0).astype(float)
    machine = make().partial_fit(X, y, sample_weight=weights)
    present = {tuple(row) for row in X[weights > 0]}
    assert machine.n_basis_ > 0
    assert all(tuple(row) in present for row in machine.basis_)
    if make is not larank:  # which draws a lot for every row
        without = make().partial_fit(X[weights > 0], y[weights > 0])
        assert_allclose(machine.decision_function(X), without.decision_function(X), atol=1e-6)


def test_mira_moves_no_further_than_its_caps(rng):
    X, y = overlapping_classes(80, 3)
    weights = rng.uniform(0.2, 2.0, 80)
    machine = mira(C=0.05, margin=2.0).fit(X, y, sample_weight=weights)
    beta = np.zeros((80, 3))
    beta[machine.basis_indices_] = machine.dual_coef_
    assert dual_machines.is_feasible(y, 0.05 * weights, beta, "crammer_singer")
    assert np.isclose(beta[np.arange(80), y], 0.05 * weights).sum() > 10  # many are at their caps


@every_twin
def test_the_order_is_drawn_from_the_seed(make):
    X, y = overlapping_classes(80, 3)
    one, same, other = (
        make(shuffle=True, random_state=seed).fit(X, y).decision_function(X) for seed in (0, 0, 1)
    )
    assert_array_equal(one, same)
    in_order = make().fit(X, y).decision_function(X)
    assert np.abs(one - other).max() > 1e-3
    assert np.abs(one - in_order).max() > 1e-3


# ---- in pieces --------------------------------------------------------------------------------


@every_twin
@every_form
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_stream_may_come_in_any_pieces(make, form, n_classes):
    X, y = overlapping_classes(80, n_classes)
    K = rbf_kernel(X, gamma=GAMMA)
    expected = as_scores(K, TWINS[make](K, y, np.ones(80), 1))
    for ends in ([], [7, 20, 51], range(1, 80)):
        machine = in_pieces(make(), form(X), y, ends, classes=np.arange(n_classes))
        assert_allclose(machine.decision_function(form(X)), expected, atol=1e-6)


@every_twin
def test_partial_fit_after_fit_goes_on(make):
    X, y = overlapping_classes(80, 3)
    K = rbf_kernel(X, gamma=GAMMA)
    machine = make().fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    expected = as_scores(K, TWINS[make](K, y, np.ones(80), 1))
    assert_allclose(machine.decision_function(X), expected, atol=1e-6)


@pytest.mark.parametrize("loss", dual_machines.LOSSES)
@every_form
@pytest.mark.parametrize("n_classes", [2, 3])
def test_larank_by_pieces(loss, form, n_classes):
    X, y = overlapping_classes(200, n_classes)
    whole = larank(loss=loss).partial_fit(form(X), y)
    assert whole.dual_objective_ == pytest.approx(dual_of(whole), rel=1e-6)
    for ends in ([13, 60, 150], range(1, 200)):
        pieces = in_pieces(larank(loss=loss), form(X), y, ends, classes=np.arange(n_classes))
        assert pieces.dual_objective_ == pytest.approx(whole.dual_objective_, rel=1e-6)
        assert pieces.dual_objective_ == pytest.approx(dual_of(pieces), rel=1e-6)


@pytest.mark.parametrize("loss", dual_machines.LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_epoch_of_larank_is_one_partial_fit(loss, n_classes):
    X, y = overlapping_classes(200, n_classes)
    fitted = larank(loss=loss, epochs=1).fit(X, y)
    online = larank(loss=loss).partial_fit(X, y)
    assert online.dual_objective_ == pytest.approx(fitted.dual_objective_, rel=1e-6)
    assert_allclose(online.decision_function(X), fitted.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("loss", dual_machines.LOSSES)
def test_larank_stays_within_its_caps_and_climbs(loss, rng):
    X, y = overlapping_classes(300, 3)
    weights = rng.uniform(0.2, 2.0, 300)
    machine, duals = larank(loss=loss), []
    for rows in np.split(np.arange(300), 6):
        machine.partial_fit(X[rows], y[rows], sample_weight=weights[rows])
        duals.append(machine.dual_objective_)
        assert machine.dual_objective_ == pytest.approx(dual_of(machine), rel=1e-6)
    assert (np.diff(duals) > 0).all()
    row_of = {tuple(row): number for number, row in enumerate(X)}
    numbers = [row_of[tuple(row)] for row in machine.basis_]
    assert len(set(numbers)) == machine.n_basis_
    caps = 2.0 * weights[numbers]
    assert dual_machines.is_feasible(y[numbers], caps, machine.dual_coef_, loss)
    value, _ = dual_machines.exact_optimum(
        rbf_kernel(X[:60], gamma=GAMMA), y[:60], 2.0 * weights[:60], loss, tol=1e-6
    )
    first = larank(loss=loss).partial_fit(X[:60], y[:60], sample_weight=weights[:60])
    assert 0.7 * value < first.dual_objective_ <= value * (1 + 1e-6)


@pytest.mark.parametrize("loss", dual_machines.LOSSES)
@pytest.mark.parametrize("epochs", [1, None])
def test_larank_goes_on_from_a_fit(loss, epochs):
    X, y = overlapping_classes(150, 3)
    machine = larank(loss=loss, epochs=epochs).fit(X[:100], y[:100])
    before = dual_of(machine)
    machine.partial_fit(X[100:], y[100:])
    assert dual_of(machine) > before * (1 + 1e-3)
    assert machine.dual_objective_ == pytest.approx(dual_of(machine), rel=1e-6)
    assert_array_equal(machine.classes_, [0, 1, 2])


@every_machine
def test_fit_begins_anew(make):
    X, y = overlapping_classes(60, 3)
    names = np.array(["a", "b", "c"])[y]
    fresh = make().fit(X, names).decision_function(X)
    machine = make().partial_fit(X[:, :2], y)
    assert_array_equal(machine.fit(X, names).decision_function(X), fresh)
    assert_array_equal(machine.classes_, ["a", "b", "c"])


@every_machine
def test_classes_that_come_later(make):
    """Classes may be named before a row of theirs is there; one that never comes never learns."""
    X, y = overlapping_classes(60, 3)
    order = np.argsort(y, kind="stable")
    names = np.array(["a", "b", "c", "unseen"])
    machine = in_pieces(make(), X[order], names[y[order]], [15, 30, 45], classes=names)
    assert_array_equal(machine.classes_, names)
    assert machine.dual_coef_.shape == (machine.n_basis_, 4)
    assert machine.dual_coef_[:, 3].max() <= 0.0
    assert set(machine.predict(X)) <= set(names)


@every_machine
def test_the_classes_of_the_first_rows_are_the_classes(make):
    X, y = overlapping_classes(60, 3)
    machine = make().partial_fit(X[:20], y[:20])
    assert_array_equal(machine.classes_, [0, 1, 2])
    one_class_only = X[y == 1][:5]
    machine.partial_fit(one_class_only, np.ones(5, dtype=int))  # of those known: no complaint


@every_machine
def test_a_column_of_classes_is_taken_with_a_warning(make):
    """As scikit-learn does; also where rows are plain enough to go past its checks."""
    X, y = overlapping_classes(60, 3)
    machine, other = make(), make()
    for rows in (slice(0, 30), slice(30, 60)):
        with pytest.warns(DataConversionWarning, match="column-vector"):
            machine.partial_fit(X[rows], y[rows, np.newaxis])
        other.partial_fit(X[rows], y[rows])
    assert_array_equal(machine.decision_function(X), other.decision_function(X))


@every_machine
def test_a_pickle_goes_on_where_it_was(make):
    X, y = overlapping_classes(120, 3)
    here = make().partial_fit(X[:60], y[:60])
    there = pickle.loads(pickle.dumps(here))
    assert_array_equal(there.decision_function(X), here.decision_function(X))
    if make is larank:
        before = dual_of(there)
        there.partial_fit(X[60:], y[60:])  # may draw other lots than the machine itself
        assert there.dual_objective_ == pytest.approx(dual_of(there), rel=1e-6)
        assert there.dual_objective_ > before
        there = pickle.loads(pickle.dumps(there))
        assert there.dual_objective_ == pytest.approx(dual_of(there), rel=1e-6)
    else:
        here.partial_fit(X[60:], y[60:])
        there.partial_fit(X[60:], y[60:])
        assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-6)
        assert there.n_basis_ == here.n_basis_


@every_machine
def test_a_clone_knows_nothing(make):
    X, y = overlapping_classes(60, 3)
    machine = make(budget=20).partial_fit(X, y)
    copy = clone(machine)
    assert copy.get_params().keys() == machine.get_params().keys()
    assert copy.budget == 20
    with pytest.raises(NotFittedError):
        copy.predict(X)
    copy.partial_fit(X, y)
    assert_array_equal(copy.decision_function(X), machine.decision_function(X))


# ---- a budget ---------------------------------------------------------------------------------


@every_machine
@every_policy
@every_form
@pytest.mark.parametrize("budget", [1, 7, 25])
def test_a_budget_is_never_exceeded(make, policy, form, budget):
    X, y = overlapping_classes(200, 3)
    machine = make(budget=budget, budget_policy=policy)
    for rows in np.split(np.arange(200), 10):
        machine.partial_fit(form(X[rows]), y[rows], classes=[0, 1, 2])
        assert 0 < machine.n_basis_ <= budget
        assert machine.basis_.shape == (machine.n_basis_, 4)
        assert machine.dual_coef_.shape == (machine.n_basis_, 3)
        assert_allclose(machine.dual_coef_.sum(axis=1), 0.0, atol=1e-6)
        K = rbf_kernel(X, dense(machine.basis_), gamma=GAMMA)
        assert_allclose(machine.decision_function(form(X)), K @ machine.dual_coef_, atol=1e-5)
    assert machine.n_basis_ == budget or make is not last  # where every mistake is one vector more
    if policy != "merge":
        present = {tuple(row) for row in X}
        assert all(tuple(row) in present for row in dense(machine.basis_))


def test_the_oldest_mistake_is_dropped():
    X, y = overlapping_classes(120, 3)
    K, budget = rbf_kernel(X, gamma=GAMMA), 9
    beta, kept = np.zeros((120, 3)), []
    for row, label in enumerate(y):
        scores = K[row] @ beta
        others = np.where(np.arange(3) == label, -np.inf, scores)
        if scores[label] <= others.max():
            beta[row, label], beta[row, np.argmax(others)] = 1.0, -1.0
            kept.append(row)
            if len(kept) > budget:
                beta[kept.pop(0)] = 0.0
    for ends in ([], [5, 50], range(1, 120)):
        machine = in_pieces(last(budget=budget), X, y, ends, classes=[0, 1, 2])
        assert_array_equal(machine.basis_, X[kept])
        assert_allclose(machine.decision_function(X), K @ beta, atol=1e-6)
    half = pickle.dumps(last(budget=budget).partial_fit(X[:60], y[:60]))
    machine = pickle.loads(half).partial_fit(X[60:], y[60:])  # who is oldest is remembered
    assert_array_equal(machine.basis_, X[kept])


def test_the_mistake_is_dropped_that_the_others_make_up_for_best():
    X, y = overlapping_classes(120, 3)
    K, budget = rbf_kernel(X, gamma=GAMMA), 9
    beta, kept = np.zeros((120, 3)), []

    def ahead(row, scores):
        """Return by how much the class of a row is ahead."""
        return scores[y[row]] - np.delete(scores, y[row]).max()

    for row, label in enumerate(y):
        scores = K[row] @ beta
        if ahead(row, scores) <= 0:
            worst = np.argmax(np.where(np.arange(3) == label, -np.inf, scores))
            beta[row, label], beta[row, worst] = 1.0, -1.0
            kept.append(row)
            if len(kept) > budget:
                margins = [ahead(each, K[each] @ beta - beta[each]) for each in kept]
                beta[kept.pop(int(np.argmax(margins)))] = 0.0
    for ends in ([], [5, 50], range(1, 120)):
        machine = last(budget=budget, budget_policy="redundant")
        in_pieces(machine, X, y, ends, classes=[0, 1, 2])
        assert_array_equal(machine.basis_, X[kept])
        assert_allclose(machine.decision_function(X), K @ beta, atol=1e-6)


@every_machine
def test_a_budget_that_is_never_reached_changes_nothing(make):
    X, y = overlapping_classes(100, 3)
    free = make().partial_fit(X, y).decision_function(X)
    for policy in ("drop", "merge", "redundant"):
        machine = make(budget=100, budget_policy=policy).partial_fit(X, y)
        assert_allclose(machine.decision_function(X), free, atol=1e-9)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the resident memory from /proc")
@pytest.mark.parametrize("make", [last, mira, larank])
@every_policy
def test_a_long_stream_in_bounded_memory(make, policy):
    """Pickles hold all that a machine keeps; resident memory also what its native part does."""
    n_batches = 100 if policy == "drop" else 40
    machine = make(budget=200, budget_policy=policy)
    rng = np.random.RandomState(0)
    centres = 1.2 * rng.randn(4, 2)
    sizes, residents = [], []
    for number in range(n_batches):
        y = rng.randint(4, size=1000)
        X = centres[y] + rng.randn(1000, 2)
        machine.partial_fit(X, y, classes=np.arange(4))
        assert machine.n_basis_ <= 200
        if number in (9, n_batches - 1):
            sizes.append(len(pickle.dumps(machine)))
            residents.append(resident_bytes())
    assert machine.n_basis_ == 200 or make is larank  # which lets patterns go of its own accord
    assert machine.n_basis_ > 150
    assert sizes[1] < 1.5 * sizes[0]
    assert residents[1] - residents[0] < 20e6
    assert np.isfinite(machine.dual_coef_).all()


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


# ---- what is refused --------------------------------------------------------------------------

X, y = overlapping_classes(30, 3)


def spoilt(value, form=np.asarray):
    rows = X.copy()
    rows[4, 1] = value
    return form(rows)


# what is wrong: (X, y, further arguments, words of the message)
BAD_BATCHES = {
    "NaN": (spoilt(np.nan), y, {}, "NaN"),
    "NaN in sparse rows": (spoilt(np.nan, sp.csr_matrix), y, {}, "NaN"),
    "infinity": (spoilt(np.inf), y, {}, "infinity"),
    "no rows": (X[:0], y[:0], {}, "0 sample"),
    "too few labels": (X, y[:20], {}, "inconsistent numbers of samples"),
    "a quantity for classes": (X, X[:, 0], {}, "label type|announced"),
    "too few weights": (X, y, {"sample_weight": np.ones(7)}, "sample_weight"),
    "weight below zero": (X, y, {"sample_weight": np.linspace(-1, 1, 30)}, "[Nn]egative"),
    "NaN for a weight": (X, y, {"sample_weight": np.full(30, np.nan)}, "NaN"),
}
AT_FIRST = {
    "classes without a label": (X, y, {"classes": [0, 1]}, "2"),
    "one class named": (X[:2], [1, 1], {"classes": [1]}, "class"),
}
LATER = {
    "fewer features": (X[:, :3], y, {}, "3 features.*4 features"),
    "more features": (np.hstack([X, X]), y, {}, "8 features.*4 features"),
    "unseen class": (X, np.where(y == 1, 7, y), {}, "7"),
    "other classes": (X, y, {"classes": [0, 1, 2, 3]}, "classes"),
}


@every_machine
@pytest.mark.parametrize("batch", [*BAD_BATCHES, *AT_FIRST])
def test_a_bad_first_batch(make, batch):
    machine = make()
    before = dict(vars(machine))
    rows, labels, further, words = (BAD_BATCHES | AT_FIRST)[batch]
    with pytest.raises(ValueError, match=words):
        machine.partial_fit(rows, labels, **further)
    assert same_state(machine, before)
    with pytest.raises(NotFittedError):
        machine.predict(X)


@every_machine
@pytest.mark.parametrize("batch", [*BAD_BATCHES, *LATER])
def test_a_bad_later_batch_leaves_the_machine_as_it_was(make, batch):
    machine, other = (make().partial_fit(X, y, classes=np.unique(y)) for _ in range(2))
    scores = machine.decision_function(X)
    before = dict(vars(machine))
    rows, labels, further, words = (BAD_BATCHES | LATER)[batch]
    with pytest.raises(ValueError, match=words):
        machine.partial_fit(rows, labels, **further)
    assert same_state(machine, before)
    assert_array_equal(machine.decision_function(X), scores)
    good = X + 0.5  # learnt as if nothing had happened, also by what is drawn at random
    assert_array_equal(
        machine.partial_fit(good, y).decision_function(X),
        other.partial_fit(good, y).decision_function(X),
    )


@every_machine
def test_an_error_in_a_kernel_leaves_the_machine_as_it_was(make):
    def kernel(left, right):
        if kernel.fails:
            raise FloatingPointError("the kernel gave up")
        return rbf_kernel(left, right, gamma=GAMMA)

    kernel.fails = False
    machine = make(kernel=kernel).partial_fit(X, y)
    coef, scores = machine.dual_coef_.copy(), machine.decision_function(X)
    kernel.fails = True
    with pytest.raises(FloatingPointError, match="gave up"):
        machine.partial_fit(X + 0.5, y)
    kernel.fails = False
    assert_array_equal(machine.dual_coef_, coef)
    assert_array_equal(machine.decision_function(X), scores)
    machine.partial_fit(X + 0.5, y)
    other = make().partial_fit(X, y).partial_fit(X + 0.5, y)
    if make is larank:  # it may have drawn other lots by now
        assert machine.dual_objective_ == pytest.approx(dual_of(machine), rel=1e-6)
        assert machine.dual_objective_ == pytest.approx(other.dual_objective_, rel=0.05)
    else:
        assert_allclose(machine.decision_function(X), other.decision_function(X), atol=1e-5)


@pytest.mark.parametrize(
    "solver", ["full_gradient", "cutting_plane", FullGradient(), CuttingPlane()], ids=str
)
def test_solvers_that_need_all_rows_at_once(solver):
    machine = larank(solver=solver)
    before = dict(vars(machine))
    with pytest.raises((ValueError, AttributeError), match=r"larank|LaRank|partial_fit"):
        machine.partial_fit(X, y)
    assert same_state(machine, before)


# a parameter: values that make no sense
SHARED = {
    "kernel": ["chi2", 3, None],
    "gamma": [0, -0.5, np.nan, np.inf, "wide", None],
    "degree": [0, -1, 2.5],
    "coef0": [np.nan, np.inf, "0"],
    "fit_intercept": [1, "yes", None],
    "budget": [0, -5, 2.5, "10"],
    "budget_policy": ["forget", None, 1],
    "cache_size": [-1.0, np.nan, "200", None],
    "class_weight": ["even", {0: -1.0, 1: 1.0, 2: 1.0}],
    "n_jobs": [0, 1.5, "2"],
    "verbose": [-1, 1.5, "yes", None],
    "random_state": ["seven"],
}
ONLINE = {
    "max_seconds": [-1.0, np.nan, "1"],
    "warm_start": [1, None],
    "epochs": [0, -1, 2.5, None],
    "shuffle": [1, "yes", None],
}
BAD_PARAMETERS = {
    KernelClassifier: SHARED
    | {
        "loss": ["hinge", 3, None],
        "C": [0, -1.0, np.nan, np.inf, "1", None, True],
        "solver": ["smo", 3, None],
        "epochs": [0, -1, 2.5, "2"],
        "tol": [-1e-3, np.nan, "0.1"],
        "max_seconds": [-1.0, np.nan, "1"],
        "warm_start": [1, None],
    },
    KernelPerceptron: SHARED | ONLINE | {"average": [1, "yes", None]},
    KernelMIRA: SHARED
    | ONLINE
    | {
        "C": [0, -1.0, np.nan, "1", None, True],
        "margin": [-1.0, np.nan, np.inf, "1", None],
    },
}
WRONG = [
    (estimator, name, value)
    for estimator, table in BAD_PARAMETERS.items()
    for name, values in table.items()
    for value in values
]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("estimator", "name", "value"), WRONG)
def test_bad_parameter(estimator, name, value, method):
    if name == "solver" and method == "partial_fit":
        assert not hasattr(estimator(solver=value), "partial_fit")  # only LaRank has it
        return
    machine = estimator(**{name: value})
    before = dict(vars(machine))
    words = "seed" if name == "random_state" else name  # in scikit-learn's own words
    with pytest.raises((ValueError, TypeError), match=words):
        getattr(machine, method)(X, y)
    assert same_state(machine, before)


@pytest.mark.parametrize("estimator", BAD_PARAMETERS)
def test_every_parameter_has_bad_values(estimator):
    assert set(BAD_PARAMETERS[estimator]) == set(inspect.signature(estimator).parameters)


BAD_SETTINGS = [
    (LaRank, "tau", [-1e-3, np.nan, "0"]),
    (LaRank, "kappa", [-1e-3, np.nan, "0"]),
    (LaRank, "eta", [-0.1, 1.5, np.nan]),
    (LaRank, "mu", [0.0, -0.1, 1.5, np.nan]),
    (LaRank, "operations", [(), ("old",), ("old", "optimize"), ("new", "newer"), None]),
    (LaRank, "certify", ["yes", None, 2]),
    (LaRank, "shuffle", ["yes", None]),
    (FullGradient, "shrinking", ["yes", None]),
    (CuttingPlane, "new_constraints", [0, -1, 2.5, None]),
]


@pytest.mark.parametrize(
    ("solver", "name", "value"),
    [(solver, name, value) for solver, name, values in BAD_SETTINGS for value in values],
)
def test_bad_setting_of_a_solver(solver, name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        KernelClassifier(solver=solver(**{name: value})).fit(X, y)

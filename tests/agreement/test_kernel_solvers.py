"""Every solver of a kernel dual reaches the one optimum that it has, whatever form the data have.

Only beta's scores are unique: two solutions with gaps e and e' have weights at most
``sqrt(2 e) + sqrt(2 e')`` apart, and so are their scores where k(x, x) = 1. Objectives are compared
closely, and scores within that.
"""

import functools
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernels
from reference.dual_machines import (
    LOSSES,
    dual_value,
    exact_optimum,
    gap,
    is_feasible,
    kkt_violation,
    primal_value,
)
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

from widemargin import KernelClassifier
from widemargin.solvers.duals.cutting_plane import CuttingPlane
from widemargin.solvers.duals.full_gradient import FullGradient
from widemargin.solvers.duals.larank import LaRank

pytestmark = pytest.mark.combinations

GAMMA, C, TOL = 0.4, 2.0, 1e-6
SINGLE = 5e-6  # of the primal, that kernel values of single precision may cost
SOLVERS = ("larank", "full_gradient", "cutting_plane")
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def machine(**parameters):
    """Return a machine that solves far; max_seconds lest a fault makes a test endless."""
    settings = {"gamma": GAMMA, "C": C, "tol": TOL, "max_seconds": 30.0, "random_state": 0}
    return KernelClassifier(**(settings | {"fit_intercept": False} | parameters))


def coefficients(fitted, n_rows):
    """Return beta of all rows. Of two classes one column is kept: beta[:, 1] - beta[:, 0]."""
    n_classes = len(fitted.classes_)
    beta = np.zeros((n_rows, n_classes))
    halves = np.array([[-0.5, 0.5]]) if n_classes == 2 else 1.0
    beta[fitted.basis_indices_] = fitted.dual_coef_ * halves
    return beta


@functools.cache
def optimum(n_classes, loss, cap=C, n_rows=60, offset=0.0):
    """Return the largest dual of the rows of ``problem``, a hundred times closer than TOL."""
    X, y = problem(n_classes, n_rows)
    K, caps = rbf_kernel(X, gamma=GAMMA) + offset, np.full(n_rows, cap)
    return exact_optimum(K, y, caps, loss, tol=TOL / 100)[0]


def problem(n_classes, n_rows=60):
    return overlapping_classes(n_rows, n_classes)


def assert_solves(fitted, K, labels, caps, loss, tol=TOL):
    """Check by its coefficients all that a machine says of itself; return its scores."""
    beta = coefficients(fitted, len(labels))
    K = K + float(fitted.fit_intercept)
    assert is_feasible(labels, caps, beta, loss, atol=1e-7 * np.max(caps))
    primal = primal_value(K, labels, caps, beta, loss)
    assert fitted.objective_ == pytest.approx(primal, rel=SINGLE)
    assert fitted.dual_objective_ == pytest.approx(dual_value(K, labels, beta), rel=1e-6)
    assert fitted.gap_ == pytest.approx(
        fitted.objective_ - fitted.dual_objective_, abs=1e-9 * primal
    )
    assert 0.0 <= fitted.gap_ <= tol * fitted.objective_
    assert -1e-9 * primal <= gap(K, labels, caps, beta, loss) <= (tol + SINGLE) * primal
    room = 1e-2
    steepest = (tol + SINGLE) * primal / (room * np.min(caps[caps > 0]))  # for the gap bounds it
    assert kkt_violation(K, labels, caps, beta, loss, room) <= steepest
    assert fitted.n_basis_ == len(fitted.basis_indices_) == np.count_nonzero(beta.any(axis=1))
    assert fitted.n_support_vectors_ == np.count_nonzero(beta)
    assert_allclose(
        fitted.intercept_, float(fitted.fit_intercept) * fitted.dual_coef_.sum(axis=0), rtol=1e-12
    )
    scores = K @ beta
    return scores[:, 1] - scores[:, 0] if beta.shape[1] == 2 else scores


def score_tolerance(*fitted):
    """Return how far the scores of these may be from one another, where k(x, x) = 1."""
    return sum(np.sqrt(2 * max(each.gap_, TOL)) for each in fitted)


@functools.cache
def digits():
    return load_digits(return_X_y=True)


# ---- values known from elsewhere ------------------------------------------------------------

# rows, C: optimal dual, support patterns, support vectors; raw digits, gamma 0.001
ORACLES = [
    (300, 1.0, 34.648308, 197, 732),
    (1000, 1.0, 80.231707, 449, 1342),
    (1797, 1.0, 116.495885, 648, 1783),
    (1797, 10.0, 119.680747, None, None),
]


@every_solver
@pytest.mark.parametrize(("n_rows", "cap", "value", "patterns", "vectors"), ORACLES)
def test_digits(solver, n_rows, cap, value, patterns, vectors):
    X, y = digits()
    fitted = machine(solver=solver, gamma=0.001, C=cap, tol=3e-6).fit(X[:n_rows], y[:n_rows])
    assert fitted.dual_objective_ == pytest.approx(value, rel=1e-5)
    assert 0.0 <= fitted.gap_ <= 3e-6 * fitted.objective_
    if patterns is not None:
        assert fitted.n_basis_ == pytest.approx(patterns, rel=0.01)
        assert fitted.n_support_vectors_ == pytest.approx(vectors, rel=0.01)
    if n_rows == 1000:
        assert np.mean(fitted.predict(X[1000:]) != y[1000:]) == pytest.approx(0.02635, abs=1e-5)


@every_solver
def test_usps(solver, real_data):
    X, y = real_data("usps")
    fitted = machine(solver=solver, gamma=0.025, C=10.0, tol=3e-6).fit(X[:2000], y[:2000])
    assert fitted.dual_objective_ == pytest.approx(175.37314, rel=1e-5)
    assert fitted.n_basis_ == pytest.approx(805, rel=0.01)
    assert fitted.n_support_vectors_ == pytest.approx(3010, rel=0.01)


@every_solver
@every_loss
def test_two_classes_are_the_binary_machine_without_a_bias(solver, loss, two_classes):
    """With w' = w_1 - w_0 the norm is 1/4 |w'|^2: half the binary objective with twice the C."""
    X, y = two_classes
    fitted = machine(solver=solver, loss=loss, kernel="linear", C=0.5, tol=1e-8).fit(X, y)
    binary = LinearSVC(loss="hinge", C=1.0, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    scores = binary.fit(X, y).decision_function(X)
    hinges = np.maximum(1.0 - np.where(y == 1, scores, -scores), 0.0)
    expected = 0.5 * np.sum(binary.coef_**2) + hinges.sum()
    assert fitted.objective_ == pytest.approx(expected / 2, rel=1e-6)
    assert fitted.dual_coef_.shape == (fitted.n_basis_, 1)
    assert_allclose(fitted.decision_function(X), scores, atol=1e-3)


# ---- one optimum, whichever way ---------------------------------------------------------------


@pytest.mark.combinations(pairs=False)
@every_solver
@every_loss
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("cap", [0.3, 10.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_solver_reaches_the_optimum(solver, loss, n_classes, cap, fit_intercept):
    n_rows = 36  # the reference takes its time, above all where the kernel has a constant
    X, y = problem(n_classes, n_rows)
    names = np.array(["e", "d", "c", "b", "a"])[5 - n_classes :]
    labels = n_classes - 1 - y  # the names sort the other way
    fitted = machine(solver=solver, loss=loss, C=cap, fit_intercept=fit_intercept)
    fitted.fit(X, names[y])
    K, caps = rbf_kernel(X, gamma=GAMMA), np.full(len(y), cap)
    scores = assert_solves(fitted, K, labels, caps, loss)
    best = optimum(n_classes, loss, cap, n_rows, offset=float(fit_intercept))
    assert fitted.dual_objective_ == pytest.approx(best, rel=TOL)
    assert_allclose(fitted.decision_function(X), scores, atol=1e-5)
    best = scores > 0 if n_classes == 2 else scores.argmax(axis=1)
    assert_array_equal(fitted.predict(X), np.sort(names)[best.astype(int)])


@every_loss
@pytest.mark.parametrize(
    "solver",
    [
        LaRank(),
        LaRank(eta=0.2, mu=0.5),
        LaRank(operations=("new", "old")),
        FullGradient(shrinking=False),
        CuttingPlane(new_constraints=1),
        CuttingPlane(new_constraints=5),
    ],
    ids=str,
)
def test_settings_of_a_solver_do_not_move_the_optimum(solver, loss):
    X, y = problem(3)
    fitted = machine(solver=solver, loss=loss).fit(X, y)
    assert_solves(fitted, rbf_kernel(X, gamma=GAMMA), y, np.full(60, C), loss)
    assert fitted.dual_objective_ == pytest.approx(optimum(3, loss), rel=TOL)


KERNELS = {
    "linear": ({}, kernels.linear),
    "poly": (
        {"gamma": 0.2, "degree": 2, "coef0": 1.0},
        functools.partial(kernels.polynomial, gamma=0.2, degree=2, coef0=1.0),
    ),
    "laplacian": ({"gamma": 0.3}, functools.partial(kernels.laplacian, gamma=0.3)),
    "chi2": ({"gamma": 0.3}, functools.partial(kernels.chisquare, gamma=0.3)),
}


def problem_of(kernel):
    X, y = problem(3)
    return (np.abs(X) if kernel == "chi2" else X), y


@pytest.mark.combinations(pairs=False)
@every_solver
@every_loss
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_other_kernels(solver, loss, kernel, form):
    X, y = problem_of(kernel)
    parameters, twin = KERNELS[kernel]
    fitted = machine(solver=solver, loss=loss, kernel=kernel, C=0.2, **parameters).fit(form(X), y)
    K, caps = twin(X, X), np.full(len(y), 0.2)
    scores = assert_solves(fitted, K, y, caps, loss)
    assert fitted.dual_objective_ == pytest.approx(reference_of(kernel, loss), rel=TOL)
    assert_allclose(fitted.decision_function(form(X)), scores, atol=1e-4)


@functools.cache
def reference_of(kernel, loss):
    X, y = problem_of(kernel)
    return exact_optimum(KERNELS[kernel][1](X, X), y, np.full(len(y), 0.2), loss)[0]


@every_solver
@every_loss
@pytest.mark.parametrize(
    "kernel",
    ["precomputed", lambda left, right: rbf_kernel(left, right, gamma=GAMMA)],
    ids=["precomputed", "callable"],
)
def test_a_kernel_of_ones_own(solver, loss, kernel):
    X, y = problem(3)
    K = rbf_kernel(X, gamma=GAMMA)
    rows = K if kernel == "precomputed" else X
    known = machine(solver=solver, loss=loss).fit(X, y)
    fitted = machine(solver=solver, loss=loss, kernel=kernel).fit(rows, y)
    assert_solves(fitted, K, y, np.full(60, C), loss)
    assert fitted.dual_objective_ == pytest.approx(known.dual_objective_, rel=TOL)
    assert_allclose(
        fitted.decision_function(rows),
        known.decision_function(X),
        atol=score_tolerance(fitted, known),
    )


@every_solver
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("n_features", [4, 300])
def test_csr_equals_dense(solver, form, n_features, rng):
    X, y = overlapping_classes(60, 3, n_features=n_features)
    X[rng.rand(*X.shape) < 0.7] = 0.0
    gamma = 1.0 / n_features
    dense = machine(solver=solver, gamma=gamma).fit(X, y)
    sparse = machine(solver=solver, gamma=gamma).fit(form(X), y)
    assert sp.issparse(sparse.basis_)
    assert_array_equal(sparse.basis_.toarray(), X[sparse.basis_indices_])
    assert_array_equal(dense.basis_, X[dense.basis_indices_])
    assert_solves(sparse, rbf_kernel(X, gamma=gamma), y, np.full(60, C), "crammer_singer")
    assert sparse.dual_objective_ == pytest.approx(dense.dual_objective_, rel=TOL)
    scores = dense.decision_function(X)
    for rows in (X, form(X)):
        assert_allclose(sparse.decision_function(rows), scores, atol=score_tolerance(sparse, dense))


@every_solver
@every_loss
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_single_precision_is_near_double(solver, loss, form):
    X, y = problem(3)
    single = machine(solver=solver, loss=loss, tol=1e-5).fit(form(X.astype(np.float32)), y)
    assert single.basis_.dtype == np.float32
    assert single.dual_objective_ == pytest.approx(optimum(3, loss), rel=3e-5)
    assert single.gap_ <= 1e-5 * single.objective_


@every_solver
@every_loss
def test_a_cache_for_hardly_a_row_costs_time_only(solver, loss):
    X, y = problem(3)
    roomy = machine(solver=solver, loss=loss).fit(X, y)
    tight = machine(solver=solver, loss=loss, cache_size=1e-6).fit(X, y)
    assert_solves(tight, rbf_kernel(X, gamma=GAMMA), y, np.full(60, C), loss)
    assert tight.dual_objective_ == pytest.approx(optimum(3, loss), rel=TOL)
    assert tight.n_kernel_evaluations_ >= roomy.n_kernel_evaluations_ > 0


@every_solver
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_seed_gives_the_same_bits(solver, n_jobs):
    X, y = overlapping_classes(400, 3, n_features=10)
    once, again = (machine(solver=solver, n_jobs=n_jobs, tol=1e-3).fit(X, y) for _ in range(2))
    assert_array_equal(once.basis_indices_, again.basis_indices_)
    assert_array_equal(once.dual_coef_, again.dual_coef_)
    assert once.n_kernel_evaluations_ == again.n_kernel_evaluations_
    for name in set(once.history_) - {"seconds"}:
        assert_array_equal(once.history_[name], again.history_[name])


def test_another_seed_takes_another_way_to_the_same_optimum():
    X, y = problem(3)
    one, other = (machine(random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(one.dual_coef_, other.dual_coef_)
    assert one.dual_objective_ == pytest.approx(other.dual_objective_, rel=TOL)


# ---- weights ----------------------------------------------------------------------------------


@every_solver
@every_loss
@pytest.mark.parametrize("gamma", [GAMMA, "scale"])
def test_integer_weights_are_repeated_rows(solver, loss, gamma, three_classes):
    X, y = three_classes
    counts = np.random.RandomState(0).randint(0, 4, size=60)
    weighted = machine(solver=solver, loss=loss, gamma=gamma).fit(X, y, sample_weight=counts)
    repeated = machine(solver=solver, loss=loss, gamma=gamma)
    repeated.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=TOL)
    assert not np.isin(np.flatnonzero(counts == 0), weighted.basis_indices_).any()
    if gamma == GAMMA:
        assert_solves(weighted, rbf_kernel(X, gamma=GAMMA), y, C * counts, loss)


@every_solver
@every_loss
def test_a_row_of_weight_zero_might_as_well_not_be_there(solver, loss, rng, three_classes):
    X, y = three_classes
    present = rng.rand(60) < 0.7
    weights = np.where(present, rng.uniform(0.5, 2.0, 60), 0.0)
    weighted = machine(solver=solver, loss=loss).fit(X, y, sample_weight=weights)
    without = machine(solver=solver, loss=loss)
    without.fit(X[present], y[present], sample_weight=weights[present])
    assert weighted.dual_objective_ == pytest.approx(without.dual_objective_, rel=TOL)
    assert present[weighted.basis_indices_].all()
    assert_allclose(
        weighted.decision_function(X),
        without.decision_function(X),
        atol=score_tolerance(weighted, without),
    )


@every_solver
@every_loss
def test_class_weight_multiplies_sample_weight(solver, loss, rng, three_classes):
    X, y = three_classes
    weights, of_class = rng.uniform(0.5, 2.0, 60), {0: 2.0, 1: 0.5, 2: 1.0}
    fitted = machine(solver=solver, loss=loss, class_weight=of_class)
    fitted.fit(X, y, sample_weight=weights)
    caps = C * weights * np.array([2.0, 0.5, 1.0])[y]
    K = rbf_kernel(X, gamma=GAMMA)
    assert_solves(fitted, K, y, caps, loss)
    assert fitted.dual_objective_ == pytest.approx(exact_optimum(K, y, caps, loss)[0], rel=TOL)


@every_solver
def test_balanced_classes(solver, three_classes):
    X, y = three_classes
    kept = np.flatnonzero((y < 2) | (np.arange(60) < 12))  # 20, 20 and 4 rows
    X, y = X[kept], y[kept]
    fitted = machine(solver=solver, class_weight="balanced").fit(X, y)
    caps = C * len(y) / (3 * np.bincount(y))[y]
    assert_solves(fitted, rbf_kernel(X, gamma=GAMMA), y, caps, "crammer_singer")


# ---- hard cases -------------------------------------------------------------------------------


@every_solver
@every_loss
def test_one_row_under_every_label_stays_within_its_caps(solver, loss):
    """Nothing is better than w = 0, where each row pays its cap for every class in its way."""
    X, _ = problem(3, n_rows=8)
    X, y = np.repeat(X, 3, axis=0), np.tile(np.arange(3), 8)
    fitted = machine(solver=solver, loss=loss).fit(X, y)
    K, caps = rbf_kernel(X, gamma=GAMMA), np.full(24, C)
    assert_solves(fitted, K, y, caps, loss)
    in_its_way = 1 if loss == "crammer_singer" else 2
    assert fitted.dual_objective_ == pytest.approx(in_its_way * caps.sum(), rel=TOL)
    assert_allclose(fitted.decision_function(X), 0.0, atol=score_tolerance(fitted))


@pytest.mark.combinations(pairs=False)
@every_solver
@every_loss
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.thorough
def test_rows_of_no_length(solver, loss, form):
    """A row with k(x, x) = 0 never scores: its loss is what it is, and its coefficients are free to
    go to their bounds without a change of w.
    """
    X, y = without_length()
    fitted = machine(solver=solver, loss=loss, kernel="linear", C=0.2).fit(form(X), y)
    assert fitted.dual_objective_ == pytest.approx(optimum_without_length(loss), rel=TOL)
    assert 0.0 <= fitted.gap_ <= TOL * fitted.objective_


def without_length():
    X, y = problem(3)
    X[::7] = 0.0
    return X, y


@functools.cache
def optimum_without_length(loss):
    X, y = without_length()
    return exact_optimum(X @ X.T, y, np.full(60, 0.2), loss, tol=1e-7)[0]


@every_solver
@pytest.mark.parametrize("scale", [1e-6, 1e3])
def test_the_unit_of_the_features_does_not_matter(solver, scale, three_classes):
    """X / s with C s^2 is the same machine, and its dual is s^2 times as large."""
    X, y = three_classes
    one = machine(solver=solver, kernel="linear", C=0.2).fit(X, y)
    other = machine(solver=solver, kernel="linear", C=0.2 / scale**2).fit(scale * X, y)
    assert other.dual_objective_ * scale**2 == pytest.approx(one.dual_objective_, rel=TOL)
    assert 0.0 <= other.gap_ <= TOL * other.objective_
    assert_allclose(other.decision_function(scale * X), one.decision_function(X), atol=0.02)


@every_solver
def test_slow_is_not_stuck(solver):
    """Where many rows share few directions it takes thousands of sweeps, but it gets there."""
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fitted = machine(solver=solver, kernel="linear", C=100.0, tol=None).fit(X, y)
    assert fitted.stop_reason_ == "tol"
    assert 0.0 <= fitted.gap_ < 0.01 * fitted.objective_


@every_solver
def test_out_of_time_leaves_a_machine_that_serves(solver, larger_problem):
    X, y = larger_problem
    hurried = machine(solver=solver, gamma=0.1, tol=1e-9, max_seconds=1e-3)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"max_seconds|second"):
        hurried.fit(X, y)
    assert time.perf_counter() - begun < 5.0
    beta = coefficients(hurried, len(y))
    assert is_feasible(y, np.full(len(y), C), beta, "crammer_singer", atol=1e-6)
    expected = np.zeros((len(X), 4))
    if hurried.n_basis_:  # there may not have been time for any
        expected = rbf_kernel(X, hurried.basis_, gamma=0.1) @ hurried.dual_coef_
    assert_allclose(hurried.decision_function(X), expected, atol=1e-4)
    assert_array_equal(hurried.predict(X), expected.argmax(axis=1))
    assert hurried.stop_reason_ == "max_seconds"


def indefinite(kind, rng):
    """Return a symmetric matrix with eigenvalues on both sides of zero."""
    if kind == "negative diagonal":
        return rbf_kernel(problem(3)[0], gamma=GAMMA) - 1.5 * np.eye(60)
    if kind == "beyond Cauchy-Schwarz":
        noise = rng.randn(60, 60)
        return 0.5 * np.eye(60) + noise + noise.T
    return np.tanh(0.5 * problem(3)[0] @ problem(3)[0].T - 0.5)


@every_solver
@every_loss
@pytest.mark.parametrize("kind", ["negative diagonal", "beyond Cauchy-Schwarz", "sigmoid"])
def test_an_indefinite_matrix_is_named(solver, loss, kind, rng):
    K, y = indefinite(kind, rng), problem(3)[1]
    assert np.linalg.eigvalsh(K)[0] < -0.1
    begun = time.perf_counter()
    with pytest.warns(UserWarning, match="definite"):
        fitted = machine(solver=solver, loss=loss, kernel="precomputed", max_seconds=5.0).fit(K, y)
    assert time.perf_counter() - begun < 10.0
    assert np.isfinite(fitted.decision_function(K)).all()
    assert is_feasible(y, np.full(60, C), coefficients(fitted, 60), loss, atol=1e-6)


# ---- the way there ----------------------------------------------------------------------------


@every_solver
@every_loss
def test_history_is_consistent(solver, loss):
    X, y = problem(5)
    fitted = machine(solver=solver, loss=loss).fit(X, y)
    history = fitted.history_
    assert len({len(values) for values in history.values()}) == 1
    for counter in ("epoch", "rows_seen", "seconds", "kernel_evaluations"):
        assert (np.diff(history[counter]) >= 0).all(), counter
        assert history[counter][0] >= 0
    assert (np.diff(history["dual"]) >= -1e-9 * optimum(5, loss)).all()
    assert (history["dual"] <= optimum(5, loss) * (1 + 1e-6)).all()
    told = np.isfinite(history["gap"])
    assert told.any()
    assert_allclose(history["gap"][told], (history["primal"] - history["dual"])[told], atol=1e-9)
    assert (history["gap"][told] >= 0).all()
    for name, attribute in [
        ("epoch", "n_iter_"),
        ("dual", "dual_objective_"),
        ("primal", "objective_"),
        ("gap", "gap_"),
        ("kernel_evaluations", "n_kernel_evaluations_"),
        ("support_vectors", "n_support_vectors_"),
        ("support_patterns", "n_basis_"),
    ]:
        assert history[name][-1] == pytest.approx(getattr(fitted, attribute), rel=1e-9), name
    assert (history["support_patterns"] <= history["support_vectors"]).all()
    assert (history["support_patterns"] <= len(y)).all()


@every_loss
@pytest.mark.parametrize("certify", ["auto", True])
@pytest.mark.parametrize("epochs", [1, 3])
def test_epochs_of_larank(loss, certify, epochs):
    X, y = problem(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # who asks for epochs does not ask for convergence
        fitted = machine(loss=loss, solver=LaRank(certify=certify), epochs=epochs).fit(X, y)
    assert fitted.n_iter_ == epochs
    learnt = fitted.history_["rows_seen"][~np.isfinite(fitted.history_["gap"])]
    assert learnt[-1] == 60 * epochs  # looking at the gap may count as another look at all
    K, caps, beta = rbf_kernel(X, gamma=GAMMA), np.full(60, C), coefficients(fitted, 60)
    assert is_feasible(y, caps, beta, loss)
    assert fitted.dual_objective_ == pytest.approx(dual_value(K, y, beta), rel=1e-6)
    assert 0.8 * optimum(3, loss) < fitted.dual_objective_ <= optimum(3, loss) * (1 + 1e-6)
    if certify is True:
        assert fitted.gap_ == pytest.approx(gap(K, y, caps, beta, loss), rel=1e-5)
        assert fitted.objective_ == pytest.approx(primal_value(K, y, caps, beta, loss), rel=1e-6)
    else:
        assert not np.isfinite([fitted.gap_, fitted.objective_]).any()  # nobody computed them


@every_loss
@pytest.mark.parametrize(
    "operations", [("new",), ("new", "optimize"), ("new", "old"), ("new", "old", "optimize")]
)
def test_a_pass_with_fewer_operations_climbs_the_same_dual(operations, loss):
    X, y = problem(3)
    one, three = (
        machine(loss=loss, solver=LaRank(operations=operations, certify=True), epochs=epochs)
        for epochs in (1, 3)
    )
    K, caps = rbf_kernel(X, gamma=GAMMA), np.full(60, C)
    for fitted in (one.fit(X, y), three.fit(X, y)):
        beta = coefficients(fitted, 60)
        assert is_feasible(y, caps, beta, loss)
        assert fitted.dual_objective_ == pytest.approx(dual_value(K, y, beta), rel=1e-6)
        assert fitted.gap_ == pytest.approx(gap(K, y, caps, beta, loss), rel=1e-5)
    assert 0.0 < one.dual_objective_ <= three.dual_objective_ <= optimum(3, loss) * (1 + 1e-6)
    if operations == ("new",):  # a support pattern is never looked at again
        everything = machine(loss=loss, epochs=3).fit(X, y)
        assert three.dual_objective_ < everything.dual_objective_


@every_solver
@every_loss
def test_the_gap_where_no_tolerance_is_given(solver, loss):
    X, y = problem(5)
    for cap in (0.01, 10.0):  # the one and the other bind
        fitted = machine(solver=solver, loss=loss, C=cap, tol=None).fit(X, y)
        assert 0.0 <= fitted.gap_ < min(cap, 0.01 * fitted.objective_)


# ---- warm start -------------------------------------------------------------------------------


@every_solver
@every_loss
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_solution_is_its_own_start(solver, loss, n_classes):
    X, y = problem(n_classes)
    fitted = machine(solver=solver, loss=loss, warm_start=True).fit(X, y)
    before, epochs = fitted.dual_objective_, fitted.n_iter_
    fitted.fit(X, y)
    assert fitted.dual_objective_ >= before * (1 - 1e-9)
    assert fitted.history_["dual"].min() >= before * (1 - 1e-6)
    assert fitted.n_iter_ <= max(2, epochs / 5)  # a pass of LaRank stirs the solution a little
    assert_solves(fitted, rbf_kernel(X, gamma=GAMMA), y, np.full(60, C), loss)


@every_solver
@every_loss
@pytest.mark.parametrize("cap", [0.3, 10.0])
def test_another_cap_starts_from_the_solution(solver, loss, cap):
    X, y = problem(3)
    fitted = machine(solver=solver, loss=loss, warm_start=True).fit(X, y)
    before = fitted.dual_objective_
    fitted.set_params(C=cap).fit(X, y)
    assert_solves(fitted, rbf_kernel(X, gamma=GAMMA), y, np.full(60, cap), loss)
    assert fitted.dual_objective_ == pytest.approx(optimum(3, loss, cap), rel=TOL)
    if cap > C:  # what was allowed still is
        assert fitted.history_["dual"].min() >= before * (1 - 1e-6)


@every_solver
def test_a_warm_start_may_change_the_solver(solver):
    X, y = problem(3)
    fitted = machine(solver=solver, warm_start=True).fit(X, y)
    for other in SOLVERS:
        fitted.set_params(solver=other).fit(X, y)
        assert fitted.dual_objective_ == pytest.approx(optimum(3, "crammer_singer"), rel=TOL)


@every_solver
def test_without_warm_start_a_fit_begins_anew(solver):
    X, y = problem(3)
    fitted = machine(solver=solver).fit(X, y)
    coef = fitted.dual_coef_.copy()
    assert_array_equal(fitted.fit(X, y).dual_coef_, coef)

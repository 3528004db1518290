"""``basis="learned"``: what may be asked of it, odd input, and that it says what it does."""

import functools
import itertools
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes, seconds_to_stop
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sparse_machines import sparse_machine

import widemargin
from widemargin import LearnedBasis, SparseKernelClassifier, load, save
from widemargin.estimation.fitting import Interrupted
from widemargin.kernels import RBF, AdaptiveRBF
from widemargin.losses import CLASS_LOSSES
from widemargin.solvers.units import problem as unit_problem
from widemargin.solvers.units import projection
from widemargin.solvers.units.problem import LearnedPoint, LearnedProblem
from widemargin.solvers.units.projection import VariableProjection
from widemargin.solvers.units.start import cluster_by_class
from widemargin.solvers.units.values import Units
from widemargin.sparse_kernel import effort
from widemargin.sparse_kernel.effort import metric_for, metric_of
from widemargin.sparse_kernel.learned import _without_twins
from widemargin.sparse_kernel.learning_rows import dense_rows

pytestmark = [pytest.mark.combinations, pytest.mark.turns("metric", "solver", "loss")]

METRICS = ("none", "scaled", "diagonal", "full")
SOLVERS = ("projection", "adam", "auto")
every_metric = pytest.mark.parametrize("metric", METRICS)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)


@pytest.fixture(autouse=True)
def no_warnings():
    """A fit that has nothing to say says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def nothing_held_out(monkeypatch):
    """Rows count as too few to hold some out, so that none say how far to go."""
    monkeypatch.setattr("widemargin.sparse_kernel.learned._LEAST_ROWS", 10**9)


def machine(max_basis=6, **parameters):
    settings = {"basis": "learned", "random_state": 0, "moves": 10}
    return sparse_machine(max_basis, **(settings | parameters))


@functools.cache
def usual_machine(metric):
    """Return a machine of the rows of ``three_classes`` that tests share."""
    return machine(metric=metric).fit(*overlapping_classes(60, 3))


# What is learned


@pytest.mark.usefixtures("units_move")
@every_metric
def test_what_a_fit_leaves(metric, three_classes):
    fitted = machine(metric=metric).fit(*three_classes)
    assert fitted.n_basis_ == 6
    assert fitted.basis_.shape == (6, 4)
    assert fitted.dual_coef_.shape == (6, 3)
    assert_array_equal(fitted.basis_indices_, np.full(6, -1))
    kernel = fitted.model_.kernel
    if metric == "none":
        assert isinstance(kernel, RBF)
    else:
        assert isinstance(kernel, AdaptiveRBF)
        assert kernel.metric.shape == ((4, 4) if metric == "full" else (4,))
        assert metric_of(kernel) == metric
    assert fitted.n_iter_ > 0
    assert set(fitted.history_) == {"n_basis", "objective", "seconds", "gradient"}
    assert len({len(values) for values in fitted.history_.values()}) == 1
    assert set(fitted.history_["n_basis"]) == {6}


@every_metric
@every_loss
def test_the_objective_falls(metric, loss, three_classes):
    fitted = machine(metric=metric, loss=loss, C=5.0, solver="projection").fit(*three_classes)
    objective = fitted.history_["objective"]
    assert (np.diff(objective) <= 1e-6 * objective[:-1]).all()
    assert objective[-1] < 0.95 * objective[0]
    assert fitted.objective_ <= objective[-1] * (1 + 1e-6)
    assert (np.diff(fitted.history_["seconds"]) >= 0).all()


@pytest.mark.parametrize(
    ("n_rows", "n_features", "metric"),
    [
        (2, 1, "full"),
        (1, 1, "none"),
        (50, 5, "full"),
        (49, 5, "none"),
        (800, 20, "full"),
        (799, 20, "diagonal"),
        (400, 20, "diagonal"),
        (399, 20, "none"),
        (10**4, 21, "diagonal"),
        (420, 21, "diagonal"),
        (419, 21, "none"),
        (4000, 200, "diagonal"),
        (3999, 200, "none"),
        (10**4, 201, "none"),
    ],
)
def test_auto_takes_the_metric_that_there_are_rows_for(n_rows, n_features, metric, rng):
    rows = rng.rand(n_rows, n_features)
    assert metric_for(LearnedBasis(), rows) == metric
    for asked in METRICS:
        assert metric_for(LearnedBasis(metric=asked), rows) == asked
    if n_features > 1:  # features of units of their own are divided by their spread
        of_unlike_units = rows * 10.0 ** np.arange(-2, 3)[np.arange(n_features) % 5]
        expected = "scaled" if metric == "none" else metric
        assert metric_for(LearnedBasis(), of_unlike_units) == expected


def test_features_that_are_nearly_always_the_same_do_not_tell_units_apart(rng):
    """Those at the edge of an image, say."""
    rows = rng.rand(100, 50)
    rows[:, :20] = 0.0
    assert metric_for(LearnedBasis(), rows) == "none"
    rows[:, 20:30] *= 0.01
    assert metric_for(LearnedBasis(), rows) == "none"
    rows[:, 30:40] *= 0.01
    assert metric_for(LearnedBasis(), rows) == "scaled"
    assert metric_for(LearnedBasis(), np.ones((5, 50))) == "none"


def test_auto_is_full_then_diagonal_then_none(rng):
    y = np.arange(850) % 2
    kernels = []
    for n_rows, n_features in ((850, 20), (850, 21), (400, 20), (400, 21)):
        fitted = machine(2, moves=1).fit(rng.randn(n_rows, n_features), y[:n_rows])
        kernels.append(fitted.model_.kernel)
    assert [metric_of(kernel) for kernel in kernels] == ["full", "diagonal", "diagonal", "none"]
    assert [getattr(kernel, "metric", np.empty(0)).ndim for kernel in kernels[:3]] == [2, 1, 1]
    assert isinstance(kernels[3], RBF)


def test_rows_that_do_not_count_are_none_to_learn_a_metric_from(rng):
    X, y, weights = rng.randn(80, 5), np.arange(80) % 2, np.arange(80) < 49
    assert metric_of(machine(2, moves=1).fit(X, y).model_.kernel) == "full"
    fewer = machine(2, moves=1).fit(X, y, weights.astype(float))
    assert metric_of(fewer.model_.kernel) == "none"
    twice = machine(2, moves=1).fit(np.vstack([X[:49], X[:49]]), np.hstack([y[:49], y[:49]]))
    assert metric_of(twice.model_.kernel) == "none"


def test_gamma_is_where_the_widths_begin(three_classes):
    X, y = three_classes
    widths = []
    for gamma in (0.01, 10.0):
        fitted = machine(metric="none", gamma=gamma, moves=1, C=1e-3).fit(X, y)
        widths.append(fitted.model_.kernel.gamma)
    assert widths == sorted(widths)
    assert widths[1] > 10 * widths[0]


def test_no_intercept(three_classes):
    fitted = machine(fit_intercept=False).fit(*three_classes)
    assert_array_equal(fitted.intercept_, np.zeros(3))


@every_solver
@pytest.mark.parametrize("C", [10.0, "auto"])
def test_moves_ends_it(solver, C, three_classes, request):
    if solver == "auto":  # of which rows that are held out may ask for less
        n_rounds = len(machine(moves=3, tol=0, C=C).fit(*three_classes).history_["objective"])
        assert 1 <= n_rounds <= 3
        request.getfixturevalue("nothing_held_out")
    fitted = machine(moves=3, tol=0, solver=solver, C=C).fit(*three_classes)
    assert fitted.stop_reason_ == "max_iter"
    assert len(fitted.history_["objective"]) == 3


@every_solver
@pytest.mark.parametrize("n_rows", [60, 3200])
def test_a_single_round(solver, n_rows, three_classes):
    """Which has no cycle that rows could judge: none is held out."""
    X, y = three_classes if n_rows == 60 else overlapping_classes(n_rows, 3)
    fitted = machine(moves=1, solver=solver).fit(X, y)
    assert fitted.stop_reason_ == "max_iter"
    assert len(fitted.history_["objective"]) == 1
    assert fitted.C_ == 10.0
    assert "held_out_loss" not in fitted.history_
    same = machine(moves=1, solver=solver, C=10.0).fit(X, y)
    assert_array_equal(fitted.decision_function(X), same.decision_function(X))


@pytest.mark.parametrize("tol", [0.1, 0.01])
def test_tol_ends_it_and_0_does_not(tol, three_classes):
    X, y = three_classes
    short = machine(moves=200, tol=tol, solver="projection", C=10.0).fit(X, y)
    assert short.stop_reason_ == "tol"
    # Several moves are looked at together: one that brings little may come before one that brings
    # much.
    objective, apart = short.history_["objective"], projection._WINDOW
    brought = (objective[:-apart] - objective[apart:]) / objective[apart:]
    brought = brought[VariableProjection.first_moves - apart - 1 :]
    least = effort._WINDOW_TOL * tol
    assert (brought[:-1] >= least).all()
    assert brought[-1] < least
    long = machine(moves=200, tol=0, solver="projection", C=10.0).fit(X, y)
    assert len(long.history_["objective"]) > 2 * len(objective)
    assert long.objective_ < short.objective_


@pytest.mark.usefixtures("nothing_held_out")
def test_tol_ends_it_after_stochastic_steps(three_classes):
    X, y = three_classes
    ended = machine(moves="auto", tol=0.1).fit(X, y)
    assert ended.stop_reason_ == "tol"
    # At least a cycle, of three rounds of ten epochs each, and projection after it.
    assert 3 + VariableProjection.first_moves < len(ended.history_["objective"]) < 1000


def test_a_small_weight_of_the_loss_stops_nothing(three_classes):
    """The moves do not end by a measure that knows no scale."""
    X, y = three_classes
    fitted = machine(C=1e-4, tol=0, solver="projection").fit(X, y)
    assert len(fitted.history_["objective"]) == 10
    least = machine(C=1e-7, tol=0, solver="projection").fit(X, y)
    assert len(least.history_["objective"]) > 1


@every_metric
@every_loss
def test_single_precision_is_left_where_it_does_not_do(metric, loss, three_classes):
    for C in (1.0, 1e4):
        machine(metric=metric, loss=loss, C=C, gradient_tol=1e-7, moves=3).fit(*three_classes)


def test_a_hard_solve_is_told(three_classes):
    X, y = three_classes
    with pytest.warns(ConvergenceWarning, match="gradient_tol") as told:
        machine(max_iter=1, gradient_tol=1e-12).fit(X, y)
    assert {warning.filename for warning in told} == {__file__}


# The same again


@every_metric
def test_a_seed_gives_the_same_bits_with_any_number_of_threads(metric, larger_problem):
    X, y = larger_problem
    first, *others = (
        machine(8, metric=metric, moves=2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 1, 2)
    )
    for other in others:
        assert_array_equal(first.basis_, other.basis_)
        assert_array_equal(first.dual_coef_, other.dual_coef_)
        assert first.objective_ == other.objective_


@pytest.mark.thorough
def test_threads_of_k_means_change_no_bit(rng):
    """k-means adds the sums of its threads in any order; more than two of them tell."""
    program = """
        import numpy as np
        from widemargin.solvers.units.start import cluster_by_class
        rng = np.random.RandomState(0)
        rows, labels = rng.randn(3000, 5).astype(np.float32), np.arange(3000) % 2
        print(cluster_by_class(rows, labels, np.ones(3000), 20, rng).tobytes().hex())
    """
    run = [sys.executable, "-c", textwrap.dedent(program)]
    seven = os.environ | {"OMP_NUM_THREADS": "7"}
    printed = subprocess.run(run, env=seven, capture_output=True, check=True, text=True).stdout
    rows, labels = rng.randn(3000, 5).astype(np.float32), np.arange(3000) % 2
    here = cluster_by_class(rows, labels, np.ones(3000), 20, rng)
    assert printed.strip() == here.tobytes().hex()


@every_metric
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_dense_and_sparse_rows_give_the_same_machine(metric, offset, three_classes):
    X, y = three_classes
    X = X * (X > 0.5) + offset
    dense = machine(metric=metric).fit(X, y)
    for form in (sp.csr_matrix, sp.csr_array):
        sparse = machine(metric=metric).fit(form(X), y)
        assert_array_equal(sparse.basis_, dense.basis_)
        assert_array_equal(sparse.dual_coef_, dense.dual_coef_)
        scores = dense.decision_function(X)
        assert_allclose(sparse.decision_function(form(X)), scores, atol=1e-6 + 1e-9 * offset)


def test_sparse_rows_too_large_to_be_dense_are_refused():
    wide = sp.csr_matrix((200_000, 50_000))
    with pytest.raises(ValueError, match=r"80\.0 GB.*basis='shared'"):
        dense_rows(wide)


@every_metric
def test_float32_is_near_float64(metric, three_classes):
    X, y = three_classes
    X = X.astype(np.float32)
    narrow = machine(metric=metric, moves=3).fit(X, y)
    wide = machine(metric=metric, moves=3).fit(X.astype(np.float64), y)
    assert narrow.objective_ == pytest.approx(wide.objective_, rel=1e-4)
    assert narrow.decision_function(X).dtype == np.float32
    assert_allclose(narrow.decision_function(X), wide.decision_function(X), atol=1e-3)


@every_metric
def test_a_scale_of_all_features_changes_nothing(metric, three_classes):
    X, y = three_classes
    usual = usual_machine(metric)
    for scale in (2.0**27, 2.0**-27, 1e100):
        scaled = machine(metric=metric).fit(scale * X, y)
        assert scaled.objective_ == pytest.approx(usual.objective_, rel=1e-3)
        assert_allclose(scaled.decision_function(scale * X), usual.decision_function(X), atol=1e-2)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_scale_whose_square_is_no_number(scale, three_classes):
    X, y = three_classes
    usual = machine(metric="diagonal").fit(X, y)
    scaled = machine(metric="diagonal").fit(scale * X, y)
    assert scaled.objective_ == pytest.approx(usual.objective_, rel=1e-2)
    told = pytest.raises(ValueError, match="Rescale X, or set metric='diagonal'")
    with told, np.errstate(over="ignore"):
        machine(metric="none").fit(scale * X, y)


@pytest.mark.parametrize("metric", ["scaled", "diagonal", "full"])
def test_scales_of_single_features_change_nothing(metric, three_classes):
    X, y = three_classes
    usual = usual_machine(metric)
    scales = np.array([1e8, 1e-8, 1.0, 1e3])
    scaled = machine(metric=metric).fit(X * scales, y)
    assert scaled.objective_ == pytest.approx(usual.objective_, rel=1e-2)


# Weights


@every_metric
def test_a_weight_of_2_is_a_row_twice(metric, three_classes):
    X, y = three_classes
    weights = 1.0 + (np.arange(len(y)) % 3 == 0)
    order = np.random.RandomState(1).permutation(int(weights.sum()))
    times = weights.astype(int)
    weighted = machine(metric=metric).fit(X, y, weights)
    repeated = machine(metric=metric).fit(np.repeat(X, times, 0)[order], np.repeat(y, times)[order])
    assert_array_equal(weighted.basis_, repeated.basis_)
    assert_array_equal(weighted.dual_coef_, repeated.dual_coef_)


def test_a_weight_of_0_is_no_row(three_classes):
    X, y = three_classes
    kept = np.arange(len(y)) % 4 != 0
    weighted = machine().fit(np.where(kept[:, None], X, 1e6), y, kept.astype(float))
    assert_array_equal(weighted.basis_, machine().fit(X[kept], y[kept]).basis_)


def test_a_class_without_weight_is_never_predicted(three_classes):
    X, y = three_classes
    fitted = machine().fit(X, y, (y != 1).astype(float))
    assert_array_equal(fitted.classes_, [0, 1, 2])
    assert 1 not in fitted.predict(X)


def test_class_weight_multiplies(three_classes):
    X, y = three_classes
    by_class = machine(class_weight={0: 3.0, 1: 1.0, 2: 0.5}).fit(X, y)
    by_row = machine().fit(X, y, np.array([3.0, 1.0, 0.5])[y])
    assert_array_equal(by_class.dual_coef_, by_row.dual_coef_)
    assert machine(class_weight="balanced").fit(X, y).n_basis_ == 6


def test_clusters_heed_weights(rng):
    rows = rng.randn(200, 2).astype(np.float32)
    weights = np.where(rows[:, 0] > 1.0, 1e6, 1.0)
    centres = cluster_by_class(rows, np.zeros(200, dtype=int), weights, 5, rng)
    assert (centres[:, 0] > 0.9).sum() >= 4


# Odd input


def test_two_classes_with_names(two_classes):
    X, y = two_classes
    names = np.array(["no", "yes"])[y]
    fitted = machine().fit(X, names)
    assert fitted.dual_coef_.shape == (6, 1)
    assert fitted.intercept_.shape == (1,)
    assert fitted.decision_function(X).shape == (50,)
    assert set(fitted.predict(X)) == {"no", "yes"}
    assert fitted.score(X, names) > 0.8


def test_probabilities(three_classes):
    X, y = three_classes
    chance = machine(loss="logistic").fit(X, y).predict_proba(X)
    assert_allclose(chance.sum(axis=1), 1.0)
    assert np.mean(chance.argmax(axis=1) == y) > 0.7
    assert not hasattr(machine().fit(X, y), "predict_proba")


def test_more_vectors_than_rows(three_classes):
    X, y = three_classes
    with pytest.warns(UserWarning, match="max_basis=100 is more than the 12 rows"):
        fitted = machine(100, moves=5).fit(X[:12], y[:12])
    assert fitted.n_basis_ == 12
    assert fitted.score(X[:12], y[:12]) == 1.0


@pytest.mark.parametrize("max_basis", [1, 2])
def test_fewer_vectors_than_classes(max_basis, three_classes):
    fitted = machine(max_basis).fit(*three_classes)
    assert fitted.n_basis_ == max_basis
    assert np.isfinite(fitted.objective_)


def test_a_class_of_one_row(two_classes):
    X, y = two_classes
    X, y = np.vstack([X, [[9.0, 9, 9, 9]]]), np.append(y, 2)
    fitted = machine(C=10.0).fit(X, y)
    assert fitted.predict(X[-1:]) == [2]
    assert fitted.n_basis_ == 6


@every_metric
def test_constant_features(metric, three_classes):
    X, y = three_classes
    wider = np.hstack([X, np.full((60, 1), 0.1), np.zeros((60, 1)), np.full((60, 1), 1e9)])
    plain, fitted = (machine(metric=metric, C=10.0).fit(rows, y) for rows in (X, wider))
    assert fitted.objective_ == pytest.approx(plain.objective_, rel=0.05)
    assert np.isfinite(fitted.decision_function(wider)).all()


@every_metric
def test_rows_twice_count_twice_and_make_no_twins(metric, three_classes):
    X, y = three_classes
    fitted = machine(80, metric=metric, moves=2).fit(np.vstack([X, X]), np.hstack([y, y]))
    assert fitted.n_basis_ == 60


@every_solver
def test_a_row_of_two_classes_makes_one_vector(solver):
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 0, 1]
    fitted = machine(4, solver=solver).fit(X, y)
    assert fitted.n_basis_ == 2
    assert_allclose(fitted.decision_function(X), 0.0, atol=1e-6)


@every_metric
def test_one_feature(metric):
    X, y = load_iris(return_X_y=True)
    fitted = machine(metric=metric).fit(X[:, 2:3], y)
    assert fitted.score(X[:, 2:3], y) > 0.9


@every_metric
@pytest.mark.parametrize("n_features", [3, 120])
@every_solver
def test_rows_that_are_all_equal_are_told(metric, n_features, solver):
    X, y = np.full((9, n_features), 0.1), np.arange(9) % 3
    with pytest.warns(UserWarning, match="All rows of X are equal") as told:
        fitted = machine(metric=metric, solver=solver).fit(X, np.where(y == 2, 1, y))
    assert [warning.filename for warning in told] == [__file__]
    assert set(fitted.predict(X)) == {1}
    if solver == "projection":
        assert fitted.stop_reason_ == "tol"
        assert len(fitted.history_["objective"]) == 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(form, bad, three_classes):
    X, y = three_classes
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        machine().fit(form(X), y)


@pytest.mark.parametrize(
    "kernel",
    ["linear", "poly", "laplacian", "sigmoid", "precomputed", RBF(0.1), lambda X, Y: X @ Y.T],
)
def test_other_kernels_are_refused(kernel, three_classes):
    with pytest.raises(ValueError, match="kernel must be 'rbf'"):
        machine(kernel=kernel).fit(*three_classes)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("metric", ["cosine", None, 1]),
        ("early_stopping", ["yes", 1, None]),
        ("validation_fraction", [0.0, 1.0, -0.1, 1.5, "half", None, np.nan]),
        ("n_iter_no_change", [0, 1.5, None]),
        ("max_basis", [0, 1.5]),
    ],
)
def test_bad_parameters_are_refused_by_name(name, values, three_classes):
    for value in values:
        with pytest.raises((ValueError, TypeError), match=name):
            machine(**{name: value}).fit(*three_classes)


# Early stopping


def test_early_stopping_takes_the_best_on_the_way(three_classes):
    X, y = three_classes
    fitted = machine(
        12,
        solver="projection",
        early_stopping=True,
        validation_fraction=0.3,
        C=100.0,
        moves=40,
        tol=0,
    ).fit(X, y)
    scores = fitted.history_["validation_score"]
    assert len(scores) == len(fitted.history_["objective"])
    assert ((scores >= 0) & (scores <= 1)).all()
    taken = np.argmax(scores)
    assert fitted.objective_ == pytest.approx(fitted.history_["objective"][taken], rel=1e-3)
    patient = fitted.stop_reason_ == "early_stopping"
    assert patient == (len(scores) - 1 - taken >= 10)
    assert patient
    assert "validation_score" not in machine().fit(X, y).history_


@every_solver
def test_early_stopping_waits_as_long_as_asked(solver, three_classes):
    fitted = machine(
        solver=solver,
        early_stopping=True,
        n_iter_no_change=2,
        validation_fraction=0.3,
        moves=60,
        tol=0,
    ).fit(*three_classes)
    scores = fitted.history_["validation_score"]
    assert fitted.stop_reason_ == "early_stopping"
    assert len(scores) - 1 - np.argmax(scores) == 2


def test_early_stopping_needs_rows(three_classes):
    X, y = three_classes
    with pytest.raises(ValueError, match="leaves too few"):
        machine(early_stopping=True).fit(X[:6], y[:6])
    with pytest.raises(ValueError, match=r"too few to learn from the rest.*early_stopping=False"):
        machine(4, early_stopping=True, validation_fraction=0.5).fit(X[:4], y[:4])


# Warm start


@every_metric
@pytest.mark.parametrize("data", ["three_classes", "two_classes"])
def test_warm_start_goes_on_and_adds(metric, data, request):
    X, y = request.getfixturevalue(data)
    grown = machine(3, metric=metric, warm_start=True, C=3.0).fit(X, y)
    before, first = grown.objective_, grown.basis_
    grown.fit(X, y)
    assert grown.n_basis_ == 3
    assert grown.objective_ <= before * (1 + 1e-5)
    between = grown.objective_
    grown.set_params(max_basis=7).fit(X, y)
    assert grown.n_basis_ == 7
    assert grown.objective_ < between
    assert grown.history_["objective"][0] <= between * (1 + 1e-5)
    assert not np.array_equal(grown.basis_[:3], first)


@pytest.mark.parametrize(("first", "then"), [(120, 40), (40, 120)])
def test_warm_start_keeps_the_metric_that_it_begins_with(first, then, rng):
    """However many rows there are then."""
    X = rng.randn(120, 6)
    y = np.argmax(X[:, :3], axis=1)
    grown = machine(4, warm_start=True).fit(X[:first], y[:first])
    metric = metric_of(grown.model_.kernel)
    assert metric == ("full" if first == 120 else "none")
    assert metric_for(LearnedBasis(), X[:then]) != metric
    grown.set_params(max_basis=6).fit(X[:then], y[:then])
    assert metric_of(grown.model_.kernel) == metric
    assert grown.n_basis_ == 6


@pytest.mark.usefixtures("units_move")
def test_warm_start_begins_with_projection(three_classes):
    """Large steps would scatter what was learned."""
    X, y = three_classes
    grown = machine(4, warm_start=True, moves=20).fit(X, y)
    assert np.isnan(grown.history_["gradient"]).any()  # which epochs do not have
    before = grown.objective_
    grown.fit(X, y)
    assert np.isfinite(grown.history_["gradient"]).all()
    objective = grown.history_["objective"]
    assert objective[0] <= before * (1 + 1e-5)
    assert (np.diff(objective) <= 1e-6 * objective[:-1]).all()
    assert np.isnan(machine(4, moves=20).fit(X, y).history_["gradient"]).any()


def test_warm_start_of_rows_of_many_features(rng):
    X = rng.randn(150, 110)
    y = np.argmax(X[:, :3], axis=1)
    grown = machine(5, warm_start=True, C=3.0).fit(X, y)
    before = grown.objective_
    assert grown.set_params(max_basis=8).fit(X, y).objective_ < before


def test_warm_start_with_other_rows(three_classes, rng):
    X, y = three_classes
    grown = machine(4, warm_start=True).fit(X, y)
    grown.set_params(max_basis=6).fit(X + 0.2 * rng.randn(*X.shape), y)
    assert grown.n_basis_ == 6


@pytest.mark.parametrize(
    "change",
    [{"basis__metric": "diagonal"}, {"basis__metric": "none"}, {"max_basis": 2}],
    ids=str,
)
def test_warm_start_refuses_what_does_not_go_on(change, three_classes):
    X, y = three_classes
    fitted = machine(metric="full", warm_start=True).fit(X, y)
    scores = fitted.decision_function(X)
    with pytest.raises(ValueError, match="warm_start=False"):
        fitted.set_params(**change).fit(X, y)
    assert_array_equal(fitted.decision_function(X), scores)


def test_warm_start_refuses_to_learn_from_chosen_vectors(three_classes):
    X, y = three_classes
    for metric in ("none", "full"):
        chosen = SparseKernelClassifier(4, warm_start=True).fit(X, y)
        with pytest.raises(ValueError, match="learned basis of the same metric"):
            chosen.set_params(basis=LearnedBasis(metric=metric)).fit(X, y)


# Units that meet


def state_of(centres, coefficients, log_widths=None):
    centres = np.asarray(centres, dtype=float)
    log_widths = np.zeros(len(centres)) if log_widths is None else np.asarray(log_widths)
    units = Units(centres, log_widths, np.zeros(centres.shape[1]))
    return LearnedPoint(units, np.asarray(coefficients, dtype=float), 1.0, 0.0)


def test_units_that_meet_are_merged_and_it_is_told():
    state = state_of([[0.0, 1], [5, 5], [0, 1]], [[9.0, -9], [1, 2], [3, 4], [10, 20]])
    with pytest.warns(UserWarning, match="1 of 3 units met others"):
        merged = _without_twins(state, slice(1, 4))
    assert_array_equal(merged.units.centres, [[0.0, 1], [5, 5]])
    assert_array_equal(merged.coefficients, [[9.0, -9], [11, 22], [3, 4]])
    assert len(merged.units.log_widths) == 2


def test_a_chain_of_units_loses_no_coefficient():
    near = 0.9e-3  # from one to the next, near enough; from the first to the third, not
    state = state_of([[0.0], [near], [2 * near], [4.0]], [[1.0], [10], [100], [1000]])
    with pytest.warns(UserWarning, match="2 of 4 units"):
        merged = _without_twins(state, slice(0, 4))
    assert_array_equal(merged.coefficients, [[111.0], [1000]])


def test_units_of_one_centre_and_different_widths_stay():
    state = state_of([[1.0], [1]], [[1.0], [2]], log_widths=[0.0, 0.1])
    assert _without_twins(state, slice(0, 2)) is state


def test_narrow_units_far_out_stay():
    rng = np.random.RandomState(0)
    state = state_of(1e5 * rng.randn(8, 5), np.ones((8, 1)), log_widths=np.full(8, 10.0))
    assert _without_twins(state, slice(0, 8)) is state


@pytest.mark.usefixtures("nothing_held_out")
def test_merged_units_are_solved_for_again(three_classes, monkeypatch):
    X, y = three_classes
    monkeypatch.setattr("widemargin.sparse_kernel.learned._MEETING", 2.0)
    with pytest.warns(UserWarning, match="of 6 units met others") as told:
        fitted = machine(C=1.0, gradient_tol=1e-5).fit(X, y)
    assert [warning.filename for warning in told] == [__file__]
    assert 1 <= fitted.n_basis_ < 6
    assert set(fitted.history_["n_basis"]) == {fitted.n_basis_}
    assert len(fitted.history_["objective"]) == 10
    scores = fitted.decision_function(X)
    margins = np.maximum(1.0 + scores - scores[np.arange(60), y][:, None], 0.0)
    loss = 0.5 * np.sum(margins**2) - 0.5 * 60
    size = 0.5 * np.sum(fitted.dual_coef_**2) + 0.5 * np.sum(fitted.intercept_**2)
    assert fitted.objective_ == pytest.approx(size + loss, rel=1e-4)


# On the way


class Recorder:
    """A callback that counts, and may stop the fit or raise an error."""

    def __init__(self, stop_after=None, error=None):
        self.stop_after, self.error, self.begun, self.scores = stop_after, error, 0, []

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun += context.task_name == "round"

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        if context.task_name != "round":
            return False
        self.scores.append(fitted_estimator.decision_function(X))
        if self.error is not None and len(self.scores) == 2:
            raise self.error
        return self.stop_after is not None and len(self.scores) >= self.stop_after


needs_callbacks = pytest.mark.skipif(
    not hasattr(SparseKernelClassifier, "set_callbacks"), reason="needs scikit-learn 1.9"
)


@needs_callbacks
@pytest.mark.parametrize(
    "settings", [{}, {"moves": 300, "tol": 0}, {"tol": 0.1}, {"early_stopping": True}], ids=str
)
def test_callbacks_are_told_every_move(settings, three_classes):
    X, y = three_classes
    recorder = Recorder()
    watched = machine(**settings).set_callbacks(recorder).fit(X, y)
    assert recorder.begun == len(recorder.scores) == len(watched.history_["objective"])
    assert_array_equal(
        watched.decision_function(X), machine(**settings).fit(X, y).decision_function(X)
    )


@needs_callbacks
@every_solver
@pytest.mark.parametrize("n_rounds", [3, 5, 7])
@pytest.mark.usefixtures("nothing_held_out")
def test_a_callback_stops_it(solver, n_rounds, three_classes):
    X, y = three_classes
    recorder = Recorder(stop_after=n_rounds)
    fitted = machine(tol=0, solver=solver).set_callbacks(recorder).fit(X, y)
    assert fitted.stop_reason_ == "callback"
    assert recorder.begun == len(fitted.history_["objective"]) == n_rounds
    if solver == "projection":  # whose coefficients are those of its units after every move
        assert_allclose(fitted.decision_function(X), recorder.scores[-1], atol=1e-2)


@needs_callbacks
def test_progress_bar_comes_to_its_end(three_classes, capsys):
    pytest.importorskip("rich")
    callback = pytest.importorskip("sklearn.callback")
    machine().set_callbacks(callback.ProgressBar()).fit(*three_classes)
    assert "100%" in capsys.readouterr().out


@pytest.mark.usefixtures("units_move")
@needs_callbacks
@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupt_leaves_the_estimator_as_it_was(warm_start, three_classes):
    X, y = three_classes
    fitted = machine(4, warm_start=warm_start).fit(X, y)
    scores = fitted.decision_function(X)
    fitted.set_params(max_basis=6).set_callbacks(Recorder(error=KeyboardInterrupt()))
    before = dict(vars(fitted))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(2 * X, y)
    assert set(vars(fitted)) == set(before)
    assert all(vars(fitted)[name] is before[name] for name in before if name != "history_")
    assert_array_equal(fitted.decision_function(X), scores)


@pytest.mark.usefixtures("units_move")
@needs_callbacks
def test_an_interrupt_offers_the_last_good_state(three_classes, tmp_path):
    X, y = three_classes
    settings = {"solver": "projection", "C": 10.0}
    new = machine(4, moves=9, **settings).set_callbacks(Recorder(error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, y)
    with pytest.raises(NotFittedError):
        new.predict(X)
    last_good = new.history_["last_good"]
    assert len(new.history_["objective"]) == len(last_good.history_["objective"]) == 2
    two_moves = machine(4, moves=2, **settings).fit(X, y)
    assert_allclose(last_good.decision_function(X), two_moves.decision_function(X), atol=1e-2)
    # One that was fitted stays as it was, and can be saved.
    fitted = machine(4).fit(X, y)
    way = dict(fitted.history_)
    fitted.set_callbacks(Recorder(error=KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, y)
    assert {name: fitted.history_[name] is way[name] for name in way} == dict.fromkeys(way, True)
    assert hasattr(fitted.history_["last_good"], "model_")
    save(fitted, tmp_path / "machine")
    assert "last_good" not in load(tmp_path / "machine").history_


@needs_callbacks
@every_solver
@pytest.mark.parametrize("moves", [5, "auto"])
def test_callbacks_are_told_how_many_rounds_there_may_be(solver, moves, rng, monkeypatch):
    """Of rows that count: the others make epochs no longer, and cycles no shorter."""
    for name, value in {"_EPOCHS": 7, "_MOVES": 5, "_FIRST_EPOCHS": (2, 30), "_CYCLES": 2}.items():
        monkeypatch.setattr(effort, name, value)
    most = []

    class Listener(Recorder):
        def on_fit_task_begin(self, estimator, context):
            super().on_fit_task_begin(estimator, context)
            if context.task_name != "round":
                most.append(context.max_subtasks)

    X, y = rng.randn(600, 3), np.arange(600) % 12
    weights = np.where(np.arange(600) < 24, 1.0, 0.0)
    recorder = Listener()
    learner = machine(12, solver=solver, moves=moves, tol=0, max_iter=1000)
    fitted = learner.set_callbacks(recorder).fit(X, y, weights)
    assert recorder.begun == len(fitted.history_["objective"]) <= most[0]
    # Of the first cycle, three rounds of ten epochs each, and twice as many of the second.
    by_itself = {"adam": 7, "projection": 5, "auto": 3 + 6 + 5}
    assert most == [moves if moves == 5 else by_itself[solver]]


def test_what_an_interrupt_offers_survives_a_pickle():
    stop = pickle.loads(pickle.dumps(Interrupted("estimator", "last good")))
    assert (stop.estimator, stop.last_good) == ("estimator", "last good")


def no_numbers_from_the_fifth(monkeypatch, solver):
    """Let what a solver moves by be no numbers, from the fifth time on that it asks for it."""
    calls = itertools.count(1)
    if solver == "projection":
        gradient = unit_problem.unit_gradient

        def failing(*args):
            true = gradient(*args)
            return replace(true, centres=true.centres * np.nan) if next(calls) >= 5 else true

        monkeypatch.setattr(unit_problem, "unit_gradient", failing)
        return
    descend = LearnedProblem.descend

    def descend_or_fail(self, moments, *args):
        if next(calls) >= 5:
            moments = replace(moments, parameters=moments.parameters * np.nan)
        return descend(self, moments, *args)

    monkeypatch.setattr(LearnedProblem, "descend", descend_or_fail)


@pytest.mark.parametrize("early_stopping", [False, True])
@every_solver
@pytest.mark.usefixtures("nothing_held_out")
def test_a_gradient_that_is_no_number_ends_at_the_last_good_state(
    solver, early_stopping, three_classes, monkeypatch, tmp_path
):
    X, y = three_classes
    no_numbers_from_the_fifth(monkeypatch, solver)
    with pytest.warns(ConvergenceWarning, match="not finite"):
        fitted = machine(4, solver=solver, early_stopping=early_stopping).fit(X, y)
    assert fitted.stop_reason_ == "not_finite"
    if solver != "projection":
        assert len(fitted.history_["objective"]) == 5
        assert_array_equal(np.isnan(fitted.history_["objective"]), [False] * 4 + [True])
    save(fitted, tmp_path / "machine")
    assert np.isfinite(fitted.decision_function(X)).all()
    assert np.isfinite(fitted.objective_)
    assert fitted.score(X, y) > 0.7


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.thorough
def test_ctrl_c_ends_a_long_fit():
    program = """
        import numpy as np
        from widemargin import LearnedBasis, SparseKernelClassifier

        rng = np.random.RandomState(0)
        X = rng.randn(40_000, 20)
        y = np.argmax(X[:, :10] + rng.randn(40_000, 10), axis=1)
        basis = LearnedBasis(max_iter=1000)
        machine = SparseKernelClassifier(300, basis=basis, tol=0)
        before = dict(vars(machine))
        print("begins", flush=True)
        try:
            machine.fit(X, y)
        except KeyboardInterrupt:
            new = sorted(set(vars(machine)) - set(before))
            # The first round may not have come to its end yet.
            good = new == [] or new == ["history_"] and machine.history_["last_good"].n_basis_
            print("as before" if good else new, flush=True)
    """
    assert seconds_to_stop(program, "as before", begin=0.5) < 5.0


# Afterwards


def test_there_is_one_stage(three_classes):
    X, y = three_classes
    fitted = machine().fit(X, y)
    (only,) = fitted.staged_decision_function(X)
    assert_allclose(only, fitted.decision_function(X), atol=1e-9)


@every_metric
@pytest.mark.parametrize("data", ["three_classes", "two_classes"])
def test_it_compiles_and_is_saved(metric, data, request, tmp_path):
    X, y = request.getfixturevalue(data)
    fitted = machine(metric=metric, loss="logistic").fit(X, y)
    scores = fitted.decision_function(X)
    scale = np.abs(scores).max()
    compiled = fitted.compile()
    assert_array_equal(compiled.predict(X), fitted.predict(X))
    assert_allclose(compiled.decision_function(X), scores, atol=1e-5 * scale)
    assert_allclose(compiled.predict_proba(X), fitted.predict_proba(X), atol=1e-5)
    widemargin.save(fitted, tmp_path / "learned.model")
    loaded = widemargin.load(tmp_path / "learned.model")
    assert_array_equal(loaded.decision_function(X), scores)


@every_metric
def test_it_is_exported_to_onnx(metric, three_classes):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, _ = three_classes
    fitted = usual_machine(metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        exported = widemargin.export.to_onnx(fitted)
    session = runtime.InferenceSession(exported.SerializeToString())
    rows = X.astype(np.float32)
    label, *_ = session.run(None, {session.get_inputs()[0].name: rows})
    assert np.mean(label == fitted.predict(rows)) == 1.0


@every_metric
def test_it_is_exported_to_c(metric, tmp_path):
    exported = widemargin.export.to_c(usual_machine(metric), tmp_path / "learned.c")
    assert exported is not None
    assert "predict" in (tmp_path / "learned.c").read_text(encoding="utf-8")


def test_digits_are_learned_by_30_vectors():
    X, y = load_digits(return_X_y=True)
    fitted = machine(30, C=10.0, moves=30).fit(X[::2], y[::2])
    assert fitted.n_basis_ == 30
    assert fitted.score(X[1::2], y[1::2]) > 0.94

"""Linear machines of label sets: one optimum by whatever way, and the same bits after a stop."""

import bz2
import json
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from conformance.test_resume import assert_same, through_a_file
from label_machine import label_problem
from numpy.testing import assert_allclose, assert_array_equal
from reference import linear_labels as reference
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from widemargin import LinearMultiLabelClassifier, load, priors, save
from widemargin.models import LinearMap
from widemargin.solvers.linear import dual_ascent
from widemargin.solvers.linear.dual_ascent import DualAscent, DualAscentState, LabelProblem
from widemargin.solvers.progress import Progress

N_LABELS = 5


def relation(n_labels=N_LABELS, seed=1):
    """Return a prior with positive and negative entries, of full rank."""
    root = np.random.RandomState(seed).randn(n_labels, n_labels)
    return root @ root.T / n_labels + 0.2 * np.eye(n_labels)


def machine(**settings):
    plain = {"C": 0.5, "fit_intercept": False, "tol": 1e-6, "max_iter": 100_000, "random_state": 0}
    return LinearMultiLabelClassifier(**plain | settings)


def data(n_rows=50, n_labels=N_LABELS, n_features=6):
    X, Y = label_problem(n_rows, n_labels, n_features=n_features)
    return X / np.sqrt(n_features), Y


PRIORS = {
    "none": None,
    "dense": relation(),
    "diagonal": np.diag([0.5, 1.0, 2.0, 3.0, 0.1]),
    "of rank 1": np.outer([1, 2, -1, 0.5, 1], [1, 2, -1, 0.5, 1]),
    "in two parts": np.kron(np.eye(2), np.array([[1.0, 0.7], [0.7, 1.0]]))[:4, :4],
    "without a label": np.diag([1.0, 1.0, 0.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("name", PRIORS)
def test_the_slow_twin_has_the_same_optimum(name):
    prior = PRIORS[name]
    X, Y = data(n_rows=30, n_labels=N_LABELS if prior is None else len(prior))
    R = np.eye(N_LABELS) if prior is None else prior
    caps = np.full(Y.shape, 2 * 0.5)
    a, weights = reference.solve(X, Y, caps, R)
    fitted = machine(prior=prior).fit(X, Y)
    assert fitted.stop_reason_ == "tol"
    assert fitted.dual_objective_ == pytest.approx(reference.dual(X, Y, a, R), rel=2e-6)
    assert_allclose(fitted.coef_, weights.T, atol=5e-3)


@pytest.mark.parametrize("name", ["none", "dense", "diagonal"])
def test_the_gap_is_that_of_the_primal_and_the_dual(name):
    X, Y = data()
    fitted = machine(prior=PRIORS[name], tol=1e-2, fit_intercept=True, intercept_scaling=2.0)
    fitted.fit(X, Y)
    R = np.eye(N_LABELS) if PRIORS[name] is None else PRIORS[name]
    wide = np.hstack([X, np.full((len(X), 1), 2.0)])
    weights = np.vstack([fitted.coef_.T, fitted.intercept_ / 2.0])
    value = reference.primal(wide, Y, np.ones(Y.shape), weights, R)
    assert fitted.objective_ == pytest.approx(value, rel=1e-9)
    assert fitted.gap_ == pytest.approx(fitted.objective_ - fitted.dual_objective_, rel=1e-6)
    assert 0 <= fitted.gap_ <= 1e-2 * fitted.objective_


def test_without_a_prior_labels_are_those_of_linear_svc():
    X, Y = data(n_rows=200, n_labels=11)
    fitted = machine(tol=1e-5).fit(X, Y)
    total = 0.0
    for label in range(Y.shape[1]):
        one = LinearSVC(loss="hinge", fit_intercept=False, C=1.0, tol=1e-8, max_iter=1_000_000)
        w = one.fit(X, Y[:, label]).coef_[0]
        total += reference.primal(X, Y[:, [label]], np.ones((len(X), 1)), w[:, None], np.eye(1))
        assert_allclose(fitted.coef_[label], w, atol=2e-2)
    assert fitted.objective_ == pytest.approx(total, rel=1e-4)


def test_with_a_prior_it_is_one_machine_of_products_with_its_root():
    X, Y = data(n_rows=40)
    R = relation()
    values, vectors = np.linalg.eigh(R)
    root = (vectors * np.sqrt(values)) @ vectors.T
    wide = np.vstack([np.kron(X[i], root[label]) for i, label in np.ndindex(Y.shape)])
    one = LinearSVC(loss="hinge", fit_intercept=False, C=1.0, tol=1e-8, max_iter=1_000_000)
    w = one.fit(wide, Y.ravel()).coef_[0]
    value = reference.primal(wide, Y.reshape(-1, 1), np.ones((Y.size, 1)), w[:, None], np.eye(1))
    fitted = machine(prior=R, tol=1e-5).fit(X, Y)
    assert fitted.objective_ == pytest.approx(value, rel=1e-4)
    assert_allclose(fitted.coef_.T, w.reshape(X.shape[1], -1) @ root, atol=2e-2)


@pytest.mark.parametrize("prior", [None, relation()], ids=["alone", "related"])
def test_sparse_rows_and_sparse_labels_make_the_same_machine_but_for_rounding(prior):
    X, Y = data()
    X[X < 0] = 0
    dense = machine(prior=prior).fit(X, Y)
    for rows in (sp.csr_matrix(X), sp.csc_array(X)):
        for labels in (Y, sp.csr_matrix(Y), sp.coo_array(Y)):
            other = machine(prior=prior).fit(rows, labels)
            assert_allclose(other.coef_, dense.coef_, rtol=0, atol=1e-12)
            assert other.n_iter_ == dense.n_iter_
    single = machine(prior=prior, tol=1e-4).fit(X.astype(np.float32), Y)
    assert single.objective_ == pytest.approx(dense.objective_, rel=1e-4)


@pytest.mark.parametrize("prior", [None, "in parts"])
def test_threads_change_no_bit(prior):
    X, Y = data(n_rows=300, n_labels=40)
    R = None if prior is None else np.kron(np.eye(8), relation())
    one, three = (machine(prior=R, tol=1e-3, n_jobs=n).fit(X, Y) for n in (1, 3))
    assert_array_equal(one.coef_, three.coef_)
    assert one.gap_ == three.gap_


@pytest.mark.parametrize("prior", [None, relation()], ids=["alone", "related"])
def test_a_weight_is_a_repeated_row(prior):
    X, Y = data()
    counts = np.random.RandomState(0).randint(0, 4, len(X))
    weighted = machine(prior=prior).fit(X, Y, sample_weight=counts)
    repeated = machine(prior=prior).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert_allclose(weighted.coef_, repeated.coef_, atol=2e-2)
    left_out = machine(prior=prior).fit(X[counts > 0], Y[counts > 0], counts[counts > 0])
    assert_array_equal(weighted.coef_, left_out.coef_)


def test_weights_of_labels_are_those_of_rows_that_have_them():
    X, Y = data()
    weighted = machine(class_weight={1: 3.0}).fit(X, Y)
    alone = machine().fit(X, Y[:, [1]], sample_weight=np.where(Y[:, 1] == 1, 3.0, 1.0))
    assert_allclose(weighted.coef_[1], alone.coef_[0], atol=5e-3)
    assert_allclose(weighted.coef_[0], machine().fit(X, Y[:, [0]]).coef_[0], atol=5e-3)


def test_labels_that_a_prior_leaves_alone_are_solved_alone():
    X, Y = data(n_labels=4)
    parts = machine(prior=PRIORS["in two parts"]).fit(X, Y)
    half = machine(prior=PRIORS["in two parts"][:2, :2]).fit(X, Y[:, :2])
    assert_allclose(parts.coef_[:2], half.coef_, atol=5e-3)
    scaled = machine(prior=np.diag([4.0, 4.0, 4.0, 4.0])).fit(X, Y)
    stronger = machine(C=2.0).fit(X, Y)  # R = c I is the same machine with c C
    assert_allclose(scaled.coef_, stronger.coef_, atol=2e-2)


def test_rows_of_zeros_and_labels_of_one_row():
    X, Y = data()
    X[:5] = 0.0
    Y[:, 2] = np.arange(len(Y)) == 7
    for prior in (None, relation()):
        fitted = machine(prior=prior).fit(X, Y)
        assert np.isfinite(fitted.coef_).all()
        assert fitted.stop_reason_ == "tol"


def test_a_limit_of_passes_is_kept_and_warned_of():
    X, Y = data()
    with pytest.warns(ConvergenceWarning, match="duality gap of .* after max_iter=3 passes"):
        fitted = machine(max_iter=3).fit(X, Y)
    assert (fitted.n_iter_, fitted.stop_reason_) == (3, "max_iter")
    assert np.isfinite(fitted.gap_)


def bits_of(state):
    packed = state.pack()
    packed["history"].pop("seconds")
    return packed


@pytest.mark.parametrize("prior", [None, np.kron(np.eye(3), relation())], ids=["alone", "related"])
@pytest.mark.parametrize("n_rounds", [1, 2, 7])
def test_a_stopped_fit_goes_on_to_the_bit(prior, n_rounds, monkeypatch):
    monkeypatch.setattr(dual_ascent, "_WORK", 20_000)  # rounds that end in the midst of a pass
    X, Y = data(n_rows=200, n_labels=15)
    ones = np.ones(15)
    problem = LabelProblem(X, Y, np.ones(len(X)), ones, ones, prior, constant=1.0, tol=1e-4)
    solver = DualAscent()
    through = solver.solve(problem, solver.init(problem, np.random.RandomState(0)), Progress())
    assert through.stopped_because == "tol"
    assert len(through.history["dual"]) > n_rounds
    rounds = iter(range(n_rounds - 1))
    stops = Progress(after_round=lambda: next(rounds, None) is None)
    stopped = solver.solve(problem, solver.init(problem, np.random.RandomState(0)), stops)
    assert stopped.stopped_because == "callback"
    resumed = DualAscentState.unpack(through_a_file(stopped.pack()), problem)
    solver.solve(problem, resumed, Progress())
    assert_same(bits_of(resumed), bits_of(through))
    assert_array_equal(solver.finish(problem, resumed).coef, solver.finish(problem, through).coef)
    early = solver.finish(problem, stopped)  # of a state that was stopped the gap is found anew
    slow = reference.primal(
        np.hstack([X, np.ones((len(X), 1))]),
        Y,
        np.ones(Y.shape),
        np.vstack([early.coef, early.intercept]),
        np.eye(15) if prior is None else prior,
    )
    assert early.duals.sum() + early.gaps.sum() == pytest.approx(slow, rel=1e-9)


def test_a_machine_goes_on_after_its_time_was_over(monkeypatch):
    monkeypatch.setattr(dual_ascent, "_WORK", 20_000)
    X, Y = data(n_rows=200)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        late = machine(warm_start=True, max_seconds=1e-9).fit(X, Y)
    assert late.n_iter_ < machine().fit(X, Y).n_iter_
    late.set_params(max_seconds=None).fit(X, Y)
    assert_array_equal(late.coef_, machine().fit(X, Y).coef_)


@pytest.mark.combinations
@pytest.mark.parametrize("loss", ["hinge", "correlated_hamming"])
@pytest.mark.parametrize("is_related", [False, True])
def test_a_warm_start_goes_on_from_the_coefficients(loss, is_related, tmp_path):
    X, Y = data(n_rows=200, n_labels=11)
    R = 0.5 * np.eye(11) + 0.04 if is_related else None
    first = {"prior": R, "loss": loss, "fit_intercept": True, "intercept_scaling": 2.0}
    warm = machine(warm_start=True, **first).fit(X[:180], Y[:180])
    assert_array_equal(warm.coef_, machine(**first).fit(X[:180], Y[:180]).coef_)
    save(warm, tmp_path / "warm.widemargin")
    warm = load(tmp_path / "warm.widemargin")
    few = warm.n_iter_
    assert warm.fit(X[:180], Y[:180]).n_iter_ <= max(2, few / 5)
    assert warm.stop_reason_ == "tol"
    for settings, n_rows in (({"C": 0.6}, 180), ({"C": 0.3}, 180), ({}, 200), ({}, 150)):
        warm.set_params(**settings)
        cold = clone(warm).fit(X[:n_rows], Y[:n_rows])
        warm.fit(X[:n_rows], Y[:n_rows])
        assert warm.gap_ <= 1e-6 * warm.objective_
        assert warm.objective_ == pytest.approx(cold.objective_, rel=3e-6)
        assert warm.objective_ == pytest.approx(warm.dual_objective_ + warm.gap_)
    weights = (np.arange(150) % 4 > 0).astype(float)
    warm.fit(X[:150], Y[:150], sample_weight=weights)
    cold = clone(warm).fit(X[:150], Y[:150], sample_weight=weights)
    assert warm.objective_ == pytest.approx(cold.objective_, rel=3e-6)
    with pytest.raises(ValueError, match="labels and features of the fit before"):
        warm.fit(X[:, :4], Y)
    with pytest.raises(ValueError, match="labels and features of the fit before"):
        warm.set_params(prior=None).fit(X, Y[:, :4])


def test_coefficients_are_kept_for_a_warm_start_alone():
    X, Y = data()
    assert "_row_coef" not in vars(machine().fit(X, Y))
    warm = machine(warm_start=True).fit(X, Y)
    signed = warm._row_coef.toarray() * (2 * Y - 1)
    assert_allclose(warm.coef_, (X.T @ signed).T, atol=1e-12)
    warm.set_params(warm_start=False).fit(X, Y)
    assert "_row_coef" not in vars(warm)


def test_a_state_that_is_damaged_is_refused():
    X, Y = data()
    ones = np.ones(N_LABELS)
    problem = LabelProblem(X, Y, np.ones(len(X)), ones, ones)
    packed = DualAscent().init(problem, np.random.RandomState(0)).pack()
    block = packed["blocks"][0]
    for name, bad in {
        "order": block["order"] * 0,
        "next": len(X) + 1,
        "weights": block["weights"][:-1],
        "lanes": block["lanes"][:2],
        "phase": 9,
        "random": "0",
    }.items():
        with pytest.raises(ValueError, match="widemargin"):
            DualAscentState.unpack(packed | {"blocks": [block | {name: bad}]}, problem)
    with pytest.raises(ValueError, match=r"damaged|shorter"):
        DualAscentState.unpack(packed | {"blocks": []}, problem)


@pytest.fixture(scope="module")
def yeast():
    """Return rows and labels of the training rows of yeast; skips where there are none to read."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA names no folder of data sets")
    path = Path(folder) / "multilabel"
    json.loads((path / "index.json").read_text(encoding="utf-8"))
    with bz2.open(path / "yeast_train.svm.bz2") as file:
        X, sets = load_svmlight_file(file, n_features=103, multilabel=True)
    Y = np.zeros((len(sets), 14), dtype=int)
    for row, labels in enumerate(sets):
        Y[row, np.asarray(labels, dtype=int)] = 1
    return X, Y


def test_the_known_optimum_of_yeast(yeast):
    X, Y = yeast
    fitted = machine(C=0.5, fit_intercept=True, tol=1e-5, n_jobs=2).fit(X, Y)
    assert fitted.dual_objective_ == pytest.approx(8652.27, rel=1e-5)


def test_the_known_optimum_of_yeast_with_a_prior(yeast):
    X, Y = yeast
    signs = 2.0 * Y[500:1500] - 1.0
    fitted = machine(C=1.0, prior=signs.T @ signs / 1000, tol=1e-6).fit(X[:150], Y[:150])
    assert fitted.dual_objective_ == pytest.approx(2151.36658, rel=1e-6)


def test_a_prior_of_labels_is_taken_as_it_is():
    X, Y = data()
    prior = priors.from_labels(Y)
    by_object, by_matrix = machine(prior=prior).fit(X, Y), machine(prior=prior.matrix).fit(X, Y)
    assert_allclose(by_object.coef_, by_matrix.coef_, atol=5e-3)
    assert by_object.objective_ == pytest.approx(by_matrix.objective_, rel=2e-6)


def _wide_rows():
    """Rows of which each label knows few features, so that most coefficients are zero."""
    rng = np.random.RandomState(0)
    topics = rng.randint(6, size=90)
    rows, columns = np.repeat(np.arange(90), 8), rng.randint(40, size=(90, 8))
    X = sp.csr_matrix((rng.rand(720), (rows, (40 * topics[:, np.newaxis] + columns).ravel())))
    Y = (topics[:, np.newaxis] == np.arange(6)).astype(int)
    return sp.csr_matrix(X, shape=(90, 400)), Y


@pytest.mark.parametrize("form", ["array", "csr"])
def test_sparse_coefficients_predict_and_travel_as_dense_ones(form, tmp_path):
    X, Y = _wide_rows()
    machine = LinearMultiLabelClassifier(fit_intercept=False, random_state=0).fit(X, Y)
    assert sp.issparse(machine.model_.coef)
    assert machine.coef_.format == "csr"
    assert machine.coef_.shape == (6, 400)
    table = machine.coef_.toarray()
    stored = machine.coef_.nnz * 12 + 4 * 401
    assert stored < table.nbytes
    rows = X.toarray() if form == "array" else X
    expected = X.toarray() @ table.T
    assert_allclose(machine.decision_function(rows), expected, rtol=0, atol=1e-12)
    assert_array_equal(machine.predict(rows), expected > 0)
    assert_allclose(machine.compile().decision_function(rows), expected, rtol=0, atol=1e-6)
    save(machine, tmp_path / "machine.wm")
    loaded = load(tmp_path / "machine.wm")
    assert sp.issparse(loaded.coef_)
    assert_array_equal(loaded.decision_function(rows), machine.decision_function(rows))


def test_coefficients_of_which_most_are_not_zero_stay_an_array():
    X, Y = _wide_rows()
    machine = LinearMultiLabelClassifier(random_state=0).fit(X[:, :40].toarray() + 1.0, Y)
    assert isinstance(machine.coef_, np.ndarray)


def test_a_single_sparse_score_is_answered_by_its_sign():
    model = LinearMap(sp.csr_matrix([[1.0], [0.0]]), np.zeros(1))
    assert model.best(np.array([[1.0, 0.0], [-1.0, 0.0]])).tolist() == [1, 0]
    with pytest.raises(ValueError, match="row 1"):
        model.scores(np.array([[1.0, 0.0], [np.nan, 0.0]]), check=True)

"""A part of the scores that is linear in the features: models that have one, and fits of it."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.learned_basis import adaptive_rbf
from reference.losses import twin
from sklearn.linear_model import LogisticRegression
from sparse_machines import sparse_machine

import widemargin
from widemargin import LearnedBasis, SparseKernelClassifier, SparseKernelClassifierCV, _native
from widemargin.compiled import CompiledPredictor
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    CustomKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from widemargin.losses import WestonWatkins
from widemargin.models import KernelExpansion, LinearMap
from widemargin.readouts import Readout
from widemargin.solvers.units.linear_part import MOST_LINEAR_FEATURES, LinearPart
from widemargin.sparse_kernel import learned

pytestmark = [pytest.mark.combinations, pytest.mark.turns("metric", "solver", "n_outputs")]

N_BASIS, N_FEATURES = 9, 6
METRICS = ("none", "diagonal", "full")
_draw = np.random.RandomState(3)
KERNELS = {
    "rbf": RBF(0.2),
    "laplacian": Laplacian(0.1),
    "polynomial": Polynomial(0.2, degree=2, coef0=1.0),
    "linear": Linear(),
    "widths": AdaptiveRBF(_draw.uniform(0.05, 0.5, N_BASIS)),
    "weights": AdaptiveRBF(_draw.uniform(0.05, 0.5, N_BASIS), _draw.rand(N_FEATURES)),
    "map": AdaptiveRBF(_draw.uniform(0.05, 0.5, N_BASIS), 0.5 * _draw.randn(N_FEATURES, 2)),
}
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_metric = pytest.mark.parametrize("metric", METRICS)
both_sizes = pytest.mark.parametrize("n_outputs", [1, 4])


def expansion(kernel=KERNELS["rbf"], n_outputs=3, n_features=N_FEATURES, offset=0.0):
    rng = np.random.RandomState(0)
    return KernelExpansion(
        kernel,
        offset + rng.randn(N_BASIS, n_features),
        rng.randn(N_BASIS, n_outputs),
        rng.randn(n_outputs),
        linear=rng.randn(n_features, n_outputs),
    )


def rows_for(model, n_rows=70, offset=0.0):
    rng = np.random.RandomState(1)
    rows = offset + rng.randn(n_rows, model.n_features) * (rng.rand(n_rows, 1) < 0.8)
    return rows.astype(np.float32).astype(np.float64)


def formula(model, rows):
    """Return the scores, from kernel values of rows as they are."""
    values = model.kernel.block(rows, np.asarray(model.basis), 1)
    if isinstance(model.kernel, AdaptiveRBF):
        values = adaptive_rbf(rows, model.basis, model.kernel.widths, model.kernel.metric)
    return values @ model.coef + rows @ model.linear + model.intercept


def assert_near(found, expected, tolerance):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


# Models


@every_kernel
@both_sizes
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_those_of_the_formula(kernel, n_outputs, dtype):
    model = expansion(KERNELS[kernel], n_outputs)
    rows = rows_for(model)
    expected = formula(model, rows)
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    for form in (rows.astype(dtype), sp.csr_matrix(rows.astype(dtype))):
        scores = model.scores(form)
        assert scores.dtype == dtype
        assert_near(scores, expected, tolerance)
        best = scores[:, 0] > 0 if n_outputs == 1 else scores.argmax(axis=1)
        assert_array_equal(model.best(form), best)
        assert_array_equal(model.scores(form[:1]), scores[:1])


def test_a_single_row_of_a_compiled_predictor():
    model = expansion()
    predictor = CompiledPredictor(model, Readout.of_classes(np.array(["a", "b", "c"])))
    rows = rows_for(model)
    labels = np.array(["a", "b", "c"])[formula(model, rows).argmax(axis=1)]
    assert [predictor.predict_one(row) for row in rows] == labels.tolist()
    again = pickle.loads(pickle.dumps(predictor))
    assert_array_equal(again.decision_function(rows), predictor.decision_function(rows))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_two_steps_give_what_one_pass_gives(dtype, monkeypatch):
    model = expansion()
    rows = rows_for(model, 600)
    monkeypatch.setattr("widemargin.models._PACKED_ENTRIES", 0)
    monkeypatch.setattr("widemargin.models._BLOCK_ENTRIES", 0)  # more than one block
    assert model.predictor(dtype) is None
    for form in (rows.astype(dtype), sp.csr_matrix(rows.astype(dtype))):
        assert_near(model.scores(form, check=True), formula(model, rows), 1e-6)
        assert_array_equal(model.best(form), formula(model, rows).argmax(axis=1))
    rows[500, 2] = np.nan
    with pytest.raises(ValueError, match="row 500"):
        model.scores(rows, check=True)


def test_wide_rows_of_few_entries():
    model = expansion(RBF(1e-3), n_features=400)
    rows = sp.random(40, 400, density=0.03, format="csr", random_state=0)
    assert_near(model.scores(rows), formula(model, rows.toarray()), 1e-13)
    single = rows.astype(np.float32)
    assert_near(model.scores(single), formula(model, single.toarray().astype(float)), 1e-5)


def test_rows_far_from_zero_stay_in_single_precision():
    offset = 1000.0
    model = expansion(offset=offset)
    model = replace(model, intercept=model.intercept - offset * model.linear.sum(axis=0))
    rows = rows_for(model, offset=offset)
    assert isinstance(model.predictor(np.float32), _native.PredictorFloat32)
    assert_near(model.scores(rows, dtype=np.float32), formula(model, rows), 1e-5)


def test_single_precision_is_left_where_the_linear_part_cancels():
    model = expansion(n_outputs=2)
    large = 1e6 * np.repeat([[1.0], [-0.3], [-0.7], [0.9], [-0.4], [-0.5]], 2, axis=1)
    along = np.linspace(-1.0, 1.0, N_BASIS)[:, None] * np.ones(6)  # where it sums to zero
    model = replace(model, basis=along + 1e-6 * model.basis, linear=large)
    assert isinstance(model.predictor(np.float32), _native.PredictorFloat64)


def test_stages_have_the_linear_part():
    model = expansion()
    rows = rows_for(model)
    stages = [(model.coef[:4], model.intercept), (model.coef, model.intercept)]
    first, last = model.staged_scores(rows, stages)
    shorter = replace(model, basis=model.basis[:4], coef=model.coef[:4])
    assert_near(first, formula(shorter, rows), 1e-13)
    assert_array_equal(last, model.scores(rows))


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.5)])
def test_what_is_linear_is_a_linear_map(kernel):
    model = expansion(kernel)
    if isinstance(kernel, RBF):
        assert model.collapsed() is None
        model = replace(model, basis=model.basis[:0], coef=model.coef[:0])
    collapsed = model.collapsed()
    assert isinstance(collapsed, LinearMap)
    rows = rows_for(model)
    expected = rows @ (model.basis.T @ model.coef + model.linear) + model.intercept
    for each in (model, collapsed):
        assert_near(each.scores(rows), expected, 1e-13)
        assert_near(each.scores(rows.astype(np.float32)), expected, 1e-6)


@pytest.mark.parametrize("kernel", [Precomputed(), CustomKernel(lambda x, z: x @ z.T)])
def test_kernels_without_a_formula_have_none(kernel):
    basis = np.arange(3) if isinstance(kernel, Precomputed) else np.ones((3, 5))
    with pytest.raises(ValueError, match="has no linear part"):
        KernelExpansion(kernel, basis, np.ones((3, 2)), np.ones(2), 5, np.ones((5, 2)))


@pytest.mark.parametrize("shape", [(6,), (5, 3), (6, 2), (3, 6)])
def test_a_linear_part_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match="does not go with 6 features and 3 scores"):
        replace(expansion(), linear=np.ones(shape))


def test_it_is_read_only():
    with pytest.raises(ValueError, match="read-only"):
        expansion().linear[0] = 1.0


# Fits


def machine(n_units=3, **parameters):
    settings = {"basis": "learned", "linear_part": True, "moves": 20, "random_state": 0}
    return sparse_machine(n_units, **(settings | parameters))


@pytest.fixture(scope="module")
def linear_problem():
    """Wide rows whose classes a linear function tells apart, half of them to learn from."""
    rng = np.random.RandomState(0)
    X = rng.randn(800, 150) * rng.uniform(0.5, 20.0, 150) + rng.randn(150)
    y = np.argmax((X / X.std(axis=0)) @ rng.randn(150, 3), axis=1)
    return X[:400], y[:400], X[400:], y[400:]


@pytest.mark.thorough
def test_few_vectors_say_what_a_linear_model_says(linear_problem):
    X, y, others, labels = linear_problem
    scale = X.std(axis=0)
    peer = LogisticRegression(C=0.1, max_iter=500).fit(X / scale, y).score(others / scale, labels)
    with_part = machine(C=10.0).fit(X, y)
    without = machine(C=10.0, linear_part=False).fit(X, y)
    assert with_part.score(others, labels) > peer - 0.02
    assert without.score(others, labels) < peer - 0.15
    assert with_part.objective_ < 0.5 * without.objective_


@every_metric
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_is_that_of_the_model(metric, n_classes, fit_intercept, three_classes):
    X, y = three_classes
    y = np.minimum(y, n_classes - 1)
    C = 3.0
    fitted = machine(metric=metric, C=C, fit_intercept=fit_intercept, gradient_tol=1e-6).fit(X, y)
    model = fitted.model_
    assert fitted.linear_coef_ is model.linear
    assert model.linear.shape == (X.shape[1], 1 if n_classes == 2 else 3)
    # The regulariser is that of coefficients of standardised features, each of a share of a row.
    mean, scale = X.mean(axis=0), X.std(axis=0)
    least = 0.1 * (X.max(axis=0) - X.min(axis=0))
    seen = np.maximum(scale, least) * np.sqrt(X.shape[1])
    parts = [model.coef, model.linear * seen[:, None], model.intercept + mean @ model.linear]
    scores = model.scores(X)
    if n_classes == 2:
        # The two columns are opposite at the optimum.
        scores, parts = np.hstack([-scores, scores]) / 2, [part / np.sqrt(2) for part in parts]
    if not fit_intercept:
        assert_allclose(parts.pop(), 0.0, atol=1e-9)
    value = twin(WestonWatkins()).value
    targets = WestonWatkins().encode(y, n_classes)
    loss = sum(value(row, target) for row, target in zip(scores, targets, strict=True))
    size = 0.5 * sum(np.sum(part**2) for part in parts)
    assert fitted.objective_ == pytest.approx(size + C * loss, rel=1e-5)


@every_metric
@pytest.mark.parametrize("solver", ["auto", "projection", "adam"])
def test_every_solver_fits_it(metric, solver, three_classes):
    X, y = three_classes
    plain = machine(metric=metric, solver=solver, linear_part=False, C=1.0).fit(X, y)
    fitted = machine(metric=metric, solver=solver, C=1.0, early_stopping=True).fit(X, y)
    assert fitted.model_.linear.any()
    assert "validation_score" in fitted.history_
    assert machine(metric=metric, solver=solver, C=1.0).fit(X, y).objective_ < plain.objective_


def test_files_pickles_and_compiled_machines(linear_problem, tmp_path):
    X, y, others, _ = linear_problem
    fitted = machine(loss="logistic").fit(X, y)
    scores = fitted.decision_function(others)
    widemargin.save(fitted, tmp_path / "machine")
    loaded = widemargin.load(tmp_path / "machine")
    assert loaded.basis == fitted.basis
    for again in (loaded, pickle.loads(pickle.dumps(fitted))):
        assert_array_equal(again.decision_function(others), scores)
        assert_array_equal(again.linear_coef_, fitted.linear_coef_)
    assert_near(fitted.compile().decision_function(others), scores, 1e-5)
    assert_array_equal(next(fitted.staged_decision_function(others)), scores)


def test_rows_of_weight_two_are_as_two_rows(three_classes):
    X, y = three_classes
    twice = machine().fit(np.vstack([X, X[:20]]), np.append(y, y[:20]))
    weighed = machine().fit(X, y, sample_weight=1.0 + (np.arange(len(y)) < 20))
    assert_array_equal(weighed.decision_function(X), twice.decision_function(X))


def test_a_warm_start_solves_for_it_anew(three_classes):
    X, y = three_classes
    for before, after in ((True, True), (True, False), (False, True)):
        fitted = machine(3, warm_start=True, linear_part=before, C=1.0).fit(X, y)
        fitted.set_params(max_basis=5, basis__linear_part=after).fit(X, y)
        assert fitted.n_basis_ == 5
        assert (fitted.model_.linear is not None) == after


def test_units_that_meet_leave_it(three_classes, monkeypatch):
    X, y = three_classes
    monkeypatch.setattr(learned, "_MEETING", 2.0)
    with pytest.warns(UserWarning, match="met others"):
        fitted = machine(6).fit(X, y)
    assert fitted.n_basis_ < 6
    assert fitted.score(X, y) > 0.8
    assert fitted.linear_coef_.shape == (X.shape[1], 3)


def test_features_that_are_always_the_same_count_for_nothing(three_classes):
    X, y = three_classes
    fitted = machine().fit(np.column_stack([X, np.full(len(y), 7.0)]), y)
    assert_array_equal(fitted.linear_coef_[-1], 0.0)
    assert fitted.linear_coef_[:-1].any()


def test_a_search_keeps_what_it_is_told(three_classes):
    X, y = three_classes
    basis = LearnedBasis(linear_part=True, metric="none")
    search = SparseKernelClassifierCV([2], Cs=[1.0], basis=basis, cv=2, random_state=0).fit(X, y)
    assert search.linear_coef_.shape == (X.shape[1], 3)


def test_what_is_seen_of_rows_and_back(rng):
    X = rng.randn(50, 4) * [1.0, 10.0, 1e-3, 0.0] + 100.0
    part = LinearPart(X, np.full(50, 0.02))
    seen = part.see(X)
    assert_allclose(np.mean(np.sum(seen**2, axis=1)), 0.75, rtol=1e-4)  # one of four is constant
    coefficients, intercept = rng.randn(4, 2), rng.randn(2)
    linear, moved = part.in_features(coefficients, intercept)
    assert_allclose(X @ linear + moved, seen @ coefficients + intercept, atol=1e-5)


# Without one


@pytest.mark.parametrize("linear_part", ["auto", False])
def test_there_is_none_unless_it_is_asked_for(linear_part, three_classes):
    fitted = machine(linear_part=linear_part).fit(*three_classes)
    assert fitted.model_.linear is None
    assert not hasattr(fitted, "linear_coef_")
    with pytest.raises(AttributeError, match="linear_part=True"):
        _ = fitted.linear_coef_
    assert not hasattr(SparseKernelClassifier(), "linear_coef_")


@pytest.mark.parametrize(
    ("value", "error"), [("yes", ValueError), (1, TypeError), (None, TypeError), (0.5, TypeError)]
)
def test_what_is_no_answer_is_refused(value, error, three_classes):
    with pytest.raises(error, match=r"basis\.linear_part"):
        machine(linear_part=value).fit(*three_classes)


def test_more_features_than_a_step_can_factorise_are_refused(rng):
    X = rng.randn(20, MOST_LINEAR_FEATURES + 1)
    with pytest.raises(ValueError, match="takes 2000 features at the most"):
        machine().fit(X, np.arange(20) % 2)

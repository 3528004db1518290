"""Input that is unusual and right: it is taken as it is meant."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import solve_triangular
from sparse_machines import sparse_machine

from widemargin import basis
from widemargin.losses import CLASS_LOSSES

pytestmark = pytest.mark.combinations

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_basis = pytest.mark.parametrize("basis", ["shared", "per_class"])
both_forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def machine(max_basis=8, **parameters):
    return sparse_machine(max_basis, **({"random_state": 0, "tol": 0} | parameters))


def scores_of(rows, classes, fit_rows=None, **parameters):
    fit_rows = rows if fit_rows is None else fit_rows
    return machine(**parameters).fit(fit_rows, classes).decision_function(rows)


@both_dtypes
def test_read_only_arrays(dtype, three_classes):
    X, y = three_classes
    X, weights = X.astype(dtype), np.ones(len(y))
    expected = scores_of(X, y)
    sparse = sp.csr_matrix(X)
    for part in (X, y, weights, sparse.data, sparse.indices, sparse.indptr):
        part.flags.writeable = False
    assert_array_equal(machine().fit(X, y, weights).decision_function(X), expected)
    assert_allclose(
        machine().fit(sparse, y, weights).decision_function(sparse), expected, atol=1e-3
    )


@both_dtypes
def test_arrays_that_are_not_contiguous(dtype, three_classes):
    X, y = three_classes
    X = X.astype(dtype)
    expected = scores_of(X, y)
    assert_array_equal(scores_of(np.asfortranarray(X), y), expected)
    assert_array_equal(scores_of(np.repeat(X, 2, axis=1)[:, ::2], np.repeat(y, 3)[::3]), expected)
    assert_array_equal(scores_of(X[::-1][::-1], y[::-1][::-1]), expected)


def test_numbers_of_other_types(three_classes):
    X, y = three_classes
    whole = np.round(4 * X)
    expected = scores_of(whole, y)
    for other in (whole.astype(object), whole.astype(int), whole.astype(np.int8), whole.tolist()):
        assert_array_equal(scores_of(other, y), expected)
    assert_array_equal(scores_of(whole.astype(np.float16), y), expected)
    assert_array_equal(scores_of(whole.astype(">f8"), y), expected)
    assert scores_of(whole > 0, y).dtype == np.float64


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_indices_of_64_bits(container, three_classes):
    X, y = three_classes
    narrow, wide = container(X), container(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert_array_equal(scores_of(wide, y), scores_of(narrow, y))
    assert wide.indices.dtype == np.int64


@pytest.mark.parametrize("form", [sp.csc_matrix, sp.coo_matrix, sp.lil_matrix, sp.csc_array])
def test_sparse_rows_of_other_formats(form, three_classes):
    X, y = three_classes
    assert_array_equal(scores_of(form(X), y), scores_of(sp.csr_matrix(X), y))


@every_basis
def test_sparse_rows_with_entries_twice_and_out_of_order(basis, three_classes):
    X, y = three_classes
    n_rows, n_features = X.shape
    order = np.array([2, 0, 3, 1])
    columns = np.tile(np.hstack([order, order]), n_rows)
    values = np.hstack([0.25 * X[:, order], 0.75 * X[:, order]]).ravel()
    starts = np.arange(n_rows + 1) * 2 * n_features
    messy = sp.csr_matrix((values, columns, starts), shape=X.shape)
    assert not messy.has_canonical_format
    kept = messy.data.copy(), messy.indices.copy()
    scores = scores_of(messy, y, basis=basis)
    assert_allclose(scores, scores_of(sp.csr_matrix(X), y, basis=basis), atol=1e-8)
    assert_array_equal(messy.data, kept[0])
    assert_array_equal(messy.indices, kept[1])


def test_sparse_rows_with_stored_zeros_and_empty_rows(three_classes):
    X, y = three_classes
    X = X.copy()
    X[5] = 0.0
    X[7, 2] = 0.0
    stored = sp.csr_matrix(np.where(X == 0.0, 1.0, X))
    stored.data[np.flatnonzero(X.ravel() == 0.0)] = 0.0
    assert stored.nnz == X.size
    assert_allclose(scores_of(stored, y), scores_of(sp.csr_matrix(X), y), atol=1e-8)


def test_pandas_in_with_names_of_features_and_of_classes(three_classes):
    pd = pytest.importorskip("pandas")
    X, y = three_classes
    names = np.array(["ash", "birch", "cedar"])
    frame = pd.DataFrame(X, columns=["height", "width", "age", "shade"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = machine().fit(frame, pd.Series(names[y]))
        predicted = fitted.predict(frame)
    assert list(fitted.feature_names_in_) == list(frame.columns)
    assert list(fitted.classes_) == list(names)
    assert_array_equal(fitted.decision_function(frame), scores_of(X, y))
    assert_array_equal(predicted, names[fitted.decision_function(frame).argmax(axis=1)])
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(frame[["width", "height", "age", "shade"]])
    categories = pd.Series(names[y], dtype="category")
    assert_array_equal(machine().fit(frame, categories).decision_function(frame), scores_of(X, y))


@pytest.mark.parametrize("labels", [[True, False], [-5, 7], ["b", "a"], [0.0, 1.0]], ids=str)
def test_labels_of_any_kind(labels, two_classes):
    X, y = two_classes
    fitted = machine().fit(X, np.array(labels)[y])
    assert list(fitted.classes_) == sorted(labels)
    assert set(fitted.predict(X)) == set(labels)
    assert fitted.predict(X).dtype == np.array(labels).dtype


@every_basis
@both_forms
@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_rows_have_an_empty_answer(basis, form, n_classes, three_classes):
    X, y = three_classes
    names = np.array(["a", "b", "c"])
    fitted = machine(loss="logistic", basis=basis).fit(form(X), names[y % n_classes])
    none = form(X[:0])
    assert fitted.predict(none).shape == (0,)
    assert fitted.predict(none).dtype == names.dtype
    shape = (0,) if n_classes == 2 else (0, 3)
    assert fitted.decision_function(none).shape == shape
    assert fitted.predict_proba(none).shape == (0, n_classes)
    assert fitted.predict_log_proba(none).shape == (0, n_classes)
    assert {scores.shape for scores in fitted.staged_decision_function(none)} == {shape}


def test_no_rows_of_a_kernel_matrix_have_an_empty_answer(three_classes):
    X, y = three_classes
    fitted = machine(kernel="precomputed").fit(X @ X.T, y)
    assert fitted.predict((X @ X.T)[:0]).shape == (0,)


@pytest.mark.parametrize("scale", [1e6, 1e-12])
@both_forms
@both_dtypes
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_features_of_any_scale(scale, form, dtype, kernel, three_classes):
    X, y = three_classes
    settings = {"kernel": kernel, "n_candidates": "all", "max_basis": 6}
    expected = machine(**settings).fit(form(X.astype(dtype)), y)
    scaled = form((scale * X).astype(dtype))
    fitted = machine(**settings).fit(scaled, y)
    tolerance = 1e-3 if dtype == np.float32 else 1e-9
    assert fitted.objective_ == pytest.approx(expected.objective_, rel=tolerance)


@pytest.mark.parametrize("scale", [1e6, 1e-12])
@both_dtypes
@pytest.mark.parametrize("kernel", ["laplacian", "linear"])
def test_a_scale_from_which_nothing_is_learned_is_told(scale, dtype, kernel, three_classes):
    X, y = three_classes
    usual = machine(kernel=kernel, C=1.0).fit(X.astype(dtype), y).objective_
    at_zero = 2.0 * len(y) / 2.0  # two wrong classes a row, each 1/2, for Weston-Watkins
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        objective = machine(kernel=kernel, C=1.0).fit((scale * X).astype(dtype), y).objective_
    assert np.isfinite(objective)
    learned = at_zero - objective > 0.5 * (at_zero - usual)
    assert learned or any("scale" in str(warning.message) for warning in told)


def test_constant_features_change_nothing(three_classes):
    X, y = three_classes
    wider = np.hstack([X, np.full((len(X), 2), 7.5)])
    expected = scores_of(X, y, gamma=0.4)
    assert_allclose(scores_of(wider, y, gamma=0.4), expected, atol=1e-8)
    assert_allclose(scores_of(sp.csr_matrix(wider), y, gamma=0.4), expected, atol=1e-8)
    assert np.isfinite(scores_of(wider, y)).all()


@every_loss
@every_basis
def test_a_class_of_one_row_is_learned(loss, basis, two_classes):
    X, y = two_classes
    y = y.copy()
    y[17] = 2
    narrow = {"gamma": 5.0, "C": 100.0, "n_candidates": "all", "max_basis": 50}
    fitted = machine(loss=loss, basis=basis, **narrow).fit(X, y)
    assert list(fitted.classes_) == [0, 1, 2]
    assert fitted.predict(X[17:18])[0] == 2
    assert np.isfinite(fitted.decision_function(X)).all()


@every_basis
def test_fewer_rows_than_vectors_allowed(basis, two_classes):
    X, y = two_classes
    fitted = machine(max_basis=1_000_000, basis=basis).fit(X[:7], y[:7])
    assert fitted.n_basis_ == 7
    assert fitted.stop_reason_ == "exhausted"
    tiny = machine(max_basis=1_000_000).fit(X[:2], y[:2])
    assert list(tiny.predict(X[:2])) == list(y[:2])


@every_loss
@every_basis
@both_forms
@both_dtypes
@pytest.mark.parametrize("value", [1.0, 0.1])
def test_equal_rows_warn_and_leave_the_frequencies(loss, basis, form, dtype, value):
    X = form(np.full((20, 3), value, dtype=dtype))
    y = np.array([0] * 12 + [1] * 5 + [2] * 3)
    with pytest.warns(UserWarning, match="all rows of X as equal"):
        fitted = machine(loss=loss, basis=basis).fit(X, y)
    # Machines of single classes choose the same of the equal rows, whatever rounding makes of them.
    assert fitted.n_basis_ <= 1
    scores = fitted.decision_function(X)
    assert (np.diff(scores[0]) < 0).all()  # as the frequencies fall
    assert_array_equal(fitted.predict(X), np.zeros(20, dtype=int))


@every_basis
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@both_forms
def test_rows_of_zeros_under_the_linear_kernel(basis, fit_intercept, n_classes, form):
    X, y = form(np.zeros((20, 3))), np.arange(20) % n_classes
    settings = {"kernel": "linear", "basis": basis, "fit_intercept": fit_intercept}
    with pytest.warns(UserWarning, match="all rows of X as equal"):
        fitted = machine(**settings).fit(X, y)
    assert fitted.n_basis_ == 0
    assert np.isfinite(fitted.decision_function(X)).all()
    assert fitted.predict(X).shape == (20,)
    *_, last = fitted.staged_decision_function(X)
    assert_allclose(last, fitted.decision_function(X))


@pytest.mark.parametrize("n_rows", [20, 3000])  # columns of double precision, and of single first
def test_a_basis_without_vectors_has_nothing_to_solve(n_rows, monkeypatch):
    def solve_as_before_scipy_1_14(factor, right, **settings):
        assert len(factor) > 0, "illegal value in 7th argument of internal trtrs"
        return solve_triangular(factor, right, **settings)

    monkeypatch.setattr(basis, "solve_triangular", solve_as_before_scipy_1_14)
    X, y = np.zeros((n_rows, 3)), np.arange(n_rows) % 2
    with pytest.warns(UserWarning, match="all rows of X as equal"):
        fitted = machine(kernel="linear").fit(X, y)
    assert fitted.n_basis_ == 0
    assert fitted.dual_coef_.shape == (0, 1)
    assert np.isfinite(fitted.decision_function(X)).all()

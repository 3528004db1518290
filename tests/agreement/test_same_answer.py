"""One problem handed over in different ways has one answer."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import kernels as gaussian_process
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.kernels import RBF, Laplacian, Linear, Polynomial, Precomputed, Sigmoid
from widemargin.losses import CLASS_LOSSES

pytestmark = pytest.mark.combinations

GAMMA = 0.4
every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_basis = pytest.mark.parametrize("basis", ["shared", "per_class"])
every_kernel = pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid", "linear"])


def machine(max_basis=10, **parameters):
    settings = {"gamma": GAMMA, "tol": 0, "random_state": 0, "n_candidates": 20}
    return sparse_machine(max_basis, **(settings | parameters))


def same_bits(first, second, X):
    assert_array_equal(first.basis_indices_, second.basis_indices_)
    assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert_array_equal(first.intercept_, second.intercept_)
    assert_array_equal(first.history_["objective"], second.history_["objective"])
    assert_array_equal(first.decision_function(X), second.decision_function(X))


@every_loss
@every_basis
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_a_kernel_matrix_computed_in_advance(loss, basis, form, three_classes):
    X, y = three_classes
    K = rbf_kernel(X, gamma=GAMMA)
    known = machine(loss=loss, basis=basis, kernel="precomputed").fit(form(K), y)
    rbf = machine(loss=loss, basis=basis).fit(X, y)
    assert_array_equal(known.basis_indices_, rbf.basis_indices_)
    assert_array_equal(known.basis_, known.basis_indices_)
    assert_allclose(known.decision_function(form(K)), rbf.decision_function(X), atol=1e-6)


def test_a_kernel_of_the_gaussian_processes(three_classes):
    X, y = three_classes
    theirs = machine(kernel=gaussian_process.RBF(length_scale=np.sqrt(0.5 / GAMMA))).fit(X, y)
    ours = machine().fit(X, y)
    assert_array_equal(theirs.basis_indices_, ours.basis_indices_)
    assert_allclose(theirs.decision_function(X), ours.decision_function(X), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", RBF(GAMMA)),
        ("laplacian", Laplacian(GAMMA)),
        ("poly", Polynomial(GAMMA, degree=2, coef0=1.0)),
        ("sigmoid", Sigmoid(GAMMA, coef0=1.0)),
        ("linear", Linear()),
        ("precomputed", Precomputed()),
    ],
)
def test_a_kernel_object_is_the_kernel_of_that_name(name, kernel, three_classes):
    X, y = three_classes
    X = rbf_kernel(X) if name == "precomputed" else X
    by_name = machine(kernel=name, degree=2, coef0=1.0).fit(X, y)
    same_bits(machine(kernel=kernel).fit(X, y), by_name, X)


def test_a_loss_object_is_the_loss_of_that_name(three_classes):
    X, y = three_classes
    for name, loss in CLASS_LOSSES.items():
        same_bits(machine(loss=loss()).fit(X, y), machine(loss=name).fit(X, y), X)


@every_kernel
@every_basis
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows(kernel, basis, container, three_classes):
    X, y = three_classes
    X = X * (np.abs(X) > 0.5)
    full = machine(kernel=kernel, basis=basis).fit(X, y)
    sparse = machine(kernel=kernel, basis=basis).fit(container(X), y)
    assert_array_equal(sparse.basis_indices_, full.basis_indices_)
    assert sp.issparse(sparse.basis_)
    assert sparse.basis_.format == "csr"
    expected = full.decision_function(X)
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    assert_allclose(sparse.decision_function(container(X)), expected, **tolerance)
    assert_allclose(sparse.decision_function(X), expected, **tolerance)
    assert_allclose(full.decision_function(container(X)), expected, **tolerance)


@every_loss
@every_kernel
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_float32_stays_float32_and_is_near_float64(loss, kernel, form, three_classes):
    X, y = three_classes
    narrow = X.astype(np.float32)
    settings = {"loss": loss, "kernel": kernel, "n_candidates": "all", "max_basis": 4}
    half = machine(**settings).fit(form(narrow), y)
    full = machine(**settings).fit(form(narrow.astype(np.float64)), y)
    assert half.basis_.dtype == np.float32
    assert full.basis_.dtype == np.float64
    assert half.decision_function(form(narrow)).dtype == np.float32
    assert full.decision_function(form(X)).dtype == np.float64
    assert half.objective_ == pytest.approx(full.objective_, rel=1e-4)
    assert_allclose(
        half.decision_function(form(narrow)), full.decision_function(form(X)), atol=0.01
    )


@every_basis
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_seed_repeats_every_bit(basis, dtype, larger_problem):
    X, y = larger_problem
    X = X.astype(dtype)
    first = machine(basis=basis, max_basis=6).fit(X, y)
    same_bits(first, machine(basis=basis, max_basis=6).fit(X, y), X)
    other = machine(basis=basis, max_basis=6, random_state=1).fit(X, y)
    assert not np.array_equal(first.basis_indices_, other.basis_indices_)


@pytest.mark.parametrize(
    ("loss", "form", "dtype"),
    [
        ("weston_watkins", np.asarray, np.float32),
        ("crammer_singer", np.asarray, np.float64),
        ("logistic", sp.csr_matrix, np.float32),
    ],
)
def test_the_number_of_threads_changes_no_bit(loss, form, dtype, larger_problem):
    X, y = larger_problem
    X = form(X.astype(dtype))
    alone = machine(loss=loss, max_basis=6, n_jobs=1).fit(X, y)
    same_bits(alone, machine(loss=loss, max_basis=6, n_jobs=2).fit(X, y), X)


@every_basis
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_pickle_keeps_every_bit(basis, form, three_classes):
    X, y = three_classes
    X = form(X)
    first = machine(basis=basis, loss="logistic", warm_start=True).fit(X, y)
    second = pickle.loads(pickle.dumps(first))
    same_bits(first, second, X)
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    first.set_params(max_basis=14).fit(X, y)
    second.set_params(max_basis=14).fit(X, y)
    same_bits(first, second, X)


def test_rows_alone_have_the_scores_that_they_have_together(larger_problem):
    X, y = larger_problem
    fitted = machine(max_basis=30).fit(X, y)
    together = fitted.decision_function(X)
    alone = np.vstack([fitted.decision_function(row[None, :]) for row in X[:20]])
    assert_allclose(alone, together[:20], rtol=1e-10, atol=1e-12)
    assert_allclose(fitted.decision_function(X[::-1])[::-1], together, rtol=1e-10, atol=1e-12)

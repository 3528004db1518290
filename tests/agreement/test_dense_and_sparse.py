"""The same rows, dense or sparse, make the same machine.

Rows of few features, and those with many entries, are computed with as dense ones and agree to the
bit. Others meet the basis entry by entry; what they are computed to differs by rounding.
"""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.kernels import suited
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sparse_machines import sparse_machine

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    compress,
)
from widemargin.candidates import choose_jointly
from widemargin.estimation.named_kernels import scale_gamma
from widemargin.kernels import (
    RBF,
    ChiSquare,
    Laplacian,
    Linear,
    Polynomial,
    computes_densely,
)

pytestmark = pytest.mark.combinations

LOADERS = {
    "iris": load_iris,
    "wine": load_wine,
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
}
KERNELS = ("rbf", "laplacian", "chi2", "poly", "linear")
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_kernel_object = pytest.mark.parametrize(
    "kernel",
    [RBF(0.3), Laplacian(0.2), ChiSquare(0.2), Polynomial(0.5, 3, 1.0), Linear()],
    ids=KERNELS,
)


@functools.cache
def load(name, *, scaled=False, dtype=np.float64, n_rows=300):
    """Return rows and labels of a data set, as it is or standardised."""
    if name == "generated":
        X, y = make_classification(n_rows, 20, n_informative=8, n_classes=4, random_state=0)
        X = X * (np.abs(X) > 0.5)
    else:
        X, y = LOADERS[name](return_X_y=True)
        some = np.random.RandomState(0).permutation(len(y))[:n_rows]
        X, y = X[some], y[some]
    X = StandardScaler().fit_transform(X) if scaled else X
    return np.ascontiguousarray(X, dtype=dtype), y


def wide_rows(n_rows, n_features, share, dtype=np.float64):
    """Return rows of which this share of entries is not zero, and labels of four classes."""
    rng = np.random.RandomState(0)
    y = rng.randint(4, size=n_rows)
    centres = rng.randn(4, n_features) * (rng.rand(4, n_features) < 0.3)
    X = (centres[y] + rng.randn(n_rows, n_features)) * (rng.rand(n_rows, n_features) < share)
    return X.astype(dtype), y


def fit_both(estimator, X, y):
    """Return machines of the dense rows and of the same sparse ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (
            estimator.fit(X, y),
            clone(estimator).fit(sp.csr_matrix(X), y),
        )


def assert_same_bits(dense, sparse, X):
    assert_array_equal(sparse.basis_indices_, dense.basis_indices_)
    assert_array_equal(sparse.dual_coef_, dense.dual_coef_)
    assert_array_equal(sparse.intercept_, dense.intercept_)
    assert_array_equal(sparse.decision_function(X), dense.decision_function(X))


@pytest.mark.combinations(pairs=False)
@pytest.mark.parametrize("name", [*LOADERS, "generated"])
@pytest.mark.parametrize("scaled", [False, True], ids=["unscaled", "scaled"])
@both_dtypes
@every_kernel
@pytest.mark.parametrize(
    ("loss", "basis"),
    [
        ("weston_watkins", "shared"),
        ("logistic", "shared"),
        ("crammer_singer", "shared"),
        ("logistic", "per_class"),
    ],
)
def test_chosen_bases(name, scaled, dtype, kernel, loss, basis):
    X, y = load(name, scaled=scaled, dtype=dtype, n_rows=150)
    X = np.abs(X) if kernel == "chi2" else X
    settings = {"kernel": kernel, "loss": loss, "basis": basis, "n_candidates": 32}
    dense, sparse = fit_both(sparse_machine(10, random_state=0, **settings), X, y)
    assert_same_bits(dense, sparse, X)
    assert sparse.objective_ == dense.objective_
    assert sp.issparse(sparse.basis_)


@pytest.mark.combinations(pairs=False)
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
@both_dtypes
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_cubic_values_of_unscaled_rows(name, dtype, coef0):
    X, y = load(name, dtype=dtype)
    settings = {"kernel": "poly", "gamma": 1.0, "coef0": coef0, "C": 1.0, "loss": "logistic"}
    dense, sparse = fit_both(SparseKernelClassifier(30, random_state=0, **settings), X, y)
    assert_same_bits(dense, sparse, X)
    assert sparse.objective_ == dense.objective_


@pytest.mark.parametrize("solver", ["projection", "adam", "auto"])
@both_dtypes
def test_learned_bases(solver, dtype):
    X, y = load("wine", dtype=dtype)
    machine = sparse_machine(6, basis="learned", solver=solver, moves=5, random_state=0)
    dense, sparse = fit_both(machine, X, y)
    assert_same_bits(dense, sparse, X)
    assert sparse.objective_ == dense.objective_


@pytest.mark.parametrize("basis", ["shared", "learned"])
@pytest.mark.thorough
def test_choice_by_cross_validation(basis):
    X, y = load("iris", n_rows=60)
    basis = LearnedBasis(max_iter=6) if basis == "learned" else basis
    search = SparseKernelClassifierCV((3, 6), basis=basis, cv=2, random_state=0)
    dense, sparse = fit_both(search, X, y)
    assert sparse.best_params_ == dense.best_params_
    for name in ("stage", "param_C", "mean_test_score", "mean_test_loss"):
        assert_array_equal(sparse.cv_results_[name], dense.cv_results_[name])
    assert_array_equal(sparse.decision_function(X), dense.decision_function(X))


@pytest.mark.parametrize("estimator", [KernelClassifier, KernelPerceptron, KernelMIRA])
@both_dtypes
@every_kernel
@pytest.mark.parametrize("name", ["iris", "wine", "generated"])
def test_dual_machines(estimator, dtype, kernel, name):
    X, y = load(name, scaled=kernel in ("poly", "linear"), dtype=dtype)
    X = np.abs(X) if kernel == "chi2" else X
    dense, sparse = fit_both(estimator(kernel=kernel, random_state=0), X, y)
    assert_same_bits(dense, sparse, X)


@both_dtypes
def test_compressed_machines(dtype):
    X, y = load("generated", dtype=dtype)
    full = KernelClassifier(random_state=0).fit(X, y)
    dense = compress(full, 10, X, random_state=0, verbose=False)
    sparse = compress(full, 10, sp.csr_matrix(X), random_state=0, verbose=False)
    assert_same_bits(dense, sparse, X)


@both_dtypes
def test_more_rows_than_have_precise_columns(dtype):
    X, y = make_classification(2200, 12, n_informative=6, n_classes=3, random_state=0)
    X = np.ascontiguousarray(X * (np.abs(X) > 0.5), dtype=dtype)
    for kernel in ("rbf", "poly"):
        dense, sparse = fit_both(SparseKernelClassifier(8, kernel=kernel, random_state=0), X, y)
        assert_same_bits(dense, sparse, X)


@both_dtypes
@every_kernel
def test_wide_rows_of_many_entries(dtype, kernel):
    X, y = wide_rows(200, 400, share=0.3, dtype=dtype)
    X = np.abs(X) if kernel == "chi2" else X
    assert computes_densely(sp.csr_matrix(X))
    dense, sparse = fit_both(SparseKernelClassifier(10, kernel=kernel, random_state=0), X, y)
    assert_same_bits(dense, sparse, X)


@pytest.mark.combinations(pairs=False)
@both_dtypes
@every_kernel
@pytest.mark.parametrize("loss", ["weston_watkins", "logistic"])
def test_wide_rows_of_few_entries_agree_but_for_rounding(dtype, kernel, loss):
    X, y = wide_rows(300, 1000, share=0.04, dtype=dtype)
    X = np.abs(X) if kernel == "chi2" else X
    assert not computes_densely(sp.csr_matrix(X))
    settings = {"kernel": kernel, "loss": loss, "gradient_tol": 1e-6}
    dense, sparse = fit_both(sparse_machine(15, random_state=0, **settings), X, y)
    assert_array_equal(sparse.basis_indices_, dense.basis_indices_)
    tolerance = 1e-10 if dtype == np.float64 else 1e-5
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=tolerance)
    scores = dense.decision_function(X)
    assert_allclose(
        sparse.decision_function(X), scores, rtol=0, atol=10 * tolerance * np.abs(scores).max()
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("settings", [{"kernel": "linear"}, {"kernel": "poly", "degree": 2}])
def test_vectors_that_are_equally_good_are_chosen_alike(seed, settings):
    """The last vector that spans all rows may be any: rounding must not say which."""
    few, y = make_classification(
        200, 6, n_informative=5, n_redundant=0, n_classes=3, random_state=seed
    )
    X = np.zeros((200, 400))
    X[:, ::70] = few
    assert not computes_densely(sp.csr_matrix(X))
    machine = SparseKernelClassifier(30, random_state=0, tol=0.0, **settings)
    dense, sparse = fit_both(machine, X, y)
    assert dense.stop_reason_ == "exhausted"
    assert_array_equal(sparse.basis_indices_, dense.basis_indices_)


def test_the_first_of_near_ties_is_chosen():
    slope = np.array([[1.0, 2.0, 2.0 * (1 + 1e-9)]])
    bend, overlap = np.eye(3)[None], np.eye(3)
    assert_array_equal(choose_jointly(slope, bend, overlap, 1), [2])
    assert_array_equal(choose_jointly(slope, bend, overlap, 3, near_tie=1e-6), [1, 2, 0])


@every_kernel_object
@both_dtypes
@pytest.mark.parametrize("n_features", [1, 7, 40, 256])
@pytest.mark.parametrize("block", ["block", "single_block", "double_block"])
def test_kernel_values(kernel, dtype, n_features, block):
    rng = np.random.RandomState(0)
    X = (rng.randn(530, n_features) * (rng.rand(530, n_features) < 0.3)).astype(dtype)
    X = suited(kernel, X)
    values = getattr(kernel, block)
    expected = values(X, X[:37])
    for left, right in ((sp.csr_matrix, sp.csr_matrix), (sp.csr_matrix, np.asarray)):
        assert_array_equal(values(left(X), right(X[:37]), 2), expected)
    assert_array_equal(kernel.diagonal(sp.csr_matrix(X)), kernel.diagonal(X))
    assert_array_equal(values(sp.csr_matrix(X[40:41]), X[:37]), expected[40:41])


@every_kernel_object
def test_double_precision_of_rows_in_single(kernel):
    X, _ = wide_rows(50, 300, share=0.05, dtype=np.float32)
    X = suited(kernel, X)
    exact = kernel.block(X.astype(np.float64), X[:9].astype(np.float64))
    for form in (np.asarray, sp.csr_matrix):
        values = kernel.double_block(form(X), form(X[:9]))
        assert values.dtype == np.float64
        assert_allclose(values, exact, rtol=1e-12, atol=1e-13)


@both_dtypes
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (4097, 3), (300, 256), (9000, 130)])
def test_gamma(dtype, shape):
    rng = np.random.RandomState(0)
    X = (rng.randn(*shape) * (rng.rand(*shape) < 0.3) * 1e3).astype(dtype)
    weights = rng.rand(shape[0])
    assert scale_gamma(sp.csr_matrix(X)) == scale_gamma(X)
    assert scale_gamma(sp.csr_matrix(X), weights) == scale_gamma(X, weights)


def test_norms_of_wide_sparse_rows_in_single_precision_are_summed_in_double():
    X, _ = wide_rows(50, 1000, share=0.05, dtype=np.float32)
    expected = np.square(X.astype(np.float64)).sum(axis=1)
    assert_allclose(Linear().diagonal(sp.csr_matrix(X)), expected, rtol=1e-14)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("iris", {"kernel": "poly", "gamma": 1.0}),
        ("iris", {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}),
        ("wine", {"kernel": "linear"}),
        ("breast_cancer", {"kernel": "linear"}),
    ],
)
def test_large_values_of_single_precision_rows_cost_no_digits(name, settings, form):
    """Rounded to single precision, columns of large values were mostly rounding error."""
    X, y = load(name, dtype=np.float32)
    machine = SparseKernelClassifier(30, loss="logistic", random_state=0, **settings)
    single = machine.fit(form(X), y)
    reported = single.objective_
    double = clone(machine).fit(form(X.astype(np.float64)), y)
    assert reported == pytest.approx(double.objective_, rel=1e-6)
    assert_array_equal(single.basis_indices_, double.basis_indices_)


@pytest.mark.combinations(pairs=False)
@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
@pytest.mark.parametrize("coef0", [0.0, 1.0])
@pytest.mark.parametrize("C", [1.0, 10.0, 1000.0])
def test_a_machine_far_from_its_optimum_says_so(name, coef0, C):
    """The gradient at zero is so large that a small share of it proves nothing."""
    X, y = LOADERS[name](return_X_y=True)
    machine = SparseKernelClassifier(
        40, kernel="poly", gamma=1.0, coef0=coef0, C=C, loss="logistic", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="could still be gained|relative gradient"):
        machine.fit(X, y)


@pytest.mark.thorough
def test_a_small_gradient_does_not_end_a_solve_that_has_much_to_gain():
    X, y = load_digits(return_X_y=True)
    settings = {"kernel": "linear", "C": 10.0, "random_state": 0}
    machine = SparseKernelClassifier(40, **settings).fit(X[:600], y[:600])
    exact = sparse_machine(40, gradient_tol=1e-9, max_iter=1000, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exact.fit(X[:600], y[:600])
    assert_array_equal(machine.basis_indices_, exact.basis_indices_)
    # A step that promises 1 % may be followed by others; by the gradient alone it was 40 %.
    assert machine.objective_ == pytest.approx(exact.objective_, rel=0.2)

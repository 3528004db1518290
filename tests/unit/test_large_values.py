"""Kernel values that are very large: computed with as long as that can be, and else refused."""

import warnings

import numpy as np
import pytest
from sklearn.svm import SVC
from sparse_machines import sparse_machine

from widemargin import KernelClassifier, compress
from widemargin.basis import BasisColumns
from widemargin.kernels import Linear, Precomputed
from widemargin.losses import CLASS_LOSSES

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_basis = pytest.mark.parametrize("basis", ["shared", "per_class"])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])
few_and_many = pytest.mark.parametrize("n_rows", [60, 2500])  # columns of single precision first


def three_clouds(n_rows, seed=0, n_features=4):
    rng = np.random.RandomState(seed)
    y = np.arange(n_rows) % 3
    return rng.randn(n_rows, n_features) + 2.0 * (np.arange(n_features) % 3 == y[:, None]), y


not_all_converge = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def fitted(X, y, max_basis=8, **parameters):
    """Return a machine, where no number on the way overflows or is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with np.errstate(all="raise", under="ignore"):
            machine = sparse_machine(max_basis, random_state=0, **parameters)
            return machine.fit(X, y)


@pytest.mark.combinations(pairs=False)
@not_all_converge
@every_loss
@every_basis
@both_dtypes
@few_and_many
def test_a_linear_kernel_of_large_features_learns_as_of_others(loss, basis, dtype, n_rows):
    X, y = three_clouds(n_rows)
    settings = {"kernel": "linear", "loss": loss, "basis": basis}
    expected = fitted(X, y, C=1e4, **settings).score(X, y)
    assert expected > 0.75
    for scale in (1e8, 1e12, 1e18, 1e24, 1e35):
        large = (scale * X).astype(dtype)
        machine = fitted(large, y, **settings)
        assert machine.score(large, y) > expected - 0.03, scale


@not_all_converge
@both_dtypes
def test_a_curvature_beside_which_the_regulariser_is_nothing(dtype):
    for seed in range(5):
        X, y = three_clouds(3000, seed, n_features=6)
        settings = {"kernel": "linear", "tol": 0, "gradient_tol": 1e-6}
        machine = fitted((1e8 * X).astype(dtype), y, max_basis=20, **settings)
        assert np.isfinite(machine.objective_)
        assert machine.score(1e8 * X, y) > 0.75


@not_all_converge
@few_and_many
def test_a_kernel_matrix_whose_sums_exceed_single_precision(n_rows):
    X, y = three_clouds(n_rows)
    K = (X @ X.T).astype(np.float32)
    expected = fitted(K, y, kernel="precomputed", C=1e4).score(K, y)
    large = K * np.float32(1e30)
    assert fitted(large, y, kernel="precomputed").score(large, y) > expected - 0.03


def test_columns_of_large_values_have_double_precision_from_the_start():
    X, _ = three_clouds(2500)
    settings = {"fit_intercept": True, "max_basis": 4, "n_threads": 1}
    assert BasisColumns(Linear(), X, **settings).dtype == np.float32
    assert BasisColumns(Linear(), 1e20 * X, **settings).dtype == np.float64
    large = np.full((5, 5), 1e30, dtype=np.float32)
    assert BasisColumns(Precomputed(), large, **settings).dtype == np.float64


def fit_shared(X, y):
    fitted(X, y, kernel="linear")


def fit_per_class(X, y):
    fitted(X, y, kernel="linear", basis="per_class")


def fit_poly(X, y):
    fitted(X, y, kernel="poly", gamma=1.0)


def fit_warm(X, y):
    machine = fitted(X / 1e120, y, kernel="linear", warm_start=True)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        machine.fit(X, y)


def fit_compressed(X, y):
    full = SVC(kernel="linear").fit(X / 1e120, y)
    compress(full, 5, X, random_state=0, verbose=False)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("fit", [fit_shared, fit_per_class, fit_poly, fit_warm, fit_compressed])
def test_values_beyond_all_computing_are_refused(fit):
    X, y = three_clouds(60)
    with pytest.raises(ValueError, match=r"beyond what can be computed with.*Scale the features"):
        fit(1e120 * X, y)


def test_rounding_of_rows_that_are_nearly_equal_is_measured():
    # Errors of such rows are alike, and do not cancel as those of others do.
    rng = np.random.default_rng(0)
    X = (16.0 + 1e-3 * rng.standard_normal((50, 5))).astype(np.float32)
    y = np.arange(50) % 2
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        machine = KernelClassifier(C=10.0, kernel="linear", solver="cutting_plane", epochs=2)
        machine.set_params(random_state=0).fit(X, y)
    assert any("rounding alone may change" in str(each.message) for each in told)

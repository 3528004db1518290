"""The exponential chi-square kernel: what it takes, its width, and every machine that uses it."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.kernels import chisquare
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import additive_chi2_kernel, chi2_kernel
from sklearn.utils import get_tags

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelMultiLabelClassifier,
    KernelPerceptron,
    SparseKernelClassifier,
    SparseKernelMultiLabelClassifier,
)
from widemargin.estimation.named_kernels import as_kernel, chi_square_gamma
from widemargin.kernels import RBF, ChiSquare
from widemargin.model_files import load, save
from widemargin.models import KernelExpansion
from widemargin.sparse_kernel.compression import compress

CLASS_MACHINES = {
    "chosen": SparseKernelClassifier(15, kernel="chi2", random_state=0),
    "per class": SparseKernelClassifier(15, kernel="chi2", basis="per_class", random_state=0),
    "larank": KernelClassifier(kernel="chi2", random_state=0),
    "full gradient": KernelClassifier(kernel="chi2", solver="full_gradient", random_state=0),
    "cutting plane": KernelClassifier(kernel="chi2", solver="cutting_plane", random_state=0),
    "perceptron": KernelPerceptron(kernel="chi2", epochs=5, random_state=0),
    "mira": KernelMIRA(kernel="chi2", epochs=5, random_state=0),
}
LABEL_MACHINES = {
    "chosen labels": SparseKernelMultiLabelClassifier(15, kernel="chi2", random_state=0),
    "labels": KernelMultiLabelClassifier(kernel="chi2", random_state=0),
}
MACHINES = CLASS_MACHINES | LABEL_MACHINES
every_machine = pytest.mark.parametrize("machine", MACHINES.values(), ids=list(MACHINES))
both_forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])


def histograms(n_rows=150, n_bins=20, seed=0):
    """Return histograms of 40 draws each, and which of three distributions they were drawn from."""
    rng = np.random.RandomState(seed)
    y = rng.randint(3, size=n_rows)
    shares = rng.dirichlet(np.full(n_bins, 0.7), size=3)
    X = np.array([rng.multinomial(40, 0.6 * shares[each] + 0.4 / n_bins) for each in y]) / 40.0
    return X, y


def targets_of(machine, y):
    return np.eye(3, dtype=int)[y] if machine in LABEL_MACHINES.values() else y


def fitted(machine, X, y):
    copied = copy.deepcopy(machine)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return copied.fit(X, targets_of(machine, y))


@every_machine
@both_forms
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_machine_learns_histograms(machine, form, dtype):
    X, y = histograms()
    X = X.astype(dtype)
    learned = fitted(machine, form(X), y)
    kernel = learned.model_.kernel
    assert isinstance(kernel, ChiSquare)
    assert learned.score(form(X), targets_of(machine, y)) > 0.8
    basis = learned.basis_.toarray() if sp.issparse(learned.basis_) else learned.basis_
    values = chi2_kernel(X.astype(np.float64), basis.astype(np.float64), gamma=kernel.gamma)
    expected = values @ learned.dual_coef_ + learned.intercept_
    found = learned.decision_function(form(X))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    compiled = learned.compile()
    assert_array_equal(compiled.predict(form(X)), learned.predict(form(X)))
    assert np.abs(compiled.decision_function(X) - expected).max() <= 1e-5 * np.abs(expected).max()


@every_machine
def test_a_model_file_has_the_same_machine(machine, tmp_path):
    X, y = histograms()
    learned = fitted(machine, X, y)
    save(learned, tmp_path / "machine")
    again = load(tmp_path / "machine")
    assert again.model_.kernel == learned.model_.kernel
    assert_array_equal(again.decision_function(X), learned.decision_function(X))


@every_machine
@both_forms
def test_negative_entries_are_refused_in_fit(machine, form):
    X, y = histograms()
    X[17, 3] = -0.25
    X[19, 4] = -1e-9
    message = (
        r"takes no negative entries: 2 of the rows' entries are below zero, down to -0.25 in "
        r"column 3\. Scale .*MinMaxScaler\(clip=True\)"
    )
    with pytest.raises(ValueError, match=message):
        fitted(machine, form(X), y)


@every_machine
@both_forms
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_negative_entries_are_refused_in_prediction(machine, form, method):
    X, y = histograms()
    learned = fitted(machine, X, y)
    X[17, 3] = -0.25
    for predictor in (learned, learned.compile(), learned.compile("float64")):
        with pytest.raises(ValueError, match=r"no negative entries.*-0.25 in column 3"):
            getattr(predictor, method)(form(X))


def test_a_single_negative_row_is_refused():
    X, y = histograms()
    predictor = fitted(CLASS_MACHINES["chosen"], X, y).compile()
    assert predictor.predict_one(X[3]) == predictor.predict(X[3:4])[0]
    X[3, 5] = -1
    with pytest.raises(ValueError, match=r"no negative entries.*column 5"):
        predictor.predict_one(X[3])
    X[3, 6] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        predictor.predict_one(X[3])


@both_forms
def test_without_the_check_scores_of_negative_rows_are_numbers(form):
    X, y = histograms()
    predictor = fitted(CLASS_MACHINES["chosen"], X, y).compile(check=False)
    assert np.isfinite(predictor.decision_function(form(-X))).all()
    assert np.isfinite(predictor.decision_function(form(X - 0.05))).all()


@pytest.mark.parametrize("name", ["larank", "perceptron", "mira"])
@pytest.mark.parametrize("first", [True, False], ids=["first batch", "later"])
@both_forms
def test_streams_refuse_negative_entries(name, first, form):
    X, y = histograms()
    machine = copy.deepcopy(CLASS_MACHINES[name]).set_params(epochs=1, gamma=1.0)
    if not first:
        machine.partial_fit(form(X[:50]), y[:50], classes=[0, 1, 2])
        machine.partial_fit(X[50:60], y[50:60])
    before = None if first else machine.decision_function(X)
    with pytest.raises(ValueError, match="no negative entries"):
        machine.partial_fit(form(X[60:] - 0.1), y[60:], classes=[0, 1, 2])
    if not first:
        assert_array_equal(machine.decision_function(X), before)


def test_tags_say_that_rows_are_positive():
    for machine in MACHINES.values():
        assert get_tags(machine).input_tags.positive_only
    objects = [ChiSquare(0.5), RBF(0.5), "rbf", np.dot]
    told = [get_tags(KernelClassifier(kernel=each)).input_tags.positive_only for each in objects]
    assert told == [True, False, False, False]


def test_a_learned_basis_has_another_kernel():
    X, y = histograms()
    with pytest.raises(ValueError, match="rbf"):
        SparseKernelClassifier(5, kernel="chi2", basis="learned").fit(X, y)


def test_a_model_has_no_negative_vectors():
    with pytest.raises(ValueError, match=r"no negative entries.*-2 in column 1"):
        KernelExpansion(ChiSquare(1.0), np.array([[1.0, -2.0]]), np.ones((1, 1)), np.zeros(1))


def test_compression_refuses_negative_rows():
    X, y = histograms()
    full = KernelClassifier(random_state=0).fit(X - 0.1, y)
    with pytest.raises(ValueError, match="no negative entries"):
        compress(full, 10, X - 0.1, kernel="chi2")
    smaller = compress(KernelClassifier(kernel="chi2", random_state=0).fit(X, y), 20, X)
    assert isinstance(smaller.model_.kernel, ChiSquare)
    assert smaller.score(X, y) > 0.8


# ---- the width


@both_forms
def test_the_width_by_rule_is_one_over_the_mean_distance_to_the_mean(form):
    X, _ = histograms()
    distances = -additive_chi2_kernel(X, X.mean(axis=0, keepdims=True))
    assert chi_square_gamma(form(X)) == pytest.approx(1 / distances.mean(), rel=1e-12)
    assert as_kernel("chi2", form(X)).gamma == chi_square_gamma(form(X))
    # Which is about what it is between rows.
    between = -additive_chi2_kernel(X).mean()
    assert 0.5 < chi_square_gamma(X) * between < 2.0


def test_wide_sparse_rows_have_the_same_width():
    rng = np.random.RandomState(0)
    X = sp.random(60, 3000, 0.02, format="csr", random_state=rng)
    distances = -additive_chi2_kernel(X.toarray(), np.asarray(X.mean(axis=0)))
    assert chi_square_gamma(X) == pytest.approx(1 / distances.mean(), rel=1e-12)


def test_rows_count_by_their_weights_as_if_repeated():
    X, _ = histograms(40)
    weights = np.random.RandomState(0).randint(0, 4, size=40)
    repeated = chi_square_gamma(np.repeat(X, weights, axis=0))
    assert chi_square_gamma(X, weights) == pytest.approx(repeated, rel=1e-12)
    assert chi_square_gamma(sp.csr_matrix(X), weights) == pytest.approx(repeated, rel=1e-12)


@both_forms
def test_dense_and_sparse_rows_have_the_same_width_to_the_bit(form):
    X, _ = histograms(700)
    assert chi_square_gamma(form(X)) == chi_square_gamma(X)


@pytest.mark.parametrize("rows", [np.zeros((5, 3)), np.full((5, 3), 0.1), np.ones((1, 4))])
@both_forms
def test_the_width_of_constant_rows_is_1(rows, form):
    assert chi_square_gamma(form(rows)) == 1.0


@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1e12])
def test_a_fit_does_not_depend_on_the_unit_of_counts(scale):
    X, y = histograms()
    machine = CLASS_MACHINES["chosen"]
    labels = fitted(machine, X, y).predict(X)
    assert (fitted(machine, scale * X, y).predict(scale * X) == labels).mean() > 0.98


# ---- values


@pytest.mark.parametrize("n_features", [1, 7, 33, 300])
@pytest.mark.parametrize("n_threads", [1, 2])
@both_forms
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_those_of_scikit_learn(n_features, n_threads, form, dtype):
    rng = np.random.RandomState(n_features)
    X = (rng.rand(90, n_features) * (rng.rand(90, n_features) < 0.4)).astype(dtype)
    kernel = ChiSquare(2.0 / n_features)
    expected = chi2_kernel(X.astype(np.float64), X[:17].astype(np.float64), kernel.gamma)
    tolerance = 2e-6 if dtype == np.float32 else 1e-13
    for basis in (form(X[:17]), X[:17]):
        found = kernel.block(form(X), basis, n_threads)
        assert found.dtype == dtype
        assert_allclose(found, expected, rtol=0, atol=tolerance)
        single = kernel.single_block(form(X), basis, n_threads)
        assert single.dtype == np.float32
        assert_allclose(single, expected, rtol=0, atol=2e-6)
        assert_allclose(kernel.double_block(form(X), basis), expected, rtol=0, atol=1e-13)


@both_forms
def test_nearly_equal_rows_keep_their_digits(form):
    rng = np.random.RandomState(0)
    X = 1e3 + rng.rand(30, 40)
    expected = chisquare(X, X, 50.0)
    assert_allclose(ChiSquare(50.0).block(form(X), form(X)), expected, rtol=0, atol=1e-11)
    assert_array_equal(np.diagonal(ChiSquare(1e9).block(form(X), form(X))), 1.0)


@pytest.mark.parametrize("gamma", [0.0, -1.0, np.inf, np.nan, True, "1"])
def test_widths_that_are_none_are_refused(gamma):
    with pytest.raises((ValueError, TypeError), match="gamma"):
        ChiSquare(gamma)

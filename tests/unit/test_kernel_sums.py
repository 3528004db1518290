"""Sums of kernels over groups of columns: what they are made of, and every machine with one."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.kernels import twin
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import get_tags

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelMultiLabelClassifier,
    KernelPerceptron,
    SparseKernelClassifier,
    SparseKernelMultiLabelClassifier,
)
from widemargin.estimation.named_kernels import as_kernel, chi_square_gamma, scale_gamma
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    CustomKernel,
    KernelSum,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from widemargin.model_files import load, save
from widemargin.models import KernelExpansion

PARTS = [("chi2", slice(0, 6)), ("rbf", [6, 8, 12, 10], 0.5), (Laplacian(0.02), [3, 9], 0.25)]
MACHINES = {
    "chosen": SparseKernelClassifier(15, random_state=0),
    "per class": SparseKernelClassifier(15, basis="per_class", loss="logistic", random_state=0),
    "larank": KernelClassifier(random_state=0),
    "full gradient": KernelClassifier(solver="full_gradient", random_state=0),
    "cutting plane": KernelClassifier(solver="cutting_plane", random_state=0),
    "perceptron": KernelPerceptron(epochs=5, random_state=0),
    "mira": KernelMIRA(epochs=5, random_state=0),
    "chosen labels": SparseKernelMultiLabelClassifier(15, random_state=0),
    "labels": KernelMultiLabelClassifier(random_state=0),
}
every_machine = pytest.mark.parametrize("name", list(MACHINES))
both_forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])


@pytest.fixture
def wine():
    return load_wine(return_X_y=True)


def fitted(name, X, y, parts=PARTS):
    machine = copy.deepcopy(MACHINES[name]).set_params(kernel=KernelSum(parts))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return machine.fit(X, targets(name, y))


def targets(name, y):
    return np.eye(3, dtype=int)[y] if "labels" in name else y


@every_machine
@both_forms
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_machine_predicts_by_the_sum(name, form, dtype, wine):
    X, y = wine
    X = X.astype(dtype)
    machine = fitted(name, form(X), y)
    kernel = machine.model_.kernel
    assert [type(part.kernel) for part in kernel] == [ChiSquare, RBF, Laplacian]
    assert machine.score(form(X), targets(name, y)) > 0.8
    basis = machine.basis_.toarray() if sp.issparse(machine.basis_) else machine.basis_
    expected = twin(kernel)(X, basis) @ machine.dual_coef_ + machine.intercept_
    found = machine.decision_function(form(X))
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    for given in ("float32", "float64"):
        compiled = machine.compile(given)
        assert_array_equal(compiled.predict(form(X)), machine.predict(form(X)))
        found = compiled.decision_function(form(X))
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert_array_equal(machine.compile().predict_one(X[3]), machine.predict(X[3:4])[0])


@every_machine
def test_a_model_file_has_the_same_machine(name, wine, tmp_path):
    X, y = wine
    machine = fitted(name, X, y)
    save(machine, tmp_path / "machine")
    again = load(tmp_path / "machine")
    assert again.kernel == machine.kernel == KernelSum(PARTS)
    assert again.model_.kernel == machine.model_.kernel
    assert_array_equal(again.decision_function(X), machine.decision_function(X))


def test_a_model_file_holds_no_function(wine, tmp_path):
    X, y = wine
    machine = fitted("chosen", X, y, [(RBF(1e-3), [0, 1]), (CustomKernel(np.inner), [2])])
    with pytest.raises(TypeError, match="CustomKernel"):
        save(machine, tmp_path / "machine")


@pytest.mark.parametrize("name", ["larank", "perceptron", "mira"])
def test_streams_take_the_widths_of_the_first_batch(name, wine):
    X, y = wine
    order = np.random.RandomState(0).permutation(len(y))
    X, y = X[order], y[order]
    machine = copy.deepcopy(MACHINES[name]).set_params(kernel=KernelSum(PARTS), epochs=1)
    for start in range(0, len(y), 40):
        some = slice(start, start + 40)
        machine.partial_fit(X[some], y[some], classes=[0, 1, 2])
    assert machine.model_.kernel == as_kernel(KernelSum(PARTS), X[:40])
    assert machine.score(X, y) > 0.5


def test_a_sum_is_better_than_one_kernel_where_features_are_of_two_kinds():
    rng = np.random.RandomState(0)
    y = rng.randint(2, size=400)
    shares = rng.dirichlet(np.ones(15), size=2)
    counts = np.array([rng.multinomial(30, 0.3 * shares[each] + 0.7 / 15) for each in y])
    far = 1e4 * rng.randn(400, 3) + 1e4 * y[:, np.newaxis]
    X = np.hstack([counts, far])
    half = slice(0, 200), slice(200, 400)
    kernel = KernelSum([("chi2", slice(0, 15)), ("rbf", slice(15, 18))])
    scores = {
        each: SparseKernelClassifier(40, C=1.0, kernel=each, random_state=0)
        .fit(X[half[0]], y[half[0]])
        .score(X[half[1]], y[half[1]])
        for each in (kernel, "rbf")
    }
    assert scores[kernel] > scores["rbf"] + 0.05


# ---- parts


def test_weights_are_the_mean_unless_they_are_given():
    kernel = KernelSum([(RBF(1.0), [0]), (RBF(2.0), [1], 3), (RBF(3.0), [2])])
    assert [part.weight for part in kernel] == [1 / 3, 3.0, 1 / 3]
    assert_allclose(kernel.diagonal(np.ones((4, 3))), np.full(4, 3 + 2 / 3), rtol=1e-15)


def test_columns_are_a_slice_or_numbers():
    some = [slice(2, 5), slice(None, 3), slice(1, 8, 3), range(2, 4), (3, 1), np.array([6, 0])]
    kernel = KernelSum([(RBF(1.0), columns) for columns in some])
    found = [part.columns for part in kernel]
    assert found == [(2, 3, 4), (0, 1, 2), (1, 4, 7), (2, 3), (3, 1), (6, 0)]


def test_equal_sums_are_equal():
    kernel = KernelSum([(RBF(1.0), slice(0, 3)), (Linear(), [4], 2)])
    same = KernelSum(((RBF(1.0), np.arange(3), 0.5), [Linear(), (4,), 2.0]))
    assert kernel == same
    assert hash(kernel) == hash(same)
    assert kernel != KernelSum([(RBF(1.0), slice(0, 3)), (Linear(), [4], 1)])
    for copied in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel)):
        assert copied == kernel
    machine = SparseKernelClassifier(5, kernel=kernel)
    assert clone(machine).kernel == kernel
    with pytest.raises(AttributeError):
        kernel.parts = ()


def test_the_text_of_a_sum_is_short():
    kernel = KernelSum([(RBF(0.5), slice(0, 900)), ("chi2", [1, 4, 7]), (Linear(), [2], 2.0)])
    assert repr(kernel) == (
        "KernelSum(0.333 RBF(gamma=0.5) of columns 0 to 899 + 0.333 'chi2' of 3 columns from 1 to 7"
        " + 2 Linear() of column 2)"
    )


def test_names_have_widths_of_their_own_columns(wine):
    X, _ = wine
    kernel = KernelSum([("chi2", slice(0, 6)), ("rbf", [6, 8, 12]), ("poly", [1]), (Linear(), [2])])
    weights = np.arange(1.0, len(X) + 1)
    made = as_kernel(kernel, X, degree=2, coef0=0.5, weights=weights)
    assert [part.kernel for part in made] == [
        ChiSquare(chi_square_gamma(X[:, :6], weights)),
        RBF(scale_gamma(X[:, [6, 8, 12]], weights)),
        Polynomial(scale_gamma(X[:, [1]], weights), 2, 0.5),
        Linear(),
    ]
    assert [part[1:] for part in made] == [part[1:] for part in kernel]
    fixed = as_kernel(kernel, X, gamma=0.25)
    assert [part.kernel for part in fixed][:2] == [ChiSquare(0.25), RBF(0.25)]
    assert as_kernel(made, X) is made


def test_names_have_no_values_before_a_fit(wine):
    X, _ = wine
    with pytest.raises(ValueError, match=r"'chi2', and gets its width in the fit"):
        KernelSum(PARTS).block(X, X)
    with pytest.raises(ValueError, match=r"'chi2', and gets its width in the fit"):
        KernelExpansion(KernelSum(PARTS), X, np.ones((len(X), 1)), np.zeros(1))


def test_single_and_double_precision(rng):
    X = np.abs(rng.randn(40, 6))
    kernel = KernelSum([(ChiSquare(0.2), [0, 1, 2]), (RBF(0.1), slice(3, 6))])
    expected = twin(kernel)(X, X[:9])
    assert kernel.single_block(X, X[:9]).dtype == np.float32
    assert_allclose(kernel.single_block(X, X[:9]), expected, atol=2e-6)
    narrow = X.astype(np.float32)
    assert kernel.double_block(narrow, narrow[:9]).dtype == np.float64
    assert_allclose(kernel.double_block(narrow, narrow[:9]), expected, atol=1e-6)
    assert not kernel.wants_double
    assert KernelSum([(RBF(0.1), [0]), (Linear(), [1])]).wants_double


@both_forms
def test_wide_rows(form, rng):
    X = rng.rand(30, 900) * (rng.rand(30, 900) < 0.05)
    kernel = KernelSum([(ChiSquare(0.2), slice(0, 400)), (RBF(0.1), rng.permutation(900)[:500])])
    for basis in (form(X[:7]), X[:7]):
        assert_allclose(kernel.block(form(X), basis), twin(kernel)(X, X[:7]), atol=1e-12)
    model = KernelExpansion(kernel, form(X[:7]), rng.randn(7, 2), np.zeros(2))
    expected = twin(kernel)(X, X[:7]) @ model.coef
    assert_allclose(model.scores(form(X)), expected, atol=1e-12)
    assert_allclose(model.scores(form(X), 2), model.scores(form(X)), rtol=0, atol=0)


# ---- what is refused

BAD_PARTS = {
    "no list": (RBF(1.0), TypeError, "parts must be a list"),
    "none": ([], ValueError, "one .* at the least, got none"),
    "no tuple": ([RBF(1.0)], TypeError, "Part 0 must be"),
    "too long": ([(RBF(1.0), [0], 1.0, 2.0)], TypeError, "Part 0 must be"),
    "no columns": ([(RBF(1.0), [])], ValueError, "part 0 must be one at the least"),
    "empty slice": ([(RBF(1.0), slice(3, 3))], ValueError, "one at the least"),
    "open slice": ([(RBF(1.0), slice(3, None))], ValueError, "a slice with a stop"),
    "slice from the end": ([(RBF(1.0), slice(0, -1))], ValueError, "counts from the first"),
    "negative": ([(RBF(1.0), [0, -1])], ValueError, "count from the first, 0, got -1"),
    "floats": ([(RBF(1.0), [0.5])], TypeError, "must be integers"),
    "text": ([(RBF(1.0), ["a"])], TypeError, "must be integers"),
    "a number": ([(RBF(1.0), 3)], TypeError, "a slice or a sequence"),
    "mask": ([(RBF(1.0), [True, False])], TypeError, "flatnonzero"),
    "twice": ([(RBF(1.0), [1, 1])], ValueError, "there twice"),
    "negative weight": ([(RBF(1.0), [0], -1.0)], ValueError, "weight of part 0 must be positive"),
    "weight of zero": ([(RBF(1.0), [0], 0)], ValueError, "must be positive"),
    "weight without end": ([(RBF(1.0), [0], np.inf)], ValueError, "must be finite"),
    "weight of text": ([(RBF(1.0), [0], "1")], TypeError, "must be a number"),
    "nested": ([(KernelSum([(RBF(1.0), [0])]), [0])], ValueError, "Part 0 is a sum itself"),
    "precomputed": ([(RBF(1.0), [0]), (Precomputed(), [1])], ValueError, "Part 1 is a precomputed"),
    "precomputed by name": ([("precomputed", [0])], ValueError, "Add the matrices up before"),
    "learned": ([(AdaptiveRBF(np.ones(2)), [0])], ValueError, "learned with"),
    "function": ([(np.dot, [0])], TypeError, r"CustomKernel\(function\)"),
    "unknown name": ([("chi", [0])], ValueError, "kernel of part 0 must be one of .*'chi2'"),
}


@pytest.mark.parametrize(("parts", "error", "message"), BAD_PARTS.values(), ids=list(BAD_PARTS))
def test_parts_that_are_none_are_refused(parts, error, message):
    with pytest.raises(error, match=message):
        KernelSum(parts)


@every_machine
def test_columns_that_rows_lack_are_refused(name, wine):
    X, y = wine
    with pytest.raises(ValueError, match=r"Part 1 .* takes column 13, and the rows have 13"):
        fitted(name, X, y, [(RBF(1.0), [0]), ("chi2", [4, 13])])


@every_machine
def test_negative_entries_are_refused_where_a_part_takes_none(name, wine):
    X, y = wine
    X = X.copy()
    machine = fitted(name, X, y)
    assert get_tags(machine).input_tags.positive_only
    X[5, 6] = -1.0  # of the columns of an RBF
    machine.predict(X)
    X[5, 2] = -1.0
    message = r"Part 0 .* columns 0 to 5 .*: .* no negative entries.* column 2"
    for predictor in (machine, machine.compile()):
        with pytest.raises(ValueError, match=message):
            predictor.predict(X)
    with pytest.raises(ValueError, match=message):
        fitted(name, X, y)


def test_a_linear_part_goes_with_no_sum(rng):
    kernel = KernelSum([(RBF(1.0), [0]), (RBF(1.0), [1])])
    with pytest.raises(ValueError, match="no linear part"):
        KernelExpansion(
            kernel, rng.rand(3, 2), np.ones((3, 1)), np.zeros(1), linear=np.ones((2, 1))
        )

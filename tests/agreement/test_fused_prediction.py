"""Scores of models, which are computed in one native pass, are those of plain NumPy."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from reference.kernels import suited

from widemargin import _native, models
from widemargin._system.precision import _UNEVEN
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    CustomKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap

pytestmark = [pytest.mark.combinations, pytest.mark.every_case]

TOLERANCES = {"float32": 1e-5, "float64": 1e-10}
FORMS = {"dense": np.asarray, "csr": sp.csr_matrix}
DISTANCES = {"rbf": RBF(0.1), "laplacian": Laplacian(0.1), "chi2": ChiSquare(0.1)}
PRODUCTS = {
    "poly": Polynomial(0.2, 3, 1.0),
    "sigmoid": Sigmoid(0.2, -0.5),
    "linear": Linear(),
}
KERNELS = DISTANCES | PRODUCTS

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
every_distance = pytest.mark.parametrize("kernel", DISTANCES.values(), ids=list(DISTANCES))
both_forms = pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
both_dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES))  # of the arithmetic
both_inputs = pytest.mark.parametrize("given", list(TOLERANCES))  # of the rows


def plain(rows):
    return (rows.toarray() if sp.issparse(rows) else np.asarray(rows)).astype(np.float64)


def chi_squares(rows, vector):
    sums = rows + vector
    quotients = np.divide(rows - vector, sums, out=np.zeros_like(sums), where=sums > 0)
    return (rows - vector) * quotients


def kernel_matrix(kernel, rows, basis):
    """Return kernel values, and what their terms come to without signs, in plain NumPy."""
    if isinstance(kernel, CustomKernel):
        values = kernel.function(plain(rows), plain(basis))
    elif isinstance(kernel, Precomputed):
        values = plain(rows)[:, basis]
    elif isinstance(kernel, ChiSquare):
        rows, basis = plain(rows), plain(basis)
        with np.errstate(under="ignore"):
            distances = [chi_squares(rows, vector).sum(axis=1) for vector in basis]
        values = np.exp(-kernel.gamma * np.array(distances).reshape(len(basis), len(rows)).T)
    elif isinstance(kernel, (RBF, Laplacian)):
        power = 2 if isinstance(kernel, RBF) else 1
        rows, basis = plain(rows), plain(basis)
        distances = [(np.abs(rows - vector) ** power).sum(axis=1) for vector in basis]
        values = np.exp(-kernel.gamma * np.array(distances).reshape(len(basis), len(rows)).T)
    else:
        products = plain(rows) @ plain(basis).T, np.abs(plain(rows)) @ np.abs(plain(basis)).T
        if isinstance(kernel, Linear):
            return products
        if isinstance(kernel, Sigmoid):  # whose argument is rounded, and which is steepest at 0
            values = np.tanh(kernel.gamma * products[0] + kernel.coef0)
            return values, kernel.gamma * products[1] + abs(kernel.coef0)
        return (
            (kernel.gamma * products[0] + kernel.coef0) ** kernel.degree,
            (kernel.gamma * products[1] + abs(kernel.coef0)) ** kernel.degree,
        )
    return values, np.abs(values)


def expected_scores(model, rows):
    """Return scores in plain NumPy, and the size that rounding errors are relative to."""
    if isinstance(model, LinearMap):
        values, sizes = plain(rows), np.abs(plain(rows))
    else:
        values, sizes = kernel_matrix(model.kernel, rows, model.basis)
    terms = sizes @ np.abs(model.coef) + np.abs(model.intercept)
    return values @ model.coef + model.intercept, terms.max(initial=0)


def expansion(kernel, basis, n_outputs=3, seed=0):
    rng = np.random.RandomState(seed)
    coef, intercept = rng.randn(basis.shape[0], n_outputs), rng.randn(n_outputs)
    return KernelExpansion(kernel, suited(kernel, basis), coef, intercept)


def assert_scores_agree(model, rows, dtype, tolerance=None):
    rows = suited(model.kernel, rows) if isinstance(model, KernelExpansion) else rows
    expected, size = expected_scores(model, rows)
    found = model.scores(rows, dtype=dtype)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    largest_error = np.abs(found - expected).max(initial=0)
    assert largest_error <= (tolerance or TOLERANCES[dtype]) * size
    assert_best_is_that_of_the_scores(model, rows, dtype)


def assert_best_is_that_of_the_scores(model, rows, dtype):
    scores = model.scores(rows, dtype=dtype)
    largest = np.argmax(scores, axis=1) if model.n_outputs > 1 else scores[:, 0] > 0
    assert_array_equal(model.best(rows, dtype=dtype), largest)


def text_like(n_rows, n_features=20_000, entries=20, seed=0):
    """Return rows with few entries each, half of them among features that many have."""
    rng = np.random.RandomState(seed)
    common = rng.randint(0, min(50, n_features), (n_rows, entries // 2))
    rare = rng.randint(0, n_features, (n_rows, entries - entries // 2))
    columns = np.hstack([common, rare]).ravel()
    places = np.repeat(np.arange(n_rows), entries)
    values = 0.1 + rng.rand(n_rows * entries)
    return sp.csr_matrix((values, (places, columns)), shape=(n_rows, n_features))


@every_kernel
@both_forms
@both_dtypes
@both_inputs
@pytest.mark.parametrize("n_features", [1, 4, 33, 500], ids="{} features".format)
def test_narrow_and_wide_rows(kernel, form, dtype, given, n_features, rng):
    gentle = {RBF: 1 / 2, Laplacian: 1 / 2, ChiSquare: 1 / 2}.get(type(kernel))
    if gentle:
        kernel = type(kernel)(gentle / n_features)
    rows = form(rng.randn(70, n_features).astype(given))
    assert_scores_agree(expansion(kernel, rng.randn(29, n_features)), rows, dtype)


@every_kernel
@both_dtypes
@pytest.mark.parametrize("n_basis", [1, 2, 3, 4, 7, 8, 9, 16, 23, 24, 25, 47, 48, 49, 57, 73, 100])
def test_any_number_of_vectors(kernel, dtype, n_basis, rng):
    rows = rng.randn(37, 6)
    assert_scores_agree(expansion(kernel, rng.randn(n_basis, 6)), rows, dtype)
    assert_scores_agree(expansion(kernel, rng.randn(n_basis, 6)), sp.csr_matrix(rows), dtype)


@both_dtypes
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 4, 5, 8, 9, 16, 17, 24, 25, 31, 48, 60])
def test_any_number_of_scores(dtype, n_outputs, rng):
    rows, vectors = rng.randn(37, 6), rng.randn(10, 6)
    for kernel in (RBF(0.1), Linear()):
        assert_scores_agree(expansion(kernel, vectors, n_outputs), rows, dtype)


@every_kernel
@both_dtypes
@pytest.mark.parametrize("n_rows", [0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 2100])
def test_any_number_of_rows(kernel, dtype, n_rows, rng):
    rows = rng.randn(n_rows, 3)
    assert_scores_agree(expansion(kernel, rng.randn(5, 3)), rows, dtype)
    assert_scores_agree(expansion(kernel, rng.randn(5, 3)), sp.csr_matrix(rows), dtype)


@both_forms
@both_dtypes
@both_inputs
def test_linear_maps(form, dtype, given, rng):
    model = LinearMap(rng.randn(30, 4), rng.randn(4))
    assert_scores_agree(model, form(rng.randn(50, 30).astype(given)), dtype)


def test_a_linear_expansion_is_a_linear_map(rng):
    model = expansion(Linear(), rng.randn(8, 5))
    rows = rng.randn(20, 5)
    assert_array_equal(model.scores(rows), model.collapsed().scores(rows))
    assert expansion(RBF(0.1), rng.randn(8, 5)).collapsed() is None


@every_distance
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_features", [4, 100])
def test_a_large_common_offset_costs_distances_no_digits(kernel, form, dtype, n_features, rng):
    offset = 1e4 * (1 + np.arange(n_features) % 3)
    kernel = type(kernel)(1 / n_features)
    # In steps that single precision has, so that rounding of the rows themselves is none.
    vectors = offset + rng.randint(-64, 64, (20, n_features)) / 64
    rows = offset + rng.randint(-64, 64, (60, n_features)) / 64
    for given in ("float32", "float64"):
        assert_scores_agree(expansion(kernel, vectors), form(rows.astype(given)), dtype)


@pytest.mark.parametrize("kernel", PRODUCTS.values(), ids=list(PRODUCTS))
@both_forms
@both_dtypes
def test_products_of_rows_with_a_large_offset(kernel, form, dtype, rng):
    rows, vectors = 1e4 + rng.randn(60, 40), 1e4 + rng.randn(20, 40)
    assert_scores_agree(expansion(kernel, vectors), form(rows), dtype)


@every_kernel
@both_forms
@pytest.mark.parametrize("n_features", [3, 100])
@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e15], ids=str)
@both_dtypes
def test_rows_of_any_scale(kernel, form, n_features, scale, dtype, rng):
    kernel = {
        RBF: lambda: RBF(0.3 / n_features / scale**2),
        Laplacian: lambda: Laplacian(0.3 / n_features / scale),
        ChiSquare: lambda: ChiSquare(0.3 / n_features / scale),
        Polynomial: lambda: Polynomial(0.3 / scale**2, 2, 1.0),
        Sigmoid: lambda: Sigmoid(0.3 / scale**2, 1.0),
        Linear: Linear,
    }[type(kernel)]()
    rows, vectors = scale * rng.randn(40, n_features), scale * rng.randn(12, n_features)
    assert_scores_agree(expansion(kernel, vectors), form(rows), dtype)


@every_distance
@both_forms
@both_dtypes
@pytest.mark.parametrize("scale", [1e-60, 1e-42, 1e40, 1e45, 1e60], ids=str)
@pytest.mark.filterwarnings("error")
def test_float64_rows_beyond_the_range_of_float32(kernel, form, dtype, scale, rng):
    kernel = type(kernel)(0.1 / (scale**2 if isinstance(kernel, RBF) else scale))
    rows, vectors = form(suited(kernel, scale * rng.randn(40, 5))), scale * rng.randn(12, 5)
    model = expansion(kernel, vectors)
    try:
        model.scores(rows, dtype=dtype, check=True)
    except ValueError:
        if dtype == "float64" or scale < 1:
            raise
        return  # told that they are too large, which is as good
    assert_scores_agree(model, rows, dtype)


@every_distance
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_features", [5, 60])
def test_vectors_of_widely_different_size(kernel, form, dtype, n_features, rng):
    # Next to a vector of size 1e6 even a step in single precision is far.
    most = 1 if dtype == "float32" else 6
    vectors = 10.0 ** rng.randint(-6, most + 1, (25, 1)) * rng.randn(25, n_features)
    rows = np.vstack([vectors, vectors * (1 + 1e-3 * rng.randn(25, 1))])
    assert_scores_agree(expansion(kernel, vectors), form(rows), dtype)


@every_distance
@both_forms
@both_dtypes
def test_a_far_row_costs_the_others_no_digits(kernel, form, dtype, rng):
    rows, vectors = rng.randn(60, 50), rng.randn(20, 50)
    rows[17] *= 1e9
    vectors[3] *= 1e9
    assert_scores_agree(expansion(type(kernel)(0.01), vectors), form(rows), dtype)


@every_distance
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_features", [4, 100])
def test_a_row_that_is_a_vector_of_the_basis(kernel, form, dtype, n_features, rng):
    vectors = suited(kernel, rng.randn(9, n_features))
    model = KernelExpansion(type(kernel)(50.0), vectors, np.eye(9), np.zeros(9))
    found = model.scores(form(vectors), dtype=dtype)
    assert np.abs(np.diag(found) - 1).max() <= TOLERANCES[dtype]
    assert_array_equal(model.best(form(vectors), dtype=dtype), np.arange(9))


@pytest.mark.parametrize("scale", [1e4, 1e6, 1e10])
@pytest.mark.parametrize("kind", [RBF, Laplacian])
def test_float32_rows_that_are_vectors_of_a_narrow_kernel(kind, scale, rng):
    # So narrow that the last digit of a row counts, which a move to another origin may cost.
    basis = (scale * rng.randn(4, 20)).astype(np.float32)
    model = KernelExpansion(kind(0.07), basis, rng.randn(4, 3), np.zeros(3))
    expected = model.scores(basis.astype(np.float64))
    assert np.abs(model.scores(basis) - expected).max() <= 1e-5 * np.abs(expected).max()


@every_kernel
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_features", [4, 100])
def test_vectors_of_zeros(kernel, form, dtype, n_features, rng):
    vectors, rows = rng.randn(6, n_features), rng.randn(20, n_features)
    vectors[[0, 3, 4, 5]] = 0
    rows[5:10] = 0
    assert_scores_agree(expansion(kernel, vectors), form(rows), dtype)
    assert_scores_agree(expansion(kernel, sp.csr_matrix(vectors)), form(rows), dtype)


@every_kernel
@both_forms
@both_dtypes
def test_no_vectors_leave_the_intercept(kernel, form, dtype, rng):
    model = expansion(kernel, np.empty((0, 4)))
    found = model.scores(form(rng.randn(5, 4)), dtype=dtype)
    assert_array_equal(found, np.tile(model.intercept.astype(dtype), (5, 1)))


@every_kernel
@both_dtypes
@both_inputs
def test_rows_like_those_of_text(kernel, dtype, given):
    rows, vectors = text_like(40, seed=1).astype(given), text_like(15, seed=2)
    assert_scores_agree(expansion(kernel, vectors), rows, dtype)


@every_kernel
@both_dtypes
def test_text_far_from_the_basis_in_size(kernel, dtype):
    rows, vectors = text_like(40, seed=1), text_like(15, seed=2)
    rows[::2] *= 1e5  # too large for distances by products
    if isinstance(kernel, Polynomial):
        kernel = Polynomial(1e-6, 2, 1.0)
    assert_scores_agree(expansion(kernel, vectors), rows.tocsr(), dtype)


@every_kernel
@both_dtypes
@pytest.mark.parametrize("n_features", [40, 400])
def test_rows_and_basis_need_not_be_of_one_form(kernel, dtype, n_features):
    rows = text_like(40, n_features, seed=1)
    vectors = text_like(15, n_features, seed=2)
    for model in (expansion(kernel, vectors), expansion(kernel, vectors.toarray())):
        assert_scores_agree(model, rows, dtype)
        assert_scores_agree(model, rows.toarray(), dtype)


@every_kernel
@both_dtypes
def test_a_dense_offset_under_sparse_rows(kernel, dtype, rng):
    rows = text_like(40, 100, entries=4, seed=1)
    vectors = 3 + rng.randn(15, 100)  # a zero is far from here
    kernel = type(kernel)(1e-3) if type(kernel) in (RBF, Laplacian) else kernel
    assert_scores_agree(expansion(kernel, vectors), rows, dtype)


@both_dtypes
@both_inputs
@both_forms
def test_a_kernel_that_is_a_function(form, dtype, given, rng):
    def kernel(rows, others):
        return np.tanh(plain(rows) @ plain(others).T)

    rows = form(rng.randn(30, 4).astype(given))
    assert_scores_agree(expansion(CustomKernel(kernel), rng.randn(8, 4)), rows, dtype, 1e-5)


@both_dtypes
@both_inputs
@both_forms
def test_a_kernel_matrix(form, dtype, given, rng):
    coef, intercept = rng.randn(5, 3), rng.randn(3)
    model = KernelExpansion(Precomputed(), np.array([9, 0, 4, 4, 11]), coef, intercept, 12)
    assert_scores_agree(model, form(rng.randn(30, 12).astype(given)), dtype)


@pytest.mark.parametrize(
    "kernel", [Laplacian(0.1), CustomKernel(lambda rows, basis: np.tanh(plain(rows) @ basis.T))]
)
def test_float32_rows_lose_nothing_in_a_float64_machine(kernel, rng):
    sparse = isinstance(kernel, Laplacian)
    rows = text_like(40, 400, seed=1) if sparse else rng.randn(40, 5)
    vectors = text_like(15, 400, seed=2) if sparse else rng.randn(15, 5)
    assert_scores_agree(expansion(kernel, vectors), rows.astype("float32"), "float64")


def ways(rng):
    """Return models and rows that take each way through the code: what, model, rows."""
    narrow, wide = rng.randn(150, 5), rng.randn(150, 80)
    sparse = sp.random(150, 200, 0.05, "csr", random_state=0)
    mixed = sparse.copy().tolil()
    mixed[::3] = rng.randn(50, 200)
    mixed = mixed.tocsr()
    for name, kernel in KERNELS.items():
        yield f"{name}, narrow", expansion(kernel, rng.randn(21, 5)), narrow
        yield f"{name}, wide", expansion(kernel, rng.randn(21, 80)), wide
        yield f"{name}, sparse", expansion(kernel, sparse[:21]), sparse
        yield f"{name}, sparse and less so", expansion(kernel, sparse[1:21]), mixed
        far = wide.copy()
        far[::5] *= 1e6
        yield f"{name}, some far", expansion(kernel, rng.randn(21, 80)), far
    yield "linear map", LinearMap(rng.randn(5, 3), rng.randn(3)), narrow
    places, coef = np.arange(0, 80, 9), rng.randn(9, 3)
    yield "matrix", KernelExpansion(Precomputed(), places, coef, rng.randn(3), 80), wide


WAYS = {name: (model, rows) for name, model, rows in ways(np.random.RandomState(3))}
every_way = pytest.mark.parametrize(("model", "rows"), WAYS.values(), ids=list(WAYS))


@every_way
@both_dtypes
@both_inputs
def test_a_row_alone_has_the_scores_that_it_has_among_others(model, rows, dtype, given):
    rows = rows[:70].astype(given)
    together = model.scores(rows, dtype=dtype)
    alone = [model.scores(rows[i : i + 1], dtype=dtype)[0] for i in range(rows.shape[0])]
    assert_array_equal(together, alone)
    best = [model.best(rows[i : i + 1], dtype=dtype)[0] for i in range(rows.shape[0])]
    assert_array_equal(model.best(rows, dtype=dtype), best)


@every_way
@both_dtypes
def test_rows_in_another_order_have_the_same_scores(model, rows, dtype, rng):
    order = rng.permutation(rows.shape[0])
    expected = model.scores(rows, dtype=dtype)[order]
    assert_array_equal(model.scores(rows[order], dtype=dtype), expected)


@every_way
@both_dtypes
def test_threads_change_no_bit(model, rows, dtype):
    many = sp.vstack([rows] * 20, "csr") if sp.issparse(rows) else np.tile(rows, (20, 1))
    scores, best = model.scores(many, dtype=dtype), model.best(many, dtype=dtype)
    for n_threads in (2, 3):
        assert_array_equal(model.scores(many, n_threads, dtype=dtype), scores)
        assert_array_equal(model.best(many, n_threads, dtype=dtype), best)


@every_way
def test_blocks_of_rows_change_no_bit(model, rows, monkeypatch):
    many = sp.vstack([rows] * 14, "csr") if sp.issparse(rows) else np.tile(rows, (14, 1))
    scores, best = model.scores(many), model.best(many)
    monkeypatch.setattr(models, "_CALL_PRODUCTS", 1)
    monkeypatch.setattr(models, "_BLOCK_ENTRIES", 1)
    assert_array_equal(model.scores(many), scores)
    assert_array_equal(model.best(many), best)


@every_kernel
@both_forms
@both_dtypes
@both_inputs
def test_bases_too_wide_to_be_kept_dense(kernel, form, dtype, given, monkeypatch):
    monkeypatch.setattr(models, "_PACKED_ENTRIES", 0)
    model = expansion(kernel, text_like(15, 400, seed=2))
    rows = form(text_like(40, 400, seed=1).toarray().astype(given))
    assert_scores_agree(model, rows, dtype)


def cancelling(kernel, basis, n_outputs=3):
    """Return an expansion whose terms are a thousand times as large as its scores."""
    model = expansion(kernel, basis, n_outputs)
    values = kernel_matrix(kernel, basis, basis)[0] + 1e-7 * np.eye(basis.shape[0])
    targets = np.random.RandomState(5).randn(basis.shape[0], n_outputs)
    return KernelExpansion(kernel, basis, np.linalg.solve(values, targets), model.intercept)


@both_forms
@both_inputs
@pytest.mark.parametrize("packed", [0, models._PACKED_ENTRIES], ids=["two steps", "fused"])
@pytest.mark.parametrize("n_features", [20, 400])
def test_scores_keep_their_digits_where_large_terms_cancel(
    form, given, packed, n_features, monkeypatch
):
    monkeypatch.setattr(models, "_PACKED_ENTRIES", packed)
    basis = text_like(15, n_features, entries=6, seed=2).astype("float32").astype("float64")
    model = cancelling(RBF(1e-4), basis)
    rows = form(basis.toarray().astype(given))
    expected = expected_scores(model, rows)[0]
    assert np.abs(model.coef).max() > 1e3 * np.abs(expected).max()
    found = model.scores(rows, dtype="float32")
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()


def native_predictor(model, rows, dtype):
    return model._predictor_for(rows, np.dtype(dtype))


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0, 1e6], ids=str)
@both_dtypes
@both_inputs
def test_wide_sparse_rows_are_not_made_dense(gamma, dtype, given):
    vectors = text_like(15, seed=2)
    # Some so near that their values are not 0.
    rows = sp.vstack([vectors, text_like(25, seed=1)], "csr").astype(given)
    models_of_each = [
        expansion(RBF(gamma), vectors),
        expansion(AdaptiveRBF(np.full(15, gamma)), vectors),
    ]
    for model in models_of_each[: 1 if gamma > 100 else 2]:
        machine = native_predictor(model, rows, dtype)
        assert machine is None or machine.by_entries
    assert_scores_agree(models_of_each[0], rows, dtype)


def test_dense_rows_have_the_machine_of_the_dtype(rng):
    model = expansion(RBF(1.0), text_like(15, seed=2))
    rows = text_like(3, seed=1)
    assert isinstance(native_predictor(model, rows.toarray(), "float32"), _native.PredictorFloat32)
    assert isinstance(native_predictor(model, rows, "float32"), _native.PredictorFloat64)


def test_linear_maps_of_very_many_features():
    n_features = 1 << 22
    places = np.array([[5, 7], [0, n_features - 1], [7, 8]] * 500)
    rows = sp.csr_matrix((np.ones(places.size), places.ravel(), np.arange(0, 3001, 2)))
    rows.resize(1500, n_features)
    model = LinearMap(np.arange(n_features, dtype=np.float64)[:, np.newaxis], np.ones(1))
    assert_array_equal(model.scores(rows)[:3, 0], [13, n_features, 16])


def test_one_exact_machine_serves_both_dtypes(rng):
    linear = LinearMap(rng.randn(4, 2), rng.randn(2))
    exact = cancelling(RBF(1e-4), rng.randn(15, 4))
    for model in (linear, exact, expansion(Linear(), rng.randn(5, 4))):
        assert model.predictor(np.float32) is model.predictor(np.float64)
        assert model.predictor("float32") is model.predictor(np.dtype("float32"))


def test_wide_vectors_are_probed_few_at_a_time(rng):
    assert expansion(RBF(0.1), rng.randn(200, 10)).probes().rows.shape == (512, 10)
    wide = text_like(60, 1 << 18, seed=1)
    probes = expansion(RBF(0.1), wide).probes().rows
    assert probes.shape == (16, 1 << 18)
    some = wide[:4].toarray().astype(np.float32).astype(np.float64)
    middles = (some + some[[3, 0, 1, 2]]) / 2
    assert np.abs(probes[:8] - np.vstack([some, middles])).max() <= 1e-7


def metric_kernels(n_basis, n_features, gamma):
    widths = np.linspace(gamma, 2 * gamma, n_basis)
    weights = np.linspace(0.0, 1.0, n_features)
    return [
        RBF(gamma),
        Laplacian(gamma),
        AdaptiveRBF(widths),
        AdaptiveRBF(widths, weights),
        AdaptiveRBF(widths, np.random.RandomState(0).randn(n_features, 2)),
    ]


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("number", range(5))
def test_outer_probes_are_a_width_away(number, same, rng):
    basis = np.full((6, 4), 5.0) if same else rng.randn(6, 4)
    kernel = metric_kernels(6, 4, 0.01)[number]
    probes = expansion(kernel, basis).probes().rows
    parts = probes[len(probes) // 2 :].reshape(2, -1, 6, 4)  # beyond each vector, and across
    values = np.array([[np.diagonal(kernel.block(each, basis)) for each in way] for way in parts])
    np.testing.assert_allclose(values[:, 0], np.exp(-1), rtol=1e-5)
    assert len(probes) >= 200  # few vectors have several each, at other distances
    assert len(np.unique(values[:, 1:].round(4))) >= 8
    assert 0.05 < values.min() < values.max() < 0.95


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [0.0, 1e-300, 3e38, 1e300])
def test_probes_are_finite(size):
    basis = size * np.array([[1.0, -1.0], [1.0, 0.5], [0.0, 0.0]])
    blind = AdaptiveRBF(np.ones(3), np.zeros(2))
    for kernel in (RBF(1e-300), RBF(1e300), Laplacian(1.0), Polynomial(1.0), blind):
        assert np.isfinite(expansion(kernel, basis).probes().rows).all()


def test_outer_probes_of_other_kernels_are_nearly_three_times_as_far_out(rng):
    basis = rng.randn(7, 3).astype(np.float32).astype(np.float64)
    probes = expansion(Polynomial(0.1), basis).probes().rows
    away, across = probes[len(probes) // 2 :].reshape(2, -1, 7, 3)[:, 0]
    middle = np.median(basis, axis=0)
    outer = basis + 2 * _UNEVEN * (basis - middle)
    np.testing.assert_allclose(away, outer, rtol=1e-5, atol=1e-5)
    # Features of several vectors in one row: products with it cancel in other ways.
    mixed = np.column_stack([np.roll(basis[:, f], -f) for f in range(3)])
    signed = [-1, 1, -1] * mixed  # of either sign
    np.testing.assert_allclose(across, basis + 4 * _UNEVEN * signed, rtol=1e-5, atol=1e-5)


@both_dtypes
def test_errors_where_a_sigmoid_changes_its_sign(dtype, rng):
    # The tangent is 1 or -1 nearly everywhere, and of any value where products cancel.
    basis = (3 * rng.randn(40, 4)).astype(np.float32).astype(np.float64)
    model = KernelExpansion(Sigmoid(120.0), basis, 40 * rng.randn(40, 1), np.zeros(1))
    rows = rng.randn(3000, 4).astype(np.float32)
    exact = model.scores(rows.astype(np.float64), dtype="float64")
    found = model.scores(rows.astype(dtype), dtype="float32")
    assert np.abs(found - exact).max() <= 1e-5 * np.abs(exact).max()


@both_dtypes
def test_products_beyond_single_precision(dtype):
    model = KernelExpansion(Sigmoid(1e-3), np.full((1, 5), 1e30), np.ones((1, 1)), np.zeros(1))
    rows = np.array([[1e30, -1e30, -1e30, 1e30, -1e30], [1e30, 1e30, 1e30, -1e30, -1e30]])
    np.testing.assert_array_equal(model.scores(rows.astype(dtype), dtype="float32"), [[-1], [1]])


@both_dtypes
def test_errors_that_cancel_at_the_vectors(dtype):
    # All vectors are equal: at them, and between them, sums of whole numbers are exact.
    coef = np.array([[12345.0], [-4321.0], [-8023.0], [1.0]])
    model = KernelExpansion(RBF(1e-3), np.full((4, 1), 2.0), coef, np.zeros(1))
    rows = np.linspace(-60, 60, 500)[:, np.newaxis].astype(dtype)
    expected = 2 * np.exp(-1e-3 * (rows.astype(np.float64) - 2) ** 2)
    found = model.scores(rows, dtype="float32")
    assert np.abs(found - expected).max() <= 1e-5 * expected.max()


@both_dtypes
@pytest.mark.parametrize("whole", [np.ones((4, 1)), np.array([[1.0], [2.0], [4.0], [-2.0]])])
def test_errors_that_whole_numbers_do_not_show(dtype, whole):
    # Powers of whole numbers are exact in single precision, those of other rows are not.
    coef = np.array([[12345.0], [-4321.0], [-8023.0], [1.0]])
    coef /= whole**3
    model = KernelExpansion(Polynomial(1.0, 3, 0.0), whole, coef, np.zeros(1))
    rows = np.linspace(-4, 4, 500)[:, np.newaxis].astype(dtype)
    expected = 2 * rows.astype(np.float64) ** 3
    found = model.scores(rows, dtype="float32")
    assert np.abs(found - expected).max() <= 1e-5 * expected.max()


def test_large_scores_further_out_excuse_nothing(rng):
    # Terms cancel at the vectors, and no longer three times as far out.
    basis = rng.randn(30, 3).astype(np.float32).astype(np.float64)
    model = cancelling(Polynomial(0.1, 5, 1.0), basis)
    scores = model.scores(basis)
    found = model.scores(basis, dtype="float32")
    assert np.abs(found - scores).max() <= 1e-5 * np.abs(scores).max()


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_best_of_float32_scores_is_that_of_the_scores_as_they_are_given(n_outputs):
    # Scores that differ by less than single precision has; and one that it rounds to 0.
    intercept = np.array([1.0, 1.0 + 1e-12, 1.0 - 1e-12])[:n_outputs]
    if n_outputs == 1:
        intercept = np.array([1e-60])
    model = LinearMap(np.zeros((2, n_outputs)), intercept)
    rows = np.ones((5, 2))
    for dtype in ("float32", "float64"):
        assert_best_is_that_of_the_scores(model, rows, dtype)
    assert model.best(rows, dtype="float32")[0] != model.best(rows, dtype="float64")[0]


@both_forms
@both_inputs
@pytest.mark.parametrize("entries", [0, 1 << 25], ids=["stage by stage", "at once"])
def test_stages_are_as_exact_as_the_end(form, given, entries, rng, monkeypatch):
    monkeypatch.setattr(models, "_STAGED_ENTRIES", entries)
    basis = rng.randn(15, 4).astype(np.float32).astype(np.float64)
    for model in (cancelling(RBF(1e-3), basis), expansion(RBF(0.1), basis)):
        halves = cancelling(model.kernel, basis[:7])
        rows = form(basis.astype(given))
        stages = [(halves.coef, halves.intercept), (model.coef, model.intercept)]
        first, last = model.staged_scores(rows, stages)
        assert first.dtype == last.dtype == given
        assert_array_equal(last, model.scores(rows))
        expected = expected_scores(halves, rows)[0]
        assert np.abs(first - expected).max() <= TOLERANCES["float32"] * np.abs(expected).max()


def arrays_of(model):
    yield from (model.coef, model.intercept)
    names = ("data", "indices", "indptr")
    sparse = sp.issparse(model.basis)
    yield from (getattr(model.basis, name) for name in names) if sparse else (model.basis,)
    if isinstance(model.kernel, AdaptiveRBF):
        yield from (model.kernel.widths, model.kernel.metric)


@both_forms
@pytest.mark.parametrize(
    "copy", [lambda it: it, deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_arrays_of_a_model_cannot_be_edited(form, copy, rng):
    adaptive = AdaptiveRBF(1 + rng.rand(6), rng.randn(4, 2))
    for kernel in (RBF(0.1), adaptive, Linear()):
        model = copy(expansion(kernel, form(rng.randn(6, 4))))
        rows = rng.randn(9, 4)
        before = model.scores(rows)
        for array in arrays_of(model):
            with pytest.raises(ValueError, match="read-only"):
                array += array
        assert_array_equal(model.scores(rows), before)


def test_rows_in_one_block_are_not_copied(rng):
    rows = sp.csr_matrix(rng.randn(50, 4))
    for model in (expansion(RBF(0.1), rng.randn(6, 4)), LinearMap(rng.randn(4, 2), rng.randn(2))):
        ((_, block, _),) = model._blocks(rows, np.dtype("float64"), 1, False)
        assert block is rows


@both_forms
@both_dtypes
@pytest.mark.parametrize("n_rows", [40, 100, 1000])
def test_threads_share_few_rows_of_a_heavy_machine(form, dtype, n_rows, rng):
    model = expansion(RBF(0.1), rng.randn(3000, 20))
    rows = form(rng.randn(n_rows, 20))
    scores = model.scores(rows, dtype=dtype)
    for n_threads in (2, 3, 100_000):
        assert_array_equal(model.scores(rows, n_threads, dtype=dtype), scores)


@pytest.mark.parametrize("n_outputs", [2, 3, 8, 9, 17, 50])
@both_dtypes
def test_the_first_of_equal_scores_is_the_best(n_outputs, dtype, rng):
    intercept = np.zeros(n_outputs)
    tied = np.sort(rng.choice(n_outputs, 2, replace=False))
    intercept[tied] = 1.0
    model = LinearMap(np.zeros((3, n_outputs)), intercept)
    assert_array_equal(model.best(rng.randn(5, 3), dtype=dtype), tied[0])
    same = LinearMap(np.zeros((3, n_outputs)), np.full(n_outputs, -2.0))
    assert_array_equal(same.best(rng.randn(5, 3), dtype=dtype), 0)


@both_dtypes
def test_a_single_score_of_zero_is_not_positive(dtype):
    model = LinearMap(np.ones((1, 1)), np.zeros(1))
    rows = np.array([[0.0], [-0.0], [1e-30], [-1e-30], [3.0]])
    assert_array_equal(model.best(rows, dtype=dtype), [0, 0, 1, 0, 1])


@pytest.mark.parametrize("n_outputs", [2, 3, 4, 8, 50])
@both_dtypes
def test_the_best_is_a_class_even_where_scores_overflow(n_outputs, dtype):
    coef = np.array([[1.0], [-1.0]]) @ np.ones((1, n_outputs))
    model = KernelExpansion(Polynomial(1.0), np.ones((2, 1)), coef, np.zeros(n_outputs))
    rows = np.full((3, 1), 1e30 if dtype == "float32" else 1e300)
    assert np.isnan(model.scores(rows, dtype=dtype)).all()
    assert (model.best(rows, dtype=dtype) < n_outputs).all()


def test_bad_models_are_refused(rng):
    vectors, coef, intercept = rng.randn(4, 2), rng.randn(4, 3), rng.randn(3)
    with pytest.raises(ValueError, match="do not go with intercepts"):
        KernelExpansion(RBF(1.0), vectors, coef, intercept[:2])
    with pytest.raises(ValueError, match="do not go with intercepts"):
        LinearMap(coef[:, 0], intercept)
    with pytest.raises(ValueError, match="3 basis vectors"):
        KernelExpansion(RBF(1.0), vectors[:3], coef, intercept)
    with pytest.raises(ValueError, match="2 features are not of 5"):
        KernelExpansion(RBF(1.0), vectors, coef, intercept, 5)
    with pytest.raises(ValueError, match="needs n_features"):
        KernelExpansion(Precomputed(), np.arange(4), coef, intercept)
    for outside in (-1, 4):
        with pytest.raises(ValueError, match="none of the training rows"):
            KernelExpansion(Precomputed(), np.array([0, 1, 2, outside]), coef, intercept, 4)

"""The contract of a kernel: symmetric, the same dense and sparse, and positive if it says so."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference import kernels as reference
from reference.learned_basis import adaptive_rbf
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise
from sklearn.svm import SVC

from widemargin import ChosenBasis, SparseKernelClassifier, _native, export
from widemargin.estimation.named_kernels import as_kernel, scale_gamma
from widemargin.kernels import (
    KERNEL_NAMES,
    KERNELS,
    NAMED_KERNELS,
    RBF,
    AdaptiveRBF,
    ChiSquare,
    CustomKernel,
    Kernel,
    KernelSum,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)

pytestmark = [pytest.mark.combinations, pytest.mark.every_case]

PARAMETERS = {"gamma": 0.3, "degree": 3, "coef0": 1.0}
OTHERS = {"sigmoid": {"gamma": 0.4, "coef0": -0.5}}
FUNCTIONS = tuple(name for name in KERNEL_NAMES if name != "precomputed")  # of two rows
NAMED = {
    name: as_kernel(name, np.empty((0, 7)), **{**PARAMETERS, **OTHERS.get(name, {})})
    for name in FUNCTIONS
}
CUSTOM = {
    "callable": CustomKernel(lambda X, Y: np.asarray((X @ Y.T + 1.0) ** 2)),
    "gaussian process": CustomKernel(Matern(nu=1.5)),
}
SUMS = {
    "sum": KernelSum([(RBF(0.3), slice(0, 4)), (Polynomial(0.2, 2, 1.0), [6, 1, 5], 2.0)]),
    "sum of chi squares": KernelSum([(ChiSquare(0.4), [0, 2, 3]), (ChiSquare(0.2), slice(2, 6))]),
}
OF_LIBRARY = NAMED | SUMS
every_named = pytest.mark.parametrize("kernel", OF_LIBRARY.values(), ids=list(OF_LIBRARY))
every_function = pytest.mark.parametrize(
    "kernel", [*OF_LIBRARY.values(), *CUSTOM.values()], ids=[*OF_LIBRARY, *CUSTOM]
)
both_forms = pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def suited(request, rows):
    """Return rows that the kernel of a test takes, if it has one."""
    parameters = getattr(request.node, "callspec", None)
    kernel = None if parameters is None else parameters.params.get("kernel")
    return rows if kernel is None else reference.suited(kernel, rows)


@pytest.fixture
def rows(rng, request):
    """30 rows of 7 features, about half of them zero."""
    return suited(request, rng.randn(30, 7) * (rng.rand(30, 7) < 0.5))


@pytest.fixture
def basis(rng, request):
    return suited(request, rng.randn(9, 7) * (rng.rand(9, 7) < 0.5))


def test_names_and_native_kernels_are_those_of_the_registry():
    assert {name: type(kernel) for name, kernel in NAMED.items()} == {
        name: NAMED_KERNELS[name] for name in FUNCTIONS
    }
    natives = {f"{type(kernel).__name__}Kernel" for kernel in NAMED.values()}
    assert set(_native.KERNELS) == natives


def test_subclasses_elsewhere_leave_the_registry_as_it_is(rows):
    before = dict(KERNELS), dict(NAMED_KERNELS)

    class Own(RBF):
        name = "rbf"

    @dataclasses.dataclass(frozen=True)
    class Wider(RBF):
        share: float = 0.5

    assert (dict(KERNELS), dict(NAMED_KERNELS)) == before
    assert type(as_kernel("rbf", rows)) is RBF
    expected = RBF(0.3).block(rows, rows)
    for kernel in (Own(0.3), Wider(0.3)):
        assert_array_equal(kernel.block(rows, rows), expected)


@every_named
@both_forms
def test_values_are_those_of_the_formula_and_of_scikit_learn(kernel, form, rows, basis):
    values = kernel.block(form(rows), form(basis))
    assert values.shape == (30, 9)
    assert_allclose(values, reference.twin(kernel)(rows, basis), rtol=1e-12, atol=1e-13)
    if kernel.name in pairwise.PAIRWISE_KERNEL_FUNCTIONS:
        peer = pairwise.pairwise_kernels(
            rows, basis, metric=kernel.name, **dataclasses.asdict(kernel)
        )
        assert_allclose(values, peer, rtol=1e-12, atol=1e-13)


def test_scikit_learn_has_most_of_the_kernels():
    assert {"rbf", "laplacian", "chi2", "poly", "sigmoid", "linear"} <= {
        *pairwise.PAIRWISE_KERNEL_FUNCTIONS
    } & {*KERNEL_NAMES}


@every_function
def test_symmetric_and_positive_semi_definite(kernel, rows):
    values = kernel.block(rows, rows)
    assert_allclose(values, values.T, rtol=1e-13, atol=1e-14)
    eigenvalues = np.linalg.eigvalsh(values)
    assert (eigenvalues.min() >= -1e-12 * eigenvalues.max()) == (
        kernel.is_positive or kernel in CUSTOM.values()
    )


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF(0.3), True),
        (Laplacian(0.3), True),
        (ChiSquare(0.3), True),
        (Linear(), True),
        (KernelSum([(RBF(0.3), [0]), (Linear(), [1])]), True),
        (KernelSum([(RBF(0.3), [0]), (Sigmoid(0.3), [1])]), False),
        (Polynomial(0.3, 3, 0.0), True),
        (Polynomial(0.3, 3, 1.0), True),
        (Polynomial(0.3, 2, -1.0), False),
        (Sigmoid(0.3, 1.0), False),
        (AdaptiveRBF(np.ones(2)), False),
        (Precomputed(), False),
        *((kernel, False) for kernel in CUSTOM.values()),
    ],
)
def test_which_kernels_are_positive_by_nature(kernel, expected):
    assert kernel.is_positive is expected


def test_a_power_of_a_negative_constant_is_not_positive(rows):
    assert np.linalg.eigvalsh(Polynomial(0.3, 2, -1.0).block(rows, rows)).min() < -0.1


@every_function
def test_magnitude_bounds_the_values(kernel, rows):
    magnitude = kernel.magnitude(rows)
    assert magnitude.dtype == np.float64
    assert (magnitude >= np.abs(kernel.diagonal(rows)) * (1 - 1e-12)).all()
    if kernel not in CUSTOM.values():  # those of callables are as large as the diagonal says
        bound = np.sqrt(np.outer(magnitude, magnitude))
        assert (np.abs(kernel.block(rows, rows)) <= bound * (1 + 1e-12) + 1e-12).all()


@both_forms
@both_dtypes
def test_sigmoid_of_large_and_small_products_keeps_its_digits(form, dtype):
    precise = np.finfo(dtype).eps
    products = np.concatenate([-np.geomspace(1e-20, 1e20, 300), [0.0], np.geomspace(1e-20, 1e20)])
    values = Sigmoid(1.0).block(form(products[:, None].astype(dtype)), form(np.ones((1, 1), dtype)))
    expected = np.tanh(products.astype(dtype).astype(np.float64))
    assert_allclose(values[:, 0], expected, rtol=4 * precise)
    assert values[0, 0] < 0 < values[-1, 0] == 1


@every_function
@both_dtypes
def test_diagonal_is_the_diagonal_of_the_block(kernel, dtype, rows):
    narrow = rows.astype(dtype)
    diagonal = kernel.diagonal(narrow)
    assert diagonal.dtype == np.float64
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    assert_allclose(np.diag(kernel.block(narrow, narrow)), diagonal, rtol=tolerance, atol=1e-12)


@every_named
def test_diagonal_of_sparse_rows_is_that_of_dense_rows(kernel, rows):
    assert_allclose(kernel.diagonal(sp.csr_matrix(rows)), kernel.diagonal(rows), rtol=1e-14)


@every_named
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@both_dtypes
def test_sparse_rows_have_the_values_of_dense_rows(kernel, container, dtype, rows, basis):
    rows, basis = rows.astype(dtype), basis.astype(dtype)
    dense = kernel.block(rows, basis)
    tolerance = 2e-5 if dtype == np.float32 else 1e-12
    for left, right in [(container, container), (container, np.asarray), (np.asarray, container)]:
        assert_allclose(kernel.block(left(rows), right(basis)), dense, rtol=tolerance, atol=1e-6)


@every_function
def test_float32_stays_float32_and_is_near_float64(kernel, rows, basis):
    rows, basis = rows.astype(np.float32), basis.astype(np.float32)
    narrow = kernel.block(rows, basis)
    assert narrow.dtype == np.float32
    wide = kernel.block(rows.astype(np.float64), basis.astype(np.float64))
    assert wide.dtype == np.float64
    assert_allclose(narrow, wide, rtol=1e-5, atol=1e-5)


@every_function
def test_a_row_is_selected_as_itself(kernel, rows):
    assert_array_equal(kernel.select(rows, np.array([3, 0, 3])), rows[[3, 0, 3]])


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@both_forms
@both_dtypes
def test_a_common_offset_of_the_rows_costs_no_digits(name, form, dtype, rng):
    kernel = NAMED[name]
    slow = reference.twin(kernel)
    moved = (rng.randn(20, 3) + 1e6).astype(dtype)  # in float32, multiples of 1/16
    expected = slow(moved, moved)
    assert_allclose(kernel.block(form(moved), form(moved)), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", [RBF(100.0), Laplacian(281.42), ChiSquare(281.42)])
@both_forms
@both_dtypes
def test_a_row_is_not_away_from_itself(kernel, form, dtype, rng):
    # Rounded in two ways, coordinates of one row would differ, and narrow kernels would show it.
    X = form(reference.suited(kernel, 3 * rng.randn(20, 69)).astype(dtype))
    assert_array_equal(np.diagonal(kernel.block(X, X)), 1.0)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@both_dtypes
def test_wide_sparse_rows_with_a_common_offset(name, dtype, rng):
    # Sums of thousands of large entries, of which hardly anything is left in a distance.
    X = (1e4 + rng.randn(12, 2500)).astype(dtype)
    kernel = {"rbf": RBF(2e-4), "laplacian": Laplacian(2e-4)}[name]
    found = kernel.single_block(sp.csr_matrix(X), sp.csr_matrix(X))
    expected = {"rbf": reference.rbf, "laplacian": reference.laplacian}[name]
    assert_allclose(found, expected(X.astype(np.float64), X.astype(np.float64), 2e-4), atol=1e-5)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@both_forms
@both_dtypes
def test_one_far_row_costs_the_others_no_digits(name, form, dtype, rng):
    kernel = NAMED[name]
    slow = reference.twin(kernel)
    scattered = rng.randn(20, 3).astype(dtype)
    scattered[0] *= 1e6
    values = kernel.block(form(scattered), form(scattered))
    assert_allclose(values, slow(scattered, scattered), rtol=0, atol=1e-5)


@every_named
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_basis", [1, 37])
def test_threads_change_no_bit(kernel, form, dtype, n_basis, rng):
    rows = form(reference.suited(kernel, rng.randn(1500, 7)).astype(dtype))
    alone = kernel.block(rows, rows[:n_basis], 1)
    assert_array_equal(kernel.block(rows, rows[:n_basis], 2), alone)
    assert_array_equal(kernel.block(rows, rows[:n_basis], 3), alone)


@every_named
@both_forms
def test_no_rows_give_no_values(kernel, form, rows, basis):
    assert kernel.block(form(rows[:0]), form(basis)).shape == (0, 9)
    assert kernel.block(form(rows), form(basis[:0])).shape == (30, 0)
    assert kernel.diagonal(form(rows[:0])).shape == (0,)


@both_forms
def test_a_function_is_not_asked_for_no_values(form, rows, basis):
    kernel = CustomKernel(pairwise.rbf_kernel)  # which refuses arrays without rows
    assert kernel.block(form(rows[:0]), form(basis)).shape == (0, 9)
    assert kernel.block(form(rows), form(basis[:0])).shape == (30, 0)


@both_forms
def test_precomputed_looks_values_up(form, rows):
    matrix = pairwise.rbf_kernel(rows, gamma=0.3)
    kernel = Precomputed()
    numbers = kernel.select(form(matrix), np.array([4, 1, 20]))
    assert_array_equal(kernel.block(form(matrix), numbers), matrix[:, [4, 1, 20]])
    assert_array_equal(kernel.diagonal(form(matrix)), np.diag(matrix))


def test_a_function_that_refuses_empty_matrices_is_not_asked():
    X = np.arange(6.0).reshape(3, 2)
    kernel = CustomKernel(pairwise.polynomial_kernel)
    assert kernel.block(X, X[:0]).shape == (3, 0)
    assert kernel.block(X[:0], X).shape == (0, 3)


def test_a_function_is_of_use_until_the_basis_is_exhausted():
    X, y = overlapping_classes(60, 3)
    machine = SparseKernelClassifier(
        60, basis=ChosenBasis(n_candidates="all"), kernel=pairwise.linear_kernel, tol=0
    )
    assert machine.fit(X, y).stop_reason_ == "exhausted"


def test_custom_kernel_of_a_wrong_shape_is_refused(rows, basis):
    kernel = CustomKernel(lambda X, Y: np.ones((len(Y), len(X))))
    with pytest.raises(ValueError, match=r"shape \(9, 30\) for 30 rows and 9 basis vectors"):
        kernel.block(rows, basis)


def test_custom_kernel_that_is_not_finite_is_refused(rows, basis):
    kernel = CustomKernel(lambda X, Y: np.full((len(X), len(Y)), np.nan))
    with pytest.raises(ValueError, match="NaN or infinity"):
        kernel.block(rows, basis)


@both_forms
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e6])
def test_gamma_scale_is_scikit_learns(form, scale, rows):
    assert scale_gamma(form(scale * rows)) == pytest.approx(1.0 / (7 * np.var(scale * rows)))


@both_forms
@pytest.mark.parametrize("name", ["rbf", "laplacian", "chi2", "poly", "sigmoid"])
def test_gamma_auto_is_one_over_the_number_of_features(name, form, rows):
    assert as_kernel(name, form(100 * rows), gamma="auto").gamma == 1 / 7


def test_gamma_auto_is_scikit_learns(rows):
    svc = SVC(gamma="auto").fit(rows, np.arange(30) % 2)
    assert as_kernel("rbf", rows, gamma="auto") == RBF(svc._gamma)


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_sigmoid_by_name_is_that_of_an_svc(gamma, rows):
    y = np.arange(30) % 2
    svc = SVC(kernel="sigmoid", gamma=gamma, coef0=-0.5).fit(rows, y)
    kernel = as_kernel("sigmoid", rows, gamma=gamma, coef0=-0.5)
    scores = kernel.block(rows, svc.support_vectors_) @ svc.dual_coef_.ravel() + svc.intercept_
    assert_allclose(scores, svc.decision_function(rows), rtol=1e-10, atol=1e-12)


@both_forms
def test_gamma_scale_of_constant_rows_is_1(form):
    assert scale_gamma(form(np.ones((5, 3)))) == 1.0
    assert scale_gamma(form(np.full((5, 3), 0.1))) == 1.0


def adaptive(metric, n_basis=9):
    """Return a kernel of learned shape for vectors of 7 features."""
    rng = np.random.RandomState(5)
    metrics = {
        "none": None,
        "weights": rng.uniform(0.2, 1.5, 7),
        "map": rng.randn(7, 7) / 3,
        "narrow map": rng.randn(7, 2) / 2,
        "wide map": rng.randn(7, 11) / 4,
    }
    return AdaptiveRBF(rng.uniform(0.1, 2.0, n_basis), metrics[metric])


every_metric = pytest.mark.parametrize(
    "metric", ["none", "weights", "map", "narrow map", "wide map"]
)


@every_metric
@both_forms
@both_dtypes
def test_learned_shapes_have_the_values_of_the_formula(metric, form, dtype, rows, basis):
    kernel, rows, basis = adaptive(metric), rows.astype(dtype), basis.astype(dtype)
    expected = adaptive_rbf(rows, basis, kernel.widths, kernel.metric)
    tolerance = 2e-6 if dtype == np.float32 else 1e-12
    values = kernel.block(form(rows), form(basis))
    assert values.dtype == dtype
    assert values.shape == (30, 9)
    assert_allclose(values, expected, rtol=0, atol=tolerance)
    single = kernel.single_block(form(rows), form(basis))
    assert single.dtype == np.float32
    assert_allclose(single, expected, rtol=0, atol=2e-6)


@every_metric
@both_dtypes
def test_a_vector_of_a_learned_shape_has_1_with_itself(metric, dtype, basis):
    kernel, basis = adaptive(metric), basis.astype(dtype)
    assert_allclose(np.diag(kernel.block(basis, basis)), np.ones(9), atol=1e-6)
    assert_array_equal(kernel.diagonal(basis), np.ones(9))


@pytest.mark.parametrize("metric", ["none", "weights", "map"])
def test_a_learned_shape_of_equal_widths_is_an_rbf_of_other_rows(metric, rows, basis):
    kernel = AdaptiveRBF(np.full(9, 0.3), adaptive(metric).metric)
    seen = {
        "none": lambda some: some,
        "weights": lambda some: some * kernel.metric,
        "map": lambda some: some @ kernel.metric,
    }[metric]
    expected = RBF(0.3).block(seen(rows), seen(basis))
    assert_allclose(kernel.block(rows, basis), expected, rtol=1e-10, atol=1e-12)


@every_metric
@both_forms
@both_dtypes
@pytest.mark.parametrize("n_basis", [1, 37])
def test_threads_change_no_bit_of_learned_shapes(metric, form, dtype, n_basis, rng):
    kernel = adaptive(metric, n_basis)
    rows = form(rng.randn(1500, 7).astype(dtype))
    alone = kernel.block(rows, rows[:n_basis], 1)
    assert_array_equal(kernel.block(rows, rows[:n_basis], 2), alone)
    assert_array_equal(kernel.block(rows, rows[:n_basis], 3), alone)


@every_metric
@both_forms
@both_dtypes
def test_an_offset_costs_learned_shapes_no_digits(metric, form, dtype, rng):
    kernel = adaptive(metric)
    moved = (rng.randn(20, 7) + 1e5).astype(dtype)
    expected = adaptive_rbf(moved, moved[:9], kernel.widths, kernel.metric)
    assert_allclose(kernel.block(form(moved), form(moved[:9])), expected, rtol=0, atol=2e-5)


@every_metric
@both_forms
def test_learned_shapes_of_no_rows(metric, form, rows, basis):
    assert adaptive(metric).block(form(rows[:0]), form(basis)).shape == (0, 9)
    assert adaptive(metric, 0).block(form(rows), form(basis[:0])).shape == (30, 0)


def test_learned_shapes_belong_to_one_basis(rows, basis):
    with pytest.raises(ValueError, match=r"9 widths.*5 vectors"):
        adaptive("none").block(rows, basis[:5])


@pytest.mark.parametrize("widths", [[0.0], [-1.0], [np.nan], [np.inf], [[1.0]]], ids=str)
def test_widths_that_are_none_are_refused(widths):
    with pytest.raises(ValueError, match="widths"):
        AdaptiveRBF(np.array(widths))


@pytest.mark.parametrize("metric", [[np.nan], [[np.inf]], [[[1.0]]]], ids=str)
def test_metrics_that_are_none_are_refused(metric):
    with pytest.raises(ValueError, match="metric"):
        AdaptiveRBF(np.ones(1), np.array(metric))


class Unknown(Kernel):
    """A kernel that no export has a formula for, as one that was added a moment ago has none."""

    inner = RBF(0.5)

    def block(self, rows, basis, n_threads=1):
        return self.inner.block(rows, basis, n_threads)

    def diagonal(self, rows):
        return self.inner.diagonal(rows)

    def native(self):
        return self.inner.native()


@pytest.mark.parametrize(
    ("form", "message"), [("to_onnx", "no ONNX graph for the kernel"), ("to_c", "has no C form")]
)
def test_exports_refuse_a_kernel_that_they_have_no_formula_for(
    form, message, three_classes, tmp_path
):
    if form == "to_onnx":
        pytest.importorskip("onnx")
    machine = SparseKernelClassifier(5, kernel=Unknown(), random_state=0).fit(*three_classes)
    with pytest.raises(TypeError, match=message):
        getattr(export, form)(machine, tmp_path / "machine.c")

"""The compiled predictor: every kernel, every kind of answer, any input that holds numbers."""

import itertools
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes, seconds_to_stop
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
    sigmoid_kernel,
)

from widemargin import CompiledPredictor, SparseKernelClassifier, models
from widemargin.kernels import (
    RBF,
    CustomKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap
from widemargin.readouts import Readout

pytestmark = [pytest.mark.combinations, pytest.mark.every_case]

TOLERANCES = {"float32": 1e-5, "float64": 1e-10}  # relative to the largest score
N_FEATURES, N_BASIS = 6, 11
PLACES = np.array([5, 0, 2, 3])  # of a kernel matrix


def cosine(rows, others):
    """Return a kernel that is no kernel of the library; each value is computed on its own."""
    rows, others = (sp.csr_matrix(each).toarray() for each in (rows, others))
    return np.cos(rows[:, np.newaxis] - others).sum(axis=2)


# the kernel, and its values by another way
KERNELS = {
    "rbf": (RBF(0.2), lambda X, B: rbf_kernel(X, B, gamma=0.2)),
    "laplacian": (Laplacian(0.2), lambda X, B: laplacian_kernel(X, B, gamma=0.2)),
    "poly": (Polynomial(0.2, 3, 1.0), lambda X, B: polynomial_kernel(X, B, 3, 0.2, 1.0)),
    "sigmoid": (Sigmoid(0.2, -0.5), lambda X, B: sigmoid_kernel(X, B, 0.2, -0.5)),
    "linear": (Linear(), linear_kernel),
    "precomputed": (Precomputed(), lambda X, B: X[:, B]),
    "callable": (CustomKernel(cosine), cosine),
}
# number of scores, and how they are read
KINDS = {
    "binary": (1, Readout(np.array(["no", "yes"]), "binary")),
    "multiclass": (5, Readout(np.array([2, 3, 5, 7, 11]), "multiclass")),
    "multilabel": (3, Readout(np.array(["red", "green", "blue"]), "multilabel")),
}

rng = np.random.RandomState(0)
X = rng.randn(40, N_FEATURES)
X[:, 1] = np.round(X[:, 1])
X[::4, 2:5] = 0
vectors = rng.randn(N_BASIS, N_FEATURES)

every_kernel = pytest.mark.parametrize("name", list(KERNELS))
every_kind = pytest.mark.parametrize("kind", list(KINDS))
both_dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES))


def model_of(name, n_outputs=5):
    kernel = KERNELS[name][0]
    rng = np.random.RandomState(n_outputs)
    basis = PLACES if name == "precomputed" else vectors
    coef, intercept = rng.randn(len(basis), n_outputs), rng.randn(n_outputs)
    return KernelExpansion(kernel, basis, coef, intercept, N_FEATURES)


def predictor_of(name="rbf", kind="multiclass", **options):
    n_outputs, readout = KINDS[kind]
    return CompiledPredictor(model_of(name, n_outputs), readout, **options)


def expected_scores(name, kind, rows):
    model = model_of(name, KINDS[kind][0])
    return KERNELS[name][1](rows, model.basis) @ model.coef + model.intercept


def expected_labels(kind, scores):
    classes = KINDS[kind][1].classes
    if kind == "multilabel":
        return (scores > 0).astype(int)
    best = scores[:, 0] > 0 if kind == "binary" else np.argmax(scores, axis=1)
    return classes[best.astype(int)]


def unsorted(rows):
    """Return CSR rows with their entries from right to left."""
    rows = sp.csr_matrix(rows)
    for start, end in zip(rows.indptr, rows.indptr[1:], strict=False):
        rows.indices[start:end] = rows.indices[start:end][::-1].copy()
        rows.data[start:end] = rows.data[start:end][::-1].copy()
    rows.has_sorted_indices = rows.has_canonical_format = False
    return rows


def entries_twice(rows):
    """Return CSR rows that have each entry in two halves."""
    rows = sp.csr_matrix(rows)
    halves = np.repeat(rows.data / 2, 2)
    return sp.csr_matrix((halves, np.repeat(rows.indices, 2), 2 * rows.indptr), shape=rows.shape)


def stored_zeros(rows):
    rows = np.asarray(rows)
    columns, starts = np.indices(rows.shape)[1].ravel(), np.arange(len(rows) + 1) * rows.shape[1]
    return sp.csr_matrix((rows.ravel(), columns, starts), shape=rows.shape)


def of_64_bits(rows):
    rows = sp.csr_matrix(rows)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


def read_only(rows):
    if sp.issparse(rows):
        for part in (rows.data, rows.indices, rows.indptr):
            part.flags.writeable = False
        return rows
    rows = np.array(rows)
    rows.flags.writeable = False
    return rows


def data_frame(rows):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame(rows, columns=[f"feature {number}" for number in range(rows.shape[1])])


# numbers stay what they are
FORMS = {
    "C order": np.array,
    "Fortran order": np.asfortranarray,
    "every other row": lambda rows: np.repeat(rows, 2, axis=0)[::2],
    "every other column": lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
    "backwards": lambda rows: np.array(rows[::-1, ::-1])[::-1, ::-1],
    "unaligned": lambda rows: (
        np.frombuffer(b"." + rows.tobytes(), np.uint8)[1:].view(rows.dtype).reshape(rows.shape)
    ),
    "other byte order": lambda rows: rows.astype(rows.dtype.newbyteorder()),
    "read-only": read_only,
    "lists": lambda rows: rows.tolist(),
    "list of arrays": list,
    "pandas": data_frame,
    "CSR": sp.csr_matrix,
    "CSR array": sp.csr_array,
    "CSC": sp.csc_matrix,
    "COO": sp.coo_matrix,
    "LIL": sp.lil_matrix,
    "CSR, unsorted": unsorted,
    "CSR, entries twice": entries_twice,
    "CSR with zeros": stored_zeros,
    "CSR of 64 bits": of_64_bits,
    "CSR, read-only": lambda rows: read_only(sp.csr_matrix(rows)),
    "CSR, unsorted, read-only": lambda rows: read_only(unsorted(rows)),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))


@every_kernel
@every_kind
@every_form
def test_rows_in_any_form(name, kind, form):
    for dtype, given in itertools.product(TOLERANCES, TOLERANCES):
        predictor = predictor_of(name, kind, dtype=dtype)
        rows = X.astype(given)
        expected = expected_scores(name, kind, rows.astype(np.float64))
        # A function is called with what was given, and may return single precision.
        tolerance = TOLERANCES["float32" if name == "callable" else dtype]
        scores = predictor.decision_function(form(rows))
        assert scores.dtype == dtype
        assert scores.shape == (expected[:, 0] if kind == "binary" else expected).shape
        difference = scores.reshape(expected.shape) - expected
        assert np.abs(difference).max() <= tolerance * np.abs(expected).max()
        assert_array_equal(predictor.predict(form(rows)), expected_labels(kind, expected))


@every_kernel
@pytest.mark.parametrize("given", [bool, np.int8, np.uint8, np.int64, np.uint64, np.float16])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, data_frame, lambda rows: rows.tolist()])
def test_numbers_of_other_types(name, given, form):
    if form is sp.csr_matrix and given is np.float16:
        given = np.int16  # SciPy has no sparse matrices of half precision
    rows = np.abs(np.round(2 * X)).astype(given)
    expected = expected_scores(name, "multiclass", rows.astype(np.float64))
    for dtype, tolerance in TOLERANCES.items():
        found = predictor_of(name, dtype=dtype).decision_function(form(rows))
        assert found.dtype == dtype
        assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@both_dtypes
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix, lambda rows: rows.tolist()])
def test_integers_too_long_for_float32_keep_their_digits(dtype, form):
    rows = 1_700_000_000 + rng.randint(0, 20, (30, 4))  # seconds, say
    model = KernelExpansion(RBF(0.01), rows[:7] * 1.0, rng.randn(7, 3), rng.randn(3))
    predictor = CompiledPredictor(model, Readout(np.arange(3), "multiclass"), dtype=dtype)
    expected = predictor.decision_function(rows.astype(np.float64))
    assert_allclose(predictor.decision_function(form(rows)), expected, rtol=1e-3)
    labels = predictor.predict(rows.astype(np.float64)).tolist()
    assert [predictor.predict_one(row) for row in rows] == labels


@every_form
def test_prediction_changes_no_rows(form):
    rows, again = form(X), form(X)
    predictor_of().predict(rows)
    if sp.issparse(rows):
        for part in ("data", "indices", "indptr"):
            if hasattr(rows, part) and rows.format != "lil":
                assert_array_equal(getattr(rows, part), getattr(again, part))
    else:
        assert_array_equal(np.asarray(rows), np.asarray(again))


@every_kernel
@both_dtypes
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_any_number_of_threads_gives_the_same_bits(name, dtype, form):
    rows = form(np.tile(X, (60, 1)))
    alone = predictor_of(name, dtype=dtype)
    for n_jobs in (2, -1, None):
        several = predictor_of(name, dtype=dtype, n_jobs=n_jobs)
        assert_array_equal(several.decision_function(rows), alone.decision_function(rows))
        assert_array_equal(several.predict(rows), alone.predict(rows))


@every_kernel
@every_kind
@both_dtypes
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_no_rows_and_a_single_one(name, kind, dtype, form):
    predictor = predictor_of(name, kind, dtype=dtype)
    all_scores, all_labels = predictor.decision_function(form(X)), predictor.predict(form(X))
    for n_rows in (0, 1):
        scores = predictor.decision_function(form(X[:n_rows]))
        labels = predictor.predict(form(X[:n_rows]))
        assert scores.dtype == dtype
        assert labels.dtype == all_labels.dtype
        assert_array_equal(scores, all_scores[:n_rows])
        assert_array_equal(labels, all_labels[:n_rows])


WRONG_SHAPES = {
    "a feature less": X[:, :-1],
    "a feature more": np.hstack([X, X[:, :1]]),
    "no features": X[:, :0],
    "1-D": X[0],
    "1-D, many": X[:, 0],
    "3-D": X[np.newaxis],
    "a number": 3.0,
    "nothing": [],
    "an empty list of rows": [[]],
    "sparse, a feature less": sp.csr_matrix(X[:, :-1]),
    "rows of different length": [[1.0] * N_FEATURES, [1.0]],
    "words in a list": ["far"] * N_FEATURES,
    "None": None,
}
WRONG_TYPES = {
    "words": X.astype(str),
    "words as objects": np.full(X.shape, "far", dtype=object),
    "complex": X.astype(complex),
    "sparse complex": sp.csr_matrix(X.astype(complex)),
    "dates": np.zeros(X.shape, dtype="datetime64[s]"),
    "bytes": np.full(X.shape, b"1"),
}
METHODS = ["predict", "decision_function", "predict_proba"]


def logistic_predictor(**options):
    readout = Readout(np.arange(5), "multiclass", "softmax")
    return CompiledPredictor(model_of("rbf"), readout, **options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("rows", WRONG_SHAPES.values(), ids=list(WRONG_SHAPES))
def test_rows_of_a_wrong_shape(method, check, rows):
    ragged = isinstance(rows, list) and len(rows) == 2  # in NumPy's own words
    words = "shape" if ragged else rf"shape \(n_rows, {N_FEATURES}\), got \("
    with pytest.raises(ValueError, match=words):
        getattr(logistic_predictor(check=check), method)(rows)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("rows", WRONG_TYPES.values(), ids=list(WRONG_TYPES))
def test_rows_that_hold_no_numbers(method, check, rows):
    with pytest.raises((TypeError, ValueError), match="numbers"):
        getattr(logistic_predictor(check=check), method)(rows)


def spoilt(value, form=np.array, given=np.float64, row=23, column=2):
    rows = X.astype(given)
    rows[row, column] = value
    return form(rows)


def few_entries(rows):
    """Return rows with a share of entries so small that no kernel makes them dense."""
    return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=(rows.shape[0], 400))


@every_kernel
@both_dtypes
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.array, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_a_row_that_is_not_finite_is_named(name, dtype, given, form):
    predictor = predictor_of(name, dtype=dtype)
    # What a function makes of NaN is its own affair, but it may not pass for a number.
    words = "NaN or infinity" if name == "callable" else "NaN or infinity.*row 23"
    for value in (np.nan, np.inf, -np.inf):
        rows = spoilt(value, form, given)
        with pytest.raises(ValueError, match=words), np.errstate(invalid="ignore"):
            predictor.predict(rows)
        with pytest.raises(ValueError, match=words), np.errstate(invalid="ignore"):
            predictor.decision_function(rows)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid", "linear"])
@both_dtypes
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_sparse_row_of_few_entries_that_is_not_finite_is_named(name, dtype, value):
    coef, intercept = rng.randn(N_BASIS, 5), rng.randn(5)
    basis = few_entries(sp.csr_matrix(vectors))
    model = KernelExpansion(KERNELS[name][0], basis, coef, intercept)
    predictor = CompiledPredictor(model, KINDS["multiclass"][1], dtype=dtype)
    rows = few_entries(spoilt(value, sp.csr_matrix))
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 23"):
        predictor.predict(rows)
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 23"):
        predictor.decision_function(rows)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_a_bad_row_is_named_where_the_basis_is_not_kept_dense(name, form, monkeypatch):
    monkeypatch.setattr(models, "_PACKED_ENTRIES", 0)
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 23"):
        predictor_of(name).predict(spoilt(np.nan, form))


@pytest.mark.parametrize("name", ["rbf", "linear", "precomputed"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_first_of_several_bad_rows_is_named(name, n_jobs, monkeypatch):
    rows = np.tile(X, (100, 1))
    rows[[3900, 3100, 2999, 2998], 0] = np.nan
    with pytest.raises(ValueError, match="row 2998"):
        predictor_of(name, n_jobs=n_jobs).predict(rows)
    monkeypatch.setattr(models, "_CALL_PRODUCTS", 1)  # in many blocks
    monkeypatch.setattr(models, "_BLOCK_ENTRIES", 1)
    with pytest.raises(ValueError, match="row 2998"):
        predictor_of(name, n_jobs=n_jobs).predict(rows)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_a_number_too_large_for_float32(name, form):
    rows = spoilt(1e300, form)
    for method in ("predict", "decision_function"):
        with pytest.raises(ValueError, match=r"too large for float32.*row 23"):
            getattr(predictor_of(name), method)(rows)
    with pytest.raises(ValueError, match="too large"):
        predictor_of(name).predict_one(spoilt(1e300)[23])
    assert len(predictor_of(name, dtype="float64").predict(rows)) == len(X)


@pytest.mark.parametrize("name", ["linear", "precomputed"])
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
def test_no_number_is_too_large_where_scores_are_sums_of_features(name, form):
    rows = spoilt(1e300, form)
    labels = predictor_of(name, dtype="float64").predict(rows)
    assert_array_equal(predictor_of(name).predict(rows), labels)
    assert predictor_of(name).predict_one(spoilt(1e300)[23]) == labels[23]


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"])
@both_dtypes
@every_kind
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_without_the_check_other_rows_are_as_ever(name, dtype, kind, form, value):
    predictor = predictor_of(name, kind, dtype=dtype, check=False)
    others = np.arange(len(X)) != 23
    for method in ("predict", "decision_function"):
        found = getattr(predictor, method)(spoilt(value, form))
        assert_array_equal(found[others], getattr(predictor, method)(form(X))[others])
    label = predictor.predict_one(spoilt(value)[23])
    assert kind == "multilabel" or label in predictor.classes_


def test_scores_beyond_the_range_of_floats_still_have_a_label():
    machine = SparseKernelClassifier(5, kernel="poly", random_state=0).fit(X, np.arange(40) % 3)
    for rows in (np.full((1, N_FEATURES), 1e30, dtype=np.float32), np.full((1, N_FEATURES), 1e150)):
        assert set(machine.predict(rows)) <= {0, 1, 2}
        predictor = machine.compile(dtype=rows.dtype.name)
        assert set(predictor.predict(rows)) <= {0, 1, 2}
        assert predictor.predict_one(rows[0]) in (0, 1, 2)


BAD_OPTIONS = {
    "dtype": (["float16", "int32", "double", "", None, 32, int, np.dtype("f2")], ValueError),
    "n_jobs": ([0, 10**6], ValueError),
}
OPTIONS_OF_A_WRONG_TYPE = {"n_jobs": ["2", 1.5, True], "check": [1, 0, "yes", None]}
WRONG_OPTIONS = [
    (name, value, error) for name, (values, error) in BAD_OPTIONS.items() for value in values
] + [
    (name, value, TypeError) for name, values in OPTIONS_OF_A_WRONG_TYPE.items() for value in values
]


@pytest.mark.parametrize(
    ("name", "value", "error"),
    WRONG_OPTIONS,
    ids=[f"{name}={value!r}" for name, value, _ in WRONG_OPTIONS],
)
def test_bad_options(name, value, error, three_classes):
    with pytest.raises(error, match=name):
        predictor_of(**{name: value})
    machine = SparseKernelClassifier(3, random_state=0).fit(*three_classes)
    with pytest.raises(error, match=name):
        machine.compile(**{name: value})


def test_good_options(three_classes):
    machine = SparseKernelClassifier(3, random_state=0).fit(*three_classes)
    numpy_types = (np.float32, np.float64, np.dtype("float32"), np.dtype("float64"))
    for dtype in ("float32", "float64", *numpy_types):
        assert machine.compile(dtype).dtype == dtype
    assert machine.compile().dtype == np.float32
    assert machine.compile("float64", 2, check=np.True_).n_features_in_ == 4


def test_not_fitted():
    with pytest.raises(NotFittedError):
        SparseKernelClassifier().compile()


@pytest.mark.parametrize("n_outputs", [2, 4, 6])
@every_kind
def test_a_readout_of_other_scores_than_the_model_has_is_refused(kind, n_outputs):
    with pytest.raises(ValueError, match=rf"{n_outputs}\b"):
        CompiledPredictor(
            model_of("rbf", n_outputs + (n_outputs == KINDS[kind][0])), KINDS[kind][1]
        )


# the forms of a single row
ONE = {
    "float64": np.array,
    "float32": lambda row: row.astype(np.float32),
    "float16": lambda row: row.astype(np.float16),
    "list": lambda row: row.tolist(),
    "tuple": lambda row: tuple(row.tolist()),
    "NumPy numbers": list,
    "every other number": lambda row: np.repeat(row, 2)[::2],
    "backwards": lambda row: np.array(row[::-1])[::-1],
    "other byte order": lambda row: row.astype(row.dtype.newbyteorder()),
    "column of a table": lambda row: np.stack([row, row], axis=1)[:, 1],
    "unaligned": lambda row: np.frombuffer(b"." + row.tobytes(), np.uint8)[1:].view(row.dtype),
    "read-only": read_only,
    "memoryview": memoryview,
    "pandas": lambda row: pytest.importorskip("pandas").Series(row),
}


@every_kernel
@every_kind
@pytest.mark.parametrize("form", ONE.values(), ids=list(ONE))
def test_one_row(name, kind, form):
    predictors = [predictor_of(name, kind, dtype=dtype) for dtype in TOLERANCES]
    for predictor, row in itertools.product(predictors, X[:8]):
        given = form(row)
        label = predictor.predict_one(given)
        (expected,) = predictor.predict(np.asarray(given).astype(np.float64)[np.newaxis])
        if kind == "multilabel":
            assert_array_equal(label, expected)
            assert label.shape == (3,)
        else:
            assert label == expected
            assert type(label) is {"binary": str, "multiclass": int}[kind]


@every_kernel
@both_dtypes
@pytest.mark.parametrize("given", [bool, np.int8, np.int64])
def test_one_row_of_other_numbers(name, dtype, given):
    predictor = predictor_of(name, dtype=dtype)
    rows = np.abs(np.round(2 * X[:8])).astype(given)
    expected = predictor.predict(rows.astype(np.float64)).tolist()
    assert [predictor.predict_one(row) for row in rows] == expected
    assert [predictor.predict_one(row.tolist()) for row in rows] == expected


@every_kernel
@both_dtypes
@pytest.mark.parametrize("check", [True, False])
def test_one_row_that_is_none(name, dtype, check):
    predictor = predictor_of(name, dtype=dtype, check=check)
    for length in (0, N_FEATURES - 1, N_FEATURES + 1):
        for row in (np.ones(length), np.ones(length, np.float32), [1] * length, (1.0,) * length):
            with pytest.raises(ValueError, match=rf"{N_FEATURES}.*{length}"):
                predictor.predict_one(row)
    for rows in (X, X[:1], X[:1].tolist(), X[:, :1], X[:2, np.newaxis], 3.0, np.array(3.0)):
        with pytest.raises(ValueError, match=rf"single row of {N_FEATURES} features"):
            predictor.predict_one(rows)
    with pytest.raises(ValueError, match=rf"single row of {N_FEATURES} features"):
        predictor.predict_one(sp.csr_matrix(X[:1]))
    for row in (["far"] * N_FEATURES, X[0].astype(complex), [None] * N_FEATURES):
        with pytest.raises(TypeError, match="numbers"):
            predictor.predict_one(row)


@every_kernel
@pytest.mark.parametrize("value", [None, "a row", b"a row"])
def test_one_row_that_is_no_array(name, value):
    with pytest.raises((TypeError, ValueError), match=rf"single row of {N_FEATURES} features"):
        predictor_of(name).predict_one(value)


@every_kernel
@every_kind
@both_dtypes
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_row_that_is_not_finite(name, kind, dtype, value):
    predictor = predictor_of(name, kind, dtype=dtype)
    row = spoilt(value)[23]
    for given in (row, row.astype(np.float32), row.tolist()):
        with pytest.raises(ValueError, match="NaN or infinity"), np.errstate(invalid="ignore"):
            predictor.predict_one(given)


LABELS = {
    "int": [3, 5, 8],
    "negative": [-1, 0, 1],
    "str": ["ash", "birch", "cedar"],
    "bool": [False, True],
    "float": [0.0, 1.0, 2.0],
    "object": np.array(["ash", "birch", "cedar"], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=list(LABELS))
def test_labels_of_any_kind(labels):
    rows, numbers = overlapping_classes(60, len(labels))
    labels = np.asarray(labels)
    machine = SparseKernelClassifier(5, random_state=0).fit(rows, labels[numbers])
    predictor = machine.compile("float64")
    found = predictor.predict(rows)
    assert found.dtype == machine.classes_.dtype
    assert_array_equal(found, machine.predict(rows))
    for given in (np.array, list):  # through native code, and through NumPy
        ones = [predictor.predict_one(given(row)) for row in rows]
        assert ones == found.tolist()
        assert {type(label) for label in ones} == {type(label) for label in labels.tolist()}


def test_the_predictor_does_not_change_with_the_estimator(three_classes):
    rows, y = three_classes
    for kernel in ("rbf", "linear", cosine):
        machine = SparseKernelClassifier(5, kernel=kernel, loss="logistic", random_state=0)
        predictor = machine.fit(rows, y).compile()
        before = predictor.predict_proba(rows)
        machine.set_params(loss="weston_watkins", basis="per_class", kernel="laplacian")
        machine.fit(rows[:, :2] + 3, y > 0)
        assert_array_equal(predictor.predict_proba(rows), before)
        assert_array_equal(predictor.classes_, [0, 1, 2])
        assert predictor.n_features_in_ == 4


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid", "linear", cosine])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_rows_of_either_precision(kernel, given, three_classes):
    rows, y = three_classes
    machine = SparseKernelClassifier(8, kernel=kernel, random_state=0).fit(rows, y)
    rows = rows.astype(given)
    scores = machine.decision_function(rows)
    assert scores.dtype == given
    assert_array_equal(machine.predict(rows), np.argmax(scores, axis=1))
    assert_array_equal(machine.compile(given).predict(rows), machine.predict(rows))
    assert_array_equal(machine.compile(given).decision_function(rows), scores)
    assert_array_equal(machine.predict(sp.csr_matrix(rows)), machine.predict(rows))


def test_a_machine_trained_on_a_kernel_matrix(three_classes):
    rows, y = three_classes
    K = rbf_kernel(rows)
    machine = SparseKernelClassifier(8, kernel="precomputed", random_state=0).fit(K, y)
    predictor = machine.compile("float64")
    assert_array_equal(predictor.predict(K), machine.predict(K))
    assert_array_equal(predictor.decision_function(K), machine.decision_function(K))
    assert predictor.predict_one(K[4]) == machine.predict(K[4:5])[0]
    with pytest.raises(ValueError, match=r"\(n_rows, 60\), got \(60, 4\)"):
        predictor.predict(rows)


@every_kernel
@every_kind
@both_dtypes
def test_a_pickled_predictor_gives_the_same_bits(name, kind, dtype):
    predictor = predictor_of(name, kind, dtype=dtype, n_jobs=2, check=False)
    copy = pickle.loads(pickle.dumps(predictor))
    again = pickle.loads(pickle.dumps(copy))
    for each in (copy, again):
        assert_array_equal(each.decision_function(X), predictor.decision_function(X))
        assert_array_equal(each.predict(X), predictor.predict(X))
        assert_array_equal(each.predict_one(X[0]), predictor.predict_one(X[0]))
        assert vars(each).keys() == vars(predictor).keys()


def test_a_pickled_predictor_counts_the_cores_of_where_it_is(monkeypatch):
    pickled = pickle.dumps(predictor_of(n_jobs=-1))
    monkeypatch.setattr("widemargin._system.threads.effective_n_jobs", lambda n_jobs: 7)
    assert pickle.loads(pickled)._n_threads in (7, 1)  # 1 in a build without threads


@every_kernel
@every_kind
def test_many_threads_use_one_predictor(name, kind):
    predictor = predictor_of(name, kind)
    rows = np.tile(X, (30, 1))
    scores, labels = predictor.decision_function(rows), predictor.predict(rows)

    def work(number):
        part = slice(20 * number, 20 * number + 200)
        assert_array_equal(predictor.predict(rows[part]), labels[part])
        assert_array_equal(predictor.decision_function(rows[part]), scores[part])
        return all(
            np.array_equal(predictor.predict_one(row), label)
            for row, label in zip(X[:8], labels[:8], strict=True)
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(32)))


@every_kernel
def test_many_threads_build_one_model(name):
    rows = np.tile(X, (5, 1))
    expected = model_of(name).scores(rows)
    single = model_of(name).scores(rows, dtype="float32")
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            model = model_of(name)
            readout = KINDS["multiclass"][1]
            tasks = [pool.submit(model.scores, rows) for _ in range(4)]
            tasks += [pool.submit(model.scores, rows, dtype="float32") for _ in range(2)]
            made = [pool.submit(CompiledPredictor, model, readout) for _ in range(2)]
            tasks += [pool.submit(pickle.dumps, model)]
            for task in tasks[:4]:
                assert_array_equal(task.result(), expected)
            for task in tasks[4:6]:
                assert_array_equal(task.result(), single)
            assert_array_equal(pickle.loads(tasks[6].result()).scores(rows), expected)
            for task in made:
                assert_array_equal(task.result().decision_function(rows), single)


@pytest.mark.parametrize("basis", ["shared", "per_class"])
@pytest.mark.parametrize("n_classes", [2, 3])
@both_dtypes
def test_probabilities_of_the_logistic_loss(basis, n_classes, dtype):
    rows, y = overlapping_classes(80, n_classes)
    machine = SparseKernelClassifier(6, loss="logistic", basis=basis, random_state=0).fit(rows, y)
    predictor = machine.compile(dtype)
    found = predictor.predict_proba(rows)
    assert found.dtype == dtype
    assert found.shape == (80, n_classes)
    assert_allclose(found, machine.predict_proba(rows), rtol=1e2 * TOLERANCES[dtype])
    assert_allclose(found.sum(axis=1), 1, rtol=TOLERANCES[dtype])
    assert_array_equal(predictor.classes_[np.argmax(found, axis=1)], predictor.predict(rows))
    scores = machine.decision_function(rows)
    if n_classes == 2:
        expected = np.stack([expit(-scores), expit(scores)], axis=1)
    elif basis == "shared":
        expected = softmax(scores, axis=1)
    else:
        expected = expit(scores) / expit(scores).sum(axis=1, keepdims=True)
    assert_allclose(found, expected, rtol=1e2 * TOLERANCES[dtype])
    assert predictor.predict_proba(rows[:0]).shape == (0, n_classes)
    copy = pickle.loads(pickle.dumps(predictor))
    assert_allclose(copy.predict_proba(sp.csr_matrix(rows)), found, rtol=1e-4)
    assert_array_equal(copy.predict_proba(rows), found)


def test_probabilities_of_labels_that_do_not_exclude_one_another():
    readout = Readout(np.arange(3), "multilabel", "one_against_rest")
    predictor = CompiledPredictor(model_of("rbf", 3), readout, dtype="float64")
    assert_allclose(predictor.predict_proba(X), expit(expected_scores("rbf", "multilabel", X)))


@pytest.mark.parametrize("loss", ["weston_watkins", "crammer_singer"])
def test_other_losses_have_no_probabilities(loss, three_classes):
    rows, y = three_classes
    predictor = SparseKernelClassifier(3, loss=loss, random_state=0).fit(rows, y).compile()
    for each in (predictor, predictor_of(kind="binary")):
        assert not hasattr(each, "predict_proba")
        with pytest.raises(AttributeError, match=r"predict_proba.*Train one with loss='logistic'"):
            each.predict_proba(rows)
    assert hasattr(logistic_predictor(), "predict_proba")


def test_a_linear_map():
    model = LinearMap(vectors.T, np.zeros(N_BASIS))
    predictor = CompiledPredictor(model, Readout(np.arange(N_BASIS), "multiclass"), dtype="float64")
    assert_allclose(predictor.decision_function(X), X @ vectors.T, atol=1e-12)
    assert_array_equal(predictor.predict(X), np.argmax(X @ vectors.T, axis=1))
    assert predictor.predict_one(X[0]) == np.argmax(vectors @ X[0])


PROGRAM = """
    import numpy as np
    from widemargin import CompiledPredictor
    from widemargin.kernels import RBF
    from widemargin.models import KernelExpansion
    from widemargin.readouts import Readout

    rng = np.random.RandomState(0)
    model = KernelExpansion(RBF(0.1), rng.randn(20_000, 20), rng.randn(20_000, 10), np.zeros(10))
    predictor = CompiledPredictor(model, Readout(np.arange(10), "multiclass"), n_jobs={n_jobs})
    X = np.ones((400_000, 20), dtype=np.float32)
    print("begins", flush=True)
    try:
        predictor.predict(X)
    except KeyboardInterrupt:
        print("interrupted", len(predictor.predict(X[:10])), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c_ends_a_long_prediction():
    program = PROGRAM.format(n_jobs=1)
    # All rows would take far longer. A busy machine can hold one run up, hardly each of three.
    assert any(seconds_to_stop(program, "interrupted 10", begin=0.5) < 4 for _ in range(3))

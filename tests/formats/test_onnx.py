"""ONNX files say what Python says, in onnxruntime."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from contract import ESTIMATORS, targets, unfitted
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from widemargin import LearnedBasis, SparseKernelClassifier
from widemargin.compiled import CompiledPredictor
from widemargin.export import to_onnx
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
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap
from widemargin.readouts import Readout

pytestmark = pytest.mark.combinations

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
KERNELS = ["rbf", "laplacian", "chi2", "poly", "sigmoid", "linear"]


def data(n_classes=3, n_features=6, seed=0, kernel="rbf"):
    X, y = make_classification(
        160, n_features, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=seed
    )
    X = np.maximum(X + 1, 0) if kernel == "chi2" else X
    return X.astype(np.float32).astype(np.float64), y


def run(proto, X):
    """Return the outputs by name."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def largest_error(found, expected):
    assert found.shape == expected.shape
    return np.abs(found - expected).max(initial=0.0) / np.abs(expected).max(initial=1e-300)


def assert_agrees(machine, X, dtype="float32", **options):
    """Check all outputs against float64 prediction in Python; rows must be float32 numbers."""
    proto = to_onnx(machine, dtype=dtype, **options)
    onnx.checker.check_model(proto, full_check=True)
    assert all(node.domain in ("", "ai.onnx") for node in proto.graph.node)
    outputs = run(proto, X.astype(dtype))
    scores = machine.decision_function(X)
    assert outputs["scores"].dtype == np.dtype(dtype)
    assert largest_error(outputs["scores"], scores) < TOLERANCE[dtype]
    # Only where two scores are as close as their errors may the label be another one.
    clear = np.ones(len(X), dtype=bool)
    if scores.ndim == 1:
        clear = np.abs(scores) > 1e-4 * np.abs(scores).max(initial=0.0)
    elif scores.shape[1] > 1:
        best = np.sort(scores, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-4 * np.abs(scores).max(initial=0.0)
    np.testing.assert_array_equal(outputs["label"][clear], machine.predict(X)[clear])
    if hasattr(machine, "predict_proba") and "probabilities" in outputs:
        expected = machine.predict_proba(X)
        assert np.abs(outputs["probabilities"] - expected).max() < 10 * TOLERANCE[dtype]
    return proto, outputs


@pytest.mark.parametrize("labels", ["integers", "strings"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_agrees_with_python(kernel, n_classes, dtype, labels):
    X, y = data(n_classes, kernel=kernel)
    y = np.array(["pear", "äpfel", "quince"])[y] if labels == "strings" else 3 * y - 1
    machine = SparseKernelClassifier(12, kernel=kernel, random_state=0).fit(X, y)
    _, outputs = assert_agrees(machine, X, dtype)
    assert list(outputs) == ["label", "scores"]
    assert outputs["label"].dtype == (object if labels == "strings" else np.int64)


METRICS = ["none", "weights", "map", "wide map"]


def learned(
    metric,
    n_outputs=3,
    n_basis=15,
    n_features=6,
    offset=0.0,
    dtype=np.float64,
    linear_part=False,
):
    """Return an expansion in vectors of different widths, and its scores from the formula."""
    rng = np.random.RandomState(0)
    metrics = {
        "none": None,
        "weights": rng.rand(n_features).astype(dtype),
        "map": 0.5 * rng.randn(n_features, 2).astype(dtype),
        "wide map": 0.3 * rng.randn(n_features, n_features + 3).astype(dtype),
    }
    kernel = AdaptiveRBF(rng.uniform(0.05, 0.5, n_basis).astype(dtype), metrics[metric])
    basis = (rng.randn(n_basis, n_features) + offset).astype(dtype)
    coef = rng.randn(n_basis, n_outputs)
    intercept, linear = rng.randn(n_outputs), rng.randn(n_features, n_outputs)
    if linear_part:
        intercept -= offset * linear.sum(axis=0)
    model = KernelExpansion(kernel, basis, coef, intercept, linear=linear if linear_part else None)

    def scores(rows):
        gaps = rows[:, np.newaxis] - basis.astype(np.float64)
        if kernel.metric is not None:
            gaps = gaps * kernel.metric if kernel.metric.ndim == 1 else gaps @ kernel.metric
        values = np.exp(-kernel.widths * (gaps**2).sum(axis=2))
        straight = (rows - offset) @ linear + offset * linear.sum(axis=0) if linear_part else 0.0
        return values @ model.coef + straight + model.intercept

    return model, scores


@pytest.mark.parametrize("linear_part", [False, True])
@pytest.mark.parametrize("kept", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("metric", METRICS)
def test_learned_kernels_keep_to_their_formula(metric, n_classes, dtype, offset, kept, linear_part):
    n_outputs = 1 if n_classes == 2 else n_classes
    offset = offset / 10 if linear_part else offset  # from which the formula keeps its own digits
    model, scores = learned(metric, n_outputs, offset=offset, dtype=kept, linear_part=linear_part)
    rows = (np.random.RandomState(1).randn(1000, 6) + offset).astype(np.float32)
    found = run(to_onnx(model, dtype=dtype), rows.astype(dtype))["scores"]
    assert largest_error(found, scores(rows.astype(np.float64))) < TOLERANCE[dtype]
    readout = Readout(np.arange(n_classes), "binary" if n_classes == 2 else "multiclass", "softmax")
    machine = CompiledPredictor(model, readout, dtype="float64")
    _, outputs = assert_agrees(machine, rows.astype(np.float64), dtype)
    assert list(outputs) == ["label", "scores", "probabilities"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("metric", ["none", "diagonal", "full"])
def test_learned_basis(metric, n_classes, dtype):
    X, y = data(n_classes)
    machine = SparseKernelClassifier(
        4, basis=LearnedBasis(metric=metric, max_iter=5), loss="logistic", random_state=0
    )
    assert_agrees(machine.fit(X, y), X, dtype)


@pytest.mark.parametrize("metric", METRICS)
def test_learned_kernels_are_one_product(metric):
    model, _ = learned(metric)
    operators = [node.op_type for node in to_onnx(model).graph.node]
    assert operators.count("Gemm") == 2  # of the exponents, and of the scores
    assert operators.count("MatMul") == ("map" in metric)
    assert operators.count("Mul") == (metric == "weights")
    assert "Cast" not in operators  # single precision is enough


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_estimator(name, n_classes):
    X, y = data(n_classes)
    machine = unfitted(name).fit(X, targets(name, y, np.arange(n_classes)))
    assert_agrees(machine, X)
    assert_agrees(machine, X, "float64")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("basis", ["shared", "per_class"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(n_classes, basis, dtype):
    X, y = data(n_classes)
    machine = SparseKernelClassifier(8, loss="logistic", basis=basis, random_state=0).fit(X, y)
    _, outputs = assert_agrees(machine, X, dtype)
    assert list(outputs) == ["label", "scores", "probabilities"]
    np.testing.assert_allclose(outputs["probabilities"].sum(axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_probabilities_of_scores_that_are_all_low(dtype):
    readout = Readout(np.arange(3), "multiclass", "one_against_rest")
    machine = CompiledPredictor(
        LinearMap(np.zeros((1, 3)), np.array([-900.0, -901.0, -950.0])), readout, dtype="float64"
    )
    probabilities = run(to_onnx(machine, dtype=dtype), np.zeros((1, 1), dtype))["probabilities"]
    expected = machine.predict_proba(np.zeros((1, 1)))
    np.testing.assert_allclose(probabilities, expected, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 30.0])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("kernel", KERNELS)
def test_far_and_large_data(kernel, offset, scale):
    X, y = data(kernel=kernel)
    X = (scale * X + offset).astype(np.float32).astype(np.float64)
    machine = SparseKernelClassifier(20, kernel=kernel, C=100, random_state=0).fit(X, y)
    assert_agrees(machine, X)


@pytest.mark.parametrize("gamma", [0.5, 50.0, 5000.0])
def test_narrow_kernels_keep_their_digits(gamma):
    rng = np.random.default_rng(0)
    basis = rng.uniform(-10, 10, size=(40, 5))
    model = KernelExpansion(RBF(gamma), basis, rng.normal(size=(40, 3)), np.zeros(3))
    near = basis + rng.normal(size=basis.shape) * 0.5 / np.sqrt(gamma)
    rows = near.astype(np.float32).astype(np.float64)
    found = run(to_onnx(model), rows.astype(np.float32))["scores"]
    assert largest_error(found, model.scores(rows)) < 1e-5


def test_norms_beyond_single_precision():
    # The vector is off the origin by what single precision cannot say of it.
    model = KernelExpansion(RBF(1.0), np.full((1, 8), 1e30), np.ones((1, 1)), np.zeros(1))
    rows = (1e30 * np.random.default_rng(0).normal(size=(200, 8))).astype(np.float32)
    np.testing.assert_array_equal(run(to_onnx(model), rows)["scores"], np.zeros((200, 1)))


def test_few_vectors_are_measured_often_enough():
    # Products lose ten times what is allowed between these vectors, and hardly anything at them.
    basis = np.array([[-3.49515322], [-1.51612094], [-4.57735068], [-3.9164674], [-3.25755812]])
    kernel = AdaptiveRBF(np.full(5, 0.99), np.array([[9.40472765]]))
    model = KernelExpansion(
        kernel, basis, np.array([[1.8], [1.4], [-1.1], [2.1], [2.0]]), np.zeros(1)
    )
    rows = np.linspace(-5, -1, 2000)[:, np.newaxis].astype(np.float32)
    found = run(to_onnx(model), rows)["scores"]
    assert largest_error(found, model.scores(rows.astype(np.float64))) < 1e-5


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.1),
        Laplacian(0.1),
        Polynomial(0.1, 3, 1.0),
        Sigmoid(0.1, -0.5),
        AdaptiveRBF(np.tile(np.linspace(0.05, 0.2, 20), 2)),
        AdaptiveRBF(np.tile(np.linspace(0.05, 0.2, 20), 2), np.linspace(0.5, 2, 4)),
        AdaptiveRBF(np.tile(np.linspace(0.05, 0.2, 20), 2), np.eye(4)[:, :3] + 0.1),
    ],
    ids=["rbf", "laplacian", "poly", "sigmoid", "adaptive", "weighted", "mapped"],
)
def test_coefficients_that_cancel(kernel):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(20, 4))
    basis = np.vstack([half, half + 1e-3])
    coef = 1e3 * rng.normal(size=(20, 2))
    model = KernelExpansion(kernel, basis, np.vstack([coef, -coef]), np.zeros(2))
    rows = rng.normal(size=(50, 4)).astype(np.float32)
    found = run(to_onnx(model), rows)["scores"]
    assert largest_error(found, model.scores(rows.astype(np.float64))) < 1e-5


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_chi_squares_of_counts_of_any_size(size, dtype):
    rng = np.random.default_rng(0)
    rows = size * rng.random((40, 5)) * (rng.random((40, 5)) < 0.6)
    rows = rows.astype(np.float32).astype(np.float64)
    model = KernelExpansion(ChiSquare(0.7 / size), rows[:15], rng.normal(size=(15, 3)), np.zeros(3))
    found = run(to_onnx(model, dtype=dtype), rows.astype(dtype))["scores"]
    assert largest_error(found, model.scores(rows)) < TOLERANCE[dtype]
    # Of negative entries nothing is promised but that the scores are numbers.
    assert np.isfinite(run(to_onnx(model, dtype=dtype), -rows.astype(dtype))["scores"]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_sums_of_kernels(n_classes, dtype):
    X, y = data(n_classes, kernel="chi2")
    parts = [
        ("chi2", slice(0, 3)),
        (RBF(0.2), [5, 0], 0.5),
        (Polynomial(0.1, 2, 1.0), [3, 4], 0.2),
        ("laplacian", [1, 3]),
        (Linear(), [2], 0.1),
    ]
    kernel = KernelSum(parts)
    machine = SparseKernelClassifier(15, kernel=kernel, random_state=0).fit(X, y)
    assert_agrees(machine, X, dtype)


def test_a_function_in_a_sum_of_kernels_is_refused():
    X, _ = data()
    kernel = KernelSum([(RBF(0.2), [0]), (CustomKernel(np.dot), [1])])
    model = KernelExpansion(kernel, X[:5], np.ones((5, 2)), np.zeros(2))
    with pytest.raises(TypeError, match="is a Python function"):
        to_onnx(model)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 7])
def test_powers_of_negative_products(degree):
    rng = np.random.default_rng(0)
    kernel = Polynomial(0.3, degree, -0.5)
    model = KernelExpansion(kernel, rng.normal(size=(9, 4)), rng.normal(size=(9, 2)), np.ones(2))
    rows = rng.normal(size=(30, 4))
    assert (0.3 * rows @ model.basis.T - 0.5 < 0).any()
    found = run(to_onnx(model, dtype="float64"), rows)["scores"]
    assert largest_error(found, model.scores(rows)) < 1e-12


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_batches_of_none_and_one(kernel, n_classes):
    X, y = data(n_classes, kernel=kernel)
    # Which rows are chosen must not be chance: the error is judged by the scores of a single row.
    machine = SparseKernelClassifier(5, C=1.0, kernel=kernel, loss="logistic", random_state=0)
    assert_agrees(machine.fit(X, y), X[:1])
    proto = to_onnx(machine)
    outputs = run(proto, X[:0].astype(np.float32))
    assert outputs["label"].shape == (0,)
    assert outputs["scores"].shape == ((0,) if n_classes == 2 else (0, 3))
    assert outputs["probabilities"].shape == (0, n_classes)


def test_sparse_training_rows():
    X, y = data()
    X[np.abs(X) < 0.7] = 0
    machine = SparseKernelClassifier(10, random_state=0).fit(sp.csr_matrix(X), y)
    assert sp.issparse(machine.basis_)
    assert_agrees(machine, X)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_precomputed_kernel(dtype):
    X, y = data()
    values = RBF(0.1).block(X, X).astype(np.float32).astype(np.float64)
    values = np.maximum(values, values.T)
    machine = SparseKernelClassifier(10, kernel="precomputed", random_state=0).fit(values, y)
    proto, _ = assert_agrees(machine, values, dtype)
    assert proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value == len(X)


@pytest.mark.parametrize("labels", [[False, True], [0.5, 2.25], [0, 1], ["no", "yes"]])
def test_types_of_labels_of_two_classes(labels):
    X, y = data(2)
    machine = SparseKernelClassifier(5, random_state=0).fit(X, y)
    machine.classes_ = np.array(labels)
    predicted = run(to_onnx(machine), X.astype(np.float32))["label"]
    assert predicted.tolist() == machine.predict(X).tolist()


@pytest.mark.parametrize(
    "classes",
    [
        np.array([0.1, 0.2, 0.3]),
        np.array([1, 2, 3], dtype=np.uint8),
        np.array(["a", "b", "c"], dtype=object),
        np.array([5, 6, 7], dtype=object),
    ],
    ids=["floats", "bytes", "strings", "integer objects"],
)
def test_types_of_labels_of_three_classes(classes):
    machine = CompiledPredictor(LinearMap(np.eye(3), np.zeros(3)), Readout(classes, "multiclass"))
    predicted = run(to_onnx(machine), np.eye(3, dtype=np.float32))["label"]
    assert predicted.tolist() == classes.tolist()


def test_labels_that_onnx_has_not():
    classes = np.array([("a", 1), ("b", 2), ("c", 3)], dtype=[("name", "U1"), ("number", int)])
    machine = CompiledPredictor(LinearMap(np.eye(3), np.zeros(3)), Readout(classes, "multiclass"))
    with pytest.raises(TypeError, match="no type in ONNX"):
        to_onnx(machine)


def test_first_of_equal_scores_wins():
    rows = np.array([[1, 1, 0], [0, 1, 1], [1, 1, 1]], dtype=np.float32)
    classes = np.array(["a", "b", "c"])
    several = CompiledPredictor(LinearMap(np.eye(3), np.zeros(3)), Readout(classes, "multiclass"))
    assert run(to_onnx(several), rows)["label"].tolist() == ["a", "b", "a"]
    one = LinearMap(np.eye(3)[:, :1], np.zeros(1))
    two = CompiledPredictor(one, Readout(classes[:2], "binary"))
    assert run(to_onnx(two), rows)["label"].tolist() == ["b", "a", "b"]


@pytest.mark.parametrize("link", [None, "one_against_rest"])
@pytest.mark.parametrize("thresholds", [None, np.array([0.5, -0.25, 0.0, 1.5])])
def test_multilabel(link, thresholds):
    rng = np.random.default_rng(0)
    model = KernelExpansion(
        RBF(0.2), rng.normal(size=(8, 3)), rng.normal(size=(8, 4)), rng.normal(size=4)
    )
    readout = Readout(np.array(["a", "b", "c", "d"]), "multilabel", link, thresholds)
    machine = CompiledPredictor(model, readout, dtype="float64")
    rows = rng.normal(size=(20, 3)).astype(np.float32)
    outputs = run(to_onnx(machine), rows)
    np.testing.assert_array_equal(outputs["label"], machine.predict(rows.astype(np.float64)))
    assert outputs["label"].dtype == np.int64
    assert largest_error(outputs["scores"], machine.decision_function(rows)) < 1e-5
    if link is not None:
        expected = machine.predict_proba(rows.astype(np.float64))
        np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bare_models_have_scores_alone(dtype):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 3)).astype(np.float32)
    linear = LinearMap(rng.normal(size=(3, 1)), np.ones(1))
    basis = rng.normal(size=(4, 3))
    expansion = KernelExpansion(Linear(), basis, rng.normal(size=(4, 2)), np.ones(2))
    for model in (linear, expansion):
        proto = to_onnx(model, dtype=dtype)
        outputs = run(proto, rows.astype(dtype))
        assert list(outputs) == ["scores"]
        expected = model.scores(rows.astype(np.float64))
        assert largest_error(outputs["scores"], expected) < TOLERANCE[dtype]
        assert "Exp" not in {node.op_type for node in proto.graph.node}


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(1.0),
        Laplacian(1.0),
        ChiSquare(1.0),
        KernelSum([(RBF(1.0), [0]), (Linear(), [1, 2])]),
        Polynomial(1.0),
        Sigmoid(1.0, 1.0),
        Linear(),
        AdaptiveRBF(np.empty(0)),
        AdaptiveRBF(np.empty(0), np.ones((3, 2))),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
def test_no_vectors_at_all(kernel):
    model = KernelExpansion(kernel, np.zeros((0, 3)), np.zeros((0, 2)), np.array([1.0, -2.0]))
    scores = run(to_onnx(model), np.ones((4, 3), np.float32))["scores"]
    np.testing.assert_array_equal(scores, np.tile([1.0, -2.0], (4, 1)))


def test_no_training_rows_of_a_precomputed_kernel():
    none = np.zeros(0, dtype=np.intp)
    model = KernelExpansion(Precomputed(), none, np.zeros((0, 1)), np.array([3.0]), n_features=5)
    assert run(to_onnx(model), np.ones((2, 5), np.float32))["scores"].tolist() == [[3.0], [3.0]]


def test_one_class():
    machine = CompiledPredictor(
        LinearMap(np.ones((2, 1)), np.zeros(1)), Readout(np.array([7]), "multiclass", "softmax")
    )
    outputs = run(to_onnx(machine), np.array([[1, 1], [-1, -1]], np.float32))
    assert outputs["label"].tolist() == [7, 7]
    assert outputs["probabilities"].tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "chi2"])
@pytest.mark.parametrize("opset", [13, 17, 18, 21])
def test_opsets(opset, kernel):
    X, y = data(kernel=kernel)
    machine = SparseKernelClassifier(5, kernel=kernel, loss="logistic", basis="per_class").fit(X, y)
    proto, _ = assert_agrees(machine, X, opset=opset)
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", opset)]


def test_what_the_file_says_of_itself():
    X, y = data()
    proto = to_onnx(SparseKernelClassifier(5, gamma=0.25, tol=0, random_state=0).fit(X, y))
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert properties == {
        "estimator": "SparseKernelClassifier",
        "kernel": "RBF(gamma=0.25)",
        "n_vectors": "5",
    }
    assert proto.producer_name == "widemargin"
    assert proto.ir_version <= 8


def test_file_is_what_was_returned(tmp_path):
    X, y = data()
    path = tmp_path / "machine.onnx"
    path.write_text("an older file")
    proto = to_onnx(SparseKernelClassifier(5).fit(X, y), path)
    assert onnx.load(path) == proto
    assert [entry.name for entry in tmp_path.iterdir()] == ["machine.onnx"]


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    X, y = data()
    path = tmp_path / "machine.onnx"
    path.write_text("an older file")

    def fail(source, target):
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is gone"):
        to_onnx(SparseKernelClassifier(5).fit(X, y), path)
    assert path.read_text() == "an older file"
    assert [entry.name for entry in tmp_path.iterdir()] == ["machine.onnx"]


def test_what_cannot_be_exported():
    X, y = data()
    with pytest.raises(NotFittedError):
        to_onnx(SparseKernelClassifier())
    with pytest.raises(TypeError, match="a class"):
        to_onnx(SparseKernelClassifier)
    with pytest.raises(NotFittedError):
        to_onnx(make_pipeline(StandardScaler(), SparseKernelClassifier(5)))
    steps = [("quantiles", QuantileTransformer(n_quantiles=5)), ("m", SparseKernelClassifier(5))]
    pipeline = Pipeline(steps).fit(X, y)
    with pytest.raises(
        TypeError, match="'quantiles' of the pipeline, a QuantileTransformer, is in"
    ):
        to_onnx(pipeline)
    with pytest.raises(TypeError, match="got StandardScaler"):
        to_onnx(StandardScaler().fit(X))
    custom = CustomKernel(lambda rows, basis: rows @ basis.T)
    with pytest.raises(TypeError, match="Python function"):
        to_onnx(SparseKernelClassifier(5, kernel=custom).fit(X, y))


def test_parameters_are_checked():
    model = LinearMap(np.ones((2, 1)), np.zeros(1))
    with pytest.raises(ValueError, match="dtype must be one of"):
        to_onnx(model, dtype="float16")
    with pytest.raises(ValueError, match="opset must be 13 or more"):
        to_onnx(model, opset=12)


@pytest.mark.thorough
def test_says_what_to_install_without_onnx():
    code = (
        "import sys; sys.modules['onnx'] = None; sys.modules['skl2onnx'] = None\n"
        "import numpy as np\n"
        "from widemargin.export import to_onnx\n"
        "from widemargin.models import LinearMap\n"
        "to_onnx(LinearMap(np.ones((2, 1)), np.zeros(1)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install widemargin[onnx]" in done.stderr


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_vectors_whose_squares_single_precision_cannot_hold(rng):
    basis = 1e28 * rng.randn(4, 2)
    model = KernelExpansion(RBF(1e-57), basis, rng.randn(4, 3), np.zeros(3))
    rows = basis.astype(np.float32)
    found = run(to_onnx(model), rows)["scores"]
    assert largest_error(found, model.scores(rows.astype(np.float64))) < TOLERANCE["float32"]


def gaussian(name, gamma, n_basis, n_features):
    """Return a Gaussian kernel of this width, by each of the ways to say so."""
    widths, ones = np.full(n_basis, gamma), np.ones(n_features)
    kernels = {
        "rbf": RBF(gamma),
        "widths": AdaptiveRBF(widths),
        "weights": AdaptiveRBF(widths, ones),
        "map": AdaptiveRBF(widths, np.eye(n_features)),
    }
    return kernels[name]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", ["rbf", "widths", "weights", "map"])
def test_features_that_are_large_against_the_width(kernel, dtype, rng):
    basis = (1e6 * rng.randn(20, 6)).astype(np.float32).astype(np.float64)
    kernel = gaussian(kernel, 0.08, 20, 6)
    model = KernelExpansion(kernel, basis, rng.randn(20, 3), np.zeros(3))
    near = (basis + rng.randn(20, 6)).astype(np.float32).astype(np.float64)
    found = run(to_onnx(model, dtype=dtype), near.astype(dtype))["scores"]
    gaps = near[:, np.newaxis] - basis
    expected = np.exp(-0.08 * (gaps**2).sum(axis=2)) @ model.coef
    assert np.abs(expected).max() > 0.1
    assert largest_error(found, expected) < TOLERANCE[dtype]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("size", [1e-25, 1e20, 1e30])
@pytest.mark.parametrize("kernel", ["rbf", "widths", "weights", "map"])
def test_features_whose_squares_single_precision_cannot_hold(kernel, size, rng):
    # Of equal vectors no square is large; of the rows that are asked for, it is.
    basis = np.full((3, 2), size).astype(np.float32).astype(np.float64)
    kernel = gaussian(kernel, 0.3 / size / size, 3, 2)
    model = KernelExpansion(kernel, basis, rng.randn(3, 3), np.zeros(3))
    rows = (size * rng.randn(30, 2)).astype(np.float32).astype(np.float64)
    proto = to_onnx(model)
    assert not any(node.op_type == "Cast" for node in proto.graph.node)
    found = run(proto, rows.astype(np.float32))["scores"]
    expected = np.exp(-0.3 * (((rows - basis[0]) / size) ** 2).sum(axis=1))[:, np.newaxis]
    assert largest_error(found, expected * model.coef.sum(axis=0)) < TOLERANCE["float32"]


def test_a_row_whose_sum_of_features_overflows(rng):
    model = KernelExpansion(Laplacian(1.0), rng.randn(4, 3), rng.randn(4, 2), np.ones(2))
    rows = np.full((1, 3), 3e38, dtype=np.float32)
    np.testing.assert_array_equal(run(to_onnx(model), rows)["scores"], np.ones((1, 2)))

"""Pipelines convert with skl2onnx."""

import subprocess
import sys

import numpy as np
import pytest
from contract import ESTIMATORS, targets, unfitted
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin.export  # noqa: F401  # registers the estimators
from widemargin import SparseKernelClassifier

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
tensor_types = pytest.importorskip("skl2onnx.common.data_types")


def data(n_classes=3, dtype=np.float32):
    X, y = make_classification(
        120, 6, n_informative=5, n_redundant=0, n_classes=n_classes, random_state=0
    )
    return X.astype(dtype), y


def run(proto, X):
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def assert_converts(machine, X, tolerance=1e-5, **options):
    proto = skl2onnx.to_onnx(machine, X[:1], **options)
    onnx.checker.check_model(proto, full_check=True)
    outputs = run(proto, X)
    scores = machine.decision_function(X)
    assert outputs["scores"].shape == scores.shape
    assert np.abs(outputs["scores"] - scores).max() < tolerance * np.abs(scores).max()
    np.testing.assert_array_equal(outputs["label"], machine.predict(X))
    if hasattr(machine, "predict_proba"):
        assert list(outputs) == ["label", "scores", "probabilities"]
        np.testing.assert_allclose(outputs["probabilities"], machine.predict_proba(X), atol=1e-5)
    else:
        assert list(outputs) == ["label", "scores"]
    return outputs


@pytest.mark.parametrize("labels", ["integers", "strings"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["weston_watkins", "logistic"])
def test_pipeline(loss, n_classes, dtype, labels):
    X, y = data(n_classes, dtype)
    y = np.array(["low", "middle", "high"])[y] if labels == "strings" else y + 10
    machine = SparseKernelClassifier(8, loss=loss, random_state=0)
    pipeline = make_pipeline(StandardScaler(), machine).fit(X, y)
    outputs = assert_converts(pipeline, X, 1e-5 if dtype == np.float32 else 1e-12)
    assert outputs["scores"].dtype == dtype


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(name):
    X, y = data()
    assert_converts(unfitted(name).fit(X, targets(name, y, np.arange(3))), X)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid", "linear"])
def test_kernels(kernel):
    X, y = data()
    machine = SparseKernelClassifier(8, kernel=kernel, random_state=0)
    assert_converts(make_pipeline(StandardScaler(), machine).fit(X, y), X)


def test_two_machines_in_one_graph_keep_their_names_apart():
    X, y = data()
    machines = [
        (str(size), SparseKernelClassifier(size, loss="logistic", random_state=0))
        for size in (4, 8)
    ]
    vote = VotingClassifier(machines, voting="soft", flatten_transform=False).fit(X, y)
    outputs = run(skl2onnx.to_onnx(vote, X[:1], options={"zipmap": False}), X)
    np.testing.assert_allclose(outputs["probabilities"], vote.predict_proba(X), atol=1e-5)


def test_calibrated_scores():
    X, y = data()
    machine = CalibratedClassifierCV(SparseKernelClassifier(5, random_state=0), ensemble=False)
    outputs = run(skl2onnx.to_onnx(machine.fit(X, y), X[:1], options={"zipmap": False}), X)
    np.testing.assert_allclose(outputs["probabilities"], machine.predict_proba(X), atol=1e-5)


def test_options_that_callers_pass_by_habit():
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), SparseKernelClassifier(5, loss="logistic")).fit(X, y)
    assert_converts(pipeline, X, options={"zipmap": False})
    assert_converts(pipeline, X, options={id(pipeline): {"zipmap": False}})
    assert_converts(pipeline, X, options={"sparsekernelclassifier__zipmap": False})
    assert_converts(pipeline[-1], X, options={SparseKernelClassifier: {"zipmap": True}})


def test_types_given_by_hand():
    X, y = data()
    pipeline = make_pipeline(StandardScaler(), SparseKernelClassifier(5)).fit(X, y)
    given = [("X", tensor_types.DoubleTensorType([None, 6]))]
    proto = skl2onnx.convert_sklearn(pipeline, initial_types=given)
    scores = run(proto, X.astype(np.float64))["scores"]
    np.testing.assert_allclose(scores, pipeline.decision_function(X.astype(np.float64)), atol=1e-12)


def test_integer_input():
    X, y = data()
    X = np.round(10 * X).astype(np.int64)
    assert_converts(SparseKernelClassifier(5).fit(X, y), X)


def test_grid_search():
    X, y = data()
    search = GridSearchCV(SparseKernelClassifier(5, random_state=0), {"C": [1.0, 2.0]}, cv=2)
    assert_converts(search.fit(X, y), X)


def test_opset_too_old():
    X, y = data()
    with pytest.raises(ValueError, match="13 or more"):
        skl2onnx.to_onnx(SparseKernelClassifier(5).fit(X, y), X[:1], target_opset=12)


def test_wrong_number_of_features():
    X, y = data()
    with pytest.raises(ValueError, match="takes 6 features, got 5"):
        skl2onnx.to_onnx(SparseKernelClassifier(5).fit(X, y), X[:1, :5])


@pytest.mark.parametrize(
    "imports",
    [
        "skl2onnx, widemargin.export",
        pytest.param("widemargin.export, skl2onnx", marks=pytest.mark.thorough),
    ],
)
@pytest.mark.thorough
def test_order_of_imports(imports):
    code = (
        f"import {imports}\n"
        "import numpy as np\n"
        "from widemargin import SparseKernelClassifier\n"
        "X = np.arange(12, dtype=np.float32).reshape(6, 2)\n"
        "machine = SparseKernelClassifier(2).fit(X, [0, 1, 0, 1, 0, 1])\n"
        "print(len(skl2onnx.to_onnx(machine, X[:1]).graph.output))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2"

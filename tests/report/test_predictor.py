"""The machine of a page, computed by a JavaScript engine, against Python's."""

import json
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from contract import ESTIMATORS, fitted, problem
from javascript import engine
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from widemargin import SparseKernelClassifier, SparseKernelMultiLabelClassifier
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
from widemargin.preparation import Column, PreparedMachine, prepared
from widemargin.readouts import Readout
from widemargin.report.tables import machine_tables

TOLERANCE = 1e-5

# What browsers have, and an engine alone has not.
ATOB = """
globalThis.atob = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  let bits = 0, held = 0, out = "";
  for (const letter of text.replace(/=+$/, "")) {
    held = (held << 6) | letters.indexOf(letter); bits += 6;
    if (bits >= 8) { bits -= 8; out += String.fromCharCode((held >> bits) & 255); }
  }
  return out;
};
"""


@pytest.fixture(scope="module")
def javascript():
    evaluate = engine()
    script = (files("widemargin.report") / "assets" / "predictor.js").read_text(encoding="utf-8")
    evaluate.run(ATOB + script)
    return evaluate


def answers(javascript, machine, rows):
    """Return what the page would say of rows, which are lists of values."""
    machine = machine if isinstance(machine, PreparedMachine) else prepared(machine)
    tables = json.dumps(machine_tables(machine), allow_nan=False)
    rows = [[None if isinstance(v, float) and np.isnan(v) else v for v in row] for row in rows]
    return javascript(f"{json.dumps(rows)}.map(makePredictor({tables}))")


def assert_same_scores(found, expected):
    found = np.array([each["scores"] for each in found])
    expected = np.reshape(expected, found.shape)
    assert np.abs(found - expected).max() <= TOLERANCE * np.abs(expected).max()


def bare(model, n_classes):
    columns = tuple(Column(number) for number in range(model.n_features))
    readout = Readout.of_classes(np.arange(n_classes))
    return PreparedMachine(model.n_features, None, columns, (), model, readout)


KERNELS = {
    "rbf": RBF(0.3),
    "laplacian": Laplacian(0.2),
    "chi2": ChiSquare(0.3),
    "poly": Polynomial(0.2, degree=5, coef0=0.5),
    "sigmoid": Sigmoid(0.3, coef0=-0.5),
    "linear": Linear(),
    "adaptive": AdaptiveRBF(np.linspace(0.1, 0.5, 9)),
    "weighted": AdaptiveRBF(np.linspace(0.1, 0.5, 9), np.linspace(0.2, 2.0, 5)),
    "mapped": AdaptiveRBF(np.linspace(0.1, 0.5, 9), np.linspace(-1.0, 1.0, 15).reshape(5, 3)),
    "sum": KernelSum([(ChiSquare(0.3), [4, 0]), (RBF(0.5), slice(1, 4), 2.0)]),
}


@pytest.mark.every_case
@pytest.mark.parametrize("linear_part", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel(javascript, name, linear_part):
    rng = np.random.RandomState(0)
    linear = rng.randn(5, 3) if linear_part and KERNELS[name].native() is not None else None
    basis = rng.rand(9, 5)
    model = KernelExpansion(KERNELS[name], basis, rng.randn(9, 3), rng.randn(3), linear=linear)
    rows = rng.rand(40, 5)
    assert_same_scores(answers(javascript, bare(model, 3), rows.tolist()), model.scores(rows))


@pytest.mark.every_case
@pytest.mark.parametrize(
    "model",
    [
        LinearMap(np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]]), np.array([0.0, 1.0, 2.0])),
        KernelExpansion(
            Precomputed(),
            np.array([3, 0]),
            np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]]),
            np.zeros(3),
            n_features=4,
        ),
        KernelExpansion(RBF(1.0), np.empty((0, 2)), np.empty((0, 3)), np.array([1.0, 2.0, 3.0])),
    ],
    ids=["linear map", "precomputed", "no vectors"],
)
def test_other_models(javascript, model):
    rows = np.random.RandomState(0).rand(10, model.n_features)
    found = answers(javascript, bare(model, 3), rows.tolist())
    assert_same_scores(found, model.scores(rows))
    assert [each["answers"][0] for each in found] == model.best(rows).tolist()


def test_sparse_vectors(javascript):
    machine = SparseKernelClassifier(8, random_state=0)
    rows = np.random.RandomState(0).rand(60, 30)
    rows[rows < 0.8] = 0.0
    machine.fit(rows, np.arange(60) % 3)
    assert "places" in machine_tables(prepared(machine))["model"]["basis"]
    assert_same_scores(answers(javascript, machine, rows.tolist()), machine.decision_function(rows))


def test_many_vectors_take_half_the_digits_where_no_score_shows_it(javascript):
    rng = np.random.RandomState(0)
    basis, coef = rng.rand(200, 200), rng.randn(200, 3)
    model = KernelExpansion(RBF(0.05), basis, coef, np.zeros(3))
    assert machine_tables(bare(model, 3))["model"]["basis"]["dtype"] == "float32"
    rows = rng.rand(5, 200)
    assert_same_scores(answers(javascript, bare(model, 3), rows.tolist()), model.scores(rows))
    # Vectors far from zero have no digits to spare.
    far = KernelExpansion(RBF(0.05), 1e6 + basis, coef, np.zeros(3))
    assert machine_tables(bare(far, 3))["model"]["basis"]["dtype"] == "float64"
    few = KernelExpansion(RBF(0.05), basis[:9], coef[:9], np.zeros(3))
    assert machine_tables(bare(few, 3))["model"]["basis"]["dtype"] == "float64"


def test_python_functions_are_refused():
    kernel = CustomKernel(np.dot)
    model = KernelExpansion(kernel, np.ones((1, 2)), np.ones((1, 3)), np.zeros(3))
    with pytest.raises(TypeError, match=r"page cannot compute the kernel .*code of Python"):
        machine_tables(bare(model, 3))


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_estimator(javascript, name):
    X, _ = problem(name)
    machine = fitted(name)
    if not hasattr(machine, "model_"):
        pytest.skip("it has no model of its own")
    found = answers(javascript, machine, X.tolist())
    assert_same_scores(found, machine.decision_function(X))
    answered = machine.predict(X)
    numbers = [each["answers"] for each in found]
    if machine.readout_.tells_labels:
        assert numbers == [np.flatnonzero(row).tolist() for row in answered]
    else:
        assert machine.classes_[np.ravel(numbers)].tolist() == answered.tolist()
    if machine.readout_.gives_probabilities:
        shares = [each["probabilities"] for each in found]
        np.testing.assert_allclose(shares, machine.predict_proba(X), atol=TOLERANCE)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "machine",
    [
        SparseKernelClassifier(6, loss="logistic", random_state=0),
        SparseKernelClassifier(6, loss="logistic", basis="per_class", random_state=0),
    ],
    ids=["softmax", "one against rest"],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities(javascript, three_classes, machine, n_classes):
    X, y = three_classes
    machine.fit(X, y % n_classes)
    found = answers(javascript, machine, X.tolist())
    shares = [each["probabilities"] for each in found]
    np.testing.assert_allclose(shares, machine.predict_proba(X), atol=TOLERANCE)


def test_labels_with_thresholds_and_calibration(javascript, three_classes):
    X, y = three_classes
    Y = np.stack([y == 0, y > 0, np.arange(len(y)) % 2 == 0], axis=1).astype(int)
    machine = SparseKernelMultiLabelClassifier(8, probability=True, random_state=0).fit(X, Y)
    found = answers(javascript, machine, X.tolist())
    shares = [each["probabilities"] for each in found]
    np.testing.assert_allclose(shares, machine.predict_proba(X), atol=TOLERANCE)
    readout = Readout(
        np.arange(3),
        "multilabel",
        thresholds=np.array([0.5, -0.5, 0.0]),
        calibration=np.array([[0.0, 1.0, 2.0], [np.inf, -np.inf, 0.5]]),
    )
    columns = tuple(map(Column, range(4)))
    with_limits = PreparedMachine(4, None, columns, (), machine.model_, readout)
    found = answers(javascript, with_limits, X.tolist())
    scores = machine.decision_function(X)
    expected = [np.flatnonzero(row).tolist() for row in readout.indicators(scores)]
    assert [each["answers"] for each in found] == expected
    shares = np.exp(readout.log_probabilities(scores))
    np.testing.assert_allclose([e["probabilities"] for e in found], shares, atol=TOLERANCE)


def mixed_rows():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(90, 4), columns=list("abcd"))
    frame.loc[::7, "b"] = np.nan
    frame["colour"] = np.array(["red", "green", "blue"])[rng.randint(3, size=90)]
    frame["size"] = np.array(["s", "m", "l", "xl"])[rng.randint(4, size=90)]
    y = (frame["a"] > 0).astype(int) + (frame["colour"] == "red")
    return frame, y.to_numpy()


PIPELINES = {
    "imputed, scaled and encoded": make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), list("abcd")),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour", "size"]),
    ),
    "indicators of gaps": make_column_transformer(
        (SimpleImputer(add_indicator=True), list("abcd")),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["colour"]),
    ),
    "a projection of some": make_column_transformer(
        (make_pipeline(SimpleImputer(), PCA(2)), list("abcd")),
        (OrdinalEncoder(), ["size"]),
    ),
    "norms of rows": make_column_transformer(
        (make_pipeline(SimpleImputer(), Normalizer("l1")), ["a", "b"]),
        (make_pipeline(MinMaxScaler(clip=True), Normalizer("max")), ["c", "d"]),
    ),
}


@pytest.mark.every_case
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines(javascript, name, kernel):
    frame, y = mixed_rows()
    machine = SparseKernelClassifier(8, kernel=kernel, random_state=0)
    pipeline = make_pipeline(PIPELINES[name], machine).fit(frame, y)
    rows = frame.copy()
    rows["c"] *= 3.0
    if "ignore" in str(PIPELINES[name]):
        rows.loc[::5, "colour"] = "violet"
    found = answers(javascript, pipeline, rows.to_numpy(dtype=object).tolist())
    assert_same_scores(found, pipeline.decision_function(rows))


def test_a_text_that_the_machine_has_not_learned(javascript):
    frame, y = mixed_rows()
    encoder = make_column_transformer((OrdinalEncoder(), ["colour"]))
    pipeline = make_pipeline(encoder, SparseKernelClassifier(3, random_state=0)).fit(frame, y)
    row = frame.iloc[0].tolist()
    row[4] = "violet"
    with pytest.raises(Exception, match="has not learned the value “violet”"):
        answers(javascript, pipeline, [row])

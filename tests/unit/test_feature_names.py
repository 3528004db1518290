"""Names of features: whoever predicts holds data frames to the names and the order of training."""

import json
import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris
from sklearn.svm import SVC

import widemargin
from widemargin import (
    CompiledPredictor,
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    compress,
)

pd = pytest.importorskip("pandas")

X, y = load_iris(return_X_y=True)
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(X, columns=NAMES)
REORDERED = FRAME[NAMES[::-1]]

MACHINES = {
    "shared": SparseKernelClassifier(8, random_state=0),
    "learned": SparseKernelClassifier(4, basis=LearnedBasis(max_iter=3), random_state=0),
    "logistic": SparseKernelClassifier(8, loss="logistic", random_state=0),
    "cv": SparseKernelClassifierCV([4], Cs=[10.0], widths=[1.0], basis="shared", random_state=0),
    "kernel": KernelClassifier(random_state=0),
    "mira": KernelMIRA(random_state=0),
    "perceptron": KernelPerceptron(random_state=0),
}
ways = pytest.mark.parametrize("name", MACHINES)


def fitted(name):
    return MACHINES[name].fit(FRAME, y)


def methods(predictor):
    names = ("predict", "decision_function", "predict_proba")
    return [getattr(predictor, name) for name in names if hasattr(predictor, name)]


@ways
def test_a_compiled_predictor_refuses_columns_in_another_order(name):
    machine = fitted(name)
    for predictor in (machine.compile(), pickle.loads(pickle.dumps(machine.compile()))):
        assert_array_equal(predictor.feature_names_in_, NAMES)
        assert_array_equal(predictor.predict(FRAME), machine.predict(FRAME))
        for method in methods(predictor):
            with pytest.raises(ValueError, match="must be in the same order"):
                method(REORDERED)
            with pytest.raises(ValueError, match=r"unseen at fit time:\n- width"):
                method(FRAME.rename(columns={"petal width": "width"}))
            with pytest.raises(ValueError, match="seen at fit time, yet now missing"):
                method(FRAME[NAMES[:3]])


def test_names_that_are_missing_or_unexpected_are_warned_of_as_in_predict():
    named, plain = fitted("shared"), SparseKernelClassifier(8, random_state=0).fit(X, y)
    for each in (named, named.compile()):
        with pytest.warns(UserWarning, match="does not have valid feature names, but"):
            each.predict(X)
    for each in (plain, plain.compile()):
        with pytest.warns(UserWarning, match="X has feature names, but .* fitted without"):
            each.predict(FRAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.compile().predict(X)
        plain.compile().predict(X.tolist())
        named.compile().predict(FRAME)
    assert not hasattr(plain.compile(), "feature_names_in_")


def test_a_single_row_that_has_names_is_checked_and_an_array_is_not():
    machine = fitted("shared")
    predictor = machine.compile()
    expected = machine.predict(FRAME)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for row in (0, 60, 120):
            assert predictor.predict_one(FRAME.iloc[row]) == expected[row]
            assert predictor.predict_one(X[row]) == expected[row]
            assert predictor.predict_one(X[row].tolist()) == expected[row]
        assert predictor.predict_one(np.array([5, 3, 1, 0])) == 0
    with pytest.raises(ValueError, match="must be in the same order"):
        predictor.predict_one(REORDERED.iloc[0])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        predictor.predict_one(pd.Series(X[0]))
    plain = SparseKernelClassifier(8, random_state=0).fit(X, y).compile()
    assert plain.predict_one(FRAME.iloc[0]) == 0


def test_names_of_another_number_of_features_are_refused():
    machine = fitted("shared")
    with pytest.raises(ValueError, match="4 features"):
        CompiledPredictor(machine.model_, machine.readout_, feature_names=["a", "b"])


def test_polars_frames_are_held_to_the_names_too():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({name: X[:, place] for place, name in enumerate(NAMES)})
    machine = SparseKernelClassifier(8, random_state=0).fit(frame, y)
    assert_array_equal(machine.feature_names_in_, NAMES)
    for each in (machine, machine.compile()):
        assert_array_equal(each.predict(frame), fitted("shared").predict(FRAME))
        with pytest.raises(ValueError, match="must be in the same order"):
            each.predict(frame.select(NAMES[::-1]))


@ways
def test_model_files_keep_the_names(name, tmp_path):
    machine = fitted(name)
    widemargin.save(machine, tmp_path / "model")
    loaded = widemargin.load(tmp_path / "model")
    for each in (loaded, loaded.compile()):
        assert_array_equal(each.feature_names_in_, NAMES)
        with pytest.raises(ValueError, match="must be in the same order"):
            each.predict(REORDERED)


def test_stages_and_batches_are_held_to_the_names():
    with pytest.raises(ValueError, match="must be in the same order"):
        next(fitted("shared").staged_decision_function(REORDERED))
    for name in ("kernel", "mira", "perceptron"):
        stream = MACHINES[name].fit(FRAME, y)
        with pytest.raises(ValueError, match="must be in the same order"):
            stream.partial_fit(REORDERED, y)
        assert_array_equal(stream.partial_fit(FRAME, y).compile().feature_names_in_, NAMES)


@pytest.mark.parametrize("machine", [SVC(), KernelClassifier(random_state=0)], ids=str)
def test_a_compressed_machine_has_the_names(machine):
    full = machine.fit(FRAME, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        compress(full, 5, REORDERED, verbose=False)
    small = compress(full, 5, FRAME, verbose=False, random_state=0)
    with pytest.raises(ValueError, match="must be in the same order"):
        small.compile().predict(REORDERED)


@pytest.mark.parametrize("basis", ["shared", "learned"])
def test_a_warm_start_does_not_mix_up_features(basis):
    machine = SparseKernelClassifier(5, basis=basis, warm_start=True, random_state=0).fit(FRAME, y)
    before = machine.model_
    with pytest.raises(ValueError, match="in their order"):
        machine.fit(REORDERED, y)
    assert machine.model_ is before
    machine.set_params(max_basis=7).fit(FRAME, y)
    machine.set_params(max_basis=8).fit(X, y)  # no names, nothing to compare


def test_onnx_models_name_their_features():
    pytest.importorskip("onnx")
    machine = fitted("shared")
    for source in (machine, machine.compile()):
        proto = widemargin.export.to_onnx(source)
        stored = {entry.key: entry.value for entry in proto.metadata_props}
        assert json.loads(stored["feature_names"]) == NAMES
    plain = SparseKernelClassifier(8, random_state=0).fit(X, y)
    keys = {entry.key for entry in widemargin.export.to_onnx(plain).metadata_props}
    assert "feature_names" not in keys

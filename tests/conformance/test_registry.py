"""Every estimator is in the registry, and keeps what the registry promises of it."""

import functools
import pickle

import numpy as np
import pytest
from conftest import overlapping_classes
from contract import (
    ESTIMATORS,
    LABELS,
    every_estimator,
    fitted,
    is_multilabel,
    problem,
    targets,
    unfitted,
)
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

import widemargin
from widemargin import CompiledPredictor

TOLERANCES = {"float32": 1e-5, "float64": 1e-10}  # relative to the largest score
any_number_of_classes = pytest.mark.parametrize("n_classes", [2, 4])
both_dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES))


@functools.cache
def rows(dtype="float64"):
    """Return 1000 rows to predict, not those of training."""
    return overlapping_classes(1000, 4, seed=7)[0].astype(dtype)


def public_estimators():
    members = {name: getattr(widemargin, name) for name in widemargin.__all__}
    return {
        name: member
        for name, member in members.items()
        if isinstance(member, type) and issubclass(member, BaseEstimator) and hasattr(member, "fit")
    }


def test_the_registry_has_every_public_estimator_and_no_other():
    assert public_estimators() == ESTIMATORS
    assert ESTIMATORS  # or nothing here is tested


def test_names_are_those_of_the_classes():
    assert all(estimator.__name__ == name for name, estimator in ESTIMATORS.items())


@every_estimator
def test_an_estimator_that_is_not_fitted_compiles_to_nothing(name):
    with pytest.raises(NotFittedError):
        unfitted(name).compile()


@every_estimator
def test_a_clone_is_not_fitted(name):
    copy = clone(fitted(name, 4))
    with pytest.raises(NotFittedError):
        copy.compile()


@every_estimator
@any_number_of_classes
@both_dtypes
def test_the_compiled_predictor_predicts_the_same(name, n_classes, dtype):
    machine = fitted(name, n_classes)
    predictor = machine.compile(dtype=dtype)
    assert isinstance(predictor, CompiledPredictor)
    assert_array_equal(predictor.classes_, machine.classes_)
    assert predictor.n_features_in_ == machine.n_features_in_
    assert predictor.dtype == dtype
    assert_array_equal(predictor.predict(rows()), machine.predict(rows()))


@every_estimator
@any_number_of_classes
@both_dtypes
def test_the_compiled_predictor_has_the_same_scores(name, n_classes, dtype):
    machine = fitted(name, n_classes)
    expected = machine.decision_function(rows())
    found = machine.compile(dtype=dtype).decision_function(rows())
    assert found.dtype == dtype
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOLERANCES[dtype] * np.abs(expected).max()


@every_estimator
@any_number_of_classes
@both_dtypes
def test_labels_go_with_the_scores(name, n_classes, dtype):
    predictor = fitted(name, n_classes).compile(dtype=dtype)
    scores = predictor.decision_function(rows())
    if is_multilabel(name):
        readout = fitted(name, n_classes).readout_
        expected = scores > readout.label_thresholds(dtype)
        if readout.kind == "two_step":
            (low, high), (first, second) = readout.label_thresholds(dtype), scores.T
            both = (low < first) & (first < high)
            expected = np.stack([both | (second > 0), both | (second <= 0)], axis=1)
        assert_array_equal(predictor.predict(rows()), expected)
        return
    best = np.argmax(scores, axis=1) if n_classes > 2 else (scores > 0).astype(int)
    assert_array_equal(predictor.predict(rows()), predictor.classes_[best])


@every_estimator
@any_number_of_classes
def test_rows_of_either_precision(name, n_classes):
    machine = fitted(name, n_classes)
    single = machine.decision_function(rows("float32"))
    expected = machine.decision_function(rows("float32").astype(np.float64))
    assert single.dtype == np.float32
    assert expected.dtype == np.float64
    assert np.abs(single - expected).max() <= TOLERANCES["float32"] * np.abs(expected).max()
    assert_array_equal(machine.predict(rows("float32")), machine.predict(rows()))


@every_estimator
@any_number_of_classes
def test_a_pickled_estimator_predicts_the_same_to_the_bit(name, n_classes):
    machine = fitted(name, n_classes)
    copy = pickle.loads(pickle.dumps(machine))
    for dtype in TOLERANCES:
        assert_array_equal(copy.predict(rows(dtype)), machine.predict(rows(dtype)))
        expected = machine.decision_function(rows(dtype))
        assert_array_equal(copy.decision_function(rows(dtype)), expected)
        compiled = machine.compile(dtype=dtype).decision_function(rows())
        assert_array_equal(copy.compile(dtype=dtype).decision_function(rows()), compiled)


@every_estimator
@any_number_of_classes
@both_dtypes
def test_a_pickled_predictor_predicts_the_same_to_the_bit(name, n_classes, dtype):
    predictor = fitted(name, n_classes).compile(dtype=dtype)
    copy = pickle.loads(pickle.dumps(predictor))
    assert copy.dtype == predictor.dtype
    assert_array_equal(copy.classes_, predictor.classes_)
    assert_array_equal(copy.predict(rows()), predictor.predict(rows()))
    assert_array_equal(copy.decision_function(rows()), predictor.decision_function(rows()))
    assert_array_equal(copy.predict_one(rows()[0]), predictor.predict_one(rows()[0]))


@every_estimator
@any_number_of_classes
@both_dtypes
def test_one_row_gets_the_class_that_it_gets_among_others(name, n_classes, dtype):
    predictor = fitted(name, n_classes).compile(dtype=dtype)
    for kind in TOLERANCES:
        together = predictor.predict(rows(kind)).tolist()
        assert [np.asarray(predictor.predict_one(row)).tolist() for row in rows(kind)] == together
    for row in rows()[:20]:
        assert_array_equal(predictor.predict_one(row), predictor.predict(row[np.newaxis])[0])


@every_estimator
def test_the_predictor_stays_when_the_estimator_is_fitted_anew(name):
    X, y = problem(name, n_classes=4)
    machine = unfitted(name).fit(X, y)
    predictor = machine.compile()
    before, classes = predictor.decision_function(rows()), predictor.classes_.copy()
    machine.fit(X[:60] + 1, targets(name, np.arange(60) % 2))
    assert_array_equal(predictor.decision_function(rows()), before)
    assert_array_equal(predictor.classes_, classes)
    assert_array_equal(classes, np.arange(y.shape[1]) if is_multilabel(name) else np.sort(LABELS))

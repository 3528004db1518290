"""river takes our learners as its own: its checks, pipelines and metrics."""

import pickle
import warnings

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_array_equal

import widemargin
from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    StochasticLinearClassifier,
)
from widemargin.river import RiverClassifier

river = pytest.importorskip("river")
checks = pytest.importorskip("river.checks")

MACHINES = {
    "KernelClassifier": KernelClassifier(gamma=0.1, budget=100, random_state=0),
    "KernelMIRA": KernelMIRA(gamma=0.1, budget=100),
    "KernelPerceptron": KernelPerceptron(gamma=0.1, budget=100),
    "StochasticLinearClassifier": StochasticLinearClassifier(alpha=0.01),
}


def test_every_learner_of_one_row_at_a_time_is_here():
    learners = {
        name
        for name, kind in widemargin._registry.ESTIMATORS.items()
        if hasattr(kind(), "partial_fit")
    }
    assert learners == set(MACHINES)


@pytest.mark.parametrize("name", MACHINES)
def test_the_checks_of_river_pass(name):
    learner = RiverClassifier(MACHINES[name])
    n_checks = 0
    for check in checks.yield_checks(learner):
        check(learner.clone())
        n_checks += 1
    assert n_checks > 40


def test_it_is_a_classifier_of_river():
    learner = RiverClassifier(MACHINES["KernelClassifier"])
    assert isinstance(learner, river.base.Classifier)
    with pytest.raises(NotImplementedError, match="scores, not probabilities"):
        learner.predict_proba_one({"a": 1.0})


def test_a_pipeline_learns_what_the_machine_learns_by_itself():
    from river import compose, datasets, metrics, preprocessing

    machine = MACHINES["KernelClassifier"]
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), RiverClassifier(machine))
    scaler, alone = preprocessing.StandardScaler(), machine.__class__(**machine.get_params())
    metric, hits, names = metrics.Accuracy(), 0, None
    rows = list(datasets.ImageSegments().take(300))
    for x, y in rows:
        predicted = pipeline.predict_one(x)
        if predicted is not None:
            metric.update(y, predicted)
        pipeline.learn_one(x, y)
        scaler.learn_one(x)
        scaled = scaler.transform_one(x)
        names = names or list(scaled)
        row = np.array([[scaled[name] for name in names]])
        if predicted is not None:
            hits += alone.predict(row)[0] == y
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alone.partial_fit(row, [y])
    assert metric.get() == pytest.approx(hits / (len(rows) - 1))
    assert metric.get() > 0.5


def test_a_learner_that_was_pickled_goes_on():
    X, y = overlapping_classes(120, 3)
    rows = [dict(enumerate(row)) for row in X]
    learner = RiverClassifier(MACHINES["KernelClassifier"])
    for x, label in zip(rows[:60], y, strict=False):
        learner.learn_one(x, label)
    other = pickle.loads(pickle.dumps(learner))
    for x, label in zip(rows[60:], y[60:], strict=True):
        learner.learn_one(x, label)
        other.learn_one(x, label)
    assert_array_equal(other.machine_.decision_function(X), learner.machine_.decision_function(X))

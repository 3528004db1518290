"""Rows as dicts, one at a time; river itself need not be there (tests/foreign has its checks)."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    SparseKernelClassifier,
    StochasticLinearClassifier,
)
from widemargin.river import RiverClassifier

LEARNERS = {
    "larank": KernelClassifier(C=5, gamma=0.5, budget=30, random_state=0),
    "linear": KernelClassifier(C=1, kernel="linear", random_state=0),
    "mira": KernelMIRA(gamma=0.5),
    "stochastic": StochasticLinearClassifier(alpha=0.01),
    "perceptron": KernelPerceptron(kernel="poly", degree=2, gamma=0.5, coef0=1),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)
X, Y = overlapping_classes(90, 3)
NAMES = ["length", "width", "height", "weight"]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X]


def learned(machine, rows, labels):
    learner = RiverClassifier(machine)
    for row, label in zip(rows, labels, strict=True):
        learner.learn_one(row, label)
    return learner


@every_learner
def test_it_learns_what_partial_fit_learns(name):
    machine = LEARNERS[name]
    learner = RiverClassifier(machine)
    alone = machine.__class__(**machine.get_params())
    for row, x, label in zip(X, ROWS, Y, strict=True):
        if learner.features_:
            assert learner.predict_one(x) == alone.predict([row])[0]
        learner.learn_one(x, label)
        alone.partial_fit([row], [label])
    assert learner.features_ == NAMES
    assert_array_equal(learner.machine_.decision_function(X), alone.decision_function(X))
    assert not hasattr(machine, "model_")  # a clone has learned


@every_learner
def test_features_go_by_their_names_and_may_come_late(name):
    """A feature that comes late was zero before: to know of it from the start changes nothing."""
    rng = np.random.RandomState(1)
    table = X * (rng.rand(*X.shape) < 0.7)
    table[:30, 2:] = 0.0  # two features that come late
    shuffled = []
    for row in table:
        named = [(NAMES[j], row[j]) for j in rng.permutation(4) if row[j] != 0]
        shuffled.append(dict(named))
    late = learned(LEARNERS[name], shuffled, Y)
    first = dict.fromkeys(NAMES, 0.0) | shuffled[0]
    early = learned(LEARNERS[name], [first, *shuffled[1:]], Y)
    assert set(late.features_) == set(NAMES)
    assert late.machine_.n_features_in_ >= 4
    order = [late.features_.index(each) for each in NAMES]
    scores = [
        learner.machine_.decision_function(
            np.pad(table, ((0, 0), (0, learner.machine_.n_features_in_ - 4)))[:, columns]
        )
        for learner, columns in (
            (early, np.arange(early.machine_.n_features_in_)),
            (late, np.r_[np.argsort(order), 4 : late.machine_.n_features_in_]),
        )
    ]
    assert_allclose(scores[1], scores[0], rtol=1e-4, atol=1e-4)


def test_a_machine_that_is_widened_goes_on_as_if_it_had_always_been_wide():
    machine = KernelClassifier(C=5, gamma=0.5, budget=30, random_state=0)
    wide = np.pad(X, ((0, 0), (0, 3)))
    expected = KernelClassifier(**machine.get_params())
    for row, label in zip(wide, Y, strict=True):
        expected.partial_fit([row], [label])
    for row, label in zip(X[:40], Y, strict=False):
        machine.partial_fit([row], [label])
    before = machine.decision_function(X)
    machine._widen(7)
    assert_allclose(machine.decision_function(wide), before, rtol=1e-12, atol=1e-12)
    for row, label in zip(wide[40:], Y[40:], strict=True):
        machine.partial_fit([row], [label])
    # The same steps with the same lots; sums of more zeros are rounded another way.
    scores = expected.decision_function(wide)
    assert_allclose(machine.decision_function(wide), scores, rtol=1e-9, atol=1e-12)


def test_sparse_rows_are_widened_too():
    machine = KernelClassifier(C=5, gamma=0.5, random_state=0)
    machine.partial_fit(sp.csr_matrix(X[:50]), Y[:50])
    before = machine.decision_function(X)
    machine._widen(6)
    wide = sp.csr_matrix(np.pad(X, ((0, 0), (0, 2))))
    assert_allclose(machine.decision_function(wide), before, atol=1e-6)


def test_features_that_no_row_has_had_are_ignored():
    learner = learned(LEARNERS["larank"], ROWS, Y)
    assert learner.predict_one(ROWS[0] | {"colour": 3.0}) == learner.predict_one(ROWS[0])
    lacking = {name: value for name, value in ROWS[0].items() if name != "width"}
    assert learner.predict_one(lacking) == learner.predict_one(ROWS[0] | {"width": 0.0})
    learner.predict_one({})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("red", "text, 'red'.*OneHotEncoder"),
        ("1.5", "text"),
        (None, "no finite number.*StatImputer"),
        (float("nan"), "no finite number"),
        ([1.0], "no finite number"),
        (1j, "no finite number"),
    ],
)
def test_what_is_no_number_is_refused_by_its_name(value, words):
    learner = learned(LEARNERS["larank"], ROWS[:20], Y[:20])
    scores = learner.machine_.decision_function(X)
    for method in (learner.predict_one, lambda x: learner.learn_one(x, 0)):
        with pytest.raises(ValueError, match=f"'colour' is .*{words}"):
            method(ROWS[0] | {"colour": value})
    assert learner.features_ == NAMES  # nothing is left of rows that were refused
    assert_array_equal(learner.machine_.decision_function(X), scores)


def test_labels_come_back_as_they_were():
    for labels in (["oak", "elm"], [True, False], [3, 7], [np.bool_(True), np.bool_(False)]):
        learner = learned(KernelClassifier(gamma=1.0), [{"a": 1.0}, {"a": -1.0}], labels)
        found = learner.predict_one({"a": 1.0})
        assert found == labels[0]
        assert isinstance(found, (str, bool, int))


def test_weights_count():
    rows, labels = [{"a": 0.0}, {"a": 0.0}], [0, 1]
    for heavy in (0, 1):
        learner = RiverClassifier(KernelClassifier(C=0.1, gamma=1.0, random_state=0))
        for row, label in zip(rows, labels, strict=True):
            learner.learn_one(row, label, w=5.0 if label == heavy else 0.5)
        assert learner.predict_one(rows[0]) == heavy


def test_who_cannot_learn_row_by_row_is_refused():
    with pytest.raises(TypeError, match="SparseKernelClassifier has no partial_fit"):
        RiverClassifier(SparseKernelClassifier())

"""A class that nobody announced is learned when it comes."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

import widemargin
from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron
from widemargin.estimation.streams import StreamClasses

LEARNERS = {
    "larank": KernelClassifier(gamma=0.001, C=10, random_state=0),
    "weston_watkins": KernelClassifier(gamma=0.001, loss="weston_watkins", random_state=0),
    "linear": KernelClassifier(kernel="linear", C=0.1, random_state=0),
    "perceptron": KernelPerceptron(gamma=0.001, random_state=0),
    "last perceptron": KernelPerceptron(gamma=0.001, average=False, random_state=0),
    "mira": KernelMIRA(gamma=0.001, random_state=0),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900], y[:900]


def learner(name, **parameters):
    return pickle.loads(pickle.dumps(LEARNERS[name])).set_params(**parameters)


def learn(machine, X, y, size=50, **options):
    for start in range(0, len(y), size):
        machine.partial_fit(X[start : start + size], y[start : start + size], **options)
    return machine


@pytest.mark.parametrize("form", ["rows by class", "rows in random order"])
def test_classes_that_come_one_after_another_are_learned_as_well_as_announced_ones(digits, form):
    X, y = digits
    order = np.argsort(y[:600], kind="stable") if form == "rows by class" else np.arange(600)
    late = learn(learner("larank"), X[order], y[order])
    told = learn(learner("larank"), X[order], y[order], classes=np.arange(10))
    assert_array_equal(late.classes_, np.arange(10))
    assert late.score(X[600:], y[600:]) > told.score(X[600:], y[600:]) - 0.01


@every_learner
@pytest.mark.parametrize("size", [1, 40])
def test_what_a_machine_says_of_classes_that_join(name, size, digits):
    X, y = digits
    labels = np.array(["c", "a", "d", "b"])[y[y < 4]][:120]  # no rising order of arrival
    rows = X[y < 4][:120]
    machine = learner(name)
    for start in range(0, 120, size):
        machine.partial_fit(rows[start : start + size], labels[start : start + size])
        known = np.unique(labels[: start + size])
        assert_array_equal(machine.classes_, known)
        scores = machine.decision_function(rows[:7])
        assert scores.shape == ((7,) if len(known) == 2 else (7, len(known)))
        assert set(machine.predict(rows[:7])) <= set(known)
        if size > 1:
            live = scores
            assert machine.model_.coef.shape[1] == (1 if len(known) == 2 else len(known))
            assert_allclose(machine.decision_function(rows[:7]), live, rtol=1e-6, atol=1e-8)
    assert machine.score(rows, labels) > 0.9


@every_learner
def test_all_classes_in_the_first_batch_are_as_good_as_announced(name, digits):
    X, y = digits
    told = learn(learner(name), X[:300], y[:300], size=150, classes=np.arange(10))
    untold = learn(learner(name), X[:300], y[:300], size=150)
    assert_array_equal(untold.dual_coef_, told.dual_coef_)
    assert_array_equal(untold.decision_function(X), told.decision_function(X))


@every_learner
def test_a_stream_with_classes_to_come_goes_on_to_the_bit(name, digits, tmp_path):
    X, y = digits
    order = np.argsort(y[:200], kind="stable")
    X, y = X[order], y[order]
    through = learn(learner(name), X, y, size=25)
    path = tmp_path / "stream.widemargin"
    machine = learner(name)
    for start in range(0, 200, 25):
        machine.partial_fit(X[start : start + 25], y[start : start + 25])
        if start % 2:
            widemargin.save(machine, path)
            machine = widemargin.load(path)
        else:
            machine = pickle.loads(pickle.dumps(machine))
    assert_array_equal(machine.classes_, through.classes_)
    assert_array_equal(machine.dual_coef_, through.dual_coef_)
    assert_array_equal(machine.decision_function(X), through.decision_function(X))


def test_one_class_alone(digits):
    X, y = digits
    machine = learner("larank").partial_fit(X[y == 3][:20], y[y == 3][:20])
    assert_array_equal(machine.classes_, [3])
    assert_array_equal(machine.predict(X[:4]), [3, 3, 3, 3])
    assert_array_equal(machine.predict(X), np.full(len(X), 3))
    assert machine.decision_function(X[:4]).shape == (4, 1)
    assert machine.compile().predict_one(X[0]) == 3
    assert_array_equal(machine.compile().predict(X[:4]), [3, 3, 3, 3])
    machine.partial_fit(X[y == 5][:20], y[y == 5][:20])
    both = (y == 3) | (y == 5)
    assert machine.score(X[both], y[both]) > 0.9
    assert machine.compile().predict_one(X[y == 5][0]) == 5


def test_a_machine_that_was_fitted_takes_another_class(digits):
    X, y = digits
    some = y < 8
    machine = learner("larank").fit(X[some][:300], y[some][:300])
    learn(machine, X[:400], y[:400])
    assert_array_equal(machine.classes_, np.arange(10))
    assert machine.score(X[400:], y[400:]) > 0.9


def test_announced_classes_stay_the_only_ones(digits):
    X, y = digits
    machine = learner("larank").partial_fit(X[:100], y[:100], classes=np.arange(10))
    before = machine.decision_function(X[:20])
    with pytest.raises(ValueError, match="were not announced"):
        machine.partial_fit(X[:2], [3, 11])
    with pytest.raises(ValueError, match="differs from those of the first call"):
        machine.partial_fit(X[:2], [3, 5], classes=[3, 5])
    assert_array_equal(machine.decision_function(X[:20]), before)
    assert_array_equal(machine.classes_, np.arange(10))


def test_classes_may_be_announced_later(digits):
    X, y = digits
    machine = learner("larank").partial_fit(X[y < 3][:60], y[y < 3][:60])
    with pytest.raises(ValueError, match="lacks some"):
        machine.partial_fit(X[:2], y[:2], classes=[0, 1])
    machine.partial_fit(X[y < 3][60:80], y[y < 3][60:80], classes=np.arange(5))
    assert_array_equal(machine.classes_, np.arange(5))
    with pytest.raises(ValueError, match="were not announced"):
        machine.partial_fit(X[:1], [7])


def test_a_batch_that_fails_brings_no_class(digits):
    X, y = digits
    machine = learner("larank").partial_fit(X[y < 3][:60], y[y < 3][:60])
    with pytest.raises(ValueError, match="sample_weight"):
        machine.partial_fit(X[:2], [8, 9], sample_weight=[-1.0, 1.0])
    assert_array_equal(machine.classes_, [0, 1, 2])
    assert machine.decision_function(X[:5]).shape == (5, 3)


def test_the_column_for_classes_to_come_goes_when_none_comes(digits):
    X, y = digits
    two = y < 2
    X, y = np.tile(X[two], (8, 1)), np.tile(y[two], 8)
    machine = learner("larank").partial_fit(X[:1], y[:1])
    assert machine._stream.classes.has_spare
    learn(machine, X[1:], y[1:], size=20)
    assert not machine._stream.classes.has_spare
    assert_allclose(machine._stream.machine.supports().coef.sum(axis=1), 0.0, atol=1e-10)
    assert machine.score(X, y) > 0.99


def test_what_a_file_says_of_columns_is_read_by_name():
    labels = np.arange(3)
    classes = StreamClasses(labels, True, np.array([2, 0, 1]), has_spare=True, rows_before=7)
    packed = classes.pack()
    again = StreamClasses.unpack(dict(reversed(packed.items())), labels)
    assert (again.is_open, again.has_spare, again.rows_before) == (True, True, 7)
    assert_array_equal(again.columns, [2, 0, 1])
    for wrong in ({"columns": np.array([0, 0, 1])}, {"has_spare": 1}, {"rows_before": -1}):
        with pytest.raises(ValueError, match="columns that do not go with classes_"):
            StreamClasses.unpack(packed | wrong, labels)

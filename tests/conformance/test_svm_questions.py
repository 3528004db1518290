"""What is learned: answers, weights, kernels, streams. Asked of the machines of svm_machines."""

import numpy as np
import pytest
from contract import CLASS_ESTIMATORS
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, make_blobs
from sklearn.metrics import accuracy_score
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from svm_machines import (
    ALL,
    EXACT,
    FIRST,
    MACHINES,
    ONLINE,
    ONLY_RBF,
    PROBABLE,
    ROWS,
    STREAMS,
    WARM,
    WITH_C,
    ask,
    difference,
    fitted,
    iris,
    make,
    toy,
)

from widemargin.kernels import RBF

GAMMA = 0.3
KERNELS = {
    "rbf": lambda X, Y: rbf_kernel(X, Y, gamma=GAMMA),
    "laplacian": lambda X, Y: laplacian_kernel(X, Y, gamma=GAMMA),
    "poly": lambda X, Y: polynomial_kernel(X, Y, gamma=GAMMA, degree=2, coef0=1.0),
    "linear": lambda X, Y: X @ Y.T,
}
KERNEL_SETTINGS = {"gamma": GAMMA, "degree": 2, "coef0": 1.0}
NEAR = 2e-4  # of the largest score: exact machines stop a little before the optimum
ROUNDING = 1e-5  # of the largest score: dual machines keep kernel values in single precision


def test_every_estimator_is_asked():
    assert {estimator for estimator, _ in MACHINES.values()} == set(CLASS_ESTIMATORS)
    assert {MACHINES[name][0] for name in FIRST} == set(CLASS_ESTIMATORS)


def always_asked(question):
    """Return what ``make test`` asks: the arguments of each case."""
    (mark,) = question.pytestmark
    return [case.values for case in mark.args[1] if "thorough" not in {m.name for m in case.marks}]


def test_what_is_left_out_is_met_by_turns():
    def question():
        pass

    def longer_question():
        pass

    first, second = (
        {name for (name,) in always_asked(ask(ALL)(each))} for each in (question, longer_question)
    )
    assert first & second >= set(FIRST)
    assert first | second == set(ALL)
    assert len(first & second) < len(ALL) / 2


def test_a_further_argument_has_every_value():
    def question():
        pass

    asked = always_asked(ask(ALL, value=[2, 3, 5, 7])(question))
    assert [name for name, _ in asked] == ALL
    assert {value for _, value in asked} == {2, 3, 5, 7}


# Answers


@ask(ALL)
def test_toy_data_are_learned(name):
    X, y, X_new, expected = toy()
    settings = {"cv": 3, "max_basis": [2]} if name == "searched" else {}
    machine = make(name, **settings).fit(X, y)
    assert_array_equal(machine.predict(X), y)
    assert_array_equal(machine.predict(X_new), expected)


@ask(ALL)
def test_iris_is_learned(name):
    X, y = iris()
    assert fitted(name).score(X, y) > 0.94


@ask(ALL)
def test_two_classes_have_one_score_that_is_positive_for_the_second(name):
    X, y = iris(2)
    machine = make(name).fit(X, y)
    scores = machine.decision_function(X)
    assert scores.shape == (len(X),)
    assert_array_equal(machine.classes_[(scores > 0).astype(int)], machine.predict(X))
    assert np.corrcoef(scores, y == machine.classes_[1])[0, 1] > 0.5


@ask(ALL)
def test_the_largest_score_is_the_prediction(name):
    machine = fitted(name)
    places = np.random.RandomState(0).uniform(-4, 4, (500, 4))  # far from the rows too
    scores = machine.decision_function(places)
    assert scores.shape == (500, 3)
    assert_array_equal(machine.classes_[scores.argmax(axis=1)], machine.predict(places))


@ask(ALL)
def test_many_classes(name):
    X, y = make_blobs(240, n_features=5, centers=24, cluster_std=0.3, random_state=3)
    # A pass of the dual machines sees a class ten times; the sparse ones need a vector a class.
    settings = {"searched": {"max_basis": [40]}, "learned": {"max_basis": 24}}.get(name, {})
    if name.startswith("sparse"):
        settings = {"max_basis": 40}
    machine = make(name, **settings).fit(X, y)
    assert machine.decision_function(X).shape == (240, 24)
    assert machine.score(X, y) > 0.9


@ask(ALL)
def test_the_score_is_the_weighted_accuracy(name):
    X, y = iris()
    machine = fitted(name)
    weights = np.random.RandomState(0).uniform(0, 2, len(y))
    expected = accuracy_score(y, machine.predict(X), sample_weight=weights)
    assert machine.score(X, y, weights) == pytest.approx(expected)


@ask(PROBABLE)
def test_probabilities_go_with_scores(name):
    for n_classes in (2, 3):
        X, y = iris(n_classes)
        machine = make(name).fit(X, y)
        probabilities = machine.predict_proba(X)
        assert probabilities.shape == (len(y), n_classes)
        assert_allclose(probabilities.sum(axis=1), 1)
        assert_array_equal(machine.classes_[probabilities.argmax(axis=1)], machine.predict(X))
        assert_allclose(np.log(probabilities), machine.predict_log_proba(X), atol=1e-12)


@ask([name for name in ALL if name not in PROBABLE])
def test_machines_without_probabilities_do_not_have_the_method(name):
    assert not hasattr(make(name), "predict_proba")
    assert not hasattr(fitted(name), "predict_log_proba")


# Names and orders of classes, orders of rows


CLASS_NAMES = {
    "words": np.array(["a", "b", "c"]),
    "numbers": np.array([-1.0, 0.0, 2.0]),
    "large": np.array([3, 5, 2**40]),
    "objects": np.array(["a", "b", "c"], dtype=object),
}


@ask(ALL, kind=list(CLASS_NAMES))
def test_names_of_classes_do_not_matter(name, kind):
    X, y = iris()
    names, expected = CLASS_NAMES[kind], fitted(name)
    machine = make(name).fit(X, names[y])
    assert_array_equal(machine.classes_, names)
    assert_array_equal(machine.decision_function(X), expected.decision_function(X))
    assert_array_equal(machine.predict(X), names[expected.predict(X)])


@ask(EXACT)
def test_the_order_of_classes_does_not_matter(name):
    X, y = iris()
    expected = fitted(name).decision_function(X)
    found = make(name).fit(X, 2 - y).decision_function(X)
    assert difference(found[:, ::-1], expected) < 10 * NEAR


@ask(EXACT)
def test_two_classes_that_change_places_change_the_sign(name):
    X, y = iris(2)
    expected = make(name).fit(X, y).decision_function(X)
    assert difference(make(name).fit(X, -y).decision_function(X), -expected) < 10 * NEAR


@ask(EXACT)
def test_the_order_of_rows_does_not_matter(name):
    X, y = iris()
    order = np.random.RandomState(1).permutation(len(y))
    expected = fitted(name).decision_function(X)
    assert difference(make(name).fit(X[order], y[order]).decision_function(X), expected) < 10 * NEAR


# Weights


ONES = {
    "double": np.ones,
    "single": lambda n_rows: np.ones(n_rows, dtype=np.float32),
    "list": lambda n_rows: [1] * n_rows,
}


@ask(ALL, form=list(ONES))
def test_weights_of_one_are_no_weights(name, form):
    X, y = iris()
    found = make(name).fit(X, y, ONES[form](len(y))).decision_function(X)
    assert_array_equal(found, fitted(name).decision_function(X))


@ask(EXACT)
def test_a_weight_of_zero_leaves_the_row_out(name):
    X, y = iris()
    there = np.random.RandomState(0).rand(len(y)) > 0.4
    settings = {"gamma": GAMMA}
    expected = make(name, **settings).fit(X[there], y[there]).decision_function(X)
    found = make(name, **settings).fit(X, y, there.astype(float)).decision_function(X)
    assert difference(found, expected) < 10 * NEAR


@ask(ONLINE)
def test_a_weight_of_zero_leaves_the_row_out_of_a_pass(name):
    X, y = iris()
    there = np.random.RandomState(0).rand(len(y)) > 0.4
    settings = {"gamma": GAMMA, "shuffle": False, "epochs": 1}
    expected = make(name, **settings).fit(X[there], y[there])
    found = make(name, **settings).fit(X, y, there.astype(float))
    assert_array_equal(found.predict(X), expected.predict(X))
    assert found.n_mistakes_ == expected.n_mistakes_


@ask(EXACT)
def test_a_weight_of_two_is_the_row_twice(name):
    X, y = iris()
    twice = np.random.RandomState(0).randint(1, 3, len(y))
    settings = {"gamma": GAMMA}
    expected = make(name, **settings).fit(np.repeat(X, twice, axis=0), np.repeat(y, twice))
    found = make(name, **settings).fit(X, y, twice)
    assert difference(found.decision_function(X), expected.decision_function(X)) < 10 * NEAR


@ask(WITH_C)
def test_a_common_weight_is_a_factor_of_c(name):
    X, y = iris()
    expected = make(name, C=4.0).fit(X, y).decision_function(X)
    found = make(name, C=1.0).fit(X, y, np.full(len(y), 4.0)).decision_function(X)
    assert difference(found, expected) < NEAR


@ask([*ROWS, "learned"])
def test_weights_of_classes_are_weights_of_rows(name):
    X, y = iris()
    weights = {0: 0.5, 1: 3.0, 2: 1.0}
    settings = {"gamma": GAMMA} if name in ROWS else {}  # rows count in "scale", classes do not
    expected = make(name, **settings).fit(X, y, np.vectorize(weights.get)(y)).decision_function(X)
    found = make(name, **settings, class_weight=weights).fit(X, y).decision_function(X)
    assert difference(found, expected) < 1e-12


@ask(ALL)
def test_balanced_weights_are_those_of_the_formula(name):
    X, y = iris()
    X, y = X[20:], y[20:]
    counts = np.bincount(y)
    explicit = {label: len(y) / (3 * count) for label, count in enumerate(counts)}
    expected = make(name, class_weight=explicit).fit(X, y).decision_function(X)
    found = make(name, class_weight="balanced").fit(X, y).decision_function(X)
    assert difference(found, expected) < 1e-12


@ask(ALL)
def test_a_heavier_class_is_predicted_more_often(name):
    X, y = make_blobs(120, centers=[[0, 0], [1, 0], [0, 1]], random_state=0)
    counts = [
        np.sum(make(name, class_weight={1: weight}).fit(X, y).predict(X) == 1)
        for weight in (0.02, 1.0, 50.0)
    ]
    assert counts[0] < counts[1] < counts[2] or name == "mira"  # its steps end at the margin
    assert counts[0] < counts[2]


@ask(ALL)
def test_a_heavier_row_is_got_right(name):
    X, y = make_blobs(40, centers=[[-2, 0], [2, 0]], cluster_std=0.7, random_state=0)
    X, y = np.vstack([X, [[1.0, 0.0]]]), np.append(y, 0)  # among the other class
    weights = np.ones(len(y))
    weights[-1] = 1000.0
    assert make(name).fit(X, y, weights).predict(X[-1:]) == 0


# C


@ask(EXACT)
def test_a_large_c_separates_what_can_be_separated(name):
    X, y = load_digits(return_X_y=True)
    X, y = X[:150] / 16, y[:150]
    assert make(name, C=1e6).fit(X, y).score(X, y) == 1


@ask(EXACT)
def test_a_tiny_c_leaves_nothing_but_small_scores(name):
    X, y = iris()
    machine = make(name, C=1e-9).fit(X, y)
    scores = machine.decision_function(X)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() < 1e-5
    assert_array_equal(machine.classes_[scores.argmax(axis=1)], machine.predict(X))


# Kernels


@ask(ROWS, kernel=list(KERNELS))
def test_scores_follow_from_vectors_and_coefficients(name, kernel):
    X, _ = iris()
    machine = fitted(name, kernel=kernel, **KERNEL_SETTINGS)
    expected = KERNELS[kernel](X, machine.basis_) @ machine.dual_coef_ + machine.intercept_
    assert difference(machine.decision_function(X), expected) < 1e-10


@ask(ROWS, kernel=list(KERNELS))
def test_a_kernel_matrix_is_as_good_as_its_kernel(name, kernel):
    X, y = iris()
    expected = fitted(name, kernel=kernel, **KERNEL_SETTINGS)
    machine = make(name, kernel="precomputed").fit(KERNELS[kernel](X, X), y)
    found = machine.decision_function(KERNELS[kernel](X[:40], X))
    assert difference(found, expected.decision_function(X[:40])) < limit(name)
    assert machine.score(KERNELS[kernel](X, X), y) > 0.6


@ask(ROWS, kernel=["rbf", "poly"])
def test_a_function_is_as_good_as_the_name_of_its_kernel(name, kernel):
    X, y = iris()
    expected = fitted(name, kernel=kernel, **KERNEL_SETTINGS)
    machine = make(name, kernel=KERNELS[kernel]).fit(X, y)
    found = machine.decision_function(X)
    assert difference(found, expected.decision_function(X)) < limit(name)
    assert machine.score(X, y) > 0.6


def limit(name):
    """Return how much scores may change by the rounding of kernel values.

    One pass of LaRank decides what to do next by what kernel values cost, which is another for each
    way to compute them.
    """
    return 10 * NEAR if name in EXACT else {"one_pass": np.inf}.get(name, ROUNDING)


@ask(ROWS)
def test_an_object_is_the_name_of_its_kernel(name):
    X, y = iris()
    expected = make(name, gamma=GAMMA).fit(X, y).decision_function(X)
    assert_array_equal(make(name, kernel=RBF(GAMMA)).fit(X, y).decision_function(X), expected)


@ask(ROWS)
def test_gamma_scale_is_its_formula(name):
    X, y = iris()
    X = X * [1, 2, 3, 4] + 1
    expected = make(name, gamma=1 / (4 * X.var())).fit(X, y).decision_function(X)
    assert difference(make(name).fit(X, y).decision_function(X), expected) < limit(name)


@ask(ROWS)
def test_the_coefficients_of_a_linear_kernel(name):
    for n_classes in (2, 3):
        X, y = iris(n_classes)
        machine = make(name, kernel="linear").fit(X, y)
        assert machine.coef_.shape == (1 if n_classes == 2 else 3, 4)
        expected = X @ machine.coef_.T + machine.intercept_
        scores = machine.decision_function(X)
        assert difference(scores.reshape(expected.shape), expected) < 1e-9
    assert not hasattr(fitted(name), "coef_")


@ask(ONLY_RBF)
def test_other_kernels_have_no_coefficients_of_features(name):
    assert not hasattr(fitted(name), "coef_")


# Streams and warm starts


@ask(STREAMS)
def test_a_stream_has_the_shapes_of_a_fit(name):
    for n_classes in (2, 3):
        X, y = iris(n_classes)
        fitted = make(name).fit(X, y)
        stream = make(name, **{"gamma": GAMMA} if name in ROWS else {})
        for start in range(0, len(y), 30):
            stream.partial_fit(X[start : start + 30], y[start : start + 30], classes=np.unique(y))
        assert stream.decision_function(X).shape == fitted.decision_function(X).shape
        assert stream.model_.coef.shape[1] == fitted.model_.coef.shape[1]
        assert stream.intercept_.shape == fitted.intercept_.shape
        assert stream.score(X, y) > 0.8


@ask(ONLINE)
def test_one_batch_is_one_pass(name):
    X, y = iris()
    expected = make(name, gamma=GAMMA, epochs=1, shuffle=False).fit(X, y)
    found = make(name, gamma=GAMMA).partial_fit(X, y)
    assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=1e-10)
    assert_array_equal(found.dual_coef_, expected.dual_coef_)
    assert_array_equal(found.decision_function(X), expected.decision_function(X))


@ask(STREAMS)
def test_a_stream_is_told_its_classes_once_or_finds_out(name):
    X, y = iris()
    stream = make(name).partial_fit(X[y < 2], y[y < 2]).partial_fit(X, y)
    assert_array_equal(stream.classes_, [0, 1, 2])
    stream = make(name).partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2]).partial_fit(X, y)
    assert_array_equal(stream.classes_, [0, 1, 2])
    with pytest.raises(ValueError, match="class"):
        stream.partial_fit(X, y, classes=[0, 1, 2, 3])


@ask(STREAMS)
def test_a_stream_cannot_know_balanced_weights(name):
    X, y = iris()
    with pytest.raises(ValueError, match="balanced"):
        make(name, class_weight="balanced").partial_fit(X, y, classes=[0, 1, 2])


@ask(STREAMS)
def test_a_stream_goes_on_after_a_fit_and_a_fit_begins_anew(name):
    X, y = iris()
    expected = fitted(name).decision_function(X)
    machine = make(name).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    assert machine.score(X, y) > 0.9
    assert_array_equal(machine.fit(X, y).decision_function(X), expected)


@ask(WARM)
def test_a_warm_start_goes_on_from_there(name):
    X, y = iris()
    machine = make(name, warm_start=True).fit(X, y)
    before = machine.objective_
    assert machine.fit(X, y).objective_ <= before * (1 + 1e-6)
    assert machine.score(X, y) > 0.94


@ask(WARM)
def test_without_a_warm_start_nothing_is_left(name):
    X, y = iris()
    expected = fitted(name).decision_function(X)
    machine = make(name).fit(X[:60] + 1, y[:60])
    assert_array_equal(machine.fit(X, y).decision_function(X), expected)

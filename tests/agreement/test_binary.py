"""Two classes are one binary machine; a class against the rest is a binary machine too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)


def exact_machine(**parameters):
    settings = {"n_candidates": "all", "tol": 0, "gradient_tol": 1e-8, "gamma": 0.4}
    return sparse_machine(**({"max_basis": 10_000} | settings | parameters))


@every_loss
def test_two_classes_are_the_binary_machine(loss, two_classes):
    """With the opposite columns of two classes folded into one, w' = w_1 - w_0, the regulariser
    is 1/4 |w'|^2: half the binary objective with twice the C.
    """
    X, y = two_classes
    joint = exact_machine(loss=loss, C=1.5).fit(X, y)
    binary = exact_machine(loss=loss, C=3.0, basis="per_class").fit(X, y)
    assert joint.dual_coef_.shape == binary.dual_coef_.shape == (len(X), 1)
    assert joint.intercept_.shape == (1,)
    assert joint.objective_ == pytest.approx(binary.objective_ / 2, rel=1e-9)
    assert_allclose(joint.decision_function(X), binary.decision_function(X), atol=1e-5)


@every_loss
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_a_positive_score_speaks_for_the_second_class(loss, basis, two_classes):
    X, y = two_classes
    names = np.array(["no", "yes"])
    machine = exact_machine(loss=loss, basis=basis, max_basis=8).fit(X, names[y])
    scores = machine.decision_function(X)
    assert scores.shape == (len(X),)
    assert_array_equal(machine.predict(X), names[(scores > 0).astype(int)])
    assert np.mean(scores[y == 1]) > 0 > np.mean(scores[y == 0])


@every_loss
def test_swapping_two_classes_swaps_the_sign(loss, two_classes):
    X, y = two_classes
    there = exact_machine(loss=loss, max_basis=10).fit(X, y)
    back = exact_machine(loss=loss, max_basis=10).fit(X, 1 - y)
    assert_array_equal(there.basis_indices_, back.basis_indices_)
    assert_allclose(there.decision_function(X), -back.decision_function(X), atol=1e-6)


@every_loss
def test_per_class_is_one_binary_machine_a_class(loss, three_classes):
    X, y = three_classes
    machine = exact_machine(loss=loss, basis="per_class", max_basis=8).fit(X, y)
    alone = [
        exact_machine(loss=loss, basis="per_class", max_basis=8).fit(X, y == number)
        for number in range(3)
    ]
    scores = np.stack([each.decision_function(X) for each in alone], axis=1)
    assert_allclose(machine.decision_function(X), scores, atol=1e-12)
    assert_allclose(machine.intercept_, [each.intercept_[0] for each in alone], atol=1e-14)
    assert machine.objective_ == pytest.approx(sum(each.objective_ for each in alone), rel=1e-12)
    assert machine.n_iter_ == sum(each.n_iter_ for each in alone)
    rows = np.concatenate([each.basis_indices_ for each in alone])
    assert_array_equal(machine.basis_indices_, list(dict.fromkeys(rows)))
    assert machine.n_basis_ == len(np.unique(rows)) == len(machine.basis_)
    for number, each in enumerate(alone):
        mine = machine.history_["class_index"] == number
        assert_allclose(machine.history_["objective"][mine], each.history_["objective"])


def test_probabilities_are_those_of_the_model(two_classes, three_classes):
    X, y = three_classes
    machine = exact_machine(loss="logistic", max_basis=8).fit(X, y)
    scores = np.exp(machine.decision_function(X))
    assert_allclose(machine.predict_proba(X), scores / scores.sum(axis=1, keepdims=True))
    assert_allclose(machine.predict_log_proba(X), np.log(machine.predict_proba(X)))

    machine = exact_machine(loss="logistic", basis="per_class", max_basis=8).fit(X, y)
    each = expit(machine.decision_function(X))
    assert_allclose(machine.predict_proba(X), each / each.sum(axis=1, keepdims=True))

    X, y = two_classes
    machine = exact_machine(loss="logistic", max_basis=8).fit(X, y)
    second = expit(machine.decision_function(X))
    assert_allclose(machine.predict_proba(X), np.stack([1 - second, second], axis=1))


@pytest.fixture(params=["two_classes", "three_classes"])
def far_from(request, rng):
    """Return a function that fits a linear machine, and gives it and rows far from all it saw."""
    X, y = request.getfixturevalue(request.param)

    def fitted(basis, dtype):
        machine = exact_machine(loss="logistic", kernel="linear", basis=basis, gradient_tol=1e-3)
        machine.fit(X.astype(dtype), y)
        far = 1e4 * rng.randn(50, X.shape[1])
        # One against the rest, the classes have slopes of their own: so there is a row that every
        # one of them disowns.
        slopes = machine.basis_.T @ machine.dual_coef_
        far[0] = np.linalg.lstsq(slopes.T, np.full(slopes.shape[1], -1e4), rcond=None)[0]
        return machine, far.astype(dtype)

    return fitted


@pytest.mark.filterwarnings("error", "ignore:max_basis")
@pytest.mark.parametrize("basis", ["shared", "per_class"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_far_rows_are_numbers(basis, dtype, far_from):
    machine, far = far_from(basis, dtype)
    if basis == "per_class":
        assert machine.decision_function(far[:1]).max() < -1e3
    probabilities = machine.predict_proba(far)
    assert np.isfinite(probabilities).all()
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-5)
    best = probabilities.max(axis=1)
    predicted = np.searchsorted(machine.classes_, machine.predict(far))
    assert_array_equal(probabilities[np.arange(len(far)), predicted], best)


@pytest.mark.filterwarnings("error", "ignore:max_basis")
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_logarithms_of_the_probabilities_of_far_rows_are_numbers(basis, far_from):
    machine, far = far_from(basis, np.float64)
    logarithms = machine.predict_log_proba(far)
    assert np.isfinite(logarithms).all()
    assert_allclose(np.exp(logarithms), machine.predict_proba(far), atol=1e-12)

"""Weights of rows and classes: a row of weight 2 is there twice, a row of weight 0 is not there."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES

pytestmark = pytest.mark.combinations

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_gamma = pytest.mark.parametrize("gamma", [0.4, "scale"])


def exact_machine(**parameters):
    """Return a machine that draws nothing at random and solves far."""
    settings = {"n_candidates": "all", "tol": 0, "gradient_tol": 1e-7}
    return sparse_machine(**({"max_basis": 10_000} | settings | parameters))


@pytest.fixture
def counts(rng):
    """How many times each of 60 rows is there."""
    return rng.randint(0, 4, size=60)


@every_loss
@every_gamma
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_integer_weights_are_repeated_rows(loss, gamma, basis, counts, three_classes):
    X, y = three_classes
    machine = exact_machine(loss=loss, gamma=gamma, basis=basis)
    weighted = machine.fit(X, y, sample_weight=counts).objective_
    repeated = machine.fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)).objective_
    assert weighted == pytest.approx(repeated, rel=1e-9)


@every_loss
@every_gamma
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_a_row_of_weight_zero_might_as_well_not_be_there(loss, gamma, form, counts, three_classes):
    X, y = three_classes
    present = counts > 0
    machine = exact_machine(loss=loss, gamma=gamma, max_basis=15)
    weighted = machine.fit(form(X), y, sample_weight=present).decision_function(X)
    numbers = machine.basis_indices_
    without = machine.fit(form(X[present]), y[present]).decision_function(X)
    assert_array_equal(numbers, np.flatnonzero(present)[machine.basis_indices_])
    assert_allclose(weighted, without, atol=1e-6)


def test_absent_rows_do_not_count_when_classes_are_balanced(counts, three_classes):
    X, y = three_classes
    present = (counts > 0) | (y == 2)
    machine = exact_machine(gamma=0.4, class_weight="balanced", max_basis=15)
    weighted = machine.fit(X, y, sample_weight=present).objective_
    without = machine.fit(X[present], y[present]).objective_
    assert weighted == pytest.approx(without, rel=1e-9)


@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_a_factor_of_the_weights_is_a_factor_of_the_loss(basis, three_classes):
    X, y = three_classes
    machine = exact_machine(C=1.0, gamma=0.4, basis=basis, max_basis=15)
    by_weight = machine.fit(X, y, sample_weight=np.full(len(y), 4.0)).decision_function(X)
    assert_array_equal(machine.set_params(C=4.0).fit(X, y).decision_function(X), by_weight)


@every_loss
def test_class_weight_multiplies_sample_weight(loss, rng, three_classes):
    X, y = three_classes
    sample_weight, class_weight = rng.rand(len(y)), {0: 2.0, 1: 0.5, 2: 1.0}
    machine = exact_machine(loss=loss, gamma=0.4, max_basis=15)
    product = sample_weight * np.array([2.0, 0.5, 1.0])[y]
    expected = machine.fit(X, y, sample_weight=product).decision_function(X)
    machine.set_params(class_weight=class_weight)
    scores = machine.fit(X, y, sample_weight=sample_weight).decision_function(X)
    assert_allclose(scores, expected, atol=1e-10)
    assert (
        np.abs(scores - machine.set_params(class_weight=None).fit(X, y).decision_function(X)).max()
        > 0.01
    )


def test_balanced_classes_have_equal_weight(three_classes):
    X, y = three_classes
    few = np.flatnonzero((y < 2) | (np.arange(len(y)) < 12))  # 20, 20 and 4 rows
    X, y = X[few], np.array(["a", "b", "c"])[y[few]]
    machine = exact_machine(gamma=0.4, class_weight="balanced", max_basis=15).fit(X, y)
    names, sizes = np.unique(y, return_counts=True)
    weights = {name: len(y) / (3 * size) for name, size in zip(names, sizes, strict=True)}
    expected = exact_machine(gamma=0.4, class_weight=weights, max_basis=15).fit(X, y)
    assert machine.objective_ == pytest.approx(expected.objective_, rel=1e-12)
    assert_allclose(machine.decision_function(X), expected.decision_function(X), atol=1e-10)

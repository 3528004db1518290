"""What holds of every fit, whatever the estimator: forms of data, weights, seeds, files.

The tests walk the registry, so that a new estimator is held to all of this by being in it. Its
exports are in tests/formats, which walks the registry too.
"""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from contract import (
    ESTIMATORS,
    every_estimator,
    fitted,
    has_parameter,
    is_multilabel,
    problem,
    unfitted,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

import widemargin

pytestmark = pytest.mark.combinations

any_number_of_classes = pytest.mark.parametrize("n_classes", [2, 4])


def scores_of(machine, X):
    return machine.decision_function(X)


def near(expected, share=1e-5):
    """Return how far scores may be from these: a share of the largest."""
    return share * np.abs(expected).max()


@every_estimator
@any_number_of_classes
@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_rows_make_the_machine_of_dense_ones(name, n_classes, container):
    if not get_tags(unfitted(name)).input_tags.sparse:
        pytest.skip("takes no sparse rows")
    X, y = problem(name, n_classes=n_classes)
    dense, sparse = fitted(name, n_classes), unfitted(name).fit(container(X), y)
    expected = scores_of(dense, X)
    for rows in (X, container(X)):
        assert_allclose(scores_of(sparse, rows), expected, rtol=0, atol=near(expected))
        assert_array_equal(sparse.predict(rows), dense.predict(X))


@every_estimator
@any_number_of_classes
def test_a_seed_makes_the_same_machine_to_the_bit(name, n_classes):
    X, y = problem(name, n_classes=n_classes)
    again = unfitted(name).fit(X, y)
    assert_array_equal(scores_of(again, X), scores_of(fitted(name, n_classes), X))
    # A second fit of the same estimator does not go on from the first.
    assert_array_equal(scores_of(again.fit(X, y), X), scores_of(fitted(name, n_classes), X))


@every_estimator
def test_threads_change_no_bit(name):
    X, y = problem(name, n_classes=4)
    if not has_parameter(name, "n_jobs"):
        pytest.skip("has no threads")
    machine = unfitted(name, n_jobs=2).fit(X, y)
    assert_array_equal(scores_of(machine, X), scores_of(fitted(name, 4), X))


@every_estimator
def test_rows_may_be_of_any_layout(name):
    X, y = problem(name, n_classes=4)
    expected = scores_of(fitted(name, 4), X)
    for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist()):
        assert_array_equal(scores_of(unfitted(name).fit(rows, y), X), expected)
        assert_array_equal(scores_of(fitted(name, 4), rows), expected)


@every_estimator
def test_equal_weights_are_no_weights(name):
    X, y = problem(name, n_classes=4)
    machine = unfitted(name).fit(X, y, sample_weight=np.ones(len(y)))
    expected = scores_of(fitted(name, 4), X)
    assert_allclose(scores_of(machine, X), expected, rtol=0, atol=near(expected))


@every_estimator
def test_a_weight_draws_the_machine_towards_its_rows(name):
    """A class whose rows weigh next to nothing is predicted less often than before."""
    X, y = problem(name, n_classes=4)
    one = y[0] if not is_multilabel(name) else 0
    own = y == one if y.ndim == 1 else y[:, one] == 1
    light = unfitted(name).fit(X, y, sample_weight=np.where(own, 1e-3, 1.0))

    def share(machine):
        found = machine.predict(X)
        return np.mean(found == one if found.ndim == 1 else found[:, one] == 1)

    assert share(light) < share(fitted(name, 4))


@every_estimator
def test_rows_of_weight_zero_might_as_well_not_be_there(name):
    X, y = problem(name, n_classes=4)
    spoilt = np.vstack([X, 100.0 + X[:5]])
    weights = np.r_[np.ones(len(X)), np.zeros(5)]
    machine = unfitted(name).fit(spoilt, np.concatenate([y, y[:5]]), sample_weight=weights)
    if hasattr(machine, "basis_indices_"):
        assert np.isin(machine.basis_indices_, np.arange(-1, len(X))).all()
    assert machine.score(X, y) >= fitted(name, 4).score(X, y) - 0.1


@every_estimator
@any_number_of_classes
@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_a_machine_comes_back_to_the_bit(name, n_classes, way, tmp_path):
    X, _ = problem(name, n_classes=n_classes)
    machine = fitted(name, n_classes)
    if way == "file":
        widemargin.save(machine, tmp_path / "machine.widemargin")
        again = widemargin.load(tmp_path / "machine.widemargin")
    else:
        again = pickle.loads(pickle.dumps(machine)) if way == "pickle" else copy.deepcopy(machine)
    assert type(again) is ESTIMATORS[name]
    assert set(again.get_params()) == set(machine.get_params())
    assert_array_equal(scores_of(again, X), scores_of(machine, X))
    assert_array_equal(again.predict(X), machine.predict(X))
    # What comes back is whole: it can be fitted anew, and is then the machine of a fit.
    again.fit(*problem(name, n_classes=n_classes))
    assert_array_equal(scores_of(again, X), scores_of(machine, X))

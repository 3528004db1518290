"""The same promises on real data sets, where WIDEMARGIN_DATA names a folder of them."""

import numpy as np
import pytest
from reference.machine import FixedBasis
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES

every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)


@every_loss
@pytest.mark.parametrize(("name", "gamma"), [("iris.scale", 0.5), ("wine.scale", 0.1)])
def test_the_fit_is_the_optimum_on_its_own_basis(loss, name, gamma, real_data):
    X, y = real_data(name)
    machine = sparse_machine(
        8, loss=loss, gamma=gamma, C=10.0, gradient_tol=1e-6, random_state=0
    ).fit(X, y)
    chosen = CLASS_LOSSES[loss]()
    labels = np.searchsorted(machine.classes_, y)
    n_classes = len(machine.classes_)
    dense = FixedBasis(
        chosen,
        chosen.encode(labels, n_classes),
        np.full(len(y), 10.0),
        rbf_kernel(X, machine.basis_, gamma=gamma),
        rbf_kernel(machine.basis_, gamma=gamma),
        n_classes,
    )
    assert machine.objective_ == pytest.approx(dense.value(dense.solve_lbfgs()), rel=1e-6)


@every_loss
@pytest.mark.parametrize("name", ["satimage.scale", "usps"])
def test_relative_gradient_of_1e_6_is_reached(loss, name, real_data):
    X, y = real_data(name)
    machine = sparse_machine(
        40,
        loss=loss,
        gamma=0.5 if X.shape[1] < 100 else 0.01,
        C=10.0,
        gradient_tol=1e-6,
        random_state=0,
    ).fit(X[:3000], y[:3000])
    assert machine.history_["gradient"][-1] <= 1e-6
    assert (np.diff(machine.history_["objective"]) < 0).all()

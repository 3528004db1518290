"""Dual machines by themselves: a class that joins later, rows that slots give back."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.estimation.streams import StreamClasses
from widemargin.full_kernel.live import live_scores
from widemargin.kernels import RBF, CustomKernel, Linear
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.larank import LaRank
from widemargin.solvers.duals.online import OnlineRows


def product(left, right):
    """Return inner products."""
    return left @ right.T


KERNELS = {"rbf": RBF(0.4), "linear": Linear(), "called": CustomKernel(product)}
LEARNERS = {
    "larank": lambda machine: LaRank().native(machine, 3),
    "perceptron": OnlineRows(mira=False, averages=True).native,
    "mira": OnlineRows(mira=True, averages=False).native,
}


def data():
    rng = np.random.RandomState(2)
    labels = rng.randint(0, 3, 120)
    return rng.randn(120, 4) + labels[:, np.newaxis], labels


def make(kernel, rows, n_classes):
    return DualExpansion(KERNELS[kernel], rows, n_classes, fit_intercept=True)


@pytest.mark.parametrize("n_before", [2, 3])
@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_class_that_joins_later(kernel, learner, position, n_before):
    rows, labels = data()
    rows, labels = rows[labels < n_before], labels[labels < n_before]
    half = len(rows) // 2
    late = make(kernel, rows, n_before)
    late.use_batch(rows[:half], labels[:half], np.ones(half))
    native = LEARNERS[learner](late)
    late.learn(native, np.arange(half))
    late.let_go_of_batch()
    averages = learner == "perceptron"
    classes = StreamClasses.begin(np.arange(n_before), is_open=False)
    live = live_scores(late, classes, averages=averages)
    live.scores(rows, half, 1)
    before = late.supports()
    late.add_class(position)
    classes.labels, classes.columns = np.arange(n_before + 1), np.arange(n_before + 1)

    moved = labels + (labels >= position)
    after = late.supports()
    assert_array_equal(after.labels, before.labels + (before.labels >= position))
    assert_array_equal(after.coef, np.insert(before.coef, position, 0.0, axis=1))
    assert_array_equal(after.earlier, np.insert(before.earlier, position, 0.0, axis=1))
    assert_array_equal(late.rows_in(after.slots), rows[after.ids])

    # A machine that had the class from the start, with the same coefficients.
    early = make(kernel, rows, n_before + 1)
    early.use_batch(rows[:half], moved[:half], np.ones(half))
    early.restore(after.ids, after.coef, after.earlier)
    early.let_go_of_batch()
    other = LEARNERS[learner](early)
    other.take_on(native.snapshot())
    new = moved[half:].copy()
    new[::3] = position  # which has rows from here on
    for machine, each in ((late, native), (early, other)):
        machine.use_batch(rows[half:], new, np.ones(len(new)), first_id=half)
        if learner == "larank":
            # Which patterns LaRank draws depends on the order that they joined in.
            machine.hold_all()
            machine.restore(np.arange(len(new)), np.zeros((len(new), n_before + 1)))
        else:
            machine.learn(each, np.arange(len(new)))
        machine.let_go_of_batch()
    found, wanted = late.supports(), early.supports()
    assert_array_equal(found.ids, wanted.ids)
    assert_allclose(found.coef, wanted.coef, atol=1e-5)
    assert_allclose(late.set.gap(), early.set.gap(), rtol=1e-4, atol=1e-4)

    over = float(len(rows))
    fresh = live_scores(early, classes, averages=averages)
    assert_allclose(live.scores(rows, over, 1), fresh.scores(rows, over, 1), atol=1e-4)


def test_a_class_at_no_place():
    rows, _ = data()
    machine = make("rbf", rows, 3)
    with pytest.raises(ValueError, match="no such place"):
        machine.add_class(4)
    assert machine.n_classes == 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_slots_give_rows_back_as_they_came(form, dtype):
    rows, labels = data()
    rows = rows.astype(dtype) * (rows > 0)
    machine = make("rbf", form(rows), 3)
    native = LaRank().native(machine, 0)
    for start in range(0, 120, 30):
        batch = slice(start, start + 30)
        machine.use_batch(form(rows[batch]), labels[batch], np.ones(30), first_id=start)
        machine.learn(native, np.arange(30))
        machine.let_go_of_batch()
    supports = machine.supports()
    found = machine.rows_in(supports.slots)
    assert found.dtype == dtype
    assert_array_equal(found, rows[supports.ids])

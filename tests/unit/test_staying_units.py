"""Units that stay where they begin, where rows that are held out prefer that."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import LearnedBasis, SparseKernelClassifier, load, save
from widemargin.losses import WestonWatkins
from widemargin.solvers.units.staged import StagedState
from widemargin.solvers.units.values import Units
from widemargin.sparse_kernel import learned as learned_module
from widemargin.sparse_kernel.effort import Plan
from widemargin.sparse_kernel.learned import _plan_of


def noisy_rows(n_rows=240, seed=0):
    """Return rows of which one feature tells the class, and a third of the classes are wrong."""
    rng = np.random.RandomState(seed)
    X = rng.randn(n_rows, 10)
    y = (X[:, 0] > 0).astype(int)
    wrong = rng.rand(n_rows) < 0.3
    return X, np.where(wrong, 1 - y, y)


def spirals(n_rows=400, seed=0):
    """Return two spirals, which units tell apart once they have moved."""
    rng = np.random.RandomState(seed)
    y = np.arange(n_rows) % 2
    angle = 3 * np.pi * np.sqrt(rng.rand(n_rows))
    X = np.column_stack([np.cos(angle + np.pi * y), np.sin(angle + np.pi * y)]) * angle[:, None]
    return X + 0.1 * rng.randn(n_rows, 2), y


def learned(n=30, **settings):
    return SparseKernelClassifier(n, basis="learned", random_state=0, **settings)


def state_of(lowest, effort, stays, factor=1.0):
    """Return the state in which a rehearsal has ended."""
    return StagedState(
        point=None,
        stage="adam",
        part=None,
        stays=stays,
        lowest=lowest,
        lowest_factor=factor,
        lowest_effort=effort,
    )


def test_units_stay_on_few_noisy_rows():
    machine = learned().fit(*noisy_rows())
    assert machine.stop_reason_ == "held_out"
    assert len(machine.history_["objective"]) == 1
    assert machine.C_ < 10.0


def test_units_move_where_that_pays():
    machine = learned().fit(*spirals())
    assert len(machine.history_["objective"]) > 1


@pytest.mark.thorough
def test_units_that_stay_learn_less_noise_than_units_that_move():
    rows = np.random.RandomState(2).randn(4000, 10)
    truth = (rows[:, 0] > 0).astype(int)
    moving = SparseKernelClassifier(
        100, basis=LearnedBasis(solver="projection"), C=10.0, random_state=0
    )
    lead = []
    for seed in range(3):
        data = noisy_rows(seed=seed)
        machines = learned(100).fit(*data), moving.fit(*data)
        lead.append(machines[0].score(rows, truth) - machines[1].score(rows, truth))
    assert np.mean(lead) > 0.05


@pytest.mark.parametrize("solver", ["projection", "adam"])
def test_a_solver_that_was_asked_for_moves_units_whatever_rows_say(solver):
    basis = LearnedBasis(solver=solver, max_iter=5)
    machine = SparseKernelClassifier(30, basis=basis, random_state=0).fit(*noisy_rows())
    assert len(machine.history_["objective"]) == 5


def test_units_that_stay_are_as_narrow_as_they_begin_or_wider():
    X, y = noisy_rows()
    basis = LearnedBasis(metric="none")
    machine = SparseKernelClassifier(30, basis=basis, gamma=0.05, random_state=0).fit(X, y)
    assert machine.stop_reason_ == "held_out"
    assert machine.model_.kernel.gamma / 0.05 in (pytest.approx(1 / 4**n) for n in range(3))


def test_a_machine_whose_units_stay_is_saved_and_loaded(tmp_path):
    X, y = noisy_rows()
    machine = learned(warm_start=True).fit(X, y)
    save(machine, tmp_path / "machine")
    assert_array_equal(
        load(tmp_path / "machine").decision_function(X), machine.decision_function(X)
    )
    assert machine.fit(X, y).stop_reason_  # goes on from its units


def test_the_coefficients_of_units_that_stay_are_optimal(monkeypatch):
    monkeypatch.setattr(learned_module, "_plan_of", lambda states: Plan(0.1, 0, 0, narrower=0.25))
    X, y = noisy_rows()
    y = y + (X[:, 1] > 1)  # three classes
    machine = learned(20).fit(X, y)
    assert machine.stop_reason_ == "held_out"
    values = machine.model_.kernel.block(X, machine.basis_).astype(float)
    loss = WestonWatkins()
    targets = loss.encode(y.astype(np.intp), 3)

    def objective(coef, intercept):
        rows = loss.value(values @ coef + intercept, targets)
        return 0.5 * (np.sum(coef**2) + np.sum(intercept**2)) + machine.C_ * rows.sum()

    best = objective(machine.dual_coef_, machine.intercept_)
    assert best == pytest.approx(machine.objective_, rel=1e-5)
    rng = np.random.RandomState(0)
    for _ in range(20):
        step = 0.01 * rng.randn(*machine.dual_coef_.shape)
        assert objective(machine.dual_coef_ + step, machine.intercept_) > best


@pytest.mark.parametrize(
    ("moved", "stays"),
    [(1.0, 0.9), (1.0, 0.999)],
)
def test_a_plan_stays_where_moves_have_not_lowered_the_loss(moved, stays):
    states = [
        state_of(moved, (2, 3), {1.0: (2.0, 1.0), 0.25: (stays, factor)}) for factor in (0.1, 10.0)
    ]
    plan = _plan_of(states)
    assert (plan.n_cycles, plan.n_moves, plan.narrower) == (0, 0, 0.25)
    assert plan.factor == pytest.approx(1.0)  # the geometric mean of theirs


def test_a_plan_moves_where_that_has_lowered_the_loss():
    efforts = [(1, 0), (2, 7), (2, 9)]
    states = [state_of(1.0, effort, {1.0: (1.1, 0.1)}, factor=3.0) for effort in efforts]
    plan = _plan_of(states)
    assert (plan.n_cycles, plan.n_moves, plan.narrower) == (2, 7, 1.0)
    assert plan.factor == pytest.approx(3.0)


def test_a_plan_without_units_that_stay():
    plan = _plan_of([state_of(1.0, (0, 0), {})])
    assert plan.n_cycles == 1


def test_narrowed_units_count_squared_distances_more():
    units = Units(np.zeros((3, 2)), np.zeros(3), np.zeros(2))
    assert_allclose(units.narrowed(0.25).weights ** 2, 0.25 * units.weights**2)

"""A learned basis by itself: rows that are held out choose C, and say how far to go."""

import itertools
import warnings

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sparse_machines import sparse_machine

import widemargin
from widemargin import SparseKernelClassifier
from widemargin.kernels import AdaptiveRBF
from widemargin.solvers.progress import Progress
from widemargin.solvers.units import staged
from widemargin.solvers.units.staged import StagedUnits
from widemargin.sparse_kernel import learned
from widemargin.sparse_kernel.effort import LearnSettings, Plan, metric_of
from widemargin.sparse_kernel.learned import Learning
from widemargin.sparse_kernel.learning_rows import each_once

pytestmark = [pytest.mark.combinations, pytest.mark.turns("solver", "early_stopping")]

SOLVERS = ("auto", "projection", "adam")
every_solver = pytest.mark.parametrize("solver", SOLVERS)


@pytest.fixture(autouse=True)
def no_warnings():
    """A fit that has nothing to say says nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture(autouse=True)
def two_rehearsals(monkeypatch):
    """Rather than five, to save time."""
    monkeypatch.setattr(learned, "_REHEARSALS", 2)


def machine(max_basis=6, **parameters):
    settings = {"basis": "learned", "random_state": 0, "moves": 10}
    return sparse_machine(max_basis, **(settings | parameters))


def checkerboard(n_rows=3200):
    """Return rows of two features whose class is that of their field, of three by turns."""
    X = np.random.RandomState(0).uniform(0, 4, (n_rows, 2))
    return X, (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % 3


def same_fit(first, second, X):
    assert first.stop_reason_ == second.stop_reason_
    assert (first.C_, first.n_iter_) == (second.C_, second.n_iter_)
    assert_array_equal(first.basis_, second.basis_)
    assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert set(first.history_) == set(second.history_)
    for name in first.history_.keys() - {"seconds"}:
        assert_array_equal(first.history_[name], second.history_[name], err_msg=name)


# C


def test_noise_lowers_c():
    X, y = make_moons(300, noise=0.1, random_state=0)
    flipped = np.random.RandomState(0).rand(300) < 0.3
    clean = machine(10, moves=20).fit(X, y)
    noisy = machine(10, moves=20).fit(X, np.where(flipped, 1 - y, y))
    assert clean.C_ > 10.0
    assert 0.0 < noisy.C_ < 0.2 * clean.C_


@every_solver
@pytest.mark.parametrize("n_rows", [60, 3100])
def test_a_c_that_is_a_number_is_kept(solver, n_rows):
    X, y = overlapping_classes(n_rows, 3)
    fitted = machine(C=0.3, solver=solver, moves=4).fit(X, y)
    assert fitted.C_ == 0.3
    # And it is what the objective has.
    scores = fitted.decision_function(X)
    margins = np.maximum(1.0 + scores - scores[np.arange(n_rows), y][:, None], 0.0)
    loss = 0.5 * np.sum(margins**2) - 0.5 * n_rows
    size = 0.5 * np.sum(fitted.dual_coef_**2) + 0.5 * np.sum(fitted.intercept_**2)
    assert fitted.objective_ == pytest.approx(size + 0.3 * loss, rel=1e-3)


@every_solver
@pytest.mark.parametrize("n_rows", [60, 3100])
def test_the_objective_is_that_of_the_c_that_was_found_and_of_all_rows(solver, n_rows):
    X, y = overlapping_classes(n_rows, 3)
    X[:, :3] += 4.0 * np.eye(3)[y]  # far from one another
    fitted = machine(solver=solver, moves=6).fit(X, y)
    assert fitted.C_ > 20.0
    scores = fitted.decision_function(X)
    margins = np.maximum(1.0 + scores - scores[np.arange(n_rows), y][:, None], 0.0)
    loss = 0.5 * np.sum(margins**2) - 0.5 * n_rows
    size = 0.5 * np.sum(fitted.dual_coef_**2) + 0.5 * np.sum(fitted.intercept_**2)
    assert fitted.objective_ == pytest.approx(size + fitted.C_ * loss, rel=1e-3)


def test_a_chosen_basis_has_a_c_of_10(three_classes):
    X, y = three_classes
    by_itself, ten = (SparseKernelClassifier(6, C=C).fit(X, y) for C in ("auto", 10.0))
    assert by_itself.C_ == ten.C_ == 10.0
    assert_array_equal(by_itself.decision_function(X), ten.decision_function(X))
    assert SparseKernelClassifier().C == "auto"


@pytest.mark.parametrize("C", [10.0, "auto"])
def test_more_vectors_do_not_hurt(C):
    X, y = make_moons(1400, noise=0.35, random_state=0)
    few, many = (
        machine(n, C=C, moves="auto").fit(X[:400], y[:400]).score(X[400:], y[400:])
        for n in (10, 100)
    )
    assert few > 0.86
    assert many > few - (0.015 if C == "auto" else 0.03)


# Which rows


@pytest.mark.parametrize("n_rows", [60, 3100])
def test_a_weight_of_2_is_a_row_twice_and_order_is_none(n_rows):
    X, y = overlapping_classes(n_rows, 3)
    weights = 1.0 + (np.arange(n_rows) % 3 == 0)
    order = np.random.RandomState(1).permutation(int(weights.sum()))
    rows, labels = (np.repeat(each, weights.astype(int), axis=0)[order] for each in (X, y))
    weighted = machine(4, moves=4).fit(X, y, weights)
    repeated = machine(4, moves=4).fit(rows, labels)
    same_fit(weighted, repeated, X)


def test_rows_are_in_the_order_of_their_values(rng):
    """Whatever their units are: or other rows would be held out."""
    rows = rng.randn(200, 3).round(1)
    rows[::9] *= 0.0
    rows[::18] *= -1.0  # zeros have signs, which do not count
    labels, weights = rng.randint(3, size=200), rng.rand(200)
    expected = None
    for kind in (np.float32, np.float64):
        for scale in (1.0, np.array([1e3, 0.1, 1e-30])):
            table = (rows * scale).astype(kind)
            used, counts = each_once(table, labels, weights, np.arange(200))
            keys = [tuple(row) for row in np.column_stack([table, labels])[used] + 0.0]
            assert keys == sorted(set(keys))
            assert counts.sum() == pytest.approx(weights.sum())
            expected = used if expected is None else expected
            assert_array_equal(used, expected)


@every_solver
@pytest.mark.parametrize("n_rows", [39, 12, 3])
def test_of_few_rows_none_is_held_out(solver, n_rows, monkeypatch):
    monkeypatch.setattr(Learning, "_rehearse", None)
    X, y = overlapping_classes(n_rows, 3)
    fitted = machine(3, solver=solver, moves=4).fit(X, y)
    assert fitted.C_ == 10.0
    assert "held_out_loss" not in fitted.history_
    assert fitted.stop_reason_ == "max_iter"
    # Rows that are there twice are no more rows.
    twice = machine(3, solver=solver, moves=4).fit(np.vstack([X, X]), np.hstack([y, y]))
    assert twice.C_ == 10.0


def test_rows_are_held_out_from_40_on(monkeypatch):
    true, plans = Learning._rehearse, []
    monkeypatch.setattr(
        Learning, "_rehearse", lambda self, seed: plans.append(true(self, seed)) or plans[-1]
    )
    X, y = overlapping_classes(40, 3)
    fitted = machine(3, moves=4).fit(X, y)
    assert [10.0 * plan.factor for plan in plans] == [fitted.C_]


@pytest.mark.parametrize("n_rows", [60, 1100])
def test_a_row_of_several_classes_is_on_one_side(n_rows, monkeypatch):
    """Or what judges would have been learned from, as another class."""
    monkeypatch.setattr(learned, "REHEARSED_ROWS", 3000 if n_rows == 60 else 1000)
    X, y = overlapping_classes(n_rows, 3)
    true, splits = Learning._held_out, []

    def held_out(self, *args):
        sides = true(self, *args)
        splits.append([self._rows[self._used[side]] for side in sides])
        return sides

    monkeypatch.setattr(Learning, "_held_out", held_out)
    order = np.random.RandomState(0).permutation(3 * n_rows)
    rows, labels = np.tile(X, (3, 1))[order], np.concatenate([y, (y + 1) % 3, (y + 2) % 3])[order]
    weights = np.repeat([0.7, 0.2, 0.1], n_rows)[order]
    machine(4, moves=4).fit(rows, labels, weights)
    assert splits
    for some, others in splits:
        assert len(some) + len(others) == 3 * n_rows
        sides = [{tuple(row) for row in side} for side in (some, others)]
        assert not sides[0] & sides[1]
        assert len(sides[0]) + len(sides[1]) == n_rows


@every_solver
@pytest.mark.parametrize("n_rows", [60, 3100])
def test_a_class_of_one_row(solver, n_rows):
    X, y = overlapping_classes(n_rows, 3)
    X, y = np.vstack([X, np.full((1, 4), 9.0)]), np.append(y, 3)
    fitted = machine(solver=solver, moves=4).fit(X, y)
    assert_array_equal(fitted.classes_, np.arange(4))
    assert np.isfinite(fitted.decision_function(X)).all()
    assert fitted.score(X, y) > 0.5


def test_more_classes_than_rows_that_are_held_out():
    X, y = overlapping_classes(100, 40)
    fitted = machine(8, moves=4).fit(X, y)
    assert np.isfinite(fitted.decision_function(X)).all()


@every_solver
@pytest.mark.parametrize("n_classes", [2, 50])
def test_rows_that_are_all_alike_are_told_once(solver, n_classes):
    X, y = np.full((100, 3), 0.1), np.arange(100) % n_classes
    with pytest.warns(UserWarning, match="All rows of X are equal") as told:
        fitted = machine(3, solver=solver, moves=4).fit(X, y)
    assert [each.filename for each in told] == [__file__]
    assert fitted.C_ == 10.0
    assert np.isfinite(fitted.decision_function(X)).all()


# How far


def test_the_way_has_the_loss_of_rows_that_are_held_out():
    X, y = make_moons(3100, noise=0.25, random_state=0)
    fitted = machine(5, moves="auto").fit(X, y)
    loss, gradient = fitted.history_["held_out_loss"], fitted.history_["gradient"]
    assert fitted.stop_reason_ == "held_out"
    # Cycles are judged where they end, and moves each; after that many without a lower loss it
    # ends, with the machine of the lowest.
    assert_array_equal(np.isnan(loss), np.isnan(gradient))
    assert (loss[~np.isnan(loss)] > 0).all()
    n_epochs = np.flatnonzero(np.isnan(gradient)).max() + 2
    assert n_epochs < len(loss)
    best = np.nanargmin(loss)
    assert len(loss) - 1 - best <= staged._PATIENCE
    assert "held_out_loss" not in machine(5).fit(X[:100], y[:100]).history_


def test_rows_join_where_moves_can_be_trusted():
    X, y = checkerboard()
    fitted = machine(12, moves=40).fit(X, y)
    loss, objective = fitted.history_["held_out_loss"], fitted.history_["objective"]
    moves, joined = loss[20:], int(np.flatnonzero(~np.isnan(loss)).max()) + 1
    assert joined == 20 + staged._JOIN_MOVES
    assert moves[staged._JOIN_MOVES - 1] < (1 - staged._JOIN_GAIN) * loss[19]
    # With more rows the objective is a larger sum, and then falls again.
    assert objective[joined] > objective[joined - 1]
    assert (np.diff(objective[joined:]) <= 1e-6 * objective[joined:-1]).all()
    assert fitted.objective_ == pytest.approx(objective[-1], rel=1e-2)
    assert fitted.stop_reason_ == "max_iter"
    assert len(loss) == 40


@pytest.mark.parametrize(("n_rows", "count"), [(60, 5), (600, 5), (601, 4), (1000, 3), (1501, 1)])
def test_the_fewer_rows_the_more_rehearsals(n_rows, count, monkeypatch):
    monkeypatch.setattr(learned, "_REHEARSALS", 5)
    true, calls = Learning.solve, []

    def solve(self, progress):
        calls.append(self)
        true(self, progress)

    monkeypatch.setattr(Learning, "solve", solve)
    machine(2, moves=2).fit(*overlapping_classes(n_rows, 3))
    assert len(calls) == count + 1  # and the fit itself


@pytest.mark.usefixtures("units_move")
def test_a_rehearsal_goes_no_further_than_it_was_asked_to(three_classes, monkeypatch):
    X, y = three_classes
    rehearse, plans = Learning._rehearse, []
    monkeypatch.setattr(
        Learning, "_rehearse", lambda self, seed: plans.append(rehearse(self, seed)) or plans[-1]
    )
    for moves in (2, 5, 9, "auto"):
        fitted = machine(moves=moves, tol=0).fit(X, y)
        plan = plans.pop()
        assert isinstance(plan, Plan)
        assert pytest.approx(10.0 * plan.factor) == fitted.C_
        assert 1 <= plan.n_cycles <= 5
        n_rounds = len(fitted.history_["objective"])
        if moves == "auto":
            # Few rows: the first cycle is three rounds of ten epochs.
            assert n_rounds <= 3 * (2**plan.n_cycles - 1) + plan.n_moves
        else:
            assert plan.n_moves <= moves - moves // 2
            assert n_rounds <= moves
    assert not plans


@pytest.mark.parametrize(("rows", "max_basis"), [("few", 4), ("many", 12)])
@pytest.mark.parametrize("moves", [7, 40])
def test_there_are_no_more_rounds_than_were_announced(rows, max_basis, moves, monkeypatch):
    announced, true = [], LearnSettings.n_rounds
    monkeypatch.setattr(
        LearnSettings,
        "n_rounds",
        lambda self, solver: announced.append(true(self, solver)) or announced[-1],
    )
    X, y = checkerboard() if rows == "many" else overlapping_classes(60, 3)
    fitted = machine(max_basis, moves=moves, tol=0).fit(X, y)
    (most,) = announced
    assert 1 <= len(fitted.history_["objective"]) <= most <= moves


def test_an_interrupted_rehearsal_leaves_the_estimator_as_it_was(three_classes, monkeypatch):
    X, y = three_classes
    fitted = machine(moves=4).fit(X, y)
    true, calls = Learning.solve, itertools.count(1)

    def interrupted(self, progress):
        true(self, progress)
        if next(calls) == 2:  # the last of them
            raise KeyboardInterrupt

    for estimator in (fitted, machine(moves=4)):
        before = dict(vars(estimator))
        calls = itertools.count(1)
        with monkeypatch.context() as patch:
            patch.setattr(Learning, "solve", interrupted)
            with pytest.raises(KeyboardInterrupt):
                estimator.fit(2 * X, y)
        assert set(vars(estimator)) == set(before)
        assert all(vars(estimator)[name] is before[name] for name in before)
    fresh = machine(moves=4).fit(X, y)
    assert_array_equal(fitted.decision_function(X), fresh.decision_function(X))


# Stopped and gone on with


def stopped_after(n_rounds, estimator, X, y):
    """Fit an estimator until so many rounds were written down."""
    true, rounds = Progress.end_round, itertools.count(1)

    def end_round(self, state, entries):
        true(self, state, entries)
        is_rehearsal = self.before_round is Progress.before_round
        if not (is_rehearsal or state.stopped_because) and next(rounds) >= n_rounds:
            state.stopped_because = "callback"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Progress, "end_round", end_round)
        estimator.fit(X, y)
    assert estimator.stop_reason_ == "callback"
    assert len(estimator.history_["objective"]) == n_rounds
    return estimator


@pytest.fixture(scope="module")
def whole_way():
    """A fit that has 15 rounds of epochs, 5 moves, and then those with all rows."""
    X, y = checkerboard()
    fitted = machine(12, moves=30, warm_start=True).fit(X, y)
    held_out = np.flatnonzero(~np.isnan(fitted.history_["held_out_loss"]))
    assert held_out.min() == 14
    assert held_out.max() == 19
    assert fitted.C_ != 10.0
    assert len(fitted.history_["objective"]) == 30
    return X, y, fitted


@pytest.mark.parametrize("n_rounds", [7, 15, 19, 20, 22])
def test_many_rows_go_on_from_wherever_they_were_stopped(n_rounds, whole_way, tmp_path):
    X, y, whole = whole_way
    part = stopped_after(n_rounds, machine(12, moves=30, warm_start=True), X, y)
    state = part._state["packed"]["state"]
    assert state["stage"] == ("adam" if n_rounds < 15 else "projection")
    assert state["has_joined"] == (n_rounds >= 20)
    widemargin.save(part, tmp_path / "part")
    same_fit(widemargin.load(tmp_path / "part").fit(X, y), whole, X)


@pytest.mark.parametrize("call", [1, 3, 6, 9])
def test_an_interrupt_while_rows_judge_loses_no_round(call, whole_way, monkeypatch):
    """They are looked at where the cycle ends, at several values of C, and after each move."""
    X, y, whole = whole_way
    true, calls = StagedUnits._loss, itertools.count(1)

    def interrupted(*args):
        if next(calls) == call:
            raise KeyboardInterrupt
        return true(*args)

    monkeypatch.setattr(StagedUnits, "_loss", interrupted)
    part = machine(12, moves=30, warm_start=True)
    with pytest.raises(KeyboardInterrupt):
        part.fit(X, y)
    assert 14 <= len(part.history_["last_good"].history_["objective"]) < 20
    same_fit(part.fit(X, y), whole, X)


def test_moves_that_went_too_far_are_taken_back(monkeypatch):
    """The first one has brought much, and those after it nothing: so C was too large for them."""
    losses = itertools.chain([1.0, 1.0, 1.0, 0.9], itertools.repeat(1.0))
    monkeypatch.setattr(StagedUnits, "_loss", lambda *args: next(losses))
    X, y = checkerboard()
    fitted = machine(12, moves=60).fit(X, y)
    told = fitted.history_["held_out_loss"]
    held_out = np.flatnonzero(~np.isnan(told))
    assert held_out.tolist() == list(range(29, 46))  # the cycle, a move, and 15 more
    assert pytest.approx(10.0 * 10**-0.5) == fitted.C_
    assert 46 < len(told) <= 60


@pytest.mark.usefixtures("units_move")
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_few_rows_go_on_with_the_plan_of_the_rehearsal(
    solver, early_stopping, three_classes, tmp_path, monkeypatch
):
    X, y = three_classes
    settings = {"solver": solver, "moves": 8, "tol": 0, "warm_start": True}
    if early_stopping:
        settings |= {"early_stopping": True, "validation_fraction": 0.3}
    monkeypatch.setattr("widemargin.sparse_kernel.learned._LEAST_ROWS", 30)
    whole = machine(**settings).fit(X, y)
    n_rounds = len(whole.history_["objective"])
    assert n_rounds > 2
    for last in (1, n_rounds - 1):
        part = stopped_after(last, machine(**settings), X, y)
        packed = part._state["packed"]
        assert packed["plan"]["factor"] == packed["begin_factor"]
        assert 10.0 * packed["begin_factor"] == pytest.approx(whole.C_)
        widemargin.save(part, tmp_path / "part")
        with monkeypatch.context() as patch:
            patch.setattr(Learning, "_rehearse", None)  # which was
            same_fit(widemargin.load(tmp_path / "part").fit(X, y), whole, X)


@every_solver
def test_a_warm_start_goes_on_with_the_c_that_was_found(solver, three_classes, monkeypatch):
    X, y = three_classes
    X[:, :3] += 4.0 * np.eye(3)[y]
    grown = machine(4, solver=solver, warm_start=True).fit(X, y)
    found, before = grown.C_, grown.objective_
    assert found != 10.0
    monkeypatch.setattr(Learning, "_rehearse", None)
    for max_basis in (4, 6):
        grown.set_params(max_basis=max_basis, basis__solver="projection").fit(X, y)
        assert pytest.approx(found, rel=1e-12) == grown.C_
        assert grown.objective_ <= before * (1 + 1e-5)
    assert grown.set_params(C=2.0).fit(X, y).C_ == 2.0
    assert grown.set_params(C="auto").fit(X, y).C_ == 2.0


# Units of the features


def test_scaled_is_the_same_machine_whatever_the_units_of_single_features():
    X, y = overlapping_classes(120, 3)
    usual = machine(metric="scaled").fit(X, y)
    kernel = usual.model_.kernel
    assert isinstance(kernel, AdaptiveRBF)
    assert kernel.metric.shape == (4,)
    assert_array_equal(kernel.widths, np.ones(6))
    for units in (2.0 ** np.array([30, -30, 0, 7]), np.array([1e6, 1e-3, 7.0, 0.3])):
        other = machine(metric="scaled").fit(X * units, y)
        assert other.C_ == usual.C_
        is_exact = np.log2(units[0]) % 1 == 0
        assert_allclose(other.basis_ / units, usual.basis_, rtol=0, atol=0 if is_exact else 0.02)
        assert_allclose(
            other.decision_function(X * units),
            usual.decision_function(X),
            atol=1e-6 if is_exact else 0.02,
        )


def test_scaled_is_not_none_and_goes_on(three_classes):
    X, y = three_classes
    X = X * np.array([1e4, 1.0, 1.0, 1e-4])
    assert machine(metric="scaled").fit(X, y).score(X, y) > machine(metric="none").fit(X, y).score(
        X, y
    )
    grown = machine(4, metric="scaled", warm_start=True, C=3.0).fit(X, y)
    before = grown.objective_
    grown.set_params(max_basis=7).fit(X, y)
    assert metric_of(grown.model_.kernel) == "scaled"
    assert grown.objective_ < before
    assert grown.history_["objective"][0] <= before * (1 + 1e-5)


def test_diagonal_goes_on_where_no_width_has_moved(rng):
    X, y = rng.randn(60, 4), np.arange(60) % 2
    still = {"solver": "projection", "C": 1e-12}
    grown = machine(3, metric="diagonal", warm_start=True, **still).fit(X, y)
    assert_array_equal(grown.model_.kernel.widths, np.ones(3))
    grown.set_params(C=10.0).fit(X, y)
    assert metric_of(grown.model_.kernel) == "diagonal"
    for refused in ("none", "full"):
        with pytest.raises(ValueError, match="of the same metric"):
            machine(3, metric="scaled", warm_start=True).fit(X, y).set_params(
                basis__metric=refused
            ).fit(X, y)


def test_many_features_of_unlike_units_are_scaled(rng):
    X = rng.randn(60, 120) * 10.0 ** rng.uniform(-3, 3, 120)
    y = (X[:, 0] / X[:, 0].std() + X[:, 1] / X[:, 1].std() > 0).astype(int)
    fitted = machine(4, moves=4).fit(X, y)
    assert metric_of(fitted.model_.kernel) == "scaled"
    assert np.isfinite(fitted.decision_function(X)).all()

"""Linear machines row by row: one optimum by whatever way, and the same bits after a stop."""

import numpy as np
import pytest
import scipy.sparse as sp
from conformance.test_resume import LateAfter, StopAfter, assert_same, saved, through_a_file
from conftest import overlapping_classes
from numpy.testing import assert_array_equal
from reference import stochastic as reference
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from widemargin import KernelClassifier, StochasticLinearClassifier
from widemargin.solvers.linear import subgradient
from widemargin.solvers.linear.subgradient import ClassProblem, RowSteps, SubgradientState
from widemargin.solvers.linear.sums import LOSSES, StepSettings
from widemargin.solvers.progress import Progress

ALPHA = 0.02
EXACT = [loss for loss in LOSSES if loss != "perceptron"]


def data(n_rows=120, n_classes=3):
    return overlapping_classes(n_rows, n_classes, n_features=5, seed=2)


def machine(loss, **settings):
    plain = {"alpha": ALPHA, "fit_intercept": False, "tol": 1e-6, "max_iter": 20_000}
    return StochasticLinearClassifier(loss, random_state=0, **plain | settings)


def value(loss, coef, X, y, strategy="joint"):
    return reference.objective(loss, strategy, ALPHA, coef.T, X, y)


def test_the_optimum_of_crammer_and_singer_is_that_of_liblinear():
    X, y = data()
    C = 1 / (ALPHA * len(y))
    svm = LinearSVC(
        multi_class="crammer_singer", C=C, fit_intercept=False, tol=1e-8, max_iter=100_000
    ).fit(X, y)
    best = value("crammer_singer", svm.coef_, X, y)
    found = machine("crammer_singer").fit(X, y)
    assert found.objective_ == pytest.approx(best, rel=1e-5)
    assert found.dual_objective_ == pytest.approx(best, rel=1e-5)
    kernel = KernelClassifier(kernel="linear", C=C, fit_intercept=False, tol=1e-6).fit(X, y)
    assert kernel.objective_ * ALPHA == pytest.approx(best, rel=1e-5)


def test_the_optimum_of_weston_and_watkins_is_that_of_the_kernel_machine():
    X, y = data()
    C = 1 / (ALPHA * len(y))
    kernel = KernelClassifier(
        kernel="linear", loss="weston_watkins", C=C, fit_intercept=False, tol=1e-6, random_state=0
    ).fit(X, y)
    found = machine("weston_watkins").fit(X, y)
    assert found.objective_ == pytest.approx(ALPHA * kernel.objective_, rel=1e-5)


@pytest.mark.parametrize("strategy", ["joint", "one_vs_all"])
def test_the_optimum_of_the_logistic_loss_is_that_of_scikit_learn(strategy):
    X, y = data()
    C = 1 / (ALPHA * len(y))
    rival = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=10_000)
    if strategy == "joint":
        coef = rival.fit(X, y).coef_
    else:
        coef = np.vstack([rival.fit(X, y == c).coef_ for c in range(3)])
    found = machine("logistic", strategy=strategy).fit(X, y)
    assert found.objective_ == pytest.approx(value("logistic", coef, X, y, strategy), rel=1e-5)
    assert found.gap_ <= 1e-5 * found.objective_


@pytest.mark.parametrize("loss", EXACT)
@pytest.mark.parametrize("strategy", ["joint", "one_vs_all"])
def test_subgradients_come_near_the_optimum_of_exact_steps(loss, strategy):
    X, y = data()
    best = machine(loss, strategy=strategy).fit(X, y)
    assert 0 <= best.gap_ <= 1e-5 * best.objective_
    slow = {"solver": "pegasos", "max_iter": 300, "tol": None, "strategy": strategy}
    assert machine(loss, **slow).fit(X, y).objective_ <= 1.02 * best.objective_
    stream = machine(loss, max_iter=300, tol=None, strategy=strategy).fit([(X, y)])
    assert value(loss, stream.coef_, X, y, strategy) <= 1.02 * best.objective_


@pytest.mark.parametrize("loss", EXACT)
def test_weights_are_repeated_rows_at_the_optimum(loss):
    X, y = data(90)
    weights = np.random.RandomState(0).randint(0, 4, len(y))
    weighed = machine(loss).fit(X, y, sample_weight=weights)
    repeated = machine(loss).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighed.objective_ == pytest.approx(repeated.objective_, rel=1e-5)
    assert weighed.dual_objective_ == pytest.approx(repeated.dual_objective_, rel=1e-5)


PROBLEMS = {
    "dual": StepSettings("crammer_singer", is_joint=True, is_exact=True, alpha=ALPHA, constant=1.0),
    "dual logistic": StepSettings("logistic", is_joint=False, is_exact=True, alpha=ALPHA),
    "pegasos": StepSettings(
        "weston_watkins",
        is_joint=True,
        is_exact=False,
        alpha=ALPHA,
        batch_size=7,
        project=True,
        constant=1.0,
    ),
}


def problem_of(name, monkeypatch, form=np.asarray):
    monkeypatch.setattr(subgradient, "_PRODUCTS", 1 << 11)  # many calls in a pass
    X, y = data()
    weights = np.random.RandomState(0).uniform(0.2, 2.0, len(y))
    return ClassProblem(form(X), y, weights, 3, PROBLEMS[name], tol=None, max_iter=6)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("stop", ["after rounds", "in rounds"])
def test_a_solver_that_is_stopped_goes_on_to_the_bit(name, stop, monkeypatch):
    problem, solver = problem_of(name, monkeypatch), RowSteps()
    assert problem.rows_at_once < 60
    straight = solver.init(problem, np.random.RandomState(0))
    solver.solve(problem, straight, Progress())
    state = solver.init(problem, np.random.RandomState(0))
    for _ in range(100):
        progress = StopAfter(2) if stop == "after rounds" else LateAfter(1)
        solver.solve(problem, state, progress)
        if state.stopped_because == "max_iter":
            break
        state = SubgradientState.unpack(through_a_file(state.pack()), problem)
    found, wanted = state.pack(), straight.pack()
    for packed in (found, wanted):
        packed["history"].pop("seconds")
    assert_same(found, wanted)


@pytest.mark.parametrize("solver", ["dual", "pegasos"])
def test_a_fit_that_is_stopped_and_saved_goes_on_to_the_bit(solver, tmp_path, monkeypatch):
    monkeypatch.setattr(subgradient, "_PRODUCTS", 1 << 11)
    X, y = data()
    settings = {"solver": solver, "max_iter": 9, "tol": None, "warm_start": True}
    straight = machine("logistic", **settings).fit(X, y)
    paused = machine("logistic", **settings, max_seconds=1e-9)
    for turn in range(200):
        with pytest.warns(ConvergenceWarning, match="max_seconds"):
            paused.fit(X, y)
        paused = saved(paused, tmp_path / f"{turn}")
        if paused.t_ > 500:
            break
    paused.set_params(max_seconds=None).fit(X, y)
    assert_array_equal(paused.coef_, straight.coef_)
    assert paused.objective_ == straight.objective_
    assert paused.t_ == straight.t_


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_state_that_is_damaged_is_refused(name, monkeypatch):
    problem = problem_of(name, monkeypatch, sp.csr_matrix)
    solver = RowSteps()
    state = solver.init(problem, np.random.RandomState(0))
    solver.solve(problem, state, LateAfter(1))

    def spoil(change):
        packed = through_a_file(state.pack())
        change(packed)
        with pytest.raises(ValueError, match=r"damaged|another|other|no "):
            SubgradientState.unpack(packed, problem)

    spoil(lambda packed: packed.pop("sums"))
    spoil(lambda packed: packed["sums"].update(sums=np.zeros((2, 8))))
    spoil(lambda packed: packed["sums"].update(weight=-1.0))
    spoil(lambda packed: packed["sums"].update(steps=1.5))
    spoil(lambda packed: packed["sums"].update(n_classes=4))
    spoil(lambda packed: packed.update(order=np.zeros(len(packed["order"]), dtype=np.int32)))
    other = None if state.coefficients is not None else np.zeros((120, 3))
    spoil(lambda packed: packed.update(coefficients=other))

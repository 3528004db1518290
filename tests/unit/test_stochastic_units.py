"""The learned basis by stochastic gradients."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sparse_machines import sparse_machine

from widemargin.losses import WestonWatkins
from widemargin.solvers.units.problem import LearnedProblem
from widemargin.solvers.units.start import start_units
from widemargin.solvers.units.values import WorkingRows


def machine(**parameters):
    settings = {"max_basis": 12, "basis": "learned", "solver": "adam", "moves": 15, "C": 10.0}
    return sparse_machine(**(settings | {"random_state": 0} | parameters))


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:600] / 16, y[:600]


@pytest.mark.parametrize("metric", ["none", "diagonal", "full"])
def test_a_sample_of_all_rows_gives_the_gradient_of_the_objective(three_classes, metric):
    X, y = three_classes
    rng, loss = np.random.RandomState(0), WestonWatkins()
    working = WorkingRows(X, np.ones(len(y)), metric)
    units = start_units(working, y, 5, rng)
    problem = LearnedProblem(
        loss, loss.encode(y, 3), np.ones(len(y)), 3, working, 5, fit_intercept=True, n_threads=1
    )
    coefficients = rng.randn(6, 3)
    everything = np.arange(len(y))
    value, gradient = problem.sample(units, coefficients, everything)

    shift = rng.randn(*coefficients.shape)
    step = 1e-3
    ahead = problem.sample(units, coefficients + step * shift, everything)[0]
    behind = problem.sample(units, coefficients - step * shift, everything)[0]
    slope = np.vdot(gradient["coefficients"], shift)
    assert_allclose((ahead - behind) / (2 * step), slope, rtol=1e-3)

    halves = np.array_split(everything, 2)
    parts = [problem.sample(units, coefficients, half) for half in halves]
    assert_allclose(np.mean([part[0] for part in parts]), value, rtol=1e-5)
    for name in ("centres", "log_weights", "coefficients"):
        mean = np.mean([part[1][name] for part in parts], axis=0)
        assert_allclose(mean, gradient[name], rtol=1e-3, atol=1e-3 * np.abs(gradient[name]).max())


@pytest.mark.parametrize("metric", ["none", "diagonal"])
def test_moving_lowers_the_objective(digits, metric):
    few, many = (machine(metric=metric, moves=n).fit(*digits) for n in (1, 30))
    assert many.objective_ < 0.7 * few.objective_
    assert many.stop_reason_ == "max_iter"
    assert len(many.history_["objective"]) == 30
    assert many.score(*digits) > few.score(*digits)


def test_a_seed_repeats_and_threads_change_nothing(digits):
    X, y = digits
    scores = [machine(n_jobs=jobs).fit(X, y).decision_function(X) for jobs in (1, 1, 2)]
    assert_array_equal(scores[0], scores[1])
    assert_array_equal(scores[0], scores[2])


def test_early_stopping_keeps_the_best_on_the_way(digits):
    fitted = machine(early_stopping=True, n_iter_no_change=3, moves=60).fit(*digits)
    scores = fitted.history_["validation_score"]
    assert len(scores) == len(fitted.history_["objective"])
    if fitted.stop_reason_ == "early_stopping":
        assert np.argmax(scores) == len(scores) - 4


def test_fewer_rows_than_a_batch(three_classes):
    X, y = three_classes
    fitted = machine(max_basis=4).fit(X, y)
    assert fitted.n_basis_ == 4
    assert np.isfinite(fitted.decision_function(X)).all()


def test_much_work_takes_stochastic_gradients_by_itself(digits, monkeypatch):
    monkeypatch.setattr("widemargin.sparse_kernel.learned._MUCH_WORK", 1)
    by_itself = machine(solver="auto").fit(*digits)
    assert_array_equal(by_itself.dual_coef_, machine().fit(*digits).dual_coef_)

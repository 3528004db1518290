"""L-BFGS of our own: as good as SciPy's an evaluation, and where the function has no value."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, rosen, rosen_der

from widemargin.solvers.units.lbfgs import PAIRS, LineSearch, Memory


def minimise(function, start, n_iterations, tol=0.0):
    """Return the values on the way, and how many points were looked at."""
    at, (value, gradient) = start, function(start)
    memory, values, count = Memory.empty(len(start)), [value], 1
    for _ in range(n_iterations):
        if np.linalg.norm(gradient) <= tol:
            break
        direction = memory.direction(gradient)
        length = 1.0 if len(memory) else 1.0 / np.linalg.norm(direction)
        line = LineSearch.begin(value, float(gradient @ direction), length)
        known = {}
        while not line.verdict:
            known[line.length] = function(at + line.length * direction)
            count += 1
            found, slope = known[line.length]
            line = line.after(found, float(slope @ direction))
        if line.verdict == "failed":
            break
        value, ahead = known[line.best.length]
        memory = memory.with_pair(line.best.length * direction, ahead - gradient)
        at, gradient = at + line.best.length * direction, ahead
        values.append(value)
    return values, count


def quadratic(n, condition, seed=0):
    rng = np.random.RandomState(seed)
    turn = np.linalg.qr(rng.randn(n, n))[0]
    hessian = (turn * np.geomspace(1.0, condition, n)) @ turn.T
    return lambda x: (0.5 * x @ hessian @ x, hessian @ x), rng.randn(n)


def valley(n):
    return lambda x: (rosen(x), rosen_der(x)), np.tile([-1.2, 1.0], n // 2)


def wave(n):
    """A function of many bumps, on which searches along a line need brackets."""
    rng = np.random.RandomState(1)
    ahead = rng.randn(n)

    def function(x):
        return x @ x / 20 + np.sin(3 * x).sum(), x / 10 + 3 * np.cos(3 * x)

    return function, 2 * ahead


FUNCTIONS = {
    "round": quadratic(30, 10.0),
    "long": quadratic(50, 1e5),
    "valley": valley(2),
    "valleys": valley(20),
    "waves": wave(15),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_takes_no_more_evaluations_than_that_of_scipy(name):
    function, start = FUNCTIONS[name]
    values, count = minimise(function, start, 30)
    options = {"ftol": 0.0, "gtol": 0.0, "maxcor": PAIRS, "maxiter": 30}
    other = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    assert (np.diff(values) <= 0).all()
    assert count <= other.nfev + 2
    least = 1e-12 * values[0]
    assert values[-1] <= other.fun + 1e-6 * abs(other.fun) + least


def test_a_direction_is_that_of_the_remembered_hessian():
    function, start = quadratic(8, 50.0)
    memory, at = Memory.empty(8), start
    for _ in range(8):
        move = np.random.RandomState(len(memory)).randn(8)
        memory = memory.with_pair(move, function(at + move)[1] - function(at)[1])
    # BFGS by the formula, from the scaled identity.
    last, change = memory.moves[-1], memory.changes[-1]
    inverse = np.eye(8) * (last @ change) / (change @ change)
    for move, change in zip(memory.moves, memory.changes, strict=True):
        left = np.eye(8) - np.outer(move, change) / (move @ change)
        inverse = left @ inverse @ left.T + np.outer(move, move) / (move @ change)
    gradient = function(start)[1]
    assert_allclose(memory.direction(gradient), -inverse @ gradient, rtol=1e-8)


def test_only_the_last_pairs_are_kept_and_none_without_curvature():
    memory = Memory.empty(3)
    for number in range(PAIRS + 5):
        memory = memory.with_pair(np.full(3, 1.0 + number), np.ones(3))
    assert len(memory) == PAIRS
    assert memory.moves[0, 0] == 6.0
    assert memory.with_pair(np.ones(3), -np.ones(3)) is memory
    assert memory.with_pair(np.zeros(3), np.zeros(3)) is memory


@pytest.mark.parametrize("slope", [-1e-6, -1.0, -1e6])
@pytest.mark.parametrize("length", [1e-8, 1.0, 1e8])
def test_a_line_is_searched_from_any_first_length(slope, length):
    """Of a parabola: what is accepted fulfils both conditions."""
    line = LineSearch.begin(0.0, slope, length)
    while not line.verdict:
        line = line.after(slope * line.length + 0.5 * line.length**2, slope + line.length)
    if line.verdict == "accepted":
        assert line.best.value <= 1e-3 * slope * line.best.length
        assert abs(line.best.slope) <= 0.9 * abs(slope)
    assert line.best.value < 0
    assert line.n_trials <= 20


def test_a_line_that_has_no_value_far_out():
    def function(length):
        return (
            (-np.log(1 - length) - 3 * length, 1 / (1 - length) - 3)
            if length < 1
            else (np.nan,) * 2
        )

    line = LineSearch.begin(*function(0.0), 50.0)
    while not line.verdict:
        line = line.after(*function(line.length))
    assert line.verdict == "accepted"
    assert 0.2 < line.best.length < 0.95


def test_a_line_without_any_value_fails():
    line = LineSearch.begin(1.0, -1.0, 1.0)
    while not line.verdict:
        line = line.after(np.inf, np.nan)
    assert line.verdict == "failed"
    assert line.best.length == 0.0


def test_a_slope_that_lies_fails():
    line = LineSearch.begin(1.0, -1.0, 1.0)
    while not line.verdict:
        line = line.after(1.0 + line.length, 1.0)
    assert line.verdict == "failed"


def test_what_was_held_from_before_stays_as_it_was():
    function, start = FUNCTIONS["valleys"]
    memory = Memory.empty(len(start)).with_pair(np.ones(len(start)), np.ones(len(start)))
    before = memory.moves.copy()
    memory.with_pair(2 * np.ones(len(start)), np.ones(len(start)))
    memory.direction(function(start)[1])
    assert_array_equal(memory.moves, before)

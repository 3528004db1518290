"""A learned basis against its slow twin, finite differences, and units that stay where they are."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from reference.learned_basis import LearnedTwin, adaptive_rbf
from reference.machine import FixedBasis, objective
from sklearn.datasets import load_digits, load_iris
from sparse_machines import sparse_machine

from widemargin import SparseKernelClassifier
from widemargin.kernels import RBF
from widemargin.losses import CLASS_LOSSES
from widemargin.models import KernelExpansion
from widemargin.solvers.newton import JointNewton
from widemargin.solvers.progress import Progress
from widemargin.solvers.units.linear_part import LinearPart
from widemargin.solvers.units.moments import ADAM_RATES, PARTS, Moments
from widemargin.solvers.units.problem import LearnedProblem
from widemargin.solvers.units.projection import VariableProjection
from widemargin.solvers.units.start import start_units
from widemargin.solvers.units.values import WorkingRows

pytestmark = pytest.mark.combinations

METRICS = ("none", "diagonal", "full")
SHAPES = {"none": (40, 4), "diagonal": (40, 4), "full": (40, 3), "short": (30, 120)}
every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_metric = pytest.mark.parametrize("metric", METRICS)
every_shape = pytest.mark.parametrize("shape", SHAPES)
both_intercepts = pytest.mark.parametrize("fit_intercept", [True, False])


def moved(solver, problem, units):
    """Return the state in which units have ceased to move, and what is kept of it."""
    state = solver.solve(problem, solver.init(problem, units), Progress())
    return state, solver.finish(problem, state)


class Case:
    """A small problem, units that have moved a little, and their coefficients."""

    def __init__(
        self,
        shape,
        loss="weston_watkins",
        fit_intercept=True,
        n_units=4,
        rows=None,
        linear_part=False,
    ):
        rng = np.random.RandomState(3)
        metric = shape if shape in METRICS else "none"
        size = SHAPES[shape] if rows is None else rows
        self.X = 1.0 + rng.randn(*size) * rng.uniform(0.5, 3.0, size[1])
        self.y = np.argmax(self.X[:, :3] + 0.7 * rng.randn(size[0], 3), axis=1)
        self.weights = rng.uniform(0.2, 3.0, size[0])
        self.loss, self.fit_intercept = CLASS_LOSSES[loss](), fit_intercept
        self.working = WorkingRows(self.X, self.weights, metric)
        targets = self.loss.encode(self.y, 3)
        linear = LinearPart(self.X, self.working.share).see(self.X) if linear_part else None
        self.problem = LearnedProblem(
            self.loss,
            targets,
            self.weights,
            3,
            self.working,
            n_units,
            fit_intercept=fit_intercept,
            n_threads=1,
            linear=linear,
        )
        start = start_units(self.working, self.y, n_units, rng, None)
        jitter = dict.fromkeys(("centres", "log_widths", "log_weights", "mapping"), 0.2)
        jitter["centres"] *= np.sqrt(np.mean(start.centres**2))
        self.units = replace(
            start,
            **{
                name: part + jitter[name] * rng.randn(*part.shape)
                for name, part in asdict(start).items()
                if part is not None and not (name == "log_widths" and metric == "none")
            },
        )
        self.mapped = self.problem.map_rows(self.units)
        self.result = self.problem.solve_coefficients(
            self.units, self.mapped, None, JointNewton(1e-7)
        )
        rest = self.working.rest
        self.twin = LearnedTwin(
            self.loss, targets, self.weights, 3, self.working.rows, rest, fit_intercept, linear
        )

    @property
    def moving(self):
        """Names of the parameters that the solver moves."""
        parts = {name: part for name, part in asdict(self.units).items() if part is not None}
        return [name for name in parts if name != "log_widths" or self.working.metric != "none"]


def test_rows_of_many_features_are_seen_in_few_directions():
    short, tall = Case("short").working, Case("short", rows=(150, 110)).working
    assert short.directions.shape == (120, 29)
    n_directions = tall.directions.shape[1]
    assert np.abs(tall.directions.T @ tall.directions - np.eye(n_directions)).max() < 1e-6
    inside, beyond = tall.share @ tall.rows**2, tall.share @ tall.rest
    held = np.cumsum(inside) / (inside.sum() + beyond)
    assert n_directions >= 40
    assert held[-2] < 0.9 <= held[-1]
    assert tall.rest.min() > 0
    assert np.abs(short.directions.T @ short.directions - np.eye(29)).max() < 1e-12
    # 30 rows lie in the span of 29 directions.
    assert short.rest.max() < 1e-4 * np.mean(short.rows**2) * 29


def test_rows_of_low_rank_are_seen_in_directions_at_right_angles(rng):
    X = rng.randn(30, 3) @ rng.randn(3, 200)
    working = WorkingRows(X, np.ones(30), "none")
    n_directions = working.directions.shape[1]
    assert 3 <= n_directions < 30
    assert_allclose(working.directions.T @ working.directions, np.eye(n_directions), atol=1e-12)
    assert working.rest.max() < 1e-5


@every_shape
@every_loss
@both_intercepts
@pytest.mark.parametrize("linear_part", [False, True])
def test_value_and_gradient_are_those_of_the_twin(shape, loss, fit_intercept, linear_part):
    case = Case(shape, loss, fit_intercept, linear_part=linear_part)
    units = asdict(case.units)
    assert_allclose(case.problem.columns.values, case.twin.unit_values(units), atol=2e-6)
    value = case.twin.value(units, case.result.coefficients)
    assert case.result.value == pytest.approx(value, rel=1e-5)
    assert case.result.value == pytest.approx(case.twin.optimal_value(units), rel=1e-5)
    gradient = case.problem.gradient(case.units, case.mapped, case.result)
    expected = case.twin.gradient(units, case.result.coefficients)
    for name in case.moving:
        scale = np.abs(expected[name]).max()
        assert_allclose(getattr(gradient, name), expected[name], atol=2e-4 * scale, err_msg=name)


@pytest.mark.combinations(pairs=False)
@every_shape
@every_loss
@pytest.mark.parametrize("linear_part", [False, True])
def test_gradient_is_the_slope_of_the_optimal_value(shape, loss, linear_part):
    # Without an intercept too; the test above has every combination.
    with_intercept = loss != "logistic"
    case = Case(shape, loss, with_intercept, n_units=3, linear_part=linear_part)
    gradient = case.problem.gradient(case.units, case.mapped, case.result)
    rng, units, step = np.random.RandomState(0), asdict(case.units), 1e-4
    for name in case.moving:
        way = rng.randn(*units[name].shape)
        way *= np.sqrt(np.mean(units[name] ** 2)) / np.linalg.norm(way)
        ahead, behind = (
            case.twin.optimal_value(units | {name: units[name] + side * step * way})
            for side in (1, -1)
        )
        slope = (ahead - behind) / (2 * step)
        size = np.linalg.norm(getattr(gradient, name)) * np.linalg.norm(way)
        assert np.vdot(getattr(gradient, name), way) == pytest.approx(slope, abs=1e-3 * size), name


def test_gradient_where_the_rest_is_large():
    case = Case("short", rows=(150, 110), n_units=3)
    units = asdict(case.units)
    gradient = case.problem.gradient(case.units, case.mapped, case.result)
    expected = case.twin.gradient(units, case.result.coefficients)
    for name in ("centres", "log_weights"):
        scale = np.abs(expected[name]).max()
        assert_allclose(getattr(gradient, name), expected[name], atol=2e-4 * scale, err_msg=name)


def first_step(case, coefficients, rows):
    """Return the objective as some rows tell it, and its gradient, from a first step of Adam.

    Running means that began at zero are then a share of the gradient.
    """
    after, values = case.problem.descend(
        Moments.begin(coefficients, case.units),
        case.units,
        [rows],
        np.ones(1),
        dict.fromkeys(PARTS, 1e-3),
    )
    shown = replace(after, parameters=after.means / (1.0 - ADAM_RATES[0]))
    units, in_coefficients = shown.machine(case.units, 3)
    return values[0], asdict(units) | {"coefficients": in_coefficients}


def twin_of_rows(case, rows):
    """Return the twin of some rows, which stand for all."""
    rest, scale = case.working.rest, len(case.y) / len(rows)
    return LearnedTwin(
        case.loss,
        case.loss.encode(case.y, 3)[rows],
        scale * case.weights[rows],
        3,
        case.working.rows[rows],
        None if rest is None else rest[rows],
        case.fit_intercept,
    )


@pytest.mark.parametrize("shape", [*SHAPES, "rest"])
@every_loss
@both_intercepts
@pytest.mark.parametrize("share", [1, 3], ids=["all", "third"])
def test_a_first_step_of_adam_shows_the_gradient(shape, loss, fit_intercept, share):
    rows = (150, 110) if shape == "rest" else None
    case = Case("short" if shape == "rest" else shape, loss, fit_intercept, rows=rows)
    assert shape != "rest" or case.working.rest.min() > 0
    # Not those that are best, where the gradient in them is nothing.
    rng = np.random.RandomState(1)
    coefficients = case.result.coefficients + 0.3 * rng.randn(*case.result.coefficients.shape)
    some = np.arange(0, len(case.y), share)
    twin, units = twin_of_rows(case, some), asdict(case.units)
    value, gradient = first_step(case, coefficients, some)
    assert value == pytest.approx(twin.value(units, coefficients), rel=1e-5)
    for name, expected in twin.gradient(units, coefficients).items():
        if expected is None:
            assert gradient[name] is None
            continue
        scale = np.abs(expected).max()
        assert_allclose(gradient[name], expected, atol=2e-4 * scale, err_msg=name)

    step = 1e-5
    parts = {name: part for name, part in units.items() if part is not None}
    for name, part in (parts | {"coefficients": coefficients}).items():
        way = rng.randn(*part.shape)
        moved = [{name: part + side * step * way} for side in (1, -1)]
        ahead, behind = (
            twin.value(units | change, change.get("coefficients", coefficients)) for change in moved
        )
        size = np.linalg.norm(gradient[name]) * np.linalg.norm(way)
        slope = (ahead - behind) / (2 * step)
        assert np.vdot(gradient[name], way) == pytest.approx(slope, abs=1e-3 * size), name


@every_shape
@every_loss
def test_a_first_step_of_adam_shows_the_gradient_of_projection(shape, loss):
    """At the best coefficients, in which there is none."""
    case = Case(shape, loss)
    value, gradient = first_step(case, case.result.coefficients, np.arange(len(case.y)))
    assert value == pytest.approx(case.result.value, rel=1e-5)
    expected = case.problem.gradient(case.units, case.mapped, case.result)
    for name in case.moving:
        scale = np.abs(getattr(expected, name)).max()
        assert_allclose(gradient[name], getattr(expected, name), atol=1e-4 * scale, err_msg=name)
    objective = case.problem.objective
    for coefficients in (case.result.coefficients, objective.zero_coefficients()):
        at = objective.derivatives(objective.scores(coefficients))
        expected = objective.gradient(coefficients, at)
        _, gradient = first_step(case, coefficients, np.arange(len(case.y)))
        scale = case.problem.reference
        assert_allclose(gradient["coefficients"], expected, atol=1e-5 * scale)


@every_shape
def test_units_become_a_kernel_and_units_again(shape):
    case = Case(shape)
    kernel, vectors = case.working.as_kernel(case.units)
    assert vectors.shape == (4, case.X.shape[1])
    values = kernel.block(case.X, vectors)
    assert_allclose(values, case.problem.columns.values, atol=2e-6)
    again = case.working.from_kernel(kernel, vectors)
    assert_allclose(LearnedTwin.unit_values(case.twin, asdict(again)), values, atol=2e-6)
    if shape != "full":  # which leaves it open what is weight and what is map
        for name, part in asdict(case.units).items():
            if part is not None:
                assert_allclose(getattr(again, name), part, atol=1e-9, err_msg=name)


@every_shape
@every_loss
def test_the_expansion_has_the_scores_of_the_solver(shape, loss):
    case = Case(shape, loss)
    _, kept = moved(VariableProjection(max_iter=10), case.problem, case.units)
    kernel, vectors = case.working.as_kernel(kept.units)
    model = KernelExpansion(kernel, vectors, kept.coefficients[1:], kept.coefficients[0])
    objective = case.problem.objective
    scores = objective.gather(objective.scores(kept.coefficients))
    assert_allclose(model.scores(case.X), scores, atol=1e-5 * np.abs(scores).max())


def values_of(machine, X):
    """Return the kernel matrix of a fitted machine, from the formula."""
    kernel = machine.model_.kernel
    if isinstance(kernel, RBF):
        return adaptive_rbf(X, machine.basis_, kernel.gamma)
    return adaptive_rbf(X, machine.basis_, kernel.widths, kernel.metric)


@pytest.mark.combinations(pairs=False)
@every_metric
@every_loss
@both_intercepts
@pytest.mark.parametrize("solver", ["projection", "auto", "adam"])
@pytest.mark.filterwarnings("ignore:.* units met others")
def test_objective_and_gradient_at_the_end(metric, loss, fit_intercept, solver, three_classes):
    X, y = three_classes
    machine = sparse_machine(
        6,
        basis="learned",
        solver=solver,
        moves=60,
        metric=metric,
        loss=loss,
        C=3.0,
        fit_intercept=fit_intercept,
        gradient_tol=1e-3,
        random_state=0,
    ).fit(X, y)
    chosen = CLASS_LOSSES[loss]()
    values, targets, weights = values_of(machine, X), chosen.encode(y, 3), np.full(len(y), 3.0)
    coef, intercept = machine.dual_coef_, machine.intercept_
    parts = (chosen, targets, weights, values, np.eye(machine.n_basis_))
    assert machine.objective_ == pytest.approx(objective(*parts, coef, intercept), rel=1e-5)
    fixed = FixedBasis(*parts, 3, fit_intercept)
    flat = fixed.transform.T @ coef
    flat = np.vstack([intercept, flat]).ravel() if fit_intercept else flat.ravel()
    relative = np.linalg.norm(fixed.gradient(flat)) / np.linalg.norm(fixed.gradient(0 * flat))
    assert relative <= 1.5e-3
    assert machine.objective_ == pytest.approx(fixed.value(fixed.solve_newton()), rel=1e-4)


def test_objective_of_two_classes(two_classes):
    X, y = two_classes
    machine = sparse_machine(5, basis="learned", C=1.0, gradient_tol=1e-5, random_state=0)
    machine.fit(X, y)
    chosen = CLASS_LOSSES["weston_watkins"]()
    values = values_of(machine, X)
    # The two columns are opposite at the optimum.
    coef = np.hstack([-machine.dual_coef_, machine.dual_coef_]) / 2
    intercept = np.hstack([-machine.intercept_, machine.intercept_]) / 2
    parts = (chosen, chosen.encode(y, 2), np.ones(len(y)), values, np.eye(machine.n_basis_))
    assert machine.objective_ == pytest.approx(objective(*parts, coef, intercept), rel=1e-5)


@pytest.mark.parametrize("data", [load_iris, load_digits])
@every_metric
def test_units_that_move_do_better_than_units_that_stay(data, metric):
    X, y = data(return_X_y=True)
    X, y = X[::3], y[::3]
    n_units, n_classes = (20, 10) if data is load_digits else (4, 3)
    weights = np.full(len(y), 10.0)
    working = WorkingRows(X, weights, metric)
    loss = CLASS_LOSSES["weston_watkins"]()
    problem = LearnedProblem(
        loss,
        loss.encode(y, n_classes),
        weights,
        n_classes,
        working,
        n_units,
        fit_intercept=True,
        n_threads=1,
    )
    solver = VariableProjection(max_iter=8)
    units = start_units(working, y, n_units, np.random.RandomState(0))
    assert len(units.centres) == n_units
    stay = problem.solve_coefficients(units, problem.map_rows(units), None, JointNewton(1e-4)).value
    state, kept = moved(solver, problem, units)
    assert kept.objective < 0.9 * stay
    assert_allclose(state.history["objective"][-1], kept.objective, rtol=1e-3)


@every_metric
def test_a_learned_basis_beats_a_chosen_one_of_the_same_size(metric):
    X, y = load_iris(return_X_y=True)
    learned = sparse_machine(4, basis="learned", metric=metric, C=10, random_state=0)
    learned.fit(X, y)
    chosen = SparseKernelClassifier(4, C=10, tol=0, random_state=0).fit(X, y)
    loss = CLASS_LOSSES["weston_watkins"]()
    parts = (loss, loss.encode(y, 3), np.full(len(y), 10.0))
    values = chosen.model_.kernel.block(X, chosen.basis_)
    unmoved = FixedBasis(*parts, values, np.eye(4), 3)
    assert learned.objective_ < unmoved.value(unmoved.solve_newton())

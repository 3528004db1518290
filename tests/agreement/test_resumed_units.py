"""A fit of a learned basis that was stopped, saved and gone on with is the one that ran through."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from conftest import read_digits
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import LearnedBasis, SparseKernelClassifier
from widemargin.losses import CLASS_LOSSES
from widemargin.model_files import FORMAT
from widemargin.model_files._codec import Encoder, write_json
from widemargin.model_files._decoder import Decoder, read_json
from widemargin.solvers.progress import Progress
from widemargin.solvers.units.linear_part import LinearPart
from widemargin.solvers.units.problem import LearnedProblem
from widemargin.solvers.units.projection import ProjectionState, VariableProjection
from widemargin.solvers.units.staged import StagedUnits
from widemargin.solvers.units.start import start_units
from widemargin.solvers.units.stochastic import StochasticUnits
from widemargin.solvers.units.values import UnitColumns, WorkingRows

pytestmark = [
    pytest.mark.usefixtures("units_move"),
    pytest.mark.turns("name", "metric", "linear_part", "early_stopping"),
]

SOLVERS = {
    "projection": VariableProjection(max_iter=9, tol=0.0, patience=3),
    "adam": StochasticUnits(max_iter=9, batch_size=40, seed=5, patience=3),
    "auto": StagedUnits(
        stochastic=StochasticUnits(max_iter=7, batch_size=40, seed=5, patience=3, first_cycle=1),
        projection=VariableProjection(max_iter=5, tol=0.0, patience=3),
    ),
}
STAGES = ("stochastic", "projection")
METRICS = ("none", "scaled", "diagonal", "full")
every_solver = pytest.mark.parametrize("name", SOLVERS)
every_metric = pytest.mark.parametrize("metric", METRICS)
both_parts = pytest.mark.parametrize("linear_part", [False, True])
both_endings = pytest.mark.parametrize("early_stopping", [False, True])


def through_a_file(value):
    """Return a value as the codec of model files gives it back, its arrays read-only."""
    encoder = Encoder()
    text = write_json(encoder.encode(value, "state"))
    for tensor in encoder.tensors.values():
        tensor.flags.writeable = False
    return Decoder(encoder.tensors, FORMAT).decode(read_json(text), "state")


def new_problem(metric, early_stopping, linear_part=False):
    """Return a problem, as a new process would make it, and where its units begin."""
    X, y = read_digits()
    X, y = X[y < 4, 10:22], y[y < 4]
    X, y, kept, labels = X[:200], y[:200], X[200:260], y[200:260]
    weights = np.full(len(y), 5.0)
    working = WorkingRows(X, weights, metric)
    seen, rest = working.see(kept)
    part = LinearPart(X, working.share)

    def accuracy(units, coefficients):
        mapped = seen if units.mapping is None else seen @ units.mapping.astype(np.float32)
        columns = UnitColumns(60, 6, True, 1, part.see(kept) if linear_part else None)
        columns.update(units, mapped, rest)
        scores = columns.columns[0] @ coefficients
        return float(np.mean(scores.argmax(axis=1) == labels))

    loss = CLASS_LOSSES["weston_watkins"]()
    problem = LearnedProblem(
        loss,
        loss.encode(y, 4),
        weights,
        4,
        working,
        6,
        fit_intercept=True,
        n_threads=1,
        held_out=accuracy if early_stopping else None,
        linear=part.see(X) if linear_part else None,
    )
    return problem, start_units(working, y, 6, np.random.RandomState(0))


def with_limits(solver, **limits):
    """Return a solver, and the stages that it has, with other limits."""
    if isinstance(solver, StagedUnits):
        stages = {name: replace(getattr(solver, name), **limits) for name in STAGES}
        return replace(solver, **stages)
    return replace(solver, **limits)


def bits_of(solver, problem, state):
    kept = solver.finish(problem, state)
    way = {name: values for name, values in state.history.items() if name != "seconds"}
    parts = [part for part in vars(kept.units).values() if part is not None]
    arrays = [*parts, kept.coefficients, *(np.array(values) for values in way.values())]
    return list(way), state.stopped_because, [array.tobytes() for array in arrays]


@pytest.mark.combinations(pairs=False)
@every_solver
@every_metric
@both_endings
@both_parts
def test_after_any_number_of_rounds(name, metric, early_stopping, linear_part):
    solver = SOLVERS[name]
    problem, units = new_problem(metric, early_stopping, linear_part)
    state = solver.solve(problem, solver.init(problem, units), Progress())
    n_rounds, expected = state.n_rounds, bits_of(solver, problem, state)
    assert n_rounds >= 4
    for stop_after in range(1, n_rounds):
        problem, units = new_problem(metric, early_stopping, linear_part)
        rounds = itertools.count(1)
        state = solver.solve(
            problem,
            solver.init(problem, units),
            Progress(after_round=lambda rounds=rounds, last=stop_after: next(rounds) >= last),
        )
        assert state.stopped_because == "callback"
        assert state.n_rounds == stop_after
        solver.finish(problem, state)  # which leaves the state as it is
        packed = through_a_file(state.pack())
        problem, _ = new_problem(metric, early_stopping, linear_part)
        state = solver.state_type.unpack(packed, problem)
        solver.solve(problem, state, Progress())
        assert bits_of(solver, problem, state) == expected, stop_after


class Clock(Progress):
    """One whose time is over at the first look at it in the midst of a round."""

    def is_late(self):
        return True

    def end_round(self, state, entries):
        super().end_round(state, entries)
        if state.stopped_because == "max_seconds":
            state.stopped_because = ""


@pytest.mark.combinations(pairs=False)
@every_solver
@every_metric
@both_endings
def test_in_the_midst_of_rounds(name, metric, early_stopping, monkeypatch):
    monkeypatch.setattr(
        "widemargin.solvers.units.lbfgs._FLAT_ENOUGH", 0.05
    )  # for several trials a round
    # A native call makes no more than one batch, so that there is a midst of an epoch.
    monkeypatch.setattr("widemargin.solvers.units.stochastic._PRODUCTS", 1)
    solver = with_limits(SOLVERS[name], max_iter=20, patience=20)
    problem, units = new_problem(metric, early_stopping)
    whole = solver.solve(problem, solver.init(problem, units), Progress())
    expected = bits_of(solver, problem, whole)
    problem, units = new_problem(metric, early_stopping)
    state = solver.solve(problem, solver.init(problem, units), Clock())
    stops = []
    while state.stopped_because == "max_seconds":
        part = getattr(state, "part", state)
        is_projection = isinstance(part, ProjectionState)
        stops.append("projection" if is_projection else "adam")
        assert part.search is not None if is_projection else part.values
        problem, _ = new_problem(metric, early_stopping)
        state = solver.state_type.unpack(through_a_file(state.pack()), problem)
        solver.solve(problem, state, Clock())
    assert set(stops) == ({"adam", "projection"} if name == "auto" else {name})
    assert bits_of(solver, problem, state) == expected


def test_a_state_of_other_units_is_refused():
    problem, units = new_problem("none", early_stopping=False)
    solver = SOLVERS["projection"]
    packed = solver.init(problem, units).pack()
    other, _ = new_problem("none", early_stopping=False)
    packed["point"]["units"]["centres"] = units.centres[:3]
    with pytest.raises(ValueError, match="centres of shape"):
        solver.state_type.unpack(packed, other)


def test_a_problem_that_lacks_what_a_solver_needs_is_refused():
    problem, units = new_problem("none", early_stopping=False)
    missing = {"projection": ["gradient"], "adam": ["descend"], "auto": ["gradient", "descend"]}
    for name, solver in SOLVERS.items():
        state = solver.init(problem, units)
        with pytest.raises(TypeError) as told:
            solver.solve(object(), state, Progress())
        for each in ["solve_coefficients", *missing[name]]:
            assert each in str(told.value)


def test_a_state_of_another_stage_knows_which_it_is():
    problem, units = new_problem("none", early_stopping=False)
    solver, rounds = SOLVERS["auto"], itertools.count(1)
    state = solver.init(problem, units)
    stages = []
    for n_rounds in (1, 6, 7, 8):
        solver.solve(problem, state, Progress(after_round=lambda n=n_rounds: next(rounds) >= n))
        packed = through_a_file(state.pack())
        again = solver.state_type.unpack(packed, new_problem("none", early_stopping=False)[0])
        assert again.stage == state.stage
        assert type(again.part) is type(state.part)
        assert again.n_rounds == n_rounds
        stages.append(again.stage)
    assert stages == ["adam", "adam", "projection", "projection"]


# Estimators


def machine(**parameters):
    settings = {"basis": LearnedBasis(max_iter=8), "tol": 0, "random_state": 0}
    return SparseKernelClassifier(6, warm_start=True, **(settings | parameters))


def stopped_by_the_clock(estimator, X, y):
    estimator.max_seconds = 1e-9
    with pytest.warns(ConvergenceWarning, match="max_seconds=1e-09, after 1 move"):
        estimator.fit(X, y)
    assert estimator.stop_reason_ == "max_seconds"
    if "max_seconds" in estimator.get_params():
        return estimator.set_params(max_seconds=None)
    del estimator.max_seconds
    return estimator


class StopsAfter:
    """A callback that asks to stop, or interrupts."""

    def __init__(self, n_rounds, error=None):
        self.left, self.error = n_rounds, error

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name == "round"
        if self.left == 0 and self.error is not None:
            raise self.error
        return self.left == 0


needs_callbacks = pytest.mark.skipif(
    not hasattr(SparseKernelClassifier, "set_callbacks"), reason="needs scikit-learn 1.9"
)


def stopped_by_a_callback(estimator, X, y):
    estimator.set_callbacks(StopsAfter(3)).fit(X, y)
    assert estimator.stop_reason_ == "callback"
    return estimator.set_callbacks()


def interrupted(estimator, X, y):
    with pytest.raises(KeyboardInterrupt):
        estimator.set_callbacks(StopsAfter(3, KeyboardInterrupt())).fit(X, y)
    assert not hasattr(estimator, "model_")
    assert estimator.history_["last_good"].stop_reason_ == "interrupted"
    return estimator.set_callbacks()


def same_fit(first, second, X):
    assert first.stop_reason_ == second.stop_reason_
    assert_array_equal(first.basis_, second.basis_)
    assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert set(first.history_) == set(second.history_)
    assert (np.diff(first.history_["seconds"]) > 0).all()
    for name in first.history_.keys() - {"seconds"}:
        assert_array_equal(first.history_[name], second.history_[name])


@pytest.mark.combinations
@pytest.mark.parametrize(
    "stopped",
    [
        stopped_by_the_clock,
        pytest.param(stopped_by_a_callback, marks=needs_callbacks),
        pytest.param(interrupted, marks=needs_callbacks),
    ],
)
@every_solver
@both_endings
@pytest.mark.parametrize("random", [int, np.random.RandomState])
def test_an_estimator_goes_on(stopped, name, early_stopping, random, three_classes, tmp_path):
    X, y = three_classes
    basis = LearnedBasis(
        solver=name, max_iter=8, early_stopping=early_stopping, validation_fraction=0.3
    )
    whole = machine(basis=basis, random_state=random(3)).fit(X, y)
    assert "_state" not in vars(whole)
    estimator = stopped(machine(basis=basis, random_state=random(3)), X, y)
    if stopped is not interrupted:
        widemargin.save(estimator, tmp_path / "file")
        same_fit(widemargin.load(tmp_path / "file").fit(X, y), whole, X)
    same_fit(estimator.fit(X, y), whole, X)
    assert "_state" not in vars(estimator)


def test_it_goes_on_however_often_it_is_stopped(three_classes):
    X, y = three_classes
    whole = machine().fit(X, y)
    estimator, n_fits = machine(), 0
    estimator.max_seconds = 1e-9
    while getattr(estimator, "stop_reason_", "max_seconds") == "max_seconds":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            estimator.fit(X, y)
        n_fits += 1
    n_rounds = len(whole.history_["objective"])
    assert n_fits >= n_rounds >= 5  # some of which are of several trials
    same_fit(estimator, whole, X)


@pytest.mark.parametrize("change", ["X", "y", "C", "basis", "weights"])
def test_other_data_or_parameters_start_from_the_vectors(change, three_classes):
    X, y = three_classes
    estimator = stopped_by_the_clock(machine(), X, y)
    X, y, weights = X.copy(), y.copy(), None
    if change == "X":
        X[0, 0] += 1e-9
    elif change == "y":
        y[:2] = y[1::-1] + 1 - np.arange(2) if y[0] == y[1] else y[1::-1]
    elif change == "weights":
        weights = np.linspace(1, 2, len(y))
    elif change == "C":
        estimator.set_params(C=11.0)
    else:
        estimator.set_params(basis__max_iter=7)
    estimator.fit(X, y, weights)
    limit = 7 if change == "basis" else 8
    assert len(estimator.history_["objective"]) == limit  # a way of its own


def test_nothing_is_kept_without_a_warm_start(three_classes):
    estimator = machine().set_params(warm_start=False)
    assert "_state" not in vars(stopped_by_the_clock(estimator, *three_classes))
    estimator = machine()
    assert "_state" in vars(stopped_by_the_clock(estimator, *three_classes))

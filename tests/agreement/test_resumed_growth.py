"""A greedy fit that was stopped, saved and resumed is the one that ran through, to the bit."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import ChosenBasis, SparseKernelClassifier
from widemargin.kernels import RBF, Sigmoid
from widemargin.losses import CLASS_LOSSES, SquaredHinge
from widemargin.model_files import FORMAT
from widemargin.model_files._codec import Encoder, write_json
from widemargin.model_files._decoder import Decoder, read_json
from widemargin.solvers.greedy import GreedyNewton, GreedyState
from widemargin.solvers.progress import Progress
from widemargin.sparse_kernel.grown import Problem, objective_of

pytestmark = pytest.mark.combinations

KERNEL = RBF(0.2)
FORMS = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "csr float64": sp.csr_matrix,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
every_basis = pytest.mark.parametrize("basis", ["shared", "per_class"])
N_ROWS = 2100  # enough for columns in single precision, which are refined at the end


@pytest.fixture(scope="module")
def many_rows():
    return overlapping_classes(N_ROWS, 3)


# ---- the solver


def through_the_codec(packed):
    """Return what a model file would give back, its arrays read-only."""
    encoder = Encoder()
    text = write_json(encoder.encode(packed, "state"))
    for tensor in encoder.tensors.values():
        tensor.flags.writeable = False
    return Decoder(encoder.tensors, FORMAT).decode(read_json(text), "state")


def objective(loss, rows, targets, n_outputs, kernel=KERNEL):
    return objective_of(
        Problem(loss, targets, n_outputs),
        kernel,
        rows,
        np.full(rows.shape[0], 3.0),
        fit_intercept=True,
        max_basis=70,
        n_threads=1,
    )


def shared(rows, y):
    loss = CLASS_LOSSES["weston_watkins"]()
    return lambda: objective(loss, rows, loss.encode(y, 3), 3)


def of_one_class(rows, y):
    loss = SquaredHinge()
    return lambda: objective(loss, rows, loss.encode((y != 1).astype(int), 1), 1)


def indefinite(rows, y):
    loss = CLASS_LOSSES["logistic"]()
    return lambda: objective(loss, rows, loss.encode(y, 3), 3, Sigmoid(0.3, -0.5))


def assert_same_state(found, expected):
    assert_array_equal(found.basis.indices, expected.basis.indices)
    assert_array_equal(found.coefficients, expected.coefficients)
    assert_array_equal(found.reference, expected.reference)
    for name in ("n_basis", "objective", "gradient"):
        assert found.history[name] == expected.history[name]
    for stage, other in zip(found.stages, expected.stages, strict=True):
        assert_array_equal(stage, other)
    for block, other in zip(found.scores.blocks, expected.scores.blocks, strict=True):
        assert_array_equal(block, other)
    assert (found.n_iter, found.stopped_because) == (expected.n_iter, expected.stopped_because)
    for part, other in zip(found.rng.get_state(), expected.rng.get_state(), strict=True):
        assert_array_equal(part, other)


def stop_after(n_rounds):
    left = iter(range(n_rounds - 1, -1, -1))
    return Progress(after_round=lambda: next(left) == 0)


@pytest.mark.parametrize(
    ("make", "form"),
    [
        *((shared, form) for form in FORMS),
        *((of_one_class, form) for form in FORMS),
        (indefinite, "float32"),
    ],
)
def test_packed_and_unpacked_growth_goes_on_to_the_bit(make, form, many_rows):
    X, y = many_rows
    make_objective = make(FORMS[form](X), y)
    solver = GreedyNewton(70, n_candidates=8, tol=0.0)
    straight = make_objective()
    through = solver.solve(straight, solver.init(straight, np.random.RandomState(0)), Progress())

    problem = make_objective()
    state = solver.init(problem, np.random.RandomState(0))
    for rounds in (5, 13):
        solver.solve(problem, state, stop_after(rounds))
        assert state.stopped_because == "callback"
        before = state.pack()
        solver.finish(problem, state)  # leaves the state as it is
        packed = through_the_codec(before)
        problem = make_objective()
        state = GreedyState.unpack(packed, problem)
    solver.solve(problem, state, Progress())
    assert problem.basis.n_basis > 64  # the room for columns has grown on the way
    assert_same_state(state, through)
    assert_same_state(solver.finish(problem, state), solver.finish(straight, through))


@pytest.mark.parametrize("method", ["append", "derivatives", "candidate_model", "propose"])
def test_an_interrupted_round_is_undone(method, many_rows):
    make_objective = shared(*many_rows)
    solver = GreedyNewton(30, n_candidates=20, tol=0.0)
    straight = make_objective()
    through = solver.solve(straight, solver.init(straight, np.random.RandomState(0)), Progress())

    problem = make_objective()
    state = solver.init(problem, np.random.RandomState(0))
    true, calls = getattr(problem, method), iter(range(1000))

    def interrupted(*args):
        result = true(*args)
        if next(calls) == 12:
            raise KeyboardInterrupt
        return result

    setattr(problem, method, interrupted)
    with pytest.raises(KeyboardInterrupt):
        solver.solve(problem, state, Progress())
    assert state.basis.n_basis == state.history["n_basis"][-1] < 30
    assert_same_state(solver.solve(problem, state, Progress()), through)


def test_a_growth_that_has_ended_stays_there(three_classes):
    X, y = three_classes
    solver = GreedyNewton(50, tol=0.2)
    problem = shared(X, y)()
    state = solver.solve(problem, solver.init(problem, np.random.RandomState(0)), Progress())
    assert state.stopped_because == "tol"
    n_basis = problem.basis.n_basis
    solver.solve(problem, state, Progress())
    assert (problem.basis.n_basis, state.stopped_because) == (n_basis, "tol")


def test_what_a_problem_lacks_is_said_before_anything_moves():
    with pytest.raises(TypeError, match=r"GreedyNewton needs scores, .* which dict does not have"):
        GreedyNewton(5).init({}, np.random.RandomState(0))


# ---- the estimator


@pytest.fixture
def slow_clock(monkeypatch):
    """Let a second pass each time somebody looks at the clock of a fit, which is twice a round."""

    def seconds(progress):
        progress.looks = getattr(progress, "looks", 0) + 1
        return float(progress.looks)

    monkeypatch.setattr(Progress, "seconds", seconds)


def machine(**parameters):
    per_class = parameters.pop("basis", "shared") == "per_class"
    basis = ChosenBasis(n_candidates=20, per_class=per_class)
    settings = {"max_basis": 20, "basis": basis, "tol": 0, "random_state": 0}
    return SparseKernelClassifier(**settings | parameters)


def bits(fitted, X):
    parts = ("basis_indices_", "dual_coef_", "intercept_", "objective_", "n_iter_", "stop_reason_")
    history = {name: way for name, way in fitted.history_.items() if name != "seconds"}
    return (
        {name: getattr(fitted, name) for name in parts}
        | history
        | {
            "scores": fitted.decision_function(X),
            "staged": np.stack([scores[:9] for scores in fitted.staged_decision_function(X)]),
        }
    )


def assert_same_bits(found, expected, X):
    found, expected = bits(found, X), bits(expected, X)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert_array_equal(found[name], value, err_msg=name)


def by_file(fitted, folder):
    widemargin.save(fitted, folder / "machine")
    return widemargin.load(folder / "machine")


def by_pickle(fitted, folder):
    return pickle.loads(pickle.dumps(fitted))


@every_basis
@every_form
def test_stopped_by_the_clock_and_resumed(form, basis, three_classes, slow_clock):
    X, y = form(three_classes[0]), three_classes[1]
    through = machine(basis=basis).fit(X, y)
    stopped = machine(basis=basis, warm_start=True, max_seconds=8)
    for _ in range(3):
        with pytest.warns(ConvergenceWarning, match="ended by max_seconds=8, at "):
            stopped.fit(X, y)
        assert stopped.stop_reason_ == "max_seconds"
        assert stopped.dual_coef_.shape[1] == 3
        assert hasattr(stopped, "_state")
    assert stopped.n_basis_ < through.n_basis_
    assert_same_bits(stopped.set_params(max_seconds=None).fit(X, y), through, X)
    assert not hasattr(stopped, "_state")


@every_basis
@pytest.mark.parametrize("way", [by_file, by_pickle])
def test_stopped_saved_and_resumed(way, basis, three_classes, slow_clock, tmp_path):
    X, y = three_classes
    through = machine(basis=basis, class_weight="balanced").fit(X, y)
    settings = {"warm_start": True, "max_seconds": 8, "class_weight": "balanced"}
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped = machine(basis=basis, **settings).fit(X, y)
    again = way(stopped, tmp_path)
    assert_array_equal(again.decision_function(X), stopped.decision_function(X))
    again.set_params(max_seconds=None, n_jobs=2).fit(X, y)
    assert_same_bits(again, through, X)
    assert np.all(np.diff(again.history_["seconds"][again.history_.get("class_index", 0) == 0]) > 0)


@every_basis
def test_a_warm_start_that_was_stopped_is_resumed(basis, three_classes, slow_clock):
    X, y = three_classes
    settings = {"basis": basis, "warm_start": True}
    through = machine(max_basis=6, **settings).fit(X, y).set_params(max_basis=20).fit(X, y)
    stopped = machine(max_basis=6, **settings).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped.set_params(max_basis=20, max_seconds=8).fit(X, y)
    assert_same_bits(stopped.set_params(max_seconds=None).fit(X, y), through, X)


@every_basis
def test_interrupted_and_resumed(basis, three_classes, monkeypatch):
    X, y = three_classes
    through = machine(basis=basis).fit(X, y)
    stopped = machine(basis=basis, warm_start=True)
    calls, true = iter(range(10_000)), GreedyNewton._add

    def interrupted(*args):
        if next(calls) == (7 if basis == "shared" else 25):
            raise KeyboardInterrupt
        return true(*args)

    monkeypatch.setattr(GreedyNewton, "_add", interrupted)
    before = set(vars(stopped))
    with pytest.raises(KeyboardInterrupt):
        stopped.fit(X, y)
    assert set(vars(stopped)) - before == {"_state"}
    stopped = pickle.loads(pickle.dumps(stopped))
    assert_same_bits(stopped.fit(X, y), through, X)
    assert not hasattr(stopped, "_state")


def test_interrupted_in_the_last_solve_and_resumed(three_classes, monkeypatch):
    X, y = three_classes
    through = machine(tol=0.05).fit(X, y)
    assert through.stop_reason_ == "tol"
    stopped = machine(tol=0.05, warm_start=True)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(GreedyNewton, "finish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, y)
    assert_same_bits(stopped.fit(X, y), through, X)


@pytest.mark.parametrize(("method", "call"), [("init", 1), ("solve", 1), ("finish", 2)])
def test_interrupted_between_machines_and_resumed(method, call, three_classes, monkeypatch):
    X, y = three_classes
    through = machine(basis="per_class").fit(X, y)
    stopped = machine(basis="per_class", warm_start=True)
    calls, true = iter(range(10_000)), getattr(GreedyNewton, method)

    def interrupted(*args):
        if next(calls) in (call, call + 1):
            raise KeyboardInterrupt
        return true(*args)

    monkeypatch.setattr(GreedyNewton, method, interrupted)
    for _ in range(2):  # the second time before anything has gone on
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, y)
        assert len(stopped._state["packed"]["finished"]) == (2 if method == "finish" else 1)
    assert_same_bits(stopped.fit(X, y), through, X)


@pytest.mark.parametrize("change", ["rows", "labels", "weights", "parameters", "model"])
def test_anything_else_is_a_warm_start(change, three_classes, slow_clock):
    X, y = three_classes
    settings = {"warm_start": True, "max_seconds": 8}
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped, plain = (machine(**settings).fit(X, y) for _ in range(2))
    del plain._state
    weights = None
    if change == "rows":
        X = X + 1e-9
    elif change == "labels":
        y = np.roll(y, 1)
    elif change == "weights":
        weights = np.linspace(0.5, 1.0, len(y))
    for fitted in (stopped, plain):
        fitted.set_params(max_seconds=None)
        if change == "parameters":
            fitted.set_params(C=3.0)
        elif change == "model":
            fitted.model_ = fitted.model_
        fitted.fit(X, y, weights)
    assert_same_bits(stopped, plain, X)
    assert not hasattr(stopped, "_state")


def test_without_warm_start_nothing_is_kept(three_classes, slow_clock):
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped = machine(max_seconds=8).fit(*three_classes)
    assert not hasattr(stopped, "_state")
    assert stopped.history_["gradient"][-1] <= stopped.basis.gradient_tol


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("data"),
        lambda state: state.update(data=3),
        lambda state: state.update(packed=[]),
        lambda state: state.update(more=1),
    ],
)
def test_a_file_with_another_kind_of_state_is_refused(damage, three_classes, slow_clock, tmp_path):
    with pytest.warns(ConvergenceWarning, match="max_seconds"):
        stopped = machine(max_seconds=8, warm_start=True).fit(*three_classes)
    damage(stopped._state)
    with pytest.raises(ValueError, match="_state"):
        widemargin.save(stopped, tmp_path / "machine")

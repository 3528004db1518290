"""Stopped, saved, resumed = run through, to the bit: solvers of duals, and what they are in."""

import copy
import pickle
import time

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import KernelClassifier, KernelMIRA, KernelPerceptron
from widemargin.estimation import checkpoints
from widemargin.kernels import RBF, CustomKernel, Linear, Precomputed
from widemargin.model_files import FORMAT
from widemargin.model_files._codec import Encoder, write_json
from widemargin.model_files._decoder import Decoder, read_json
from widemargin.solvers.duals.cutting_plane import CuttingPlane, CuttingPlaneState
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.full_gradient import FullGradient, FullGradientState
from widemargin.solvers.duals.larank import LaRank, LaRankState
from widemargin.solvers.duals.online import OnlineRows, OnlineState
from widemargin.solvers.duals.state import DualProblem, RowProblem
from widemargin.solvers.progress import Progress

pytestmark = pytest.mark.combinations

LINES = 150


def through_a_file(packed):
    """Return what model files make of a packed state."""
    encoder = Encoder()
    document = write_json(encoder.encode(packed, "state"))
    tensors = {name: array.copy() for name, array in encoder.tensors.items()}
    for array in tensors.values():
        array.flags.writeable = False
    return Decoder(tensors, FORMAT).decode(read_json(document), "state")


def make_problem(kernel="rbf", loss="crammer_singer", epochs=None, cache_size=200.0, tol=1e-4):
    rng = np.random.RandomState(3)
    labels = rng.randint(0, 3, LINES)
    rows = rng.randn(LINES, 6)
    rows[:, 0] += labels
    caps = rng.uniform(0.5, 2.0, LINES) * (rng.random_sample(LINES) < 0.95)
    if kernel == "wide":
        rows = sp.csr_matrix(np.hstack([rows, np.zeros((LINES, 2500))]) * (np.arange(2506) < 5))
    kernels = {"rbf": RBF(0.3), "linear": Linear(), "wide": RBF(0.3), "precomputed": Precomputed()}
    if kernel == "precomputed":
        rows = np.exp(-0.3 * ((rows[:, None] - rows[None]) ** 2).sum(axis=2))

    def new_machine():
        return DualExpansion(
            kernels[kernel], rows, 3, loss=loss, fit_intercept=True, cache_size=cache_size
        )

    parts = (new_machine, rows, labels, caps, epochs)
    return DualProblem(*parts, gap_limit=lambda primal: tol * primal)


CASES = {
    "larank": (LaRank(), LaRankState, {}),
    "larank passes": (LaRank(certify=True), LaRankState, {"epochs": 3}),
    "larank small cache": (LaRank(), LaRankState, {"cache_size": 0.01}),
    "larank linear": (LaRank(), LaRankState, {"kernel": "linear", "tol": 1e-3}),
    "larank wide": (LaRank(), LaRankState, {"kernel": "wide"}),
    "larank precomputed": (LaRank(), LaRankState, {"kernel": "precomputed"}),
    "full_gradient": (FullGradient(), FullGradientState, {}),
    "full_gradient small cache": (FullGradient(), FullGradientState, {"cache_size": 0.01}),
    "full_gradient ww": (FullGradient(), FullGradientState, {"loss": "weston_watkins"}),
    "cutting_plane": (CuttingPlane(new_constraints=20), CuttingPlaneState, {}),
    "cutting_plane ww": (CuttingPlane(), CuttingPlaneState, {"loss": "weston_watkins"}),
    "cutting_plane linear": (CuttingPlane(), CuttingPlaneState, {"kernel": "linear", "tol": 1e-2}),
    "perceptron": (OnlineRows(mira=False, averages=True), OnlineState, {"epochs": 5}),
    "perceptron budget": (
        OnlineRows(mira=False, averages=True, budget=20, policy="merge"),
        OnlineState,
        {"epochs": 4},
    ),
    "mira": (OnlineRows(mira=True, averages=False), OnlineState, {"epochs": 5}),
}


def bits_of(state):
    """Return all that is to be the same: coefficients, and the state of everything that moves."""
    supports = state.machine.supports()
    packed = state.pack()
    packed["machine"]["set"].pop("n_computed")
    for name in ("seconds", "kernel_evaluations"):
        packed["history"].pop(name)
    return [*vars(supports).values(), packed]


def assert_same(left, right):
    assert type(left) is type(right)
    if isinstance(left, dict):
        assert left.keys() == right.keys()
        for name in left:
            assert_same(left[name], right[name])
    elif isinstance(left, (list, tuple)):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert_array_equal(left, right)


class StopAfter:
    """Progress that asks to stop after so many rounds."""

    def __new__(cls, n_rounds):
        rounds = iter(range(n_rounds - 1))
        return Progress(after_round=lambda: next(rounds, None) is None)


class LateAfter(Progress):
    """Time is over after so many questions: in the middle of a round."""

    def __init__(self, n_questions):
        super().__init__(max_seconds=1.0)
        self.left = n_questions

    def is_late(self):
        """Whether it was asked often enough."""
        self.left -= 1
        return self.left < 0


@pytest.fixture(scope="module")
def run_through():
    """Return what a case comes to without a stop."""
    known = {}

    def find(name):
        if name not in known:
            solver, _, settings = CASES[name]
            problem = make_problem(**settings)
            known[name] = solver.solve(
                problem, solver.init(problem, np.random.RandomState(0)), Progress()
            )
        return known[name]

    return find


@pytest.mark.parametrize("name", CASES)
def test_a_solver_that_is_stopped_after_every_few_rounds_goes_on_to_the_bit(name, run_through):
    solver, state_type, settings = CASES[name]
    expected = run_through(name)
    problem = make_problem(**settings)
    state = solver.init(problem, np.random.RandomState(0))
    n_stops = 0
    while not state.stopped_because or state.stopped_because == "callback":
        state = state_type.unpack(through_a_file(state.pack()), make_problem(**settings))
        solver.solve(problem, state, StopAfter(2 + n_stops % 2))
        n_stops += 1
    assert n_stops > 1
    assert state.stopped_because == expected.stopped_because
    assert_same(bits_of(state), bits_of(expected))


@pytest.mark.parametrize("name", CASES)
def test_a_solver_whose_time_is_over_in_the_middle_of_rounds_goes_on_to_the_bit(name, run_through):
    solver, state_type, settings = CASES[name]
    expected = run_through(name)
    problem = make_problem(**settings)
    state = solver.init(problem, np.random.RandomState(0))
    n_stops = 0
    while not state.stopped_because or state.stopped_because == "max_seconds":
        state = state_type.unpack(through_a_file(state.pack()), make_problem(**settings))
        solver.solve(problem, state, LateAfter(1 + n_stops % 4))
        n_stops += 1
    assert n_stops > 3
    assert state.stopped_because == expected.stopped_because
    found, wanted = bits_of(state), bits_of(expected)
    for packed in (found[-1], wanted[-1]):
        del packed["history"]  # which has a round more for each stop
        packed.pop("gap", None)
    assert_same(found, wanted)


def test_a_solver_refuses_a_problem_without_what_it_needs():
    whole = make_problem()
    problem = RowProblem(whole.new_machine, whole.rows, whole.labels, whole.caps, 1)
    for solver in (LaRank(), FullGradient(), CuttingPlane()):
        with pytest.raises(TypeError, match="needs gap_limit of its problem"):
            solver.init(problem, np.random.RandomState(0))


def damaged(packed, rng):
    """Return a copy of a packed state with something wrong at a random place."""
    packed = copy.deepcopy(packed)
    places = []

    def walk(value):
        for key in value if isinstance(value, dict) else ():
            places.append((value, key))
            walk(value[key])

    walk(packed)
    where, key = places[rng.randint(len(places))]
    value = where[key]
    if isinstance(value, np.ndarray) and value.size and rng.randint(3):
        value = value.copy()
        wrong = {"f": np.nan, "i": -5, "u": 2**31 if value.dtype.itemsize > 1 else 1}
        value.flat[rng.randint(value.size)] = wrong[value.dtype.kind]
        where[key] = value
    elif isinstance(value, np.ndarray) and rng.randint(2):
        where[key] = np.concatenate([value, value[:1]]) if len(value) else np.zeros(3, value.dtype)
    elif isinstance(value, (int, float)) and rng.randint(2):
        where[key] = -17
    elif rng.randint(2):
        where[key] = "nonsense"
    else:
        del where[key]
    return packed


@pytest.mark.parametrize("name", ["larank", "full_gradient", "cutting_plane", "mira"])
def test_a_forged_state_is_refused_or_can_be_worked_with(name):
    solver, state_type, settings = CASES[name]
    problem = make_problem(**settings)
    packed = []
    state = solver.init(problem, np.random.RandomState(0))
    for _ in range(3):
        solver.solve(problem, state, LateAfter(7))
        packed.append(state.pack())
    refused = 0
    rng = np.random.RandomState(1)
    for trial in range(150):
        forged = damaged(packed[trial % len(packed)], rng)
        try:
            state = state_type.unpack(forged, problem)
        except ValueError:
            refused += 1
            continue
        try:
            solver.solve(problem, state, StopAfter(3))
        except ValueError:
            refused += 1
    assert refused > 75


def kernel_machine(**parameters):
    return KernelClassifier(gamma=0.3, random_state=0, **parameters)


STREAMS = {
    "larank": kernel_machine,
    "larank ww": lambda **parameters: kernel_machine(loss="weston_watkins", **parameters),
    "larank linear": lambda **parameters: KernelClassifier(
        kernel="linear", random_state=0, **parameters
    ),
    "perceptron": lambda **parameters: KernelPerceptron(gamma=0.3, random_state=0, **parameters),
    "last perceptron": lambda **parameters: KernelPerceptron(
        gamma=0.3, average=False, random_state=0, **parameters
    ),
    "mira": lambda **parameters: KernelMIRA(gamma=0.3, random_state=0, **parameters),
}
BUDGETS = {
    "all": {},
    "drop": {"budget": 25},
    **{policy: {"budget": 25, "budget_policy": policy} for policy in ("merge", "redundant")},
}


def saved(machine, path):
    widemargin.save(machine, path)
    return widemargin.load(path)


WAYS = {
    "file": saved,
    "pickle": lambda machine, path: pickle.loads(pickle.dumps(machine)),
    "copy": lambda machine, path: copy.deepcopy(machine),
}


def stream_data(form):
    rng = np.random.RandomState(5)
    y = rng.randint(0, 3, 400)
    X = rng.randn(400, 5) + 0.7 * y[:, None]
    if form == "single":
        return X.astype(np.float32), y
    if form == "csr":
        return sp.csr_matrix(X * (X > 0)), y
    if form == "wide":
        return sp.csr_matrix(np.hstack([X * (X > 0), np.zeros((400, 2500))])), y
    return X, y


def assert_same_machine(machine, expected, X):
    for name in ("dual_coef_", "intercept_", "classes_"):
        assert_array_equal(getattr(machine, name), getattr(expected, name))
    difference = machine.basis_ != expected.basis_
    assert difference.nnz == 0 if sp.issparse(difference) else not difference.any()
    assert machine.basis_.dtype == expected.basis_.dtype
    assert_array_equal(machine.model_.scores(X), expected.model_.scores(X))


@pytest.mark.combinations(pairs=False)
@pytest.mark.parametrize("form", ["double", "single", "csr", "wide"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_that_is_put_away_goes_on_to_the_bit(name, budget, form, tmp_path):
    X, y = stream_data(form)
    straight, paused = STREAMS[name](**BUDGETS[budget]), STREAMS[name](**BUDGETS[budget])
    ways = list(WAYS.values())
    start = 0
    for turn, size in enumerate((40, 1, 33, 90, 5, 64, 100, 67)):
        rows = slice(start, start + size)
        start += size
        straight.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        paused.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
        paused = ways[turn % 3](paused, tmp_path / f"{turn}.widemargin")
        if turn % 2:
            # Twice put away, with nothing learned in between.
            paused = ways[turn // 2 % 3](paused, tmp_path / f"{turn} again.widemargin")
    assert start == 400
    assert straight.n_basis_ > 10
    assert_same_machine(paused, straight, X)
    assert paused.history_.keys() == straight.history_.keys()
    for entry, values in straight.history_.items():
        if entry not in ("seconds", "kernel_evaluations"):
            assert_array_equal(paused.history_[entry], values)
    found = pickle.loads(pickle.dumps(paused))._patterns["state"]
    wanted = pickle.loads(pickle.dumps(straight))._patterns["state"]
    for each in (found, wanted):
        each["machine"]["set"].pop("n_computed")
    assert_same(found, wanted)


def test_a_stream_of_another_loss_goes_on_from_its_coefficients(tmp_path):
    X, y = stream_data("double")
    machine = saved(kernel_machine().partial_fit(X[:100], y[:100]), tmp_path / "machine")
    machine.set_params(loss="weston_watkins").partial_fit(X[100:], y[100:])
    assert machine.score(X, y) > 0.6
    coef, caps = machine._patterns["coef"], machine._patterns["caps"]
    others = np.where(np.arange(3) == machine._patterns["labels"][:, None], 0.0, coef)
    assert (others >= -caps[:, None] - 1e-12).all()


def test_a_file_with_a_forged_stream_is_refused(tmp_path):
    X, y = stream_data("double")
    machine = pickle.loads(pickle.dumps(kernel_machine().partial_fit(X, y)))
    good, rng = machine._patterns["state"], np.random.RandomState(0)
    refused = 0
    for _ in range(100):
        machine._patterns["state"] = damaged(good, rng)
        try:
            widemargin.save(machine, tmp_path / "forged")
            widemargin.load(tmp_path / "forged").partial_fit(X[:50], y[:50])
        except ValueError:
            refused += 1
    assert refused > 40


FITS = {
    "larank": lambda **more: kernel_machine(tol=1e-4, **more),
    "full_gradient": lambda **more: kernel_machine(solver="full_gradient", tol=1e-5, **more),
    "cutting_plane": lambda **more: kernel_machine(solver="cutting_plane", tol=1e-4, **more),
    "perceptron": lambda **more: KernelPerceptron(epochs=6, random_state=0, **more),
    "mira": lambda **more: KernelMIRA(epochs=6, random_state=0, **more),
}


class Stopping:
    """Makes fits stop after so many rounds, as a callback or Ctrl-C would."""

    def __init__(self, patch, n_rounds, error=None):
        self.left, self.error, self.end_round = n_rounds, error, checkpoints.FitProgress.end_round
        patch.setattr(checkpoints.FitProgress, "end_round", lambda told, *args: self(told, *args))

    def __call__(self, told, *args):
        """End a round."""
        self.end_round(told, *args)
        self.left -= 1
        if self.left <= 0 and self.error is not None:
            raise self.error
        return self.left <= 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_a_callback_has_stopped_goes_on_to_the_bit(name, way, monkeypatch, tmp_path):
    X, y = stream_data("double")
    expected = FITS[name]().fit(X, y)
    machine = FITS[name](warm_start=True)
    for turn in range(2):
        with monkeypatch.context() as patch:
            Stopping(patch, 2)
            machine.fit(X, y)
        assert machine.stop_reason_ == "callback"
        machine = WAYS[way](machine, tmp_path / f"{turn}.widemargin")
    machine.fit(X, y)
    assert machine.stop_reason_ == expected.stop_reason_
    assert "_state" not in vars(machine)
    assert_same_machine(machine, expected, X)
    assert machine.n_iter_ == expected.n_iter_
    for entry, values in expected.history_.items():
        if entry not in ("seconds", "kernel_evaluations"):
            assert_array_equal(machine.history_[entry], values)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_that_ctrl_c_has_ended_goes_on_to_the_bit(name, monkeypatch):
    X, y = stream_data("double")
    expected = FITS[name]().fit(X, y)
    machine = FITS[name](warm_start=True)
    with monkeypatch.context() as patch:
        Stopping(patch, 3, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
    good = machine.history_["last_good"]
    assert good.stop_reason_ == "interrupted"
    assert_same_machine(good.fit(X, y), expected, X)


@pytest.mark.parametrize("name", FITS)
def test_ctrl_c_before_the_first_round_is_put_away_leaves_nothing_to_go_on_from(name, monkeypatch):
    X, y = stream_data("double")
    machine = FITS[name](warm_start=True)

    def interrupted(checkpoint, state):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Checkpoint, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            machine.fit(X, y)
    assert_same_machine(machine.fit(X, y), FITS[name]().fit(X, y), X)


@pytest.mark.parametrize("name", FITS)
def test_a_fit_whose_time_was_over_goes_on_to_the_bit(name, monkeypatch, tmp_path):
    X, y = stream_data("csr")
    expected = FITS[name]().fit(X, y)
    machine = FITS[name](warm_start=True, max_seconds=3600)
    for turn in range(3):
        late = LateAfter(3 + turn)
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints.Progress, "is_late", lambda self, late=late: late.is_late())
            with pytest.warns(ConvergenceWarning, match="max_seconds"):
                machine.fit(X, y)
        assert machine.n_basis_ > 0
        machine = saved(machine, tmp_path / str(turn))
    seconds = machine.history_.get("seconds", np.zeros(2))
    assert (np.diff(seconds) >= 0).all()
    assert_same_machine(machine.set_params(max_seconds=None).fit(X, y), expected, X)


@pytest.mark.parametrize("what", ["rows", "labels", "weights", "parameters", "no warm start"])
@pytest.mark.parametrize("name", FITS)
def test_a_stopped_fit_of_something_else_is_not_gone_on_with(name, what, monkeypatch):
    X, y = stream_data("double")
    machine = FITS[name](warm_start=True)
    with monkeypatch.context() as patch:
        Stopping(patch, 2)
        machine.fit(X, y)
    weights = None
    if what == "rows":
        X = X + 1e-9
    elif what == "labels":
        y = np.roll(y, 1)
    elif what == "weights":
        weights = np.linspace(0.5, 1, len(y))
    elif what == "parameters":
        machine.set_params(fit_intercept=False)
    else:
        machine.set_params(warm_start=False)

    def refuse(*args):
        raise AssertionError("goes on")

    with monkeypatch.context() as patch:
        for kind in (LaRankState, FullGradientState, CuttingPlaneState, OnlineState):
            patch.setattr(kind, "unpack", refuse)
        machine.fit(X, y, weights)
    assert "_state" not in vars(machine)
    assert machine.stop_reason_ in ("tol", "epochs")


def test_only_a_machine_that_may_go_on_keeps_what_it_needs(monkeypatch):
    X, y = stream_data("double")
    with monkeypatch.context() as patch:
        Stopping(patch, 2)
        assert "_state" not in vars(kernel_machine().fit(X, y))
        stopped = kernel_machine(warm_start=True).fit(X, y)
    assert "_state" in vars(stopped)
    assert "_state" not in vars(copy.deepcopy(stopped).partial_fit(X[:5], y[:5]))
    stopped.model_ = stopped.model_
    assert "_state" not in vars(stopped)


@pytest.mark.parametrize("kind", [KernelPerceptron, KernelMIRA])
def test_online_learners_have_a_time_limit(kind):
    X, y = stream_data("double")
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_seconds=0.05, after [0-9]+ rows"):
        machine = kind(epochs=10**9, max_seconds=0.05).fit(X, y)
    assert time.perf_counter() - begun < 10
    assert machine.stop_reason_ == "max_seconds"
    assert machine.n_iter_ >= 1
    assert kind().fit(X, y).stop_reason_ == "epochs"
    assert kind(gamma=1.0).partial_fit(X, y).stop_reason_ == "partial_fit"
    with pytest.raises(ValueError, match="max_seconds"):
        kind(max_seconds=-1).fit(X, y)


def test_a_function_of_the_caller_goes_on_too():
    X, y = stream_data("double")
    machine = KernelClassifier(kernel=CustomKernel(product), random_state=0)
    expected = KernelClassifier(kernel=CustomKernel(product), random_state=0)
    for start in range(0, 400, 50):
        rows = slice(start, start + 50)
        machine.partial_fit(X[rows], y[rows])
        machine = pickle.loads(pickle.dumps(machine))
        expected.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(machine.dual_coef_, expected.dual_coef_, atol=1e-4)


def product(left, right):
    """Return inner products: BLAS may round them by the shape of the block."""
    return 1.0 + left @ right.T

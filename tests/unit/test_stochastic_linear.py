"""Linear machines that learn row by row: against a slow twin, streams, odd data, and messages."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from reference import stochastic as reference
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import StochasticLinearClassifier
from widemargin.linear.stochastic import STRATEGIES
from widemargin.solvers.linear.sums import LOSSES

every_loss = pytest.mark.parametrize("loss", LOSSES)
every_strategy = pytest.mark.parametrize("strategy", STRATEGIES)


def data(n_rows=90, n_classes=3, n_features=5, seed=0):
    return overlapping_classes(n_rows, n_classes, n_features=n_features, seed=seed)


def pegasos(**settings):
    return StochasticLinearClassifier(
        **{"solver": "pegasos", "alpha": 0.1, "fit_intercept": False} | settings
    )


def batches(X, y, size=20, *more):
    return [
        tuple(part[start : start + size] for part in (X, y, *more))
        for start in range(0, len(y), size)
    ]


@every_loss
@every_strategy
@pytest.mark.parametrize("batch_size", [1, 6])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_the_slow_twin_takes_the_same_steps(loss, strategy, batch_size, form):
    X, y = data()
    path = reference.pegasos(loss, strategy, 0.1, X, y, 3, batch_size)
    settings = {"loss": loss, "strategy": strategy, "batch_size": batch_size}
    last, mean = pegasos(average=False, **settings), pegasos(**settings)
    for t, (rows, labels) in enumerate(batches(X, y, batch_size), start=1):
        last.partial_fit(form(rows), labels, classes=[0, 1, 2])
        mean.partial_fit(form(rows), labels, classes=[0, 1, 2])
        assert last.t_ == t
        assert_allclose(last.coef_.T, path[t - 1], atol=1e-9)
        assert_allclose(mean.coef_.T, reference.later_weigh_more(path[:t]), atol=1e-9)


@pytest.mark.parametrize("batch_size", [1, 6])
def test_projected_steps_are_those_of_the_slow_twin(batch_size):
    X, y = data()
    path = reference.pegasos("crammer_singer", "joint", 0.1, X, y, 3, batch_size, project=True)
    plain = reference.pegasos("crammer_singer", "joint", 0.1, X, y, 3, batch_size)
    assert np.abs(path[3] - plain[3]).max() > 0.1  # or nothing is projected
    mean = pegasos(project=True, batch_size=batch_size).partial_fit(X, y)
    assert_allclose(mean.coef_.T, reference.later_weigh_more(path), atol=1e-8)


@every_loss
@every_strategy
def test_a_machine_of_rows_in_memory_has_the_objective_it_says(loss, strategy):
    X, y = data()
    weights = np.random.RandomState(0).uniform(0.2, 2.0, len(y))
    machine = StochasticLinearClassifier(
        loss, strategy=strategy, alpha=0.02, max_iter=5, tol=None, random_state=0
    ).fit(X, y, sample_weight=weights)
    rows = np.hstack([X, np.ones((len(X), 1))])
    W = np.vstack([machine.coef_.T, machine.intercept_])
    wanted = reference.objective(loss, strategy, 0.02, W, rows, y, weights)
    assert machine.objective_ == pytest.approx(wanted, rel=1e-9)
    assert machine.objective_ >= machine.dual_objective_
    assert machine.gap_ == machine.objective_ - machine.dual_objective_


def test_two_classes_are_those_of_one_score():
    X, y = data(n_classes=2)
    for strategy, half in (("joint", 1.0), ("one_vs_all", 0.5)):
        machine = StochasticLinearClassifier("logistic", strategy=strategy, alpha=0.1, tol=1e-4)
        machine.fit(X, y)
        assert machine.coef_.shape == (1, 5)
        odds = np.log(machine.predict_proba(X)[:, 1] / machine.predict_proba(X)[:, 0])
        assert_allclose(odds, machine.decision_function(X), atol=1e-9)
        stream = machine._sums_of_model(machine._settings(), machine._seen)
        weights = stream.weights(0.1, mean=True)[:-1, :2]
        assert_allclose((weights[:, 1] - weights[:, 0]) * half, machine.coef_[0], atol=1e-12)


def test_batches_are_learned_as_by_partial_fit():
    X, y = data(300)
    weights = np.random.RandomState(0).uniform(0.2, 2.0, len(y))
    stream = StochasticLinearClassifier()
    for rows, labels, some in batches(X, y, 20, weights):
        stream.partial_fit(rows, labels, sample_weight=some)
    once = StochasticLinearClassifier().fit(iter(batches(X, y, 20, weights)))
    assert_array_equal(once.coef_, stream.coef_)
    assert (once.n_iter_, once.stop_reason_, once.t_) == (1, "max_iter", 300)
    twice = StochasticLinearClassifier(max_iter=2, tol=None).fit(batches(X, y, 20, weights))
    for rows, labels, some in batches(X, y, 20, weights):
        stream.partial_fit(rows, labels, sample_weight=some)
    assert_array_equal(twice.coef_, stream.coef_)
    assert_array_equal(twice.history_["steps"], [300, 600])


def test_a_stream_that_can_be_read_again_is_left_once_it_brings_nothing():
    X, y = data(300)
    machine = StochasticLinearClassifier(alpha=0.01).fit(batches(X, y))
    assert machine.stop_reason_ == "tol"
    assert 3 < machine.n_iter_ < 100
    best = StochasticLinearClassifier(alpha=0.01, tol=1e-3, random_state=0).fit(X, y)
    W, rows = np.vstack([machine.coef_.T, machine.intercept_]), np.hstack([X, np.ones((300, 1))])
    found = reference.objective("crammer_singer", "joint", 0.01, W, rows, y)
    assert found < 1.05 * best.objective_


class Stream:
    """What a reader of files looks like."""

    n_features, classes = 5, (0, 1, 2, 7)

    def __init__(self, X, y):
        self.parts, self.passes = batches(X, y), 0

    def __iter__(self):
        self.passes += 1
        return iter(self.parts)


def test_a_stream_that_knows_its_classes():
    X, y = data(300)
    stream = Stream(X, y)
    machine = StochasticLinearClassifier(max_iter=2, tol=None).fit(stream)
    assert machine.classes_.tolist() == [0, 1, 2, 7]
    # A look at whether it is an iterator, and two passes.
    assert stream.passes == 3
    stream.classes = (0, 1)
    with pytest.raises(ValueError, match="not announced"):
        StochasticLinearClassifier().fit(stream)


@pytest.mark.parametrize(
    ("stream", "settings", "message"),
    [
        (iter([]), {}, "gave no rows in pass 1"),
        ([(np.ones((2, 2)), [0, 1])], {"early_stopping": True}, "early_stopping=True holds out"),
        ([(np.ones((2, 2)), [0, 1])], {"class_weight": "balanced"}, "needs all rows at once"),
        (iter([np.ones((2, 2))]), {}, "Batch 0 of the stream is ndarray"),
        ([(np.ones((2, 2)), [0, 1]), (np.ones((2, 3)), [0, 1])], {}, "has 3 features"),
    ],
)
def test_streams_that_are_refused_leave_no_machine(stream, settings, message):
    machine = StochasticLinearClassifier(**settings)
    with pytest.raises(ValueError, match=message):
        machine.fit(stream)
    assert not hasattr(machine, "model_")


def test_weights_of_a_stream_come_with_its_batches():
    X, y = data()
    with pytest.raises(ValueError, match="with each batch"):
        StochasticLinearClassifier().fit(batches(X, y), sample_weight=np.ones(len(y)))


def test_an_iterable_of_one_pass_is_told_so():
    X, y = data()

    class Spent(Stream):
        def __iter__(self):
            parts, self.parts = self.parts, []
            return iter(parts)

    with pytest.raises(ValueError, match="gave no rows in pass 1"):
        StochasticLinearClassifier().fit(Spent(X, y))


@pytest.mark.parametrize("loss", ["crammer_singer", "logistic"])
@pytest.mark.parametrize("way", ["file", "pickle"])
def test_classes_join_in_the_middle_of_a_stream_that_was_put_away(loss, way, tmp_path):
    X, y = data(400, 10)
    order = np.argsort(y >= 3, kind="stable")  # the other classes come later
    X, y = sp.csr_matrix(X[order]), np.array(list("abcdefghij"))[y[order]]
    straight = StochasticLinearClassifier(loss, alpha=0.01)
    paused = StochasticLinearClassifier(loss, alpha=0.01)
    for number, (rows, labels) in enumerate(batches(X, y, 37)):
        straight.partial_fit(rows, labels)
        paused.partial_fit(rows, labels)
        if way == "file":
            widemargin.save(paused, tmp_path / f"{number}")
            paused = widemargin.load(tmp_path / f"{number}")
        else:
            paused = pickle.loads(pickle.dumps(paused))
    assert len(straight.classes_) == 10
    assert_array_equal(paused.coef_, straight.coef_)
    assert straight.t_ == 400


def test_predictions_of_a_stream_need_no_model():
    for n_classes, strategy in ((2, "one_vs_all"), (2, "joint"), (4, "joint")):
        X, y = data(200, n_classes)
        stream = StochasticLinearClassifier("logistic", strategy=strategy).partial_fit(X, y)
        scores, labels = stream.decision_function(X), stream.predict(X)
        probabilities = stream.predict_proba(X)
        assert "model_" not in vars(stream)
        assert stream.model_ is not None
        assert_allclose(scores, stream.decision_function(X), atol=1e-10 * np.abs(scores).max())
        assert_array_equal(labels, stream.predict(X))
        assert_allclose(probabilities, stream.predict_proba(X), atol=1e-9)


def test_a_fit_goes_on_by_partial_fit():
    X, y = data(400)
    machine = StochasticLinearClassifier(alpha=0.01, random_state=0).fit(X[:200], y[:200])
    before = machine.coef_.copy()
    machine.partial_fit(X[200:201], y[200:201])
    # One row of 201 changes little.
    assert 0 < np.abs(machine.coef_ - before).max() < 0.05 * np.abs(before).max()
    assert machine.t_ > 200
    assert machine.partial_fit(X[201:], y[201:]).score(X, y) > 0.5


def test_a_batch_without_rows_of_a_class():
    X, y = data(200)
    machine = StochasticLinearClassifier().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert set(machine.predict(X)) <= {0, 1}
    assert set(machine.partial_fit(X[y == 2], y[y == 2]).predict(X)) == {0, 1, 2}


def test_parameters_of_a_stream_stay():
    X, y = data()
    machine = StochasticLinearClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="alpha has changed"):
        machine.set_params(alpha=0.5).partial_fit(X, y)


@every_loss
@every_strategy
@pytest.mark.parametrize("solver", ["auto", "pegasos"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_any_length_make_finite_weights(loss, strategy, solver, dtype):
    X, y = data()
    settings = {"strategy": strategy, "solver": solver, "max_iter": 3, "tol": None}
    zeros = X.copy()
    zeros[::3] = 0
    for rows, alpha in ((zeros, 1e-4), (X * 1e9, 1e-4), (X * 1e-9, 1e-4), (X, 1e-15), (X, 1e6)):
        machine = StochasticLinearClassifier(loss, alpha=alpha, random_state=0, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(rows.astype(dtype), y)
        assert np.isfinite(machine.coef_).all()
        assert np.isfinite(machine.decision_function(rows)).all()
    assert machine.score(X, y) > 0.3


def test_long_rows_are_advised_against():
    X, y = data()
    with pytest.warns(UserWarning, match=r"mean squared length of .*e\+.*Scale the features"):
        machine = StochasticLinearClassifier(tol=None, max_iter=20, random_state=0).fit(X * 1e9, y)
    plain = StochasticLinearClassifier(tol=None, max_iter=20, random_state=0).fit(X, y)
    assert machine.score(X * 1e9, y) > plain.score(X, y) - 0.1
    with pytest.warns(UserWarning, match="Scale the features"):
        machine = StochasticLinearClassifier().partial_fit(X * 1e9, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once is enough
        machine.partial_fit(X * 1e9, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 1e-300}, "alpha must be 1e-15 or more"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"strategy": "one_vs_one"}, "strategy must be one of"),
        ({"solver": "sgd"}, "solver must be one of"),
        ({"solver": "dual", "loss": "perceptron"}, "has no dual"),
        ({"batch_size": 4}, "solver='pegasos'"),
        ({"project": True}, "solver='pegasos'"),
        ({"batch_size": 0, "solver": "pegasos"}, "batch_size must be 1 or more"),
        ({"validation_fraction": 1.5}, "validation_fraction must be below 1"),
        ({"tol": 0.0}, "tol must be positive"),
        ({"max_iter": 0}, "max_iter must be 1 or more"),
    ],
)
def test_parameters_that_are_refused(settings, message):
    X, y = data()
    for learn in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=message):
            getattr(StochasticLinearClassifier(**settings), learn)(X, y)


def test_early_stopping_goes_by_rows_that_are_held_out():
    X, y = data(300)
    machine = StochasticLinearClassifier(early_stopping=True, alpha=0.01, random_state=0).fit(X, y)
    assert machine.stop_reason_ == "tol"
    assert machine.t_ == machine.n_iter_ * 270
    assert ((machine.history_["score"] > 0) & (machine.history_["score"] <= 1)).all()
    with pytest.raises(ValueError, match="no class has two"):
        StochasticLinearClassifier(early_stopping=True).fit(X[:2], [0, 1])


def test_a_fit_that_ends_early_says_so():
    X, y = data(300)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes, with a duality gap of"):
        StochasticLinearClassifier(max_iter=2).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="after max_iter=2 passes, where tol is"):
        StochasticLinearClassifier(max_iter=2, solver="pegasos").fit(X, y)
    with pytest.warns(ConvergenceWarning, match="ended by max_seconds"):
        machine = StochasticLinearClassifier(max_seconds=1e-9).fit(X, y)
    assert machine.stop_reason_ == "max_seconds"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StochasticLinearClassifier(max_iter=2, tol=None).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="rows of pass 1"):
        StochasticLinearClassifier(max_seconds=1e-9).fit(batches(X, y))


def test_a_memory_map_is_learned_in_place(tmp_path):
    X, y = data(10_000)
    mapped = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    machine = StochasticLinearClassifier(max_iter=2, tol=None, random_state=0).fit(mapped, y)
    plain = StochasticLinearClassifier(max_iter=2, tol=None, random_state=0).fit(X, y)
    assert machine.objective_ == pytest.approx(plain.objective_, rel=0.05)
    # Another order, in which rows that are near on disk are learned one after the other.
    assert (machine.coef_ != plain.coef_).any()


def test_rows_without_weight_might_as_well_not_be_there():
    X, y = data(120)
    weights = np.random.RandomState(0).randint(0, 2, 120).astype(float)
    settings = {"max_iter": 3, "tol": None, "random_state": 0}
    with_zeros = StochasticLinearClassifier(**settings).fit(X, y, sample_weight=weights)
    without = StochasticLinearClassifier(**settings).fit(X[weights > 0], y[weights > 0])
    assert_array_equal(with_zeros.coef_, without.coef_)
    assert with_zeros.objective_ == pytest.approx(without.objective_, rel=1e-12)

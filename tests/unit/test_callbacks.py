"""scikit-learn's callbacks: progress, scores on the way, and an end before the end."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from widemargin import ChosenBasis, SparseKernelClassifier

callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")


class Recorder:
    """A callback that writes down what it is told, and may stop the fit or raise an error."""

    def __init__(self, stop_after=None, error=None):
        self.stop_after, self.error = stop_after, error
        self.rounds, self.events = [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if context.task_name != "round":
            return False
        self.rounds.append((fitted_estimator.n_basis_, fitted_estimator.decision_function(X)))
        if self.error is not None and len(self.rounds) == 3:
            raise self.error
        return self.stop_after is not None and len(self.rounds) >= self.stop_after


def machine(max_basis=8, **parameters):
    return SparseKernelClassifier(max_basis, **({"random_state": 0, "tol": 0} | parameters))


def rounds_of(fitted):
    """Return the sizes after each round; a stage before the first vector is none."""
    sizes = fitted.history_["n_basis"]
    return sizes[sizes > 0]


def test_progress_bar_comes_to_its_end(three_classes, capsys):
    pytest.importorskip("rich")
    fitted = machine().set_callbacks(callback.ProgressBar()).fit(*three_classes)
    assert fitted.n_basis_ == 8
    printed = capsys.readouterr().out
    assert "SparseKernelClassifier" in printed
    assert "100%" in printed


@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_scoring_monitor_logs_a_score_a_round(basis, three_classes):
    X, y = three_classes
    monitor = callback.ScoringMonitor(scoring="accuracy")
    fitted = machine(basis=basis).set_callbacks(monitor).fit(X, y)
    entries = monitor.get_logs().data
    scores = [entry["accuracy"] for entry in entries if entry["task_name"] == "round"]
    assert len(scores) == len(rounds_of(fitted))
    (end,) = (entry["accuracy"] for entry in entries if entry["task_name"] == "fit")
    assert end == np.mean(fitted.predict(X) == y)
    if basis == "shared":
        stages = list(fitted.staged_decision_function(X))[-len(scores) :]
        staged = [np.mean(stage.argmax(axis=1) == y) for stage in stages]
        assert scores[:-1] == staged[:-1]  # the last stage is solved further after its round


def test_scoring_monitor_takes_weights_and_frames(three_classes, recwarn):
    pd = pytest.importorskip("pandas")
    X, y = three_classes
    monitor = callback.ScoringMonitor(scoring="accuracy")
    frame, weights = pd.DataFrame(X, columns=list("abcd")), (y == 0).astype(float)
    fitted = machine().set_callbacks(monitor).fit(frame, y, sample_weight=weights + 1e-3)
    (end,) = (row["accuracy"] for row in monitor.get_logs().data if row["task_name"] == "fit")
    expected = fitted.score(frame, y, sample_weight=weights + 1e-3)
    assert end == pytest.approx(expected)
    assert not [warning for warning in recwarn if "feature names" in str(warning.message)]


def test_a_callback_sees_the_machine_at_each_size(three_classes):
    X, y = three_classes
    recorder = Recorder()
    fitted = machine().set_callbacks(recorder).fit(X, y)
    assert [size for size, _ in recorder.rounds] == list(rounds_of(fitted))
    assert recorder.events[0] == "setup"
    assert recorder.events[1] == "begin fit"
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.events.count("begin round") == recorder.events.count("end round")


def test_callbacks_change_no_bit(three_classes):
    X, y = three_classes
    watched = machine().set_callbacks(Recorder()).fit(X, y)
    assert_array_equal(watched.decision_function(X), machine().fit(X, y).decision_function(X))


@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_a_callback_that_returns_true_stops_growth(basis, three_classes):
    X, y = three_classes
    recorder = Recorder(stop_after=3)
    fitted = machine(max_basis=30, basis=basis).set_callbacks(recorder).fit(X, y)
    assert fitted.stop_reason_ == "callback"
    assert fitted.n_basis_ < 30
    assert fitted.history_["gradient"][-1] <= ChosenBasis().gradient_tol
    *_, last = fitted.staged_decision_function(X)
    assert np.abs(last - fitted.decision_function(X)).max() < 1e-8
    assert set(fitted.predict(X)) <= {0, 1, 2}
    if basis == "shared":
        assert len(recorder.rounds) == 3
        shorter = machine(max_basis=fitted.n_basis_).fit(X, y)
        assert_array_equal(shorter.decision_function(X), fitted.decision_function(X))


def test_growth_resumes_after_a_callback_stopped_it(three_classes):
    X, y = three_classes
    stopped = machine(max_basis=12, warm_start=True).set_callbacks(Recorder(stop_after=2))
    stopped.fit(X, y)
    size, objective = stopped.n_basis_, stopped.objective_
    stopped.set_callbacks().fit(X, y)
    assert size < stopped.n_basis_ == 12
    assert stopped.objective_ < objective


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("enough")], ids=repr)
def test_an_error_in_a_callback_leaves_an_unfitted_estimator_unfitted(error, three_classes):
    X, y = three_classes
    recorder = Recorder(error=error)
    interrupted = machine().set_callbacks(recorder)
    before = dict(vars(interrupted))
    with pytest.raises((KeyboardInterrupt, ValueError)):
        interrupted.fit(X, y)
    assert recorder.events[-1] == "teardown"
    assert vars(interrupted) == before
    with pytest.raises(NotFittedError):
        interrupted.predict(X)
    assert interrupted.set_callbacks().fit(X, y).n_basis_ == 8


@pytest.mark.parametrize("warm_start", [False, True])
def test_an_interrupt_leaves_a_fitted_estimator_as_it_was(warm_start, three_classes):
    X, y = three_classes
    fitted = machine(max_basis=4, warm_start=warm_start).fit(X, y)
    scores = fitted.decision_function(X)
    fitted.set_params(max_basis=20).set_callbacks(Recorder(error=KeyboardInterrupt()))
    before = dict(vars(fitted))
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(2 * X, y)
    assert all(vars(fitted)[name] is before[name] for name in before)
    # From there a fit to the same data would go on.
    assert set(vars(fitted)) == set(before) | ({"_state"} if warm_start else set())
    assert_array_equal(fitted.decision_function(X), scores)


def test_warm_start_counts_its_rounds(three_classes):
    X, y = three_classes
    fitted = machine(max_basis=3, warm_start=True).fit(X, y)
    recorder = Recorder()
    fitted.set_params(max_basis=9).set_callbacks(recorder).fit(X, y)
    assert [size for size, _ in recorder.rounds] == list(rounds_of(fitted)[-len(recorder.rounds) :])
    assert recorder.rounds[0][0] > 3


def test_progress_bar_follows_a_search(three_classes, capsys):
    pytest.importorskip("rich")
    search = pytest.importorskip("sklearn.model_selection").GridSearchCV(
        machine(max_basis=3), {"C": [1.0, 10.0]}, cv=2
    )
    if not hasattr(search, "set_callbacks"):
        pytest.skip("this GridSearchCV takes no callbacks")
    search.set_callbacks(callback.ProgressBar()).fit(*three_classes)
    assert "GridSearchCV" in capsys.readouterr().out
    assert search.best_estimator_.n_basis_ == 3

"""scikit-learn's callbacks, of every estimator: told of each round, able to end a fit, harmless."""

import copy

import numpy as np
import pytest
from contract import every_estimator, fitted, has_parameter, problem, same_state, unfitted
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")


class Recorder:
    """A callback that writes down what it is told, and may stop the fit or raise an error."""

    def __init__(self, stops=False, error=None):
        self.stops, self.error = stops, error
        self.events, self.scores, self.n_rounds = [], [], 0

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        if context.task_name == "fit":
            return False
        self.n_rounds += 1
        if fitted_estimator is not None:  # a search has none before its last round
            self.scores.append(fitted_estimator.decision_function(X))
        if self.error is not None:
            raise self.error
        return self.stops


def watched(name, **settings):
    recorder = Recorder(**settings)
    return unfitted(name).set_callbacks(recorder), recorder


@every_estimator
def test_a_callback_is_told_of_rounds_and_changes_no_bit(name):
    X, y = problem(name)
    machine, recorder = watched(name)
    machine.fit(X, y)
    assert_array_equal(machine.decision_function(X), fitted(name).decision_function(X))
    begun = [task for event, task in recorder.events if event == "begin"]
    ended = [task for event, task in recorder.events if event == "end"]
    assert begun[0] == "fit" == ended[-1]
    assert sorted(begun) == sorted(ended)
    assert begun.count("fit") == 1
    assert len(begun) > 1  # there are rounds
    assert [event for event, _ in recorder.events].count("setup") == 1
    assert recorder.events[-1][0] == "teardown"
    assert recorder.n_rounds == len(begun) - 1
    assert len(recorder.scores) == (1 if has_parameter(name, "cv") else recorder.n_rounds)
    for scores in recorder.scores:
        assert scores.shape == machine.decision_function(X).shape
        assert np.isfinite(scores).all()


@every_estimator
def test_a_callback_that_returns_true_ends_the_fit(name):
    X, y = problem(name)
    to_the_end, all_rounds = watched(name)
    to_the_end.fit(X, y)
    machine, recorder = watched(name, stops=True)
    machine.fit(X, y)
    assert recorder.n_rounds < all_rounds.n_rounds or recorder.n_rounds == 1
    assert len(recorder.scores) == 1
    assert set(np.unique(machine.predict(X))) <= set(np.unique(y))
    if hasattr(machine, "stop_reason_") and not has_parameter(name, "cv"):
        was_over = recorder.n_rounds == all_rounds.n_rounds
        assert machine.stop_reason_ == (to_the_end.stop_reason_ if was_over else "callback")


@every_estimator
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("enough")], ids=repr)
def test_an_error_in_a_callback_leaves_an_unfitted_estimator_unfitted(name, error):
    X, y = problem(name)
    machine, recorder = watched(name, error=error)
    before = dict(vars(machine))
    with pytest.raises(type(error)):
        machine.fit(X, y)
    assert recorder.events[-1][0] == "teardown"
    after = dict(vars(machine))
    after.pop("history_", None)  # where an interrupted fit leaves what it had come to
    assert after == before
    with pytest.raises(NotFittedError):
        machine.predict(X)
    machine.set_callbacks().fit(X, y)
    assert_array_equal(machine.decision_function(X), fitted(name).decision_function(X))


@every_estimator
def test_an_error_in_a_callback_leaves_a_fitted_estimator_as_it_was(name):
    X, y = problem(name)
    machine = copy.deepcopy(fitted(name)).set_callbacks(Recorder(error=ValueError("enough")))
    before, scores = dict(vars(machine)), machine.decision_function(X)
    with pytest.raises(ValueError, match="enough"):
        machine.fit(2 * X, y)
    assert same_state(machine, before)
    assert_array_equal(machine.decision_function(X), scores)


@every_estimator
def test_progress_bar_comes_to_its_end(name, capsys):
    pytest.importorskip("rich")
    unfitted(name).set_callbacks(callback.ProgressBar()).fit(*problem(name))
    printed = capsys.readouterr().out
    assert name in printed
    assert "100%" in printed

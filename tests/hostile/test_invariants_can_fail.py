"""Every invariant notices the defect that it is there for: one is made, and it must fail."""

import copy
import dataclasses
import os
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import hostile.exports
import hostile.interruptions
import hostile.refits
import widemargin
from hostile.checks import INVARIANTS, failures_of
from hostile.known import KNOWN
from hostile.problems import Data, Problem
from widemargin import models, readouts
from widemargin._system import threads as _threads
from widemargin.estimation.kernel_parameters import HasKernel
from widemargin.full_kernel.dual import DualClassifier

SETTINGS = {"max_seconds": 60.0, "random_state": 0}
EXACT = Problem("KernelClassifier", Data(), SETTINGS)
FIXED_WIDTH = EXACT.changed(gamma=0.3)  # whatever the scale of rows
ONLINE = Problem("KernelPerceptron", Data(), {"budget": 5, "random_state": 0})
AVERAGE = Problem("KernelPerceptron", Data(), {"random_state": 0})
SPARSE = Problem("SparseKernelClassifier", Data(), {"max_basis": 5, "random_state": 0})
LOGISTIC = SPARSE.changed(loss="logistic")
LONG = Problem("KernelClassifier", Data(n_rows=200, noise=3.0), {"C": 30.0, **SETTINGS})
LONG_STREAM = Problem("KernelMIRA", Data(n_rows=400, noise=3.0), {"random_state": 0})

DEFECTS = {}


def defect(problem):
    """Put a function ``break_it(monkeypatch, problem)`` on the list, under the invariant's name."""

    def enlist(function):
        DEFECTS[function.__name__] = (problem, function)
        return function

    return enlist


def after_fit(monkeypatch, problem, change):
    """Let every fit end with ``change(machine, X)``."""
    original = problem.kind.fit

    def fit(self, X, y, sample_weight=None):
        original(self, X, y, sample_weight)
        change(self, X)
        return self

    monkeypatch.setattr(problem.kind, "fit", fit)


def scaled(name, factor):
    def change(machine, X):
        setattr(machine, name, getattr(machine, name) * factor)

    return change


def with_model(change):
    """Let the model be another one: ``change`` returns which of its parts are others."""

    def put(machine, X):
        machine.__dict__["model_"] = dataclasses.replace(machine.model_, **change(machine.model_))

    return put


def twice_as_many(monkeypatch, problem):
    count = property(lambda self: 2 * self.model_.n_basis)
    monkeypatch.setattr(problem.kind, "n_basis_", count)


def moved(machine):
    """Return a copy of a machine with other scores."""
    other = copy.copy(machine)
    other.model_ = dataclasses.replace(machine.model_, coef=machine.model_.coef * 1.001)
    return other


def scaled_rows(where, factor):
    return lambda rows: rows * rows.dtype.type(factor) if where(rows) else rows


@defect(EXACT)
def answers_are_finite_labels_of_the_problem(monkeypatch, problem):
    first = lambda self, rows, *args, **kwargs: np.zeros(rows.shape[0], dtype=int)  # noqa: E731
    monkeypatch.setattr(models.Model, "best", first)


@defect(EXACT)
def all_that_is_fitted_is_finite(monkeypatch, problem):
    after_fit(monkeypatch, problem, with_model(lambda model: {"coef": model.coef * np.nan}))


@defect(EXACT)
def a_fit_writes_neither_parameters_nor_data(monkeypatch, problem):
    after_fit(monkeypatch, problem, lambda machine, X: X.fill(0.0))


@defect(EXACT)
def scores_are_those_of_the_expansion(monkeypatch, problem):
    original = models.Model.scores
    monkeypatch.setattr(models.Model, "scores", lambda *a, **k: original(*a, **k) * (1 + 1e-6))


@defect(EXACT)
def a_row_alone_has_the_scores_that_it_has_among_others(monkeypatch, problem):
    original = models.Model.scores
    monkeypatch.setattr(
        models.Model,
        "scores",
        lambda self, rows, *a, **k: original(self, rows, *a, **k) + len(rows),
    )


@defect(LOGISTIC)
def probabilities_sum_to_one(monkeypatch, problem):
    original = readouts.Readout.log_probabilities
    monkeypatch.setattr(readouts.Readout, "log_probabilities", lambda *a: original(*a) + 1e-6)


@defect(EXACT)
def dual_coefficients_are_within_their_bounds(monkeypatch, problem):
    def drift(machine, X):
        coef = machine._patterns["coef"]
        machine._patterns["coef"] = coef - 1e-9 * (coef != 0)

    after_fit(monkeypatch, problem, drift)


@defect(EXACT)
def intercepts_are_those_of_the_constant(monkeypatch, problem):
    change = with_model(lambda model: {"intercept": model.intercept + 1.0})
    after_fit(monkeypatch, problem, change)


@defect(EXACT)
def the_dual_is_not_above_the_primal(monkeypatch, problem):
    after_fit(monkeypatch, problem, scaled("gap_", -1.0))


@defect(EXACT)
def objectives_are_what_the_definition_says(monkeypatch, problem):
    after_fit(monkeypatch, problem, scaled("dual_objective_", 0.99))


@defect(SPARSE)
def the_objective_falls_and_is_what_the_definition_says(monkeypatch, problem):
    after_fit(monkeypatch, problem, scaled("objective_", 1 + 1e-5))


@defect(SPARSE)
def there_are_no_more_vectors_than_asked_for(monkeypatch, problem):
    twice_as_many(monkeypatch, problem)


@defect(ONLINE)
def there_are_no_more_patterns_than_the_budget(monkeypatch, problem):
    twice_as_many(monkeypatch, problem)


@defect(EXACT)
def weights_are_repetitions(monkeypatch, problem):
    original = HasKernel._row_weights

    def squared(self, X, labels, sample_weight, y, **kwargs):
        squares = None if sample_weight is None else np.square(sample_weight)
        return original(self, X, labels, squares, y, **kwargs)

    monkeypatch.setattr(HasKernel, "_row_weights", squared)


@defect(FIXED_WIDTH)
def dense_rows_are_csr_rows(monkeypatch, problem):
    monkeypatch.setattr(
        "widemargin.estimation.class_rows.canonical_rows", scaled_rows(sp.issparse, 2.0)
    )


@defect(EXACT)
def predictions_of_dense_rows_are_those_of_csr_rows(monkeypatch, problem):
    monkeypatch.setattr(
        "widemargin.estimation.base.canonical_rows", scaled_rows(sp.issparse, 1.001)
    )


@defect(FIXED_WIDTH)
def float32_is_near_float64(monkeypatch, problem):
    change = scaled_rows(lambda rows: rows.dtype == np.float32, 2.0)
    monkeypatch.setattr("widemargin.estimation.class_rows.canonical_rows", change)


@defect(EXACT)
def predictions_of_float32_rows_are_near_those_of_float64(monkeypatch, problem):
    change = scaled_rows(lambda rows: rows.dtype == np.float32, 1.001)
    monkeypatch.setattr("widemargin.estimation.base.canonical_rows", change)


@defect(EXACT)
def two_threads_change_no_bit(monkeypatch, problem):
    change = with_model(lambda model: {"coef": np.nextafter(model.coef, np.inf)})

    def round_off(machine, X):
        if machine.n_jobs == 2:
            change(machine, X)

    after_fit(monkeypatch, problem, round_off)


@defect(EXACT.changed(epochs=1))
def a_seed_repeats_every_bit(monkeypatch, problem):
    monkeypatch.setattr(
        "widemargin.full_kernel.classifier.check_random_state", lambda s: np.random.RandomState()
    )


@defect(EXACT)
def another_process_finds_the_same_bits(monkeypatch, problem):
    after_fit(monkeypatch, problem, with_model(lambda model: {"coef": model.coef * (1 + 1e-12)}))


@defect(SPARSE)
def a_warm_start_finds_no_worse_machine(monkeypatch, problem):
    fitted = set()

    def worse_again(machine, X):
        if id(machine) in fitted:
            machine.objective_ *= 1.01
        fitted.add(id(machine))

    after_fit(monkeypatch, problem, worse_again)


@defect(EXACT)
def a_fork_after_threads_predicts_and_fits(monkeypatch, problem):
    parent = os.getpid()

    change = with_model(lambda model: {"coef": model.coef * 2.0})

    def other_in_a_child(machine, X):
        if os.getpid() != parent:
            change(machine, X)

    monkeypatch.setattr(hostile.refits, "_FORK_SECONDS", 5.0)
    after_fit(monkeypatch, problem, other_in_a_child)


@defect(EXACT)
def a_compiled_machine_answers_the_same(monkeypatch, problem):
    original = problem.kind.compile
    monkeypatch.setattr(problem.kind, "compile", lambda self, **k: original(moved(self), **k))


@defect(EXACT)
def a_pickle_answers_the_same(monkeypatch, problem):
    def restored(self, state):
        self.__dict__.update(state, coef=np.nextafter(state["coef"], np.inf))

    monkeypatch.setattr(models.Model, "__setstate__", restored)


@defect(EXACT)
def a_file_answers_the_same(monkeypatch, problem):
    original = widemargin.load
    monkeypatch.setattr(widemargin, "load", lambda *a, **k: moved(original(*a, **k)))


@defect(EXACT)
def onnx_answers_the_same(monkeypatch, problem):
    original = hostile.exports.to_onnx
    monkeypatch.setattr(hostile.exports, "to_onnx", lambda m, **k: original(moved(m), **k))


@defect(EXACT)
def c_answers_the_same(monkeypatch, problem):
    original = hostile.exports.to_c
    monkeypatch.setattr(hostile.exports, "to_c", lambda m, p, **k: original(moved(m), p, **k))


@defect(AVERAGE)
def predicting_in_between_changes_no_bit_of_what_is_learned(monkeypatch, problem):
    original = DualClassifier._publish

    def publish(self):
        original(self)
        self._stream.rows_seen += 1

    monkeypatch.setattr(DualClassifier, "_publish", publish)


@defect(AVERAGE)
def a_pickle_in_mid_stream_goes_on(monkeypatch, problem):
    a_pickle_answers_the_same(monkeypatch, problem)


@defect(AVERAGE)
def threads_may_predict_while_another_learns(monkeypatch, problem):
    original = DualClassifier._publish

    def publish(self):
        assert threading.current_thread() is threading.main_thread(), "not in this thread"
        original(self)

    monkeypatch.setattr(DualClassifier, "_publish", publish)


@defect(LONG)
def an_interrupted_fit_leaves_what_was_there(monkeypatch, problem):
    original = problem.kind.fit.__wrapped__  # without the guard of all_or_nothing

    def half(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return original(self, X, y, sample_weight)

    monkeypatch.setattr(problem.kind, "fit", half)
    monkeypatch.setattr(hostile.interruptions, "_moment", lambda case, work: 0.004)


@defect(LONG_STREAM)
def an_interrupted_stream_goes_on(monkeypatch, problem):
    original = DualClassifier.partial_fit

    def interrupted(self, *args, **kwargs):
        original.__get__(self)(*args, **kwargs)
        self.n_features_in_ += 1
        raise KeyboardInterrupt

    def moment(case, work):
        work()
        monkeypatch.setattr(problem.kind, "partial_fit", interrupted)
        return 60.0

    monkeypatch.setattr(hostile.interruptions, "_moment", moment)


def test_every_invariant_has_a_defect_to_notice():
    assert DEFECTS.keys() == INVARIANTS.keys()


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_noticed(name, monkeypatch):
    problem, break_it = DEFECTS[name]
    invariant = INVARIANTS[name]
    assert invariant.applies(problem)
    if not any(name in each.invariants for each in KNOWN):
        assert failures_of(problem, [invariant]) == []
    break_it(monkeypatch, problem)
    try:
        assert [failure.invariant for failure in failures_of(problem, [invariant])] == [name]
    finally:
        _threads._limit._holders.clear()

"""What must hold of machines that learn row by row, one after the other or in several threads."""

import pickle
import threading

import numpy as np
import scipy.sparse as sp

from hostile.checks import allowing_refusals, as_columns, bits_of, invariant, listening
from hostile.invariants import assert_within_bounds

_MOST_ROWS = 120
_JOIN_SECONDS = 60


def _learns(problem):
    return problem.has("budget") and problem.learns_row_by_row


class Stream:
    """The rows of a problem, cut into batches of random sizes."""

    def __init__(self, case, name):
        self.case = case
        self.problem = case.problem.changed(class_weight=None, warm_start=False)
        rng = case.rng(f"batches of {name}")
        count = min(len(case.y), _MOST_ROWS)
        cuts = np.flatnonzero(rng.random(count) < rng.choice([0.05, 0.3, 1.0]))
        self.batches = [part for part in np.split(np.arange(count), cuts) if len(part)]
        self.middle = int(rng.integers(1, len(self.batches) + 1))

    def begin(self):
        return self.problem.make()

    def learn(self, machine, number):
        """Learn one batch."""
        some = self.batches[number]
        weights = None if self.case.weights is None else self.case.weights[some]
        classes = self.problem.data.label_values() if number == 0 else None
        X, y = self.case.X[some], self.case.y[some]
        if not sp.issparse(X):
            X = np.array(X)  # a batch of its own, to be written over below
        with listening():
            allowing_refusals(
                self.problem,
                lambda: machine.partial_fit(X, y, classes=classes, sample_weight=weights),
            )
        if not sp.issparse(X):
            X[:] = np.nan  # it is the caller's

    def learn_all(self, machine, first=0, after=lambda number: None):
        for number in range(first, len(self.batches)):
            self.learn(machine, number)
            after(number)
        return machine

    def check(self, machine):
        """Require a machine that is sound, wherever in the stream it is."""
        scores = as_columns(machine.decision_function(self.case.X))
        assert np.isfinite(scores).all(), "scores are not finite"
        budget = self.problem.option("budget")
        assert budget is None or machine.n_basis_ <= budget
        assert_within_bounds(self.problem, machine, steps=True)


@invariant(_learns, share=0.5)
def predicting_in_between_changes_no_bit_of_what_is_learned(case):
    stream = Stream(case, "looking")
    rng = case.rng("looks")

    def look(number):
        if rng.random() < 0.5:
            stream.check(looked_at)

    looked_at = stream.begin()
    stream.learn_all(looked_at, after=look)
    stream.check(looked_at)
    left_alone = stream.learn_all(stream.begin())
    assert bits_of(left_alone, case.X) == bits_of(looked_at, case.X)


@invariant(_learns, share=0.3)
def a_pickle_in_mid_stream_goes_on(case):
    stream = Stream(case, "pickling")
    machine = stream.begin()
    for number in range(stream.middle):
        stream.learn(machine, number)
    copy = pickle.loads(pickle.dumps(machine))
    assert bits_of(copy, case.X) == bits_of(machine, case.X)
    again = pickle.loads(pickle.dumps(copy))
    for each in (machine, copy, again):
        stream.learn_all(each, stream.middle)
        stream.check(each)
    assert bits_of(copy, case.X) == bits_of(again, case.X)


@invariant(_learns, share=0.1)
def threads_may_predict_while_another_learns(case):
    stream = Stream(case, "threads")
    machine, errors, over = stream.begin(), [], threading.Event()
    stream.learn(machine, 0)

    def look():
        try:
            while not over.is_set():
                scores = machine.decision_function(case.X)
                assert np.isfinite(scores).all()
                assert np.isin(machine.predict(case.X), machine.classes_).all()
                assert len(machine.basis_indices_) >= 0
                pickle.loads(pickle.dumps(machine)).predict(case.X)
        except BaseException as error:
            errors.append(error)

    lookers = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for each in lookers:
        each.start()
    try:
        stream.learn_all(machine, 1)
    finally:
        over.set()
        for each in lookers:
            each.join(_JOIN_SECONDS)
    assert not any(each.is_alive() for each in lookers), "a thread that predicts hangs"
    if errors:
        raise errors[0]
    stream.check(machine)
    assert bits_of(machine, case.X) == bits_of(stream.learn_all(stream.begin()), case.X)

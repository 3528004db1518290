"""Ctrl-C at any moment: the estimator is as before, or offers the last good machine."""

import pickle
import signal
import time

import numpy as np
from threadpoolctl import threadpool_info

from hostile.checks import as_columns, bits_of, invariant, listening, ran_out_of_time
from hostile.streams import Stream, _learns
from widemargin._system import threads as _threads
from widemargin.estimation.fitting import LAST_GOOD
from widemargin.estimation.resuming import STATE

_LONGEST = 0.5  # seconds into a fit


def _has_timers(problem=None):
    return hasattr(signal, "setitimer")


def interrupt(work, seconds):
    """Send Ctrl-C to some work after so many seconds; what it raises by that is swallowed."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        work()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    except TypeError as error:
        # NumPy's comparison of rows says that of any exception that comes up in it.
        if "Cannot compare structured arrays" not in str(error):
            raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _blas_threads():
    return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]


def _moment(case, work):
    """Return a random moment of the time that some work takes."""
    begun = time.perf_counter()
    work()
    taken = min(time.perf_counter() - begun, _LONGEST)
    return float(case.rng("moment").random()) * taken


@invariant(_has_timers, share=0.25)
def an_interrupted_fit_leaves_what_was_there(case):
    problem, threads = case.problem, _blas_threads()
    moment = _moment(case, lambda: case.fit(problem))
    machine = problem.make()
    fitted_before = bool(case.rng("fitted").random() < 0.5)
    if fitted_before:
        machine, _ = case.fit(problem)
    before = dict(vars(machine))
    with listening():
        interrupt(lambda: machine.fit(case.X, case.y, case.weights), moment)
    after = dict(vars(machine))
    offered = after.get("history_", {}).get(LAST_GOOD)
    if offered is not None:
        assert np.isfinite(as_columns(offered.decision_function(case.X))).all()
        assert np.isin(offered.predict(case.X), offered.classes_).all()
    if offered is not None or "model_" not in after or after["model_"] is before.get("model_"):
        # What the next fit goes on from is left, if it may: with warm_start.
        goes_on = problem.has("warm_start") and problem.option("warm_start")
        allowed = {"history_", STATE} if goes_on else {"history_"}
        assert after.keys() - allowed == before.keys() - allowed
        assert all(after[name] is before[name] for name in after.keys() - allowed)
        _check_goes_on(case, machine, fitted_before)
    assert not _threads._limit._holders
    assert _blas_threads() == threads
    with listening():
        machine.set_params(**({"warm_start": False} if problem.has("warm_start") else {}))
        machine.fit(case.X, case.y, case.weights)
    assert LAST_GOOD not in machine.history_
    expected, _ = case.fit(problem.changed(warm_start=False))
    if not ran_out_of_time(machine, expected):
        assert bits_of(machine, case.X) == bits_of(expected, case.X)


def _check_goes_on(case, machine, fitted_before):
    """Require that a fit which goes on ends where one that was not interrupted does."""
    if fitted_before or STATE not in vars(machine):
        return
    resumed = pickle.loads(pickle.dumps(machine))
    with listening():
        resumed.fit(case.X, case.y, case.weights)
    if not ran_out_of_time(resumed, case.machine):
        assert bits_of(resumed, case.X) == bits_of(case.machine, case.X)


@invariant(lambda problem: _has_timers() and _learns(problem), share=0.2)
def an_interrupted_stream_goes_on(case):
    stream = Stream(case, "interrupted")
    moment = _moment(case, lambda: stream.learn_all(stream.begin()))
    machine = stream.begin()
    interrupt(lambda: stream.learn_all(machine), moment)
    learned = hasattr(machine, "model_")
    if learned:
        stream.check(machine)
    stream.learn_all(machine, first=1 if learned else 0)
    stream.check(machine)
    assert not _threads._limit._holders

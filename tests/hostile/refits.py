"""What must hold between fits of one problem: other weights, forms, threads, processes, starts."""

import os
import subprocess
import sys
import time

import numpy as np

from hostile.checks import (
    as_columns,
    assert_scores_agree,
    bits_of,
    invariant,
    is_extreme,
    is_indefinite,
    is_posix,
    ran_out_of_time,
    warned,
)
from hostile.invariants import INDEFINITE, NOISE
from hostile.kernel_values import dense, kernel_values
from hostile.problems import SECONDS, Precomputed, wraps_a_function

_TOL = 1e-4  # of the objective, to which problems are solved that are compared
_NEARLY_EXPRESSED = 1e-4  # of a squared length: what single precision may take for nothing
NOT_SOLVED = "relative gradient|sees all rows"  # warnings of machines that are no optimum
_FEW = 40  # rows of which all may be vectors
_FORK_SECONDS = 20.0  # after which a forked process hangs


def _can_be_exact(problem):
    """Return whether the optimum of a problem is found, so that two ways there can be compared."""
    if problem.estimator == "KernelClassifier":
        return True
    return (
        problem.estimator == "SparseKernelClassifier"
        and problem.option("basis") != "learned"
        and len(problem.data.numbers()) <= _FEW
    )


def exactly(problem):
    """Return the problem with settings that find its optimum."""
    if problem.estimator == "KernelClassifier":
        return problem.changed(tol=_TOL, epochs=None, warm_start=False, max_seconds=SECONDS)
    return problem.changed(
        max_basis=300,
        basis__n_candidates="all",
        tol=0.0,
        basis__gradient_tol=1e-6,
        max_iter=100,
        warm_start=False,
    )


def assert_same_optimum(problem, first, second, rounding):
    """Require that two solutions of one problem do not contradict one another.

    Each is a machine and its warnings. A dual is never above any primal; primals that are solved
    for are the same.
    """
    (machine, told), (other, also_told) = first, second
    everything = [*told, *also_told]
    if warned(everything, f"{NOISE}|{INDEFINITE}"):
        return
    if problem.estimator == "KernelClassifier":
        for low, high in ((machine, other), (other, machine)):
            excess = low.dual_objective_ - high.objective_
            assert excess <= rounding * abs(high.objective_), (
                f"a dual of {low.dual_objective_:.8g} is above a primal of {high.objective_:.8g}"
            )
        return
    if warned(everything, NOT_SOLVED):
        return
    # An objective that all but vanishes is known no better than where the fit began.
    least = 1e-9 * max(machine.history_["objective"].max(), other.history_["objective"].max())
    assert abs(machine.objective_ - other.objective_) <= rounding * machine.objective_ + least, (
        f"objectives are {machine.objective_:.8g} and {other.objective_:.8g}"
    )


def assert_no_better(first, second, rounding):
    """Require that a machine, and its warnings, is no better than one that has more vectors."""
    (machine, told), (larger, also_told) = first, second
    if not warned([*told, *also_told], NOT_SOLVED):
        assert larger.objective_ <= (1 + rounding) * machine.objective_, (
            f"the objective of {larger.n_basis_} vectors is {larger.objective_:.8g}, "
            f"of {machine.n_basis_} it is {machine.objective_:.8g}"
        )


@invariant(
    lambda problem: _can_be_exact(problem) and not problem.is_precomputed and not problem.has("cv"),
    share=0.25,
)
def weights_are_repetitions(case):
    problem = exactly(case.problem)
    counts = case.rng("counts").integers(0, 4, size=len(case.y))
    for number in range(2):  # two classes must be left
        counts[np.flatnonzero(case.problem.data.numbers() == number)[0]] = 2
    weighted = case.fit(problem, (case.X, case.y, counts.astype(np.float64)))
    if np.isin(case.machine.classes_, case.y[counts > 0]).all():
        places = np.repeat(np.arange(len(counts)), counts)
        repeated = case.fit(problem, (case.X[places], case.y[places], None))
        assert_same_optimum(problem, weighted, repeated, _rounding(problem))
        assert not np.isin(np.flatnonzero(counts == 0), weighted[0].basis_indices_).any()


def _rounding(problem):
    return 1e-3 if problem.data.dtype == "float32" else 1e-4


@invariant(lambda problem: _can_be_exact(problem) and not is_extreme(problem), share=0.25)
def dense_rows_are_csr_rows(case):
    problem = exactly(case.problem)
    other = "csr" if case.problem.data.form != "csr" else "dense"
    first, second = (
        case.fit(problem, problem.training_data(form=form)) for form in (problem.data.form, other)
    )
    assert_same_optimum(problem, first, second, _rounding(problem))


@invariant()
def predictions_of_dense_rows_are_those_of_csr_rows(case):
    other = "csr" if case.problem.data.form != "csr" else "dense"
    rows = case.problem.data.shaped(case.queries, other, "float64")
    assert_scores_agree(case.machine.decision_function(rows), case.scores, 1e-5, case.rounding)


@invariant(
    lambda problem: (
        _can_be_exact(problem) and not is_extreme(problem) and not is_indefinite(problem)
    ),
    share=0.25,
)
def float32_is_near_float64(case):
    problem = exactly(case.problem)
    X, y, weights = problem.training_data(dtype="float32")
    first, second = (case.fit(problem, (rows, y, weights)) for rows in (X, X.astype(np.float64)))
    assert first[0].basis_.dtype in (np.float32, np.intp)
    left_out = np.setdiff1d(second[0].basis_indices_, first[0].basis_indices_)
    if problem.estimator == "KernelClassifier" or len(left_out) == 0:
        assert_same_optimum(problem, first, second, 1e-3)
        return
    # A vector that the others nearly express is a duplicate to single precision sooner than to
    # double. Where C is large, what it would have added is worth something.
    assert _share_outside(first[0], dense(X), left_out) <= _NEARLY_EXPRESSED
    assert_no_better(first, second, 1e-3)


def _share_outside(machine, X, places):
    """Return the most that any of these rows has of its squared length outside the basis."""
    model, indices = machine.model_, machine.basis_indices_
    everything = np.arange(len(X)) if isinstance(model.kernel, Precomputed) else X
    K = kernel_values(model.kernel, X, everything)
    inside = np.linalg.lstsq(K[np.ix_(indices, indices)], K[np.ix_(indices, places)], rcond=1e-12)
    lengths = K[places, places]
    return ((lengths - np.sum(K[np.ix_(indices, places)] * inside[0], axis=0)) / lengths).max()


@invariant()
def predictions_of_float32_rows_are_near_those_of_float64(case):
    rows = case.problem.data.shaped(case.queries, dtype="float32")
    rounding = case.rounding
    if wraps_a_function(case.machine.model_.kernel):
        rounding *= np.finfo(np.float32).eps / 1e-13  # the function computes in their precision
    assert_scores_agree(case.machine.decision_function(rows), case.scores, 1e-5, rounding)


@invariant(share=0.3)
def two_threads_change_no_bit(case):
    if case.problem.has("cv"):
        return
    alone, _ = case.fit(case.problem.changed(n_jobs=1))
    together, _ = case.fit(case.problem.changed(n_jobs=2))
    if not ran_out_of_time(alone, together):
        assert bits_of(alone, case.X) == bits_of(together, case.X)


@invariant(share=0.2)
def a_seed_repeats_every_bit(case):
    again, _ = case.fit(case.problem)
    if not ran_out_of_time(again, case.machine):
        assert bits_of(again, case.X) == bits_of(case.machine, case.X)


_PROGRAM = """
import sys, warnings
sys.path[:0] = {paths!r}
warnings.simplefilter("ignore")
from numpy import float64, nan, inf
from hostile.checks import Case, bits_of
from hostile.problems import *
case = Case({problem!r})
print(bits_of(case.machine, case.X))
"""


@invariant(share=0.005)
def another_process_finds_the_same_bits(case):
    if ran_out_of_time(case.machine):
        return
    program = _PROGRAM.format(paths=[p for p in sys.path if p], problem=case.problem)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == bits_of(case.machine, case.X)


@invariant(lambda problem: problem.has("warm_start") and problem.has("tol"), share=0.3)
def a_warm_start_finds_no_worse_machine(case):
    problem = case.problem.changed(warm_start=True)
    machine = problem.make()
    machine.fit(case.X, case.y, case.weights)
    before, n_vectors = machine.objective_, machine.n_basis_
    with np.errstate(all="raise", under="ignore"):
        machine.fit(case.X, case.y, case.weights)
    assert np.isfinite(as_columns(machine.decision_function(case.X))).all()
    if problem.estimator == "KernelClassifier":
        assert machine.gap_ >= 0
        if machine.gap_ < np.inf and not case.warned(f"{NOISE}|{INDEFINITE}"):
            assert machine.dual_objective_ <= before * (1 + 1e-6)
    elif not (
        problem.option("basis__early_stopping")
        or problem.option("basis__solver") == "adam"
        or (is_extreme(problem) and case.warned(NOT_SOLVED))
        or machine.n_basis_ < n_vectors  # units that met, which fewer coefficients then belong to
    ):
        assert machine.objective_ <= before * (1 + _rounding(problem))


@invariant(lambda problem: is_posix(), share=0.01)
def a_fork_after_threads_predicts_and_fits(case):
    problem = case.problem.changed(n_jobs=2)
    machine, _ = case.fit(problem)
    expected = bits_of(machine, case.X)
    rows = np.tile(case.queries, (50, 1))
    machine.decision_function(rows)  # by all threads
    child = os.fork()
    if child == 0:
        status = 1
        try:
            machine.decision_function(rows)
            again, _ = case.fit(problem)
            same = ran_out_of_time(again, machine) or bits_of(again, case.X) == expected
            status = 0 if same else 2
        finally:
            os._exit(status)
    assert _wait(child, _FORK_SECONDS) == 0


def _wait(child, seconds):
    """Return the exit status of a child, which is ended where it hangs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(child, 9)
    os.waitpid(child, 0)
    raise AssertionError(f"a forked process hangs for more than {seconds:g} s")

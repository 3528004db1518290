"""Any number of threads that can be asked for, before a fit and after it.

Processes that are forked off have threads of their own.
"""

import os
from threading import Event, Thread

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    SparseKernelClassifier,
)
from widemargin._system import threads as _threads
from widemargin._system.threads import one_blas_thread, thread_count

METHODS = ["predict", "decision_function"]


@pytest.fixture
def machine(three_classes):
    return SparseKernelClassifier(5, random_state=0).fit(*three_classes)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_jobs", [100_000, -100_000, 0])
def test_a_number_of_threads_that_no_system_has_is_refused_after_the_fit_too(
    method, n_jobs, machine, three_classes
):
    rows = np.tile(three_classes[0], (50, 1))
    with pytest.raises(ValueError, match="n_jobs"):
        getattr(machine.set_params(n_jobs=n_jobs), method)(rows)
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(n_jobs)


@pytest.mark.parametrize("n_jobs", [1000, 1024])
def test_more_threads_than_there_is_work(n_jobs, machine, three_classes):
    rows = np.tile(three_classes[0], (50, 1))
    expected = machine.decision_function(rows)
    assert_array_equal(machine.set_params(n_jobs=n_jobs).decision_function(rows), expected)


def test_a_model_takes_any_number_of_threads(machine, three_classes):
    rows = np.tile(three_classes[0], (50, 1))
    expected = machine.model_.scores(rows)
    assert_array_equal(machine.model_.scores(rows, 100_000), expected)


def test_none_is_one_thread():
    assert thread_count(None) == 1
    assert thread_count(2) == 2


def blas_threads():
    return [each["num_threads"] for each in _threads._blas().info()]


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize("step", ["limit", "restore_original_limits"])
def test_an_interrupt_leaves_blas_its_threads(step, monkeypatch):
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) <= {1}
    kind = type(_threads._blas() if step == "limit" else _threads._limit._first)
    original, interrupts = getattr(kind, step), [KeyboardInterrupt]

    def interrupted(self, *args, **kwargs):
        result = original(self, *args, **kwargs)
        if interrupts and kwargs != {"limits": None}:
            raise interrupts.pop()
        return result

    monkeypatch.setattr(kind, step, interrupted)
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        pass
    assert blas_threads() == before
    assert not _threads._limit._holders


@pytest.mark.usefixtures("two_blas_threads")
@pytest.mark.parametrize(
    "make", [KernelClassifier, KernelPerceptron, KernelMIRA, SparseKernelClassifier]
)
def test_blas_has_one_thread_from_the_first_kernel_value_of_a_fit_to_the_last(make, three_classes):
    """Also while a machine is looked at for warnings: threads of BLAS spin after their work."""
    seen = []

    def kernel(left, right):
        seen.extend(blas_threads())
        return np.exp(-0.5 * ((left[:, np.newaxis] - right) ** 2).sum(axis=2))

    make(kernel=kernel, random_state=0).fit(*three_classes)
    assert set(seen) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_parallel_fit_has_threads_of_its_own(larger_problem):
    X, y = larger_problem

    def fitted():
        return SparseKernelClassifier(8, random_state=0, n_jobs=3).fit(X, y).decision_function(X)

    expected = fitted()
    is_over = Event()

    def fit_on():
        while not is_over.is_set():
            fitted()

    parent = Thread(target=fit_on)
    parent.start()
    try:
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0 if (fitted() == expected).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        is_over.set()
        parent.join()

"""What all tests share. Data sets are read from the folder that WIDEMARGIN_DATA names, if any."""

import os

# Before any library is loaded that reads it: threads that wait for work sleep. By default they
# spin for a while, and take the core from the process beside them, which runs other tests.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
# A thread of BLAS that waits for another spins all the same, until the other gets a core: where all
# cores run tests, small products took a hundred times as long. Estimators hold it to one anyway.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import faulthandler
import functools
import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_svmlight_file
from threadpoolctl import threadpool_info, threadpool_limits
from tiers import mark_thorough

PATIENCE = 10  # seconds between the time limit of a test and the end of the program
STDERR = pytest.StashKey[int]()


def time_limit(config):
    """Return the seconds that a test may take; None where pytest-timeout is not there to say."""
    if not config.pluginmanager.hasplugin("timeout"):
        return None
    limit = config.getoption("timeout")
    return float(config.getini("timeout") or 0 if limit is None else limit)


def pytest_configure(config):
    config.stash[STDERR] = os.dup(sys.__stderr__.fileno())  # pytest takes the other in tests


def pytest_unconfigure(config):
    os.close(config.stash[STDERR])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """End the program where a test hangs in native code, and show where.

    pytest-timeout makes a test that takes too long fail, by a signal that Python serves once
    native code returns. If it never does, this is what is left; it does not need the GIL.
    """
    limit = time_limit(item.config)
    if limit:
        end = limit + PATIENCE
        faulthandler.dump_traceback_later(end, exit=True, file=item.config.stash[STDERR])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Say what is thorough before pytest chooses by marks."""
    mark_thorough(items)


def pytest_addoption(parser):
    group = parser.getgroup("hostile", "random problems, see tests/hostile")
    group.addoption(
        "--hostile", type=int, metavar="N", help="ask N new random problems instead of a few fixed"
    )
    group.addoption(
        "--hostile-seed", type=int, metavar="S", help="ask the random problem of this seed, alone"
    )


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def overlapping_classes(n_rows, n_classes, n_features=4, seed=0):
    """Return rows around a centre for each class, near enough to one another to be confused."""
    rng = np.random.RandomState(seed)
    centres = rng.randn(n_classes, n_features)
    y = np.arange(n_rows) % n_classes
    return centres[y] + 0.9 * rng.randn(n_rows, n_features), y


@functools.cache
def _digits():
    return load_digits(return_X_y=True)


def read_digits():
    """Return the digits of scikit-learn, which take longer to read than many a fit."""
    X, y = _digits()
    return X.copy(), y.copy()


def seconds_to_stop(program, answer, begin=1.5):
    """Run a program, send it Ctrl-C, and return how long it took to answer.

    The program prints "begins" before the long work, and ``answer`` once it was interrupted, which
    it is ``begin`` seconds into the work.
    """
    # Who ignores Ctrl-C, as nohup does, hands that on to the programs it starts.
    restore = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    run = [sys.executable, "-c", restore + textwrap.dedent(program)]
    child = subprocess.Popen(run, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(begin)
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        assert child.stdout.readline() == f"{answer}\n"
        return time.perf_counter() - sent
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def two_blas_threads():
    """Let BLAS have two threads, for tests of who takes them and gives them back."""
    with threadpool_limits(2, user_api="blas"):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        assert all(pool["num_threads"] == 2 for pool in pools)
        yield


@pytest.fixture
def units_move(monkeypatch):
    """Let units move where rows that are held out would rather have them stay."""
    monkeypatch.setattr("widemargin.sparse_kernel.effort._START_WIDTHS", ())


@pytest.fixture
def three_classes():
    """60 rows of 4 features in 3 classes that overlap."""
    return overlapping_classes(60, 3)


@pytest.fixture
def two_classes():
    """50 rows of 4 features in 2 classes that overlap."""
    return overlapping_classes(50, 2, seed=1)


@pytest.fixture
def larger_problem():
    """3000 rows of 10 features in 4 classes: enough for two threads to have work."""
    return overlapping_classes(3000, 4, n_features=10, seed=2)


@pytest.fixture(scope="session")
def real_data():
    """Read a data set by its name, as a dense X, and y; skips where there are none to read."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA names no folder of data sets")
    multiclass = Path(folder) / "multiclass"
    index = json.loads((multiclass / "index.json").read_text(encoding="utf-8"))
    entries = {entry["name"]: entry for entry in index["datasets"]}

    @functools.cache
    def read(name, role="train"):
        entry = entries[name]
        (file,) = (part["file"] for part in entry["files"] if part["role"] == role)
        X, y = load_svmlight_file(str(multiclass / file), n_features=entry["n_features"])
        return X.toarray(), y

    return read


@pytest.fixture(scope="session")
def real_labels():
    """Read a data set of label sets by its name, as a dense X, and an indicator Y; or skip."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        pytest.skip("WIDEMARGIN_DATA names no folder of data sets")
    multilabel = Path(folder) / "multilabel"
    index = json.loads((multilabel / "index.json").read_text(encoding="utf-8"))
    entries = {entry["name"]: entry for entry in index["datasets"]}

    @functools.cache
    def read(name, role="train"):
        entry = entries[name]
        file = str(multilabel / f"{name}_{role}.svm.bz2")
        X, labels = load_svmlight_file(file, n_features=entry["features"], multilabel=True)
        Y = np.zeros((len(labels), entry["labels"]), dtype=int)
        for row, own in enumerate(labels):
            Y[row, np.asarray(own, dtype=int)] = 1
        return X.toarray(), Y

    return read

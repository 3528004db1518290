"""Ctrl-C during a long fit: it ends soon, with KeyboardInterrupt, and nothing is half fitted."""

import signal
import subprocess
import sys
import textwrap
import time

import pytest

PROGRAM = """
    import sys
    import numpy as np
    from widemargin import SparseKernelClassifier

    rng = np.random.RandomState(0)
    X = rng.randn(40_000, 20)
    y = np.argmax(X[:, :10] + rng.randn(40_000, 10), axis=1)
    machine = SparseKernelClassifier(3000, tol=0, random_state=0, {settings})
    before = dict(vars(machine))
    print("begins", flush=True)
    try:
        machine.fit(X, y)
    except KeyboardInterrupt:
        print("as before" if vars(machine) == before else sorted(vars(machine)), flush=True)
"""


def seconds_to_stop(program):
    """Run a program, interrupt it during its fit, and return how long it then took to stop."""
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "begins\n"
        time.sleep(1.5)  # well into the fit
        assert child.poll() is None
        child.send_signal(signal.SIGINT)
        sent = time.perf_counter()
        assert child.stdout.readline() == "as before\n"
        return time.perf_counter() - sent
    finally:
        child.kill()
        child.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.parametrize("settings", ["", "n_candidates='all'", "basis='per_class'", "n_jobs=2"])
def test_ctrl_c_ends_a_long_fit(settings):
    program = textwrap.dedent(PROGRAM).format(settings=settings)
    # A busy machine can hold one of them up, hardly each of three.
    assert any(seconds_to_stop(program) < 1.5 for _ in range(3))

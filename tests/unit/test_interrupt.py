"""Ctrl-C during a long fit: it ends soon, with KeyboardInterrupt, and nothing is half fitted."""

import signal
import sys

import pytest
from conftest import seconds_to_stop

can_send_signals = pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")

PROGRAM = """
    import numpy as np
    from widemargin import ChosenBasis, SparseKernelClassifier

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


@can_send_signals
@pytest.mark.parametrize(
    "settings",
    [
        "n_jobs=2",
        *(
            pytest.param(settings, marks=pytest.mark.thorough)
            for settings in ("", "basis=ChosenBasis(n_candidates='all')", "basis='per_class'")
        ),
    ],
)
def test_ctrl_c_ends_a_long_fit(settings):
    program = PROGRAM.format(settings=settings)
    # A busy machine can hold one of them up, hardly each of three.
    assert any(seconds_to_stop(program, "as before", begin=0.5) < 1.5 for _ in range(3))


@can_send_signals
def test_ctrl_c_reaches_programs_of_a_test_where_it_is_ignored():
    waits = """
        import time
        print("begins", flush=True)
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert seconds_to_stop(waits, "interrupted", begin=0.1) < 30
    finally:
        signal.signal(signal.SIGINT, before)

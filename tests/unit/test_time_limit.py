"""A test that hangs is ended, wherever it hangs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pytest_timeout")
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="waits by POSIX calls")

IN_PYTHON = """
    import time

    def test_waits():
        time.sleep(60)

    def test_comes_next():
        pass
"""
IN_NATIVE_CODE = """
    import ctypes, signal

    def test_waits():
        # Keeps the GIL, and starts anew where a signal comes: no other thread of Python runs.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        ctypes.PyDLL(None).sleep(60)
"""


def run(source, folder, patience):
    """Run tests with the conftest.py of these, and a limit of a second."""
    shared = Path(__file__).parents[1] / "conftest.py"
    text = shared.read_text(encoding="utf-8").replace("PATIENCE = 10", f"PATIENCE = {patience}")
    assert f"PATIENCE = {patience}" in text
    (folder / "conftest.py").write_text(text, encoding="utf-8")
    shutil.copy(shared.with_name("tiers.py"), folder)  # which that imports
    lines = [line.removeprefix("    ") for line in source.splitlines()]
    (folder / "test_hanging.py").write_text("\n".join(lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--timeout=1",
        "--rootdir=.",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100)


@posix_only
@pytest.mark.thorough
def test_a_test_that_waits_fails_and_the_others_run(tmp_path):
    done = run(IN_PYTHON, tmp_path, patience=30)
    assert "Timeout" in done.stdout
    assert "1 failed, 1 passed" in done.stdout


@posix_only
@pytest.mark.thorough
def test_native_code_that_hangs_is_ended_and_shown(tmp_path):
    done = run(IN_NATIVE_CODE, tmp_path, patience=1)
    assert done.returncode == 1
    assert "in test_waits" in done.stderr

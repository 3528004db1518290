"""The script that runs commands side by side in make and .ci/run: whatever fails is told."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "side_by_side.py"
PRINTS = f'"{sys.executable}" -c "print(1)"'
FAILS = f'"{sys.executable}" -c "import sys; print(2); sys.exit(3)"'


def run(*arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_all_succeed():
    done = run(f"one={PRINTS}", f"other={PRINTS}")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(lines[:2]) == ["one   | 1", "other | 1"]
    assert [line.split(",")[0] for line in lines[2:]] == ["one   : done", "other : done"]


@pytest.mark.parametrize("commands", [(PRINTS, FAILS), (FAILS, PRINTS), (FAILS, FAILS)])
def test_one_failure_fails_and_the_others_end(commands):
    done = run(f"a={commands[0]}", f"b={commands[1]}")
    assert done.returncode == 1
    for name, command in zip("ab", commands, strict=True):
        said, verdict = ("2", "FAILED (status 3)") if command == FAILS else ("1", "done")
        assert f"{name} | {said}" in done.stdout
        assert f"{name} : {verdict}" in done.stdout


@pytest.mark.parametrize("wrong", [["no command"], ["a=true", "a=true"], []])
def test_what_is_no_command_is_refused(wrong):
    done = run(*wrong)
    assert done.returncode == 1
    assert done.stderr

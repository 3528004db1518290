"""A process that runs trials, so that one that takes too long can be ended.

The parent writes a line for each trial and reads one back. Whatever other packages print goes to
the standard error, so that it cannot come between.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.report.contenders import Task, contenders
from widemargin.report.rows import some_rows
from widemargin.report.trials import Trial, run_trial

Array: TypeAlias = npt.NDArray[Any]

_START_SECONDS = 60.0
_PROGRAM = "from widemargin.report.worker import main; main()"


@dataclass(frozen=True)
class Problem:
    """All that trials are about."""

    task: Task
    X: Any
    y: Array
    folds: list[tuple[Array, Array]]
    metric: str


@dataclass(frozen=True)
class Order:
    """A trial to run: who, on which split, with how many rows, and for how long.

    ``timing`` is the time in which predictions are timed, all rows and single ones.
    """

    name: str
    split: int
    n_rows: int
    n_test: int
    seconds: float | None = None
    timing: float = 0.1


class TooSlowError(Exception):
    """A trial was ended, as it took longer than allowed."""


class FailedError(Exception):
    """A trial ended with an error."""


class Worker:
    """The parent's side: starts the process, asks it, and ends it."""

    def __init__(self, problem: Problem) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="widemargin-")
        self._path = Path(self._folder.name) / "problem"
        self._path.write_bytes(pickle.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL))
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._folder.cleanup()

    def run(self, order: Order, limit: float) -> Trial:
        """Run a trial.

        Raises
        ------
        TooSlowError
            After ``limit`` seconds.
        FailedError
            If the contender raised an error, or its process died.
        """
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asdict(order)) + "\n")
            self._process.stdin.flush()
        except OSError:
            self._end()
            raise FailedError("its process died") from None
        found = self._read(limit)
        if "error" in found:
            raise FailedError(found["error"])
        return Trial(**found)

    @property
    def is_running(self) -> bool:
        """Whether there is a process; one that was ended is started again when it is needed."""
        return self._process is not None

    def start(self) -> None:
        """Start the process, where there is none, and wait until it is there."""
        if self.is_running:
            return
        package = str(Path(__file__).parents[2])
        paths = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            # Processes that it starts are ended with it; Ctrl-C is for the parent to handle.
            start_new_session=True,
        )
        self._replies: queue.Queue[str] = queue.Queue()
        threading.Thread(
            target=_pass_on, args=(self._process.stdout, self._replies), daemon=True
        ).start()
        self._read(_START_SECONDS)  # it says that it is there

    def _read(self, limit: float) -> dict[str, Any]:
        try:
            line = self._replies.get(timeout=max(limit, 0.01))
        except queue.Empty:
            self._end()
            raise TooSlowError from None
        except BaseException:
            self._end()
            raise
        if not line:
            self._end()
            raise FailedError("its process died, maybe for want of memory")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> None:
        if self._process is None:
            return
        process, self._process = self._process, None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


def _pass_on(lines: Any, replies: queue.Queue[str]) -> None:
    with contextlib.suppress(ValueError, OSError):  # closed by the other thread
        for line in lines:
            replies.put(line)
    replies.put("")


def carry_out(problem: Problem, order: Order) -> Trial:
    """Run a trial in this process."""
    contender = next(one for one in contenders(problem.task) if one.name == order.name)
    train, test = problem.folds[order.split]
    train = train[some_rows(problem.y[train], order.n_rows, problem.task.seed)]
    test = test[some_rows(problem.y[test], order.n_test, problem.task.seed)]
    return run_trial(
        contender,
        problem.task,
        problem.X,
        problem.y,
        train,
        test,
        metric=problem.metric,
        seconds=order.seconds,
        timing=order.timing,
    )


def main() -> None:
    """Serve orders until the standard input ends."""
    replies, sys.stdout = sys.stdout, sys.stderr
    problem: Problem = pickle.loads(Path(sys.argv[1]).read_bytes())

    def reply(found: dict[str, Any]) -> None:
        replies.write(json.dumps(found, default=_number) + "\n")
        replies.flush()

    reply({})
    for line in sys.stdin:
        try:
            reply(asdict(carry_out(problem, Order(**json.loads(line)))))
        except Exception as error:
            first = next(iter(str(error).splitlines()), "")
            reply({"error": f"{type(error).__name__}: {first}"})


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else str(value)

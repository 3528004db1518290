"""How many threads, and who may use them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from widemargin._system.parameters import check_jobs


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for, within the CPU quota of a cgroup."""
    check_jobs(n_jobs)
    return int(effective_n_jobs(n_jobs))


@lru_cache(maxsize=1)
def _blas() -> Any:
    return ThreadpoolController().select(user_api="blas")


class _Limit:
    """A limit on BLAS that several threads may hold at once.

    Most BLAS keep the number of threads for the process: there the last holder that leaves puts
    back what there was before the first came, lest others go on with more threads and round
    otherwise. Those that are built on OpenMP keep it for each thread: there everyone puts it back.
    An interrupt may come at any moment: what there was is known before anything is changed, and
    leaving can be done twice.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders: set[object] = set()
        self._first: Any = None
        self._first_of_thread: Any = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        holder = object()
        try:
            with self._lock:
                if not self._holders:
                    # These change nothing yet.
                    self._first_of_thread = (
                        _blas().select(threading_layer="openmp").limit(limits=None)
                    )
                    self._first = _blas().limit(limits=None)
                self._holders.add(holder)
                _blas().limit(limits=1)
            yield
        finally:
            try:
                self._leave(holder)
            except KeyboardInterrupt:
                self._leave(holder)
                raise

    def begin_anew(self) -> None:
        """Forget holders that were threads of the process which this one was forked off."""
        self._lock = Lock()
        if self._holders:
            self._holders.clear()
            self._first.restore_original_limits()

    def _leave(self, holder: object) -> None:
        with self._lock:
            self._holders.discard(holder)
            if self._first is None:
                return
            (self._first_of_thread if self._holders else self._first).restore_original_limits()


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.begin_anew)


def one_blas_thread() -> AbstractContextManager[None]:
    """Keep BLAS to one thread a caller: the native passes bring their own threads."""
    return _limit.hold()

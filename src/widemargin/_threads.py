"""How many threads, and who may use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from widemargin import _native


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that ``n_jobs`` stands for; 1 in a build without OpenMP."""
    return int(effective_n_jobs(n_jobs)) if _native.has_threads else 1


@lru_cache(maxsize=1)
def _controller() -> Any:
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread a caller: the native passes bring their own threads."""
    with _controller().limit(limits=1, user_api="blas"):
        yield

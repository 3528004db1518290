"""Warnings that point at the line of the user, however deep they arise."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# scikit-learn's wrappers of fit stand between a method of this package and who called it.
_OURS = ("widemargin", "sklearn")


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn with the place outside of this package from which it was called.

    Parameters
    ----------
    message : str or Warning
        What happened, by how much, and what to do.
    category : type of Warning, default=UserWarning
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def silence() -> Iterator[None]:
    """Mute warnings: the last fit says them again where they hold for that.

    Only in the main thread of a process, for filters belong to the process: threads that set them
    at the same time would leave them set for good.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OURS

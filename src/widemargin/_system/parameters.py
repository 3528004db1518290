"""Checks of constructor parameters. Each says what is wrong, and what would be right."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

_MOST_JOBS = 1024


def check_integer(name: str, value: Any, least: int, most: float = np.inf) -> None:
    """Require an integer from ``least`` to ``most``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < least:
        raise ValueError(f"{name} must be {least} or more, got {value}.")
    if int(value) > most:
        raise ValueError(f"{name} must be {most} or less, got {value}.")


def check_real(name: str, value: Any, *, positive: bool = False, least: float = -np.inf) -> None:
    """Require a finite number, positive or of at least ``least``."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r} of type {type(value).__name__}.")
    if not np.isfinite(float(value)):
        raise ValueError(f"{name} must be finite, got {value}.")
    if positive and value <= 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    if value < least:
        raise ValueError(f"{name} must be {least:g} or more, got {value}.")


def check_jobs(n_jobs: Any) -> None:
    """Require None or a number of threads, of which negative ones count from all cores."""
    if n_jobs is None:
        return
    check_integer("n_jobs", n_jobs, least=-_MOST_JOBS, most=_MOST_JOBS)
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: -1 is all cores, 1 a single thread.")


def check_float_dtype(dtype: Any) -> np.dtype[Any]:
    """Require single or double precision, by name or as NumPy's type; return the dtype."""
    name = np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else dtype
    check_choice("dtype", name, ("float32", "float64"))
    return np.dtype(name)


def check_flag(name: str, value: Any) -> None:
    """Require True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {value!r}.")


def check_verbose(verbose: Any) -> None:
    """Require a level: 0 or False is silent."""
    if not isinstance(verbose, (bool, np.bool_)):
        check_integer("verbose", verbose, least=0)


def check_choice(name: str, value: Any, choices: Sequence[str], otherwise: str = "") -> None:
    """Require one of the names in ``choices``; ``otherwise`` says what else would do."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}{otherwise}; got {value!r}.")


def check_sizes(sizes: Any) -> None:
    """Require "auto", a number of vectors, or several that rise."""
    if isinstance(sizes, str):
        check_choice("max_basis", sizes, ("auto",), ", an integer, or a sequence of these")
        return
    if np.ndim(sizes) == 0:
        check_integer("max_basis", np.asarray(sizes)[()], least=1)
        return
    for size in sizes:
        check_integer("max_basis", size, least=1)
    if len(sizes) == 0 or any(after <= before for before, after in pairwise(sizes)):
        raise ValueError(f"max_basis must be sizes that rise, at least one, got {sizes!r}.")


def check_positive_numbers(name: str, values: Any) -> None:
    """Require "auto", or a sequence of positive numbers."""
    if isinstance(values, str):
        check_choice(name, values, ("auto",), ", or positive numbers")
        return
    if np.ndim(values) != 1 or len(values) == 0:
        raise ValueError(f"{name} must be 'auto' or a sequence of numbers, got {values!r}.")
    for value in values:
        check_real(name, value, positive=True)

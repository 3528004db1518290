"""One fit, judged; and many of them at once."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Trial:
    accuracy: float  # percent
    converged: bool
    n_support: int | None = None  # vectors that the machine ended with, where it chooses itself


def fit_and_score(
    estimator: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> Trial:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        estimator.fit(X, y)
    converged = not any(issubclass(each.category, ConvergenceWarning) for each in caught)
    support = getattr(estimator, "support_", None)
    return Trial(
        100.0 * float(estimator.score(X_test, y_test)),
        converged,
        None if support is None else len(support),
    )


def run(jobs: Iterable[tuple[Any, ...]]) -> list[Trial]:
    """Run ``fit_and_score`` on each tuple of arguments: a process a core, each of one thread."""
    return list(Parallel(n_jobs=-1)(delayed(fit_and_score)(*job) for job in jobs))


def say(message: str) -> None:
    """Report progress, apart from the results."""
    print(message, file=sys.stderr, flush=True)

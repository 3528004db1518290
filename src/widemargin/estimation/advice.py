"""What is said of machines that are solved to a duality gap, where they are not what was asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from widemargin._system.warnings import warn_user
from widemargin.kernels import Rows

_PROBED_PATTERNS = 200
_INDEFINITE = 1e-5  # of the largest eigenvalue: below minus this one is no rounding error


def warn_of_kernel(machine: Any, rows: Rows, indices: npt.NDArray[np.intp]) -> bool:
    """Warn of a kernel that is not positive semi-definite among these rows; return if it is so.

    Of the machine, ``kernel`` and ``offset`` are looked at.
    """
    lowest = _lowest_eigenvalue(machine, rows, indices)
    if lowest >= -_INDEFINITE:
        return False
    warn_user(
        "The kernel is not positive semi-definite: among the support patterns its matrix "
        f"has an eigenvalue of {lowest:.2g} times the largest. The machine is a point that "
        "no step improves, which need not be the best one, and gap_ bounds nothing.",
        UserWarning,
    )
    return True


def warn_of_the_end(
    estimator: Any, attributes: dict[str, Any], gap_limit: float, *, is_indefinite: bool
) -> None:
    """Warn of a fit that did not come to its tolerance."""
    reason, gap = attributes["stop_reason_"], attributes["gap_"]
    if reason == "stuck" and is_indefinite:
        return  # as it must be where the kernel is not positive semi-definite
    reached = (
        "and the duality gap was not computed"
        if gap == np.inf
        else f"at a duality gap of {gap:.3g}"
    )
    if reason == "max_seconds":
        warn_user(
            f"The fit was ended by max_seconds={estimator.max_seconds:g}, {reached}. The machine "
            "is the one it had come to.",
            ConvergenceWarning,
        )
    elif reason == "epochs" and not estimator._is_online():
        warn_user(
            f"The fit ended after epochs={estimator.epochs}, {reached}. Raise epochs, or leave it "
            "at None.",
            ConvergenceWarning,
        )
    elif reason == "max_iter":
        warn_user(
            f"The fit ended after max_iter={estimator.max_iter} steps, {reached}. Raise max_iter, "
            "or leave it at None.",
            ConvergenceWarning,
        )
    elif reason == "stuck":
        warn_user(
            f"The fit ended {reached}, where {gap_limit:.3g} was asked for: no step gains "
            "anything that rounding does not undo. Raise tol, lower C, or scale the features.",
            ConvergenceWarning,
        )


def some_of(count: int) -> npt.NDArray[np.intp]:
    """Return the places of a few patterns among so many, evenly spread."""
    return np.arange(0, count, max(1, count // _PROBED_PATTERNS))[:_PROBED_PATTERNS]


def _lowest_eigenvalue(machine: Any, rows: Rows, indices: npt.NDArray[np.intp]) -> float:
    """Return the lowest eigenvalue of the kernel matrix of some rows, relative to the largest."""
    kernel = machine.kernel
    if kernel.is_positive or len(indices) == 0:
        return 0.0
    some = indices[some_of(len(indices))]
    values = kernel.block(rows[some], kernel.select(rows, some)).astype(np.float64)
    each = np.linalg.eigvalsh((values + values.T) / 2 + machine.offset)
    return float(each[0] / max(abs(each[-1]), abs(each[0]), np.finfo(np.float64).tiny))

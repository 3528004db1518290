"""What is said of an exact machine that is not what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from widemargin._system.warnings import warn_user
from widemargin.estimation.advice import some_of, warn_of_kernel, warn_of_the_end
from widemargin.kernels import Rows
from widemargin.solvers.duals.expansion import DualExpansion

Array: TypeAlias = npt.NDArray[Any]

_NOISY = 1e-3  # of the dual, that rounding of kernel values may change
_NOISY_LOSSES = 1.5e-3  # of the primal, by losses that are there by rounding alone


def warn_of_fit(
    estimator: Any,
    machine: DualExpansion,
    attributes: dict[str, Any],
    rows: Rows,
    gap_limit: Callable[[float], float],
) -> None:
    """Warn where the kernel, rounding or an early end keep a machine from being exact."""
    is_indefinite = warn_of_kernel(machine, rows, attributes["basis_indices_"])
    limit = gap_limit(attributes["objective_"])
    _warn_of_rounding(machine, attributes, rows, limit)
    if attributes["model_"].n_basis == 0:
        warn_user(
            "The machine has no support pattern: all scores are zero. Lower tau, or check "
            "the weights.",
            ConvergenceWarning,
        )
    warn_of_the_end(estimator, attributes, limit, is_indefinite=is_indefinite)


def _warn_of_rounding(
    machine: DualExpansion, attributes: dict[str, Any], rows: Rows, gap_limit: float
) -> None:
    of_dual, of_losses = _rounding_noise(machine, rows, attributes)
    is_noisy = of_dual > _NOISY * abs(attributes["dual_objective_"])
    limit = min(_NOISY_LOSSES * attributes["objective_"], gap_limit)
    if is_noisy or (attributes["gap_"] < np.inf and of_losses > limit):
        warn_user(
            "Kernel values are of single precision, and here so large that rounding alone may "
            f"change the objective by about {of_dual + of_losses:.2g}, so that gap_ says too "
            "little. Scale the features, for example by sklearn.preprocessing.StandardScaler, or "
            "lower C.",
            ConvergenceWarning,
        )


def _rounding_noise(
    machine: DualExpansion, rows: Rows, attributes: dict[str, Any]
) -> tuple[float, float]:
    """Return about how much the dual and the losses owe to kernel values that are rounded.

    It is measured: scores of some support patterns as the machine has them, against sums of values
    of double precision. Errors of rows that are alike are alike, too, so that no formula would do.
    """
    kernel, indices = machine.kernel, attributes["basis_indices_"]
    if len(indices) == 0:
        return 0.0, 0.0
    supports, some = machine.supports(), some_of(len(indices))
    exact = _exact_scores(machine, rows, indices, indices[some], supports.coef)
    errors = machine.scores_of(supports.slots[some]) - exact
    of_dual = 0.5 * abs(float(np.sum(errors * supports.coef[some]))) * len(indices) / len(some)
    # That is a sum of errors of either sign, which may happen to cancel.
    typical = 0.3 * np.finfo(np.float32).eps * kernel.magnitude(rows)[indices]
    of_dual = max(of_dual, float(typical @ np.square(supports.coef).sum(axis=1)))

    labels, caps = machine.batch.labels.astype(np.intp), machine.batch.caps
    others = some_of(len(labels))
    scores = _exact_scores(machine, rows, indices, others, supports.coef)
    losses, most = _losses(machine, scores, labels[others])
    if len(others) == len(labels) and attributes["gap_"] < np.inf:  # nothing has to be guessed
        norm = float(np.sum(scores[indices] * supports.coef))
        return of_dual, abs(0.5 * norm + float(caps @ losses) - attributes["objective_"])
    own = np.take_along_axis(errors, labels[indices[some]][:, np.newaxis], axis=1)
    error = float(np.abs(errors - own).max(axis=1).mean())
    # A row that is right by more than the error has no loss in either precision.
    lost = np.clip(error + most, 0.0, error)
    return of_dual, float(caps[others] @ lost) * len(labels) / len(others)


def _losses(
    machine: DualExpansion, scores: Array, labels: npt.NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return the losses of rows, and by how much the worst class of each violates the margin."""
    own = labels[:, np.newaxis]
    violations = machine.margin + scores - np.take_along_axis(scores, own, axis=1)
    np.put_along_axis(violations, own, -np.inf, axis=1)
    most = violations.max(axis=1)
    hinges = np.maximum(violations, 0.0)
    losses = hinges.max(axis=1) if machine.loss == "crammer_singer" else hinges.sum(axis=1)
    return losses, most


def _exact_scores(
    machine: DualExpansion,
    rows: Rows,
    patterns: npt.NDArray[np.intp],
    places: npt.NDArray[np.intp],
    coef: Array,
) -> Array:
    """Return the scores of the rows at some places, by values of double precision."""
    basis = machine.kernel.select(rows, patterns)
    values = machine.kernel.double_block(rows[places], basis)
    return np.asarray((values + machine.offset) @ coef)

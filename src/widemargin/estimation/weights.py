"""What rows count: weights that users give, and C."""

from __future__ import annotations

from inspect import signature
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight

from widemargin._system.parameters import check_real
from widemargin.kernels import Rows

Array: TypeAlias = npt.NDArray[Any]

_LARGEST_WEIGHT = 1e15  # of a row, C included
# Newer versions of scikit-learn refuse weights that are all zero unless told otherwise. A batch of
# partial_fit may have no others; a fit refuses them in its own words.
_ZEROS_ALLOWED = (
    {"allow_all_zero_weights": True}
    if "allow_all_zero_weights" in signature(_check_sample_weight).parameters
    else {}
)


def check_loss_weight(C: Any, things: str = "classes") -> None:
    """Require a positive number that is finite."""
    if isinstance(C, Real) and np.isposinf(float(C)):
        raise ValueError(
            f"C={C} asks for a machine that errs on no row, which exists only where the "
            f"{things} can be separated. Give C a large number instead, such as 1e6: where they "
            "can be separated, it gives that machine."
        )
    check_real("C", C, positive=True)


def checked_weights(sample_weight: Any, X: Rows, *, some: bool = True) -> Array:
    """Return the weights of rows, ones where there are none.

    With ``some`` it is an error if all are zero.
    """
    weights: Array = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True, **_ZEROS_ALLOWED
    )
    if some and not weights.any():
        raise ValueError("sample_weight is zero for every row; there is nothing to learn from.")
    return weights


def check_largest(largest: float) -> None:
    """Require that the weight of a row, times C, is a number that native code computes with."""
    if largest > _LARGEST_WEIGHT:
        raise ValueError(
            f"C times the weight of a row comes to {largest:.1e}, which is more than single "
            f"precision can compute with ({_LARGEST_WEIGHT:.0e}). Lower C or the weights."
        )

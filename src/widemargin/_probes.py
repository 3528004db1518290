"""What single precision costs a machine: rows to measure it on."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def middle_of(vectors: Array) -> npt.NDArray[np.float64]:
    """Return a point amid vectors, from which to see them.

    It is the median of each feature, as one far vector would move the mean; a number of single
    precision, so that rows of single precision close to it are moved without rounding; and zero
    where it is out of that range, or where there are no vectors.
    """
    if len(vectors) == 0:
        return np.zeros(vectors.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        middle = np.median(vectors, axis=0).astype(np.float32).astype(np.float64)
    return np.where(np.isfinite(middle), middle, 0.0)

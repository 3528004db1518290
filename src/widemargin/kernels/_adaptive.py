"""The kernel of a learned basis: Gaussian, of learned shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin import _native
from widemargin.kernels._base import DistanceKernel
from widemargin.kernels._rows import Array, Rows, as_native_rows


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRBF(DistanceKernel):
    """Gaussian kernel of learned shape, ``exp(-widths[j] |(x - b_j) metric|^2)``.

    Each basis vector has a width of its own, and all share a metric. So it belongs to one basis:
    ``block`` takes as many vectors as there are widths.

    Parameters
    ----------
    widths : ndarray of shape (n_basis,)
        Positive; larger ones are narrower.
    metric : ndarray of shape (n_features,) or (n_features, n_mapped), default=None
        Weights of the features, or a linear map of them. None leaves them as they are.
    """

    widths: Array
    metric: Array | None = None

    def __post_init__(self) -> None:
        if self.widths.ndim != 1 or not (np.isfinite(self.widths) & (self.widths > 0)).all():
            raise ValueError("widths must be a list of positive numbers.")
        if self.metric is not None and (
            self.metric.ndim not in (1, 2)
            or self.metric.size == 0
            or not np.isfinite(self.metric).all()
        ):
            raise ValueError("metric must hold finite numbers, on one axis or on two.")

    @property
    def is_positive(self) -> bool:
        """False: of two vectors of unlike width, either has another value with the other."""
        return False

    def __repr__(self) -> str:
        shape = None if self.metric is None else self.metric.shape
        return f"AdaptiveRBF({len(self.widths)} widths, metric of shape {shape})"

    def native(self) -> Any:
        """Return the kernel of the native code that this is."""
        none = np.empty((0, 0))
        metric = none if self.metric is None else _as_double(self.metric)
        weights, mapping = (metric, none) if metric.ndim == 1 else (none.ravel(), metric)
        return _native.AdaptiveRBFKernel(_as_double(self.widths), weights, mapping)

    def lengths(self, gaps: Array, vectors: Array) -> Array:
        """Return ``sqrt(widths[j]) |gap metric|`` for gap j."""
        if self.metric is not None:
            gaps = gaps * self.metric if self.metric.ndim == 1 else gaps @ self.metric
        return np.asarray(np.sqrt(self.widths[: len(gaps)]) * np.linalg.norm(gaps, axis=1))

    def _fill(self, rows: Rows, basis: Rows, n_threads: int, dtype: Any) -> Array:
        if basis.shape[0] != len(self.widths):
            raise ValueError(
                f"The kernel has {len(self.widths)} widths, one for each vector of its basis; got "
                f"{basis.shape[0]} vectors."
            )
        out = np.empty((rows.shape[0], basis.shape[0]), dtype=dtype)
        dense = basis.toarray() if sp.issparse(basis) else basis
        dense = np.ascontiguousarray(dense, dtype=rows.dtype)
        _native.kernel_block(self.native(), as_native_rows(rows), dense, out, n_threads)
        return out


def _as_double(values: Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)

"""An expansion whose kernel maps rows, as a C file computes it: the row is mapped once.

The tables then hold mapped vectors. Rounded, these need not be the image of any vector, so that
such a model is one of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.precision import Probes, middle_of
from widemargin.export._widths import scale_before
from widemargin.kernels import AdaptiveRBF, Rows
from widemargin.models import KernelExpansion, Model

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class MappedExpansion(Model):
    """Scores of an expansion in mapped vectors, ``f(x) = mapped((x - origin) map) + x linear``.

    Attributes
    ----------
    source : KernelExpansion
        What it was made of.
    origin : ndarray of shape (n_features,)
        Amid the vectors, so that rows far from zero lose nothing when they are mapped.
    map : ndarray of shape (n_features, n_mapped)
    mapped : KernelExpansion
        In a kernel without a metric.
    linear : ndarray of shape (n_features, n_outputs) or None
        Of the row as it is, which a part within ``mapped`` would not see.
    """

    source: KernelExpansion
    origin: Array
    map: Array
    mapped: KernelExpansion
    linear: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", self.mapped.intercept)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.source.n_features

    def scores(
        self, rows: Rows, n_threads: int = 1, *, dtype: Any = None, check: bool = False
    ) -> Array:
        """Return the scores of rows, of shape (n_rows, n_outputs)."""
        seen = (_dense(rows) - self.origin) @ self.map
        scores = self.mapped.scores(seen, n_threads, dtype=dtype, check=check)
        return scores if self.linear is None else scores + _dense(rows) @ self.linear

    def probes(self) -> Probes:
        """Return rows on which to measure what single precision loses."""
        return self.source.probes()

    def _build(self, dtype: Any) -> Any:
        return None  # it only says what a file will compute


def as_computed(model: Model) -> Model:
    """Return a model in the form that a C file has it: with mapped vectors, if rows are mapped.

    An extreme width is in the metric, so that it is applied before anything is squared.
    """
    if not isinstance(model, KernelExpansion) or not isinstance(model.kernel, AdaptiveRBF):
        return model
    metric = model.kernel.metric
    scale = scale_before(float(model.kernel.widths.max(initial=0.0)), 2)
    widths = model.kernel.widths.astype(np.float64) / scale / scale
    if metric is None or metric.ndim == 1:
        if scale == 1:
            return model
        weights = np.ones(model.n_features) if metric is None else metric.astype(np.float64)
        return replace(model, kernel=AdaptiveRBF(widths, scale * weights))
    vectors = _dense(model.basis)
    origin, seen_by = middle_of(vectors), scale * metric.astype(np.float64)
    mapped = KernelExpansion(
        AdaptiveRBF(widths),
        (vectors - origin) @ seen_by,
        model.coef,
        model.intercept,
    )
    return MappedExpansion(model, origin, seen_by, mapped, model.linear)


def expansion_of(model: Any) -> Any:
    """Return what is summed once the row is mapped: the model itself, if rows are not mapped."""
    return model.mapped if isinstance(model, MappedExpansion) else model


def _dense(rows: Rows) -> Array:
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)

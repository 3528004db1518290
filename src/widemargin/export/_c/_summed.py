"""An expansion in a sum of kernels, as a C file computes it: a machine for each part, added up.

A part has the columns that its kernel sees, and everything that a machine of its own would have;
its weight is in its coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin._system.precision import Probes
from widemargin.kernels import KernelPart, KernelSum, Rows
from widemargin.models import KernelExpansion, Model

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class SummedParts(Model):
    """Scores that are sums of those of parts, ``f(x) = sum part(x[columns])``.

    Attributes
    ----------
    source : KernelExpansion
        What it was made of.
    seen : tuple of KernelPart
        The columns that parts see, and what they do with them.
    parts : tuple of Model
        The first has the intercepts.
    """

    source: KernelExpansion
    seen: tuple[KernelPart, ...]
    parts: tuple[Model, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "intercept", self.parts[0].intercept)

    @property
    def n_features(self) -> int:
        """Number of features of a row."""
        return self.source.n_features

    def scores(
        self, rows: Rows, n_threads: int = 1, *, dtype: Any = None, check: bool = False
    ) -> Array:
        """Return the scores of rows, of shape (n_rows, n_outputs)."""
        total: Any = 0.0
        for seen, part in zip(self.seen, self.parts, strict=True):
            total = total + part.scores(seen.of(rows), n_threads, dtype=dtype, check=check)
        return np.asarray(total)

    def probes(self) -> Probes:
        """Return rows on which to measure what single precision loses."""
        return self.source.probes()

    def _build(self, dtype: Any) -> Any:
        return None  # it only says what a file will compute


def in_parts(model: KernelExpansion) -> SummedParts:
    """Return an expansion in a sum of kernels as the sum of its parts, linear ones as maps."""
    assert isinstance(model.kernel, KernelSum)
    seen, parts = list(model.kernel), []
    for number, part in enumerate(seen):
        expansion = KernelExpansion(
            part.kernel,  # type: ignore[arg-type]  # that of a machine has no kernel by its name
            part.of(model.basis),
            part.weight * model.coef,
            np.zeros_like(model.intercept) if number else model.intercept,
        )
        parts.append(expansion.collapsed() or expansion)
    return SummedParts(model, tuple(seen), tuple(parts))

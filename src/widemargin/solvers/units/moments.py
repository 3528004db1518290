"""Where Adam is: all parameters of a machine end to end, and running means of their gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.units.values import Units

Array: TypeAlias = npt.NDArray[Any]

#: The parts of a machine, in the order in which native code takes them.
PARTS = ("coefficients", "centres", "log_widths", "log_weights", "mapping")
#: How fast the means forget, that of the squares, and what keeps steps finite.
ADAM_RATES = (0.9, 0.999, 1e-8)


@dataclass(frozen=True)
class Moments:
    """Parameters end to end, running means of their gradients and of the squares of these."""

    parameters: Array
    means: Array
    squares: Array
    n_steps: int = 0

    @classmethod
    def begin(cls, coefficients: Array, units: Units) -> Self:
        """Return moments of nothing yet."""
        parts = [coefficients, *(getattr(units, name) for name in PARTS[1:])]
        laid = np.concatenate([np.ravel(part) for part in parts if part is not None])
        return cls(laid.astype(np.float64), np.zeros(len(laid)), np.zeros(len(laid)))

    def copy(self) -> Self:
        """Return the same in memory of its own, to be written to."""
        return type(self)(
            self.parameters.copy(), self.means.copy(), self.squares.copy(), self.n_steps
        )

    def with_coefficients(self, coefficients: Array) -> Self:
        """Return the same with other coefficients."""
        laid = self.parameters.copy()
        laid[: coefficients.size] = coefficients.ravel()
        return replace(self, parameters=laid)

    def machine(self, like: Units, n_outputs: int) -> tuple[Units, Array]:
        """Return units, of the shapes of others, and coefficients."""
        parts: dict[str, Any] = {}
        end = len(self.parameters)
        for name in reversed(PARTS[1:]):
            other = getattr(like, name)
            if other is None:
                parts[name] = None
                continue
            parts[name] = self.parameters[end - other.size : end].reshape(other.shape).copy()
            end -= other.size
        coefficients = self.parameters[:end].reshape(-1, n_outputs).copy()
        return replace(like, **parts), coefficients

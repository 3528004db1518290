"""A linear part beside the units: what it sees of the rows, and what that is in their features.

    F = H A + U W + b,    u_i = (x_i - mean) / (scale sqrt(n_features))

Features are standardised whatever the metric of the units, and all of them are seen, where units
may see a few principal directions alone: these hold most of the variance, not of what tells classes
apart. A row u is about as long as 1, the value of a unit at its centre, so that a coefficient of
either costs about the same.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.solvers.units.values import robust_spread, spread_of

Array: TypeAlias = npt.NDArray[Any]

#: Features of which a linear part is fitted, at the most: a Newton step factorises a matrix with a
#: row for each.
MOST_LINEAR_FEATURES = 2000


class LinearPart:
    """The features as a linear part sees them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    share : ndarray of shape (n_rows,)
        How much each row counts; they sum to 1.
    """

    def __init__(self, rows: Array, share: Array) -> None:
        n_features = rows.shape[1]
        if n_features > MOST_LINEAR_FEATURES:
            raise ValueError(
                f"linear_part=True takes {MOST_LINEAR_FEATURES} features at the most, and X has "
                f"{n_features}. Set linear_part=False, or take fewer features (TruncatedSVD)."
            )
        self._mean = share @ rows.astype(np.float64)
        spread = robust_spread(rows, spread_of(rows, self._mean, share))
        # A feature that is always the same counts for nothing, whatever rounding makes of its mean.
        self._scale = np.where(spread > 0, spread, np.inf) * np.sqrt(n_features)

    def see(self, rows: Array) -> Array:
        """Return rows as the linear part sees them."""
        return np.ascontiguousarray((rows - self._mean) / self._scale, dtype=np.float32)

    def in_features(self, coefficients: Array, intercept: Array) -> tuple[Array, Array]:
        """Return coefficients of the features as they are, and the intercepts that go with them.

        Parameters
        ----------
        coefficients : ndarray of shape (n_features, n_outputs)
            Of what the linear part sees.
        intercept : ndarray of shape (n_outputs,)
        """
        linear = coefficients / self._scale[:, np.newaxis]
        return linear, intercept - self._mean @ linear

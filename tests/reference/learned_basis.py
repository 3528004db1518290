"""Gaussian units in float64, every pair of row and unit on its own.

    1/2 |A|^2 + 1/2 |W|^2 + 1/2 |b|^2 + sum_i weight_i loss(f_i, y_i),   F = H A + U W + b,
    h_ij = exp(-width_j (sum_d r_d^2 (z_id - c_jd)^2 + r_0^2 rest_i)),   z_i = x_i P

in the parameters log width_j, log r_d (or one for all d), c_j and P.
"""

import numpy as np

from reference.losses import twin
from reference.machine import FixedBasis


def adaptive_rbf(rows, vectors, widths, metric=None):
    """Return ``exp(-widths[j] |(x - b_j) metric|^2)``."""
    rows, vectors = np.asarray(rows, dtype=np.float64), np.asarray(vectors, dtype=np.float64)
    apart = rows[:, None, :] - vectors
    if metric is not None:
        apart = apart * metric if metric.ndim == 1 else apart @ metric
    return np.exp(-widths * np.sum(apart**2, axis=2))


class LearnedTwin:
    """The objective of units, on rows in working coordinates.

    ``units`` are a dictionary of centres, log_widths, log_weights and mapping (or None).
    """

    def __init__(
        self, loss, targets, weights, n_outputs, rows, rest=None, fit_intercept=True, linear=None
    ):
        self.loss, self.targets, self.weights = loss, targets, weights
        self.linear = np.empty((len(rows), 0)) if linear is None else np.float64(linear)
        self.n_outputs, self.fit_intercept = n_outputs, fit_intercept
        self.rows = np.asarray(rows, dtype=np.float64)
        self.rest = np.zeros(len(rows)) if rest is None else np.asarray(rest, dtype=np.float64)

    def _apart(self, units):
        """Return squared differences, weighted, for each row, unit and dimension; and the rest."""
        mapped = self.rows if units["mapping"] is None else self.rows @ units["mapping"]
        squares = np.exp(2.0 * units["log_weights"])
        difference = mapped[:, None, :] - units["centres"]
        return difference, squares * difference**2, squares[0] * self.rest

    def unit_values(self, units):
        _, apart, rest = self._apart(units)
        return np.exp(-np.exp(units["log_widths"]) * (apart.sum(axis=2) + rest[:, None]))

    def _fixed(self, units):
        values = np.hstack([self.unit_values(units), self.linear])
        same = np.eye(values.shape[1])
        parts = (self.loss, self.targets, self.weights, values, same, self.n_outputs)
        return FixedBasis(*parts, self.fit_intercept)

    def optimal_value(self, units):
        """Return the least objective at these units."""
        fixed = self._fixed(units)
        return fixed.value(fixed.solve_newton())

    def value(self, units, coefficients):
        """Return the objective; the intercept is the first row of the coefficients, if any."""
        scores = self._scores(units, coefficients)
        row_loss = twin(self.loss).value
        losses = [row_loss(row, target) for row, target in zip(scores, self.targets, strict=True)]
        return 0.5 * np.sum(coefficients**2) + self.weights @ np.array(losses)

    def _scores(self, units, coefficients):
        constant = np.ones((len(self.rows), int(self.fit_intercept)))
        return np.hstack([constant, self.unit_values(units), self.linear]) @ coefficients

    def gradient(self, units, coefficients):
        """Return the derivatives in the units at fixed coefficients, in the shape of units."""
        slope = twin(self.loss).gradient
        rows = zip(self._scores(units, coefficients), self.targets, self.weights, strict=True)
        in_scores = np.array([weight * slope(row, target) for row, target, weight in rows])
        first = int(self.fit_intercept)
        coef = coefficients[first : first + len(units["centres"])]
        in_exponents = -(in_scores @ coef.T) * self.unit_values(units)
        widths, squares = np.exp(units["log_widths"]), np.exp(2.0 * units["log_weights"])
        difference, apart, rest = self._apart(units)
        pull = in_exponents * widths  # in the squared distance of row and unit
        in_weights = 2.0 * np.einsum("ij,ijd->d", pull, apart)
        if len(units["log_weights"]) == 1:
            in_weights = np.array([in_weights.sum() + 2.0 * np.sum(pull.sum(axis=1) * rest)])
        in_mapped = 2.0 * np.einsum("ij,ijd->id", pull, squares * difference)
        return {
            "centres": -2.0 * np.einsum("ij,ijd->jd", pull, squares * difference),
            "log_widths": np.sum(pull * (apart.sum(axis=2) + rest[:, None]), axis=0),
            "log_weights": in_weights,
            "mapping": None if units["mapping"] is None else self.rows.T @ in_mapped,
        }

"""The sparse machine on a fixed basis, dense and slow.

    1/2 tr(A' K_JJ A) + 1/2 |b|^2 + sum_i weight_i loss(f_i, y_i),    F = K_nJ A + b

``FixedBasis`` works in the columns ``Z = [1, K_nJ U]`` with ``U U' = K_JJ^-1`` (from eigenvectors,
where the library uses Cholesky factors), so that the regulariser is ``1/2 |B|^2``.
"""

import numpy as np
from scipy.optimize import brentq, minimize

from reference.losses import twin

_NEGLIGIBLE = 1e-12  # eigenvalues of K_JJ, relative, that are rounding error


def objective(loss, targets, weights, K_nJ, K_JJ, coef, intercept):
    """Return the objective of an expansion with these coefficients."""
    scores = K_nJ @ coef + intercept
    row_loss = twin(loss).value
    losses = [row_loss(row, target) for row, target in zip(scores, targets, strict=True)]
    return (
        0.5 * np.sum(coef * (K_JJ @ coef))
        + 0.5 * np.sum(np.square(intercept))
        + np.dot(weights, losses)
    )


class FixedBasis:
    """The objective as a function of B, flattened."""

    def __init__(self, loss, targets, weights, K_nJ, K_JJ, n_outputs, fit_intercept=True):
        values, vectors = np.linalg.eigh(K_JJ)
        kept = values > _NEGLIGIBLE * values.max()
        self.transform = vectors[:, kept] / np.sqrt(values[kept])
        constant = np.ones((len(K_nJ), int(fit_intercept)))
        self.columns = np.hstack([constant, K_nJ @ self.transform])
        self.fit_intercept = fit_intercept
        self.twin = twin(loss)
        self.targets, self.weights, self.n_outputs = targets, weights, n_outputs
        self.size = self.columns.shape[1] * n_outputs

    def scores(self, flat):
        return self.columns @ flat.reshape(-1, self.n_outputs)

    def _rows(self, flat):
        return zip(self.scores(flat), self.targets, self.weights, strict=True)

    def value(self, flat):
        losses = [weight * self.twin.value(row, target) for row, target, weight in self._rows(flat)]
        return 0.5 * flat @ flat + sum(losses)

    def gradient(self, flat):
        each = [
            weight * self.twin.gradient(row, target) for row, target, weight in self._rows(flat)
        ]
        return flat + (self.columns.T @ np.array(each)).ravel()

    def hessian(self, flat):
        total = np.eye(self.size)
        for column, (row, target, weight) in zip(self.columns, self._rows(flat), strict=True):
            curvature = weight * self.twin.hessian(row, target)
            total += np.kron(np.outer(column, column), curvature)
        return total

    def expansion(self, flat):
        """Return (coef, intercept) of the expansion."""
        stacked = flat.reshape(-1, self.n_outputs)
        n_constant = int(self.fit_intercept)
        return self.transform @ stacked[n_constant:], stacked[:n_constant].sum(axis=0)

    def solve_newton(self, tol=1e-10, max_iter=200):
        """Minimise by Newton steps on the whole Hessian, each as long as is best."""
        flat = np.zeros(self.size)
        goal = tol * np.linalg.norm(self.gradient(flat))
        for _ in range(max_iter):
            gradient = self.gradient(flat)
            if np.linalg.norm(gradient) <= goal:
                return flat
            step = -np.linalg.solve(self.hessian(flat), gradient)
            flat = flat + self._best_length(flat, step) * step
        raise AssertionError("the reference solver did not converge")

    def _best_length(self, flat, step):
        def slope(length):
            return self.gradient(flat + length * step) @ step

        longest = 1.0
        while slope(longest) < 0.0:
            longest *= 2.0
        return brentq(slope, 0.0, longest, rtol=1e-6)

    def solve_lbfgs(self):
        """Minimise by L-BFGS-B of scipy."""
        options = {"maxiter": 20_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
        start = np.zeros(self.size)
        result = minimize(self.value, start, jac=self.gradient, method="L-BFGS-B", options=options)
        return result.x

"""The machine on a fixed basis with a prior R over labels, dense and slow.

    1/2 tr(R^-1 A' K_JJ A) + 1/2 b' R^-1 b + sum_i weight_i loss(f_i, y_i),    F = K_nJ A + b

R is inverted here, where the library never does. Where R is singular the rows of A, and b, must lie
in the range of R, or the first terms are infinite: ``inside`` is a basis of the range, and R is
inverted there.
"""

import numpy as np

from reference.machine import FixedBasis

_NEGLIGIBLE = 1e-10  # eigenvalues of R, relative, that are rounding error


class PriorBasis(FixedBasis):
    """The objective as a function of V, flattened: the coefficients are ``B = V inside'``."""

    def __init__(self, R, *problem, **options):
        super().__init__(*problem, **options)
        values, vectors = np.linalg.eigh(R)
        kept = values > _NEGLIGIBLE * values.max()
        self.inside = np.eye(len(R)) if kept.all() else vectors[:, kept]
        self.inverse = np.linalg.inv(self.inside.T @ R @ self.inside)
        self.size = self.columns.shape[1] * self.inside.shape[1]

    def coefficients(self, flat):
        """Return B."""
        return flat.reshape(-1, self.inside.shape[1]) @ self.inside.T

    def flatten(self, coefficients):
        """Return the point that stands for B."""
        return (coefficients @ self.inside).ravel()

    def scores(self, flat):
        return self.columns @ self.coefficients(flat)

    def value(self, flat):
        stacked = flat.reshape(-1, self.inside.shape[1])
        return 0.5 * np.trace(stacked @ self.inverse @ stacked.T) + sum(
            weight * self.twin.value(row, target) for row, target, weight in self._rows(flat)
        )

    def gradient(self, flat):
        stacked = flat.reshape(-1, self.inside.shape[1])
        each = np.array(
            [weight * self.twin.gradient(row, target) for row, target, weight in self._rows(flat)]
        )
        return (stacked @ self.inverse + self.columns.T @ each @ self.inside).ravel()

    def hessian(self, flat):
        total = np.kron(np.eye(self.columns.shape[1]), self.inverse)
        for column, (row, target, weight) in zip(self.columns, self._rows(flat), strict=True):
            curvature = weight * self.inside.T @ self.twin.hessian(row, target) @ self.inside
            total += np.kron(np.outer(column, column), curvature)
        return total

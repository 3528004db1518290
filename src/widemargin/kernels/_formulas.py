"""Kernels that are formulas of two rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from widemargin._system.parameters import check_integer, check_real
from widemargin.kernels._base import DistanceKernel, NativeKernel
from widemargin.kernels._rows import Array, Rows, chi_square_distances, squared_norms

_PROBING_STEPS = 12  # each leaves less than half of the error


@dataclass(frozen=True)
class RBF(DistanceKernel):
    """Gaussian kernel, ``exp(-gamma |x - b|^2)``.

    The one to take, unless you know better.
    """

    gamma: float
    name = "rbf"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)

    def lengths(self, gaps: Array, vectors: Array) -> Array:
        """Return ``sqrt(gamma) |gap|``."""
        return np.asarray(np.sqrt(self.gamma) * np.linalg.norm(gaps, axis=1))


@dataclass(frozen=True)
class Laplacian(DistanceKernel):
    """Laplacian kernel, ``exp(-gamma |x - b|_1)``."""

    gamma: float
    name = "laplacian"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)

    @staticmethod
    def width_of_scale(scale: float, n_features: int) -> float:
        """Return ``1 / (n_features * standard deviation)``: the distance is not squared."""
        return float(np.sqrt(scale / n_features))

    def lengths(self, gaps: Array, vectors: Array) -> Array:
        """Return ``gamma |gap|_1``."""
        return np.asarray(self.gamma * np.abs(gaps).sum(axis=1))


@dataclass(frozen=True)
class ChiSquare(DistanceKernel):
    """Exponential chi-square kernel, ``exp(-gamma sum (x - b)^2 / (x + b))``.

    For histograms, counts and other features that are not negative; a feature that both rows lack
    adds nothing.
    """

    gamma: float
    name = "chi2"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)

    @property
    def positive_only(self) -> bool:
        """True."""
        return True

    def check_rows(self, rows: Rows) -> None:
        """Raise ValueError if an entry is negative."""
        entries = rows.data if sp.issparse(rows) else rows
        if not entries.size or not entries.min() < 0:
            return
        negative = np.flatnonzero(entries < 0)
        least = int(np.argmin(entries))
        column = rows.indices[least] if sp.issparse(rows) else least % rows.shape[1]
        raise ValueError(
            "Negative values in data passed to the chi-square kernel, which takes no negative "
            f"entries: {len(negative)} of the rows' entries are below zero, down to "
            f"{entries.flat[least]:.3g} in column {column}. Scale columns to begin at zero, for "
            "example with sklearn.preprocessing.MinMaxScaler(clip=True), or take another kernel."
        )

    def lengths(self, gaps: Array, vectors: Array) -> Array:
        """Return how often each gap goes into the one that leads to a value of exp(-1).

        The distance grows with the square of a gap that is small against the vector, and with the
        gap itself where it is large: something between is how an estimate is put right.
        """
        steps = np.ones((len(gaps), 1))
        with np.errstate(all="ignore"):
            for _ in range(_PROBING_STEPS):
                ends = np.maximum(vectors + steps * gaps, 0.0)
                distances = self.gamma * chi_square_distances(ends, vectors)
                steps *= distances[:, np.newaxis] ** -0.6
        return np.asarray(1.0 / steps.ravel())


@dataclass(frozen=True)
class Polynomial(NativeKernel):
    """Polynomial kernel, ``(gamma x.b + coef0)^degree``."""

    gamma: float
    degree: int = 3
    coef0: float = 0.0
    name = "poly"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)
        check_integer("degree", self.degree, least=1)
        check_real("coef0", self.coef0)

    @property
    def wants_double(self) -> bool:
        """True."""
        return True

    @property
    def is_positive(self) -> bool:
        """Whether the constant is none or positive: then all terms of the power are kernels."""
        return self.coef0 >= 0

    def diagonal(self, rows: Rows) -> Array:
        """Return ``(gamma |x|^2 + coef0)^degree``."""
        return (self.gamma * squared_norms(rows) + self.coef0) ** self.degree

    def magnitude(self, rows: Rows) -> Array:
        """Return ``(gamma |x|^2 + |coef0|)^degree``."""
        return (self.gamma * squared_norms(rows) + abs(self.coef0)) ** self.degree


@dataclass(frozen=True)
class Sigmoid(NativeKernel):
    """Sigmoid kernel, ``tanh(gamma x.b + coef0)``.

    For those who come from ``SVC``. It is not positive semi-definite. A row may even have a
    negative value with itself, if ``coef0`` is negative.
    """

    gamma: float
    coef0: float = 0.0
    name = "sigmoid"

    def __post_init__(self) -> None:
        check_real("gamma", self.gamma, positive=True)
        check_real("coef0", self.coef0)

    def diagonal(self, rows: Rows) -> Array:
        """Return ``tanh(gamma |x|^2 + coef0)``."""
        return np.tanh(self.gamma * squared_norms(rows) + self.coef0)

    def magnitude(self, rows: Rows) -> Array:
        """Return ``gamma |x|^2 + |coef0|``: products may cancel, and the tangent does not grow."""
        return self.gamma * squared_norms(rows) + abs(self.coef0)

    def steepest(self, rows: Array, vectors: Array) -> Array:
        """Return rows moved along a vector each, to where its value changes its sign."""
        with np.errstate(all="ignore"):
            # Sizes are divided out first, lest the square of a large one overflows.
            sizes = np.abs(vectors).max(axis=1, initial=0.0, keepdims=True)
            unit = vectors / sizes
            excess = np.einsum("ij,ij->i", rows, unit)[:, np.newaxis]
            excess = excess + self.coef0 / self.gamma / sizes
            found = rows - excess * unit / np.square(unit).sum(axis=1, keepdims=True)
        return np.where(np.isfinite(found), found, rows)


@dataclass(frozen=True)
class Linear(NativeKernel):
    """Linear kernel, ``x.b``."""

    name = "linear"

    @property
    def wants_double(self) -> bool:
        """True."""
        return True

    @property
    def is_positive(self) -> bool:
        """True."""
        return True

    def diagonal(self, rows: Rows) -> Array:
        """Return ``|x|^2``."""
        return squared_norms(rows)

"""Gaussian units that can move: what they see, their values, and the gradient in them.

    h_ij = exp(-width_j |(z_i - c_j) * r|^2),    z_i = x_i P

Rows are standardised first. Rows of many features are seen in their leading principal directions
only, and centres stay in the span of these. All of it is folded into the vectors, widths and
metric of the model.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.kernels import RBF, AdaptiveRBF, Kernel

Array: TypeAlias = npt.NDArray[Any]

MANY_FEATURES = 100  # beyond which neither weights nor widths are learned, only centres
_DIRECTIONS = 40  # that centres may move in where there are many features, at the least
_VARIANCE = 0.9  # share of it that these directions hold, at the least
_LEAST_VARIANCE = 0.6  # share that the first _DIRECTIONS hold; where it is less, all are kept
_ONE_UNIT = 0.2  # share of the largest range that the middle one is, where units are the same
_LEAST_SPREAD = 0.1  # share of a feature's range that its scale is, at the least
_LARGEST_LOG = 25.0  # of a width or a weight, either way: no exponent over- or underflows

#: Metrics with one width for all vectors and features.
COMMON_WIDTH = ("none", "scaled")


@dataclass(frozen=True)
class Units:
    """Parameters of the units, in the coordinates of :class:`WorkingRows`.

    Attributes
    ----------
    centres : ndarray of shape (n_units, n_dimensions)
    log_widths : ndarray of shape (n_units,)
    log_weights : ndarray of shape (n_dimensions,), or (1,) for a common one
    mapping : ndarray of shape (n_features, n_dimensions) or None
    """

    centres: Array
    log_widths: Array
    log_weights: Array
    mapping: Array | None = None

    @property
    def widths(self) -> Array:
        """Widths, positive."""
        return np.asarray(np.exp(np.clip(self.log_widths, -_LARGEST_LOG, _LARGEST_LOG)))

    @property
    def weights(self) -> Array:
        """Weights of the dimensions, positive."""
        each = np.exp(np.clip(self.log_weights, -_LARGEST_LOG, _LARGEST_LOG))
        return np.broadcast_to(each, self.centres.shape[1])

    def narrowed(self, factor: float) -> Units:
        """Return units in which squared distances count by a factor more; less, below 1."""
        return replace(self, log_weights=self.log_weights + 0.5 * np.log(factor))


def moving_parts(metric: str) -> list[str]:
    """Return the names of the parameters of units that are learned."""
    names = ["centres", "log_weights"]
    names += [] if metric in COMMON_WIDTH else ["log_widths"]
    return names + (["mapping"] if metric == "full" else [])


class WorkingRows:
    """Rows as the units see them: standardised, and seen in few directions if they have many.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,)
        How much each row counts.
    metric : {"none", "scaled", "diagonal", "full"}
    """

    def __init__(self, rows: Array, weights: Array, metric: str) -> None:
        self.share = weights / weights.sum()
        self.metric = metric
        self.mean = self.share @ rows.astype(np.float64)
        spread = spread_of(rows, self.mean, self.share)
        self.all_equal = not spread.any()
        if metric == "none":
            # Where a common width serves all features, what sets them apart is part of the data.
            spread = np.full_like(spread, np.hypot.reduce(spread))
        elif metric != "full":
            spread = robust_spread(rows, spread)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.directions: Array | None = None
        if metric in COMMON_WIDTH and rows.shape[1] > MANY_FEATURES:
            placed = (rows - self.mean) / self.scale
            self.directions = _leading_directions(placed, self.share)
        self.rows, self.rest = self.see(rows)

    def see(self, rows: Array) -> tuple[Array, Array | None]:
        """Return rows in the working coordinates, and their squared distance from these if any."""
        placed = ((rows - self.mean) / self.scale).astype(np.float32)
        if self.directions is None:
            return np.ascontiguousarray(placed), None
        inside = placed @ self.directions.astype(np.float32)
        rest = np.einsum("ij,ij->i", placed, placed) - np.einsum("ij,ij->i", inside, inside)
        return np.ascontiguousarray(inside), np.maximum(rest, 0.0)

    def with_rows(self, rows: Array, weights: Array) -> WorkingRows:
        """Return other rows, as the same units see them."""
        other = copy(self)
        other.share = weights / weights.sum()
        other.rows, other.rest = self.see(rows)
        return other

    def as_kernel(self, units: Units) -> tuple[Kernel, Array]:
        """Return the kernel and the basis vectors, in the units of the features."""
        centres = units.centres if self.directions is None else units.centres @ self.directions.T
        if self.metric == "none":
            gamma = float((units.weights[0] / self.scale[0]) ** 2)
            if not 0.0 < gamma < np.inf:
                raise ValueError(
                    f"Features of a spread of {self.scale[0]:.1e} have squared distances that "
                    "double precision cannot hold. Rescale X, or set metric='diagonal'."
                )
            kernel: Kernel = RBF(gamma)
            return kernel, self.mean + self.scale * centres
        if units.mapping is None:
            weights = np.broadcast_to(units.weights[:1], self.scale.shape)
            weights = weights if self.metric == "scaled" else units.weights
            kernel = AdaptiveRBF(units.widths, weights / self.scale)
            return kernel, self.mean + self.scale * centres
        kernel = AdaptiveRBF(units.widths, (units.mapping / self.scale[:, None]) * units.weights)
        placed = np.linalg.lstsq(units.mapping.T, units.centres.T, rcond=None)[0].T
        return kernel, self.mean + self.scale * placed

    def from_kernel(self, kernel: Any, vectors: Array) -> Units:
        """Return the units that a kernel and its vectors are: the inverse of ``as_kernel``."""
        placed = (vectors - self.mean) / self.scale
        if self.metric in COMMON_WIDTH:
            centres = placed if self.directions is None else placed @ self.directions
            if self.metric == "none":
                half = 0.5 * np.log(kernel.gamma) + np.log(self.scale[0])
            else:  # the rows may have another spread than those of the fit before
                weights = np.abs(kernel.metric) * self.scale * np.sqrt(kernel.widths[0])
                half = np.mean(np.log(np.maximum(weights, np.exp(-_LARGEST_LOG))))
            return Units(centres, np.zeros(len(vectors)), np.array([half]))
        if self.metric == "diagonal":
            weights = np.log(np.maximum(np.abs(kernel.metric) * self.scale, np.exp(-_LARGEST_LOG)))
            return Units(placed, np.log(kernel.widths), weights)
        mapping = kernel.metric * self.scale[:, None]
        return Units(placed @ mapping, np.log(kernel.widths), np.zeros(mapping.shape[1]), mapping)


def spread_of(rows: Array, mean: Array, share: Array) -> Array:
    """Return the standard deviation of each feature, of whatever size they are."""
    largest = np.maximum(rows.max(axis=0) - mean, mean - rows.min(axis=0))
    largest = np.where(largest > 16 * np.finfo(np.float64).eps * np.abs(mean), largest, 0.0)
    unit = np.where(largest > 0, largest, 1.0)
    return np.asarray(
        np.where(largest > 0, unit, 0.0) * np.sqrt(share @ np.square((rows - mean) / unit))
    )


def have_one_unit(rows: Array) -> bool:
    """Whether features are measured in the same unit, as the pixels of an image are.

    Then they have about the same range, but for those that are nearly always the same.
    """
    ranges = rows.max(axis=0) - rows.min(axis=0)
    largest = ranges.max(initial=0.0)
    return bool(np.median(ranges[ranges > 0]) >= _ONE_UNIT * largest) if largest > 0 else True


def robust_spread(rows: Array, spread: Array) -> Array:
    """Return the spread of each feature, but not far less than its range.

    Or a feature that is nearly always the same would count most in the rows where it is not.
    """
    least = _LEAST_SPREAD * rows.max(axis=0) - _LEAST_SPREAD * rows.min(axis=0)
    return np.asarray(np.where(spread > 0, np.maximum(spread, least), 0.0))


def _leading_directions(placed: Array, share: Array) -> Array:
    """Return the leading principal directions of centred rows, one a column.

    They hold most of the variance. Images have it in few directions, and are better off without the
    others; in texts every word has a direction of its own, and all are kept.
    """
    centred = (placed * np.sqrt(share)[:, None]).astype(np.float32)
    few_rows = placed.shape[0] < placed.shape[1]
    products = centred @ centred.T if few_rows else centred.T @ centred
    values, vectors = np.linalg.eigh(products.astype(np.float64))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    held = np.cumsum(values) / max(values.sum(), np.finfo(np.float64).tiny)
    count = max(_DIRECTIONS, int(np.searchsorted(held, _VARIANCE)) + 1)
    if held[min(_DIRECTIONS, len(held)) - 1] < _LEAST_VARIANCE:
        count = len(values)
    keep = np.flatnonzero(values >= 1e-9 * values[0])[:count]
    if few_rows:
        vectors = centred.T.astype(np.float64) @ vectors[:, keep]
        return np.asarray(np.linalg.qr(vectors)[0])  # to the last digit, which rounding took
    return np.ascontiguousarray(vectors[:, keep])


class UnitColumns:
    """The columns of a :class:`BasisObjective`: a constant, units at the rows, a linear part.

    They are in single precision, which is enough to move by; ``refined`` gives them in double.

    Parameters
    ----------
    n_rows, n_units : int
    fit_intercept : bool
    n_threads : int
    linear : ndarray of shape (n_rows, n_linear), default=None
        The rows as a linear part sees them. None is no such part.
    dtype : dtype, default=float32
    """

    def __init__(
        self,
        n_rows: int,
        n_units: int,
        fit_intercept: bool,
        n_threads: int,
        linear: Array | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.n_threads = n_threads
        self.n_constant, self.n_units = int(fit_intercept), n_units
        self.n_columns = self.n_constant + n_units + (0 if linear is None else linear.shape[1])
        self.columns = [np.ones((n_rows, self.n_columns), dtype=dtype)]  # all rows are one block
        self.linear[:] = 0.0 if linear is None else linear
        self._made_of: tuple[Units, Array, Array | None] | None = None

    @property
    def values(self) -> Array:
        """The values of the units."""
        return self.columns[0][:, self.of_units]

    @property
    def linear(self) -> Array:
        """The rows as the linear part sees them; without one, rows of nothing."""
        return self.columns[0][:, self.of_linear_part]

    @property
    def of_units(self) -> slice:
        """Which columns, and rows of coefficients, are those of the units."""
        return slice(self.n_constant, self.n_constant + self.n_units)

    @property
    def of_linear_part(self) -> slice:
        """Which columns, and rows of coefficients, are those of the linear part."""
        return slice(self.n_constant + self.n_units, self.n_columns)

    def update(self, units: Units, mapped: Array, rest: Array | None) -> None:
        """Compute the values anew; ``mapped`` are rows that have gone through the map."""
        self._made_of = units, mapped, rest
        rows = mapped.astype(self.values.dtype, copy=False)
        self.values[:] = unit_values(units, rows, rest, self.n_threads)

    def refined(self) -> UnitColumns:
        """Return the columns in double precision."""
        if self.values.dtype == np.float64 or self._made_of is None:
            return self
        precise = UnitColumns(
            len(self.values),
            self.n_units,
            bool(self.n_constant),
            self.n_threads,
            self.linear,
            np.float64,
        )
        precise.update(*self._made_of)
        return precise


def unit_values(units: Units, mapped: Array, rest: Array | None, n_threads: int) -> Array:
    """Return ``exp(-width_j |(z_i - c_j) * r|^2)``, in the precision of the rows."""
    kernel = AdaptiveRBF(units.widths, np.array(units.weights))
    values = kernel.block(mapped, units.centres.astype(mapped.dtype), n_threads)
    if rest is not None:
        values *= np.exp(-(units.weights[0] ** 2) * rest)[:, None].astype(mapped.dtype)
    return values


def unit_gradient(
    units: Units,
    rows: Array,
    mapped: Array,
    rest: Array | None,
    values: Array,
    score_gradient: Array,
    coef: Array,
    active: npt.NDArray[np.int32],
    n_threads: int,
) -> Units:
    """Return the gradient in the units at fixed coefficients, in the shape of units.

    Parameters
    ----------
    units : Units
    rows, mapped : ndarray of shape (n_rows, n_features), (n_rows, n_dimensions)
        Rows before and after the map.
    rest : ndarray of shape (n_rows,) or None
    values : ndarray of shape (n_rows, n_units)
    score_gradient : ndarray of shape (n_rows, n_outputs)
        Of the weighted loss. All arrays up to here are of one precision.
    coef : ndarray of shape (n_units, n_outputs)
    active : ndarray of int32
        The rows that have a gradient, ascending.
    n_threads : int
    """
    gradient = Units(
        np.empty_like(units.centres),
        np.empty(len(units.centres)),
        np.empty(len(units.log_weights)),
        None if units.mapping is None else np.empty(units.mapping.shape),
    )
    _native.unit_gradient(
        None if units.mapping is None else rows,
        mapped,
        rest,
        values,
        score_gradient,
        active,
        np.ascontiguousarray(coef, dtype=mapped.dtype),
        np.ascontiguousarray(units.centres),
        units.widths,
        np.square(units.weights),
        gradient.centres,
        gradient.log_widths,
        gradient.log_weights,
        gradient.mapping,
        n_threads,
    )
    return gradient

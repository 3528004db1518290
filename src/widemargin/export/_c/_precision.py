"""How precise a C file must be: single precision, unless the scores show that it loses too much.

Coefficients of a hard problem are large and cancel. What that costs is measured, by summing as the
C code sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.precision import Probes, keeps_digits
from widemargin.export._c._mapped import MappedExpansion, expansion_of
from widemargin.export._widths import LARGEST_NORM, scale_before
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    Kernel,
    Laplacian,
    Polynomial,
    Precomputed,
    Rows,
    Sigmoid,
)
from widemargin.models import KernelExpansion

Array: TypeAlias = npt.NDArray[Any]
Form: TypeAlias = Literal["linear", "precomputed", "dense", "sparse", "sum"]

_SAMPLE_ROWS = 128
_OF_PRODUCTS = (Polynomial, Sigmoid)

#: Kernels with one width, by which gaps are multiplied.
WithOneWidth: TypeAlias = RBF | Laplacian | ChiSquare


@dataclass(frozen=True)
class Precision:
    """Types of the numbers in tables, and of the arithmetic with them.

    Parameters of a kernel are of the type of the coefficients.
    """

    basis: str
    coef: str
    sums: str


SINGLE = Precision("float32", "float32", "float32")
MIXED = Precision("float32", "float64", "float64")
DOUBLE = Precision("float64", "float64", "float64")


def least_precision(model: Any, form: Form, rows: Rows | None) -> Precision:
    """Return the least precision that keeps the scores of rows of single precision.

    Parameters
    ----------
    model : Model
    form : {"linear", "precomputed", "dense", "sparse"}
    rows : array or CSR matrix, or None
        What to measure on; None is the basis vectors and points between and around them.
    """
    if rows is None and form in ("linear", "precomputed"):
        return MIXED  # nothing is known of the rows, so that nothing is risked
    sample, groups = _sample(model, rows)
    exact = model.scores(sample)
    try:
        single = rounded(model, SINGLE)
    except ValueError:  # numbers beyond single precision
        return DOUBLE
    if keeps_digits(_single_scores(single, form, sample), exact, groups):
        return SINGLE
    mixed = rounded(model, MIXED)
    if keeps_digits(mixed.scores(sample), exact, groups):
        return MIXED
    return DOUBLE


def least_sums(model: Any, form: Form, rows: Rows | None) -> str:
    """Return the least precision of sums, for a model whose numbers are what they are."""
    if rows is None and form in ("linear", "precomputed"):
        return "float64"
    sample, groups = _sample(model, rows)
    exact = model.scores(sample)
    enough = keeps_digits(_single_scores(model, form, sample), exact, groups)
    return "float32" if enough else "float64"


def rounded(model: Any, precision: Precision) -> Any:
    """Return the model with numbers that the types of the tables can hold."""
    if isinstance(model, MappedExpansion):
        linear = None if model.linear is None else fitting(model.linear, precision.coef)
        return around(model, rounded(model.mapped, precision), precision.coef, linear)
    numbers: dict[str, Any] = {
        "coef": fitting(model.coef, precision.coef),
        "intercept": fitting(model.intercept, precision.coef),
    }
    if isinstance(model, KernelExpansion) and not isinstance(model.kernel, Precomputed):
        if sp.issparse(model.basis):
            numbers["basis"] = as_sparse(model.basis)
            numbers["basis"].data = fitting(numbers["basis"].data, precision.basis)
        else:
            numbers["basis"] = fitting(model.basis, precision.basis)
        numbers["kernel"] = rounded_kernel(model.kernel, precision.coef)
        if model.linear is not None:
            numbers["linear"] = fitting(model.linear, precision.coef)
    return replace(model, **numbers)


def around(model: Any, expansion: Any, dtype: str, linear: Array | None) -> Any:
    """Return an expansion in the place of that of a model, with a map that tables can hold.

    The linear part, which has been made one that tables can hold, is that of the whole.
    """
    if not isinstance(model, MappedExpansion):
        return expansion if linear is None else replace(expansion, linear=linear)
    origin, entries = fitting(model.origin, dtype), fitting(model.map, dtype)
    return replace(model, origin=origin, map=entries, mapped=expansion, linear=linear)


def linear_part(model: Any) -> Array | None:
    """Return the coefficients of the features beside a kernel, if there are any."""
    linear: Array | None = getattr(model, "linear", None)
    return linear


def rounded_kernel(kernel: Kernel, dtype: str) -> Kernel:
    """Return the kernel with parameters that tables of this type can hold, if it has tables."""
    if not isinstance(kernel, AdaptiveRBF):
        return kernel
    metric = None if kernel.metric is None else fitting(kernel.metric, dtype)
    return AdaptiveRBF(fitting(kernel.widths, dtype), metric)


def fitting(values: Array, dtype: str) -> Array:
    """Return numbers rounded to a type, as float64; one that it cannot hold is an error."""
    with np.errstate(over="ignore"):
        near = np.asarray(values).astype(dtype).astype(np.float64)
    if not np.isfinite(near).all():
        raise ValueError(
            f"The model has numbers that {dtype} cannot hold. Export it with dtype='float64', and "
            "check the scale of the features."
        )
    return near


def feature_weights(kernel: Kernel | None) -> Array | None:
    """Return the weights by which a kernel multiplies differences, if it has any."""
    return kernel.metric if isinstance(kernel, AdaptiveRBF) else None


def gap_scale(kernel: Kernel | None) -> float:
    """Return by what gaps are multiplied before they are summed; weights are applied instead."""
    if not isinstance(kernel, WithOneWidth):
        return 1.0
    return scale_before(kernel.gamma, _power(kernel))


def width_after(kernel: WithOneWidth) -> float:
    """Return by what the sum of scaled gaps is multiplied."""
    return float(kernel.gamma / gap_scale(kernel) ** _power(kernel))


def takes_gaps(model: Any) -> bool:
    """Return whether a sparse basis meets all features of a row, and not its own entries alone.

    Distances by entries are differences of sums over the row, and lose digits where these are
    large against the width.
    """
    kernel = model.kernel
    if not isinstance(kernel, WithOneWidth):
        return False
    basis = as_sparse(model.basis)
    with np.errstate(over="ignore"):
        basis.data = np.abs(gap_scale(kernel) * basis.data) ** _power(kernel)
        norms = width_after(kernel) * np.asarray(basis.sum(axis=1))
    return not norms.max(initial=0.0) <= LARGEST_NORM


def _power(kernel: WithOneWidth) -> int:
    return 2 if isinstance(kernel, RBF) else 1


def as_dense(rows: Rows) -> Array:
    """Return rows as an array of float64."""
    return np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)


def as_sparse(rows: Rows) -> Rows:
    """Return rows as a new CSR matrix of float64, without zeros."""
    rows = sp.csr_matrix(rows, dtype=np.float64, copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _sample(model: Any, rows: Rows | None) -> Probes:
    """Return some rows that single precision holds exactly."""
    if rows is None:
        probes: Probes = model.probes()
        return probes
    places = np.linspace(0, rows.shape[0] - 1, min(_SAMPLE_ROWS, rows.shape[0])).astype(np.intp)
    some = as_dense(rows[np.unique(places)])
    some = np.ascontiguousarray(some.astype(np.float32).astype(np.float64))
    return Probes(some, (slice(None),))


def _single_scores(model: Any, form: Form, rows: Array) -> Array:
    """Return scores that are summed as the C code sums them, in single precision."""
    rows = rows.astype(np.float32)
    scores = np.tile(model.intercept.astype(np.float32), (len(rows), 1))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        is_mapped = isinstance(model, MappedExpansion)
        seen = _single_mapped(model, rows) if is_mapped else rows
        expansion = expansion_of(model)
        values = seen if form == "linear" else _single_values(expansion, form, seen)
        _add_up(scores, values, expansion.coef)
        if linear_part(model) is not None:
            _add_up(scores, rows, model.linear)
    return np.where(np.isfinite(scores), scores.astype(np.float64), np.inf)


def _add_up(scores: Array, values: Array, coef: Array) -> None:
    for column, each in zip(values.T, coef.astype(np.float32), strict=True):
        scores += column[:, np.newaxis] * each


def _single_mapped(model: MappedExpansion, rows: Array) -> Array:
    seen = np.zeros((len(rows), model.map.shape[1]), dtype=np.float32)
    moved = rows - model.origin.astype(np.float32)
    for column, entries in zip(moved.T, model.map.astype(np.float32), strict=True):
        seen += column[:, np.newaxis] * entries
    return seen


def _single_values(model: Any, form: Form, rows: Array) -> Array:
    if form == "precomputed":
        return np.asarray(rows[:, model.basis])
    kernel = model.kernel
    sums = _sparse_sums(model, rows) if form == "sparse" else _dense_sums(model, rows)
    if isinstance(kernel, _OF_PRODUCTS):
        base = np.float32(kernel.gamma) * sums + np.float32(kernel.coef0)
        return np.asarray(np.tanh(base) if isinstance(kernel, Sigmoid) else base**kernel.degree)
    widths = kernel.widths if isinstance(kernel, AdaptiveRBF) else np.array(width_after(kernel))
    return np.asarray(np.exp(-widths.astype(np.float32) * sums))


def _dense_sums(model: Any, rows: Array) -> Array:
    sums = np.empty((len(rows), model.n_basis), dtype=np.float32)
    weights = feature_weights(model.kernel)
    scale = np.asarray(gap_scale(model.kernel) if weights is None else weights).astype(np.float32)
    for number, vector in enumerate(as_dense(model.basis).astype(np.float32)):
        if isinstance(model.kernel, _OF_PRODUCTS):
            terms = rows * vector
        elif isinstance(model.kernel, Laplacian):
            terms = np.abs((rows - vector) * scale)
        elif isinstance(model.kernel, ChiSquare):
            terms = scale * _chi_squares(rows, vector)
        else:
            terms = ((rows - vector) * scale) ** 2
        sums[:, number] = np.cumsum(terms, axis=1)[:, -1]
    return sums


def _sparse_sums(model: Any, rows: Array) -> Array:
    if takes_gaps(model):
        return _dense_sums(model, rows)
    basis = as_sparse(model.basis)
    scale = np.float32(gap_scale(model.kernel))
    rows = rows * scale
    sums = np.empty((len(rows), model.n_basis), dtype=np.float32)
    start = np.zeros((len(rows), 1), np.float32)
    if isinstance(model.kernel, Laplacian):
        start = np.cumsum(np.abs(rows), axis=1)[:, -1:]
    elif isinstance(model.kernel, ChiSquare):
        start = np.cumsum(rows, axis=1)[:, -1:]
    elif not isinstance(model.kernel, _OF_PRODUCTS):
        start = np.cumsum(rows * rows, axis=1)[:, -1:]
    for number in range(model.n_basis):
        entries = slice(basis.indptr[number], basis.indptr[number + 1])
        here = rows[:, basis.indices[entries]]
        there = basis.data[entries].astype(np.float32) * scale
        if isinstance(model.kernel, _OF_PRODUCTS):
            terms = here * there
        elif isinstance(model.kernel, Laplacian):
            terms = np.abs(here - there) - np.abs(here)
        elif isinstance(model.kernel, ChiSquare):
            terms = _chi_squares(here, there) - here
        else:
            terms = there * (there - 2 * here)
        sums[:, number] = np.cumsum(np.hstack([start, terms]), axis=1)[:, -1]
    return sums


def _chi_squares(here: Array, there: Array) -> Array:
    gaps, sums = here - there, here + there
    return np.asarray(gaps * np.divide(gaps, sums, out=np.zeros_like(gaps), where=sums > 0))

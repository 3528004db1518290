"""What a C file holds: the tables of a model, and the precision that its arithmetic needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.export._c._mapped import MappedExpansion, as_computed, expansion_of
from widemargin.export._c._precision import (
    DOUBLE,
    Form,
    around,
    as_dense,
    as_sparse,
    feature_weights,
    fitting,
    least_precision,
    least_sums,
    linear_part,
    rounded,
    rounded_kernel,
)
from widemargin.export._c._summed import in_parts
from widemargin.export._c._text import Table, unsigned
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    Kernel,
    KernelSum,
    Laplacian,
    Polynomial,
    Precomputed,
    Rows,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap, Model

Array: TypeAlias = npt.NDArray[Any]

_FEW_ENTRIES = 0.25  # share of entries below which a basis is smaller, and faster, sparse
_MANY_FEATURES = 0.75  # share of features above which a linear model keeps them all
_LARGEST = 32767  # of a quantised number


@dataclass(frozen=True)
class Part:
    """A machine of a sum, and the columns of a row that it takes."""

    columns: tuple[int, ...]
    layout: Layout

    @property
    def first(self) -> int | None:
        """The first column, if the others follow it one by one."""
        first = self.columns[0]
        return first if self.columns == tuple(range(first, self.columns[-1] + 1)) else None


@dataclass(frozen=True)
class Layout:
    """A model as a C file holds it.

    Attributes
    ----------
    model : Model
        With the numbers as they are in the tables.
    form : {"linear", "precomputed", "dense", "sparse", "sum"}
    tables : list of Table
        Those of parts, too, with the number of the part in their names.
    sums : {"float32", "float64"}
        Precision of kernel values and scores while they are summed.
    quantized : bool
    basis_scale : float
        What the entries of a sparse quantised basis are multiples of.
    n_entries : int
        Basis vectors; for a linear model, the features that count.
    parts : tuple of Part
        Of a sum of kernels, whose scores are added up.
    """

    model: Model
    form: Form
    tables: list[Table]
    sums: str
    quantized: bool
    basis_scale: float
    n_entries: int
    parts: tuple[Part, ...] = ()

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, if the model has one; without the map, if rows are mapped before."""
        expansion = expansion_of(self.model)
        return expansion.kernel if isinstance(expansion, KernelExpansion) else None

    @property
    def n_mapped(self) -> int:
        """How many numbers a row is mapped to before it meets the vectors, or 0 if it is not."""
        return int(self.model.map.shape[1]) if isinstance(self.model, MappedExpansion) else 0

    @property
    def has_linear_part(self) -> bool:
        """Whether features count by themselves, beside the kernel."""
        return linear_part(self.model) is not None

    def item_type(self, suffix: str) -> str:
        """Return the C type of the numbers of a table."""
        return next(table.item_type for table in self.tables if table.suffix == suffix)

    @property
    def sizes(self) -> dict[str, int]:
        """What its loops count to, by the names of macros."""
        return {
            "N_FEATURES": self.model.n_features,
            "N_OUTPUTS": self.model.n_outputs,
            "N_VECTORS": 0 if self.form == "linear" else self.n_entries,
        }

    @property
    def used_tables(self) -> list[Table]:
        """The tables that its functions read: of a model without vectors, few."""
        if self.n_entries or self.parts:
            return self.tables
        return [table for table in self.tables if table.suffix in ("intercept", "coef_scale")]

    @property
    def skips_features(self) -> bool:
        """Whether a linear model has features that count for nothing, and are left out."""
        return self.form == "linear" and self.n_entries < self.model.n_features


def lay_out(model: Model, dtype: str, quantize: str | None, rows: Rows | None) -> Layout:
    """Return the layout of a model.

    Parameters
    ----------
    model : Model
    dtype : {"float32", "float64"}
        Precision of rows and scores. Where single precision would not keep the scores to 1e-5 of
        the largest, because large coefficients cancel, sums and tables are of double precision
        all the same.
    quantize : {None, "int16"}
    rows : array or CSR matrix, or None
        What precision is measured on; None is the basis vectors and points between them.
    """
    if isinstance(model, KernelExpansion) and isinstance(model.kernel, KernelSum):
        return _lay_out_sum(model, dtype, quantize, rows)
    form = _form(model)
    model = as_computed(model)
    if quantize is not None:
        return _quantized(model, form, dtype, rows)
    precision = DOUBLE if dtype == "float64" else least_precision(model, form, rows)
    model = rounded(model, precision)
    expansion = expansion_of(model)
    coef, kept = _coefficient_rows(expansion, form)
    tables = [*kept, *_basis_tables(expansion, form, np.dtype(precision.basis))]
    tables += _kernel_tables(model, precision.coef)
    tables.append(Table.of("coef", coef.astype(precision.coef)))
    tables.append(Table.of("intercept", model.intercept.astype(precision.coef)))
    linear = linear_part(model)
    if linear is not None:
        tables.append(Table.of("linear", linear.astype(precision.coef)))
    return Layout(model, form, tables, precision.sums, False, 1.0, len(coef))


def _lay_out_sum(
    model: KernelExpansion, dtype: str, quantize: str | None, rows: Rows | None
) -> Layout:
    whole = in_parts(model)
    parts = tuple(
        Part(seen.columns, lay_out(each, dtype, quantize, None if rows is None else seen.of(rows)))
        for seen, each in zip(whole.seen, whole.parts, strict=True)
    )
    tables = []
    for number, part in enumerate(parts):
        tables += [table.renamed(f"part{number}") for table in part.layout.used_tables]
        if part.first is None:
            tables.append(Table.of(f"columns{number}", unsigned(part.columns)))
    needs_double = any(part.layout.sums == "float64" for part in parts)
    return Layout(
        replace(whole, parts=tuple(part.layout.model for part in parts)),
        "sum",
        tables,
        "float64" if needs_double else "float32",
        quantize is not None,
        1.0,
        model.n_basis,
        parts,
    )


def _form(model: Model) -> Form:
    if isinstance(model, LinearMap):
        return "linear"
    if not isinstance(model, KernelExpansion):
        raise TypeError(f"A model of type {type(model).__name__} has no C form.")
    if isinstance(model.kernel, Precomputed):
        return "precomputed"
    if isinstance(model.kernel, AdaptiveRBF):
        return "dense"  # learned vectors have hardly an entry that is zero
    if not isinstance(model.kernel, (RBF, Laplacian, ChiSquare, Polynomial, Sigmoid)):
        raise TypeError(
            f"The kernel {model.kernel!r} has no C form, as those of widemargin.kernels have that "
            "have a formula here. Fit with one of them, such as RBF."
        )
    n_entries = model.basis.nnz if sp.issparse(model.basis) else np.count_nonzero(model.basis)
    few = n_entries < _FEW_ENTRIES * model.n_basis * model.n_features
    return "sparse" if few else "dense"


def _coefficient_rows(model: Any, form: Form) -> tuple[Array, list[Table]]:
    """Return the coefficients, without features of a linear model that count for nothing."""
    if form != "linear":
        return model.coef, []
    used = np.flatnonzero(model.coef.any(axis=1))
    if len(used) > _MANY_FEATURES * len(model.coef):
        return model.coef, []
    return model.coef[used], [Table.of("features", unsigned(used))]


def _basis_tables(model: Any, form: Form, dtype: Any) -> list[Table]:
    if form == "linear":
        return []
    if form == "precomputed":
        return [Table.of("rows", unsigned(model.basis))]
    if form == "dense":
        return [Table.of("basis", as_dense(model.basis).astype(dtype))]
    basis = as_sparse(model.basis)
    return [*_places(basis), Table.of("basis", basis.data.astype(dtype))]


def _kernel_tables(model: Any, dtype: str) -> list[Table]:
    """Return the tables of a kernel whose parameters are more than a few numbers."""
    if isinstance(model, MappedExpansion):
        around = {"origin": model.origin, "map": model.map}
        tables = [Table.of(suffix, values.astype(dtype)) for suffix, values in around.items()]
        return [*tables, *_kernel_tables(model.mapped, dtype)]
    kernel = model.kernel if isinstance(model, KernelExpansion) else None
    if not isinstance(kernel, AdaptiveRBF):
        return []
    weights = feature_weights(kernel)
    tables = [] if weights is None else [Table.of("weights", weights.astype(dtype))]
    return [*tables, Table.of("widths", kernel.widths.astype(dtype))]


def _places(basis: Rows) -> list[Table]:
    return [
        Table.of("starts", unsigned(basis.indptr)),
        Table.of("features", unsigned(basis.indices)),
    ]


def _quantized(model: Any, form: Form, dtype: str, rows: Rows | None) -> Layout:
    expansion = expansion_of(model)
    intercept = fitting(expansion.intercept, dtype)
    scales = fitting(np.abs(expansion.coef).max(axis=0, initial=0.0) / _LARGEST, dtype)
    scales[scales == 0] = 1.0
    steps = np.rint(expansion.coef / scales).clip(-_LARGEST, _LARGEST)
    numbers: dict[str, Any] = {"coef": steps * scales, "intercept": intercept}
    if isinstance(expansion, KernelExpansion):
        numbers["kernel"] = rounded_kernel(expansion.kernel, dtype)
    tables, basis_scale = _basis_tables(expansion, form, np.float64), 1.0
    if form == "dense":
        tables, numbers["basis"] = _quantized_dense(expansion.basis, dtype)
    elif form == "sparse":
        tables, numbers["basis"], basis_scale = _quantized_sparse(expansion.basis, dtype)
    if form in ("dense", "sparse") and expansion.kernel.positive_only:
        numbers["basis"] = _without_negative(numbers["basis"])
    expansion = replace(expansion, **numbers)
    kept, places = _coefficient_rows(replace(expansion, coef=steps), form)
    linear_tables, linear = _quantized_linear(linear_part(model), dtype)
    quantized = around(model, expansion, dtype, linear)
    tables = [*places, *tables, *_kernel_tables(quantized, dtype)]
    tables.append(Table.of("coef", kept.astype(np.int16)))
    tables.append(Table.of("coef_scale", scales.astype(dtype)))
    tables.append(Table.of("intercept", intercept.astype(dtype)))
    tables += linear_tables
    sums = dtype if dtype == "float64" else least_sums(quantized, form, rows)
    return Layout(quantized, form, tables, sums, True, basis_scale, len(kept))


def _quantized_linear(linear: Array | None, dtype: str) -> tuple[list[Table], Array | None]:
    """Return tables of ``scale * step``, with a scale for each feature.

    A feature of large values has small coefficients, which a common scale would make zeros.
    """
    if linear is None:
        return [], None
    scale = fitting(np.abs(linear).max(axis=1) / _LARGEST, dtype)
    scale[scale == 0] = 1.0
    steps = np.rint(linear / scale[:, np.newaxis]).clip(-_LARGEST, _LARGEST)
    tables = [
        Table.of("linear", steps.astype(np.int16)),
        Table.of("linear_scale", scale.astype(dtype)),
    ]
    return tables, steps * scale[:, np.newaxis]


def _quantized_dense(basis: Rows, dtype: str) -> tuple[list[Table], Array]:
    """Return tables of ``offset + scale * step``, with an offset and a scale for each feature."""
    basis = as_dense(basis)
    low, high = basis.min(axis=0, initial=np.inf), basis.max(axis=0, initial=-np.inf)
    if len(basis) == 0:
        low = high = np.zeros(basis.shape[1])
    offset, scale = (low + high) / 2, (high - low) / (2 * _LARGEST)
    for feature, values in enumerate(basis.T):
        step = _grid_step(values)
        if step is not None:
            offset[feature], scale[feature] = low[feature], step
    offset, scale = fitting(offset, dtype), fitting(scale, dtype)
    scale[scale == 0] = 1.0
    steps = np.rint((basis - offset) / scale).clip(-_LARGEST, _LARGEST)
    tables = [
        Table.of("basis", steps.astype(np.int16)),
        Table.of("scale", scale.astype(dtype)),
        Table.of("offset", offset.astype(dtype)),
    ]
    return tables, offset + scale * steps


def _without_negative(basis: Rows) -> Rows:
    """Return vectors whose zeros have not become numbers below zero, as the C code takes them."""
    if sp.issparse(basis):
        return basis  # of which only entries above zero are kept
    return np.maximum(basis, 0.0)


def _quantized_sparse(basis: Rows, dtype: str) -> tuple[list[Table], Rows, float]:
    """Return tables of multiples of one scale: zeros stay zeros, and wide models small."""
    basis = as_sparse(basis)
    largest = np.abs(basis.data).max(initial=0.0)
    step = _grid_step(np.append(basis.data, 0.0))
    if step is None or largest > _LARGEST * step:
        step = largest / _LARGEST
    scale = float(fitting(np.array(step or 1.0), dtype))
    steps = np.rint(basis.data / scale).clip(-_LARGEST, _LARGEST)
    basis.data = steps * scale
    return [*_places(basis), Table.of("basis", steps.astype(np.int16))], basis, scale


def _grid_step(values: Array) -> float | None:
    """Return what all differences of these values are multiples of, if int16 can count them.

    Pixels and counts lie on such grids. They are then kept without loss, in few digits. Euclid's
    algorithm on all differences at once finds the step.
    """
    gaps = np.diff(np.unique(values))
    if len(gaps) == 0:
        return None
    spread = float(gaps.sum())
    least, slack = spread / _LARGEST, 1e-6 * spread
    step = float(gaps.min())
    while step >= least:
        rest = np.abs(gaps - np.rint(gaps / step) * step)
        rest = rest[rest > slack]
        if len(rest) == 0:
            return spread / round(spread / step)
        step = float(rest.min())
    return None

"""The scores of a model as operators: the one home of the kernels in ONNX."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.precision import middle_of
from widemargin.export._onnx._graph import Graph, import_onnx
from widemargin.export._widths import LARGEST_NORM, scale_before
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    KernelSum,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap, Model

Array: TypeAlias = npt.NDArray[Any]
Precisions: TypeAlias = tuple[type[np.floating[Any]], type[np.floating[Any]]]


def add_scores(
    graph: Graph, rows: str, model: Model, dtype: np.dtype[Any], precisions: Precisions
) -> str:
    """Add the scores of rows, of shape (batch, n_outputs).

    Parameters
    ----------
    graph : Graph
    rows : str
        Name of the rows, whose type is ``dtype``.
    model : Model
    dtype : dtype
        Type of the scores.
    precisions : tuple of types
        Of what the kernel is a function of; of its values and their weighted sums.
    """
    inside, outside = precisions
    if isinstance(model, KernelExpansion) and model.n_basis:
        values, weights = _add_values(graph, rows, model, dtype, inside, outside)
    else:
        values = graph.cast(rows, dtype, outside)
        empty = np.zeros((model.n_features, model.n_outputs))  # an expansion in no vectors
        weights = model.coef if isinstance(model, LinearMap) else empty
    coef = graph.constant("coef", weights, outside)
    start = _add_start(graph, rows, model, dtype, outside)
    return graph.cast(graph.add("Gemm", values, coef, start), outside, dtype)


def _add_start(graph: Graph, rows: str, model: Model, dtype: Any, outside: Any) -> str:
    """Add what weighed kernel values are added to: the intercepts, and the linear part if any.

    Its rows are seen from amid the vectors, so that features far from zero do not cancel against
    the intercepts.
    """
    if not isinstance(model, KernelExpansion) or model.linear is None:
        return graph.constant("intercept", model.intercept, outside)
    origin = middle_of(_dense(model.basis))
    seen = graph.add(
        "Sub", graph.cast(rows, dtype, outside), graph.constant("origin", origin, outside)
    )
    linear = graph.constant("linear", model.linear, outside)
    intercept = graph.constant("intercept", model.intercept + origin @ model.linear, outside)
    return graph.add("Gemm", seen, linear, intercept)


def _add_values(
    graph: Graph, rows: str, model: KernelExpansion, dtype: Any, inside: Any, outside: Any
) -> tuple[str, Array]:
    """Add the kernel values of rows and vectors, and return coefficients for them.

    Those of the parts of a sum stand side by side, (batch, n_parts * n_basis), and their weights
    are in the coefficients: runtimes fuse a factor with what is before it, in single precision.
    """
    kernel = model.kernel
    if isinstance(kernel, Precomputed):
        numbers = graph.constant("training_rows", model.basis, np.int64)
        values = graph.cast(graph.add("Gather", rows, numbers, axis=1), dtype, outside)
        return values, model.coef
    rows = graph.cast(rows, dtype, inside)
    basis = _dense(model.basis)
    if not isinstance(kernel, KernelSum):
        return _add_kernel_values(graph, rows, kernel, basis, inside, outside), model.coef
    each = []
    for part in kernel:
        columns = graph.constant("columns", part.columns, np.int64)
        seen = graph.add("Gather", rows, columns, axis=1)
        vectors = part.of(basis)
        each.append(_add_kernel_values(graph, seen, part.kernel, vectors, inside, outside))
    coef = np.vstack([part.weight * model.coef for part in kernel])
    return graph.add("Concat", *each, axis=1), coef


def _add_kernel_values(
    graph: Graph, rows: str, kernel: Any, basis: Array, inside: Any, outside: Any
) -> str:
    n_basis = len(basis)
    if isinstance(kernel, Linear):  # alone it is a linear map
        vectors = graph.constant("basis", basis.T, inside)
        return graph.cast(graph.add("MatMul", rows, vectors), inside, outside)
    if isinstance(kernel, (Polynomial, Sigmoid)):
        vectors = graph.constant("basis", kernel.gamma * basis.T, inside)
        shift = graph.constant("coef0", np.full(n_basis, kernel.coef0), inside)
        base = graph.cast(graph.add("Gemm", rows, vectors, shift), inside, outside)
        if isinstance(kernel, Sigmoid):
            return graph.add("Tanh", base)
        if kernel.degree == 1:
            return base
        return graph.add("Pow", base, graph.constant("degree", kernel.degree, outside))
    if isinstance(kernel, RBF):
        widths = np.full(n_basis, kernel.gamma)
        exponents = _add_rbf_exponents(graph, rows, basis, widths, None, inside)
    elif isinstance(kernel, AdaptiveRBF):
        widths = kernel.widths.astype(np.float64)
        exponents = _add_rbf_exponents(graph, rows, basis, widths, kernel.metric, inside)
    elif isinstance(kernel, Laplacian):
        scale = scale_before(kernel.gamma, 1)
        seen, seen_basis = _add_seen(graph, rows, basis, scale, None, inside)
        factor = np.array(-kernel.gamma / scale)
        exponents = _add_sums_of_gaps(graph, seen, seen_basis, "Abs", factor, inside)
    elif isinstance(kernel, ChiSquare):
        scale = scale_before(kernel.gamma, 1)
        seen = graph.add("Mul", rows, graph.constant("scale", scale, inside))
        factor = np.array(-kernel.gamma / scale)
        exponents = _add_sums_of_gaps(graph, seen, scale * basis, "ChiSquare", factor, inside)
    else:
        raise TypeError(
            f"There is no ONNX graph for the kernel {kernel!r}, only for those of "
            "widemargin.kernels that have a formula here. Fit with one of them, such as RBF."
        )
    return graph.add("Exp", graph.cast(exponents, inside, outside))


def _add_rbf_exponents(
    graph: Graph, rows: str, basis: Array, widths: Array, metric: Array | None, dtype: Any
) -> str:
    """Add ``-t_j |(x - b_j) metric|^2`` for the widths t.

    What single precision loses by products is measured; where double precision loses by them,
    differences are taken.
    """
    scale = scale_before(float(widths.max()), 2)
    seen, vectors = _add_seen(graph, rows, basis, scale, metric, dtype)
    widths = widths / scale / scale
    with np.errstate(over="ignore", invalid="ignore"):
        norms = widths * np.einsum("ij,ij->i", vectors, vectors)
    if np.dtype(dtype) == np.float64 and not norms.max() <= LARGEST_NORM:
        return _add_sums_of_gaps(graph, seen, vectors, "Square", -widths, dtype)
    return _add_products(graph, seen, vectors, widths, norms, dtype)


def _add_seen(
    graph: Graph, rows: str, basis: Array, scale: float, metric: Array | None, dtype: Any
) -> tuple[str, Array]:
    """Add rows as seen from amid the vectors, scaled and in the metric; return vectors likewise."""
    origin = middle_of(basis)
    seen = graph.add("Sub", rows, graph.constant("origin", origin, dtype))
    vectors = basis - origin
    if metric is None and scale == 1:
        return seen, vectors
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        # Rounded first: rows and vectors must go by the same metric.
        metric = scale * (np.array(1.0) if metric is None else metric.astype(np.float64))
        metric = metric.astype(dtype).astype(np.float64)
        vectors = vectors @ metric if metric.ndim == 2 else vectors * metric
    operator = "MatMul" if metric.ndim == 2 else "Mul"
    return graph.add(operator, seen, graph.constant("metric", metric, dtype)), vectors


def _add_products(
    graph: Graph, seen: str, vectors: Array, widths: Array, norms: Array, dtype: Any
) -> str:
    """Add ``-t_j |z - v_j|^2`` as one product, ``(z, |z|^2) . (2 t v, -t) - t |v|^2``."""
    extended = graph.add("Concat", seen, graph.sum_of_squares(seen), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        factors = np.vstack([2.0 * widths * vectors.T, -widths])
    exponents = graph.add(
        "Gemm",
        extended,
        graph.constant("basis", factors, dtype),
        graph.constant("norms", -norms, dtype),
    )
    return graph.add("Min", exponents, graph.constant("zero", 0.0, dtype))


def _add_sums_of_gaps(
    graph: Graph, seen: str, vectors: Array, of_gap: str, factors: Array, dtype: Any
) -> str:
    """Add the sums of sizes, squares or chi squares of all gaps between row and vector.

    They are multiplied with factors.

    A feature is taken after the other: all at once would take a tensor of (batch, n_basis,
    n_features).
    """
    helper = import_onnx().helper
    batch = graph.add("Gather", graph.add("Shape", seen), graph.axis(0))
    shape = graph.add("Concat", batch, graph.constant("one", [1], np.int64), axis=0)
    zeros = graph.constant("zeros", np.zeros((1, len(vectors))), dtype)
    start = graph.add("Expand", zeros, shape)
    columns = graph.add("Unsqueeze", graph.add("Transpose", seen), graph.axis(2))
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    least = helper.make_tensor("value", element, [1], [np.finfo(dtype).tiny])
    steps = {
        "Abs": [helper.make_node("Abs", ["gap"], ["term"])],
        "Square": [helper.make_node("Mul", ["gap", "gap"], ["term"])],
        "ChiSquare": [
            helper.make_node("Add", ["column", "entries"], ["total"]),
            # Where both are zero, so is the gap.
            helper.make_node("Constant", [], ["least"], value=least),
            helper.make_node("Max", ["total", "least"], ["divisor"]),
            helper.make_node("Div", ["gap", "divisor"], ["share"]),
            helper.make_node("Mul", ["gap", "share"], ["term"]),
        ],
    }
    body = helper.make_graph(
        [
            helper.make_node("Sub", ["column", "entries"], ["gap"]),
            *steps[of_gap],
            helper.make_node("Add", ["sum_before", "term"], ["sum_after"]),
        ],
        "one_feature",
        [
            helper.make_tensor_value_info("sum_before", element, [None, len(vectors)]),
            helper.make_tensor_value_info("column", element, [None, 1]),
            helper.make_tensor_value_info("entries", element, [len(vectors)]),
        ],
        [helper.make_tensor_value_info("sum_after", element, [None, len(vectors)])],
    )
    entries = graph.constant("basis", vectors.T, dtype)
    sums = graph.add("Scan", start, columns, entries, body=body, num_scan_inputs=2)
    return graph.add("Mul", sums, graph.constant("factors", factors, dtype))


def _dense(basis: Any) -> Array:
    return np.asarray(basis.toarray() if sp.issparse(basis) else basis, dtype=np.float64)

"""The scores of a model as operators: the one home of the kernels in ONNX."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.export._onnx._graph import Graph, import_onnx
from widemargin.kernels import RBF, AdaptiveRBF, Laplacian, Polynomial, Precomputed, Sigmoid
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
        values = _add_kernel_values(graph, rows, model, dtype, inside, outside)
        weights = model.coef
    else:
        values = graph.cast(rows, dtype, outside)
        empty = np.zeros((model.n_features, model.n_outputs))  # an expansion in no vectors
        weights = model.coef if isinstance(model, LinearMap) else empty
    coef = graph.constant("coef", weights, outside)
    intercept = graph.constant("intercept", model.intercept, outside)
    return graph.cast(graph.add("Gemm", values, coef, intercept), outside, dtype)


def _add_kernel_values(
    graph: Graph, rows: str, model: KernelExpansion, dtype: Any, inside: Any, outside: Any
) -> str:
    kernel = model.kernel
    if isinstance(kernel, Precomputed):
        numbers = graph.constant("training_rows", model.basis, np.int64)
        return graph.cast(graph.add("Gather", rows, numbers, axis=1), dtype, outside)
    rows = graph.cast(rows, dtype, inside)
    basis = _dense(model.basis)
    if isinstance(kernel, (Polynomial, Sigmoid)):
        vectors = graph.constant("basis", kernel.gamma * basis.T, inside)
        shift = graph.constant("coef0", np.full(model.n_basis, kernel.coef0), inside)
        base = graph.cast(graph.add("Gemm", rows, vectors, shift), inside, outside)
        if isinstance(kernel, Sigmoid):
            return graph.add("Tanh", base)
        if kernel.degree == 1:
            return base
        return graph.add("Pow", base, graph.constant("degree", kernel.degree, outside))
    if isinstance(kernel, RBF):
        widths = np.full(model.n_basis, kernel.gamma)
        exponents = _add_rbf_exponents(graph, rows, basis, widths, None, inside)
    elif isinstance(kernel, AdaptiveRBF):
        widths = kernel.widths.astype(np.float64)
        exponents = _add_rbf_exponents(graph, rows, basis, widths, kernel.metric, inside)
    elif isinstance(kernel, Laplacian):
        exponents = _add_laplacian_exponents(graph, rows, basis, kernel.gamma, inside)
    else:
        raise TypeError(f"There is no ONNX graph for the kernel {kernel!r}.")
    return graph.add("Exp", graph.cast(exponents, inside, outside))


def _add_rbf_exponents(
    graph: Graph, rows: str, basis: Array, widths: Array, metric: Array | None, dtype: Any
) -> str:
    """Add ``-t_j |(x - b_j) metric|^2`` for the widths t as one product.

    With z and v the row and the vector, both seen from a common origin and in the metric, it is
    ``(z, |z|^2) . (2 t v, -t) - t |v|^2``.
    """
    origin, vectors = _from_origin(basis)
    seen = graph.add("Sub", rows, graph.constant("origin", origin, dtype))
    if metric is not None:
        operator = "Mul" if metric.ndim == 1 else "MatMul"
        seen = graph.add(operator, seen, graph.constant("metric", metric, dtype))
        wide = metric.astype(np.float64)
        vectors = vectors * wide if metric.ndim == 1 else vectors @ wide
    extended = graph.add("Concat", seen, graph.sum_of_squares(seen), axis=1)
    factors = np.vstack([2.0 * widths * vectors.T, -widths])
    norms = -widths * np.einsum("ij,ij->i", vectors, vectors)
    exponents = graph.add(
        "Gemm",
        extended,
        graph.constant("basis", factors, dtype),
        graph.constant("norms", norms, dtype),
    )
    return graph.add("Min", exponents, graph.constant("zero", 0.0, dtype))


def _add_laplacian_exponents(
    graph: Graph, rows: str, basis: Array, gamma: float, dtype: Any
) -> str:
    """Add ``-gamma |x - b|_1``, a feature after the other.

    All at once would take a tensor of (batch, n_basis, n_features).
    """
    helper = import_onnx().helper
    origin, vectors = _from_origin(basis)
    centred = graph.add("Sub", rows, graph.constant("origin", origin, dtype))
    scaled = graph.add("Mul", centred, graph.constant("gamma", gamma, dtype))
    sums = graph.add("ReduceSum", scaled, graph.axis(1), keepdims=1)
    start = graph.add("Mul", sums, graph.constant("zeros", np.zeros((1, len(vectors))), dtype))
    columns = graph.add("Unsqueeze", graph.add("Transpose", scaled), graph.axis(2))
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    body = helper.make_graph(
        [
            helper.make_node("Sub", ["column", "entries"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["distance"]),
            helper.make_node("Sub", ["sum_before", "distance"], ["sum_after"]),
        ],
        "one_feature",
        [
            helper.make_tensor_value_info("sum_before", element, [None, len(vectors)]),
            helper.make_tensor_value_info("column", element, [None, 1]),
            helper.make_tensor_value_info("entries", element, [len(vectors)]),
        ],
        [helper.make_tensor_value_info("sum_after", element, [None, len(vectors)])],
    )
    entries = graph.constant("basis", gamma * vectors.T, dtype)
    return graph.add("Scan", start, columns, entries, body=body, num_scan_inputs=2)


def _from_origin(basis: Array) -> tuple[Array, Array]:
    """Return an origin amid the vectors, and the vectors as seen from there.

    The origin is a float32 number, so that float32 rows close to it are moved without rounding.
    """
    origin = np.median(basis, axis=0).astype(np.float32).astype(np.float64)
    return origin, basis - origin


def _dense(basis: Any) -> Array:
    return np.asarray(basis.toarray() if sp.issparse(basis) else basis, dtype=np.float64)

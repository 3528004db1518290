"""What rows go through before they reach a model, as operators. All of it is of double precision.

What moves numbers far from zero would lose digits otherwise, before the machine sees them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.export._onnx._graph import Graph
from widemargin.preparation import (
    Categories,
    Clip,
    Fill,
    Normalise,
    Operation,
    Pick,
    PreparedMachine,
    Project,
    Scale,
)

Array: TypeAlias = npt.NDArray[Any]

#: Operators of texts are not among the standard ones before opset 19; every runtime has these.
CATEGORIES_DOMAIN = "ai.onnx.ml"

_OUTPUTS = ("label", "scores", "probabilities")
_DOUBLE = np.dtype(np.float64)


def add_preparation(graph: Graph, prepared: PreparedMachine, dtype: np.dtype[Any]) -> str:
    """Add inputs and all operations, and return the name of the rows that the model gets.

    Parameters
    ----------
    graph : Graph
    prepared : PreparedMachine
    dtype : dtype
        Type of numbers that come in, and of the rows that the model gets.
    """
    if prepared.is_bare:
        graph.inputs["X"] = (dtype, prepared.n_features)
        return "X"
    rows = _add_columns(graph, prepared, dtype)
    for operation in prepared.operations:
        rows = _add_operation(graph, rows, operation)
    return graph.cast(rows, _DOUBLE, dtype)


def _add_columns(graph: Graph, prepared: PreparedMachine, dtype: np.dtype[Any]) -> str:
    """Add the columns that are read, side by side, in double precision."""
    if _takes_columns(prepared):
        sources = _add_inputs(graph, prepared, dtype)
    else:
        graph.inputs["X"] = (dtype, prepared.n_features)
        wide = graph.cast("X", dtype, _DOUBLE)
        if prepared.reads_all:
            return wide
        if not prepared.has_categories:
            read = [column.source for column in prepared.columns]
            return _gathered(graph, wide, np.array(read))
        sources = {}
        for source in {column.source for column in prepared.columns}:
            sources[source] = _gathered(graph, wide, np.array([source]))
    each = []
    for column in prepared.columns:
        value = sources[column.source]
        if column.categories is not None and column.categories.are_texts:
            value = _add_codes_of_texts(graph, value, column.categories)
        elif column.categories is not None:
            value = _add_codes_of_numbers(graph, value, column.categories, dtype)
        each.append(value)
    return graph.add("Concat", *each, axis=1) if len(each) > 1 else each[0]


def _takes_columns(prepared: PreparedMachine) -> bool:
    """Whether columns come in one by one: some are texts, or may be, as they are not read."""
    read = {column.source for column in prepared.columns}
    return prepared.has_texts or (
        prepared.by_name and prepared.feature_names is not None and len(read) < prepared.n_features
    )


def _add_inputs(graph: Graph, prepared: PreparedMachine, dtype: np.dtype[Any]) -> dict[int, str]:
    """Add an input for each column that is read, and return their values: numbers in double."""
    texts = {
        column.source
        for column in prepared.columns
        if column.categories is not None and column.categories.are_texts
    }
    names = {}
    for source in sorted({column.source for column in prepared.columns}):
        name = prepared.feature_names[source] if prepared.feature_names else f"column_{source}"
        while name in graph.inputs or name in _OUTPUTS or not name:
            name += "_column"
        graph.inputs[name] = (np.dtype(object) if source in texts else dtype, 1)
        names[source] = name
    return {
        source: name if source in texts else graph.cast(name, dtype, _DOUBLE)
        for source, name in names.items()
    }


def _add_codes_of_texts(graph: Graph, column: str, categories: Categories) -> str:
    """Add the codes of texts; an empty one stands for what is missing, unless it is a category."""
    pairs = zip(categories.values, categories.codes.tolist(), strict=True)
    table = {str(value): code for value, code in pairs if value is not None}
    table = {"": categories.code_of_missing} | table
    codes = graph.add(
        "LabelEncoder",
        column,
        domain=CATEGORIES_DOMAIN,
        keys_strings=list(table),
        values_floats=list(table.values()),
        default_float=categories.code_of_unknown,
    )
    return graph.cast(codes, np.float32, _DOUBLE)


def _add_codes_of_numbers(
    graph: Graph, column: str, categories: Categories, dtype: np.dtype[Any]
) -> str:
    """Add the codes of numbers, which are as exact as the numbers that come in."""
    pairs = [
        (value, code)
        for value, code in zip(categories.values, categories.codes.tolist(), strict=True)
        if value is not None
    ]
    values = np.array([[value for value, _ in pairs]]).astype(dtype)
    codes = np.array([[code] for _, code in pairs], dtype=np.float64)
    is_each = graph.add("Equal", column, graph.constant("categories", values, _DOUBLE))
    is_each = graph.cast(is_each, np.bool_, _DOUBLE)
    code = graph.add("MatMul", is_each, graph.constant("codes", codes, _DOUBLE))
    count = graph.add("MatMul", is_each, graph.constant("ones", np.ones_like(codes), _DOUBLE))
    known = graph.add("Greater", count, _number(graph, 0.5))
    found = graph.add("Where", known, code, _number(graph, categories.code_of_unknown))
    return graph.add(
        "Where", graph.add("IsNaN", column), _number(graph, categories.code_of_missing), found
    )


def _add_operation(graph: Graph, rows: str, operation: Operation) -> str:
    if isinstance(operation, Pick):
        return _add_pick(graph, rows, operation)
    if isinstance(operation, Fill):
        return _add_fill(graph, rows, operation)
    if isinstance(operation, Clip):
        low = graph.add("Max", rows, graph.constant("low", operation.low, _DOUBLE))
        return graph.add("Min", low, graph.constant("high", operation.high, _DOUBLE))
    if isinstance(operation, Scale):
        moved = graph.add("Sub", rows, graph.constant("centre", operation.centre, _DOUBLE))
        return graph.add("Mul", moved, graph.constant("factor", operation.factor, _DOUBLE))
    if isinstance(operation, Normalise):
        return _amid(graph, rows, operation, _add_normalised)
    return _amid(graph, rows, operation, _add_mapped)


def _add_pick(graph: Graph, rows: str, pick: Pick) -> str:
    picked = _gathered(graph, rows, pick.columns)
    for test in ("equals", "missing"):
        asked = np.array([each == test for each in pick.tests])
        if not asked.any():
            continue
        if test == "missing":
            answer = graph.cast(graph.add("IsNaN", picked), np.bool_, _DOUBLE)
        else:
            same = graph.add("Equal", picked, graph.constant("values", pick.values, _DOUBLE))
            # NaN minus itself is NaN: what is unknown stays so.
            answer = graph.add(
                "Add", graph.cast(same, np.bool_, _DOUBLE), graph.add("Sub", picked, picked)
            )
        picked = graph.add("Where", graph.constant("asked", asked), answer, picked)
    return picked


def _add_fill(graph: Graph, rows: str, fill: Fill) -> str:
    if np.isnan(fill.missing):
        found = graph.add("IsNaN", rows)
    else:
        found = graph.add("Equal", rows, _number(graph, fill.missing))
    left = np.isnan(fill.values)
    found = graph.add("And", found, graph.constant("filled", ~left))
    values = graph.constant("values", np.where(left, 0.0, fill.values), _DOUBLE)
    return graph.add("Where", found, values, rows)


def _amid(graph: Graph, rows: str, operation: Normalise | Project, add: Any) -> str:
    """Add an operation on columns that may have others before and after them."""
    first, last = operation.first, operation.first + operation.count
    if operation.count == operation.width:
        return str(add(graph, rows, operation))
    parts = [add(graph, _gathered(graph, rows, np.arange(first, last)), operation)]
    if first > 0:
        parts.insert(0, _gathered(graph, rows, np.arange(first)))
    if last < operation.width:
        parts.append(_gathered(graph, rows, np.arange(last, operation.width)))
    return graph.add("Concat", *parts, axis=1)


def _add_normalised(graph: Graph, rows: str, operation: Normalise) -> str:
    if operation.norm == "l2":
        norms = graph.add("Sqrt", graph.sum_of_squares(rows))
    elif operation.norm == "l1":
        sizes = graph.add("Abs", rows)
        norms = graph.add("ReduceSum", sizes, graph.axis(1), keepdims=1)
    else:
        norms = graph.over_columns("ReduceMax", graph.add("Abs", rows))
    is_zero = graph.add("Equal", norms, _number(graph, 0.0))
    return graph.add("Div", rows, graph.add("Where", is_zero, _number(graph, 1.0), norms))


def _add_mapped(graph: Graph, rows: str, project: Project) -> str:
    moved = graph.add("Sub", rows, graph.constant("centre", project.centre, _DOUBLE))
    matrix = graph.constant("matrix", project.matrix, _DOUBLE)
    return graph.add("Gemm", moved, matrix, graph.constant("shift", project.shift, _DOUBLE))


def _gathered(graph: Graph, rows: str, columns: Array) -> str:
    return graph.add("Gather", rows, graph.constant("columns", columns, np.int64), axis=1)


def _number(graph: Graph, value: float) -> str:
    return graph.constant("number", value, _DOUBLE)

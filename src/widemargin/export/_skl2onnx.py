"""Converters for skl2onnx: pipelines that end in an estimator of this library."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from widemargin._registry import ESTIMATORS
from widemargin.export._onnx import LEAST_OPSET, Graph, add_machine, output_types
from widemargin.export._source import resolve

# Outputs are tensors, whatever is asked for: scores of two classes are no mapping of labels to
# numbers. Both values of zipmap are taken, as pipelines hand on True and many callers pass False.
_OPTIONS = {"zipmap": [True, False], "output_class_labels": [False], "nocl": [False]}
_TENSOR_TYPES = {
    "float32": "FloatTensorType",
    "float64": "DoubleTensorType",
    "int64": "Int64TensorType",
    "bool": "BooleanTensorType",
    "object": "StringTensorType",
}


def register_skl2onnx() -> None:
    """Register every estimator of the library with skl2onnx.

    Importing :mod:`widemargin.export` does so where skl2onnx is installed. Converted machines have
    the outputs ``label``, ``scores`` and, where they have them, ``probabilities``, all of them
    tensors: see :func:`widemargin.export.to_onnx`. The option ``zipmap`` changes nothing.
    """
    update = importlib.import_module("skl2onnx").update_registered_converter
    for name, estimator in ESTIMATORS.items():
        update(
            estimator,
            f"Widemargin{name}",
            _set_output_types,
            _convert,
            parser=_parse,
            options=_OPTIONS,
        )


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """Declare the outputs; ``_set_output_types`` says of which types they are."""
    alias = importlib.import_module("skl2onnx").get_model_alias(type(model))
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    for name in output_types(*resolve(model), np.dtype(np.float32)):
        operator.outputs.append(scope.declare_local_variable(name, inputs[0].type))
    return list(operator.outputs)


def _set_output_types(operator: Any) -> None:
    types = importlib.import_module("skl2onnx.common.data_types")
    model, readout = resolve(operator.raw_operator)
    if len(operator.inputs) != 1:
        raise ValueError(
            f"{type(operator.raw_operator).__name__} takes one tensor of all features, got "
            f"{len(operator.inputs)} inputs. Join the columns in a ColumnTransformer before it."
        )
    count, width = operator.inputs[0].type.shape
    if width not in (None, model.n_features):
        raise ValueError(f"The machine takes {model.n_features} features, got {width}.")
    outputs = output_types(model, readout, _precision(operator))
    for variable, name in zip(operator.outputs, _wanted(operator, list(outputs)), strict=True):
        dtype, columns = outputs[name]
        variable.type = getattr(types, _TENSOR_TYPES[dtype.name])([count, *columns])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Put the nodes of the machine among those of the pipeline."""
    if container.target_opset < LEAST_OPSET:
        raise ValueError(f"target_opset must be {LEAST_OPSET} or more.")
    model, readout = resolve(operator.raw_operator)
    graph = Graph(opset=container.target_opset, unique_name=scope.get_unique_variable_name)
    dtype = _precision(operator)
    rows = graph.cast(operator.inputs[0].full_name, _given(operator), dtype)
    add_machine(graph, rows, model, readout, dtype)
    wanted = _wanted(operator, list(graph.outputs))
    names = {
        graph.outputs[name]: variable.full_name
        for variable, name in zip(operator.outputs, wanted, strict=True)
    }
    for name, values in graph.constants.items():
        _add_constant(container, name, values)
    for node in graph.nodes:
        container.add_node(
            node.operator,
            [names.get(name, name) for name in node.inputs],
            [names.get(node.output, node.output)],
            name=scope.get_unique_operator_name(node.operator),
            **node.attributes,
        )


def _add_constant(container: Any, name: str, values: Any) -> None:
    helper = importlib.import_module("onnx.helper")
    element = helper.np_dtype_to_tensor_dtype(values.dtype)
    strings = values.dtype == object
    flat = [value.encode() for value in values.ravel()] if strings else values.ravel()
    container.add_initializer(name, element, list(values.shape), flat)


def _wanted(operator: Any, names: list[str]) -> list[str]:
    """Return which outputs are asked for, in order.

    A meta-estimator declares a label and one more output for what it wraps.
    """
    order = sorted(names, key=["label", "scores", "probabilities"].index)
    return order if len(operator.outputs) == len(order) else [order[0], order[-1]]


def _given(operator: Any) -> np.dtype[Any]:
    """Return the type of the input."""
    guess = importlib.import_module("skl2onnx.common.data_types").guess_numpy_type
    kind = type(operator.inputs[0].type).__name__
    return np.dtype(np.bool_ if kind == "BooleanTensorType" else guess(operator.inputs[0].type))


def _precision(operator: Any) -> np.dtype[Any]:
    """Return the type of the arithmetic: double for double, single for anything else."""
    return np.dtype(np.float64 if _given(operator) == np.float64 else np.float32)

"""Converters for skl2onnx: pipelines and meta-estimators around an estimator of this library."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from widemargin._registry import ESTIMATORS
from widemargin.export._exported import resolve
from widemargin.export._onnx import (
    LEAST_OPSET,
    Columns,
    Graph,
    add_columns,
    add_machine,
    column_count,
    label_table,
    output_types,
)
from widemargin.export._wrappers import Table, asked_table, guises, option
from widemargin.models import Model
from widemargin.readouts import Readout

# Outputs are tensors, whatever is asked for: scores of two classes are no mapping of labels to
# numbers. Both values of zipmap are taken, as pipelines hand on True and many callers pass False.
_OPTIONS = {
    "zipmap": [True, False],
    "output_class_labels": [True, False],
    "nocl": [True, False],
    "raw_scores": [True, False],
}
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
    tensors: see :func:`widemargin.export.to_onnx`. Options of skl2onnx:

    - ``raw_scores=True``: ``label`` and ``scores`` alone, and a score of each class for two
      classes too, which are -f and f;
    - ``nocl=True``: the numbers of the classes from 0 on instead of their labels;
    - ``output_class_labels=True``: one more output ``class_labels``, the labels in the order of
      scores and probabilities;
    - ``zipmap`` changes nothing.

    Inside a meta-estimator of scikit-learn a machine gives what that one computes with. Where
    skl2onnx converts a meta-estimator wrongly whatever is in it, conversion fails and says why.
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
    # Pipelines inside meta-estimators are parsed when they are converted: their outputs are
    # declared by then, of types that are never corrected, and any other type would be cast to them.
    outer = guises(scope, model)
    operator = scope.declare_local_operator(alias, model)
    operator.inputs = inputs
    if outer:
        declared = [(output.raw_name, type(output.type)()) for output in outer[0].outputs]
    else:
        types = output_types(*_machine(scope, model), np.dtype(np.float32))
        if option(scope, model, "raw_scores"):
            types.pop("probabilities", None)
        declared = [(name, inputs[0].type) for name in types]
    for name, kind in declared:
        operator.outputs.append(scope.declare_local_variable(name, kind))
    outputs = list(operator.outputs)
    if option(scope, model, "output_class_labels") and not outer:
        outputs.append(_declare_class_labels(scope, _machine(scope, model)[1]))
    return outputs


def _declare_class_labels(scope: Any, readout: Readout) -> Any:
    """Declare the labels as an output: skl2onnx has an operator for integers and strings."""
    labels = label_table(readout.classes)
    if labels.dtype.kind == "f":
        raise ValueError("output_class_labels needs labels that are integers, strings or booleans.")
    labels = np.array(labels.tolist()) if labels.dtype == object else labels.astype(np.int64)
    kind = "StringTensorType" if labels.dtype.kind == "U" else "Int64TensorType"
    operator = scope.declare_local_operator("SklearnClassLabels")
    operator.classes = labels
    operator.outputs.append(
        scope.declare_local_variable("class_labels", _tensor_type(kind, [len(labels)]))
    )
    return operator.outputs[0]


def _set_output_types(operator: Any) -> None:
    model, readout = _machine(operator.scope_inst, operator.raw_operator)
    if len(operator.inputs) != 1:
        raise ValueError(
            f"{type(operator.raw_operator).__name__} takes one tensor of all features, got "
            f"{len(operator.inputs)} inputs. Join the columns in a ColumnTransformer before it."
        )
    # Wrappers that choose columns declare no shape.
    count, width = operator.inputs[0].type.shape or (None, None)
    if width not in (None, model.n_features):
        raise ValueError(f"The machine takes {model.n_features} features, got {width}.")
    precision = _precision(operator)
    outputs = output_types(model, readout, precision)
    for name in get_args(Columns):
        outputs[name] = (precision, (column_count(name, readout),))
    for variable, name in zip(operator.outputs, _contents(operator, readout), strict=True):
        dtype, columns = outputs[name]
        variable.type = _tensor_type(_TENSOR_TYPES[dtype.name], [count, *columns])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Put the nodes of the machine among those of the pipeline."""
    if container.target_opset < LEAST_OPSET:
        raise ValueError(f"target_opset must be {LEAST_OPSET} or more.")
    model, readout = _machine(scope, operator.raw_operator)
    graph = Graph(opset=container.target_opset, unique_name=scope.get_unique_variable_name)
    dtype = _precision(operator)
    rows = graph.cast(operator.inputs[0].full_name, _given(operator), dtype)
    scores = add_machine(graph, rows, model, readout, dtype)
    contents = _contents(operator, readout, container)
    for content in contents:
        if content in get_args(Columns):
            add_columns(graph, content, scores, readout, dtype)
    names = {
        graph.outputs[content]: variable.full_name
        for variable, content in zip(operator.outputs, contents, strict=True)
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


def _contents(operator: Any, readout: Readout, container: Any = None) -> list[Any]:
    """Return what the outputs are, in order.

    Without a container, types alone are asked for. StackingClassifier tells the container alone
    whether it wants scores, which are of the same type as probabilities.
    """
    if len(operator.outputs) > 2:
        return ["label", "scores", "probabilities"]
    scope, machine = operator.scope_inst, operator.raw_operator
    raw_scores = any(
        option(source, guise, "raw_scores")
        for source in (scope, container)
        for guise in (machine, *(outer.raw_operator for outer in guises(scope, machine)))
        if source is not None
    )
    table: Table = asked_table(scope, machine, readout, raw_scores)
    return ["label", table]


def _machine(scope: Any, estimator: Any) -> tuple[Model, Readout]:
    """Return the model and the readout, whose classes are numbers where that is asked for."""
    model, readout = resolve(estimator)
    assert readout is not None  # estimators have one
    if option(scope, estimator, "nocl"):
        readout = replace(readout, classes=np.arange(len(readout.classes)))
    return model, readout


def _tensor_type(name: str, shape: list[Any]) -> Any:
    return getattr(importlib.import_module("skl2onnx.common.data_types"), name)(shape)


def _given(operator: Any) -> np.dtype[Any]:
    """Return the type of the input."""
    guess = importlib.import_module("skl2onnx.common.data_types").guess_numpy_type
    kind = type(operator.inputs[0].type).__name__
    return np.dtype(np.bool_ if kind == "BooleanTensorType" else guess(operator.inputs[0].type))


def _precision(operator: Any) -> np.dtype[Any]:
    """Return the type of the arithmetic: double for double, single for anything else."""
    return np.dtype(np.float64 if _given(operator) == np.float64 else np.float32)

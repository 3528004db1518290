"""A machine as a graph, and the graph as a model.

Where float32 loses digits: distances of vectors whose squared norms are far above 1, powers of
large products, and coefficients that cancel. How much is lost depends on the machine, so it is
measured on its own vectors when it is exported, and as much of the graph computes in double as it
takes.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import widemargin
from widemargin._system.precision import keeps_digits
from widemargin.export._onnx._graph import Graph, import_onnx
from widemargin.export._onnx._preparation import CATEGORIES_DOMAIN
from widemargin.export._onnx._readout import add_readout, output_types
from widemargin.export._onnx._scores import Precisions, add_scores
from widemargin.kernels import AdaptiveRBF, Precomputed
from widemargin.models import KernelExpansion, Model
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]

# Of June 2022: runtimes since onnxruntime 1.12 load it, and nothing later would make it faster.
DEFAULT_OPSET = 17

_CATEGORIES_OPSET = 3  # of the same time as the opset above

_GOLDEN = 0.6180339887  # its multiples, less whole numbers, come in a well mixed order

_SINGLE: Precisions = (np.float32, np.float32)
_DOUBLE: Precisions = (np.float64, np.float64)
_MIXED: tuple[Precisions, ...] = (_SINGLE, (np.float64, np.float32), _DOUBLE)  # fastest first


def add_machine(
    graph: Graph, rows: str, model: Model, readout: Readout | None, dtype: np.dtype[Any]
) -> str:
    """Add scores, labels and probabilities of rows, and name them as outputs.

    Returns
    -------
    scores : str
        Name of the scores as columns, of shape (batch, n_outputs) for two classes too.
    """
    scores = add_scores(graph, rows, model, dtype, least_precisions(model, dtype))
    graph.outputs["scores"] = scores
    if readout is not None:
        add_readout(graph, scores, readout, dtype)
    return scores


def as_model(
    graph: Graph,
    model: Model,
    readout: Readout | None,
    dtype: np.dtype[Any],
    source: str,
    feature_names: list[str] | None = None,
) -> Any:
    onnx = import_onnx()
    helper = onnx.helper
    opsets = [helper.make_opsetid("", graph.opset)]
    if any(node.attributes.get("domain") == CATEGORIES_DOMAIN for node in graph.nodes):
        opsets.append(helper.make_opsetid(CATEGORIES_DOMAIN, _CATEGORIES_OPSET))
    inputs = graph.inputs or {"X": (dtype, model.n_features)}
    body = helper.make_graph(
        as_nodes(helper, graph),
        "widemargin",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(element), ["batch", width]
            )
            for name, (element, width) in inputs.items()
        ],
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(element), ["batch", *width]
            )
            for name, (element, width) in output_types(model, readout, dtype).items()
        ],
        [onnx.numpy_helper.from_array(value, name) for name, value in graph.constants.items()],
    )
    proto = helper.make_model(
        body,
        opset_imports=opsets,
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="widemargin",
        producer_version=widemargin.__version__,
        doc_string="Max-margin classifier, exported by widemargin.",
    )
    properties = _properties(model, source)
    if feature_names is not None:
        properties["feature_names"] = json.dumps(feature_names)
    helper.set_model_props(proto, properties)
    return proto


def as_nodes(helper: Any, graph: Graph) -> list[Any]:
    """Return the nodes, in which outputs have the names that callers know them by."""
    names = {value: name for name, value in graph.outputs.items()}
    return [
        helper.make_node(
            node.operator,
            [names.get(name, name) for name in node.inputs],
            [names.get(node.output, node.output)],
            **node.attributes,
        )
        for node in graph.nodes
    ]


def _properties(model: Model, source: str) -> dict[str, str]:
    properties = {"estimator": source, "kernel": "Linear()"}
    if isinstance(model, KernelExpansion):
        properties |= {"kernel": repr(model.kernel), "n_vectors": str(model.n_basis)}
    return properties


def least_precisions(model: Model, dtype: np.dtype[Any]) -> Precisions:
    """Return the fastest precisions that keep the digits of the scores of the vectors.

    Where there are no vectors to measure with, the single product is not worth a risk.
    """
    if dtype == np.float64 or not isinstance(model, KernelExpansion) or not model.n_basis:
        return _DOUBLE
    if isinstance(model.kernel, Precomputed):
        return _DOUBLE
    probes, groups = model.probes()
    rows = probes.astype(np.float32)
    exact = model.scores(rows.astype(np.float64))
    for precisions in _MIXED[:-1]:
        if all(
            keeps_digits(_evaluated(each, rows, precisions), exact, groups)
            for each in _reordered(model)
        ):
            return precisions
    return _MIXED[-1]


def _reordered(model: KernelExpansion) -> Iterator[KernelExpansion]:
    """Yield a model with its vectors in several orders: a runtime adds up in one of its own."""
    yield model
    numbers = np.arange(model.n_basis)
    for order in (numbers[::-1], np.argsort(numbers * _GOLDEN % 1.0)):
        kernel = model.kernel
        if isinstance(kernel, AdaptiveRBF):
            kernel = AdaptiveRBF(kernel.widths[order], kernel.metric)
        yield replace(model, kernel=kernel, basis=model.basis[order], coef=model.coef[order])


def _evaluated(model: Model, rows: Array, precisions: Precisions) -> Array:
    """Return the scores of rows as the graph of these precisions computes them."""
    graph = Graph(opset=DEFAULT_OPSET)
    scores = add_scores(graph, "X", model, rows.dtype, precisions)
    if not all(np.isfinite(each).all() for each in graph.constants.values()):
        return np.full((len(rows), model.n_outputs), np.inf)
    graph.outputs["scores"] = scores
    proto = as_model(graph, model, None, rows.dtype, "")
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(proto)
    with np.errstate(all="ignore"):
        return np.asarray(evaluator.run(None, {"X": rows})[0])

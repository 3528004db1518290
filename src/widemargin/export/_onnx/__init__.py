"""ONNX: a machine as a graph of standard operators."""

from __future__ import annotations

import os
from typing import Any

from widemargin._system.files import replace_file
from widemargin._system.parameters import check_float_dtype, check_integer
from widemargin.export._exported import feature_names_of, preparation_of, resolve
from widemargin.export._onnx._columns import Columns, add_columns, column_count
from widemargin.export._onnx._graph import Graph, import_onnx
from widemargin.export._onnx._machine import DEFAULT_OPSET, add_machine, as_model
from widemargin.export._onnx._preparation import add_preparation
from widemargin.export._onnx._readout import label_table, output_types

__all__ = [
    "LEAST_OPSET",
    "Columns",
    "Graph",
    "add_columns",
    "add_machine",
    "column_count",
    "label_table",
    "output_types",
    "to_onnx",
]

LEAST_OPSET = 13  # from here on ReduceSum and Unsqueeze take their axes as they are given here


def to_onnx(
    estimator_or_model: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: str = "float32",
    opset: int = DEFAULT_OPSET,
) -> Any:
    """Return a fitted machine or pipeline as an ONNX model, and write it to a file.

    The graph has standard operators only and takes any number of rows. Its input is ``X`` of shape
    (batch, n_features). Its outputs are

    - ``label`` of shape (batch,): integers as int64, strings, booleans and floats as what they
      are; (batch, n_labels) of 0 and 1 as int64 for multi-label machines;
    - ``scores``: what ``decision_function`` gives, (batch,) for two classes;
    - ``probabilities`` of shape (batch, n_classes), where the machine has them.

    A bare model has ``scores`` alone, of shape (batch, n_outputs). The columns of ``X`` must be in
    the order of training: where the machine was trained with feature names, the metadata of the
    model has them as ``feature_names``, a JSON list.

    A pipeline with columns of text, or of which a ColumnTransformer leaves out columns by name, has
    an input of shape (batch, 1) for each column that it reads, called as the column: texts as
    strings, an empty one where it is missing, and numbers. Of others, ``X`` has the columns as they
    come in. Where the pipeline would raise an error for an
    unknown category, scores are NaN.

    Parameters
    ----------
    estimator_or_model : estimator, Pipeline, CompiledPredictor or Model
        An estimator must be fitted; of a pipeline, see :func:`widemargin.compile`. Kernels that are
        Python functions cannot be exported.
    path : path-like, default=None
        File to write. It is replaced as a whole, or left as it was if anything fails.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input, the scores and the probabilities. With "float32", scores are within
        1e-5 of the largest one: parts that would lose more compute in double.
    opset : int, default=17
        Version of the ONNX operators, 13 or later.

    Returns
    -------
    model : onnx.ModelProto

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.export import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, C=10, random_state=0).fit(X, y)
    >>> [output.name for output in to_onnx(machine).graph.output]
    ['label', 'scores']
    """
    onnx = import_onnx()
    precision = check_float_dtype(dtype)
    check_integer("opset", opset, least=LEAST_OPSET, most=onnx.defs.onnx_opset_version())
    preparation = preparation_of(estimator_or_model)
    model, readout = resolve(preparation or estimator_or_model)
    graph = Graph(opset=opset)
    rows = "X" if preparation is None else add_preparation(graph, preparation, precision)
    add_machine(graph, rows, model, readout, precision)
    proto = as_model(
        graph,
        model,
        readout,
        precision,
        type(estimator_or_model).__name__,
        feature_names_of(preparation or estimator_or_model),
    )
    onnx.checker.check_model(proto, full_check=True)
    if path is not None:
        replace_file(path, [proto.SerializeToString()])
    return proto

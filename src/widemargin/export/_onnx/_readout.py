"""What comes out: labels and probabilities from scores."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.export._onnx._graph import Graph
from widemargin.models import Model
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]


def output_types(
    model: Model, readout: Readout | None, dtype: np.dtype[Any]
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Return what comes out, by name: its type, and its shape without the rows."""
    if readout is None:
        return {"scores": (dtype, (model.n_outputs,))}
    width = () if readout.kind == "binary" else (model.n_outputs,)
    label: tuple[np.dtype[Any], tuple[int, ...]] = (np.dtype(np.int64), width)
    if not readout.tells_labels:
        label = (label_table(readout.classes).dtype, ())
    types = {"label": label, "scores": (dtype, width)}
    if readout.link is not None:
        types["probabilities"] = (dtype, (len(readout.classes),))
    return types


def add_readout(graph: Graph, scores: str, readout: Readout, dtype: np.dtype[Any]) -> None:
    """Add labels and probabilities, and name the outputs."""
    if readout.kind == "binary":
        graph.outputs["scores"] = graph.add("Squeeze", scores, graph.axis(1))
        graph.outputs["label"] = _add_second_class(graph, graph.outputs["scores"], dtype, readout)
    elif readout.kind == "multilabel":
        least = graph.constant("zero", 0.0, dtype)
        if readout.thresholds is not None:
            least = graph.constant("thresholds", readout.label_thresholds(dtype), dtype)
        above = graph.add("Greater", scores, least)
        graph.outputs["label"] = graph.cast(above, np.bool_, np.int64)
    elif readout.kind == "two_step":
        graph.outputs["label"] = _add_two_steps(graph, scores, dtype, readout)
    else:
        graph.outputs["label"] = _add_best_class(graph, scores, readout)
    if readout.link is not None:
        graph.outputs["probabilities"] = _add_probabilities(graph, scores, dtype, readout)


def _add_second_class(graph: Graph, scores: str, dtype: Any, readout: Readout) -> str:
    """Add the second class where the score is positive, else the first."""
    labels = label_table(readout.classes)
    positive = graph.add("Greater", scores, graph.constant("zero", 0.0, dtype))
    if labels.dtype == np.bool_:
        return positive if labels[1] else graph.add("Not", positive)
    if labels.dtype == np.int64 and labels.tolist() == [0, 1]:
        return graph.cast(positive, np.bool_, np.int64)
    first, second = (graph.constant("class", label, labels.dtype) for label in labels)
    return graph.add("Where", positive, second, first)


def _add_two_steps(graph: Graph, scores: str, dtype: Any, readout: Readout) -> str:
    """Add both labels where the first score is between the thresholds, else that of the second."""
    first, second = (
        graph.add("Gather", scores, graph.constant("place", [place], np.int64), axis=1)
        for place in (0, 1)
    )
    low, high = (graph.constant("end", end, dtype) for end in readout.label_thresholds(dtype))
    both = graph.add("And", graph.add("Greater", first, low), graph.add("Less", first, high))
    is_first = graph.add("Greater", second, graph.constant("zero", 0.0, dtype))
    each = [graph.add("Or", both, one) for one in (is_first, graph.add("Not", is_first))]
    return graph.cast(graph.add("Concat", *each, axis=1), np.bool_, np.int64)


def _add_best_class(graph: Graph, scores: str, readout: Readout) -> str:
    """Add the class of the largest score, the first of equal ones."""
    labels = label_table(readout.classes)
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    if labels.dtype == np.int64 and np.array_equal(labels, np.arange(len(labels))):
        return best
    return graph.add("Gather", graph.constant("classes", labels), best)


def label_table(classes: Array) -> Array:
    """Return class labels as an array of a type that ONNX has: strings are Python objects."""
    values = classes.tolist()
    if classes.dtype.kind == "O" and not all(isinstance(value, str) for value in values):
        classes = np.array(values)  # numbers that came as objects
    if classes.dtype.kind in "UO" and all(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    if classes.dtype.kind == "b":
        return classes
    if classes.dtype.kind in "iu" and int(classes.max()) <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if classes.dtype.kind == "f":
        return classes.astype(np.float32 if classes.dtype.itemsize <= 4 else np.float64)
    raise TypeError(
        f"Class labels of dtype {classes.dtype} have no type in ONNX. Train with labels that are "
        "integers, strings, booleans or floats."
    )


def _add_probabilities(graph: Graph, scores: str, dtype: Any, readout: Readout) -> str:
    """Add probabilities of shape (batch, n_classes); see :class:`Readout` for the links."""
    if readout.kind in ("binary", "multilabel"):
        return graph.add("Sigmoid", add_class_scores(graph, scores, dtype, readout))
    if readout.link == "one_against_rest":
        scores = _add_log_sigmoid(graph, scores, dtype)
    return graph.add("Softmax", scores, axis=1)


def add_class_scores(graph: Graph, scores: str, dtype: Any, readout: Readout) -> str:
    """Add a score of each class, of shape (batch, n_classes): for two classes -f and f."""
    if readout.kind != "binary":
        return scores
    return graph.add("Mul", scores, graph.constant("signs", [[-1.0, 1.0]], dtype))


def _add_log_sigmoid(graph: Graph, scores: str, dtype: Any) -> str:
    """Add ``min(f, 0) - log(1 + exp(-|f|))``, which neither overflows nor vanishes.

    The operator Softplus would say it shorter, but onnxruntime has none in double.
    """
    decay = graph.add("Exp", graph.add("Neg", graph.add("Abs", scores)))
    rest = graph.add("Log", graph.add("Add", decay, graph.constant("one", 1.0, dtype)))
    return graph.add("Sub", graph.add("Min", scores, graph.constant("zero", 0.0, dtype)), rest)

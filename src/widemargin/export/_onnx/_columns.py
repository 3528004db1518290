"""What comes out as columns, for graphs that go on from a machine."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from widemargin.export._onnx._graph import Graph
from widemargin.export._onnx._readout import add_class_scores, label_table
from widemargin.readouts import Readout

# class_scores: a score of each class, -f and f for two classes.
# halved_scores: the same, halved and moved by 1/2. A score is above 1/2 where it speaks for its
#     class, and those of two classes sum to 1: they can be compared as probabilities are.
# score_columns: the scores that the machine has, a single one for two classes.
# second_probability: the probability of the second of two classes.
# label_column: labels as numbers.
Columns: TypeAlias = Literal[
    "class_scores", "halved_scores", "score_columns", "second_probability", "label_column"
]


def column_count(columns: Columns, readout: Readout) -> int:
    """Return how many columns there are."""
    if columns == "score_columns":
        return readout.n_outputs
    return len(readout.classes) if columns in ("class_scores", "halved_scores") else 1


def add_columns(
    graph: Graph, columns: Columns, scores: str, readout: Readout, dtype: np.dtype[Any]
) -> None:
    """Add columns to the outputs of a machine.

    Parameters
    ----------
    scores : str
        Name of the scores as :func:`add_machine` returns it.
    """
    graph.outputs[columns] = _added(graph, columns, scores, readout, dtype)


def _added(
    graph: Graph, columns: Columns, scores: str, readout: Readout, dtype: np.dtype[Any]
) -> str:
    if columns == "score_columns":
        return scores
    if columns == "second_probability":
        return graph.add("Sigmoid", scores)
    if columns == "label_column":
        label = graph.add("Unsqueeze", graph.outputs["label"], graph.axis(1))
        return graph.cast(label, label_table(readout.classes).dtype, dtype)
    class_scores = add_class_scores(graph, scores, dtype, readout)
    if columns == "class_scores":
        return class_scores
    half = graph.constant("half", 0.5, dtype)
    return graph.add("Add", graph.add("Mul", class_scores, half), half)

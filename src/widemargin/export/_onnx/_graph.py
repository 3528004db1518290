"""An ONNX graph in the making: operators and constants, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_ATTRIBUTE_AXES = 17  # the last opset in which the other reductions take axes as an attribute


def import_onnx() -> Any:
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise ImportError(
            "Export to ONNX needs the package onnx: pip install widemargin[onnx]"
        ) from error


@dataclass
class Node:
    """An operator of the graph, by the names of what it reads and writes."""

    operator: str
    inputs: list[str]
    output: str
    attributes: dict[str, Any]


@dataclass
class Graph:
    """Nodes and constants in the order they were added.

    Attributes
    ----------
    opset : int
        Version of the operators.
    unique_name : callable
        Makes a name of this graph from a proposed one.
    nodes : list of Node
    constants : dict
        Arrays by name.
    outputs : dict
        Names of values, by what they are: "label", "scores", "probabilities".
    inputs : dict
        What comes in, by name: its type, and its width.
    """

    opset: int
    unique_name: Callable[[str], str] = field(default=lambda name: name)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    inputs: dict[str, tuple[np.dtype[Any], int]] = field(default_factory=dict)

    def constant(self, name: str, values: Any, dtype: Any = None) -> str:
        """Add an array and return its name."""
        name = self._free(name)
        # Too large for single precision: whoever measures the graph then finds it of no use.
        with np.errstate(over="ignore"):
            array = np.ascontiguousarray(values, dtype=dtype)
        self.constants[name] = array.reshape(np.shape(values))
        return name

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        output = self._free(operator.lower())
        self.nodes.append(Node(operator, list(inputs), output, attributes))
        return output

    def cast(self, value: str, dtype: Any, wanted: Any) -> str:
        """Return a value of the type that is wanted, from one of another or the same type."""
        if np.dtype(dtype) == np.dtype(wanted):
            return value
        types = import_onnx().helper.np_dtype_to_tensor_dtype
        return self.add("Cast", value, to=int(types(np.dtype(wanted))))

    def sum_of_squares(self, rows: str) -> str:
        """Return the squared norm of each row, as a column."""
        return self.over_columns("ReduceSumSquare", rows)

    def over_columns(self, operator: str, rows: str) -> str:
        """Return a reduction of each row, as a column."""
        if self.opset <= _ATTRIBUTE_AXES:
            return self.add(operator, rows, axes=[1], keepdims=1)
        return self.add(operator, rows, self.axis(1), keepdims=1)

    def axis(self, number: int) -> str:
        """Return the constant that names an axis."""
        return self.constant(f"axis_{number}", [number], np.int64)

    def _free(self, name: str) -> str:
        taken = {node.output for node in self.nodes} | set(self.constants) | set(self.inputs)
        number, proposed = 1, name
        while proposed in taken:
            number += 1
            proposed = f"{name}_{number}"
        return self.unique_name(proposed)

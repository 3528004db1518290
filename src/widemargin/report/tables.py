"""A machine as tables that JSON holds: what ``assets/predictor.js`` computes from."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    CustomKernel,
    Kernel,
    KernelSum,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Rows,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap, Model
from widemargin.preparation import (
    Clip,
    Column,
    Fill,
    Normalise,
    Operation,
    Pick,
    PreparedMachine,
    Project,
    Scale,
)
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]
Json: TypeAlias = dict[str, Any]

_FORMULAS = (Linear, RBF, Laplacian, ChiSquare, Polynomial, Sigmoid)
_MANY_BYTES = 300_000  # of vectors, from which on half the digits may do
_ROUNDING = 1e-6  # of the largest score that half the digits may cost
_SPARSE_SHARE = 0.5  # of entries that are not zero, below which these alone are written


def machine_tables(machine: PreparedMachine) -> Json:
    """Return columns, operations, model and readout, in values that JSON has.

    Parameters
    ----------
    machine : PreparedMachine

    Raises
    ------
    TypeError
        If the kernel is a Python function, or one that no formula is known of.
    """
    return {
        "columns": [_column(column) for column in machine.columns],
        "operations": [_operation(operation) for operation in machine.operations],
        "model": _model(machine.model),
        "readout": _readout(machine.readout),
    }


def table(values: Rows, dtype: str = "float64") -> Json:
    """Return an array as its shape and the base64 text of its numbers, least byte first."""
    if sp.issparse(values) or np.count_nonzero(values) < _SPARSE_SHARE * np.size(values):
        entries = sp.coo_matrix(np.atleast_2d(values) if not sp.issparse(values) else values)
        shape = values.shape
        places = entries.row.astype(np.int64) * entries.shape[1] + entries.col
        return {
            "shape": list(shape),
            "dtype": dtype,
            "base64": _base64(entries.data, dtype),
            "places": _base64(places, "int32"),
        }
    return {"shape": list(values.shape), "dtype": dtype, "base64": _base64(values, dtype)}


def _base64(values: Array, dtype: str) -> str:
    little = np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<"))
    return base64.b64encode(little.tobytes()).decode("ascii")


def _number(value: Any) -> Any:
    """Return a number, or a text for one that JSON has not."""
    if value is None:
        return None
    value = float(value)
    if np.isfinite(value):
        return value
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _column(column: Column) -> Json:
    categories = column.categories
    if categories is None:
        return {"source": column.source, "categories": None}
    are_texts = categories.are_texts
    values = [
        value if value is None else str(value) if are_texts else float(value)
        for value in categories.values
    ]
    return {
        "source": column.source,
        "categories": {
            "are_texts": are_texts,
            "values": values,
            "codes": [_number(code) for code in categories.codes],
            "missing": _number(categories.missing),
            "unknown": _number(categories.unknown),
        },
    }


def _operation(operation: Operation) -> Json:
    if isinstance(operation, Pick):
        return {
            "kind": "pick",
            "columns": operation.columns.tolist(),
            "tests": list(operation.tests),
            "values": table(operation.values),
        }
    if isinstance(operation, Fill):
        missing = _number(operation.missing)
        return {"kind": "fill", "values": table(operation.values), "missing": missing}
    if isinstance(operation, Clip):
        return {"kind": "clip", "low": table(operation.low), "high": table(operation.high)}
    if isinstance(operation, Normalise):
        return {
            "kind": "normalise",
            "norm": operation.norm,
            "first": operation.first,
            "count": operation.count,
        }
    if isinstance(operation, Project):
        return {
            "kind": "project",
            "first": operation.first,
            "centre": table(operation.centre),
            "matrix": table(operation.matrix),
            "shift": table(operation.shift),
        }
    assert isinstance(operation, Scale)
    return {"kind": "scale", "centre": table(operation.centre), "factor": table(operation.factor)}


def _model(model: Model) -> Json:
    if isinstance(model, KernelExpansion):
        model = model.collapsed() or model
    if isinstance(model, LinearMap):
        return {
            "kernel": None,
            "basis": None,
            "coef": table(model.coef),
            "linear": None,
            "intercept": table(model.intercept),
        }
    assert isinstance(model, KernelExpansion)
    kernel = _kernel(model.kernel)
    if isinstance(model.kernel, Precomputed):
        kernel["training_rows"] = np.asarray(model.basis).tolist()
    return {
        "kernel": kernel,
        "basis": None if isinstance(model.kernel, Precomputed) else table(*_smallest(model)),
        "coef": table(model.coef),
        "linear": None if model.linear is None else table(model.linear),
        "intercept": table(model.intercept),
    }


def _smallest(model: KernelExpansion) -> tuple[Rows, str]:
    """Return the vectors, and the least type that holds them.

    That is to the last bit; or, where there are many numbers, so that no score shows it.
    """
    entries = model.basis.data if sp.issparse(model.basis) else model.basis
    with np.errstate(over="ignore"):
        rounded = model.basis.astype(np.float32).astype(np.float64)
        exact = bool(((rounded.data if sp.issparse(rounded) else rounded) == entries).all())
    if exact or (entries.nbytes > _MANY_BYTES and _keeps_scores(model, rounded)):
        return model.basis, "float32"
    return model.basis, "float64"


def _keeps_scores(model: KernelExpansion, rounded: Rows) -> bool:
    rows = model.probes().rows
    scores = model.scores(rows)
    found = replace(model, basis=rounded).scores(rows)
    error = float(np.abs(found - scores).max(initial=0.0))
    return error <= _ROUNDING * float(np.abs(scores).max(initial=0.0))


def _kernel(kernel: Kernel | str) -> Json:
    if isinstance(kernel, KernelSum):
        parts = [
            {"kernel": _kernel(part.kernel), "columns": list(part.columns), "weight": part.weight}
            for part in kernel
        ]
        return {"kind": "sum", "parts": parts}
    if type(kernel) is AdaptiveRBF:
        metric = None if kernel.metric is None else table(kernel.metric)
        return {"kind": "adaptive", "widths": table(kernel.widths), "metric": metric}
    if type(kernel) is Precomputed:
        return {"kind": "precomputed"}
    if type(kernel) in _FORMULAS:
        assert isinstance(kernel, Kernel)
        return {"kind": kernel.name, **{name: float(v) for name, v in vars(kernel).items()}}
    of = repr(kernel.function) if isinstance(kernel, CustomKernel) else repr(kernel)
    raise TypeError(f"A page cannot compute the kernel {of}, which is code of Python.")


def _readout(readout: Readout) -> Json:
    return {
        "kind": readout.kind,
        "link": readout.link,
        "n_classes": len(readout.classes),
        "thresholds": None if readout.thresholds is None else table(readout.thresholds),
        "calibration": None if readout.calibration is None else table(readout.calibration),
    }

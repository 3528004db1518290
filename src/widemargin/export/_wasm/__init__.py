"""Export to WebAssembly: the C file of a machine, compiled for web pages and their kin."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from widemargin._system.files import replace_file
from widemargin._system.parameters import check_float_dtype
from widemargin.export._c import ExportLoss, to_c
from widemargin.export._c._preparation import texts_by_source
from widemargin.export._exported import (
    feature_names_of,
    plain_labels,
    preparation_of,
    resolve,
)
from widemargin.export._wasm._compiler import compiled, find_compiler
from widemargin.export._wasm._module import with_section
from widemargin.export._wasm._source import NAME, wrapper_text
from widemargin.models import Model
from widemargin.preparation import PreparedMachine
from widemargin.readouts import Readout

__all__ = ["WasmExport", "to_wasm"]

_SECTION = "widemargin"


@dataclass(frozen=True)
class WasmExport:
    """A WebAssembly module that was written.

    Attributes
    ----------
    path : Path
    n_bytes : int
        Size of the file.
    loss : ExportLoss or None
        Measured for quantised models, and wherever rows were given.
    """

    path: Path
    n_bytes: int
    loss: ExportLoss | None

    @property
    def loader(self) -> str:
        """The JavaScript function ``loadMachine``, which makes such a file easy to call."""
        return (files(__package__) / "loader.js").read_text(encoding="utf-8")


def to_wasm(
    estimator_or_model: Any,
    path: str | os.PathLike[str],
    *,
    dtype: str = "float32",
    quantize: str | None = None,
    X: Any = None,
    y: Any = None,
) -> WasmExport:
    """Write a machine as a WebAssembly module that imports nothing.

    It is the file of :func:`to_c`, compiled by the package ``ziglang``: ``pip install
    "widemargin[wasm]"``. The module exports its ``memory`` and functions without arguments:
    ``input()`` and ``output()`` are the places of a row and of an answer in that memory;
    ``scores()``, ``predict()`` and, where there are any, ``probabilities()`` read the one and fill
    the other. ``predict()`` returns the number of the class; of label sets, it fills the output
    with 0 and 1. The section "widemargin" is a JSON text of sizes, classes, names of features, and
    the texts that columns may have: a row has their numbers, -1 for others, NaN for none.

    ``export.loader`` is a JavaScript function for all of that::

        const machine = await loadMachine(await (await fetch("digits.wasm")).arrayBuffer());
        machine.predict(row);        // the label, or the labels that are on; texts are texts
        machine.scores(row);         // an array of numbers
        machine.probabilities(row);  // likewise, or null

    Parameters
    ----------
    estimator_or_model : estimator, Pipeline, CompiledPredictor or Model
        An estimator must be fitted; of a pipeline, see :func:`widemargin.compile`.
    path : path
        With the suffix ".wasm".
    dtype : {"float32", "float64"}, default="float32"
        Type of rows and scores.
    quantize : {None, "int16"}, default=None
        As in :func:`to_c`.
    X : {array-like, sparse matrix} of shape (n_rows, n_features), default=None
        Rows on which precision and loss are measured, as in :func:`to_c`.
    y : array-like, default=None
        Labels of X, for the accuracy before and after.

    Returns
    -------
    export : WasmExport

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.export import to_wasm
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export = to_wasm(machine, Path(folder) / "iris.wasm")
    >>> export.n_bytes < 20_000
    True
    """
    path = Path(path)
    if path.suffix != ".wasm":
        raise ValueError(f"The suffix of a WebAssembly file is '.wasm', got {path.name!r}.")
    dtype = check_float_dtype(dtype).name
    compiler = find_compiler()
    before = preparation_of(estimator_or_model)
    model, readout = resolve(before or estimator_or_model)
    with tempfile.TemporaryDirectory(prefix="widemargin-") as scratch:
        folder = Path(scratch)
        written = to_c(
            estimator_or_model,
            folder / f"{NAME}.h",
            name=NAME,
            dtype=dtype,
            quantize=quantize,
            X=X,
            y=y,
        )
        (folder / "module.c").write_text(wrapper_text(readout, dtype), encoding="ascii")
        module = compiled(compiler, folder, "module.c")
    about = _described(model, readout, dtype, before)
    about["feature_names"] = feature_names_of(before or estimator_or_model)
    data = with_section(module, _SECTION, json.dumps(about, ensure_ascii=False).encode())
    replace_file(path, [data])
    return WasmExport(path, len(data), written.loss)


def _described(
    model: Model, readout: Readout | None, dtype: str, before: PreparedMachine | None
) -> dict[str, Any]:
    """Return what the loader has to know, in values that JSON has."""
    return {
        "version": 1,
        "dtype": dtype,
        "n_features": model.n_features if before is None else before.n_features,
        "n_outputs": model.n_outputs,
        "tells_labels": readout is not None and readout.tells_labels,
        "classes": None if readout is None else plain_labels(readout.classes),
        "texts": {} if before is None else texts_by_source(before),
    }

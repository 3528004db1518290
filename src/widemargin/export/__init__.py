"""Machines for other runtimes: ONNX graphs, standalone C and WebAssembly.

Where skl2onnx is installed, importing this module also registers every estimator with it, so that
``skl2onnx.to_onnx`` converts pipelines that end in one.
"""

from __future__ import annotations

from contextlib import suppress

from widemargin.export._c import CExport, ExportLoss, to_c
from widemargin.export._onnx import to_onnx
from widemargin.export._skl2onnx import register_skl2onnx
from widemargin.export._wasm import WasmExport, to_wasm

__all__ = [
    "CExport",
    "ExportLoss",
    "WasmExport",
    "register_skl2onnx",
    "to_c",
    "to_onnx",
    "to_wasm",
]

# At once, though skl2onnx takes 0.3 s to import: so it does not matter which is imported first.
# Where it is missing or broken, the other exports still work, and a call says what is wrong.
with suppress(Exception):
    register_skl2onnx()

"""Max-margin classifiers that predict fast."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

from widemargin.compiled import CompiledPredictor
from widemargin.compression import compress
from widemargin.kernel import KernelClassifier
from widemargin.kernel_online import KernelMIRA, KernelPerceptron
from widemargin.model_files import ModelFileError, load, save
from widemargin.sparse_kernel import SparseKernelClassifier
from widemargin.sparse_kernel_cv import SparseKernelClassifierCV

__all__ = [
    "CompiledPredictor",
    "KernelClassifier",
    "KernelMIRA",
    "KernelPerceptron",
    "ModelFileError",
    "SparseKernelClassifier",
    "SparseKernelClassifierCV",
    "__version__",
    "compress",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    # Imported when it is asked for: the converters that it registers take a while to load.
    if name == "export":
        return import_module("widemargin.export")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

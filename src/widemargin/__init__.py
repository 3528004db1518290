"""Max-margin classifiers that predict fast."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

from widemargin.compiled import CompiledPredictor
from widemargin.full_kernel.classifier import KernelClassifier
from widemargin.full_kernel.multilabel import KernelMultiLabelClassifier
from widemargin.full_kernel.online import KernelMIRA, KernelPerceptron
from widemargin.linear.multilabel import LinearMultiLabelClassifier
from widemargin.linear.stochastic import StochasticLinearClassifier
from widemargin.model_files import ModelFileError, load, save
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.compression import compress
from widemargin.sparse_kernel.cv import SparseKernelClassifierCV
from widemargin.sparse_kernel.multilabel import SparseKernelMultiLabelClassifier
from widemargin.sparse_kernel.multilabel_cv import SparseKernelMultiLabelClassifierCV
from widemargin.sparse_kernel.settings import ChosenBasis, LearnedBasis
from widemargin.two_label.cross_training import CrossTrainingSVM
from widemargin.two_label.parallel import ParallelSVM
from widemargin.two_label.sequential import SequentialSVM

__all__ = [
    "ChosenBasis",
    "CompiledPredictor",
    "CrossTrainingSVM",
    "KernelClassifier",
    "KernelMIRA",
    "KernelMultiLabelClassifier",
    "KernelPerceptron",
    "LearnedBasis",
    "LinearMultiLabelClassifier",
    "ModelFileError",
    "ParallelSVM",
    "SequentialSVM",
    "SparseKernelClassifier",
    "SparseKernelClassifierCV",
    "SparseKernelMultiLabelClassifier",
    "SparseKernelMultiLabelClassifierCV",
    "StochasticLinearClassifier",
    "__version__",
    "compile",
    "compress",
    "load",
    "save",
    "stream",
]


# Reachable by ``import widemargin`` alone, and imported when they are asked for: the converters
# that ``export`` registers take a while to load.
_SUBMODULES = (
    *("datasets", "displays", "export", "kernels", "losses", "models", "preparation", "priors"),
    *("readouts", "report", "river", "solvers", "two_label", "zero_shot"),
)
# Functions of modules that are imported when they are asked for.
_FUNCTIONS = {"compile": "preparation", "stream": "datasets"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        return getattr(import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_FUNCTIONS})

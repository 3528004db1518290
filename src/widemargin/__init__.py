"""Max-margin classifiers that predict fast."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from widemargin.compiled import CompiledPredictor
    from widemargin.datasets import stream
    from widemargin.full_kernel.classifier import KernelClassifier
    from widemargin.full_kernel.multilabel import KernelMultiLabelClassifier
    from widemargin.full_kernel.online import KernelMIRA, KernelPerceptron
    from widemargin.linear.multilabel import LinearMultiLabelClassifier
    from widemargin.linear.stochastic import StochasticLinearClassifier
    from widemargin.model_files import ModelFileError, load, save
    from widemargin.preparation import compile
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

# All is imported when it is asked for: whoever needs one estimator does not wait for the others,
# and the converters that ``export`` registers take a while to load.
_SUBMODULES = (
    *("datasets", "displays", "export", "kernels", "losses", "models", "preparation", "priors"),
    *("readouts", "report", "river", "solvers", "two_label", "zero_shot"),
)
_NAMES = {
    "compiled": ("CompiledPredictor",),
    "datasets": ("stream",),
    "full_kernel.classifier": ("KernelClassifier",),
    "full_kernel.multilabel": ("KernelMultiLabelClassifier",),
    "full_kernel.online": ("KernelMIRA", "KernelPerceptron"),
    "linear.multilabel": ("LinearMultiLabelClassifier",),
    "linear.stochastic": ("StochasticLinearClassifier",),
    "model_files": ("ModelFileError", "load", "save"),
    "preparation": ("compile",),
    "sparse_kernel.classifier": ("SparseKernelClassifier",),
    "sparse_kernel.compression": ("compress",),
    "sparse_kernel.cv": ("SparseKernelClassifierCV",),
    "sparse_kernel.multilabel": ("SparseKernelMultiLabelClassifier",),
    "sparse_kernel.multilabel_cv": ("SparseKernelMultiLabelClassifierCV",),
    "sparse_kernel.settings": ("ChosenBasis", "LearnedBasis"),
    "two_label.cross_training": ("CrossTrainingSVM",),
    "two_label.parallel": ("ParallelSVM",),
    "two_label.sequential": ("SequentialSVM",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOMES:
        found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = found  # the next time nobody asks
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_HOMES})

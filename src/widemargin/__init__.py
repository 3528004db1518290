"""Max-margin classifiers that predict fast."""

from widemargin.sparse_kernel import SparseKernelClassifier

__all__ = ["SparseKernelClassifier", "__version__"]

__version__ = "0.1.0"

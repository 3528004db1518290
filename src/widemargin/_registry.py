"""Every estimator of the library, by name: what tests walk, and what a model file may name."""

from __future__ import annotations

from typing import Any

from widemargin.sparse_kernel import SparseKernelClassifier
from widemargin.sparse_kernel_cv import SparseKernelClassifierCV

ESTIMATORS: dict[str, type[Any]] = {
    estimator.__name__: estimator
    for estimator in (SparseKernelClassifier, SparseKernelClassifierCV)
}

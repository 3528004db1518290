"""Every estimator of the library, by name: what tests walk, and what a model file may name."""

from __future__ import annotations

from typing import Any

from widemargin.kernel import KernelClassifier
from widemargin.kernel_online import KernelMIRA, KernelPerceptron
from widemargin.sparse_kernel import SparseKernelClassifier
from widemargin.sparse_kernel_cv import SparseKernelClassifierCV

ESTIMATORS: dict[str, type[Any]] = {
    estimator.__name__: estimator
    for estimator in (
        KernelClassifier,
        KernelMIRA,
        KernelPerceptron,
        SparseKernelClassifier,
        SparseKernelClassifierCV,
    )
}

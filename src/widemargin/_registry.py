"""Every estimator of the library, by name: what tests walk, and what a model file may name."""

from __future__ import annotations

from typing import Any

from widemargin.full_kernel.classifier import KernelClassifier
from widemargin.full_kernel.multilabel import KernelMultiLabelClassifier
from widemargin.full_kernel.online import KernelMIRA, KernelPerceptron
from widemargin.linear.multilabel import LinearMultiLabelClassifier
from widemargin.linear.stochastic import StochasticLinearClassifier
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.cv import SparseKernelClassifierCV
from widemargin.sparse_kernel.multilabel import SparseKernelMultiLabelClassifier
from widemargin.sparse_kernel.multilabel_cv import SparseKernelMultiLabelClassifierCV
from widemargin.two_label.cross_training import CrossTrainingSVM
from widemargin.two_label.parallel import ParallelSVM
from widemargin.two_label.sequential import SequentialSVM

ESTIMATORS: dict[str, type[Any]] = {
    estimator.__name__: estimator
    for estimator in (
        CrossTrainingSVM,
        KernelClassifier,
        KernelMIRA,
        KernelMultiLabelClassifier,
        KernelPerceptron,
        LinearMultiLabelClassifier,
        ParallelSVM,
        SequentialSVM,
        SparseKernelClassifier,
        SparseKernelClassifierCV,
        SparseKernelMultiLabelClassifier,
        SparseKernelMultiLabelClassifierCV,
        StochasticLinearClassifier,
    )
}

"""What classifiers with a kernel share: its parameters, and what they ask of training data."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy.typing as npt

from widemargin._system.parameters import (
    check_integer,
    check_jobs,
    check_real,
    check_verbose,
)
from widemargin.estimation.class_rows import LearnsClasses
from widemargin.estimation.named_kernels import (
    as_kernel,
    check_gamma,
    check_kernel,
    is_precomputed,
    kernel_of_any_width,
)
from widemargin.estimation.weights import check_loss_weight
from widemargin.kernels import (
    Kernel,
    Rows,
)
from widemargin.rows import check_kernel_matrix

Array: TypeAlias = npt.NDArray[Any]

_LARGEST_DEGREE = 1000


class HasKernel(LearnsClasses):
    """A classifier with the parameters kernel, gamma, degree, coef0, class_weight and n_jobs."""

    C: Any
    kernel: Any
    gamma: float | str
    degree: int
    coef0: float

    def _check_loss_weight(self) -> None:
        """Require a positive number that is finite."""
        check_loss_weight(self.C)

    def _is_precomputed(self) -> bool:
        return is_precomputed(self.kernel)

    def _check_kernel_parameters(self) -> None:
        check_kernel(self.kernel)
        check_gamma(self.gamma)
        check_integer("degree", self.degree, least=1, most=_LARGEST_DEGREE)
        check_real("coef0", self.coef0)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)

    def _make_kernel(self, rows: Rows, weights: Array | None = None) -> Kernel:
        return as_kernel(
            self.kernel,
            rows,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            weights=weights,
        )

    def _check_training_rows(self, X: Rows) -> None:
        super()._check_training_rows(X)
        if self._is_precomputed():
            check_kernel_matrix(X)

    def _check_batch_rows(self, X: Rows) -> None:
        if (kernel := kernel_of_any_width(self.kernel)) is not None:
            kernel.check_rows(X)

    def _validate_rows(self, X: Any) -> Rows:
        try:
            return super()._validate_rows(X)
        except ValueError as error:
            if self._is_precomputed() and "features" in str(error):
                raise ValueError(
                    f"{error} With a precomputed kernel these are the kernel values with every "
                    "training row, of which those of basis_indices_ are used."
                ) from error
            raise

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        kernel = kernel_of_any_width(self.kernel)
        tags.input_tags.positive_only = kernel is not None and kernel.positive_only
        return tags

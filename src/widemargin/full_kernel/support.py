"""Support vectors under the names, and in the order, that scikit-learn's SVC gives them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.kernels import Precomputed, Rows
from widemargin.models import KernelExpansion

Array: TypeAlias = npt.NDArray[Any]


class SupportAttributes:
    """Support patterns of a dual expansion, class by class; made whenever they are asked for."""

    model_: KernelExpansion
    classes_: Array
    basis_indices_: npt.NDArray[np.intp]
    _patterns: dict[str, Any]

    @property
    def support_(self) -> npt.NDArray[np.int32]:
        """Row numbers of the support vectors in X."""
        order = self._by_class("support_")
        if (self.basis_indices_ < 0).any():
            raise AttributeError(
                "support_ has row numbers in the X of fit, and support vectors of this machine "
                "came by partial_fit, or with another model_. Use support_vectors_."
            )
        return self.basis_indices_[order].astype(np.int32)

    @property
    def support_vectors_(self) -> Rows:
        """The support vectors; none for a precomputed kernel."""
        order = self._by_class("support_vectors_")
        if isinstance(self.model_.kernel, Precomputed):
            return np.empty((0, 0))
        return self.model_.basis[order]

    @property
    def n_support_(self) -> npt.NDArray[np.int32]:
        """Number of support vectors of each class."""
        self._require("n_support_")
        counts = np.bincount(self._patterns["labels"], minlength=len(self.classes_))
        return counts.astype(np.int32)

    def _by_class(self, name: str) -> npt.NDArray[np.intp]:
        self._require(name)
        return np.argsort(self._patterns["labels"], kind="stable")

    def _require(self, name: str) -> None:
        if not hasattr(self, "model_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

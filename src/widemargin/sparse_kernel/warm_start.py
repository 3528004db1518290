"""A warm start: a fit that begins with the vectors and coefficients of the fit before."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.basis import BasisColumns
from widemargin.rows import rows_like, same_rows
from widemargin.sparse_kernel.grown import order_of_choice

Array: TypeAlias = npt.NDArray[Any]


class StartsWarm:
    """The part of :class:`SparseKernelClassifier` that goes on from the fit before."""

    def _previous_fit(self: Any) -> dict[str, Any] | None:
        if not self.warm_start or not hasattr(self, "model_"):
            return None
        names = (
            "_is_learned",
            "classes_",
            "n_features_in_",
            "basis_",
            "basis_indices_",
            "dual_coef_",
        )
        previous = {name: getattr(self, name) for name in (*names, "intercept_", "model_")}
        return previous | {
            "C_": self.C_,
            "feature_names_in_": getattr(self, "feature_names_in_", None),
            "stages": self._stages,
        }

    def _check_same_problem(self: Any, previous: dict[str, Any] | None) -> None:
        if previous is None:
            return
        if not self._basis().per_class and len(previous["basis_indices_"]) > self.max_basis:
            raise ValueError(
                f"warm_start=True adds vectors, and the fit before has "
                f"{len(previous['basis_indices_'])}, more than max_basis={self.max_basis}. Set "
                "warm_start=False to start anew with fewer."
            )
        for name in ("classes_", "n_features_in_"):
            if not np.array_equal(previous[name], getattr(self, name)):
                raise ValueError(
                    f"warm_start=True needs the {name} of the fit before, {previous[name]}, but "
                    f"this data has {getattr(self, name)}. Set warm_start=False to start anew."
                )
        names, new_names = previous["feature_names_in_"], getattr(self, "feature_names_in_", None)
        if names is not None and new_names is not None and not np.array_equal(names, new_names):
            raise ValueError(
                "warm_start=True needs the features of the fit before, in their order: "
                f"{names.tolist()}, but this data has {new_names.tolist()}. Reorder the columns, "
                "or set warm_start=False to start anew."
            )

    def _warm_coefficients(
        self: Any,
        training: Any,
        previous: dict[str, Any] | None,
        basis: BasisColumns,
        machine: int,
    ) -> Array | None:
        """Put the vectors of the fit before into the basis; return their column coefficients.

        They are those of the outputs.
        """
        if previous is None:
            return None
        coef, intercept = previous["dual_coef_"], previous["intercept_"]
        vectors, indices = previous["basis_"], previous["basis_indices_"]
        places = np.arange(len(indices))
        if self._basis().per_class:
            coef, intercept = coef[:, [machine]], intercept[[machine]]
            places = order_of_choice(previous["stages"], coef[:, 0], machine)
            coef, vectors, indices = coef[places], vectors[places], indices[places]
        else:
            coef, intercept = self._begin_with(training, coef, intercept)
        if self._is_precomputed():
            if len(indices) and indices.max() >= basis.rows.shape[0]:
                raise ValueError(
                    "warm_start=True with a precomputed kernel needs the kernel matrix of the same "
                    f"training rows: the basis has row {indices.max()}, X has "
                    f"{basis.rows.shape[0]} rows."
                )
            left = basis.rows[indices]
            diagonal = basis.diagonal[indices]
        else:
            vectors = rows_like(vectors, basis.rows)
            left, diagonal = vectors, basis.kernel.diagonal(vectors)
            if not same_rows(basis.rows, indices, vectors):
                # No rows of this data: known by their place in the old basis, as -1, -2, ...
                indices = -1 - places
        kept = basis.extend(vectors, indices, left, diagonal)
        start = basis.column_coefficients(coef[kept], intercept)
        if kept.all():
            return start
        return start + basis.projection(left[~kept], diagonal[~kept], coef[~kept])

"""Columns that a selector chose, without the selector."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import validate_data

Array: TypeAlias = npt.NDArray[Any]


class KeptColumns(SelectorMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Keeps the columns that another selector chose, and drops the rest.

    It stands in pipelines that come from a model file for selectors which a file cannot hold, such
    as a SelectFromModel with a forest in it.

    Parameters
    ----------
    support : array-like of bool, of shape (n_features,)
        Which columns are kept.
    """

    def __init__(self, support: Any) -> None:
        self.support = support

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the names of the columns; which of them are kept is known before."""
        validate_data(self, X, dtype=None, accept_sparse="csr", ensure_all_finite="allow-nan")
        if len(self._get_support_mask()) != self.n_features_in_:
            raise ValueError(
                f"X has {self.n_features_in_} columns, and support is of {len(self.support)}."
            )
        return self

    def _get_support_mask(self) -> Array:
        return np.asarray(self.support, dtype=bool)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

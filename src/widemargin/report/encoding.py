"""Columns of numbers and texts made what a machine can learn from.

Kernels, linear machines and networks get standardised numbers and a column for each text, as by
``widemargin fit``; trees get numbers as they are, and a number for each text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OrdinalEncoder,
    StandardScaler,
)

from widemargin.datasets.encoding import encoder_for
from widemargin.datasets.kinds import NUMBER, TEXT
from widemargin.solvers.units.values import have_one_unit

MAX_TEXTS = 254  # different texts of a column; what is rarer is one text. Histograms hold no more.
MAX_DENSE = 50_000_000  # numbers of a matrix of zeros that is made dense for trees


def is_frame(X: Any) -> bool:
    """Whether rows are a data frame, of whose columns each has a type of its own."""
    return hasattr(X, "iloc")


def text_columns(X: Any) -> list[Any]:
    """Return the columns of a data frame that are neither numbers nor truth values."""
    return [name for name in X.columns if X[name].dtype.kind not in "iufb"]


def scaled(X: Any) -> Any:
    """Return a transformer for linear machines and networks."""
    if sp.issparse(X):
        return MaxAbsScaler()
    if is_frame(X):
        return encoder_for(_kinds(X), X)
    if np.isnan(X).any():
        return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    return StandardScaler()


def for_distances(X: Any) -> Any:
    """Return a transformer for kernels: numbers of one unit, as pixels, keep it."""
    if sp.issparse(X) or is_frame(X) or np.isnan(X).any() or not have_one_unit(X):
        return scaled(X)
    return "passthrough"


def _kinds(X: Any) -> dict[Any, str]:
    texts = text_columns(X)
    return {name: TEXT if name in texts else NUMBER for name in X.columns}


def ordinal(X: Any) -> Any:
    """Return a transformer for trees, which take missing numbers as they are."""
    if sp.issparse(X):
        return FunctionTransformer(_dense, accept_sparse=True)
    if not is_frame(X):
        return "passthrough"
    numbered = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=-1,
        encoded_missing_value=-1,
        max_categories=MAX_TEXTS,
        dtype=np.float64,
    )
    texts = text_columns(X)
    numbers = [name for name in X.columns if name not in texts]
    parts = [("numbers", "passthrough", numbers), ("texts", numbered, texts)]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0)


def ordinal_text_places(X: Any) -> list[int]:
    """Return the places that columns of texts have behind ``ordinal``."""
    if not is_frame(X):
        return []
    n_texts = len(text_columns(X))
    return list(range(X.shape[1] - n_texts, X.shape[1]))


def _dense(X: Any) -> Any:
    return X.toarray()


ENCODERS: dict[str, Callable[[Any], Any]] = {
    "scaled": scaled,
    "for distances": for_distances,
    "ordinal": ordinal,
    "as it is": lambda _X: "passthrough",
}

"""Rows as they come in: what must hold of them, and in which form the library keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from widemargin._system.warnings import warn_user
from widemargin.kernels import Rows


def column_names(X: Any) -> list[Any] | None:
    """Return the names of the columns of a table of pandas, polars or Arrow; None of all else."""
    names = getattr(X, "column_names", None)  # Arrow
    if names is None and hasattr(X, "dtypes"):
        names = getattr(X, "columns", None)
    return None if names is None else list(names)


def rows_between(X: Any, start: int, stop: int) -> Any:
    """Return some rows of a table or an array, without a copy of them."""
    if hasattr(X, "iloc"):
        return X.iloc[start:stop]
    return X.slice(start, stop - start) if hasattr(X, "slice") else X[start:stop]


def _types_for(X: Any) -> Any:
    """Return the types in which rows are kept.

    scikit-learn takes tables other than those of pandas for double precision, whatever they have.
    """
    types = getattr(getattr(X, "schema", None), "types", None)  # Arrow
    if types is None and column_names(X) is not None and not hasattr(X, "iloc"):
        types = getattr(X, "dtypes", None)
    single = types is not None and {str(each) for each in types} <= {"float", "Float32"}
    return np.float32 if single else [np.float64, np.float32]


def validated_data(
    estimator: Any,
    X: Any,
    *labels: Any,
    reset: bool,
    ensure_min_samples: int = 1,
    several: bool = False,
) -> Any:
    """Return rows, and with labels both, as every estimator takes them.

    The checks are scikit-learn's. Where they fail because of text among the features, or of labels
    that are missing, the error says where.

    Parameters
    ----------
    estimator : estimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    *labels : array-like of shape (n_samples,), or (n_samples, n_labels)
        None, or the classes of the rows, or indicators of their labels.
    reset : bool
        Whether the number and the names of the features are learned, else checked.
    ensure_min_samples : int, default=1
    several : bool, default=False
        Whether rows have any number of labels; who asked for them checks what they are.
    """
    try:
        checked = validate_data(
            estimator,
            X,
            *labels,
            accept_sparse="csr",
            dtype=_types_for(X),
            order="C",
            reset=reset,
            ensure_min_samples=ensure_min_samples,
            **({"multi_output": True} if several else {}),
        )
        if labels and not several:
            check_classification_targets(checked[1])
            if checked[1].dtype.kind == "U" and isinstance(labels[0], (list, tuple)):
                # NumPy has made text of all, so that NaN is a class by the name of 'nan' now.
                _require_labels(labels[0])
    except (ValueError, TypeError) as error:
        not_numbers = isinstance(error, TypeError) or "could not convert" in str(error)
        reason = describe_text(X) if not_numbers else None
        if reason is None and labels and labels[0] is not None and not several:
            reason = describe_missing(labels[0])
        if reason is None:
            raise
        raise ValueError(reason) from error
    return checked


def describe_text(X: Any) -> str | None:
    """Say where rows have text or dates instead of numbers, and what to do; None where nowhere."""
    for name, column in _columns(X):
        if column.dtype.kind in "mM":
            return (
                f"X has dates or times in column {name!r}, and kernels compute with numbers. Make "
                "numbers of them that mean something for the classes, such as the hour or the age."
            )
        if column.dtype.kind not in "OUST":
            continue
        for row, value in enumerate(column):
            if isinstance(value, (str, bytes)) and not _is_number(value):
                return (
                    f"X has text in column {name!r}, {str(value)[:40]!r} in row {row}, and kernels "
                    "compute with numbers. Encode such columns, for example by "
                    "sklearn.preprocessing.OneHotEncoder or OrdinalEncoder."
                )
    return None


def _columns(X: Any) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
    """Yield the columns that may hold anything but numbers: their name or number, and values."""
    if sp.issparse(X):
        return
    if hasattr(X, "columns"):
        for place, name in enumerate(X.columns):
            yield name, np.asarray(X.iloc[:, place] if hasattr(X, "iloc") else X[name])
        return
    try:
        # Not without a type: a list of text and numbers would be text throughout.
        values = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    except ValueError:
        return  # rows of unlike length
    if values.ndim == 2 and values.dtype.kind not in "biuf":
        yield from enumerate(values.T)


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def describe_missing(y: Any) -> str | None:
    """Say where labels are missing, and what to do; None where there is one for each row."""
    labels = np.array(y, dtype=object).ravel()
    missing = [row for row, label in enumerate(labels) if _is_missing(label)]
    if not missing:
        return None
    first = labels[missing[0]]
    more = f", and in {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"Input y contains {'None' if first is None else 'NaN'}: there is no label in row "
        f"{missing[0]}{more}. Drop rows without a label, or fill it in, for example with a class "
        "of its own such as 'unknown'."
    )


def _require_labels(y: Any) -> None:
    if (reason := describe_missing(y)) is not None:
        raise ValueError(reason)


def _is_missing(label: Any) -> bool:
    if isinstance(label, (float, np.floating)):
        return bool(np.isnan(label))
    return label is None or type(label).__name__ in ("NAType", "NaTType")  # of pandas


def check_kernel_matrix(K: Rows) -> None:
    """Require what a kernel matrix of training rows always is."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel matrix must be square in fit, got shape {K.shape}: entry (i, j) "
            "is the kernel value of training rows i and j."
        )
    asymmetry = max(
        abs(K[start : start + 1024] - K[:, start : start + 1024].T).max()
        for start in range(0, K.shape[0], 1024)
    )
    if K.diagonal().min() < 0 or asymmetry > 1e-4 * abs(K).max():
        warn_user(
            "The precomputed matrix is no kernel matrix: that is symmetric, with no negative "
            f"diagonal. Its diagonal goes down to {K.diagonal().min():.3g}, and entries (i, j) and "
            f"(j, i) differ by up to {asymmetry:.3g}. Only columns of chosen rows are used.",
            UserWarning,
        )


def canonical_rows(X: Rows) -> Rows:
    """Return CSR rows with sorted indices and no entry twice; arrays as they are."""
    if sp.issparse(X) and X.shape[1] > np.iinfo(np.int32).max:
        raise ValueError(
            f"X has {X.shape[1]} features; sparse rows may have {np.iinfo(np.int32).max} at the "
            "most. Hash the features to fewer columns."
        )
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def rows_like(vectors: Rows, rows: Rows) -> Rows:
    """Return vectors dense or sparse, and of the dtype, as the rows are."""
    if sp.issparse(rows):
        return sp.csr_matrix(vectors, dtype=rows.dtype)
    dense = vectors.toarray() if sp.issparse(vectors) else vectors
    return np.ascontiguousarray(dense, dtype=rows.dtype)


def with_columns(rows: Rows, n_features: int) -> Rows:
    """Return rows with columns of zeros at the end, so that there are so many."""
    if sp.issparse(rows):
        shape = rows.shape[0], n_features
        return sp.csr_matrix((rows.data, rows.indices, rows.indptr), shape=shape)
    return np.pad(rows, ((0, 0), (0, n_features - rows.shape[1])))


def same_rows(rows: Rows, indices: npt.NDArray[np.intp], vectors: Rows) -> bool:
    """Whether the rows of these numbers are there, and are the vectors."""
    if len(indices) == 0 or indices.min() < 0 or indices.max() >= rows.shape[0]:
        return False
    difference = rows[indices] != vectors
    return not (difference.nnz if sp.issparse(difference) else difference.any())


def places_still_there(
    rows: Rows, vectors: Rows, indices: npt.NDArray[np.intp], *, by_number: bool
) -> npt.NDArray[np.intp]:
    """Return the places of vectors that are among the rows still, under the numbers they had.

    Parameters
    ----------
    rows : array or CSR matrix
    vectors : array or CSR matrix
        Rows of a fit before.
    indices : array of shape (n_vectors,)
        Their numbers; -1 for vectors that were no rows.
    by_number : bool
        Whether numbers alone tell: rows of a kernel matrix say nothing of the vectors.
    """
    places = np.flatnonzero((indices >= 0) & (indices < rows.shape[0]))
    if by_number:
        return places
    unlike = rows[indices[places]] != rows_like(vectors, rows)[places]
    unlike = unlike.toarray() if sp.issparse(unlike) else unlike
    return np.asarray(places[~unlike.any(axis=1)])

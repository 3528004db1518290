"""Compiled pipelines: a machine and the steps before it, with nothing left but arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.compiled import CompiledPredictor
from widemargin.estimation.base import BaseClassifier
from widemargin.kernels import Rows
from widemargin.preparation.prepared import PreparedMachine, prepared
from widemargin.preparation.reading import RowReader
from widemargin.rows import canonical_rows


class CompiledPipeline(CompiledPredictor):
    """Predicts like the pipeline it was made of; see :class:`widemargin.CompiledPredictor`.

    Made by :func:`widemargin.compile` where steps cannot become part of the machine. Tables of
    pandas, polars and Arrow may have text in the columns that an encoder takes. A row of
    ``predict_one`` may be a list of values, or a mapping by the names of the columns.

    Parameters
    ----------
    machine : PreparedMachine
    dtype : {"float32", "float64"}, default="float32"
    n_jobs : int, default=1
    check : bool, default=True
    """

    def __init__(
        self,
        machine: PreparedMachine,
        *,
        dtype: str = "float32",
        n_jobs: int | None = 1,
        check: bool = True,
    ) -> None:
        self._prepared = machine
        super().__init__(machine.model, machine.readout, dtype=dtype, n_jobs=n_jobs, check=check)
        self.n_features_in_ = machine.n_features
        if machine.feature_names is not None:
            self.feature_names_in_ = np.array(machine.feature_names, dtype=object)
        self._prepare()

    def _prepare(self) -> None:
        super()._prepare()
        self._reader = RowReader(self._prepared)

    def predict_one(self, x: Any) -> Any:
        """Return the class of a single row, as a Python object.

        Parameters
        ----------
        x : array-like of shape (n_features,), or mapping
            Values in the order of the columns, or by their names.

        Returns
        -------
        label : int, str or whatever the labels are; an array of 0 and 1 for multi-label
        """
        row = self._reader.read_one(x)
        for operation in self._prepared.operations:
            row = operation.apply(row)
        if self._best_of_one is not None:
            number = self._best_of_one(row, self._check, self._single)
            if number >= 0:
                return self._labels[number]
        self._check_finite_input(x)
        (label,) = self._answers(np.ascontiguousarray(row, dtype=np.float64)[np.newaxis])
        return label if isinstance(label, np.ndarray) else np.asarray(label).item()

    def _check_names(self, X: Any) -> None:
        if not self._prepared.by_name:  # else columns are found by their names
            super()._check_names(X)

    def _rows(self, X: Any) -> Rows:
        rows = self._reader.read(X)
        if self._check and self._prepared.operations:
            self._check_finite_input(rows)
        for operation in self._prepared.operations:
            rows = operation.apply(rows)
        if sp.issparse(rows):
            return canonical_rows(rows.tocsr())
        return np.ascontiguousarray(rows)

    def _check_finite_input(self, rows: Any) -> None:
        """Require what scikit-learn's steps do: NaN may be filled in, infinity never."""
        entries = rows.data if sp.issparse(rows) else np.asarray(rows)
        if entries.dtype.kind == "f" and np.isinf(entries).any():
            raise ValueError("Input X contains infinity. Impute or drop such rows.")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_reader"}


def compile(
    machine: Any, dtype: str = "float32", n_jobs: int | None = 1, *, check: bool = True
) -> CompiledPredictor:
    """Return a predictor for a fitted machine or pipeline, with nothing left but arithmetic.

    Steps before the machine that scale or map rows linearly become part of it, so that prediction
    pays nothing for them; others are done in as few operations as possible. Scores are those of
    ``pipeline.decision_function``.

    Parameters
    ----------
    machine : estimator of widemargin, or Pipeline of scikit-learn that ends in one
        A fitted one. Of an estimator this is what its method ``compile`` gives. Steps may be
        StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer, PCA, TruncatedSVD,
        VarianceThreshold and all other selectors of columns, SimpleImputer, OneHotEncoder,
        OrdinalEncoder, and ColumnTransformer, FeatureUnion and Pipeline of these.
    dtype : {"float32", "float64"}, default="float32"
        Type of the scores. The arithmetic is of single precision too, unless that would cost the
        scores more than 1e-5 of the largest.
    n_jobs : int, default=1
        Number of threads. -1 is all cores.
    check : bool, default=True
        Whether NaN and infinity in rows are looked for, which are an error.

    Returns
    -------
    predictor : CompiledPredictor
        It does not change with the machine.

    Raises
    ------
    TypeError
        If a step is in the way; the message has its name.

    Examples
    --------
    >>> import widemargin
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = widemargin.SparseKernelClassifier(max_basis=5, C=10, random_state=0)
    >>> pipeline = make_pipeline(StandardScaler(), machine).fit(X, y)
    >>> predictor = widemargin.compile(pipeline)
    >>> predictor.predict_one(X[0])
    0
    """
    if isinstance(machine, BaseClassifier):
        return machine.compile(dtype, n_jobs, check=check)
    found = prepared(machine)
    if not found.is_bare:
        return CompiledPipeline(found, dtype=dtype, n_jobs=n_jobs, check=check)
    return CompiledPredictor(
        found.model,
        found.readout,
        dtype=dtype,
        n_jobs=n_jobs,
        check=check,
        feature_names=found.feature_names,
    )

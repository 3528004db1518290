"""The compiled predictor: a fitted machine with nothing left but arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import _check_feature_names

from widemargin._system.availability import available_if
from widemargin._system.parameters import check_flag, check_float_dtype, check_jobs
from widemargin._system.threads import thread_count
from widemargin.kernels import Rows
from widemargin.models import Model
from widemargin.readouts import Readout
from widemargin.rows import canonical_rows, column_names, describe_text, rows_between

Array: TypeAlias = npt.NDArray[Any]

_PIECE_ENTRIES = 1 << 20  # of tables that are made rows at once


def _has_probabilities(predictor: CompiledPredictor) -> None:
    if not predictor._readout.gives_probabilities:
        raise AttributeError(
            "This machine gives scores, not probabilities. Train one with loss='logistic', or "
            "wrap the estimator in sklearn.calibration.CalibratedClassifierCV."
        )


class CompiledPredictor:
    """Predicts like the machine it was made of, without scikit-learn's checks on the way.

    Made by the method ``compile`` of an estimator. Several threads may use one at the same time.

    Parameters
    ----------
    model : Model
    readout : Readout
    dtype : {"float32", "float64"}, default="float32"
        Type of the scores. The arithmetic is of single precision too, unless that would cost the
        scores more than 1e-5 of the largest.
    n_jobs : int, default=1
        Number of threads. -1 is all cores.
    check : bool, default=True
        Whether NaN and infinity in rows are looked for, which are an error, as are negative entries
        where the kernel is the chi-square one. Shapes and types are checked in any case.
    feature_names : array-like of str, default=None
        Names of the features that the machine was trained with. Data frames must have them, in
        their order, as in ``predict`` of the machine.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features,)
        Only where the machine was trained with feature names.
    dtype : numpy dtype

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, C=10, random_state=0).fit(X, y)
    >>> predictor = machine.compile()
    >>> predictor.predict_one(X[0])
    0
    """

    def __init__(
        self,
        model: Model,
        readout: Readout,
        *,
        dtype: str = "float32",
        n_jobs: int | None = 1,
        check: bool = True,
        feature_names: Any = None,
    ) -> None:
        self.dtype = check_float_dtype(dtype)
        check_jobs(n_jobs)
        check_flag("check", check)
        if readout.n_outputs != model.n_outputs:
            raise ValueError(
                f"The model has {model.n_outputs} scores, the readout is one of "
                f"{readout.n_outputs}."
            )
        self.classes_ = readout.classes
        self.n_features_in_ = model.n_features
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names, dtype=object)
            if self.feature_names_in_.shape != (model.n_features,):
                raise ValueError(
                    f"The model has {model.n_features} features, and feature_names is of shape "
                    f"{self.feature_names_in_.shape}."
                )
        self._model = model
        self._readout = readout
        self._n_jobs = n_jobs
        self._check = bool(check)
        self._prepare()

    def _prepare(self) -> None:
        # What predict_one needs, found once: a look-up is a good part of its time. Threads are
        # counted anew after unpickling, maybe on another computer.
        self._n_threads = thread_count(self._n_jobs)
        self._named = hasattr(self, "feature_names_in_")
        predictor = self._model.predictor(self.dtype)
        self._labels = self.classes_.tolist()
        self._single = bool(self.dtype == np.float32)
        # One class alone needs no native code, which takes a single score for that of two.
        single_label = not self._readout.tells_labels and len(self.classes_) > 1
        self._best_of_one = (
            predictor.best_of_one if single_label and predictor is not None else None
        )

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_labels) of 0 and 1 for multi-label
        """
        self._check_names(X)
        return self._predict(X)

    def decision_function(self, X: Any) -> Array:
        """Return the scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
        """
        return self._readout.decision(self._scores(X))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, where the machine has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.exp(self._readout.log_probabilities(self._scores(X)))

    def predict_one(self, x: Any) -> Any:
        """Return the class of a single row, as a Python object.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Fastest as a NumPy array of floats. The index of a pandas Series must be the names of
            the features, where the machine was trained with any.

        Returns
        -------
        label : int, str or whatever the labels are; an array of 0 and 1 for multi-label
        """
        if self._best_of_one is not None:
            number = self._best_of_one(x, self._check, self._single)
            if number >= 0:
                return self._labels[number]
        # Not an array of floats that the native code takes as it is, or one that is an error.
        row = np.asarray(x)
        if row.ndim != 1:
            raise ValueError(
                f"predict_one takes a single row of {self.n_features_in_} features, got an array "
                f"of shape {row.shape}."
            )
        if self._named and hasattr(x, "to_frame") and hasattr(x, "index"):
            self._check_names(x.to_frame().T)
        (label,) = self._predict(row[np.newaxis])
        return label if isinstance(label, np.ndarray) else np.asarray(label).item()

    def _check_names(self, X: Any) -> None:
        """Require the names and the order of the features, as scikit-learn does."""
        if self._named or type(X) is not np.ndarray:
            _check_feature_names(self, X, reset=False)

    def _predict(self, X: Any) -> Array:
        return self._of_pieces(self._answers, X)

    def _of_pieces(self, answer: Callable[[Rows], Array], X: Any) -> Array:
        """Return the answers for rows: of tables and of columns in memory, a piece at a time.

        So nothing as large as the table is made of it, where it is not rows in memory itself.
        """
        in_rows = isinstance(X, np.ndarray) and (X.ndim != 2 or X.flags.c_contiguous)
        if in_rows or (not isinstance(X, np.ndarray) and column_names(X) is None):
            return answer(self._rows(X))
        n_rows = int(X.shape[0])
        size = max(1024, _PIECE_ENTRIES // max(1, self.n_features_in_))
        if n_rows <= size:
            return answer(self._rows(X))
        try:
            pieces = [
                answer(self._rows(rows_between(X, start, min(start + size, n_rows))))
                for start in range(0, n_rows, size)
            ]
        except (ValueError, TypeError):
            return answer(self._rows(X))  # so that the error has the number of the row
        return np.concatenate(pieces)

    def _answers(self, rows: Rows) -> Array:
        """Return the classes or labels of rows as the model takes them."""
        if self._readout.tells_labels:
            return self._readout.indicators(self._scores_of(rows))
        best = self._model.best(rows, self._n_threads, dtype=self.dtype, check=self._check)
        return self._readout.labels_of(best)

    def _scores(self, X: Any) -> Array:
        self._check_names(X)
        return self._of_pieces(self._scores_of, X)

    def _scores_of(self, rows: Rows) -> Array:
        return self._model.scores(rows, self._n_threads, dtype=self.dtype, check=self._check)

    def _rows(self, X: Any) -> Rows:
        """Return rows of numbers, in the form that models take."""
        rows = X.tocsr() if sp.issparse(X) else np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X must have shape (n_rows, {self.n_features_in_}), got {rows.shape}."
            )
        if rows.dtype not in (np.float32, np.float64):
            rows = _as_numbers(X, rows)
        return canonical_rows(rows) if sp.issparse(rows) else np.ascontiguousarray(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_best_of_one"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._prepare()


def _as_numbers(X: Any, rows: Rows) -> Rows:
    is_number = rows.dtype.kind in "biuf" or (
        # Columns of several types; strings that look like numbers are none.
        rows.dtype.kind == "O" and all(isinstance(value, (Real, np.bool_)) for value in rows.flat)
    )
    if not is_number:
        raise TypeError(
            describe_text(X) or f"X must hold numbers, got an array of dtype {rows.dtype}."
        )
    return rows.astype(np.float64)  # integers may be longer than float32 holds

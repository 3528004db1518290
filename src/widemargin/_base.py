"""What every estimator is: rows are validated, then its model and readout answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin._fitting import CallbackSupportMixin
from widemargin._rows import canonical_rows
from widemargin._threads import thread_count
from widemargin.compiled import CompiledPredictor
from widemargin.kernels import Rows
from widemargin.models import Model
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]


def _has_probabilities(estimator: BaseMachine) -> bool:
    estimator._check_gives_probabilities()
    return True


class BaseMachine(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """An estimator that has a ``model_``, and says how its scores are read."""

    model_: Model
    n_jobs: int | None

    #: What a fit leaves besides ``model_`` and ``n_features_in_``: a model file must have it all.
    _fitted_names: ClassVar[frozenset[str]]

    #: Values of parameters that came after the first model files, for files that have none, where
    #: the default is not what the machine of such a file was trained with.
    _parameters_of_old_files: ClassVar[dict[str, Any]] = {}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # history_ alone is what an interrupted fit leaves

    def _fitted_copy(self, attributes: dict[str, Any]) -> Self:
        """Return a machine of the same parameters, with these attributes."""
        machine: Self = clone(self)
        names = {"classes_", "n_features_in_", "feature_names_in_"} & vars(self).keys()
        machine.__dict__.update({name: vars(self)[name] for name in names})
        machine.__dict__.update(attributes)
        return machine

    @abstractmethod
    def _readout(self) -> Readout:
        """Return how the scores of ``model_`` are read."""

    def _check_gives_probabilities(self) -> None:
        """Raise AttributeError, with a way out, where scores do not become probabilities."""

    def compile(
        self, dtype: str = "float32", n_jobs: int | None = 1, *, check: bool = True
    ) -> CompiledPredictor:
        """Return a predictor for the fitted machine that leaves out all that is not arithmetic.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            Type of the scores. The arithmetic is of single precision too, unless that would cost
            the scores more than 1e-5 of the largest.
        n_jobs : int, default=1
            Number of threads. -1 is all cores.
        check : bool, default=True
            Whether NaN and infinity in rows are looked for, which are an error.

        Returns
        -------
        predictor : CompiledPredictor
            It does not change with the estimator.
        """
        check_is_fitted(self)
        return CompiledPredictor(
            self.model_, self._readout(), dtype=dtype, n_jobs=n_jobs, check=check
        )

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For two classes, positive scores speak for ``classes_[1]``.
        """
        scores = self._scores(X)
        return self._readout().decision(scores)

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        best = self._best(self._validate_rows(X))
        return self._readout().labels_of(best)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; only with a logistic loss.

        Those of machines of one class against the rest are normalised.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]  # scikit-learn has no types
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of ``predict_proba``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        # In double: in single precision a probability near 1 would be 1.
        scores = self._scores(X).astype(np.float64, copy=False)
        return self._readout().log_probabilities(scores)

    def _scores(self, X: Any) -> Array:
        return self._scores_of(self._validate_rows(X))

    def _scores_of(self, rows: Rows) -> Array:
        return self.model_.scores(rows, thread_count(self.n_jobs))

    def _best(self, rows: Rows) -> npt.NDArray[np.int64]:
        return self.model_.best(rows, thread_count(self.n_jobs))

    def _validate_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            order="C",
            reset=False,
            ensure_min_samples=0,
        )
        return canonical_rows(X)

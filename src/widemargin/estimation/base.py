"""What every estimator is: rows are validated, then its model and readout answer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from widemargin._system.availability import available_if
from widemargin._system.file_changes import Added, Change, brought_up_to_date
from widemargin._system.threads import thread_count
from widemargin.compiled import CompiledPredictor
from widemargin.estimation.fitting import CallbackSupportMixin
from widemargin.kernels import Rows
from widemargin.models import KernelExpansion, LinearMap, Model
from widemargin.readouts import Readout
from widemargin.rows import canonical_rows, validated_data

Array: TypeAlias = npt.NDArray[Any]


def _has_probabilities(estimator: BaseClassifier) -> None:
    estimator._check_gives_probabilities()


#: Attributes that are read from ``model_``, and which model files keep beside it.
MODEL_PARTS = frozenset({"basis_", "dual_coef_", "intercept_", "n_basis_"})


def _part_of_model(name: str, read: Callable[[Any], Any], doc: str) -> property:
    """Return an attribute that is read from ``model_``, which alone predicts."""

    def get(machine: BaseClassifier) -> Any:
        if not hasattr(machine, "model_"):
            raise AttributeError(f"{type(machine).__name__!r} object has no attribute {name!r}")
        return read(machine.model_)

    def refuse(machine: BaseClassifier, value: Any = None) -> None:
        raise AttributeError(
            f"{name} is read from model_, which predicts, and cannot be set by itself. Make "
            "another model of copies: machine.model_ = widemargin.models.KernelExpansion("
            "kernel, basis, coef, intercept)."
        )

    return property(get, refuse, refuse, doc)


def _linear_coefficients(model: Model) -> Rows:
    linear = model.collapsed() if isinstance(model, KernelExpansion) else model
    if not isinstance(linear, LinearMap):
        kernel = model.kernel if isinstance(model, KernelExpansion) else type(model).__name__
        raise AttributeError(
            "coef_ has a weight for each feature, which only a linear kernel gives; this machine "
            f"has {kernel!r}. Use kernel='linear', or look at dual_coef_ and basis_."
        )
    # Transposing a CSR matrix gives a CSC one; rows of outputs are what users index.
    return linear.coef.T.tocsr() if sp.issparse(linear.coef) else linear.coef.T


def _dual_coefficients(model: Model) -> Array:
    if not isinstance(model, KernelExpansion):
        raise AttributeError("dual_coef_ has coefficients of kernels, which this machine lacks.")
    return model.coef


def _linear_part(model: Any) -> Array:
    linear: Array | None = getattr(model, "linear", None)
    if linear is None:
        raise AttributeError(
            "linear_coef_ has the coefficients of a linear part, which this machine lacks. Only a "
            "SparseKernelClassifier with basis=LearnedBasis(linear_part=True) has one."
        )
    return linear


def _is_same(basis: Rows, other: Rows) -> bool:
    if basis is other:
        return True
    if type(basis) is not type(other) or basis.shape != other.shape:
        return False
    return (basis != other).nnz == 0 if sp.issparse(basis) else bool((basis == other).all())


class BaseClassifier(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """An estimator that has a ``model_``, and says how its scores are read."""

    model_: Model
    readout_: Readout
    classes_: Array
    n_features_in_: int
    basis_indices_: npt.NDArray[np.intp]
    _stages: list[tuple[Array, Array]]
    C: Any
    n_jobs: int | None
    verbose: int

    # The documentation has no address yet: no link is better than one to other people's pages.
    _doc_link_module = "widemargin"
    _doc_link_template = ""

    basis_ = _part_of_model("basis_", lambda model: model.basis, "The basis vectors.")
    n_basis_ = _part_of_model("n_basis_", lambda model: model.n_basis, "Number of basis vectors.")
    dual_coef_ = _part_of_model("dual_coef_", _dual_coefficients, "Coefficients.")
    intercept_ = _part_of_model("intercept_", lambda model: model.intercept, "Intercepts.")
    coef_ = _part_of_model("coef_", _linear_coefficients, "Weights of the features.")
    linear_coef_ = _part_of_model("linear_coef_", _linear_part, "Coefficients of the linear part.")

    #: What a fit makes.
    _model_type: ClassVar[type[Model]] = KernelExpansion

    #: Those of ``MODEL_PARTS`` that such a model has.
    _model_parts: ClassVar[frozenset[str]] = MODEL_PARTS

    #: What a fit leaves besides ``model_`` and ``n_features_in_``: a model file must have it all.
    _fitted_names: ClassVar[frozenset[str]]

    #: What a fit may leave, and a model file may have.
    _optional_fitted_names: ClassVar[frozenset[str]] = frozenset({"_state", "feature_names_in_"})

    #: Parameters and fitted attributes that older model files lack, or have otherwise.
    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType(
        {"readout_": Added(2, lambda file: Readout.of_classes(file["classes_"]))}
    )

    #: Parameters with which a fit of some dozen rows takes no time: the contract tests, which walk
    #: the registry, fit every estimator with them.
    _quick_settings: ClassVar[dict[str, Any]] = {}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")  # history_ alone is what an interrupted fit leaves

    def _fitted_copy(self, attributes: dict[str, Any]) -> Self:
        """Return a machine of the same parameters, with these attributes."""
        machine: Self = clone(self)
        names = {"classes_", "n_features_in_", "feature_names_in_"} & vars(self).keys()
        machine.__dict__.update({name: vars(self)[name] for name in names})
        machine.__dict__.update(attributes)
        return machine

    def __setattr__(self, name: str, value: Any) -> None:
        # A fit writes into __dict__ what it leaves; here somebody puts another model in its place.
        if name == "model_":
            self._make_way_for(value)
        super().__setattr__(name, value)

    def _make_way_for(self, model: Any) -> None:
        """Require a model that goes with the classes and features, and let go of the one before."""
        if not isinstance(model, self._model_type):
            raise TypeError(
                f"model_ must be a widemargin.models.{self._model_type.__name__}, got "
                f"{type(model).__name__}."
            )
        n_features = getattr(self, "n_features_in_", model.n_features)
        if hasattr(self, "readout_"):
            n_outputs = self.readout_.n_outputs
            if (model.n_features, model.n_outputs) != (n_features, n_outputs):
                raise ValueError(
                    f"model_ must be of {n_features} features and {n_outputs} scores, got one of "
                    f"{model.n_features} and {model.n_outputs}."
                )
        self.__dict__.pop("_state", None)  # the next fit starts from this model
        if not isinstance(model, KernelExpansion):
            return
        old = self.__dict__.get("model_")
        same_basis = old is not None and _is_same(old.basis, model.basis)
        if "basis_indices_" in self.__dict__ and not same_basis:
            self.basis_indices_ = np.full(model.n_basis, -1)
        if "_stages" in self.__dict__:
            before = self.__dict__["_stages"][:-1] if same_basis else []
            self._stages = [*before, (model.coef, model.intercept)]

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of versions in which these were stored beside the model.
        state = {name: state[name] for name in state if name not in MODEL_PARTS}
        if "model_" in state and "readout_" not in state:
            state = brought_up_to_date(type(self), state, version=1)
        super().__setstate__(state)

    def _check_gives_probabilities(self) -> None:
        """Raise AttributeError, with a way out, where scores do not become probabilities."""
        gives = self._would_give_probabilities() or bool(getattr(self, "probability", False))
        if "readout_" in self.__dict__:
            gives = self.readout_.gives_probabilities
        if not gives:
            raise AttributeError(self._why_no_probabilities())

    def _would_give_probabilities(self) -> bool:
        """Whether a fit with these parameters would."""
        return False

    @abstractmethod
    def _why_no_probabilities(self) -> str:
        """Say why scores do not become probabilities, and what to do."""

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
            Whether NaN and infinity in rows are looked for, which are an error, as are negative
            entries where the kernel is the chi-square one.

        Returns
        -------
        predictor : CompiledPredictor
            It does not change with the estimator.
        """
        check_is_fitted(self)
        return CompiledPredictor(
            self.model_,
            self.readout_,
            dtype=dtype,
            n_jobs=n_jobs,
            check=check,
            feature_names=getattr(self, "feature_names_in_", None),
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
        return self.readout_.decision(scores)

    def predict(self, X: Any) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_labels) of 0 and 1 for multi-label
        """
        rows = self._validate_rows(X)
        if self.readout_.tells_labels:
            return self.readout_.indicators(self._scores_of(rows))
        return self.readout_.labels_of(self._best(rows))

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class; only with a logistic loss, or calibrated ones.

        Those of machines of one class against the rest are normalised; those of labels are one for
        each label, and with ``probability=True`` calibrated where the loss has none.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; their kernel values with all training rows for a precomputed kernel.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_has_probabilities)
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
        return self.readout_.log_probabilities(scores)

    def _cap(self) -> float:
        """Return what a row of weight 1 counts against the regulariser."""
        return float(self.C)

    def _check_training_rows(self, X: Rows) -> None:
        """Require what must hold of rows to learn from, besides what always must."""
        self._check_batch_rows(X)

    def _check_batch_rows(self, X: Rows) -> None:
        """Require the same of some of the rows, as they come in a stream."""

    def _scores(self, X: Any) -> Array:
        return self._scores_of(self._validate_rows(X))

    def _scores_of(self, rows: Rows) -> Array:
        return self.model_.scores(rows, thread_count(self.n_jobs))

    def _best(self, rows: Rows) -> npt.NDArray[np.int64]:
        return self.model_.best(rows, thread_count(self.n_jobs))

    def _validate_rows(self, X: Any) -> Rows:
        check_is_fitted(self)
        rows = canonical_rows(validated_data(self, X, reset=False, ensure_min_samples=0))
        self._check_new_rows(rows)
        return rows

    def _check_new_rows(self, rows: Rows) -> None:
        """Require what the model requires of rows."""
        self.model_.check_rows(rows)

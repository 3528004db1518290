"""Settings of a basis: how its vectors are found, as an object that the parameter ``basis`` takes.

A string stands for an object with its defaults. The settings are parameters in the manner of
scikit-learn, so that a search can reach them as ``basis__metric``, and clones have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeAlias

from sklearn.base import BaseEstimator, clone

from widemargin._system.file_changes import Added, Change, Changed, Removed
from widemargin._system.parameters import check_choice, check_flag, check_integer, check_real
from widemargin.losses import CLASS_LOSSES, Loss
from widemargin.readouts import Link, Readout

_METRICS = ("auto", "none", "scaled", "diagonal", "full")
_SOLVERS = ("auto", "projection", "adam")


@dataclass(repr=False, kw_only=True)
class ChosenBasis(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Basis vectors that are chosen among the training rows, one after the other.

    For the parameter ``basis`` of :class:`SparseKernelClassifier`, where "shared" stands for
    ``ChosenBasis()`` and "per_class" for ``ChosenBasis(per_class=True)``.

    Parameters
    ----------
    n_candidates : int or "all", default=128
        Training rows drawn at random and compared for a vector that is added (the papers' kappa);
        where several are added at once, 8 more for each further one.

    per_class : bool, default=False
        Whether each class has a set of its own, chosen for a machine that sets it against the rest
        (Sparse-OVA), instead of one set for all.

    gradient_tol : float, default=1e-4
        Norm of the gradient in the coefficients at the end, relative to the one at zero
        coefficients. The last solve also goes on while a step promises more than 1 % of the
        objective.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import ChosenBasis, SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(5, basis=ChosenBasis(n_candidates="all"), random_state=0)
    >>> machine.fit(X, y).n_basis_
    5
    """

    n_candidates: int | str = 128
    per_class: bool = False
    gradient_tol: float = 1e-4

    def check(self) -> None:
        """Raise TypeError or ValueError where a setting is none."""
        if isinstance(self.n_candidates, str):
            check_choice("basis.n_candidates", self.n_candidates, ("all",), ", or an integer")
        else:
            check_integer("basis.n_candidates", self.n_candidates, least=1)
        check_flag("basis.per_class", self.per_class)
        check_real("basis.gradient_tol", self.gradient_tol, positive=True)


@dataclass(repr=False, kw_only=True)
class LearnedBasis(BaseEstimator):  # type: ignore[misc]  # untyped base
    """Basis vectors that are learned: they move, with their widths and a metric.

    For the parameter ``basis`` of :class:`SparseKernelClassifier`, where "learned" stands for
    ``LearnedBasis()``.

    Parameters
    ----------
    metric : {"auto", "none", "scaled", "diagonal", "full"}, default="auto"
        What is learned of distances. "none": a common width. "scaled": the same, of features that
        are divided by their spread. "diagonal": a width for each vector, and a weight for each
        feature. "full": a width for each vector, and a linear map of the
        features. "auto" looks at what there is to learn it from: "full" up to 20 features, where
        there are two rows for each entry of the map; else "diagonal" up to 200 features, where
        there are 20 rows for each of them; else "none" where all features have about the same
        range, and "scaled" where they have not. A warm start keeps the metric that it begins with.

    solver : {"auto", "projection", "adam"}, default="auto"
        How vectors are moved. "projection": variable projection, which solves for all coefficients
        at every move. "adam": stochastic gradients, with steps whose length falls to nothing along
        half a cosine over ``max_iter`` epochs. "auto": stochastic gradients in cycles, each twice
        as long as the one before, then projection, until 10 moves lower the objective by less than
        ten times the ``tol`` of the estimator. Rows that are held out say how many cycles and moves
        pay, and choose C if it is "auto". Up to 3,000 rows that is rehearsed on up to five splits,
        and then done with all rows. Of more rows a tenth to a fifth is held out, and joins the
        others once moves have shown that they can be trusted. Fewer than 40 rows are all learned
        from. A warm start begins with projection.

    max_iter : int or "auto", default="auto"
        Epochs and moves at the most; of the solver "auto", half of them may be epochs. "auto" is
        1000, and of the solver "auto" as many moves after the epochs.

    linear_part : bool or "auto", default="auto"
        Whether the scores have a part that is linear in the features beside the vectors,
        ``F = H A + X W + b``. It is solved for together with the other coefficients, on
        standardised features, and regularised like them. Where few vectors cannot say what a
        linear model says, as with hundreds of features, it makes up for that. "auto" is False.
        2,000 features at the most.

    early_stopping : bool, default=False
        Whether the machine is judged by rows that are held out, and the best on the way is taken.

    validation_fraction : float, default=0.1
        Share of the rows that ``early_stopping`` holds out.

    n_iter_no_change : int, default=10
        Moves without a better score on held-out rows after which ``early_stopping`` ends them.

    gradient_tol : float, default=1e-4
        Norm of the gradient in the coefficients at the end, relative to the one at zero
        coefficients. The last solve also goes on while a step promises more than 1 % of the
        objective.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LearnedBasis, SparseKernelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(3, basis=LearnedBasis(metric="diagonal"), random_state=0)
    >>> machine
    SparseKernelClassifier(basis=LearnedBasis(metric='diagonal'), max_basis=3,
                           random_state=0)
    >>> bool(machine.fit(X, y).score(X, y) > 0.95)
    True
    """

    per_class: ClassVar[bool] = False

    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType({"linear_part": Added(4)})

    metric: str = "auto"
    solver: str = "auto"
    max_iter: int | str = "auto"
    linear_part: bool | str = "auto"
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    gradient_tol: float = 1e-4

    def check(self) -> None:
        """Raise TypeError or ValueError where a setting is none."""
        check_choice("basis.metric", self.metric, _METRICS)
        check_choice("basis.solver", self.solver, _SOLVERS)
        if isinstance(self.max_iter, str):
            check_choice("basis.max_iter", self.max_iter, ("auto",), ", or an integer")
        else:
            check_integer("basis.max_iter", self.max_iter, least=1)
        if isinstance(self.linear_part, str):
            check_choice("basis.linear_part", self.linear_part, ("auto",), ", True or False")
        else:
            check_flag("basis.linear_part", self.linear_part)
        check_flag("basis.early_stopping", self.early_stopping)
        check_real("basis.validation_fraction", self.validation_fraction, positive=True)
        if self.validation_fraction >= 1:
            raise ValueError(
                f"basis.validation_fraction must be below 1, got {self.validation_fraction}."
            )
        check_integer("basis.n_iter_no_change", self.n_iter_no_change, least=1)
        check_real("basis.gradient_tol", self.gradient_tol, positive=True)


BasisSettings: TypeAlias = ChosenBasis | LearnedBasis

_NAMED: dict[str, Callable[[], BasisSettings]] = {
    "shared": ChosenBasis,
    "per_class": lambda: ChosenBasis(per_class=True),
    "learned": LearnedBasis,
}


def as_basis(basis: Any) -> BasisSettings:
    """Return the settings that a parameter ``basis`` stands for, whose values may still be wrong.

    Whoever gets them leaves them as they are: they may be the user's.
    """
    if isinstance(basis, (ChosenBasis, LearnedBasis)):
        return basis
    check_choice("basis", basis, tuple(_NAMED), ", a ChosenBasis or a LearnedBasis")
    return _NAMED[basis]()


def _shortest(basis: BasisSettings) -> BasisSettings | str:
    """Return the string that stands for these settings, if there is one."""
    return next((name for name, make in _NAMED.items() if make() == basis), basis)


# Parameters of the estimator in the first model files, and what the settings call them.
_ONCE_OF_CHOSEN = {"n_candidates": "n_candidates", "gradient_tol": "gradient_tol"}
_ONCE_OF_LEARNED = {
    "metric": "metric",
    "solver": "solver",
    "learn_iter": "max_iter",
    "early_stopping": "early_stopping",
    "validation_fraction": "validation_fraction",
    "n_iter_no_change": "n_iter_no_change",
    "gradient_tol": "gradient_tol",
}


def _basis_of_old_file(file: Mapping[str, Any]) -> BasisSettings | str:
    """Return the basis of a file in which its settings were parameters of the estimator.

    Those that the kind of basis had no use for are left out.
    """
    settings = as_basis(file["basis"])
    names = _ONCE_OF_LEARNED if isinstance(settings, LearnedBasis) else _ONCE_OF_CHOSEN
    settings.set_params(**{names[name]: file[name] for name in names if name in file})
    return _shortest(settings)


def _readout_of_old_file(file: Mapping[str, Any]) -> Readout:
    """Return how scores are read, which files of the first version say by other attributes."""
    loss = file["loss"] if isinstance(file["loss"], Loss) else CLASS_LOSSES[file["loss"]]()
    link: Link = "one_against_rest" if "class_index" in file["history_"] else "softmax"
    return Readout.of_classes(file["classes_"], link if loss.gives_probabilities else None)


class HasBasisSettings:
    """An estimator with a parameter ``basis``, whose settings are parameters within it."""

    basis: Any

    _file_changes: ClassVar[Mapping[str, Change]] = MappingProxyType(
        {
            "basis": Changed(2, _basis_of_old_file),
            "_is_learned": Added(
                2, lambda file: isinstance(as_basis(file.get("basis", "shared")), LearnedBasis)
            ),
            "readout_": Added(2, _readout_of_old_file),
            "C_": Added(4, lambda file: float(file.get("best_params_", file)["C"])),
            **{name: Removed(2) for name in (_ONCE_OF_CHOSEN | _ONCE_OF_LEARNED)},
        }
    )

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the basis as ``basis__metric`` and so on.

        An object that was given as ``basis`` is replaced, not changed: others may have it too.

        Parameters
        ----------
        **params : dict
            Parameters by name.

        Returns
        -------
        self : estimator
        """
        nested = sorted(name for name in params if name.startswith("basis__"))
        if nested:
            basis = params.get("basis", self.basis)
            if isinstance(basis, str):
                kind = type(as_basis(basis)).__name__
                raise ValueError(
                    f"{', '.join(nested)} cannot be set where basis is {basis!r}, a string, which "
                    f"has no settings of its own. Give an object first: basis=widemargin.{kind}()."
                )
            if hasattr(basis, "set_params"):
                params["basis"] = clone(basis)
        return super().set_params(**params)  # type: ignore[misc,no-any-return]  # of the estimator

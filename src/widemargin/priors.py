"""Priors over labels: which of them go together.

A prior is a matrix R of shape (n_labels, n_labels), positive semi-definite: labels that occur
together have a positive entry. It makes the regulariser ``1/2 tr(R^-1 B'B)`` of ``1/2 |B|^2``, for
coefficients B of shape (n_columns, n_labels). With a root L of R, ``R = L L'``, and ``B = W L'``
that is ``1/2 |W|^2``: whoever works with W has the plain regulariser, need not invert R, and R may
be singular. Then B stays where R lets it: each of its rows is in the range of R.

Estimators take a :class:`LabelPrior`, or R itself, as ``prior``. The functions here make one of
what is known: :func:`identity`, :func:`from_labels`, :func:`from_signatures`,
:func:`from_correlation`.

Examples
--------
>>> from widemargin import priors
>>> prior = priors.from_labels([[1, 1, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])
>>> bool(prior.matrix[0, 1] > 0 > prior.matrix[0, 2])
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin._system.parameters import check_integer, check_real
from widemargin._system.warnings import warn_user

__all__ = [
    "LabelPrior",
    "as_prior",
    "from_correlation",
    "from_labels",
    "from_signatures",
    "identity",
]

Array: TypeAlias = npt.NDArray[Any]

_NO_LENGTH = 1e-10  # share of the largest singular value: smaller ones are rounding error
_ROUNDING = 1e-10  # share of the largest eigenvalue: so far below zero it is rounding error
_REPAIRED = 1e-2  # share of the largest: an eigenvalue so far below zero is lifted, with a warning
_ASYMMETRY = 1e-8  # share of the largest entry


@dataclass(frozen=True, eq=False, repr=False)
class LabelPrior:
    """A prior R over labels, known by a root: ``R = L L'``.

    Parameters
    ----------
    root : array-like of shape (n_outputs, n_latent)
        L. Any will do: a Cholesky factor, a symmetric root, or one with fewer columns than rows
        where R has no full rank.
    label_names : array-like of shape (n_outputs,), default=None
        Names of the labels. Where Y has names too, they must be these, in this order.

    Attributes
    ----------
    root : ndarray of shape (n_outputs, n_latent)
    label_names : ndarray of str or None
    matrix : ndarray of shape (n_outputs, n_outputs)
        R.
    n_outputs, n_latent : int
    """

    root: Array
    label_names: Array | None = None

    def __post_init__(self) -> None:
        given = np.shape(self.root)
        root = np.array(self.root, dtype=np.float64, order="C", ndmin=2)
        if root.ndim != 2 or 0 in root.shape or not np.isfinite(root).all():
            raise ValueError(
                "The root of a label prior must be a matrix of finite numbers, with a row for each "
                f"output; got an array of shape {given}."
            )
        object.__setattr__(self, "root", root)
        object.__setattr__(self, "label_names", _checked_names(self.label_names, len(root)))

    def __repr__(self) -> str:
        """Return the size and the first names."""
        rank = "" if self.n_latent == self.n_outputs else f", rank <= {self.n_latent}"
        named = ""
        if self.label_names is not None:
            first = ", ".join(self.label_names[:3].tolist())
            named = f": {first}{', ...' if self.n_outputs > 3 else ''}"
        return f"<LabelPrior of {self.n_outputs} labels{rank}{named}>"

    @property
    def n_outputs(self) -> int:
        """Number of labels."""
        return int(self.root.shape[0])

    @property
    def n_latent(self) -> int:
        """Number of columns of the root."""
        return int(self.root.shape[1])

    @property
    def matrix(self) -> Array:
        """R."""
        return np.asarray(self.root @ self.root.T)

    @property
    def is_diagonal(self) -> bool:
        """Whether it relates no label to another."""
        matrix = self.matrix
        return not np.any(matrix - np.diag(np.diag(matrix)))

    def take(self, places: Any) -> LabelPrior:
        """Return the prior of some labels: their rows and columns of R."""
        names = None if self.label_names is None else self.label_names[places]
        return LabelPrior(self.root[places], names)

    def to_outputs(self, latent: Array) -> Array:
        """Return ``W L'``: coefficients or directions as the outputs see them."""
        return np.asarray(latent @ self.root.T)

    def of_outputs(self, coefficients: Array) -> Array:
        """Return the latent coefficients W of the least length of which these are ``W L'``.

        What R does not let through is left out.
        """
        return np.asarray(coefficients @ np.linalg.pinv(self.root.T, rcond=_NO_LENGTH))

    def to_latent(self, gradient: Array) -> Array:
        """Return ``G L``: gradients in the outputs as gradients in the latent coefficients."""
        return np.asarray(gradient @ self.root.astype(gradient.dtype, copy=False))

    def curvature_to_latent(self, curvature: Array) -> Array:
        """Return ``H (L * L)`` for the second derivatives H of each output by itself.

        That is the curvature in each latent coefficient where a loss has no second derivatives
        across outputs. Where it has (losses that compare outputs), they are left out, as they are
        without a prior.
        """
        return np.asarray(curvature @ np.square(self.root).astype(curvature.dtype, copy=False))

    def flat_directions(self, *, common_shift: bool) -> Array:
        """Return an orthonormal basis of the latent directions in which no loss changes.

        Parameters
        ----------
        common_shift : bool
            Whether the loss is flat where all outputs move together.

        Returns
        -------
        directions : ndarray of shape (n_latent, n_flat)
            Those that L maps to nothing; with ``common_shift``, also those that it maps to equal
            numbers.
        """
        seen = self.root - self.root.mean(axis=0) if common_shift else self.root
        _, lengths, directions = np.linalg.svd(seen, full_matrices=True)
        # Against the root itself: where it only knows common shifts, nothing of it is seen.
        least = _NO_LENGTH * np.linalg.norm(self.root, 2)
        return np.ascontiguousarray(directions[np.count_nonzero(lengths > least) :].T)


def identity(n_labels: int, *, label_names: Any = None) -> LabelPrior:
    """Return the prior that relates no label to another: the same as none.

    Parameters
    ----------
    n_labels : int
    label_names : array-like of str, default=None
    """
    check_integer("n_labels", n_labels, least=1)
    return LabelPrior(np.eye(n_labels), label_names)


def from_labels(Y: Any, *, shrinkage: float = 0.1, label_names: Any = None) -> LabelPrior:
    """Return the prior of labels that occur together in these rows, as the paper has it.

    R is the mean of ``y y'`` over rows, with y of -1 and 1: 1 for labels that always go together,
    -1 for labels of which a row always has just one. It is shrunk towards the identity,
    ``(1 - shrinkage) R + shrinkage I``, as few rows tell little of many labels.

    Parameters
    ----------
    Y : {array-like, sparse matrix} of shape (n_rows, n_labels)
        An indicator of 0 and 1; it is not made dense. Of a data frame the columns are names.
    shrinkage : float, default=0.1
        From 0 to 1. Above 0, R has full rank however few the rows are.
    label_names : array-like of str, default=None
        None takes those of the columns of a data frame.
    """
    check_real("shrinkage", shrinkage, least=0.0)
    if shrinkage > 1.0:
        raise ValueError(f"shrinkage must be 1 or less, got {shrinkage}.")
    names = names_of(Y) if label_names is None else label_names
    indicator: Any = Y if sp.issparse(Y) else np.asarray(Y)
    values = indicator.data if sp.issparse(indicator) else indicator
    if indicator.ndim != 2 or 0 in indicator.shape or not np.isin(values, (0, 1)).all():
        raise ValueError(
            "Y must be an indicator matrix of 0 and 1 with a column for each label, got an array "
            f"of shape {indicator.shape}."
        )
    indicator = indicator.astype(np.float64)
    n_rows = indicator.shape[0]
    together = indicator.T @ indicator
    together = np.asarray(together.todense() if sp.issparse(together) else together) / n_rows
    share = np.diag(together)
    # The mean of (2 y - 1) (2 y - 1)', without a matrix of signs as long as the rows.
    signs = 4.0 * together - 2.0 * share - 2.0 * share[:, np.newaxis] + 1.0
    shrunk = (1.0 - shrinkage) * signs + shrinkage * np.eye(len(signs))
    return from_correlation(shrunk, label_names=names)


def from_signatures(
    signatures: Any,
    *,
    class_prior: Any = None,
    ridge: float = 1e-3,
    label_names: Any = None,
) -> LabelPrior:
    """Return the prior of labels that go together in the classes there are.

    ``R = sum_c p(c) y_c y_c' + ridge I``, with the signature y_c of class c: 1 for the attributes
    that it has, -1 for the others. So the attributes of classes of which there are no rows yet are
    known beforehand.

    Parameters
    ----------
    signatures : array-like of shape (n_classes, n_labels)
        0 and 1, or -1 and 1. Of a data frame the columns are names.
    class_prior : array-like of shape (n_classes,), default=None
        How often each class is met, made to sum to 1; None takes all as equally frequent.
    ridge : float, default=1e-3
        Without it, R has no higher rank than there are classes.
    label_names : array-like of str, default=None
        None takes those of the columns of a data frame.
    """
    check_real("ridge", ridge, least=0.0)
    names = names_of(signatures) if label_names is None else label_names
    values = np.asarray(signatures.toarray() if sp.issparse(signatures) else signatures)
    found = np.unique(values) if values.dtype.kind in "biuf" else np.array([np.nan])
    if values.ndim != 2 or 0 in values.shape or not set(found.tolist()) <= {-1, 0, 1}:
        raise ValueError(
            "signatures must be a matrix of 0 and 1, or -1 and 1, with a row for each class and a "
            f"column for each label; got an array of shape {values.shape} with values "
            f"{found[:5].tolist()}."
        )
    if {-1, 0} <= set(found.tolist()):
        raise ValueError(
            "signatures have -1 and 0 for labels that a class lacks: use one of them throughout."
        )
    signs = np.where(values > 0, 1.0, -1.0)
    weights = np.ones(len(signs)) if class_prior is None else np.asarray(class_prior, dtype=float)
    if weights.shape != (len(signs),) or not (
        np.isfinite(weights).all() and (weights >= 0).all() and weights.any()
    ):
        raise ValueError(
            f"class_prior must be {len(signs)} numbers of 0 or more, one for each row of "
            f"signatures and not all zero; got {class_prior!r}."
        )
    weights = weights / weights.sum()
    matrix = (signs.T * weights) @ signs + ridge * np.eye(signs.shape[1])
    return from_correlation(matrix, label_names=names)


def from_correlation(matrix: Any, *, label_names: Any = None) -> LabelPrior:
    """Return the prior of a given R.

    Parameters
    ----------
    matrix : array-like of shape (n_labels, n_labels)
        R: symmetric and positive semi-definite. Where its lowest eigenvalue is below zero by no
        more than 1 % of the largest, a ridge lifts it to zero, with a warning; any further and it
        is refused. Of a data frame the columns are names.
    label_names : array-like of str, default=None
        None takes those of the columns of a data frame.
    """
    names = names_of(matrix) if label_names is None else label_names
    try:
        R = np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"A label prior must be a matrix of numbers, got {matrix!r}.") from error
    if R.ndim != 2 or R.shape[0] != R.shape[1] or R.size == 0:
        raise ValueError(
            "A label prior must be a square matrix, with a row and a column for each label; got "
            f"shape {R.shape}."
        )
    if not np.isfinite(R).all():
        raise ValueError("A label prior must be of finite numbers; this one has NaN or infinity.")
    asymmetry = float(np.abs(R - R.T).max())
    if asymmetry > _ASYMMETRY * max(float(np.abs(R).max()), np.finfo(float).tiny):
        raise ValueError(
            f"A label prior must be symmetric; entries (i, j) and (j, i) differ by up to "
            f"{asymmetry:.3g}. Take (R + R.T) / 2 if that is meant."
        )
    R = (R + R.T) / 2
    values, vectors = np.linalg.eigh(R)
    lowest, largest = float(values[0]), float(values[-1])
    if largest <= 0.0:
        raise ValueError(
            f"A label prior must be positive semi-definite, and not zero; its largest eigenvalue "
            f"is {largest:.3g}."
        )
    if lowest < -_REPAIRED * largest:
        raise ValueError(
            f"A label prior must be positive semi-definite; the lowest eigenvalue of this one is "
            f"{lowest:.3g}, the largest {largest:.3g}. Add a ridge of {-lowest:.3g} to its "
            "diagonal if that is meant."
        )
    if lowest < -_ROUNDING * largest:
        warn_user(
            f"The label prior is not positive semi-definite: its lowest eigenvalue is "
            f"{lowest:.3g}, the largest {largest:.3g}. A ridge of {-lowest:.3g} was added to its "
            "diagonal.",
            UserWarning,
        )
        values = values - lowest
    # The symmetric root is the identity of the identity, and no label comes before another in it.
    kept = np.sqrt(np.maximum(values, 0.0))
    diagonal = np.diag(R)
    if lowest >= 0.0 and not np.any(R - np.diag(diagonal)):
        return LabelPrior(np.diag(np.sqrt(diagonal)), names)
    return LabelPrior((vectors * kept) @ vectors.T, names)


def as_prior(prior: Any, classes: Array) -> LabelPrior | None:
    """Return the prior that an estimator was given, checked against the labels of Y.

    Parameters
    ----------
    prior : None, LabelPrior or array-like of shape (n_labels, n_labels)
    classes : ndarray of shape (n_labels,)
        Numbers of the labels, or their names, which must then be those of the prior.
    """
    if prior is None:
        return None
    if not isinstance(prior, LabelPrior):
        if isinstance(prior, str) or np.ndim(prior) == 0:
            raise TypeError(
                "prior must be None, a LabelPrior of widemargin.priors or a matrix R with a row "
                f"and a column for each label; got {prior!r}."
            )
        prior = from_correlation(prior)
    assert isinstance(prior, LabelPrior)
    if prior.n_outputs != len(classes):
        raise ValueError(
            f"prior is one of {prior.n_outputs} labels, and Y has {len(classes)} columns."
        )
    has_names = classes.dtype.kind not in "iu"
    if prior.label_names is not None and has_names:
        _require_same_names(prior.label_names.tolist(), [str(name) for name in classes])
    return prior


def names_of(table: Any) -> Array | None:
    """Return the names of the columns of a data frame, where all of them are texts; else None."""
    columns = getattr(table, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def _checked_names(names: Any, n_labels: int) -> Array | None:
    if names is None:
        return None
    listed = [str(name) for name in np.asarray(names, dtype=object).ravel()]
    if len(listed) != n_labels or np.ndim(names) != 1:
        raise ValueError(
            f"label_names must be {n_labels} names, one for each label; got {len(listed)}."
        )
    twice = sorted({name for name in listed if listed.count(name) > 1})
    if twice:
        raise ValueError(f"label_names has {twice[0]!r} more than once.")
    return np.array(listed, dtype=object)


def _require_same_names(own: list[str], wanted: list[str]) -> None:
    if own == wanted:
        return
    if sorted(own) == sorted(wanted):
        place = next(number for number, name in enumerate(own) if name != wanted[number])
        raise ValueError(
            "The labels of prior are those of Y in another order: label "
            f"{place} is {own[place]!r} there and {wanted[place]!r} in Y. Reorder one of them, for "
            "example by Y = Y[list(prior.label_names)]."
        )
    missing = [name for name in wanted if name not in set(own)]
    raise ValueError(
        f"The labels of prior are not those of Y: it has none of the name {missing[0]!r}, and "
        f"{len(missing)} of {len(wanted)} labels of Y are missing there."
    )

"""Unseen classes by a bilinear form of rows and signatures, solved in closed form."""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from widemargin._system.parameters import check_real
from widemargin.estimation.fitting import restored_on_error
from widemargin.estimation.named_kernels import (
    as_kernel,
    check_gamma,
    check_kernel,
    is_precomputed,
)
from widemargin.kernels import Rows
from widemargin.rows import canonical_rows, check_kernel_matrix, validated_data
from widemargin.zero_shot.candidates import ClassFold, KnowsSignatures, Places
from widemargin.zero_shot.signatures import Signatures, unit_rows

Array: TypeAlias = npt.NDArray[Any]


class BilinearZeroShotClassifier(KnowsSignatures):
    """Classes without training rows, by a bilinear form ``k(x)' V s`` of rows and signatures.

    V is the ridge regression of the classes of rows, 1 and -1, on both (ESZSL). It is solved at
    once, and a good machine to compare others with.

    Parameters
    ----------
    signatures : array-like of shape (n_classes, n_attributes)
        A row for each class, seen or not. They are given length 1. The index of a DataFrame names
        the classes.
    class_names : array-like of shape (n_classes,), default=None
        Names of the classes, as ``y`` has them. By default the index of ``signatures``, or numbers.
    kernel : str, Kernel or callable, default="linear"
        As in :class:`~widemargin.KernelMultiLabelClassifier`.
    gamma : "scale", "auto" or float, default="scale"
    degree : int, default=3
    coef0 : float, default=0.0
        Parameters of a kernel that is given by its name.
    row_ridge : float, default=0.3
        Weight of the regulariser of rows; a larger one makes a simpler machine.
    signature_ridge : float, default=0.1
        That of signatures.
    candidates : {"unseen", "all"}, default="unseen"
    seen_margin : "tuned" or float, default="tuned"
    random_state : int, RandomState instance or None, default=0
        As in :class:`AttributeZeroShotClassifier`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_candidates,)
        The candidates, in the order of ``signatures``.
    seen_classes_, unseen_classes_ : ndarray
        Classes with training rows, and those without.
    seen_margin_ : float
        By how much scores of seen classes are lowered.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X had names.

    References
    ----------
    Romera-Paredes and Torr, "An embarrassingly simple approach to zero-shot learning", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.zero_shot import BilinearZeroShotClassifier
    >>> signatures = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]]
    >>> rng = np.random.RandomState(0)
    >>> y = rng.randint(5, size=200)
    >>> X = np.array(signatures)[y] + 0.1 * rng.randn(200, 3)
    >>> machine = BilinearZeroShotClassifier(signatures).fit(X, y)
    >>> machine.predict([[0.1, 0.9, 1.1]]).tolist()
    [5]
    """

    def __init__(
        self,
        signatures: Any,
        class_names: Any = None,
        *,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        row_ridge: float = 0.3,
        signature_ridge: float = 0.1,
        candidates: str = "unseen",
        seen_margin: Any = "tuned",
        random_state: Any = 0,
    ) -> None:
        self.signatures = signatures
        self.class_names = class_names
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.row_ridge = row_ridge
        self.signature_ridge = signature_ridge
        self.candidates = candidates
        self.seen_margin = seen_margin
        self.random_state = random_state

    @restored_on_error
    def fit(self, X: Any, y: Any) -> Self:
        """Solve for V.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            The class of each row.

        Returns
        -------
        self : object
        """
        check_kernel(self.kernel)
        check_gamma(self.gamma)
        check_real("row_ridge", self.row_ridge, positive=True)
        check_real("signature_ridge", self.signature_ridge, positive=True)
        self._check_candidates()
        known = Signatures.of(self.signatures, self.class_names)
        X, y = validated_data(self, X, y, reset=True)
        rows = canonical_rows(X)
        if self._is_pairwise():
            check_kernel_matrix(rows)
        places = known.places_of(y)
        self._set_candidates(known, np.unique(places))
        self._unit_signatures = unit_rows(known.values)
        self._kernel = as_kernel(
            self.kernel, rows, gamma=self.gamma, degree=self.degree, coef0=self.coef0
        )
        machine = self._fit_to(rows, places, None)
        folds: list[ClassFold] = []
        if self._tunes_margin():
            folds = list(self._folds(rows, places, None, "seen_margin='tuned'"))
        return self._finish(machine, known, places, folds)

    def _fit_to(self, rows: Rows, places: Places, weights: Array | None) -> tuple[Rows, Array]:
        """Return the vectors, and ``(K + row_ridge I)^-1 Y S (S'S + signature_ridge I)^-1``."""
        seen, numbers = np.unique(places, return_inverse=True)
        signs = np.full((len(places), len(seen)), -1.0)
        signs[np.arange(len(places)), numbers] = 1.0
        own = self._unit_signatures[seen]
        vectors = self._kernel.select(rows, np.arange(rows.shape[0]))
        values = self._kernel.double_block(rows, vectors)
        values[np.diag_indices_from(values)] += self.row_ridge
        by_rows = cho_solve(cho_factor(values, lower=True, overwrite_a=True), signs @ own)
        moments = own.T @ own + self.signature_ridge * np.eye(own.shape[1])
        return vectors, np.linalg.solve(moments, by_rows.T).T

    def _scores_by(self, machine: tuple[Rows, Array], rows: Rows) -> Array:
        vectors, form = machine
        return np.asarray(self._kernel.double_block(rows, vectors) @ form @ self._unit_signatures.T)

    def _is_pairwise(self) -> bool:
        return is_precomputed(self.kernel)

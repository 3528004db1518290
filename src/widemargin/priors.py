"""Priors over labels: which outputs go together.

A prior is a matrix R of shape (n_outputs, n_outputs), positive semi-definite: labels that occur
together have a positive entry. It makes the regulariser ``1/2 tr(R^-1 B'B)`` of ``1/2 |B|^2``, for
coefficients B of shape (n_columns, n_outputs). With a root L of R, ``R = L L'``, and ``B = W L'``
that is ``1/2 |W|^2``: whoever works with W has the plain regulariser, need not invert R, and R may
be singular. Then B stays where R lets it: each of its rows is in the range of R.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_NO_LENGTH = 1e-10  # share of the largest singular value: smaller ones are rounding error


class LabelPrior:
    """A prior R over labels, known by a root: ``R = L L'``.

    Parameters
    ----------
    root : array-like of shape (n_outputs, n_latent)
        L. Any will do: a Cholesky factor, a symmetric root, or one with fewer columns than rows
        where R has no full rank.

    Attributes
    ----------
    root : ndarray of shape (n_outputs, n_latent)
    n_outputs, n_latent : int
    """

    def __init__(self, root: npt.ArrayLike) -> None:
        self.root = np.array(root, dtype=np.float64, order="C", ndmin=2)
        if self.root.ndim != 2 or 0 in self.root.shape or not np.isfinite(self.root).all():
            raise ValueError(
                "The root of a label prior must be a matrix of finite numbers, with a row for each "
                f"output; got an array of shape {np.shape(root)}."
            )
        self.n_outputs, self.n_latent = self.root.shape

    def to_outputs(self, latent: Array) -> Array:
        """Return ``W L'``: coefficients or directions as the outputs see them."""
        return np.asarray(latent @ self.root.T)

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

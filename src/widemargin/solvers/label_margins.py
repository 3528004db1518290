"""What the score of a label should reach: the losses of machines of label sets that have a dual.

The paper asks that a row's own labels y beat any others y' by a loss, ``Delta(y, y')``. The Hamming
loss, ``y' (y - y')`` with y of -1 and 1, is twice the number of wrong labels: every ``y_l f_l``
should reach 1. The correlated Hamming loss of its section 3.2 is ``y' R (y - y')`` with the prior
R. It is a sum over labels, too: a label that is wrong costs ``2 m_l``, with ::

    m_l = y_l (R y)_l = R_ll + sum of R_kl over labels k that agree with l, less that of the others

so that ``y_l f_l`` should reach m_l instead of 1, and nothing else of the problem changes. A label
that goes against the labels which R relates it to costs less. For none to cost less than nothing,
whatever the labels of a row are, R must be diagonally dominant.

Source: Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label classification with
applications to zero-shot learning" (2012), section 3.2 and (25), where Delta^- - Delta^+ is 2 m.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

#: Losses by name.
MARGIN_LOSSES = ("hinge", "correlated_hamming")

_ROUNDING = 1e-9  # of a diagonal entry, by which a sum of others may be larger


def correlated_margins(relation: Array, signs: Array) -> Array:
    """Return what y f should reach by the correlated Hamming loss.

    Parameters
    ----------
    relation : ndarray of shape (n_labels, n_labels)
        R, symmetric and diagonally dominant.
    signs : ndarray of shape (n_rows, n_labels)
        1 where a row has a label, else -1.

    Returns
    -------
    margins : ndarray of shape (n_rows, n_labels)
    """
    margins = signs * (signs.astype(np.float64) @ relation)
    return np.maximum(margins, 0.0)  # rounding alone brings one below


def check_dominant(relation: Array, names: Array) -> None:
    """Require a diagonally dominant R, whose labels have these names."""
    diagonal = np.diag(relation)
    others = np.abs(relation).sum(axis=1) - np.abs(diagonal)
    excess = others - (1.0 + _ROUNDING) * diagonal
    worst = int(np.argmax(excess))
    if excess[worst] > 0:
        fits = float(np.min(diagonal[others > 0] / others[others > 0]))
        raise ValueError(
            "loss='correlated_hamming' needs a prior that is diagonally dominant, or a wrong label "
            f"could cost less than nothing: for label {names[worst].item()!r} the entries beside "
            f"the diagonal have the sum {others[worst]:.4g}, and the diagonal is "
            f"{diagonal[worst]:.4g}. Multiply what is beside the diagonal by {fits:.4g} or less, "
            "as a larger shrinkage of priors.from_labels does, or use loss='hinge', which takes "
            "any prior."
        )

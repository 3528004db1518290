"""Grown machines: what a fit leaves once the columns of its basis are let go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.basis import BasisColumns
from widemargin.kernels import Rows
from widemargin.losses import Loss
from widemargin.solvers.greedy import GreedyState

Array: TypeAlias = npt.NDArray[Any]

_UNSEEN = -1.0  # score of a class whose own machine has not begun to grow


@dataclass(frozen=True)
class Problem:
    """What one basis is grown for: all classes together, or one against the rest."""

    loss: Loss
    targets: Array
    n_outputs: int


@dataclass(frozen=True)
class Grown:
    """What remains of a grown basis once its columns are let go."""

    indices: npt.NDArray[np.intp]
    vectors: Rows
    expansions: list[tuple[Array, Array]]  # (coef, intercept) at each stage
    history: dict[str, Array]
    n_iter: int
    stop_reason: str

    @classmethod
    def of(cls, basis: BasisColumns, state: GreedyState) -> Grown:
        """Keep what predicts, and the record of the way."""
        # A start without vectors is no stage of its own, unless none were to be had.
        stages = [stage for stage in state.stages if stage.n_basis] or state.stages
        return cls(
            indices=basis.indices,
            vectors=basis.vectors,
            expansions=[basis.expansion(stage.coefficients) for stage in stages],
            history={
                "n_basis": np.array([stage.n_basis for stage in stages]),
                "objective": np.array([stage.objective for stage in stages]),
                "seconds": np.array([stage.seconds for stage in stages]),
                "gradient": np.array([stage.gradient for stage in stages]),
            },
            n_iter=state.n_iter,
            stop_reason=state.stopped_because,
        )


def two_as_one(coef: Array, intercept: Array) -> tuple[Array, Array]:
    """Return the difference of two columns, which is all that two classes need; else both as is."""
    if coef.shape[1] != 2:
        return coef, intercept
    return coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]


def merge(
    grown: list[Grown], n_classes: int
) -> tuple[npt.NDArray[np.intp], Rows, list[tuple[Array, Array]]]:
    """Join machines of single classes into one expansion, each vector once."""
    stacked = (
        sp.vstack([machine.vectors for machine in grown], format="csr")
        if sp.issparse(grown[0].vectors)
        else np.concatenate([machine.vectors for machine in grown])
    )
    indices = np.concatenate([machine.indices for machine in grown])
    _, first, place = np.unique(indices, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    ends = np.cumsum([len(machine.indices) for machine in grown])
    places = np.split(rank[place], ends[:-1])

    n_columns = n_classes if n_classes > 2 else 1
    stages = []
    for stage in range(max(len(machine.expansions) for machine in grown)):
        coef = np.zeros((len(order), n_columns))
        intercept = np.full(n_columns, _UNSEEN)
        for number, machine in enumerate(grown):
            own, own_intercept = machine.expansions[min(stage, len(machine.expansions) - 1)]
            coef[places[number][: len(own)], number] = own[:, 0]
            intercept[number] = own_intercept[0]
        stages.append((coef, intercept))
    return indices[first[order]], stacked[first[order]], stages


def order_of_choice(
    stages: list[tuple[Array, Array]], coef: Array, machine: int
) -> npt.NDArray[np.intp]:
    """Return the places of one machine's vectors in the merged ones, in the order it chose them.

    In another order, some of them may look like duplicates of those before.

    Parameters
    ----------
    stages : list of (coef, intercept)
        As ``merge`` returns them.
    coef : ndarray of shape (n_basis,)
        The coefficients of the machine; those of the other machines' vectors are zero.
    machine : int
    """
    n_without = np.zeros(len(coef), dtype=np.intp)  # stages
    for stage, _ in stages:
        n_without += 1
        n_without[: len(stage)] -= stage[:, machine] != 0
    places = np.flatnonzero(coef)
    return places[np.argsort(n_without[places], kind="stable")]

"""Grown machines: how one is put together and grown, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.basis import BasisColumns
from widemargin.kernels import Kernel, Rows
from widemargin.losses import Loss
from widemargin.objectives import BasisObjective
from widemargin.solvers.greedy import GreedyNewton, GreedyState
from widemargin.solvers.progress import Progress

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
    def of(cls, objective: BasisObjective, state: GreedyState) -> Grown:
        """Keep what predicts, and the record of the way."""
        sizes = state.history["n_basis"]
        # A start without vectors is no stage of its own, unless none were to be had.
        kept = np.flatnonzero(sizes) if any(sizes) else np.arange(len(sizes))
        names = ("n_basis", "objective", "seconds", "gradient")
        return cls(
            indices=objective.basis.indices,
            vectors=objective.basis.vectors,
            expansions=[objective.expansion(state.stages[stage]) for stage in kept],
            history={name: np.array(state.history[name])[kept] for name in names},
            n_iter=state.n_iter,
            stop_reason=state.stopped_because,
        )

    def pack(self) -> dict[str, Any]:
        """Return it as what model files hold."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def unpack(cls, packed: dict[str, Any]) -> Grown:
        """Return what was packed."""
        return cls(**packed)


@dataclass(frozen=True)
class Growth:
    """A greedy fit of one problem: solver, objective and state, put together.

    Attributes
    ----------
    solver : GreedyNewton
    objective : BasisObjective
    state : GreedyState
    """

    solver: GreedyNewton
    objective: BasisObjective
    state: GreedyState

    @classmethod
    def begin(
        cls,
        solver: GreedyNewton,
        objective: BasisObjective,
        rng: np.random.RandomState,
        warm: Callable[[BasisColumns], Array | None] = lambda basis: None,
    ) -> Self:
        """Begin to grow; ``warm`` may put vectors into the basis and return their coefficients."""
        start = warm(objective.basis)
        return cls(solver, objective, solver.init(objective, rng, start))

    @classmethod
    def resume(
        cls, solver: GreedyNewton, objective: BasisObjective, packed: dict[str, Any]
    ) -> Self:
        """Go on from a state that was packed."""
        return cls(solver, objective, GreedyState.unpack(packed, objective))

    def run(self, progress: Progress) -> None:
        """Grow until there is a reason to stop."""
        self.solver.solve(self.objective, self.state, progress)

    def so_far(self) -> Grown:
        """Return the machine as it is after the last round."""
        return Grown.of(self.objective, self.state)

    def finish(self) -> tuple[Grown, GreedyState]:
        """Return the machine with coefficients solved for exactly, and the state at that end."""
        ended = self.solver.finish(self.objective, self.state)
        return Grown.of(self.objective, ended), ended


def objective_of(
    problem: Problem,
    kernel: Kernel,
    rows: Rows,
    weights: Array,
    *,
    fit_intercept: bool,
    max_basis: int,
    n_threads: int,
) -> BasisObjective:
    """Return the objective of a basis that is to be grown, which has no vectors yet.

    Parameters
    ----------
    problem : Problem
    kernel : Kernel
    rows : array or CSR matrix of shape (n_rows, n_features)
    weights : ndarray of shape (n_rows,)
        C times the weight of each row.
    fit_intercept : bool
    max_basis : int
    n_threads : int
    """
    basis = BasisColumns(
        kernel,
        rows,
        fit_intercept=fit_intercept,
        max_basis=max_basis,
        n_threads=n_threads,
        counted=weights > 0,
    )
    return BasisObjective(problem.loss, problem.targets, weights, problem.n_outputs, basis)


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

"""Grown machines: how one is put together and grown, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.basis import BasisColumns
from widemargin.kernels import Kernel, Rows
from widemargin.losses import Loss
from widemargin.objectives import BasisObjective
from widemargin.priors import LabelPrior
from widemargin.solvers.greedy import GreedyNewton, GreedyState
from widemargin.solvers.progress import Progress, pack_random, unpack_random

Array: TypeAlias = npt.NDArray[Any]

_UNSEEN = -1.0  # score of a class whose own machine has not begun to grow


@dataclass(frozen=True)
class Problem:
    """What one basis is grown for: all classes or labels together, or one against the rest."""

    loss: Loss
    targets: Array
    n_outputs: int
    prior: LabelPrior | None = None


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


class GreedyFit:
    """Machines that are grown one after the other, with one stream of random numbers.

    Where one is stopped before its end, those after it are grown as far as the reason to stop lets
    them, so that every class has its machine. A fit that goes on does so from the one that was
    stopped, and grows those after it anew: as if nothing had stopped it.

    Parameters
    ----------
    solver : GreedyNewton
    objectives : list of callable
        Each makes the objective of a machine, with no vectors in its basis.
    rng : RandomState
    warm : callable
        Gets a basis and the number of its machine; may put vectors in, and return coefficients.
    resumed : dict, default=None
        What ``pack`` returned when the fit was stopped.
    keep : bool, default=False
        Whether the fit can be packed after it was stopped.

    Attributes
    ----------
    finished : list of Grown
        The machines that have ended.
    current : Growth or None
        The one that grows.
    stopped : dict or None
        What ``pack`` gave where the first machine was stopped before its end.
    """

    def __init__(
        self,
        solver: GreedyNewton,
        objectives: list[Callable[[], BasisObjective]],
        rng: np.random.RandomState,
        warm: Callable[[BasisColumns, int], Array | None],
        *,
        resumed: dict[str, Any] | None = None,
        keep: bool = False,
    ) -> None:
        self._solver, self._objectives, self._warm = solver, objectives, warm
        self._rng, self._keep, self._resumed = rng, keep, resumed
        self.finished = [Grown.unpack(packed) for packed in resumed["finished"]] if resumed else []
        self.current: Growth | None = None
        self.stopped: dict[str, Any] | None = None

    def run(
        self,
        progress: Callable[[Growth], Progress],
        check: Callable[[Growth, GreedyState], None],
    ) -> list[Grown]:
        """Grow all machines.

        Parameters
        ----------
        progress : callable
            Makes what watches over the growth of a machine.
        check : callable
            Gets each machine at its end, to warn of what is not as it should be.
        """
        while len(self.finished) < len(self._objectives):
            self.current = growth = self._next()
            growth.run(progress(growth))
            if self._keep and self.stopped is None and growth.state.stopped_early:
                self.stopped = self.pack()
            grown, ended = growth.finish()
            check(growth, ended)
            self.current = None
            self.finished.append(grown)
        return self.finished

    def _next(self) -> Growth:
        number = len(self.finished)
        objective = self._objectives[number]()
        if self._resumed is not None:
            packed, self._resumed = self._resumed, None
            self._rng = unpack_random(packed["random"])
            if packed["state"] is not None:
                return Growth(
                    self._solver,
                    objective,
                    GreedyState.unpack(packed["state"], objective, self._rng),
                )
        start = self._warm(objective.basis, number)
        if start is not None:
            start = objective.latent_coefficients(start)
        return Growth(self._solver, objective, self._solver.init(objective, self._rng, start))

    def pack(self) -> dict[str, Any]:
        """Return where the fit is, as what model files hold: after the last finished round."""
        if self._resumed is not None:
            return self._resumed  # it has not gone on yet
        return {
            "finished": [machine.pack() for machine in self.finished],
            "state": None if self.current is None else self.current.state.pack(),
            "random": pack_random(self._rng),
        }

    @property
    def has_begun(self) -> bool:
        """Whether a round was finished, and written down."""
        if self.current is None:
            return bool(self.finished)
        state = self.current.state
        written = len(state.stages) == len(state.history["n_basis"])
        return written and (bool(self.finished) or state.history["n_basis"][-1] > 0)


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
    return BasisObjective(
        problem.loss, problem.targets, weights, problem.n_outputs, basis, problem.prior
    )


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

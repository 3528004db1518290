"""Online learners that change by each row once: the kernel perceptron and MIRA.

State        the machine, which holds support patterns alone, with what averages are made of; the
             mistakes so far, and the pass that is under way
Step         a pass over the rows, in random order or in their own
Stops        after ``epochs`` passes

The rules, and their sources, are in ``online.hpp``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin import _native
from widemargin.solvers.duals.expansion import DualExpansion
from widemargin.solvers.duals.state import RowProblem, RowState
from widemargin.solvers.progress import Progress, Solver


@dataclass(kw_only=True)
class OnlineState(RowState):
    """What moves: the machine, and the native learner.

    Attributes
    ----------
    settings : OnlineRows
        Whose native learner it is.
    native : the native learner
    """

    settings: OnlineRows
    native: Any

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        settings, native = asdict(self.settings), self.native.snapshot()
        return super().pack() | {"settings": settings, "native": native}

    @classmethod
    def _unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        parts = cls.common_parts(packed, problem)
        settings = OnlineRows(**packed["settings"])
        native = settings.native(parts["machine"])
        native.take_on(packed["native"])
        return cls(**parts, settings=settings, native=native)

    def entries(self) -> dict[str, float]:
        """Return where the machine is, to be written down."""
        return {"epoch": int(self.epoch), **learner_entries(self.machine, self.native)}


@dataclass(frozen=True)
class OnlineRows(Solver[OnlineState]):
    """Passes of a learner that changes by each row once.

    Parameters
    ----------
    mira : bool
        Whether it goes by the rule of MIRA, and not by that of the perceptron.
    averages : bool
        Whether coefficients keep what their mean over all rows is made of.
    shuffle : bool
        Whether rows are taken in random order.
    budget : int or None
        Support patterns that are kept at the most.
    policy : {"redundant", "drop", "merge"}
        Which of more is given up: the one that the others make up for best, or the oldest, which is
        dropped or merged into the nearest of its class.
    """

    mira: bool
    averages: bool
    shuffle: bool = True
    budget: int | None = None
    policy: str = "drop"
    name: ClassVar[str] = "online"
    requires: ClassVar[tuple[str, ...]] = ("begin", "epochs", "caps")

    def native(self, machine: DualExpansion, rows_seen: int = 0) -> Any:
        """Return the native learner of a machine that has seen so many rows."""
        learner = _native.OnlineLearner(
            machine.set,
            mira=bool(self.mira),
            averages=bool(self.averages),
            budget=-1 if self.budget is None else int(self.budget),
            policy=self.policy,
        )
        learner.rows_seen = rows_seen
        return learner

    def init(self, problem: RowProblem, rng: np.random.RandomState) -> OnlineState:
        """Begin without coefficients."""
        self.check(problem)
        machine = problem.begin()
        return OnlineState(machine=machine, rng=rng, settings=self, native=self.native(machine))

    def step(self, problem: RowProblem, state: OnlineState, progress: Progress) -> dict[str, float]:
        """Do a pass over the rows; those without weight might as well not be there."""
        if state.is_between_passes():
            n_rows = problem.n_rows
            order = state.rng.permutation(n_rows) if self.shuffle else np.arange(n_rows)
            state.begin_pass(order[problem.caps[order] > 0])
            state.begin_part(1)
            state.epoch += 1
        for block in state.blocks(progress):
            state.native.take(state.machine.set, *state.machine.arguments(block))
        if state.is_between_passes() and problem.is_over(state.epoch):
            state.stopped_because = "epochs"
        return state.entries()

    def finish(self, problem: RowProblem, state: OnlineState) -> DualExpansion:
        """Return the machine; there is nothing left to do."""
        return state.machine


def learner_entries(machine: DualExpansion, learner: Any) -> dict[str, float]:
    """Return what the record of a fit has of a machine and its learner."""
    return {
        "rows_seen": int(learner.rows_seen),
        "mistakes": int(learner.mistakes),
        "kernel_evaluations": int(machine.set.kernel_evaluations),
        "support_vectors": int(machine.set.n_vectors),
        "support_patterns": int(machine.set.n_supports),
    }

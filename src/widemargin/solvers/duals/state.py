"""What solvers of duals move, and the problem that it belongs to.

State        a :class:`DualExpansion` with counts, random numbers and the record of the way. It is a
             valid machine at any time, so that a solver can stop anywhere, also in the middle of a
             round: how far the round has come is in the state too. Packed and unpacked, it goes on
             to the bit, but for two things: kernel values are computed anew, so that their number
             is larger; and a kernel that is the caller's own function may round otherwise.
Problem      rows, labels and caps, which stay as they are
Stops        by the duality gap, by passes over the rows, by the clock
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from widemargin.kernels import Rows
from widemargin.solvers.duals.expansion import BLOCK, DualExpansion
from widemargin.solvers.progress import (
    Progress,
    Solver,
    SolverState,
    pack_random,
    unpack_random,
)

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class RowProblem:
    """Rows to learn from.

    Attributes
    ----------
    new_machine : callable
        Makes a machine without rows.
    rows : array or CSR matrix
    labels : array of shape (n_rows,)
        Numbers of classes.
    caps : array of shape (n_rows,)
        What each row counts against the regulariser.
    epochs : int or None
        Passes over the rows; None is as many as it takes.
    """

    new_machine: Callable[[], DualExpansion]
    rows: Rows
    labels: npt.NDArray[Any]
    caps: Array
    epochs: int | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)

    def begin(self) -> DualExpansion:
        """Return a machine that holds no row yet, and learns from these."""
        machine = self.new_machine()
        machine.use_batch(self.rows, self.labels, self.caps)
        return machine

    def is_over(self, epoch: float) -> bool:
        """Whether these are all passes that are asked for."""
        return self.epochs is not None and epoch >= self.epochs


@dataclass(frozen=True)
class DualProblem(RowProblem):
    """Rows to learn from, and the duality gap that is small enough.

    Attributes
    ----------
    gap_limit : callable
        The gap at which a fit ends, of the primal objective.
    """

    gap_limit: Callable[[float], float]

    def is_small(self, machine: DualExpansion, gap: float) -> bool:
        """Whether the gap is small enough."""
        return gap < np.inf and gap <= self.gap_limit(machine.set.gap()[1] + gap)


@dataclass
class Inspection:
    """A look at all rows of the batch with the machine as it is, as far as it has come.

    Attributes
    ----------
    keep_above : float
        Rows whose violation is above stay held.
    size : int
        Rows that are looked at together.
    next : int
        The row that comes next.
    loss : float
        Of rows that are not held.
    violation : float
        The largest of rows without coefficients.
    """

    keep_above: float
    size: int
    next: int = 0
    loss: float = 0.0
    violation: float = 0.0


@dataclass(kw_only=True)
class RowState(SolverState):
    """What learners from rows move: a machine, and the pass that is under way.

    Attributes
    ----------
    order : array of int64
        Rows of the pass that is under way, in their order; empty between two.
    next : int
        Of the order.
    end : int
        Of the order: where the part ends that is under way. A round goes as far.
    epoch : float
        Passes over the rows.
    rows_seen : int
    """

    machine: DualExpansion
    rng: np.random.RandomState
    order: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    next: int = 0
    end: int = 0
    epoch: float = 0.0
    rows_seen: int = 0

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "machine": self.machine.pack(),
            "random": pack_random(self.rng),
            "history": {name: np.asarray(values) for name, values in self.history.items()},
            "order": self.order,
            "next": self.next,
            "end": self.end,
            "epoch": float(self.epoch),
            "rows_seen": self.rows_seen,
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        """Return the state that was packed, bound to the same problem; ValueError if it is none."""
        try:
            return cls._unpack(packed, problem)
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError(f"The state of a solver is damaged: {error}") from error

    @classmethod
    @abstractmethod
    def _unpack(cls, packed: dict[str, Any], problem: Any) -> Self:
        """Return the state that was packed."""

    @staticmethod
    def common_parts(packed: dict[str, Any], problem: RowProblem) -> dict[str, Any]:
        """Return the parts that all these states have."""
        machine = problem.begin()
        machine.take_on(packed["machine"])
        order = np.ascontiguousarray(packed["order"], dtype=np.int64)
        whole = order.ndim == 1 and (len(order) == 0 or 0 <= order.min() <= order.max())
        if not whole or (len(order) and order.max() >= problem.n_rows):
            raise ValueError("The state of a solver is damaged: a row is not there.")
        return {
            "machine": machine,
            "rng": unpack_random(packed["random"]),
            "history": {str(name): list(v.tolist()) for name, v in packed["history"].items()},
            "order": order,
            "next": count(packed, "next", most=len(order)),
            "end": count(packed, "end", least=packed["next"], most=len(order)),
            "epoch": float(packed["epoch"]),
            "rows_seen": count(packed, "rows_seen"),
        }

    def passes_begun(self) -> int:
        """Return how many passes over the rows were begun."""
        return int(np.ceil(self.epoch))

    def is_between_passes(self) -> bool:
        """Whether no row of a pass is left."""
        return self.next == len(self.order)

    def is_between_parts(self) -> bool:
        """Whether no row of a part is left."""
        return self.next == self.end

    def begin_pass(self, order: npt.NDArray[Any]) -> None:
        """Go through the rows in this order from now on."""
        self.order, self.next, self.end = order.astype(np.int64), 0, 0

    def begin_part(self, n_parts: int) -> None:
        """Begin the next part of the pass, which has so many that are about equal."""
        parts = np.array_split(self.order, max(1, min(n_parts, len(self.order))))
        ends = np.cumsum([len(part) for part in parts])
        self.end = int(ends[ends > self.next].min(initial=len(self.order)))

    def blocks(self, progress: Progress) -> Iterator[npt.NDArray[np.int64]]:
        """Yield the rows that are left of the part, a block at a time, while there is time."""
        while self.next < self.end and not progress.is_late():
            block = self.order[self.next : min(self.next + BLOCK, self.end)]
            self.next += len(block)
            self.rows_seen += len(block)
            yield block


@dataclass(kw_only=True)
class DualState(RowState):
    """What solvers of duals move.

    Attributes
    ----------
    arg_max : int
        Searches for the worst class.
    gap : float
        As it was last put down.
    inspection : Inspection or None
        One that is under way.
    """

    arg_max: int = 0
    gap: float = np.inf
    inspection: Inspection | None = None

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        look = self.inspection
        return super().pack() | {
            "arg_max": self.arg_max,
            "gap": float(self.gap),
            "inspection": None if look is None else dict(vars(look)),
        }

    @staticmethod
    def common_parts(packed: dict[str, Any], problem: RowProblem) -> dict[str, Any]:
        """Return the parts that all these states have."""
        look = packed["inspection"]
        if look is not None:
            look = Inspection(
                float(look["keep_above"]),
                count(look, "size", least=1),
                count(look, "next", most=problem.n_rows),
                float(look["loss"]),
                float(look["violation"]),
            )
        return RowState.common_parts(packed, problem) | {
            "arg_max": count(packed, "arg_max"),
            "gap": float(packed["gap"]),
            "inspection": look,
        }

    def entries(self, gap: float = np.inf) -> dict[str, float]:
        """Return where the machine is, to be written down."""
        self.gap = max(gap, 0.0)  # a sum of terms >= 0, but for rounding
        return machine_entries(self.machine, self.epoch, self.rows_seen, self.arg_max, self.gap)

    def inspect(
        self, progress: Progress, keep_above: Callable[[], float]
    ) -> tuple[float, Inspection] | None:
        """Look at all rows of the batch with the machine as it is; go on if that was begun.

        Returns
        -------
        found : tuple of gap and Inspection, or None
            The duality gap, and what it was made of; None where time was over before the end.
        """
        machine, n_rows = self.machine, self.machine.batch.n_rows
        look = self.inspection
        if look is None:
            look = self.inspection = Inspection(keep_above(), machine.block_size())
        machine.set.begin_inspection()
        try:
            while look.next < n_rows:
                if progress.is_late():
                    return None
                block = np.arange(look.next, min(look.next + look.size, n_rows))
                found, violation, _ = machine.set.inspect(
                    *machine.arguments(block), look.keep_above
                )
                look.loss, look.violation = look.loss + found, max(look.violation, violation)
                look.next += len(block)
                self.arg_max += len(block)
                self.rows_seen += len(block)
        finally:
            machine.set.end_inspection()
        self.inspection = None
        return float(machine.set.gap()[0] + look.loss), look


def machine_entries(
    machine: DualExpansion, epoch: float, rows_seen: int, arg_max: int, gap: float
) -> dict[str, float]:
    """Return what the record of a fit has of a machine."""
    dual = machine.set.gap()[1]
    return {
        "epoch": epoch,
        "rows_seen": rows_seen,
        "dual": dual,
        "primal": dual + gap,
        "gap": gap,
        "kernel_evaluations": machine.set.kernel_evaluations,
        "arg_max": arg_max,
        "support_vectors": machine.set.n_vectors,
        "support_patterns": machine.set.n_supports,
    }


def standing(history: dict[str, list[float]]) -> str:
    """Say in a few words where the machine was when it was last put down."""
    last = {name: values[-1] for name, values in history.items()}
    gap = "" if last["gap"] == np.inf else f", gap {last['gap']:.3g}"
    return (
        f"epoch {last['epoch']:.3g}, {last['support_patterns']} support patterns, "
        f"dual {last['dual']:.6g}{gap}"
    )


def count(packed: dict[str, Any], name: str, least: int = 0, most: int | None = None) -> int:
    """Return a whole number of a packed state, or raise ValueError."""
    value = packed[name]
    if type(value) is not int or value < least or (most is not None and value > most):
        raise ValueError(f"The state of a solver is damaged: {name} is {value!r:.40}.")
    return value


Moved = TypeVar("Moved", bound=DualState)


class DualSolver(Solver[Moved]):
    """A solver of the duals of :class:`DualProblem`; it leaves a machine."""

    requires: ClassVar[tuple[str, ...]] = ("begin", "epochs", "gap_limit")
    state_type: ClassVar[type[Any]]

    def init(
        self,
        problem: DualProblem,
        rng: np.random.RandomState,
        start: tuple[npt.NDArray[np.int64], Array] | None = None,
    ) -> Moved:
        """Begin without coefficients, or with those of some rows."""
        self.check(problem)
        machine = problem.begin()
        if start is not None:
            machine.restore(*start)
        return self._begin(machine, rng)

    @abstractmethod
    def _begin(self, machine: DualExpansion, rng: np.random.RandomState) -> Moved:
        """Return the state before the first round."""

    def finish(self, problem: DualProblem, state: Moved) -> DualExpansion:
        """Return the machine; there is nothing left to do."""
        return state.machine

"""Kernelised M3L: coefficients of many labels, each in a box, over kernel rows that all share.

Problem      maximise  sum_il m_il y_il b_il - 1/2 sum_lm R_lm b_l' K b_m  with
             0 <= y_il b_il <= cap_il, signs y, margins m, a prior R over labels and the kernel
             matrix K; with intercepts, K is the kernel plus 1. With b = 2 alpha y and cap = 2 C it
             is the dual (25) of the paper, and its value is the same. The scores are f = K b R, the
             primal is 1/2 sum_lm R_lm b_l' K b_m + sum_il cap_il max(0, m_il - y_il f_il), so that
             R is never inverted, and may be singular. ``solvers.label_margins`` says what m is
State        coefficients and gradients of all rows and labels; the order of the pass that is under
             way; how far gradients are computed anew
Step         (a pass) rows that promise something, in random order, a block of 128 after the other:
             the coefficients of a block move, label by label, and the gradients of all rows follow
             at once. The native half, ``label_box.hpp``, says why
Stops        when the duality gap is small. Gradients that were changed step by step have collected
             rounding errors, so the gap that counts is one of gradients that were computed anew

Source: Hariharan, Vishwanathan and Varma, "Efficient max-margin multi-label classification with
applications to zero-shot learning" (2012), section 5.1 and algorithm 1, whose lines 28 to 32 belong
after the inner loop.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin import _native
from widemargin.kernels import Kernel, Rows, as_native_rows
from widemargin.solvers.duals.expansion import cache_bytes, make_slots
from widemargin.solvers.duals.state import count
from widemargin.solvers.progress import (
    Progress,
    Solver,
    SolverState,
    pack_random,
    unpack_random,
)

Array: TypeAlias = npt.NDArray[Any]

_PROMISING = 1e-3  # of the row that promises most: rows with less are left out of a pass
_CALL_PRODUCTS = 2_000_000_000  # multiply-adds of one native call: some tenths of a second
_LEAST_GAIN = 1e-13  # of the dual, in a pass
_FALLS = 0.9  # of the least gap so far: the dual can no longer show what this still brings
_IDLE_PASSES = 10  # without any of the two: nothing moves


@dataclass(frozen=True)
class LabelProblem:
    """Rows with labels to learn from.

    Attributes
    ----------
    kernel : Kernel
    rows : array or CSR matrix
    signs : array of int8 of shape (n_labels, n_rows)
        1 where a row has a label, else -1.
    caps : array of shape (n_rows,)
        The bound of each row's coefficients.
    label_caps : array of shape (n_labels, 2)
        What that is multiplied with, in rows without the label, and in rows with it.
    relation : array of shape (n_labels, n_labels)
        R.
    fit_intercept : bool
    gap_limit : callable
        The gap at which a fit ends, of the primal objective.
    cache_size : float
        Megabytes of kernel rows that are kept.
    n_threads : int
    margins : array of shape (n_labels, n_rows) or None
        What y f should reach; None is 1.
    """

    kernel: Kernel
    rows: Rows
    signs: npt.NDArray[np.int8]
    caps: Array
    label_caps: Array
    relation: Array
    fit_intercept: bool
    gap_limit: Callable[[float], float]
    cache_size: float = 200.0
    n_threads: int = 1
    margins: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.signs.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.signs.shape[0])

    def begin(self) -> LabelMachine:
        """Return a machine without coefficients."""
        return LabelMachine(self)

    def bounds(self) -> tuple[Array, Array]:
        """Return the lowest and the highest coefficients, each of shape (n_labels, n_rows)."""
        caps = np.where(self.signs > 0, self.label_caps[:, 1:], self.label_caps[:, :1]) * self.caps
        return np.where(self.signs > 0, 0.0, -caps), np.where(self.signs > 0, caps, 0.0)


class LabelMachine:
    """Coefficients and gradients of all labels, and the kernel values that they need."""

    def __init__(self, problem: LabelProblem) -> None:
        self.kernel, self.offset = problem.kernel, float(problem.fit_intercept)
        rows = problem.rows
        self._shape, self.n_rows = (problem.n_labels, problem.n_rows), problem.n_rows
        slots, called, _ = make_slots(problem.kernel, rows)
        if called is None:
            native = as_native_rows(rows)
            slots.use_batch(native, native)
        else:
            called.use_batch(rows, np.empty(0, dtype=np.int64))
        self.box = _native.LabelBox(
            slots,
            np.ascontiguousarray(problem.signs, dtype=np.int8),
            np.ascontiguousarray(problem.caps, dtype=np.float64),
            np.ascontiguousarray(problem.label_caps, dtype=np.float64),
            np.ascontiguousarray(problem.relation, dtype=np.float64),
            problem.margins,
            self.offset,
            cache_bytes(problem.cache_size),
            problem.n_threads,
        )
        # Whole blocks, so that it makes no difference where a pass was stopped.
        products = problem.n_rows * (problem.n_labels + rows.shape[1])
        blocks = _CALL_PRODUCTS // (products * self.box.block_rows)
        self.rows_at_once = self.box.block_rows * max(1, blocks)

    def coefficients(self) -> Array:
        """Return b, of shape (n_labels, n_rows)."""
        values = np.empty(self._shape)
        self.box.coefficients(values)
        return values

    def gradients(self) -> Array:
        """Return ``m y - f``, of shape (n_labels, n_rows)."""
        values = np.empty(self._shape)
        self.box.gradients(values)
        return values

    def promising(self) -> npt.NDArray[np.int64]:
        """Return the rows that promise something."""
        rows = np.empty(self._shape[1], dtype=np.int64)
        self.box.look()
        return rows[: self.box.promising(_PROMISING, rows)]

    def pack(self) -> dict[str, Any]:
        """Return all that moves."""
        return {"coefficients": self.coefficients(), "gradients": self.gradients()}

    def take_on(self, packed: dict[str, Any], bounds: tuple[Array, Array]) -> None:
        """Become the machine that was packed; ValueError if it cannot have been one."""
        coefficients, gradients = packed["coefficients"], packed["gradients"]
        for values in (coefficients, gradients):
            if values.shape != self._shape or values.dtype != np.float64:
                raise ValueError("The state of a solver is damaged: it has another shape.")
            if not np.isfinite(values).all():
                raise ValueError("The state of a solver is damaged: it has no finite numbers.")
        if (coefficients < bounds[0]).any() or (coefficients > bounds[1]).any():
            raise ValueError("The state of a solver is damaged: coefficients are out of bounds.")
        self.box.put_coefficients(np.ascontiguousarray(coefficients))
        self.box.put_gradients(np.ascontiguousarray(gradients))


@dataclass(kw_only=True)
class LabelState(SolverState):
    """What moves.

    Attributes
    ----------
    machine : LabelMachine
    rng : RandomState
    order : array of int64
        Rows of the pass that is under way, in their order; empty between two.
    next : int
        Of the order.
    refreshed : int or None
        The row up to which gradients are computed anew; None if nobody does so.
    rows_seen, passes, idle : int
        Rows that were moved; passes that were begun; passes in a row without effect.
    gain : float
        Of the pass that is under way.
    gap, dual, least : float
        As they were last looked at; the least gap there was.
    """

    machine: LabelMachine
    rng: np.random.RandomState
    order: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    next: int = 0
    refreshed: int | None = None
    rows_seen: int = 0
    passes: int = 0
    idle: int = 0
    gain: float = 0.0
    gap: float = np.inf
    dual: float = 0.0
    least: float = np.inf

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "machine": self.machine.pack(),
            "random": pack_random(self.rng),
            "history": {name: np.asarray(values) for name, values in self.history.items()},
            "order": self.order,
            "next": self.next,
            "refreshed": self.refreshed,
            "rows_seen": self.rows_seen,
            "passes": self.passes,
            "idle": self.idle,
            "gain": float(self.gain),
            "gap": float(self.gap),
            "dual": float(self.dual),
            "least": float(self.least),
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LabelProblem) -> Self:
        """Return the state that was packed, bound to the same problem; ValueError if it is none."""
        try:
            return cls._unpack(packed, problem)
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError(f"The state of a solver is damaged: {error}") from error

    @classmethod
    def _unpack(cls, packed: dict[str, Any], problem: LabelProblem) -> Self:
        machine = problem.begin()
        machine.take_on(packed["machine"], problem.bounds())
        order = np.ascontiguousarray(packed["order"], dtype=np.int64)
        is_order = order.ndim == 1 and len(np.unique(order)) == len(order)
        if not is_order or (len(order) and not 0 <= order.min() <= order.max() < problem.n_rows):
            raise ValueError("The state of a solver is damaged: a row is not there.")
        refreshed = packed["refreshed"]
        if refreshed is not None:
            refreshed = count(packed, "refreshed", most=problem.n_rows - 1)
        return cls(
            machine=machine,
            rng=unpack_random(packed["random"]),
            history={str(name): list(v.tolist()) for name, v in packed["history"].items()},
            order=order,
            next=count(packed, "next", most=len(order)),
            refreshed=refreshed,
            rows_seen=count(packed, "rows_seen"),
            passes=count(packed, "passes"),
            idle=count(packed, "idle"),
            gain=float(packed["gain"]),
            gap=float(packed["gap"]),
            dual=float(packed["dual"]),
            least=float(packed["least"]),
        )

    def look(self) -> None:
        """Find gap and dual, by the gradients as they are."""
        gap, self.dual = self.machine.box.look()
        self.gap = max(gap, 0.0)  # a sum of terms >= 0, but for rounding

    def refresh(self, progress: Progress) -> bool:
        """Compute gradients anew, then look; return whether that is done, or time is over."""
        machine, n_rows = self.machine, self.machine.n_rows
        first = 0 if self.refreshed is None else self.refreshed
        while first < n_rows:
            if progress.is_late() and self.refreshed is not None:
                return False
            first = machine.box.refresh(first)
            self.refreshed = first if first < n_rows else None
        self.look()
        return True

    def entries(self) -> dict[str, float]:
        """Return where the machine is, to be written down."""
        vectors, patterns = self.machine.box.supports()
        return {
            "epoch": self.rows_seen / self.machine.n_rows,
            "rows_seen": self.rows_seen,
            "dual": self.dual,
            "primal": self.dual + self.gap,
            "gap": self.gap,
            "kernel_evaluations": self.machine.box.kernel_evaluations,
            "support_vectors": vectors,
            "support_patterns": patterns,
        }


@dataclass(frozen=True)
class LabelSMO(Solver[LabelState]):
    """Exact steps on boxed coefficients, of all labels over shared kernel rows (M3L)."""

    name: ClassVar[str] = "label_smo"
    requires: ClassVar[tuple[str, ...]] = ("begin", "bounds", "gap_limit")

    def init(
        self, problem: LabelProblem, rng: np.random.RandomState, start: Array | None = None
    ) -> LabelState:
        """Begin without coefficients, or with some of shape (n_labels, n_rows)."""
        self.check(problem)
        machine = problem.begin()
        state = LabelState(machine=machine, rng=rng)
        if start is not None:
            machine.box.put_coefficients(np.ascontiguousarray(np.clip(start, *problem.bounds())))
            state.refresh(Progress())
        state.look()
        return state

    def step(
        self, problem: LabelProblem, state: LabelState, progress: Progress
    ) -> dict[str, float]:
        """Do a pass, or the rest of one, and what follows from the gap."""
        if state.refreshed is None:
            self._pass(state, progress)
            if state.next < len(state.order):
                state.look()
                return state.entries()
            self._judge_pass(state)
            is_small = state.gap <= problem.gap_limit(state.dual + state.gap)
            if not is_small and state.idle < _IDLE_PASSES:
                return state.entries()
        if state.refresh(progress):
            if state.gap <= problem.gap_limit(state.dual + state.gap):
                state.stopped_because = "tol"
            elif state.idle >= _IDLE_PASSES or not np.isfinite(state.gap):
                state.stopped_because = "stuck"
        return state.entries()

    def _pass(self, state: LabelState, progress: Progress) -> None:
        machine = state.machine
        if state.next == len(state.order):
            state.order = state.rng.permutation(machine.promising())
            state.next, state.gain = 0, 0.0
            state.passes += 1
        while state.next < len(state.order):
            rows = state.order[state.next : state.next + machine.rows_at_once]
            state.gain += machine.box.move(np.ascontiguousarray(rows))
            state.next += len(rows)
            state.rows_seen += len(rows)
            if progress.is_late():
                break

    def _judge_pass(self, state: LabelState) -> None:
        """Look at what a pass has come to."""
        state.look()
        moved = state.gain > _LEAST_GAIN * abs(state.dual) or state.gap < _FALLS * state.least
        state.idle = 0 if moved else state.idle + 1
        state.least = min(state.least, state.gap)

    def finish(self, problem: LabelProblem, state: LabelState) -> LabelMachine:
        """Return the machine; there is nothing left to do."""
        return state.machine

"""Linear machines of all classes, row by row: Pegasos for many classes, and exact dual steps.

Problem      min over W of alpha / 2 |W|^2 + (sum_i weight_i loss(W' x_i, y_i)) / sum_i weight_i
State        ``LinearSums``: a multiple of W, with what its mean is made of; for exact steps on rows
             that are visited again also the dual coefficients of all rows
Step         a pass over the rows in random order: see ``subgradient.hpp``. Subgradient steps are
             Algorithm 1 of the paper, of batches; exact ones maximise the dual in the coefficients
             of one row. In the first pass these take as many rows into account as were seen, so
             that it is one over a stream; later ones are dual coordinate ascent.
Stops        after ``max_iter`` passes; exact steps where the duality gap of rows, as they were met,
             is at the most ``tol`` times the objective: its mean over a pass is what bounds the gap
             of the mean weights; others where their loss did not fall by that share in
             ``n_iter_no_change`` passes; and where rows are held out, either by the share of these
             that are right

Source: Chen, Chen and Yang (2011), Algorithms 1 to 4. They draw rows with replacement; here a pass
has each row once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native
from widemargin.kernels import Rows, as_native_rows
from widemargin.solvers.linear.sums import LinearSums, StepSettings, padded
from widemargin.solvers.progress import (
    Progress,
    Solver,
    SolverState,
    pack_random,
    unpack_random,
)

Array: TypeAlias = npt.NDArray[Any]

_PRODUCTS = 1 << 23  # of entries and classes in a native call: some hundredths of a second
_BLOCK = 4096  # consecutive rows of a memory map that are learned together
_NOTHING_MET = {"loss": 0.0, "gap": 0.0, "mistakes": 0.0}


class LinearWeights(NamedTuple):
    """What is left of a fit."""

    weights: Array  # (n_features + 1) x classes
    objective: float
    dual: float  # minus infinity where it is not known


@dataclass
class ClassProblem:
    """Rows, their classes, and what they count.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_rows, n_features)
    numbers : ndarray of shape (n_rows,)
        Class numbers.
    row_weights : ndarray of shape (n_rows,)
        What each row counts; those of 0 are not learned.
    n_classes : int
    settings : StepSettings
    tol : float or None
    max_iter : int
    n_iter_no_change : int
    held_out : ndarray of row numbers
        By which the machine is judged; empty for none.
    n_threads : int
    """

    rows: Rows
    numbers: npt.NDArray[np.intp]
    row_weights: Array
    n_classes: int
    settings: StepSettings
    tol: float | None = 1e-2
    max_iter: int = 100
    n_iter_no_change: int = 3
    held_out: npt.NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_threads: int = 1

    @cached_property
    def native_rows(self) -> Any:
        """The rows as native code takes them."""
        return as_native_rows(self.rows)

    @cached_property
    def targets(self) -> npt.NDArray[np.int32]:
        """The class numbers as native code takes them."""
        return np.ascontiguousarray(self.numbers, dtype=np.int32)

    @cached_property
    def weights(self) -> Array:
        """What each row counts, those that are held out nothing."""
        weights = np.array(self.row_weights, dtype=np.float64)
        weights[self.held_out] = 0.0
        return weights

    @cached_property
    def learned(self) -> npt.NDArray[np.int32]:
        """The numbers of the rows that are learned."""
        return np.flatnonzero(self.weights > 0).astype(np.int32)

    @cached_property
    def rows_at_once(self) -> int:
        """How many rows a native call learns: a multiple of the batches."""
        stored = self.rows.nnz if sp.issparse(self.rows) else self.rows.size
        each = int(max(1, stored // max(1, self.rows.shape[0]))) * padded(self.n_classes)
        batch = self.settings.batch_size
        return max(1, _PRODUCTS // each // batch) * batch

    def order(self, rng: np.random.RandomState) -> npt.NDArray[np.int32]:
        """Return the rows of a pass in random order; near ones together if they are on disk."""
        if not _is_on_disk(self.rows):
            return np.asarray(self.learned[rng.permutation(len(self.learned))])
        starts = np.arange(0, len(self.learned), _BLOCK)
        blocks = [self.learned[start : start + _BLOCK] for start in rng.permutation(starts)]
        return np.concatenate([block[rng.permutation(len(block))] for block in blocks])


def _is_on_disk(rows: Rows) -> bool:
    """Whether rows are a memory map, or a view of one."""
    part = rows.data if sp.issparse(rows) else rows
    while isinstance(part, np.ndarray) and not isinstance(part, np.memmap):
        part = part.base
    return isinstance(part, np.memmap)


@dataclass(kw_only=True)
class SubgradientState(SolverState):
    """What moves: weights, coefficients of rows, and the pass that is under way.

    Attributes
    ----------
    sums : LinearSums
    rng : RandomState
    coefficients : ndarray of shape (n_rows, n_classes) or None
        Of rows, for exact steps.
    order : ndarray of shape (n_learned,)
        The rows of the pass.
    next : int
        How many of them are learned.
    passes : int
        Passes that were finished.
    record : dict
        What the rows of the pass under way were like: ``loss``, ``gap``, ``mistakes``.
    best, waited : float, int
        The best that a stopping rule has seen, and the passes since then.
    """

    sums: LinearSums
    rng: np.random.RandomState
    coefficients: Array | None
    order: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    next: int = 0
    passes: int = 0
    record: dict[str, float] = field(default_factory=lambda: _NOTHING_MET.copy())
    best: float = np.inf
    waited: int = 0

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "sums": self.sums.pack(),
            "random": pack_random(self.rng),
            "coefficients": None if self.coefficients is None else self.coefficients.copy(),
            "order": self.order,
            "next": self.next,
            "passes": self.passes,
            "record": dict(self.record),
            "best": float(self.best),
            "waited": self.waited,
            "history": {name: np.asarray(values) for name, values in self.history.items()},
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: ClassProblem) -> Self:
        """Return the state that was packed, bound to the same problem; ValueError if it is none."""
        try:
            coefficients = packed["coefficients"]
            if (coefficients is not None) != problem.settings.is_exact:
                raise ValueError("The state of a solver is of another solver.")
            order = np.ascontiguousarray(packed["order"], dtype=np.int32)
            if len(order) and not np.array_equal(np.sort(order), problem.learned):
                raise ValueError("The state of a solver is damaged: a row is not there.")
            return cls(
                sums=LinearSums.unpack(packed["sums"], problem.rows.shape[1], problem.n_classes),
                rng=unpack_random(packed["random"]),
                coefficients=None if coefficients is None else np.array(coefficients, order="C"),
                order=order,
                next=min(max(int(packed["next"]), 0), len(order)),
                passes=int(packed["passes"]),
                record={name: float(packed["record"][name]) for name in _NOTHING_MET},
                best=float(packed["best"]),
                waited=int(packed["waited"]),
                history={str(name): list(v.tolist()) for name, v in packed["history"].items()},
            )
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError(f"The state of a solver is damaged: {error}") from error


def standing(history: dict[str, list[float]]) -> str:
    """Say in a few words where the machine was when it was last put down."""
    last = {name: values[-1] for name, values in history.items()}
    gap = "" if last["gap"] == np.inf else f", gap {last['gap']:.3g}"
    return f"{last['epoch']} passes, loss {last['loss']:.4g} of rows as they came{gap}"


@dataclass(frozen=True)
class RowSteps(Solver[SubgradientState]):
    """Passes over the rows, with a step of subgradients or of the dual for each."""

    name: ClassVar[str] = "subgradient"
    requires: ClassVar[tuple[str, ...]] = ("settings", "order", "native_rows", "tol", "max_iter")

    def init(self, problem: ClassProblem, rng: np.random.RandomState) -> SubgradientState:
        """Begin with weights of zero."""
        self.check(problem)
        rows, settings = problem.rows, problem.settings
        sums = LinearSums.begin(
            rows.shape[1], problem.n_classes, rows.dtype, average=settings.average
        )
        shape = (rows.shape[0], problem.n_classes)
        coefficients = np.zeros(shape, dtype=rows.dtype) if settings.is_exact else None
        return SubgradientState(sums=sums, rng=rng, coefficients=coefficients)

    def step(
        self, problem: ClassProblem, state: SubgradientState, progress: Progress
    ) -> dict[str, float] | None:
        """Do a pass, or what is left of it, while there is time."""
        if state.next == len(state.order):
            state.order, state.next = problem.order(state.rng), 0
            state.record = _NOTHING_MET.copy()
            if state.coefficients is not None:
                state.sums.begin_mean()  # that of all passes would lag behind
        while state.next < len(state.order):
            part = state.order[state.next : state.next + problem.rows_at_once]
            met = state.sums.learn(
                problem.native_rows,
                problem.targets,
                problem.weights,
                part,
                problem.settings,
                state.coefficients,
                revisits=state.coefficients is not None and state.passes > 0,
            )
            state.next += len(part)
            for name in _NOTHING_MET:
                state.record[name] += float(getattr(met, name))
            if state.next < len(state.order) and progress.is_late():
                state.stopped_because = "max_seconds"
                return None
        state.passes += 1
        entries = self._entries(problem, state)
        state.stopped_because = self._reason(problem, state, entries)
        return entries

    @staticmethod
    def _entries(problem: ClassProblem, state: SubgradientState) -> dict[str, float]:
        whole = state.sums.totals.weight if state.coefficients is not None else None
        weight = whole or float(problem.weights.sum())
        knows_gap = state.coefficients is not None and state.passes > 1
        entries = {
            "epoch": state.passes,
            "steps": int(state.sums.totals.steps),
            "loss": state.record["loss"] / weight,
            "mistakes": state.record["mistakes"] / len(state.order),
            "gap": max(state.record["gap"], 0.0) / weight if knows_gap else np.inf,
        }
        if len(problem.held_out):
            entries["score"] = _share_right(problem, state)
        return entries

    @staticmethod
    def _reason(problem: ClassProblem, state: SubgradientState, entries: dict[str, float]) -> str:
        over = "max_iter" if state.passes >= problem.max_iter else ""
        if problem.tol is None:
            return over
        if "score" in entries:
            value, least = -entries["score"], problem.tol
        elif state.coefficients is not None:
            size = entries["loss"] + _regulariser(problem, state)
            return "tol" if entries["gap"] <= problem.tol * size else over
        else:
            value, least = entries["loss"], problem.tol * abs(entries["loss"])
        improved = value < state.best - least
        state.waited = 0 if improved else state.waited + 1
        state.best = min(state.best, value)
        return "tol" if state.waited >= problem.n_iter_no_change else over

    def finish(self, problem: ClassProblem, state: SubgradientState) -> LinearWeights:
        """Return the weights that predict, with their objective, and the dual where it is known."""
        settings, whole = problem.settings, float(problem.weights.sum())
        weights = state.sums.weights(settings.alpha, mean=True)
        judged = _native.judge_rows(
            settings.native,
            problem.native_rows,
            settings.constant,
            problem.targets,
            problem.weights,
            problem.n_classes,
            weights.astype(problem.rows.dtype),
            state.coefficients,
            problem.n_threads,
        )
        flat = weights.ravel()
        objective = 0.5 * settings.alpha * float(np.dot(flat, flat)) + judged.loss / whole
        dual = -np.inf
        if state.coefficients is not None and state.passes > 0:
            dual = min(judged.dual / whole - _regulariser(problem, state), objective)
        return LinearWeights(weights[:, : problem.n_classes], objective, dual)


def _regulariser(problem: ClassProblem, state: SubgradientState) -> float:
    """Return what the last weights add to the objective, and take from the dual."""
    alpha = problem.settings.alpha
    scale, _ = state.sums.factors(alpha, mean=False)
    flat = state.sums.sums.ravel()
    return 0.5 * alpha * scale**2 * float(np.dot(flat, flat))


def _share_right(problem: ClassProblem, state: SubgradientState) -> float:
    """Return the share of the rows that are held out which the machine tells right, by weight."""
    rows = problem.held_out
    scores = state.sums.scores(problem.rows[rows], problem.settings)
    is_right = scores.argmax(axis=1) == problem.numbers[rows]
    return float(np.average(is_right, weights=problem.row_weights[rows]))

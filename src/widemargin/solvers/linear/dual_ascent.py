"""Linear M3L: label sets by dual coordinate ascent, row by row.

Problem      max over 0 <= a_il <= cap_il of sum_il m_il a_il - 1/2 sum_kl R_kl z_k . z_l, with
             z_l = sum_i a_il y_il x_i and y of -1 and 1: a is twice the alpha of (25), and a cap
             twice C times the weight of a row. Margins m are 1, or those of
             ``solvers.label_margins``. Scores are f_l(x) = sum_k R_kl z_k . x. Its primal is
             1/2 sum_kl R_kl z_k . z_l + sum_il cap_il max(0, m_il - y_il f_l(x_i)), and the gap a
             sum over rows and labels of cap max(0, g) - a g, with g = m - y f: nothing needs the
             inverse of R, which may be singular.
State        blocks of labels, each with its weights and coefficients, the order of its rows and how
             far it is in a pass over them. Labels that R relates, directly or through others, are
             in one block; all others come a few to a block, those alike in frequency together.
Step         so many entries of rows in each block: see ``dual_ascent.hpp``
Stops        when the gap of each label is at the most ``tol`` times its objective, of labels that R
             relates that of all together; or after ``max_iter`` passes

Source: Hariharan, Vishwanathan and Varma (2012), section 6. In (40) the left side is z_k, for all
k. In (44) and (45) labels with R_kl = 0 are left out, and the others count by R_kl / R_kk, which is
what a step of label k does to the gradients of label l. They choose labels and rows at random, and
later many rows of one label before the weights of the others follow. Here it is all labels of one
row: the weights are changed once for all of them, each of whose steps knows those before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from widemargin import _native
from widemargin.kernels import Rows, as_native_rows
from widemargin.solvers.label_margins import correlated_margins
from widemargin.solvers.progress import Progress, Solver, SolverState

Array: TypeAlias = npt.NDArray[Any]
Labels: TypeAlias = npt.NDArray[np.intp]

_WORK = 1 << 28  # entries of rows times labels in a round: some tenths of a second
# Features up to which the weights of a few labels stay near the processor. Few labels in a block
# let rows go sooner. Of more features a weight comes from afar, with those of others beside it: a
# cache line has room for twice as many labels.
_NARROW = 4096
_DUAL_LANE = 5  # of what a packed block knows of each label: the dual
_ROUNDING = 1e-13  # of a prior: what is smaller relates no labels


class LabelWeights(NamedTuple):
    """What is left of a fit."""

    coef: Array  # features x labels
    intercept: Array
    duals: Array  # of each label; with a prior only their sum means something
    gaps: Array


@dataclass
class LabelProblem:
    """Rows, their labels, and what they count.

    Attributes
    ----------
    rows : array or CSR matrix of shape (n_rows, n_features)
    indicator : array or sparse matrix of shape (n_rows, n_labels)
        1 where a row has a label, else 0.
    caps : ndarray of shape (n_rows,)
        The largest coefficient of each row.
    with_label, without_label : ndarray of shape (n_labels,)
        Factors of it for rows that have a label, and for those that have not.
    prior : ndarray of shape (n_labels, n_labels) or None
        R; None is the identity.
    constant : float
        The value of a feature that all rows have besides; 0 is none.
    tol : float
        The gap at which labels are done, as a share of the primal objective.
    max_iter : int
        Passes over the rows, at the most.
    n_threads : int
    is_correlated : bool
        Whether margins are those of the correlated Hamming loss; else they are 1.
    """

    rows: Rows
    indicator: Any
    caps: Array
    with_label: Array
    without_label: Array
    prior: Array | None = None
    constant: float = 0.0
    tol: float = 1e-3
    max_iter: int = 1000
    n_threads: int = 1
    is_correlated: bool = False

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return len(self.with_label)

    @cached_property
    def arguments(self) -> tuple[Any, float, Array, Array]:
        """Rows as native code takes them, with the constant, their squared lengths and caps."""
        squares = np.full(self.rows.shape[0], self.constant**2)
        step = 4096
        for start in range(0, len(squares), step):
            some = self.rows[start : start + step].astype(np.float64)
            each = some.multiply(some) if sp.issparse(some) else some * some
            squares[start : start + step] += np.asarray(each.sum(axis=1)).ravel()
        caps = np.ascontiguousarray(self.caps, dtype=np.float64)
        return as_native_rows(self.rows), float(self.constant), squares, caps

    @cached_property
    def entries(self) -> int:
        """Numbers that a pass over all rows reads."""
        stored = self.rows.nnz if sp.issparse(self.rows) else self.rows.size
        return int(stored + self.rows.shape[0])

    @cached_property
    def groups(self) -> list[Labels]:
        """The labels of each block."""
        together, alone = self._related()
        frequency = np.asarray(self._columns.getnnz(axis=0))
        alike = alone[np.argsort(frequency[alone], kind="stable")]
        size = _native.LABELS_AT_ONCE * (1 if self.rows.shape[1] <= _NARROW else 2)
        return together + [alike[start : start + size] for start in range(0, len(alike), size)]

    def begin(self, seed: int, start: Any = None) -> list[Any]:
        """Return the blocks before the first step.

        ``start`` has coefficients to begin with, a CSR matrix of shape (n_rows, n_labels); those
        that are beyond their bounds are brought there.
        """
        blocks = [self._block(labels, seed + number) for number, labels in enumerate(self.groups)]
        if start is not None:
            for block, labels in zip(blocks, self.groups, strict=True):
                self._put(block, labels, start[:, labels].toarray())
        return blocks

    @cached_property
    def _columns(self) -> Any:
        columns = sp.csc_matrix(self.indicator)
        columns.eliminate_zeros()
        return columns

    def _related(self) -> tuple[list[Labels], Labels]:
        """Return the sets of labels that the prior relates, and labels that it relates to none."""
        if self.prior is None:
            return [], np.arange(self.n_labels)
        size = np.sqrt(np.diag(self.prior))
        links = np.abs(self.prior) > _ROUNDING * size * size[:, np.newaxis]
        _, names = connected_components(links, directed=False)
        sets = [np.flatnonzero(names == name) for name in np.unique(names)]
        alone = [labels for labels in sets if len(labels) == 1]
        return [labels for labels in sets if len(labels) > 1], np.concatenate(
            [np.empty(0, dtype=np.intp), *alone]
        )

    def _block(self, labels: Labels, seed: int) -> Any:
        size = _native.LABELS_AT_ONCE
        signs = np.zeros((self.rows.shape[0], -(-len(labels) // size)), dtype=np.uint8)
        for place, rows in enumerate(self._rows_with(labels)):
            signs[rows, place // size] |= np.uint8(1 << place % size)
        R = self._relation(labels)
        is_coupled = bool(np.any(R - np.diag(np.diag(R))))
        return _native.DualAscent(
            signs,
            self.rows.shape[1],
            np.ascontiguousarray(self.with_label[labels], dtype=np.float64),
            np.ascontiguousarray(self.without_label[labels], dtype=np.float64),
            np.diag(R).copy(),
            R if is_coupled else None,
            self._margins(labels, R) if self.is_correlated else None,
            seed,
        )

    def _put(self, block: Any, labels: Labels, start: Array) -> None:
        """Put coefficients into a block, with the weights and the dual that follow from them."""
        has = self._columns[:, labels].toarray() > 0
        factors = np.where(has, self.with_label[labels], self.without_label[labels])
        start = np.clip(start, 0.0, factors * self.caps[:, np.newaxis])
        signed = np.where(has, start, -start)
        free = np.vstack([self.rows.T @ signed, self.constant * signed.sum(axis=0)])
        R = self._relation(labels)
        related = free @ R
        margins = self._margins(labels, R) if self.is_correlated else 1.0
        packed = block.snapshot()
        packed["weights"][:, : len(labels)] = related
        packed["coefficients"].reshape(len(start), -1)[:, : len(labels)] = start
        duals = (margins * start).sum(axis=0) - 0.5 * (free * related).sum(axis=0)
        packed["lanes"][_DUAL_LANE, : len(labels)] = duals
        block.take_on(packed)

    def _relation(self, labels: Labels) -> Array:
        """Return R of the labels of a block."""
        if self.prior is None:
            return np.eye(len(labels))
        return np.ascontiguousarray(self.prior[np.ix_(labels, labels)])

    def _margins(self, labels: Labels, R: Array) -> Array:
        """Return the margins of a block: R relates its labels to no others."""
        own = self._columns[:, labels].toarray()
        return correlated_margins(R, np.where(own > 0, 1.0, -1.0))

    def _rows_with(self, labels: Labels) -> Iterator[Array]:
        columns = self._columns
        for label in labels:
            yield columns.indices[columns.indptr[label] : columns.indptr[label + 1]]


@dataclass(kw_only=True)
class DualAscentState(SolverState):
    """What moves: the blocks of labels.

    Attributes
    ----------
    blocks : list of native blocks
        In the order of ``LabelProblem.groups``.
    """

    blocks: list[Any]

    def pack(self) -> dict[str, Any]:
        """Return the state as what model files hold."""
        return {
            "blocks": [block.snapshot() for block in self.blocks],
            "history": {name: np.asarray(values) for name, values in self.history.items()},
        }

    @classmethod
    def unpack(cls, packed: dict[str, Any], problem: LabelProblem) -> Self:
        """Return the state that was packed, bound to the same problem; ValueError if it is none."""
        try:
            blocks = problem.begin(0)
            for block, kept in zip(blocks, packed["blocks"], strict=True):
                block.take_on(kept)
            history = {str(name): list(v.tolist()) for name, v in packed["history"].items()}
        except (AttributeError, LookupError, TypeError, OverflowError) as error:
            raise ValueError(f"The state of a solver is damaged: {error}") from error
        return cls(blocks=blocks, history=history)

    @property
    def passes(self) -> int:
        """The most passes over rows that a block has done."""
        return max((block.passes for block in self.blocks), default=0)

    def coefficients(self, problem: LabelProblem) -> sp.csr_matrix:
        """Return a, of shape (n_rows, n_labels)."""
        parts = []
        for block in self.blocks:
            dense = block.snapshot()["coefficients"].reshape(problem.rows.shape[0], -1)
            parts.append(sp.csr_matrix(dense[:, : block.labels]))
        if not parts:
            return sp.csr_matrix((problem.rows.shape[0], problem.n_labels))
        order = np.argsort(np.concatenate(problem.groups))
        return sp.hstack(parts, format="csr")[:, order]

    def entries(self) -> dict[str, float]:
        """Return where the machine is, to be written down."""
        dual = float(sum(block.duals.sum() for block in self.blocks))
        done = [block for block in self.blocks if block.is_done]
        gap = float(sum(block.gaps.sum() for block in done))
        gap = max(gap, 0.0) if len(done) == len(self.blocks) else np.inf
        return {
            "epoch": self.passes,
            "dual": dual,
            "primal": dual + gap,
            "gap": gap,
            "labels_done": sum(block.labels for block in done),
            "active_rows": max((block.active for block in self.blocks), default=0),
        }


def standing(history: dict[str, list[float]]) -> str:
    """Say in a few words where the machine was when it was last put down."""
    last = {name: values[-1] for name, values in history.items()}
    gap = "" if last["gap"] == np.inf else f", gap {last['gap']:.3g}"
    return (
        f"{last['epoch']} passes, {last['labels_done']} labels done, dual {last['dual']:.6g}{gap}"
    )


@dataclass(frozen=True)
class DualAscent(Solver[DualAscentState]):
    """Coordinate ascent in the dual of linear machines of label sets."""

    name: ClassVar[str] = "dual_ascent"
    requires: ClassVar[tuple[str, ...]] = ("arguments", "begin", "groups", "tol", "max_iter")

    def init(
        self, problem: LabelProblem, rng: np.random.RandomState, start: Any = None
    ) -> DualAscentState:
        """Begin without coefficients, or with a CSR matrix of them: see ``LabelProblem.begin``."""
        self.check(problem)
        return DualAscentState(blocks=problem.begin(int(rng.randint(1 << 31)), start))

    def step(
        self, problem: LabelProblem, state: DualAscentState, progress: Progress
    ) -> dict[str, float]:
        """Read so many entries in each block that is not done."""
        left = [block for block in state.blocks if not block.is_done]
        if left:
            labels = sum(block.labels for block in left)
            work = max(1, min(_WORK // labels, problem.entries))
            _native.ascend_labels(
                left, *problem.arguments, problem.tol, problem.max_iter, work, problem.n_threads
            )
        if all(block.is_done for block in state.blocks):
            state.stopped_because = self._reason(state)
        return state.entries()

    @staticmethod
    def _reason(state: DualAscentState) -> str:
        short = [block for block in state.blocks if not block.is_exact]
        if not short:
            return "tol"
        return "stuck" if all(block.is_stuck for block in short) else "max_iter"

    def finish(self, problem: LabelProblem, state: DualAscentState) -> LabelWeights:
        """Return weights, and the gaps of all rows, which are found anew where labels are not done.

        A state that was stopped stays as it is.
        """
        weights = np.zeros((problem.rows.shape[1] + 1, problem.n_labels))
        duals, gaps = np.zeros(problem.n_labels), np.zeros(problem.n_labels)
        for block, labels in zip(state.blocks, problem.groups, strict=True):
            weights[:, labels] = block.weights()
            duals[labels] = block.duals
            gaps[labels] = block.gaps
        early = [number for number, block in enumerate(state.blocks) if not block.is_done]
        if early:
            blocks = [state.blocks[number] for number in early]
            found = _native.label_gaps(blocks, *problem.arguments, problem.n_threads)
            gaps[np.concatenate([problem.groups[number] for number in early])] = found
        return LabelWeights(weights[:-1], problem.constant * weights[-1], duals, gaps)

"""Dual expansions: rows in slots, their coefficients and gradients.

Problem      maximise  sum_i beta_i(y_i) - 1/2 sum_ij sum_c beta_i(c) beta_j(c) k(x_i, x_j)  with
             rows of beta that sum to zero, and bounds that are the loss's; with intercepts, k is
             the kernel plus 1:
             beta_i(c) <= cap_i [c = y_i] for "crammer_singer"
             -cap_i <= beta_i(c) <= 0 for c != y_i for "weston_watkins"
State        a :class:`DualExpansion`: which rows are held, with coefficients and gradients. It is a
             valid machine at any time, so a solver can stop anywhere, and another can go on;
             :mod:`widemargin.solvers.duals.state` has what else moves

Source: Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector
Machines" (2001); Weston and Watkins, "Support Vector Machines for Multi-Class Pattern Recognition"
(1999); Bordes, Bottou, Gallinari and Weston, "Solving MultiClass Support Vector Machines with
LaRank" (2007).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin import _native
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    Kernel,
    Laplacian,
    Rows,
    as_native_rows,
)

Array: TypeAlias = npt.NDArray[Any]

DUAL_LOSSES = ("crammer_singer", "weston_watkins")

#: Rows whose kernel values are computed together.
BLOCK = 32

_FEW_FEATURES = 2048  # for which sparse rows are kept dense
_ORIGIN_ROWS = 1000  # whose median is where coordinates are moved to
_BLOCK_ENTRIES = 1 << 22  # kernel values that are computed together at the most
_MEGABYTE = 1 << 20
_NEAR = -0.1  # rows that keep their margin by less than this may lose it as the machine moves


class CalledRows:
    """Rows by slot for kernels that Python computes: functions, matrices, wide sparse rows."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._rows: Rows = None
        self._diagonal = np.empty(0)
        self._where = np.empty(0, dtype=np.intp)  # row of each slot
        self._first = 0  # row of the batch that rows are put from

    def use_batch(self, rows: Rows, slots: npt.NDArray[np.int64]) -> None:
        """Take rows from this batch from now on; of those before, keep what lives in the slots."""
        batch_diagonal = self._kernel.diagonal(rows)
        if self._rows is None or len(slots) == 0:
            self._rows, self._first = rows, 0
            self._diagonal = batch_diagonal
            self._where = np.zeros(len(self._where), dtype=np.intp)
            return
        kept = self._where[slots]
        stack: Any = sp.vstack if sp.issparse(rows) else np.concatenate
        stacked: Rows = stack([self._rows[kept], rows])
        self._put_away(
            stacked.tocsr() if sp.issparse(stacked) else stacked,
            np.concatenate([self._diagonal[kept], batch_diagonal]),
            slots,
        )
        self._first = len(slots)

    def let_go_of_batch(self, slots: npt.NDArray[np.int64]) -> None:
        """Copy what lives in the slots: the batch is its owner's to change."""
        kept = self._where[slots]
        self._put_away(self._rows[kept], self._diagonal[kept], slots)

    def _put_away(self, rows: Rows, diagonal: Array, slots: npt.NDArray[np.int64]) -> None:
        """Keep these rows, of which the first live in the slots; at once, lest Ctrl-C halves it."""
        where = np.zeros_like(self._where)
        where[slots] = np.arange(len(slots))
        self.__dict__.update(_rows=rows, _diagonal=diagonal, _where=where)

    def put(self, slot: int, row: int) -> None:
        """Put a row of the batch into a slot."""
        if slot >= len(self._where):
            self._where = np.concatenate([self._where, np.zeros(slot + 64, dtype=np.intp)])
        self._where[slot] = self._first + row

    def values(self, left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> Array:
        """Return kernel values of slots with slots."""
        rows, others = self._where[left], self._where[right]
        basis = self._kernel.select(self._rows, others)
        values = self._kernel.single_block(self._rows[rows], basis)
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(single).all():
            raise ValueError(
                "The kernel has values that are not finite in single precision. Check the scale of "
                "X, and the kernel."
            )
        return single

    def rows_in(self, slots: npt.NDArray[np.int64]) -> Rows:
        """Return the rows in slots; no copy, if they are all there are, in their order."""
        places = self._where[slots]
        is_all = len(places) == self._rows.shape[0] and np.array_equal(
            places, np.arange(len(places))
        )
        return self._rows if is_all else self._rows[places]

    def diagonal(self, slot: int) -> float:
        """Return the kernel value of a slot with itself."""
        return float(self._diagonal[self._where[slot]])


def make_slots(
    kernel: Kernel, rows: Rows, origin: Array | None = None
) -> tuple[Any, CalledRows | None, Array | None]:
    """Return slots for rows like these, who computes their kernel values, and about which origin.

    Native code does where it can, and then there are no rows that Python keeps; else there is no
    origin.
    """
    native = kernel.native()
    wide = sp.issparse(rows) and rows.shape[1] > _FEW_FEATURES
    if native is not None and not wide and not isinstance(kernel, AdaptiveRBF):
        origin = _origin(kernel, rows) if origin is None else origin
        return _native.DenseSlots(native, origin), None, origin
    called = CalledRows(kernel)
    slots = _native.CalledSlots(called.put, called.values, called.diagonal, rows.shape[1])
    return slots, called, None


def cache_bytes(megabytes: float) -> int:
    """Return the bytes of a cache of so many megabytes."""
    return int(min(megabytes * _MEGABYTE, 1 << 60))


@dataclass(frozen=True)
class Supports:
    """What predicts: the support patterns of a machine, in the order of their names."""

    slots: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]
    caps: Array
    coef: Array  # (n_patterns, n_classes)
    earlier: Array  # changes of coef times the number of rows seen before each


@dataclass
class Batch:
    """Rows to learn from, as a solver sees them: by number."""

    labels: npt.NDArray[np.int32]
    caps: Array
    first_id: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.labels)


class DualExpansion:
    """Coefficients and gradients of a multiclass machine, and the kernel values they need.

    Parameters
    ----------
    kernel : Kernel
    rows : array or CSR matrix
        The first batch: coordinates are moved to its middle, which costs distances nothing.
    n_classes : int
    loss : {"crammer_singer", "weston_watkins"}
    margin : float
        Of the scores; 0 for learners that only want the right class first.
    fit_intercept : bool
        Whether 1 is added to all kernel values, which gives each class an intercept: the sum of its
        coefficients.
    cache_size : float
        Megabytes of kernel rows that are kept.
    n_threads : int
    origin : array of shape (n_features,), default=None
        Where coordinates are moved to, instead of the middle of the batch.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Rows,
        n_classes: int,
        *,
        loss: str = "crammer_singer",
        margin: float = 1.0,
        fit_intercept: bool,
        cache_size: float = 200.0,
        n_threads: int = 1,
        origin: Array | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_classes = n_classes
        self.loss, self.margin = loss, float(margin)
        self.offset = float(fit_intercept)
        self.cache_bytes = cache_bytes(cache_size)
        # The origin is None for kernels that Python computes.
        self._slots, self._called, self.origin = make_slots(kernel, rows, origin)
        self.set = _native.SupportSet(
            self._slots, n_classes, loss, margin, self.offset, self.cache_bytes, n_threads
        )
        self._batch: Batch | None = None

    def use_batch(
        self, rows: Rows, labels: npt.NDArray[Any], caps: Array, first_id: int = 0
    ) -> Batch:
        """Learn from these rows from now on; their names are ``first_id`` and up."""
        self._n_features, self._dtype = rows.shape[1], rows.dtype
        if self._called is None:
            native = as_native_rows(rows)
            self._slots.use_batch(native, native)
        else:
            self._called.use_batch(rows, self.supports().slots)
        self._batch = Batch(
            np.ascontiguousarray(labels, dtype=np.int32),
            np.ascontiguousarray(caps, dtype=np.float64),
            first_id,
        )
        return self._batch

    @property
    def batch(self) -> Batch:
        """The rows that are learned from."""
        assert self._batch is not None
        return self._batch

    def arguments(self, rows: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Return what native calls take for rows of the batch."""
        return rows, self.batch.first_id, self.batch.labels, self.batch.caps

    def blocks(
        self, rows: npt.NDArray[np.int64], size: int = BLOCK
    ) -> Iterator[npt.NDArray[np.int64]]:
        """Yield rows a block at a time."""
        for start in range(0, len(rows), size):
            yield rows[start : start + size]

    def supports(self) -> Supports:
        """Return the support patterns and their coefficients, in the order of their names."""
        count = self.set.n_supports
        slots, ids = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        labels, caps = np.empty(count, dtype=np.int32), np.empty(count)
        coef, earlier = np.empty((count, self.n_classes)), np.empty((count, self.n_classes))
        self.set.export_supports(slots, ids, labels, caps, coef, earlier)
        order = np.argsort(ids)
        return Supports(*(each[order] for each in (slots, ids, labels, caps, coef, earlier)))

    def slots_of(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the slots of rows, -1 for those that are not held."""
        slots = np.empty(len(ids), dtype=np.int64)
        self.set.find(ids, slots)
        return slots

    def scores_of(self, slots: npt.NDArray[np.int64]) -> Array:
        """Return the scores of rows that are held, as their gradients have them."""
        packed = self.set.snapshot()
        scores: Array = -packed["gradients"][:, slots].T
        scores[np.arange(len(slots)), packed["labels"][slots]] += self.margin
        return scores

    def restore(
        self, rows: npt.NDArray[np.int64], coef: Array, earlier: Array | None = None
    ) -> None:
        """Give rows of the batch these coefficients."""
        for block in self.blocks(rows, self.block_size()):
            self.set.admit(*self.arguments(block))
        slots = self.slots_of(self.batch.first_id + rows)
        past = np.zeros_like(coef) if earlier is None else earlier
        self.set.restore(slots, np.ascontiguousarray(coef), np.ascontiguousarray(past))
        self.set.release_all()

    def hold_all(self) -> None:
        """Hold all rows of the batch."""
        self.set.begin_inspection()
        try:
            for block in self.blocks(np.arange(self.batch.n_rows), self.block_size()):
                self.set.admit(*self.arguments(block))
        finally:
            self.set.end_inspection()

    def block_size(self) -> int:
        """Return how many rows are compared with all that are held at once."""
        n_slots: int = self.set.n_slots
        return max(BLOCK, min(1024, _BLOCK_ENTRIES // max(1, n_slots)))

    @property
    def calls_python(self) -> bool:
        """Whether Python computes the kernel values."""
        return self._called is not None

    def let_go_of_batch(self) -> None:
        """Look no more at the rows of the batch; those of support patterns are kept."""
        if self._called is not None:
            self._called.let_go_of_batch(np.sort(self.supports().slots))
            return
        slots = self.slots_of(self.batch.first_id + np.arange(self.batch.n_rows))
        held = np.flatnonzero(slots >= 0)
        self._slots.keep(slots[held], held)

    def rows_in(self, slots: npt.NDArray[np.int64]) -> Rows:
        """Return the rows of support patterns of batches that were let go of.

        Sparse ones are dense where native code computes kernel values.
        """
        if self._called is not None:
            return self._called.rows_in(slots)
        rows = np.empty((len(slots), self._n_features), dtype=self._dtype)
        self._slots.kept_rows(np.ascontiguousarray(slots, dtype=np.int64), rows)
        return rows

    def add_class(self, position: int) -> None:
        """Make room for another class before those from ``position`` on, between two batches.

        Nobody has coefficients of it yet, and the labels of rows rise with their classes.
        """
        self.set.add_class(position)
        self.n_classes += 1
        self._batch = None  # whose labels are those of before

    def learn(self, native: Any, rows: npt.NDArray[np.int64]) -> None:
        """Learn rows of the batch in this order, by a native solver that takes blocks."""
        for block in self.blocks(rows):
            native.take(self.set, *self.arguments(block))

    def pack(self) -> dict[str, Any]:
        """Return all that later steps depend on; rows apart, which are known by their names."""
        return {"set": self.set.snapshot(), "origin": self.origin}

    def take_on(self, packed: dict[str, Any], rows: npt.NDArray[np.int64] | None = None) -> None:
        """Become the machine that was packed; ValueError if it cannot have been one.

        Parameters
        ----------
        packed : dict
            What ``pack`` has returned. Arrays of it are only read.
        rows : array of int64, default=None
            Row of the batch that lives in each slot, and is kept; by default that of the same name.
        """
        by_name = np.asarray(packed["set"]["ids"]) - self.batch.first_id
        places = np.ascontiguousarray(by_name if rows is None else rows, dtype=np.int64)
        self.set.take_on(packed["set"], places, self.batch.n_rows)
        if rows is not None and self._called is None:
            held = np.flatnonzero(packed["set"]["held"])
            self._slots.keep(held, places[held])

    def keep_above(self) -> float:
        """Return the violation above which rows are worth holding.

        All, if the cache has room for the kernel values of all rows with the support patterns; else
        those that are near their margin.
        """
        needed = 4 * self.batch.n_rows * (self.set.n_supports + self.set.n_supports // 4)
        return -np.inf if needed <= self.cache_bytes else _NEAR


def _origin(kernel: Kernel, rows: Rows) -> Array:
    if not isinstance(kernel, (RBF, Laplacian)):
        return np.zeros(rows.shape[1])
    some = rows[:: max(1, rows.shape[0] // _ORIGIN_ROWS)]
    some = some.toarray() if sp.issparse(some) else some
    medians: Array = np.asarray(np.median(some, axis=0), dtype=np.float64)
    # In single precision, unless they are beyond it: rows of either precision are then moved by the
    # same.
    held = np.abs(medians) <= np.finfo(np.float32).max
    medians[held] = medians[held].astype(np.float32)
    return medians

"""What is as long as the data: blocks of rows, and handles to what is known of each row.

Only the objective and the basis touch arrays with an entry for each row. They do so block by block,
and add sums over blocks in order. How long a block is follows from nothing but ``BLOCK_ROWS``: not
from where the rows are stored, nor from how many there are. So the same rows give the same bits in
memory and elsewhere. Up to ``BLOCK_ROWS`` rows are one block.

Solvers hold handles: :class:`Scores`, :class:`Derivatives`, :class:`OpenRows`. These refuse to be
taken for arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Array: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.intp]

#: Rows of a block. Native code cuts each block into chunks for its threads.
BLOCK_ROWS = 1 << 18


def cut(n_rows: int, block_rows: int = BLOCK_ROWS) -> list[slice]:
    """Return the blocks of so many rows, in order."""
    return [
        slice(start, min(start + block_rows, n_rows))
        for start in range(0, max(n_rows, 1), block_rows)
    ]


def some_rows(rows: Any, block: slice) -> Any:
    """Return a block of rows without copying their entries; of a single block, the rows."""
    if block.start == 0 and block.stop >= rows.shape[0]:
        return rows
    if not sp.issparse(rows):
        return rows[block]
    starts = rows.indptr[block.start : block.stop + 1]
    entries = slice(starts[0], starts[-1])
    # Its constructor would copy the parts of a matrix that are much shorter than those they are of.
    part = type(rows)((block.stop - block.start, rows.shape[1]), dtype=rows.dtype)
    part.data, part.indices = rows.data[entries], rows.indices[entries]
    part.indptr = starts - starts[0]
    return part


class RowHandle:
    """What is known of each row, in the hands of one who must not look."""

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} belong to the objective, which alone touches what is as long "
            "as the data; ask it for what you need of them."
        )


@dataclass(frozen=True, eq=False)
class Scores(RowHandle):
    """Scores of all rows, an array of shape (n_rows of the block, n_outputs) for each block."""

    blocks: list[Array]


@dataclass(frozen=True, eq=False)
class BlockDerivatives:
    """Derivatives of the loss in the scores of a block.

    Attributes
    ----------
    gradient, curvature : ndarray of shape (n_rows, n_outputs)
        Weighted first derivatives, and the diagonal of the Hessian.
    active : ndarray of int32
        The rows, counted from the first of the block, that have any of either; the others play no
        part in a Newton step.
    """

    gradient: Array
    curvature: Array
    active: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Derivatives(RowHandle):
    """The weighted sum of the loss at some scores, and its derivatives in those of each row."""

    loss: float
    blocks: list[BlockDerivatives]

    @property
    def gradient(self) -> Array:
        """Weighted first derivatives, for a problem that has all rows in one block."""
        return self._only.gradient

    @property
    def curvature(self) -> Array:
        """The diagonal of the Hessian, for a problem that has all rows in one block."""
        return self._only.curvature

    @property
    def active(self) -> npt.NDArray[np.int32]:
        """The rows that have any derivative, for a problem that has all rows in one block."""
        return self._only.active

    @property
    def _only(self) -> BlockDerivatives:
        (block,) = self.blocks
        return block


class OpenRows(RowHandle):
    """The rows that may still join a basis.

    Parameters
    ----------
    open_ : ndarray of bool of shape (n_rows,)
    """

    def __init__(self, open_: npt.NDArray[np.bool_]) -> None:
        self._open = open_

    def copy(self) -> OpenRows:
        """Return the same rows, to be closed by themselves."""
        return OpenRows(self._open.copy())

    def close(self, rows: Indices) -> None:
        """Take rows out."""
        self._open[rows] = False

    def draw(
        self, count: int | None, rng: np.random.RandomState, at_once: int
    ) -> Iterator[Indices]:
        """Draw rows at random, or take all of them in order if ``count`` is None or more.

        The draw is over when this returns; it yields the row numbers, ``at_once`` at a time.
        """
        rows = np.flatnonzero(self._open)
        if count is not None and count < len(rows):
            rows = rng.choice(rows, count, replace=False)
        return (rows[start : start + at_once] for start in range(0, len(rows), at_once))

    def pack(self) -> Array:
        """Return a bit for each row."""
        return np.packbits(self._open)

    @classmethod
    def unpack(cls, packed: Array, n_rows: int) -> OpenRows:
        """Return the rows that were packed."""
        return cls(np.unpackbits(packed, count=n_rows).astype(bool))

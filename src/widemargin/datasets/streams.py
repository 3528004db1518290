"""Streams of labelled rows: batches, shuffled or not, from a place that can be saved.

A *window* is what is shuffled: so many rows that follow one another in the file. Where it begins,
its number and the seed say which batches come of it, so that a place in a stream is a few numbers,
however large the window is. Without shuffling a window is a batch.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from widemargin._system.files import replace_file
from widemargin._system.parameters import check_flag, check_integer
from widemargin.datasets.blocks import Array, Block, LabelledRows, Place, Source, joined
from widemargin.datasets.telling import Telling
from widemargin.datasets.text import empty
from widemargin.model_files import load, save

_VERSION = 1
_PLACE_FILE = "place.json"


class RowStream:
    r"""Labelled rows of a file, batch by batch, in memory that does not grow with the file.

    Made by :func:`widemargin.stream`. A loop over it is a pass over the rows; another loop is
    another pass, in another order where rows are shuffled. It has one place at a time, so that of
    two loops at once the later one goes on.

    Parameters
    ----------
    source : Source
        What reads the rows.
    batch_size : int, default=1000
        Rows of a batch; the last one of a pass may have fewer.
    shuffle_buffer : int or None, default=None
        Rows that are shuffled with one another; see :func:`widemargin.stream`.
    random_state : int, RandomState instance or None, default=None
        Seed of the order.
    progress : bool, default=False
        Whether to tell how far it has come.

    Attributes
    ----------
    n_features : int
        Number of features.
    n_rows : int or None
        Rows of a pass, where that is known before they are read; bad ones are counted too.
    classes : ndarray or None
        The classes, in rising order, where they were given or found out.
    passes : int
        Passes that have ended.
    rows_read : int
        Rows that this pass has given.
    skipped : int
        Bad rows that this pass has left out.

    Examples
    --------
    >>> import widemargin
    >>> from pathlib import Path
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rows.svm"
    ...     _ = path.write_text("1 1:0.5 3:2\n2 2:1\n1 3:4\n")
    ...     stream = widemargin.stream(path, batch_size=2)
    ...     [X.shape for X, y in stream]
    [(2, 3), (1, 3)]
    """

    def __init__(
        self,
        source: Source,
        *,
        batch_size: int = 1000,
        shuffle_buffer: int | None = None,
        random_state: Any = None,
        progress: bool = False,
    ) -> None:
        check_integer("batch_size", batch_size, least=1)
        if shuffle_buffer is not None:
            check_integer("shuffle_buffer", shuffle_buffer, least=1)
        check_flag("progress", progress)
        self.source = source
        self.batch_size = int(batch_size)
        self.shuffle_buffer = None if shuffle_buffer is None else int(shuffle_buffer)
        self.progress = bool(progress)
        self._seed = int(check_random_state(random_state).randint(1 << 31))
        self._turn = 0  # of loops: only the last that began goes on
        self.passes = 0
        self._begin_pass(0)
        self._goes_on = True  # whether the next loop begins where we are

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.source.n_features

    @property
    def n_rows(self) -> int | None:
        """Rows of a pass, where that is known."""
        return self.source.n_rows

    @property
    def classes(self) -> Array | None:
        """The classes, where they are known."""
        return self.source.classes

    def __repr__(self) -> str:
        n_rows = "?" if self.n_rows is None else self.n_rows
        return f"RowStream({str(self.source.path)!r}, {n_rows} rows, {self.n_features} features)"

    def _begin_pass(self, number: int) -> None:
        self._pass = number  # of those that were given up, too
        self.rows_read, self.skipped = 0, 0
        self._is_over = False
        self._window = 0  # its number in the pass
        self._taken = 0  # rows of it that were given
        self._at: Place | None = None  # where the block is in which it begins,
        self._offset = 0  # the rows of the block before it,
        self._skipped_before = 0  # and the bad rows before the block

    def __iter__(self) -> Iterator[Any]:
        """Yield batches ``(X, y)``, or ``(X, y, weight)`` where rows have weights, of a pass.

        A loop begins a pass, unless the stream was put somewhere by :meth:`seek`: from there it
        goes on to the end of the pass.
        """
        if self._is_over or not self._goes_on:
            self._begin_pass(self._pass + 1)
        self._goes_on = False
        self._turn += 1
        return self._batches(self._turn)

    def _batches(self, turn: int) -> Iterator[Any]:
        begun_here = self._at is None
        with Telling(self) if self.progress else _Silence() as telling:
            for window in self._windows():
                order = self._order(len(window))
                for first in range(self._taken, len(window), self.batch_size):
                    chosen = slice(first, first + self.batch_size)
                    batch = window[chosen if order is None else order[chosen]]
                    self._taken = first + len(batch)
                    self.rows_read += len(batch)
                    telling.tell()
                    yield (batch.X, batch.y, *(() if batch.weight is None else (batch.weight,)))
                    if turn != self._turn:
                        raise RuntimeError(
                            "Another loop over this stream, or seek, has begun since. A stream has "
                            "one place: make another of the same file to read it twice at a time."
                        )
        if begun_here and self.rows_read == 0:
            raise empty(self.source.path)
        self._is_over = True
        self.passes += 1

    def _order(self, n_rows: int) -> Array | None:
        """Return the order of the rows of this window, None for that of the file."""
        if self.shuffle_buffer is None:
            return None
        return np.random.default_rng((self._seed, self._pass, self._window)).permutation(n_rows)

    @property
    def _window_rows(self) -> int:
        """Rows of a window: whole batches."""
        batches = -(-(self.shuffle_buffer or 1) // self.batch_size)
        return batches * self.batch_size

    def _windows(self) -> Iterator[LabelledRows]:
        """Yield windows from where we are; as each is left, we are at the next."""
        size = self._window_rows
        self.skipped = self._skipped_before
        blocks: list[tuple[Block, int]] = []  # with the bad rows before each
        n_ahead = -self._offset  # rows of the blocks from where we are
        for block in self.source.blocks(self._at, size):
            blocks.append((block, self.skipped))
            self.skipped += block.skipped
            n_ahead += len(block.rows)
            while n_ahead >= size:
                yield self._cut(blocks, size)
                n_ahead -= size
                self._offset += size
                self._window += 1
                self._taken = 0
        if n_ahead > 0:
            yield self._cut(blocks, n_ahead)

    def _cut(self, blocks: list[tuple[Block, int]], size: int) -> LabelledRows:
        """Return so many rows from where we are, and remember where that is."""
        while self._offset >= len(blocks[0][0].rows):
            self._offset -= len(blocks.pop(0)[0].rows)
        self._at, self._skipped_before = blocks[0][0].place, blocks[0][1]
        parts, begin, left = [], self._offset, size
        for block, _ in blocks:
            part = block.rows
            if begin > 0 or left < len(part):
                part = part[begin : begin + left]
            parts.append(part)
            begin, left = 0, left - len(part)
            if left == 0:
                break
        return joined(parts)

    def _share(self) -> float | None:
        """Return how much of the file was read, None if nobody knows."""
        return None if self._at is None else self.source.share(self._at)

    def position(self) -> dict[str, Any]:
        """Return where the stream is: after the last batch that it gave.

        Returns
        -------
        position : dict
            What ``json.dumps`` writes. A stream of the same file and settings goes on from there by
            :meth:`seek`, in another process too, and gives the batches that this one would.
        """
        place = {
            "pass": self._pass,
            "rows_read": self.rows_read,
            "window": self._window,
            "taken": self._taken,
            "offset": self._offset,
            "skipped_before": self._skipped_before,
        }
        if self._is_over:  # at the beginning of the next pass
            place = dict.fromkeys(place, 0) | {"pass": self._pass + 1}
        return {
            "version": _VERSION,
            "settings": self._settings(),
            "seed": self._seed,
            "passes": self.passes,
            "at": None if self._is_over else self._at,
            **place,
        }

    def seek(self, position: dict[str, Any]) -> None:
        """Go to where a stream was; the next loop goes on from there.

        Parameters
        ----------
        position : dict
            What :meth:`position` has returned, of a stream of the same file and settings.
        """
        try:
            if position["version"] != _VERSION:
                raise ValueError(f"is of version {position['version']}, not {_VERSION}")
            theirs, ours = position["settings"], json.loads(json.dumps(self._settings()))
            theirs = json.loads(json.dumps(theirs))
            unlike = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
            if unlike:
                name = unlike[0]
                raise ValueError(
                    f"is of a stream with {name}={theirs.get(name)!r}, and this one has "
                    f"{name}={ours.get(name)!r}"
                )
            numbers = {name: int(position[name]) for name in _NUMBERS}
            if min(numbers.values()) < 0:
                raise ValueError("has numbers below zero")
            at = position["at"]
            place = None if at is None else {str(name): int(at[name]) for name in at}
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"The position {error}.") from error
        self._turn += 1
        self._begin_pass(numbers["pass"])
        self.passes, self._seed, self._at = numbers["passes"], numbers["seed"], place
        self.rows_read, self._window = numbers["rows_read"], numbers["window"]
        self._taken, self._offset = numbers["taken"], numbers["offset"]
        self._skipped_before = self.skipped = numbers["skipped_before"]
        self._goes_on = True

    def _settings(self) -> dict[str, Any]:
        return {
            **self.source.settings(),
            "batch_size": self.batch_size,
            "shuffle_buffer": self.shuffle_buffer,
        }

    def feed(
        self,
        machine: Any,
        *,
        passes: int = 1,
        max_rows: int | None = None,
        callback: Callable[[Any, RowStream], Any] | None = None,
    ) -> Any:
        """Let a machine learn the rows to come, batch by batch, by its ``partial_fit``.

        Unlike a loop, it goes on from where the stream is: after a call that ``max_rows``, a
        callback, Ctrl-C or an error has ended, the next one takes the rows that follow.

        Parameters
        ----------
        machine : object with ``partial_fit``
            Of this library, of scikit-learn, or any other.
        passes : int, default=1
            How often the end of the rows is to be reached. Of a training that goes on, it is what
            is left: ``passes=5 - stream.passes``.
        max_rows : int or None, default=None
            Rows after which it ends, at the end of a batch.
        callback : callable, default=None
            ``callback(machine, stream)`` is called after each batch: to judge the machine, to write
            a :meth:`checkpoint`. If it returns True, that was the last.

        Returns
        -------
        machine : the machine
        """
        check_integer("passes", passes, least=0)
        if max_rows is not None:
            check_integer("max_rows", max_rows, least=1)
        if not hasattr(machine, "partial_fit"):
            raise TypeError(
                f"{type(machine).__name__} has no partial_fit, which a stream feeds. Where fit "
                "takes a stream, call fit(stream)."
            )
        last, fed, classes = self.passes + passes, 0, self.classes
        while self.passes < last:
            self._goes_on = True
            for X, y, *weight in self:
                told = {} if classes is None else {"classes": classes}
                if weight:
                    told["sample_weight"] = weight[0]
                machine.partial_fit(X, y, **told)
                classes = None  # which the first call alone has to know
                fed += X.shape[0]
                is_over = callback is not None and callback(machine, self) is True
                if is_over or (max_rows is not None and fed >= max_rows):
                    return machine
        return machine

    def checkpoint(self, folder: str | os.PathLike[str], machine: Any) -> None:
        """Save a machine together with the place up to which it has learned.

        A process that is killed at any moment leaves the last pair that was saved whole.

        Parameters
        ----------
        folder : path
            Made if need be.
        machine : estimator
            One that :func:`widemargin.save` saves.
        """
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        before = _checkpoint_of(target)
        # The file of the place names that of the machine, and is replaced last and at once.
        turn = 0 if before is None else (int(before["turn"]) + 1) % 2
        save(machine, target / f"machine-{turn}.widemargin")
        packed = {"turn": turn, "position": self.position()}
        replace_file(target / _PLACE_FILE, [json.dumps(packed).encode()])

    def resume(self, folder: str | os.PathLike[str]) -> Any:
        """Return the machine of a checkpoint, and go to the place where it was; None if none is.

        Parameters
        ----------
        folder : path
            That of :meth:`checkpoint`.

        Returns
        -------
        machine : estimator or None
        """
        packed = _checkpoint_of(Path(folder))
        if packed is None:
            return None
        machine = load(Path(folder) / f"machine-{int(packed['turn'])}.widemargin")
        self.seek(packed["position"])
        return machine


_NUMBERS = ("seed", "pass", "passes", "rows_read", "window", "taken", "offset", "skipped_before")


def _checkpoint_of(folder: Path) -> dict[str, Any] | None:
    try:
        packed: dict[str, Any] = json.loads((folder / _PLACE_FILE).read_text(encoding="utf-8"))
        if not {"turn", "position"} <= set(packed):
            raise ValueError("it lacks a part")
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{folder / _PLACE_FILE} is no place of a stream: {error}.") from error
    return packed


class _Silence:
    """Tells nothing."""

    def __enter__(self) -> _Silence:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def tell(self) -> None:
        pass

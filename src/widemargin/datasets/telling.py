"""How far a stream has come: a bar in a terminal that has rich, plain lines elsewhere."""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from widemargin.datasets.streams import RowStream

_PAUSE = 5.0  # seconds between lines
_LEAST_PAUSE = 0.1  # seconds between pictures of the bar


class Telling:
    """Tells of one loop over a stream, on standard error.

    Parameters
    ----------
    stream : RowStream
    """

    def __init__(self, stream: RowStream) -> None:
        self._stream = stream
        self._bar: Any = None
        self._first, self._begun = stream.rows_read, time.perf_counter()
        self._told = self._begun

    def __enter__(self) -> Telling:
        if sys.stderr.isatty() and importlib.util.find_spec("rich") is not None:
            progress = importlib.import_module("rich.progress")
            console = importlib.import_module("rich.console").Console(stderr=True)
            columns = "{task.description}", progress.BarColumn(), "{task.fields[words]}"
            self._bar = progress.Progress(*columns, console=console)
            self._task = self._bar.add_task(self._stream.source.path.name, total=1.0, words="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._show()
        if self._bar is not None:
            self._bar.stop()

    def tell(self) -> None:
        """Tell, unless that was just done."""
        pause = _PAUSE if self._bar is None else _LEAST_PAUSE
        if time.perf_counter() - self._told >= pause:
            self._show()

    def _show(self) -> None:
        self._told = time.perf_counter()
        if self._bar is None:
            line = f"[{self._stream.source.path.name}] {self.words()}"
            print(line, file=sys.stderr, flush=True)
        else:
            share = self._share()
            total = None if share is None else 1.0
            self._bar.update(self._task, completed=share or 0.0, total=total, words=self.words())

    def _share(self) -> float | None:
        stream = self._stream
        if stream.n_rows is not None:
            return min(1.0, (stream.rows_read + stream.skipped) / stream.n_rows)
        return stream._share()

    def words(self) -> str:
        """Return rows, their share of the pass, and rows a second."""
        stream, share = self._stream, self._share()
        rate = (stream.rows_read - self._first) / max(1e-9, self._told - self._begun)
        skipped = f", {stream.skipped:,} skipped" if stream.skipped else ""
        part = "" if share is None else f", {100 * share:.0f} %"
        return f"{stream.rows_read:,} rows{part}{skipped}, {rate:,.0f} rows/s"

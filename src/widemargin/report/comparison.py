"""What a comparison found: a row for each candidate, and what follows from all of them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from widemargin._system.files import replace_file

FORMAT = "widemargin comparison"
FORMAT_VERSION = 1
Kind = Literal["ours", "peer"]
T = TypeVar("T")


@dataclass(frozen=True)
class Candidate:
    """One machine of a comparison: how good, how fast and how large it is.

    Numbers that were not measured are NaN; ``note`` says why.

    Parameters
    ----------
    name : str
        What a table shows, such as "30 learned vectors" or "SVC".
    kind : {"ours", "peer"}
    settings : str
        What it was fitted with, and how that was chosen.
    family : {"kernel", "linear", "trees", "network", "constant"}, default="kernel"
        What it is made of.
    scores : tuple of float
        Score of each split that it was run on, in the order of ``splits``.
    splits : tuple of int
        The numbers of these splits.
    mean, spread : float
        Mean and standard deviation of the scores; the spread of a single one is NaN.
    difference, difference_error : float
        Mean of the paired differences from the best candidate (zero or less, but where splits are
        missing), and its standard error, which knows that training rows of splits overlap.
    batch_us, alone_us : float
        Microseconds a row, rows predicted together and one by one, in one thread.
    model_bytes : float
        Of ours those of the saved file, of others the length of the pickle.
    fit_seconds : float
        Mean over the splits, with the choice of settings.
    n_basis : int or None
        Vectors of a kernel machine.
    n_rows : int
        Rows that it was trained on in each split.
    on_frontier, on_frontier_alone : bool
        Whether no other candidate is as good and as fast: rows together, and one by one.
    note : str
        What a reader has to know: fewer rows, fewer splits, left out.
    """

    name: str
    kind: Kind
    settings: str
    family: str = "kernel"
    scores: tuple[float, ...] = ()
    splits: tuple[int, ...] = ()
    mean: float = math.nan
    spread: float = math.nan
    difference: float = math.nan
    difference_error: float = math.nan
    batch_us: float = math.nan
    alone_us: float = math.nan
    model_bytes: float = math.nan
    fit_seconds: float = math.nan
    n_basis: int | None = None
    n_rows: int = 0
    on_frontier: bool = False
    on_frontier_alone: bool = False
    note: str = ""

    @property
    def measured(self) -> bool:
        """Whether there is at least one score."""
        return bool(self.scores)


@dataclass(frozen=True)
class Comparison:
    """Candidates side by side, on the same splits of the same rows.

    Parameters
    ----------
    metric : str
        What the scores are, between 0 and 1, such as "accuracy".
    candidates : tuple of Candidate
        The best first; those that were left out last.
    recommendation : tuple of str
        What follows, a sentence each, the most important first.
    notes : tuple of str
        How it was measured.
    n_rows, n_features, n_outputs : int
        Rows, columns, and classes or labels of the data.
    n_train, n_test : int
        Rows to learn from and to test on in a split.
    n_splits : int
        Splits that were run.
    label_sets : bool
        Whether a row may have several labels.
    minutes : float
        The time that was allowed.
    seconds : float
        The time that it took.
    data, target : str
        Names of the data and of its target, where known.
    environment : dict of str
        Versions and processors.
    """

    metric: str
    candidates: tuple[Candidate, ...]
    recommendation: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    n_rows: int = 0
    n_features: int = 0
    n_outputs: int = 0
    n_train: int = 0
    n_test: int = 0
    n_splits: int = 0
    label_sets: bool = False
    minutes: float = math.nan
    seconds: float = math.nan
    data: str = ""
    target: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON can hold it: None for NaN, lists for tuples."""
        return {"format": FORMAT, "version": FORMAT_VERSION, **_plain(asdict(self))}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Self:
        """Return what ``to_dict`` was made of.

        Raises
        ------
        ValueError
            If it is something else, or of a newer version of this package.
        """
        if not isinstance(found, Mapping) or found.get("format") != FORMAT:
            raise ValueError(
                "This is no comparison: make one by 'widemargin compare DATA --output FILE'."
            )
        if found.get("version", math.inf) > FORMAT_VERSION:
            raise ValueError(
                f"This comparison is of version {found.get('version')}, and this widemargin knows "
                f"{FORMAT_VERSION}: use a newer widemargin, or compare again."
            )
        try:
            candidates = tuple(_read(Candidate, row) for row in found["candidates"])
            return _read(cls, {**found, "candidates": candidates})
        except (KeyError, TypeError) as error:
            raise ValueError(f"This comparison is damaged ({error}): compare again.") from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False)
        replace_file(path, [text.encode(), b"\n"])

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what ``save`` wrote.

        Raises
        ------
        ValueError
            If the file holds something else.
        """
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(
                f"{os.fsdecode(path)} is no JSON file ({error}): make one by 'widemargin compare "
                "DATA --output FILE'."
            ) from None
        return cls.from_dict(found)


def with_frontiers(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Mark those that no other is as good and as fast as; constants are in nobody's way."""
    able = [row for row in candidates if row.measured and row.family != "constant"]
    batch = {row.name for row in able if not _beaten(row, able, "batch_us")}
    alone = {row.name for row in able if not _beaten(row, able, "alone_us")}
    return tuple(
        replace(row, on_frontier=row.name in batch, on_frontier_alone=row.name in alone)
        for row in candidates
    )


def _beaten(row: Candidate, others: Sequence[Candidate], cost: str) -> bool:
    def figures(one: Candidate) -> tuple[float, float]:
        # Differences are of the same splits, means need not be.
        return one.difference, -getattr(one, cost)

    mine = figures(row)
    return any(
        figures(other) != mine and all(a >= b for a, b in zip(figures(other), mine, strict=True))
        for other in others
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _read(kind: type[T], found: Mapping[str, Any]) -> T:
    """Make a dataclass of a mapping: None is NaN where a number is asked for."""
    known: dict[str, Any] = {}
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name not in found:
            continue
        value = found[one.name]
        if value is None and one.type == "float":
            value = math.nan
        elif isinstance(value, list):
            value = tuple(value)
        known[one.name] = value
    return kind(**known)

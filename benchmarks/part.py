"""What a part of the benchmarks is; README.md says how one is made."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks import parts
from benchmarks.plans import Plan
from benchmarks.settings import Settings
from benchmarks.targets import Target

# A promise, the measured value (None where there is none), and the words for it.
Row = tuple[Target, float | None, str]


@dataclass(frozen=True)
class Part:
    """Functions that measure something and tell of it.

    ``measure(settings, wanted)`` gets the names of the data sets that it may read, and returns
    what ``target_rows`` and ``sections`` make text of; None if it could measure nothing.
    """

    measure: Callable[[Settings, list[str]], Any]
    target_rows: Callable[[Any], Iterable[Row]]
    sections: Callable[[Any], list[str]]
    datasets: tuple[str, ...] = ()
    plan: Plan | None = None  # what --tune tunes for it


def find_parts() -> dict[str, Part]:
    """Return every part by its name: the packages in ``parts``, each with a ``PART``."""
    return {
        name.replace("_", "-"): _module(name).PART
        for _, name, is_package in pkgutil.iter_modules(parts.__path__)
        if is_package
    }


def about(name: str) -> str:
    """Return the first line of the docstring of a part."""
    return (_module(name.replace("-", "_")).__doc__ or "").partition("\n")[0]


def _module(name: str) -> Any:
    return importlib.import_module(f"{parts.__name__}.{name}")

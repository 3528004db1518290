"""Fits of files that do not fit in memory: rows are learned as they are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from widemargin.cli._data import DataOptions, local_file
from widemargin.cli._machines import with_parameters
from widemargin.cli._output import note

_GROWTH = {"parquet": 8.0, "arrow": 2.0}  # memory that a fit takes, in sizes of the file
_TEXT_GROWTH, _COMPRESSED_GROWTH = 4.0, 5.0
_BATCH, _SHUFFLED = 4096, 1 << 16  # rows


def is_too_large(path: Path) -> bool:
    """Whether a file, read whole and learned from, would take more memory than is free."""
    from widemargin.datasets.compression import compression_of
    from widemargin.datasets.formats import format_by_name

    names = getattr(os, "sysconf_names", ())
    if not path.is_file() or "SC_AVPHYS_PAGES" not in names:
        return False
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    growth = _GROWTH.get(format_by_name(path) or "", _TEXT_GROWTH)
    if compression_of(path) is not None:
        growth *= _COMPRESSED_GROWTH
    return growth * path.stat().st_size > free


def fit_stream(
    data: str, options: DataOptions, machine: Any, given: dict[str, Any], passes: int
) -> tuple[Any, dict[str, Any]]:
    """Let a machine learn a file batch by batch; return the model and what is known of it.

    Numbers of a table are standardised, for which it is read once more before.
    """
    import widemargin

    path = local_file(data)
    note(f"{path}: rows are learned as they are read, {passes} times.")
    learner = widemargin.StochasticLinearClassifier() if machine is None else machine
    if not hasattr(learner, "partial_fit"):
        raise ValueError(
            f"{type(learner).__name__} needs all rows in memory; StochasticLinearClassifier, "
            "KernelClassifier, KernelPerceptron and KernelMIRA learn streams."
        )
    learner = with_parameters(learner, given)
    rows = _open(path, options)
    target, *names = rows.source.settings().get("columns", ("",))
    scaler, classes = (None, rows.classes) if not names else _surveyed(rows)
    first = {"classes": classes}
    for _ in range(passes):
        for X, y in rows:
            learner.partial_fit(X if scaler is None else scaler.transform(X), y, **first)
            first = {}
    facts = {"data": path.name, "n_rows": rows.rows_read, "target": [target] if target else []}
    if scaler is None:
        return learner, facts
    from sklearn.pipeline import Pipeline

    scaler.feature_names_in_ = np.array(names, dtype=object)
    return Pipeline([("columns", scaler), ("machine", learner)]), facts


def _open(path: Path, options: DataOptions) -> Any:
    import widemargin
    from widemargin.datasets.formats import format_of

    found = format_of(path) if options.format == "auto" else options.format
    asked: dict[str, Any] = {"format": found, "batch_size": _BATCH, "shuffle_buffer": _SHUFFLED}
    if found == "svmlight":
        asked |= {"n_features": "scan", "zero_based": options.zero_based}
    elif found in ("csv", "parquet"):
        kinds = _kinds(path, found, options)
        target = options.target if options.target is not None else list(kinds)[-1]
        if options.target is None:
            note(f"The target is the last column, {target!r}.")
        others = {name: kind for name, kind in kinds.items() if name != target}
        for name in [name for name, kind in others.items() if kind != "number"]:
            note(f"Column {name!r} is left out: texts need all rows in memory.")
            del others[name]
        asked |= {"target": target, "features": list(others)}
    skips = "skip" if options.skip_bad_rows else "raise"
    return widemargin.stream(path, **asked, random_state=0, on_error=skips, progress=True)


def _kinds(path: Path, format: str, options: DataOptions) -> dict[str, str]:
    """Return what columns are, by the first rows; those that learners cannot use are texts, too."""
    import pyarrow

    from widemargin.datasets.chunks import first_rows
    from widemargin.datasets.kinds import NUMBER, TEXT

    schema = first_rows(path, format).schema
    is_number = {
        each.name: pyarrow.types.is_integer(each.type) or pyarrow.types.is_floating(each.type)
        for each in schema
    }
    kept = [name for name in is_number if name not in options.drop]
    return {name: NUMBER if is_number[name] else TEXT for name in kept}


def _surveyed(rows: Any) -> tuple[Any, Any]:
    """Return a scaler that has seen all rows, and the classes that there are."""
    from sklearn.preprocessing import StandardScaler

    scaler, classes = StandardScaler(), None
    for X, y in rows:
        scaler.partial_fit(X)
        found = np.unique(y)
        classes = found if classes is None else np.union1d(classes, found)
    return scaler, classes

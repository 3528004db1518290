"""Models: files with what is known of where they come from, and a description in figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def save_model(model: Any, path: str, facts: dict[str, Any]) -> None:
    """Write a model file with facts about its data."""
    import widemargin

    widemargin.save(model, path, notes=facts)


def facts_of(path: str) -> dict[str, Any]:
    """Return what :func:`save_model` was told; nothing for files that others wrote."""
    from widemargin.model_files import read_notes

    return read_notes(path)


def describe(model: Any, path: str) -> dict[str, Any]:
    """Return what a fitted model is, in words and figures."""
    from widemargin.datasets.encoding import kinds_of, machine_of

    machine = machine_of(model)
    kinds = kinds_of(model)
    described: dict[str, Any] = {"machine": type(machine).__name__}
    if hasattr(machine, "n_basis_"):
        described["vectors"] = int(machine.n_basis_)
    described["features"] = int(model.n_features_in_) if kinds is None else len(kinds)
    classes = getattr(machine, "classes_", None)
    readout = getattr(machine, "readout_", None)
    if readout is not None and readout.tells_labels:
        described["labels"] = len(classes) if classes is not None else None
    elif classes is not None:
        described["classes"] = [each.item() if hasattr(each, "item") else each for each in classes]
    described["bytes"] = os.path.getsize(path) if Path(path).exists() else None
    return described

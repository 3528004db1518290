"""What a C file loses: the machine with the numbers of its tables, against the machine itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from widemargin.kernels import Precomputed, Rows
from widemargin.models import KernelExpansion, Model
from widemargin.readouts import Readout

Array: TypeAlias = npt.NDArray[Any]

_UNIT_ROWS = 1000


@dataclass(frozen=True)
class ExportLoss:
    """What a file loses against the machine it was made of, by the numbers in its tables.

    Attributes
    ----------
    score_difference : float
        The largest difference of a score, relative to the largest score.
    labels_changed : float or None
        Share of rows with another label. None for a model without labels.
    accuracy_before, accuracy_after : float or None
        Share of rows whose labels are right, where they were given.
    measured_on : {"rows", "basis vectors", "unit rows"}
        The rows that were given; else the basis vectors, or, for models without any, rows of
        zeros with a single 1.
    n_rows : int
    """

    score_difference: float
    labels_changed: float | None
    accuracy_before: float | None
    accuracy_after: float | None
    measured_on: str
    n_rows: int


def measure_loss(
    before: Model, after: Model, readout: Readout | None, rows: Rows | None, y: Any
) -> ExportLoss:
    """Return how scores and labels of a model change, on rows or, without any, on its own.

    Parameters
    ----------
    before, after : Model
    readout : Readout or None
    rows : array or CSR matrix, or None
    y : array-like or None
        Labels of the rows.
    """
    measured_on = "rows"
    if rows is None:
        rows, measured_on = _rows_of_model(before)
    scores, kept = before.scores(rows), after.scores(rows)
    largest = float(np.abs(scores).max(initial=0.0)) or 1.0
    changed = accuracy_before = accuracy_after = None
    if readout is not None:
        labels, labels_kept = _labels(scores, readout), _labels(kept, readout)
        changed = _share_wrong(labels, labels_kept)
        if y is not None:
            truth = y.toarray() if sp.issparse(y) else np.asarray(y)
            accuracy_before = 1 - _share_wrong(labels, truth)
            accuracy_after = 1 - _share_wrong(labels_kept, truth)
    difference = float(np.abs(kept - scores).max(initial=0.0)) / largest
    return ExportLoss(
        difference, changed, accuracy_before, accuracy_after, measured_on, rows.shape[0]
    )


def _rows_of_model(model: Model) -> tuple[Rows, str]:
    if isinstance(model, KernelExpansion) and not isinstance(model.kernel, Precomputed):
        return model.basis.astype(np.float64), "basis vectors"
    if isinstance(model, KernelExpansion):
        places = np.asarray(model.basis)
    else:
        places = np.arange(model.n_features)
    places = places[: min(len(places), _UNIT_ROWS)]
    ones = sp.csr_matrix(
        (np.ones(len(places)), (np.arange(len(places)), places)),
        shape=(len(places), model.n_features),
    )
    return ones, "unit rows"


def _labels(scores: Array, readout: Readout) -> Array:
    if readout.tells_labels:
        return readout.indicators(scores)
    best = (scores[:, 0] > 0) if readout.kind == "binary" else scores.argmax(axis=1)
    return readout.labels_of(best.astype(np.intp))


def _share_wrong(labels: Array, truth: Array) -> float:
    wrong = np.asarray(labels != truth)
    rows = wrong.any(axis=1) if wrong.ndim == 2 else wrong
    return float(rows.mean()) if rows.size else 0.0

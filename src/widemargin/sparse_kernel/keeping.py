"""What a machine keeps of the one it was made from: figures, and the words for them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin.sparse_kernel.classifier import SparseKernelClassifier

Array: TypeAlias = npt.NDArray[Any]


def figures(
    on_the_way: list[Array],
    targets: Array | None,
    before: npt.NDArray[np.intp],
    labels: npt.NDArray[np.intp] | None,
    weights: Array,
) -> dict[str, Array]:
    """Return entries of a history, one a size: what the machine kept of the full one."""
    after = [_best(scores) for scores in on_the_way]
    history = {"agreement": [float(np.average(each == before, weights=weights)) for each in after]}
    if targets is not None:
        spread = _spread(targets, weights)
        history["r2"] = [1.0 - _squares(each - targets, weights) / spread for each in on_the_way]
    if labels is not None:
        history["accuracy"] = [_accuracy(each, labels, weights) for each in after]
    return {name: np.array(values) for name, values in history.items()}


def _best(scores: Array) -> npt.NDArray[np.intp]:
    """Return the number of the best class of each row; two classes may have one score."""
    return scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.intp)


def _accuracy(numbers: Array, labels: Array, weights: Array) -> float:
    """Return the share of right classes among rows with labels; NaN where none has weight."""
    counted = weights * (labels >= 0)
    return float(np.average(numbers == labels, weights=counted)) if counted.any() else np.nan


def _spread(targets: Array, weights: Array) -> float:
    """Return the variance of scores, summed; of scores that are all equal, their squares."""
    about_mean = _squares(targets - np.average(targets, axis=0, weights=weights), weights)
    about_zero = _squares(targets, weights)
    rounding = np.finfo(np.float64).eps * about_zero
    return max(about_mean if about_mean > rounding else about_zero, np.finfo(np.float64).tiny)


def _squares(values: Array, weights: Array) -> float:
    return float(weights @ np.einsum("ij,ij->i", values, values, dtype=np.float64))


def summary(
    sizes: str,
    machine: SparseKernelClassifier,
    before: npt.NDArray[np.intp],
    labels: npt.NDArray[np.intp] | None,
    weights: Array,
) -> str:
    """Return what is printed of a machine, beside the classes that were told before."""
    last = {name: values[-1] for name, values in machine.history_.items()}
    text = f"{sizes}: {100 * last['agreement']:.2f} % of the rows keep their class"
    if "r2" in last:
        text += f", {100 * last['r2']:.2f} % of the variance of the scores is kept"
    if labels is not None:
        accuracy = _accuracy(before, labels, weights)
        text += f"\naccuracy {100 * accuracy:.2f} % -> {100 * last['accuracy']:.2f} %"
    return text

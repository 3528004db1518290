"""What is exported: the model and the readout of whatever a caller hands over."""

from __future__ import annotations

import math
from typing import Any

from sklearn.utils.validation import check_is_fitted

from widemargin.compiled import CompiledPredictor
from widemargin.estimation.base import BaseClassifier
from widemargin.kernels import CustomKernel, Kernel, KernelSum
from widemargin.models import KernelExpansion, LinearMap, Model
from widemargin.preparation import CompiledPipeline, PreparedMachine, is_pipeline, prepared
from widemargin.readouts import Readout

_LARGEST_SAFE_INTEGER = 2**53 - 1  # of JavaScript, whose numbers are all of double precision


def resolve(estimator_or_model: Any) -> tuple[Model, Readout | None]:
    """Return the model to export, and how its scores are read.

    Parameters
    ----------
    estimator_or_model : estimator, CompiledPredictor, PreparedMachine or Model
        An estimator must be fitted.

    Returns
    -------
    model : Model
        An expansion in the linear kernel comes as the linear map that it is.
    readout : Readout or None
        None for a bare model, which has scores and nothing else.
    """
    model, readout = _parts(estimator_or_model)
    if isinstance(model, KernelExpansion):
        kernels: list[Kernel | str] = [model.kernel]
        if isinstance(model.kernel, KernelSum):
            kernels = [part.kernel for part in model.kernel]
        for kernel in kernels:
            if isinstance(kernel, CustomKernel):
                raise TypeError(
                    f"The kernel {kernel.function!r} is a Python function, which no other runtime "
                    "can call. Train with a kernel of widemargin.kernels to export the machine."
                )
        return model.collapsed() or model, readout
    return model.dense() if isinstance(model, LinearMap) else model, readout


def preparation_of(source: Any) -> PreparedMachine | None:
    """Return a pipeline as data, with what rows go through before they reach its model.

    None of a bare machine.
    """
    if isinstance(source, CompiledPipeline):
        return source._prepared
    return prepared(source) if is_pipeline(source) else None


def feature_names_of(source: Any) -> list[str] | None:
    """Return the names of the features that an estimator was trained with, if any."""
    if isinstance(source, PreparedMachine):
        return None if source.feature_names is None else list(source.feature_names)
    names = getattr(source, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def plain_labels(classes: Any) -> list[Any]:
    """Return class labels as numbers, where JavaScript holds all of them, or as texts."""
    labels = classes.tolist()
    is_held = all(
        isinstance(label, float) and math.isfinite(label)
        if not isinstance(label, int)
        else abs(label) <= _LARGEST_SAFE_INTEGER
        for label in labels
    )
    return labels if is_held else [str(label) for label in labels]


def _parts(source: Any) -> tuple[Model, Readout | None]:
    if isinstance(source, Model):
        return source, None
    if isinstance(source, PreparedMachine):
        return source.model, source.readout
    if isinstance(source, CompiledPredictor):
        return source._model, source._readout
    if isinstance(source, BaseClassifier):
        check_is_fitted(source)
        return source.model_, source.readout_
    if isinstance(source, type) and issubclass(source, (BaseClassifier, Model)):
        raise TypeError(f"{source.__name__} is a class: export a fitted object of it.")
    raise TypeError(
        "Only a fitted estimator of widemargin, a Pipeline that ends in one, what they compile to, "
        f"or a Model can be exported, got {type(source).__name__}."
    )

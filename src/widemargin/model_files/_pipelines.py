"""Pipelines in a model file: the steps before the machine, beside what a file has of a machine."""

from __future__ import annotations

from typing import Any

import sklearn
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.pipeline import Pipeline

from widemargin._system.warnings import warn_user
from widemargin.model_files._checks import require
from widemargin.model_files._codec import Encoder, is_text
from widemargin.model_files._decoder import Decoder
from widemargin.model_files._steps import StepDecoder, StepEncoder
from widemargin.preparation import prepared

_LONGEST_VERSION = 40  # letters


def split(pipeline: Any) -> tuple[Pipeline, str, Any]:
    """Return the steps before the machine as a pipeline, the machine's name, and the machine."""
    steps = list(pipeline.steps)
    while type(steps[-1][1]) is Pipeline:
        steps[-1:] = steps[-1][1].steps
    return Pipeline(steps[:-1], verbose=pipeline.verbose), *steps[-1]


def describe(before: Pipeline, name: str, machine: Any, encoder: Encoder) -> dict[str, Any]:
    """Return the part of the document that has the steps.

    Parameters
    ----------
    before : Pipeline
        Steps before the machine.
    name : str
        Of the machine.
    machine : estimator
    encoder : Encoder
        Whose tensors the arrays join.
    """
    prepared(Pipeline([*before.steps, (name, machine)]), fold=False)  # names a step in the way
    steps = StepEncoder()
    steps.tensors = encoder.tensors
    return {
        "sklearn": sklearn.__version__,
        "machine": name,
        "before": steps.encode(before, "steps"),
    }


def build(node: Any, machine: Any, decoder: Decoder) -> Pipeline:
    """Put a pipeline together, and check that it is one.

    Parameters
    ----------
    node : object
        What ``describe`` has made.
    machine : estimator
        The last step.
    decoder : Decoder
        Of the file.
    """
    require(isinstance(node, dict), "the pipeline", "is none")
    require(set(node) == {"sklearn", "machine", "before"}, "the pipeline", "has other fields")
    version, name = node["sklearn"], node["machine"]
    texts = isinstance(version, str) and isinstance(name, str) and is_text(version + name)
    require(texts, "the pipeline", "has no names")
    steps = StepDecoder(decoder, same_library=version == sklearn.__version__)
    before = steps.decode(node["before"], "steps")
    require(type(before) is Pipeline and isinstance(before.steps, list), "steps", "are no pipeline")
    pipeline = Pipeline([*before.steps, (name, machine)], verbose=before.verbose)
    prepared(pipeline, fold=False)
    if version != sklearn.__version__:
        warn_user(
            InconsistentVersionWarning(
                estimator_name="Pipeline",
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=version[:_LONGEST_VERSION],
            ),
            InconsistentVersionWarning,
        )
    return pipeline

"""Who wraps a machine in a graph of skl2onnx, and what is asked of the machine there.

The converters of scikit-learn's meta-estimators declare two outputs of what they wrap: a label and
a table. What they take the table for differs, and the option ``raw_scores`` by which they say so is
lost in the pipelines and searches between. So the wrapper is looked up among the operators, and
gets what scikit-learn's meta-estimator computes with. Where a converter of skl2onnx cannot be right
whatever it gets, the machine refuses to be converted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline

from widemargin.estimation.base import BaseClassifier
from widemargin.export._onnx import Columns
from widemargin.readouts import Readout

Table: TypeAlias = Columns | Literal["scores", "probabilities"]


def core(model: Any) -> Any:
    """Return what predicts inside pipelines and searches, which hand on what it gives."""
    while not isinstance(model, BaseClassifier):  # a machine that searches by itself is one machine
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            break
    return model


def option(source: Any, estimator: Any, name: str) -> bool:
    """Return whether an option is set, according to a scope or a container of skl2onnx."""
    options = source.get_options(estimator, {name: False}, fail=False)
    return bool(options and options[name])


def guises(scope: Any, machine: Any) -> list[Any]:
    """Return the operators that are the machine, or pipelines and searches around it alone."""
    return [
        operator for operator in scope.operators.values() if core(operator.raw_operator) is machine
    ]


def wrappers(scope: Any, machine: Any) -> list[Any]:
    """Return the meta-estimators that compute with what the machine gives."""
    found: list[Any] = []
    for operator in scope.operators.values():
        model = operator.raw_operator
        if any(core(member) is machine for member in _members(model)) and all(
            model is not other for other in found
        ):
            found.append(model)
    return found


def _all_wrappers(scope: Any, machine: Any) -> list[Any]:
    """Return the meta-estimators around a machine, those around them, and so on."""
    found = wrappers(scope, machine)
    for wrapper in found:  # which grows meanwhile
        found += [
            outer
            for outer in wrappers(scope, wrapper)
            if all(outer is not other for other in found)
        ]
    return found


def _members(model: Any) -> Sequence[Any]:
    """Return the fitted estimators that a meta-estimator wraps."""
    if isinstance(model, CalibratedClassifierCV):
        return [calibrated.estimator for calibrated in model.calibrated_classifiers_]
    if isinstance(model, TunedThresholdClassifierCV):
        return [model.estimator_]
    if isinstance(model, StackingClassifier):
        return [*model.estimators_, model.final_estimator_]
    if isinstance(
        model,
        (
            AdaBoostClassifier,
            BaggingClassifier,
            MultiOutputClassifier,
            OneVsOneClassifier,
            OneVsRestClassifier,
            VotingClassifier,
        ),
    ):
        return list(model.estimators_)
    return []


def asked_table(scope: Any, machine: Any, readout: Readout, raw_scores: bool) -> Table:
    """Return what the second of two outputs has to be.

    Parameters
    ----------
    scope : skl2onnx.common._topology.Scope
        Where the operators of the graph are declared.
    machine : estimator
        The machine that is converted.
    readout : Readout
        How its scores are read.
    raw_scores : bool
        Whether scores are asked for even if there are probabilities.

    Raises
    ------
    ValueError
        Where the file would not predict as scikit-learn does.
    """
    around = wrappers(scope, machine)
    for wrapper in _all_wrappers(scope, machine):
        _refuse_wrong_conversion(scope, wrapper, machine)
    tables = {_table(wrapper, machine, readout, raw_scores) for wrapper in around or [None]}
    if len(tables) > 1:
        raise ValueError(
            f"{' and '.join(type(wrapper).__name__ for wrapper in around)} share one fitted "
            f"{type(machine).__name__} and ask different things of it. Give each a copy."
        )
    return tables.pop()


def _table(wrapper: Any, machine: Any, readout: Readout, raw_scores: bool) -> Table:
    if isinstance(wrapper, StackingClassifier) and core(wrapper.final_estimator_) is not machine:
        return _stacked(wrapper, machine)
    # scikit-learn's versions of these two prefer decision_function to predict_proba.
    if raw_scores or isinstance(wrapper, (CalibratedClassifierCV, OneVsOneClassifier)):
        return "class_scores"
    if readout.link is not None:
        return "probabilities"
    if wrapper is None or isinstance(wrapper, MultiOutputClassifier):  # nothing computes with it
        return "scores"
    # Two classes are told apart, and labels chosen, by whether the second column is above 1/2.
    return "halved_scores" if isinstance(wrapper, OneVsRestClassifier) else "class_scores"


def _stacked(wrapper: StackingClassifier, machine: Any) -> Table:
    """Return what a member of a stack gives to the final estimator.

    The tables of all members are joined as they are, except that of two classes the second column
    is taken where every member gives probabilities.
    """
    method = _methods(wrapper, machine)[0]
    if method == "predict":
        return "label_column"
    if method == "decision_function":
        return "score_columns"
    if len(wrapper.classes_) > 2 or set(wrapper.stack_method_) == {"predict_proba"}:
        return "probabilities"
    return "second_probability"


def _methods(wrapper: StackingClassifier, machine: Any) -> list[str]:
    """Return by which methods a stack asks a machine, mostly one."""
    return [
        method
        for member, method in zip(wrapper.estimators_, wrapper.stack_method_, strict=True)
        if core(member) is machine
    ]


def _refuse_wrong_conversion(scope: Any, wrapper: Any, machine: Any) -> None:
    """Raise an error where skl2onnx is wrong for every estimator inside this wrapper."""
    fault = _fault(wrapper, option(scope, wrapper, "raw_scores")) or _fault_of_labels(wrapper)
    if fault is not None:
        raise ValueError(
            f"This {type(wrapper).__name__} around {type(machine).__name__} would not predict in "
            f"ONNX as it does in scikit-learn: skl2onnx {fault}"
        )


def _fault(wrapper: Any, raw_scores: bool) -> str | None:
    """Return what the converter of a wrapper does wrong, and what to do instead."""
    if isinstance(wrapper, CalibratedClassifierCV) and wrapper.method == "isotonic":
        return (
            "takes the nearest step of an isotonic calibration where scikit-learn interpolates. "
            'Calibrate with method="sigmoid".'
        )
    if isinstance(wrapper, BaggingClassifier) and not (
        raw_scores or hasattr(wrapper.estimators_[0], "predict_proba")
    ):
        return (
            "counts the votes of machines without predict_proba along the wrong axis. Train with "
            'loss="logistic".'
        )
    if isinstance(wrapper, TunedThresholdClassifierCV):
        return "leaves out the threshold. Convert its estimator_ and apply best_threshold_ to it."
    if isinstance(wrapper, OneVsRestClassifier) and wrapper.multilabel_ and raw_scores:
        return "compares scores with 1/2 instead of 0. Convert it without raw_scores."
    weighted = isinstance(wrapper, VotingClassifier) and wrapper.weights is not None
    if weighted and len(wrapper.weights) != len(wrapper.estimators_):
        return "mixes up the weights where a member was dropped. Leave the member out instead."
    if isinstance(wrapper, StackingClassifier):
        return _fault_of_stack(wrapper)
    return None


def _fault_of_labels(wrapper: Any) -> str | None:
    """Return which labels do not pass through the converter of a wrapper."""
    if isinstance(wrapper, OneVsOneClassifier) and not _are_numbers_from_zero(wrapper.classes_):
        return (
            "gives the numbers of the classes instead of their labels. Train with the labels 0 to "
            "n_classes - 1, or without the wrapper: the machine tells many classes apart by itself."
        )
    if isinstance(wrapper, MultiOutputClassifier) or wrapper.classes_.dtype.kind not in "if":
        return None
    # Two converters write labels as single-precision numbers, the others as int32.
    single = isinstance(wrapper, (OneVsRestClassifier, VotingClassifier))
    largest = 2**24 if single else 2**31 - 1
    if np.abs(wrapper.classes_).max() <= largest:
        return None
    return f"keeps labels up to {largest} only. Train with smaller ones, or with strings."


def _are_numbers_from_zero(classes: Any) -> bool:
    return classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))


def _fault_of_stack(wrapper: StackingClassifier) -> str | None:
    """Return what goes wrong with the other members of a stack, if anything."""
    probabilities = set(wrapper.stack_method_) == {"predict_proba"}
    for member, method in zip(wrapper.estimators_, wrapper.stack_method_, strict=True):
        surplus = len(wrapper.classes_) == 2 and not probabilities
        if not isinstance(core(member), BaseClassifier) and (surplus or method == "predict"):
            return (
                f"hands on other columns of {type(core(member)).__name__} than the final estimator "
                "was trained with. Let all members give probabilities "
                '(stack_method="predict_proba").'
            )
    return None

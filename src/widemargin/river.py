"""Learners of this library by the habits of river: a row is a dict, and comes alone.

river need not be installed. Where it is, :class:`RiverClassifier` is one of its classifiers, so
that pipelines, metrics and checks of river take it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import numpy as np
from sklearn.base import clone

from widemargin.full_kernel.classifier import KernelClassifier
from widemargin.kernels import Rows


def _base() -> Any:
    try:
        return importlib.import_module("river.base").Classifier
    except ImportError:
        return object


__all__ = ["RiverClassifier"]

_GROWTH = 1.5  # of the columns of a machine, when there are features that it has no room for


class RiverClassifier(_base()):  # type: ignore[misc]  # a class of river, or object
    """A machine with ``partial_fit`` that learns and predicts one dict of features at a time.

    Features are known by their names, in any order. One that a row lacks is 0 there, so that rows
    of few features out of many are short dicts; one that comes later was 0 until then. To predict,
    features are ignored that no row to learn from has had.

    Parameters
    ----------
    machine : estimator
        A classifier of this library with ``partial_fit``, such as
        ``KernelClassifier(gamma=0.5, budget=2000)``. It is cloned, and stays as it is.

    Attributes
    ----------
    machine_ : estimator
        The clone that learns; there once it has learned a row. It is saved, compiled and exported
        as any other.
    features_ : list
        Names of the features, in the order of the columns of ``machine_``. Further columns are
        room for features to come.

    Examples
    --------
    >>> from widemargin import KernelClassifier
    >>> from widemargin.river import RiverClassifier
    >>> learner = RiverClassifier(KernelClassifier(gamma=0.5, budget=100, random_state=0))
    >>> learner.predict_one({"height": 1.0}) is None
    True
    >>> learner.learn_one({"height": 1.0, "width": 2.0}, "door")
    >>> learner.learn_one({"width": 0.5}, "window")
    >>> learner.predict_one({"width": 1.9, "height": 1.2})
    'door'
    """

    def __init__(self, machine: Any) -> None:
        if not hasattr(machine, "partial_fit"):
            raise TypeError(
                f"{type(machine).__name__} has no partial_fit, which learning row by row needs."
            )
        self.machine = machine
        self.machine_: Any
        self.features_: list[Any] = []
        self._columns: dict[Any, int] = {}

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"machine": KernelClassifier(gamma=0.1, random_state=0)}

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: Mapping[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn a row.

        Parameters
        ----------
        x : dict
            Numbers by the names of their features. Text is for an encoder of river before this
            one, such as ``river.preprocessing.OneHotEncoder``.
        y : label
            Its class; one that is new joins.
        w : float, default=1.0
            What the row counts.
        """
        _check_numbers(x)
        columns = self._columns
        if not columns.keys() >= x.keys():
            new = [name for name in x if name not in columns]
            columns = columns | {name: len(columns) + i for i, name in enumerate(new)}
        machine: Any = self.__dict__.get("machine_")
        is_first = machine is None
        if is_first:
            machine = clone(self.machine)
            width = max(1, len(columns))
        else:
            width = machine.n_features_in_
            if len(columns) > width:
                width = max(len(columns), int(_GROWTH * width))
                machine._widen(width)
        row = _row(x, columns, width)
        weight = {} if w == 1.0 else {"sample_weight": [w]}
        machine.partial_fit(row, np.asarray([y]), **weight)
        # Only now: a row that was refused leaves nothing behind.
        if columns is not self._columns:
            self._columns, self.features_ = columns, list(columns)
        if is_first:
            self.machine_ = machine

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Any:
        """Return the class of a row; None where nothing was learned.

        Parameters
        ----------
        x : dict
            Numbers by the names of their features.
        **kwargs : dict
            What pipelines of river hand on; of no meaning here.

        Returns
        -------
        y : label or None
        """
        machine = self.__dict__.get("machine_")
        if machine is None:
            return None
        row = self._known_row(x)
        machine._check_new_rows(row)
        return machine.classes_[machine._best(row)[0]].item()

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return the probability of each class, where the machine has probabilities.

        Parameters
        ----------
        x : dict
            Numbers by the names of their features.
        **kwargs : dict
            What pipelines of river hand on; of no meaning here.

        Returns
        -------
        probabilities : dict
            By class; empty where nothing was learned.
        """
        machine = self.__dict__.get("machine_")
        if not hasattr(self.machine if machine is None else machine, "predict_proba"):
            # As river wants it: its metrics and checks ask for predict_one then.
            raise NotImplementedError(
                f"{type(self.machine).__name__} gives scores, not probabilities."
            )
        if machine is None:
            return {}
        probabilities = machine.predict_proba(self._known_row(x))[0]
        return dict(zip(machine.classes_.tolist(), probabilities.tolist(), strict=True))

    def _known_row(self, x: Mapping[Any, Any]) -> Rows:
        """Return a row with the features that are known."""
        _check_numbers(x)
        columns = self._columns
        if not columns.keys() >= x.keys():
            x = {name: value for name, value in x.items() if name in columns}
        return _row(x, columns, self.machine_.n_features_in_)


def _row(x: Mapping[Any, Any], columns: Mapping[Any, int], width: int) -> Rows:
    # A list first: to write single numbers into an array takes several times as long.
    numbers = [0.0] * width
    for name, value in x.items():
        numbers[columns[name]] = value
    return np.array([numbers], dtype=np.float64)


def _check_numbers(x: Mapping[Any, Any]) -> None:
    """Require finite numbers; an error names the first that is none."""
    try:
        if all(map(isfinite, x.values())):
            return
    except (TypeError, OverflowError):
        pass
    for name, value in x.items():
        if isinstance(value, (str, bytes)):
            raise ValueError(
                f"The feature {name!r} is text, {str(value)[:40]!r}, and kernels compute with "
                "numbers. Encode it first, for example by river.preprocessing.OneHotEncoder."
            )
        number = np.asarray(value)
        if number.ndim or number.dtype.kind not in "fiub" or not np.isfinite(number):
            raise ValueError(
                f"The feature {name!r} is {value!r}, which is no finite number. Leave it out, "
                "which means 0, or fill it in, for example by river.preprocessing.StatImputer."
            )

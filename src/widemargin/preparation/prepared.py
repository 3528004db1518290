"""A machine and all that is done to rows before it, as data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from widemargin.estimation.base import BaseClassifier
from widemargin.models import Model
from widemargin.preparation.columns import Column
from widemargin.preparation.folding import folded
from widemargin.preparation.operations import Operation, Pick
from widemargin.preparation.steps import Draft, after_step
from widemargin.readouts import Readout


@dataclass(frozen=True, eq=False)
class PreparedMachine:
    """A fitted machine, and what rows go through before they reach it. All of it is data.

    A row comes in as ``n_features`` values. ``columns`` says which of them are read, and which are
    categories with a code for each; that gives a row of numbers. ``operations`` are done to it, one
    after the other. Then ``model`` has scores for it, and ``readout`` labels for these.

    Attributes
    ----------
    n_features : int
        Values of a row that comes in.
    feature_names : tuple of str or None
        Of these values, where the pipeline was fitted with a table.
    columns : tuple of Column
    operations : tuple of Operation
    model : Model
    readout : Readout
    by_name : bool
        Whether columns of tables are found by their names, whatever their order, as a
        ColumnTransformer does.
    """

    n_features: int
    feature_names: tuple[str, ...] | None
    columns: tuple[Column, ...]
    operations: tuple[Operation, ...]
    model: Model
    readout: Readout
    by_name: bool = False

    @property
    def is_bare(self) -> bool:
        """Whether rows reach the model as they come in."""
        return not self.operations and self.reads_all

    @property
    def reads_all(self) -> bool:
        """Whether all values are read in their order, as numbers."""
        sources = [column.source for column in self.columns]
        return not self.has_categories and sources == list(range(self.n_features))

    @property
    def has_categories(self) -> bool:
        """Whether some columns are categories."""
        return any(column.categories is not None for column in self.columns)

    @property
    def has_texts(self) -> bool:
        """Whether some columns are texts."""
        return any(c.categories is not None and c.categories.are_texts for c in self.columns)


def is_pipeline(source: Any) -> bool:
    """Whether this is a Pipeline of scikit-learn, or one in its manner."""
    return isinstance(source, Pipeline)


def prepared(machine: Any, *, fold: bool = True) -> PreparedMachine:
    """Return a fitted machine or pipeline as data.

    Parameters
    ----------
    machine : estimator of widemargin, or Pipeline that ends in one
        A fitted one.
    fold : bool, default=True
        Whether operations become part of the model where they can. The vectors of the model are
        then rows as they come in.

    Returns
    -------
    prepared : PreparedMachine

    Raises
    ------
    TypeError
        If a step cannot be told in operations: the message has its name.
    """
    steps = machine.steps if is_pipeline(machine) else [("machine", machine)]
    name, last = steps[-1]
    while is_pipeline(last):
        steps = [*steps[:-1], *last.steps]
        name, last = steps[-1]
    if not isinstance(last, BaseClassifier):
        raise TypeError(
            f"The last step {name!r} must be an estimator of widemargin, got a "
            f"{type(last).__name__}."
        )
    check_is_fitted(last)
    first = next((step for _, step in steps if _does_something(step)), last)
    n_features = int(first.n_features_in_ if hasattr(first, "n_features_in_") else _width(machine))
    draft = Draft.of_width(n_features)
    for name, step in steps[:-1]:
        draft = after_step(step, draft, name)
    try:
        draft = draft.numbers()
    except TypeError as error:
        raise TypeError(f"The pipeline gives no numbers to its last step: {error}.") from None
    if draft.width != last.model_.n_features:
        raise ValueError(
            f"The steps before it give {draft.width} columns, and the last one takes "
            f"{last.model_.n_features}."
        )
    columns, operations, model = draft.columns, draft.operations, last.model_
    if fold:
        operations, model = folded(operations, model)
    names = getattr(first, "feature_names_in_", None)
    found = PreparedMachine(
        n_features,
        None if names is None else tuple(str(each) for each in names),
        columns,
        operations,
        model,
        last.readout_,
        isinstance(first, ColumnTransformer),
    )
    return _read_directly(found)


def _does_something(step: Any) -> bool:
    return step is not None and not isinstance(step, str)


def _width(machine: Any) -> int:
    return int(machine.n_features_in_)


def _read_directly(found: PreparedMachine) -> PreparedMachine:
    """Return the same with columns that are read in the order in which they are needed."""
    if not found.operations:
        return found
    first, *rest = found.operations
    if not (isinstance(first, Pick) and first.only_copies):
        return found
    columns = tuple(found.columns[place] for place in np.asarray(first.columns))
    return replace(found, columns=columns, operations=tuple(rest))

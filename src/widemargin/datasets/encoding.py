"""From the columns of a table to the numbers that machines compute with, and back to the columns.

What a machine of a table learns from is a Pipeline: numbers get the median where they are missing,
and are standardised; each text is a column of 0 and 1. Of many texts the frequent ones are, and all
others together. What the rows do not need is left out, as every step costs a prediction time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin.datasets.blocks import Array
from widemargin.datasets.kinds import NUMBER, TEXT
from widemargin.solvers.units.values import have_one_unit

MOST_CATEGORIES = 100  # of a column, each with a number of its own


def encoder_for(
    kinds: Mapping[str, str], X: Any = None, *, keeps_one_unit: bool = False
) -> ColumnTransformer | None:
    """Return what turns the columns of a table into numbers, unfitted.

    Parameters
    ----------
    kinds : mapping of str
        "number" or "text" for each column, as :attr:`Table.kinds` has them.
    X : pandas.DataFrame, default=None
        The rows to learn from. Without missing numbers among them, nothing fills these in; None
        does so in any case.
    keeps_one_unit : bool, default=False
        Whether numbers that are all of one unit, as the pixels of an image, are not standardised:
        kernels of distances do better without.

    Returns
    -------
    encoder : ColumnTransformer or None
        None where numbers are to stay as they are.
    """
    numbers = [name for name, kind in kinds.items() if kind == NUMBER]
    texts = [name for name, kind in kinds.items() if kind == TEXT]
    steps: list[tuple[str, Any, list[str]]] = []
    values = None if X is None or not numbers else np.asarray(X[numbers], dtype=np.float64)
    prepared: list[Any] = []
    if values is None or np.isnan(values).any():
        prepared.append(SimpleImputer(strategy="median"))
    is_one_unit = keeps_one_unit and values is not None and not texts and _is_one_unit(values)
    if not is_one_unit:
        prepared.append(StandardScaler())
    if numbers and prepared:
        steps.append(("numbers", make_pipeline(*prepared), numbers))
    if texts:
        # A text that training had not is none of the known ones: zero in all of their columns.
        encoded = OneHotEncoder(
            handle_unknown="ignore", max_categories=MOST_CATEGORIES, sparse_output=False
        )
        steps.append(("texts", encoded, texts))
    return ColumnTransformer(steps, verbose_feature_names_out=False) if steps else None


def _is_one_unit(values: Array) -> bool:
    known = values[:, ~np.isnan(values).all(axis=0)]
    return have_one_unit(np.where(np.isnan(known), np.nanmean(known, axis=0), known))


def pipeline_for(kinds: Mapping[str, str], machine: Any, X: Any = None) -> Any:
    """Return a Pipeline of encoder and machine; the machine alone where nothing is to be encoded.

    Parameters
    ----------
    kinds : mapping of str
        "number" or "text" for each column, as :attr:`Table.kinds` has them; empty for sparse rows.
    machine : estimator
        Unfitted.
    X : pandas.DataFrame, default=None
        The rows to learn from, which may need less than all steps.

    Returns
    -------
    model : Pipeline or estimator
        Unfitted.

    Examples
    --------
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.datasets import pipeline_for
    >>> kinds = {"weight": "number", "colour": "text"}
    >>> pipeline_for(kinds, SparseKernelClassifier()).named_steps.keys()
    dict_keys(['columns', 'machine'])
    """
    if not kinds:
        return machine
    encoder = encoder_for(kinds, X, keeps_one_unit=_goes_by_distances(machine))
    if encoder is None:
        return machine
    return Pipeline([("columns", encoder), ("machine", machine)])


def _goes_by_distances(machine: Any) -> bool:
    """Whether a machine has a kernel of distances, or chooses one for itself."""
    parameters = machine.get_params(deep=False)
    return parameters.get("kernel", "rbf") == "rbf" and (
        "kernel" in parameters or "widths" in parameters
    )


def kinds_of(model: Any) -> dict[str, str] | None:
    """Return the columns that a fitted model asks for and what they are; None if it names none.

    Parameters
    ----------
    model : fitted estimator
        A machine, or a Pipeline that ends in one.
    """
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    kinds = {str(name): NUMBER for name in names}
    first = model[0] if isinstance(model, Pipeline) else model
    if isinstance(first, ColumnTransformer):
        for _, step, columns in first.transformers_:
            if isinstance(_last(step), OneHotEncoder) and not isinstance(columns, str):
                kinds |= {_name(names, column): TEXT for column in columns}
    return kinds


def machine_of(model: Any) -> Any:
    """Return what decides: the last step of a Pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def _last(step: Any) -> Any:
    return step[-1] if isinstance(step, Pipeline) else step


def _name(names: Any, column: Any) -> str:
    return str(column if isinstance(column, str) else names[column])


def categories_of(model: Any) -> dict[str, list[Any]]:
    """Return the texts that a fitted model knows of each column that it encodes.

    Parameters
    ----------
    model : fitted estimator
        A machine, or a Pipeline that ends in one.
    """
    known: dict[str, list[Any]] = {}
    first = model[0] if isinstance(model, Pipeline) else model
    names = getattr(model, "feature_names_in_", ())
    if isinstance(first, ColumnTransformer):
        for _, step, columns in first.transformers_:
            encoder = _last(step)
            if isinstance(encoder, OneHotEncoder):
                texts = [values.tolist() for values in encoder.categories_]
                known |= zip((_name(names, each) for each in columns), texts, strict=True)
    return known

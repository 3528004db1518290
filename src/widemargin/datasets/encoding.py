"""From the columns of a table to the numbers that machines compute with, and back to the columns.

What a machine of a table learns from is a Pipeline: numbers get the median where they are missing,
and are standardised; each text is a column of 0 and 1. Of many texts the frequent ones are, and all
others together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin.datasets.kinds import NUMBER, TEXT

MOST_CATEGORIES = 100  # of a column, each with a number of its own


def encoder_for(kinds: Mapping[str, str]) -> ColumnTransformer:
    """Return what turns the columns of a table into numbers, unfitted.

    Parameters
    ----------
    kinds : mapping of str
        "number" or "text" for each column, as :attr:`Table.kinds` has them.

    Returns
    -------
    encoder : ColumnTransformer
    """
    numbers = [name for name, kind in kinds.items() if kind == NUMBER]
    texts = [name for name, kind in kinds.items() if kind == TEXT]
    steps: list[tuple[str, Any, list[str]]] = []
    if numbers:
        scaled = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
        steps.append(("numbers", scaled, numbers))
    if texts:
        # A text that training had not is none of the known ones: zero in all of their columns.
        encoded = OneHotEncoder(
            handle_unknown="ignore", max_categories=MOST_CATEGORIES, sparse_output=False
        )
        steps.append(("texts", encoded, texts))
    return ColumnTransformer(steps, verbose_feature_names_out=False)


def pipeline_for(kinds: Mapping[str, str], machine: Any) -> Any:
    """Return a Pipeline of encoder and machine; of rows without columns, the machine alone."""
    if not kinds:
        return machine
    return Pipeline([("columns", encoder_for(kinds)), ("machine", machine)])


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

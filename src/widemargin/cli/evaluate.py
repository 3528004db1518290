"""``widemargin evaluate``: how good a model is on rows whose classes are known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from widemargin.cli._data import DataOptions, data_options, read_data
from widemargin.cli._machines import load_model
from widemargin.cli._metrics import judged, print_judged
from widemargin.cli._models import facts_of
from widemargin.cli._output import json_option, show


@click.command(
    epilog="""\b
Examples:
  widemargin evaluate flowers.model test.csv --target species
  widemargin evaluate letter.model letter.t --json | jq .accuracy"""
)
@click.argument("model")
@click.argument("data")
@data_options()
@json_option
def command(model: str, data: str, options: DataOptions, as_json: bool) -> None:
    """Compare what MODEL says with the target of DATA.

    The target is the column that the model was fitted to, unless another is named.
    """
    machine = load_model(model)
    table = read_known(machine, facts_of(model), data, options)
    predicted = machine.predict(table.X)
    names = None if table.label_names is None else list(table.label_names)
    result = judged(table.y, predicted, names)
    show({"model": model, "data": data, **result}, as_json, lambda: print_judged(result))


def read_known(machine: Any, facts: dict[str, Any], data: str, options: DataOptions) -> Any:
    """Read rows for a model, with targets as it knows them."""
    from widemargin.datasets.encoding import kinds_of, machine_of

    kinds = kinds_of(machine)
    if options.target is None and facts.get("target"):
        options = replace(options, target=",".join(facts["target"]))
    n_features = int(machine.n_features_in_) if kinds is None else None
    table = read_data(data, options, columns=kinds, n_features=n_features)
    names = facts.get("label_names")
    tells_labels = machine_of(machine).readout_.tells_labels
    if tells_labels != table.is_multilabel:
        what = ("label sets", "one class a row")
        raise ValueError(
            f"{table.path} has {what[not table.is_multilabel]}, and the model learned "
            f"{what[not tells_labels]}."
        )
    if table.is_multilabel and names and list(table.label_names) != names:
        table = _in_order(table, names)
    return table


def _in_order(table: Any, names: list[str]) -> Any:
    """Return the table with columns of labels as the model has them; those it lacks are 0."""
    import scipy.sparse as sp

    unknown = [name for name in table.label_names if name not in names]
    if unknown:
        raise ValueError(
            f"{table.path} has the label {unknown[0]!r}, which the model has not learned: "
            f"{', '.join(names[:12])}."
        )
    found = sp.csc_matrix(table.y)
    ordered = sp.lil_matrix((found.shape[0], len(names)), dtype=found.dtype)
    for place, name in enumerate(table.label_names):
        ordered[:, names.index(name)] = found[:, [place]]
    return replace(table, y=ordered.tocsr(), label_names=tuple(names))

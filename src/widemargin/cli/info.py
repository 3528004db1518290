"""``widemargin info``: what is in a model file."""

from __future__ import annotations

from typing import Any

import click

from widemargin.cli._machines import load_model
from widemargin.cli._models import describe, facts_of
from widemargin.cli._output import json_option, show

_SHORT = 12  # columns or classes that a table shows


@click.command(
    epilog="""\b
Examples:
  widemargin info flowers.model
  widemargin info flowers.model --json | jq .bytes"""
)
@click.argument("model")
@json_option
def command(model: str, as_json: bool) -> None:
    """Tell what MODEL is: machine, vectors, columns, classes, where it came from."""
    from widemargin.datasets.encoding import kinds_of, machine_of

    machine = load_model(model)
    facts = {name: value for name, value in facts_of(model).items() if value not in (None, [])}
    result: dict[str, Any] = {"model": model, **describe(machine, model), **facts}
    kinds = kinds_of(machine)
    if kinds is not None:
        result["columns"] = kinds
    steps = getattr(machine, "steps", ())
    result["steps"] = [type(step).__name__ for _, step in steps] or [type(machine).__name__]
    last = machine_of(machine)
    default = type(last)().get_params(deep=False)
    changed = {
        name: str(value)
        for name, value in last.get_params(deep=False).items()
        if str(value) != str(default[name])
    }
    result["parameters"] = changed
    show(result, as_json, lambda: show(_shortened(result), as_json=False))


def _shortened(result: dict[str, Any]) -> dict[str, Any]:
    """Return the result with few of many columns and classes, for people."""
    short = dict(result)
    for name, value in result.items():
        if isinstance(value, dict) and len(value) > _SHORT:
            some = dict(list(value.items())[:_SHORT])
            short[name] = some | {"and": f"{len(value) - _SHORT} more"}
        elif isinstance(value, list) and len(value) > _SHORT:
            short[name] = [*value[:_SHORT], f"and {len(value) - _SHORT} more"]
    return short

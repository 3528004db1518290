"""Machines that commands are given: by name and parameters, or in a model file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from difflib import get_close_matches
from io import TextIOBase
from typing import Any

import click

from widemargin.cli._output import Command, note, progress

_WIDE = 2000  # features of sparse rows from which on a linear machine is the default
# What --param may make: settings of a part, as in --param 'basis=LearnedBasis(metric="full")'.
_SETTINGS = ("ChosenBasis", "LearnedBasis")


def complete_machine(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return names of machines for the shell."""
    from widemargin._registry import ESTIMATORS

    return [name for name in ESTIMATORS if name.lower().startswith(incomplete.lower())]


def machine_options(command: Command) -> Command:
    """Give a command ``--max-basis``, ``--machine`` and ``--param``, which say what learns."""
    options = (
        click.option("--max-basis", type=click.IntRange(1), metavar="N", help="Vectors at most."),
        click.option(
            "--machine",
            metavar="NAME",
            shell_complete=complete_machine,
            help="What learns; SparseKernelClassifier with learned vectors unless given.",
        ),
        click.option(
            "--param", "params", multiple=True, metavar="KEY=VALUE", help="Of the machine."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def seed_option(command: Command) -> Command:
    """Give a command ``--seed``."""
    help = "Of all that is random."
    return click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help=help)(
        command
    )


def default_machine(table: Any, max_basis: int | None) -> Any:
    """Return the machine for a table where nobody has named one, and tell which it is."""
    import scipy.sparse as sp

    import widemargin

    wide = sp.issparse(table.X) and table.X.shape[1] > _WIDE and max_basis is None
    if wide:
        note("Rows are wide and sparse: a linear machine learns them, unless --max-basis is given.")
        if table.is_multilabel:
            return widemargin.LinearMultiLabelClassifier()
        return widemargin.StochasticLinearClassifier()
    machine_class = (
        widemargin.SparseKernelMultiLabelClassifier
        if table.is_multilabel
        else widemargin.SparseKernelClassifier
    )
    return machine_class(basis="learned")


def named_machine(name: str) -> Any:
    """Return a machine by the name of its class, in letters of either case."""
    from widemargin._registry import ESTIMATORS

    found = {known.lower(): known for known in ESTIMATORS}.get(name.lower())
    if found is None:
        near = get_close_matches(name, ESTIMATORS, 1, 0.3)
        hint = f" Is it {near[0]}?" if near else ""
        raise ValueError(f"There is no machine {name!r}.{hint} There are {', '.join(ESTIMATORS)}.")
    return ESTIMATORS[found]()


def with_parameters(machine: Any, given: Mapping[str, Any]) -> Any:
    """Return a machine with parameters; ValueError names those that it has."""
    known = machine.get_params(deep=False)
    for name in given:
        if name not in known:
            raise ValueError(
                f"{type(machine).__name__} has no parameter {name!r}: {', '.join(known)}."
            )
    return machine.set_params(**given)


def parsed_parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Return ``key=value`` as Python values; what is no literal is a text."""
    values = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.isidentifier():
            raise click.BadParameter(
                f"{text!r} is not of the form key=value.", param_hint="--param"
            )
        values[key] = _value(value)
    return values


def _value(text: str) -> Any:
    try:
        node = ast.parse(text, mode="eval").body
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return _settings(node)
        return ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return text


def _settings(node: ast.Call) -> Any:
    import widemargin

    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in _SETTINGS or node.args:
        raise click.BadParameter(
            f"{ast.unparse(node)} is none of {', '.join(_SETTINGS)} with values by name.",
            param_hint="--param",
        )
    given = {str(each.arg): ast.literal_eval(each.value) for each in node.keywords}
    return with_parameters(getattr(widemargin, name)(), given)


class _Lines(TextIOBase):
    """Takes what a fit prints, and hands each line on."""

    def __init__(self, tell: Any) -> None:
        self._tell, self._begun = tell, ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._tell(0, line.partition("] ")[2] or line)
        return len(text)


@contextmanager
def telling(machine: Any, what: str = "Fitting") -> Iterator[None]:
    """Show how far a fit has come: what the machine prints, beside a bar or as a line at times."""
    import warnings

    if "verbose" in machine.get_params(deep=False):
        machine.set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught, progress(what) as tell:
        warnings.simplefilter("always")
        with redirect_stdout(_Lines(tell)):
            yield
    for warning in {str(each.message): each for each in caught}:
        note(f"Warning: {' '.join(warning.split())}")
    if "verbose" in machine.get_params(deep=False):
        machine.set_params(verbose=0)
    sys.stderr.flush()


def load_model(path: str) -> Any:
    """Load a model file; data in its place are told to be no model."""
    import widemargin

    try:
        return widemargin.load(path)
    except widemargin.ModelFileError as error:
        raise ValueError(f"{error} A model file is what widemargin fit writes.") from error

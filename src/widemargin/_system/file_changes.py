"""What became of parameters and attributes since older model files were written.

A class says it in a table ``_file_changes``: a name, and one of :class:`Added`, :class:`Changed`,
:class:`Removed`. Tables of base classes count too. The class may be an estimator, whose names are
its parameters and fitted attributes, or any other that a model file keeps, with its fields.

A change comes with a new version of the format: the number ``FORMAT`` of ``widemargin.model_files``
is raised, and ``since`` is that number. So an older library refuses the file by its version, and
this one knows what a file of each version must have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

#: Makes a value from all that an older file has: parameters and attributes, or fields, by name.
Make: TypeAlias = Callable[[Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Added:
    """Files of versions before ``since`` may lack it.

    ``make`` makes what stands for it then. None leaves a parameter or a field at its default; an
    attribute needs one, unless the machine can do without it.
    """

    since: int
    make: Make | None = None


@dataclass(frozen=True)
class Changed:
    """Files of versions before ``since`` have another value for it, of which ``make`` makes ours.

    Where such a file lacks it, nothing is made.
    """

    since: int
    make: Make


@dataclass(frozen=True)
class Removed:
    """Files of versions before ``since`` may have it. It is read for others, and then left out."""

    since: int


Change: TypeAlias = Added | Changed | Removed


def changes_after(kind: type[Any], version: int) -> dict[str, Change]:
    """Return the changes of a class that files of this version do not know, bases first."""
    changes: dict[str, Change] = {}
    for each in reversed(kind.__mro__):
        changes |= vars(each).get("_file_changes", {})
    return {name: change for name, change in changes.items() if change.since > version}


def differing_names(
    kind: type[Any], names: Iterable[str], wanted: Iterable[str], version: int
) -> tuple[set[str], set[str]]:
    """Return which of the wanted names a file of this version should have, and which it should not.

    Parameters
    ----------
    kind : type
        The class that they are names of.
    names : iterable of str
        What the file has.
    wanted : iterable of str
        What a file of the current version has.
    version : int

    Returns
    -------
    missing, surplus : set of str
    """
    changes = changes_after(kind, version)
    added = {name for name, change in changes.items() if isinstance(change, Added)}
    removed = {name for name, change in changes.items() if isinstance(change, Removed)}
    names, wanted = set(names), set(wanted)
    return wanted - names - added, names - wanted - removed


def brought_up_to_date(kind: type[Any], values: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the values of a file of this version as the current one would have them.

    Changes are made in the order of the table, and each sees the ones before it.
    """
    current = dict(values)
    changes = changes_after(kind, version)
    for name, change in changes.items():
        concerns_it = (name in current) == isinstance(change, Changed)
        if concerns_it and not isinstance(change, Removed) and change.make is not None:
            current[name] = change.make(current)
    gone = {name for name, change in changes.items() if isinstance(change, Removed)}
    return {name: value for name, value in current.items() if name not in gone}

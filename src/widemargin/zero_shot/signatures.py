"""Signatures: the attributes that each class has, or how much of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from widemargin._system.warnings import warn_user
from widemargin.priors import names_of

Array: TypeAlias = npt.NDArray[Any]

_NAMED = 5  # classes or attributes that a message names


@dataclass(frozen=True, eq=False)
class Signatures:
    """A table with a row for each class and a column for each attribute, checked.

    Attributes
    ----------
    values : ndarray of shape (n_classes, n_attributes)
    class_names : ndarray of shape (n_classes,)
    attribute_names : ndarray of str or None
        Where the table had any.
    """

    values: Array
    class_names: Array
    attribute_names: Array | None

    @classmethod
    def of(cls, table: Any, class_names: Any) -> Signatures:
        """Return the signatures that a user gave."""
        if table is None:
            raise ValueError("signatures must be a table with a row for each class; got None.")
        attribute_names = names_of(table)
        if class_names is None and hasattr(table, "columns"):  # lists have a method "index"
            class_names = table.index
        try:
            values = np.array(table, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "signatures must hold numbers, a row for each class and a column for each "
                f"attribute: {error}"
            ) from error
        if values.ndim != 2 or 0 in values.shape:
            raise ValueError(
                "signatures must be a table with a row for each class and a column for each "
                f"attribute; got an array of shape {values.shape}."
            )
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ValueError(
                f"signatures must be finite; row {row}, column {column} is {values[row, column]}."
            )
        names = np.arange(len(values)) if class_names is None else _as_names(class_names)
        if names.shape != (len(values),):
            raise ValueError(
                f"class_names has {len(names)} names, and signatures has {len(values)} rows."
            )
        if len(set(names.tolist())) < len(names):
            raise ValueError("class_names has a name twice. Give each class a name of its own.")
        return cls(values, names, attribute_names)

    @property
    def n_attributes(self) -> int:
        """Number of attributes."""
        return int(self.values.shape[1])

    def places_of(self, y: Array) -> npt.NDArray[np.intp]:
        """Return the row of the table that belongs to each entry of y."""
        places = {name: place for place, name in enumerate(self.class_names.tolist())}
        unknown = sorted({name for name in y.tolist() if name not in places}, key=str)
        if unknown:
            raise ValueError(
                f"y has {len(unknown)} classes without a signature: {_listed(unknown)}. The names "
                f"of class_names are {_listed(list(places))}."
            )
        return np.array([places[name] for name in y.tolist()], dtype=np.intp)

    def check_attributes(self, Y: Any, n_columns: int) -> None:
        """Raise unless a table of the attributes of rows has the columns of the signatures."""
        if n_columns != self.n_attributes:
            raise ValueError(
                f"y has {n_columns} attributes, and signatures has {self.n_attributes}."
            )
        names = names_of(Y)
        if names is None or self.attribute_names is None:
            return
        wrong = np.flatnonzero(names != self.attribute_names)
        if len(wrong):
            first = wrong[0]
            raise ValueError(
                "y and signatures must have the same attributes in the same order; column "
                f"{first} is {names[first]!r} in y and {self.attribute_names[first]!r} in "
                "signatures."
            )

    def levels(self, n_levels: int) -> tuple[Array, npt.NDArray[np.intp]]:
        """Return what of each attribute can be learned as a label, and whose labels these are.

        Of two values the larger is a label. Of graded values there are ``n_levels`` labels: the
        range of the attribute is divided evenly, and a class has the labels of all points that it
        lies above. An attribute in which no class differs has none.

        Returns
        -------
        labels : ndarray of shape (n_classes, n_labels)
            0 or 1.
        attributes : ndarray of shape (n_labels,)
            The attribute that each label is of.
        """
        labels, attributes = [], []
        for number, column in enumerate(self.values.T):
            distinct = np.unique(column)
            if len(distinct) == 1:
                continue
            n_points = n_levels if len(distinct) > 2 else 1
            points = np.linspace(distinct[0], distinct[-1], n_points + 2)
            found = [column > point for point in points[1:-1]]
            labels += found
            attributes += [number] * len(found)
        if not labels:
            raise ValueError("signatures tells no class from another: all of its rows are equal.")
        return np.array(labels, dtype=np.float64).T, np.array(attributes, dtype=np.intp)

    def warn_of_twins(self, places: npt.NDArray[np.intp]) -> None:
        """Warn of classes, among those of these places, that have the same signature."""
        _, first, inverse = np.unique(
            self.values[places], axis=0, return_index=True, return_inverse=True
        )
        inverse = inverse.ravel()
        twins = [
            (self.class_names[places[first[group]]], self.class_names[place])
            for place, group, number in zip(places, inverse, range(len(places)), strict=True)
            if number != first[group]
        ]
        if twins:
            one, other = (str(name) for name in twins[0])
            warn_user(
                f"{len(twins)} classes have the signature of another, {one!r} and {other!r} for "
                "instance: no score tells them apart, and the first is predicted."
            )

    def name_attributes(self, numbers: Array) -> str:
        """Return the names of attributes, or their numbers, for a message."""
        names = numbers if self.attribute_names is None else self.attribute_names[numbers]
        return _listed(list(names.tolist()))


def standardised(values: Array) -> Array:
    """Return columns of mean 0 and variance 1; constant columns become zeros."""
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred / np.where(spread > 0, spread, 1.0))


def unit_rows(values: Array) -> Array:
    """Return rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    return np.asarray(values / np.where(lengths > 0, lengths, 1.0))


def _as_names(names: Any) -> Array:
    found = np.asarray(names)
    return found if found.dtype.kind in "iuUSb" else np.asarray(list(names), dtype=object)


def _listed(names: list[Any]) -> str:
    shown = ", ".join(repr(name) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"

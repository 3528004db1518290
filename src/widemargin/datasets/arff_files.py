"""ARFF, the files of Weka, MULAN and MEKA, by liac-arff; labels are those that an XML file names.

MULAN has the labels in ``name.xml`` beside ``name.arff``, ``name-train.arff`` and
``name-test.arff``. MEKA writes ``-C 6`` into the name of the relation: the first six attributes are
labels, or with a minus the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.sparse as sp

from widemargin.datasets.blocks import StreamError, needed
from widemargin.datasets.compression import compression_of, open_bytes
from widemargin.datasets.heads import is_number, listed

_MEKA_LABELS = re.compile(r"-C\s+(-?\d+)")


@dataclass(frozen=True)
class ArffFile:
    """What is in an ARFF file: a table of columns, or sparse rows of numbers."""

    names: list[str]
    table: Any  # pyarrow.Table, or None
    rows: Any  # CSR matrix of all attributes, or None
    labels: list[str]  # attributes that XML or MEKA say to be labels


def read_arff(path: Path) -> ArffFile:
    """Read a file with the labels that are named for it."""
    arff = needed("arff", f"Reading {path.name}, an ARFF file,", "cli")
    lines = list(_lines(path))
    is_sparse = _first_row(lines).lstrip().startswith("{")
    try:
        content = arff.loads(
            "".join(lines),
            encode_nominal=is_sparse,
            return_type=arff.LOD if is_sparse else arff.DENSE,
        )
    except arff.ArffException as error:
        raise StreamError(f"{path}: {' '.join(str(error).split())} Mend it.") from error
    attributes = [(str(name), kind) for name, kind in content["attributes"]]
    names = [name for name, _ in attributes]
    labels = _labels(path, str(content["relation"]), names)
    if is_sparse:
        return ArffFile(names, None, _sparse_rows(path, content["data"], attributes), labels)
    return ArffFile(names, _table(path, content["data"], attributes), None, labels)


def _lines(path: Path) -> Iterator[str]:
    with open_bytes(path, compression_of(path)) as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise StreamError(
                    f"{path}, line {number}: the text is not UTF-8. Convert it, as by "
                    "iconv -f latin1 -t utf-8."
                ) from error


def _first_row(lines: list[str]) -> str:
    """Return the first line of data."""
    rows = dropwhile(lambda line: line.strip().lower() != "@data", lines)
    next(rows, None)
    return next((row for row in rows if row.strip() and not row.startswith("%")), "")


def _labels(path: Path, relation: str, names: list[str]) -> list[str]:
    """Return the attributes that are labels, as the XML file or MEKA's relation has them."""
    name = path.name.partition(".arff")[0]
    for stem in (name, re.sub(r"[-_](train|test)(-sparse)?$", "", name)):
        xml = path.with_name(f"{stem}.xml")
        if xml.exists():
            return _named_labels(path, xml, names)
    found = _MEKA_LABELS.search(relation)
    if found is None:
        return []
    count = int(found[1])
    if not 0 < abs(count) < len(names):
        raise StreamError(
            f"{path}: the relation says -C {count}, and there are {len(names)} attributes."
        )
    return names[:count] if count > 0 else names[count:]


def _named_labels(path: Path, xml: Path, names: list[str]) -> list[str]:
    try:
        root = ElementTree.parse(xml).getroot()
    except ElementTree.ParseError as error:
        raise StreamError(f"{xml}: {error}. It should have the labels of {path.name}.") from error
    labels = [
        each.get("name", "") for each in root.iter() if each.tag.rpartition("}")[2] == "label"
    ]
    if not labels:
        raise StreamError(f"{xml} names no label.")
    for label in labels:
        if label not in names:
            raise StreamError(
                f"{xml} names the label {label!r}, which {path} has not: its attributes are "
                f"{listed(names)}. Take the XML file that belongs to it, or remove it and name "
                "the target."
            )
    return labels


def _sparse_rows(path: Path, data: list[dict[int, Any]], attributes: list[tuple[str, Any]]) -> Any:
    """Return rows of numbers; a nominal value that is a number is that number, else its place."""
    ends = np.cumsum([0, *(len(row) for row in data)])
    places = np.array([place for row in data for place in row], dtype=np.int32)
    numbers = np.array([value for row in data for value in row.values()], dtype=np.float64)
    for place, (name, kind) in enumerate(attributes):
        if isinstance(kind, list):
            meaning = [float(value) if is_number(value) else at for at, value in enumerate(kind)]
            if meaning[0] != 0:
                raise StreamError(
                    f"{path}, attribute {name!r}: rows are sparse, where what is left out is the "
                    f"first value, and that is {kind[0]!r}. List 0 first, or write the rows out."
                )
            here = places == place
            numbers[here] = np.array(meaning)[numbers[here].astype(int)]
        elif not str(kind).upper().startswith(("NUMERIC", "REAL", "INTEGER")):
            raise StreamError(
                f"{path}, attribute {name!r}: sparse rows of {kind}, and learners compute with "
                "numbers. Leave it out, or write the rows out."
            )
    X = sp.csr_matrix((numbers, places, ends), shape=(len(data), len(attributes)))
    X.sort_indices()
    return X


def _table(path: Path, data: list[list[Any]], attributes: list[tuple[str, Any]]) -> Any:
    """Return columns; nominal values that are all numbers are numbers."""
    arrow = needed("pyarrow", f"Reading {path.name}", "cli")
    columns = {}
    for place, (name, kind) in enumerate(attributes):
        values = [row[place] for row in data]
        nominal = isinstance(kind, list) and all(is_number(value) for value in kind)
        if nominal:
            values = [None if value is None else float(value) for value in values]
        numbers = nominal or str(kind).upper() in ("NUMERIC", "REAL", "INTEGER")
        columns[name] = arrow.array(values, arrow.float64() if numbers else arrow.string())
    return arrow.table(columns)

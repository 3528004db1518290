"""``read_table``: a file of any format as rows and what is to be learned of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._system.parameters import check_choice
from widemargin.datasets.arff_files import read_arff
from widemargin.datasets.blocks import LabelledRows, StreamError, needed
from widemargin.datasets.csv_files import CsvFile
from widemargin.datasets.formats import format_of, has_label_sets
from widemargin.datasets.kinds import NUMBER, Place, find_kinds, frame_of, refuse_infinite
from widemargin.datasets.svmlight import SvmlightParser
from widemargin.datasets.table_targets import (
    check_classes,
    classes_of,
    find_columns,
    indicators_of,
)
from widemargin.datasets.text import TextSource, empty

FORMATS = ("csv", "parquet", "arrow", "arff", "svmlight")


@dataclass(frozen=True)
class Table:
    """Rows of a file, and what is to be learned of them.

    Attributes
    ----------
    path : str
        The file.
    X : pandas.DataFrame or scipy.sparse.csr_matrix
        Columns of features, numbers as floats and texts as str; or sparse rows.
    y : ndarray, csr_matrix or None
        Classes of shape (n_rows,); or a column of 0 and 1 for each label; None where nothing is
        learned.
    target : tuple of str
        Names of the columns that y was made of; empty for svmlight.
    label_names : tuple of str or None
        Of the columns of y, where rows have label sets.
    kinds : dict
        "number" or "text" for each column of X; empty for sparse rows.
    left_out : dict
        Columns that learners cannot use, and why.
    notes : tuple of str
        What was chosen, and what was left out, in words for the user.
    """

    path: str
    X: Any
    y: Any
    target: tuple[str, ...] = ()
    label_names: tuple[str, ...] | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def is_multilabel(self) -> bool:
        """Whether rows have label sets."""
        return self.label_names is not None


def read_table(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | bool | None = None,
    *,
    format: str = "auto",
    columns: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    text: Collection[str] = (),
    header: bool = True,
    zero_based: bool = False,
    n_features: int | None = None,
    on_error: str = "raise",
) -> Table:
    r"""Read a file into memory, for ``fit`` or ``score``: types are found, and told.

    Parameters
    ----------
    path : path
        CSV, svmlight (LIBSVM) or ARFF, plain or compressed by gzip, bz2, xz or zstd; Parquet or
        Arrow. Tables need pandas and pyarrow, ARFF liac-arff: ``pip install widemargin[cli]``.
    target : str, sequence of str, None or False, default=None
        The column of classes; several columns, each of 0 and 1, are label sets. None is the last
        column, or the labels that the XML file beside an ARFF file names; False is none at all.
        svmlight has its labels before the features.
    format : {"auto", "csv", "parquet", "arrow", "arff", "svmlight"}, default="auto"
        What it is; "auto" looks at the first bytes, and at the name.
    columns : mapping of str, default=None
        Columns of features and what they are, "number" or "text": those that a machine was fitted
        to. None takes all, and finds out.
    drop : collection of str, default=()
        Columns that are left out.
    text : collection of str, default=()
        Columns that are texts, whatever they look like.
    header : bool, default=True
        Whether the first line of CSV has names; else columns are f0, f1 and so on.
    zero_based : bool, default=False
        Whether the indices of svmlight begin with 0 instead of 1.
    n_features : int, default=None
        Features of svmlight rows; None is the largest index.
    on_error : {"raise", "skip"}, default="raise"
        What becomes of lines that cannot be read: of CSV, those with too few or too many values.

    Returns
    -------
    table : Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from widemargin.datasets import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "fruit.csv"
    ...     _ = path.write_text("weight,colour,fruit\n7,red,cherry\n90,green,apple\n")
    ...     table = read_table(path, "fruit")
    >>> table.kinds
    {'weight': 'number', 'colour': 'text'}
    >>> table.y.tolist()
    ['cherry', 'apple']
    """
    check_choice("format", format, ("auto", *FORMATS))
    check_choice("on_error", on_error, ("raise", "skip"))
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"There is no {place}.")
    found = format_of(place) if format == "auto" else format
    skips = on_error == "skip"
    if found == "rows":
        raise StreamError(f"{place} is a folder. widemargin.stream reads folders of save_rows.")
    if found == "svmlight":
        return _read_svmlight(place, target, zero_based, n_features, skips)
    if found == "arff":
        file = read_arff(place)
        target = target if target is not None or not file.labels else file.labels
        if file.rows is not None:
            return _sparse_table(place, file.rows, file.names, target)
        table, where = file.table, Place(str(place), None)
    elif found == "csv":
        csv = CsvFile(place, header=header, skips=skips)
        _require_columns(place, csv.names, target, columns, drop, text)
        used = None if columns is None else _target_names(csv.names, target)
        table, where = csv.read(columns, used or ()), csv.place
    else:
        table, where = _read_arrow(place, found), Place(str(place), None)
    return _table(table, where, target, columns, drop, text)


def _read_arrow(path: Path, format: str) -> Any:
    arrow = needed("pyarrow", f"Reading {path.name}", "cli")
    try:
        if format == "parquet":
            return needed("pyarrow.parquet", f"Reading {path.name}", "cli").read_table(path)
        with arrow.memory_map(str(path)) as file:
            try:
                return arrow.ipc.open_file(file).read_all()
            except arrow.ArrowInvalid:
                file.seek(0)
                return arrow.ipc.open_stream(file).read_all()
    except arrow.ArrowInvalid as error:
        raise StreamError(f"{path} is no {format} file, or was cut off: {error}") from error


def _target_names(names: Sequence[str], target: Any) -> list[str]:
    """Return the columns of the target: the last one where nobody has named it."""
    if target is False:
        return []
    if target is None or target is True:
        return [names[-1]]
    return [target] if isinstance(target, str) else list(target)


def _require_columns(
    path: Path, names: Sequence[str], target: Any, columns: Any, drop: Any, text: Any
) -> None:
    if len(names) == 1 and target is not False:
        raise StreamError(
            f"{path}, line 1: there is one column, {names[0][:60]!r}, so that nothing is left to "
            "learn from. Values are told apart by commas, semicolons, tabs or bars."
        )
    find_columns(str(path), "the target", _target_names(names, target), names)
    find_columns(str(path), "drop", list(drop), names)
    find_columns(str(path), "text", list(text), names)
    find_columns(str(path), "features of the machine", list(columns or ()), names)


def _table(table: Any, place: Place, target: Any, columns: Any, drop: Any, text: Any) -> Table:
    """Return features and target of a pyarrow.Table."""
    names = table.schema.names
    _require_columns(Path(place.path), names, target, columns, drop, text)
    if table.num_rows == 0:
        raise empty(Path(place.path))
    targets = _target_names(names, target)
    notes = [f"The target is the last column, {targets[0]!r}."] if target is None else []
    others = [name for name in names if name not in targets and name not in drop]
    kinds, left_out = dict(columns or {}), dict[str, str]()
    if columns is None:
        kinds, left_out = find_kinds(table, others, place, text)
        notes += [f"Column {name!r} is left out: {reason}." for name, reason in left_out.items()]
    if not kinds:
        raise StreamError(f"{place.path} has no column that a machine can learn from.")
    X = _frame(table, kinds, place)
    found = Table(place.path, X, None, tuple(targets), None, kinds, left_out, tuple(notes))
    if not targets:
        return found
    if len(targets) > 1:
        y = indicators_of(table, targets, place)
        return replace(found, y=y, label_names=tuple(targets))
    y, has_class = classes_of(table.column(targets[0]), targets[0], place)
    if has_class is None:
        return replace(found, y=y)
    first = place.of(int(np.flatnonzero(~has_class)[0]))
    notes.append(
        f"{first}: column {targets[0]!r} has no value. Such rows, {int((~has_class).sum()):,} of "
        f"{len(has_class):,}, are left out."
    )
    return replace(found, X=X[has_class], y=y, notes=tuple(notes))


def _frame(table: Any, kinds: Mapping[str, str], place: Place) -> Any:
    arrow = needed("pyarrow", "Reading tables", "cli")
    try:
        frame = frame_of(table, kinds)
    except arrow.ArrowInvalid as error:
        texts = [n for n, kind in kinds.items() if kind == NUMBER and _is_text(table, n)]
        name = texts[0] if texts else "?"
        raise StreamError(
            f"{place.path}, column {name!r}: texts, where the machine learned numbers ({error})."
        ) from error
    refuse_infinite(frame, kinds, place)
    return frame


def _is_text(table: Any, name: str) -> bool:
    types = needed("pyarrow", "Reading tables", "cli").types
    kind = table.schema.field(name).type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_dictionary(kind))


def _sparse_table(path: Path, rows: Any, names: list[str], target: Any) -> Table:
    """Return features and labels of sparse rows with named columns."""
    targets = _target_names(names, target)
    find_columns(str(path), "the target", targets, names)
    chosen = [names.index(name) for name in targets]
    others = np.setdiff1d(np.arange(len(names)), chosen)
    found = Table(str(path), rows[:, others], None, tuple(targets))
    if not targets:
        return found
    labels = rows[:, chosen]
    place = Place(str(path), None)
    if len(targets) == 1:
        y = labels.toarray().ravel().astype(np.int64)
        return replace(found, y=check_classes(y, f"attribute {targets[0]!r}", place))
    if not np.isin(labels.data, (0, 1)).all():
        raise StreamError(f"{path}: labels of sparse rows are to be 0 and 1.")
    return replace(found, y=labels.astype(np.int64), label_names=tuple(targets))


def _read_svmlight(
    path: Path, target: Any, zero_based: bool, n_features: int | None, skips: bool
) -> Table:
    if isinstance(target, str) or (target is not None and not isinstance(target, bool)):
        raise ValueError(
            f"{path} has svmlight rows, which begin with their labels: it has no column to be "
            "named as the target. Leave target out, or say by format= what the file is."
        )
    several = has_label_sets(path)
    parser = SvmlightParser(
        n_features, None, np.dtype("float64"), multilabel=several, zero_based=zero_based
    )
    source = TextSource(path, parser, skips=skips)
    if several:  # whose columns are known only when all labels are
        source.scan(None)
        parser.n_features = n_features or parser.n_features
    blocks = list(source.blocks(None, 1))
    rows = _stacked([block.rows for block in blocks if len(block.rows)], path)
    n_skipped = sum(block.skipped for block in blocks)
    notes = (f"{n_skipped:,} lines could not be read, and are left out.",) if n_skipped else ()
    if target is False:
        return Table(str(path), rows.X, None, notes=notes)
    if several:
        assert parser.classes is not None
        names = tuple(f"{label:g}" for label in parser.classes)
        return Table(str(path), rows.X, rows.y, (), names, notes=notes)
    whole = np.round(rows.y)
    if not np.array_equal(whole, rows.y):
        wrong = rows.y[np.flatnonzero(whole != rows.y)[0]]
        raise StreamError(
            f"{path}: the label {wrong:g} is a quantity, and classes are learned here."
        )
    y = check_classes(whole.astype(np.int64), "labels", Place(str(path), 1))
    return Table(str(path), rows.X, y, notes=notes)


def _stacked(parts: list[LabelledRows], path: Path) -> LabelledRows:
    """Return rows of different widths below one another."""
    if not parts:
        raise empty(path)
    width = max(part.X.shape[1] for part in parts)
    wide = [
        sp.csr_matrix((part.X.data, part.X.indices, part.X.indptr), shape=(len(part), width))
        for part in parts
    ]
    labels = [part.y for part in parts]
    y = sp.vstack(labels, format="csr") if sp.issparse(labels[0]) else np.concatenate(labels)
    return LabelledRows(sp.vstack(wide, format="csr"), y)

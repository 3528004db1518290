"""``widemargin.stream``: which reader a file needs, and what must be known before it is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import column_or_1d

from widemargin._system.parameters import (
    check_choice,
    check_flag,
    check_float_dtype,
    check_integer,
)
from widemargin.datasets.blocks import Source
from widemargin.datasets.folders import FolderSource
from widemargin.datasets.formats import format_by_name
from widemargin.datasets.streams import RowStream
from widemargin.datasets.svmlight import SvmlightParser
from widemargin.datasets.tables import CsvParser, ParquetSource
from widemargin.datasets.text import TextSource

FORMATS = ("svmlight", "csv", "parquet", "rows")
_SCANNED = 1 << 26  # bytes of text that are looked through for what nobody has said


def stream(
    path: str | os.PathLike[str],
    *,
    format: str = "auto",
    target: str | int | None = None,
    features: Sequence[str] | None = None,
    weight: str | int | None = None,
    n_features: int | str | None = None,
    classes: Any = None,
    multilabel: bool = False,
    zero_based: bool = False,
    dtype: Any = "float32",
    batch_size: int = 1000,
    shuffle_buffer: int | None = None,
    random_state: Any = None,
    on_error: str = "raise",
    progress: bool = False,
) -> RowStream:
    """Read labelled rows of a file of any size in batches, for ``partial_fit`` and for ``fit``.

    Parameters
    ----------
    path : path
        A file of svmlight (LIBSVM) or CSV, plain or compressed by gzip, bz2, xz or zstd; a Parquet
        file; or a folder of :func:`widemargin.datasets.save_rows`, which is read fastest. Tables
        and zstd need pyarrow: ``pip install widemargin[stream]``.
    format : {"auto", "svmlight", "csv", "parquet", "rows"}, default="auto"
        What it is; "auto" goes by the name, and takes what it does not know for svmlight.
    target : str or int, default=None
        The column of the classes in a table, by name or place; it must be given there.
    features : sequence of str, default=None
        Columns of a table that are features; None is all but target and weight. A Parquet file may
        have two columns of lists, ``indices`` (from 0) and ``values``, for sparse rows.
    weight : str or int, default=None
        The column of a table with the weights of the rows.
    n_features : int, "scan" or None, default=None
        Features of svmlight rows, or of ``indices`` and ``values``. None finds it out where a text
        has no more than 64 MB; "scan" reads a text of any size once for it, and for its rows and
        classes.
    classes : array-like, default=None
        All classes; another label is then a bad row. ``y`` has their type.
    multilabel : bool, default=False
        Whether svmlight rows have any number of labels, with commas between them; ``y`` is then a
        CSR matrix of 0 and 1, with a column for each class.
    zero_based : bool, default=False
        Whether the indices of svmlight begin with 0 instead of 1.
    dtype : {"float32", "float64"}, default="float32"
        Type of the rows.
    batch_size : int, default=1000
        Rows of a batch.
    shuffle_buffer : int, default=None
        Rows that change places with one another: so many that follow one another in the file, made
        up to whole batches, are held in memory and given in random order, then the next. None keeps
        the order of the file. Rows that are sorted by class need a buffer that sees all classes.
    random_state : int, RandomState instance or None, default=None
        Seed of the order. Each pass has another order.
    on_error : {"raise", "skip"}, default="raise"
        What becomes of bad rows: malformed, too wide, of no class, with numbers that are not
        finite. "raise" says which line it is and what is wrong with it; "skip" leaves it out and
        counts it in ``skipped``.
    progress : bool, default=False
        Whether to show rows and rows a second on standard error: a bar in a terminal, if rich is
        installed, else a line every few seconds.

    Returns
    -------
    stream : RowStream

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.datasets import dump_svmlight_file, load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "iris.svm"
    ...     dump_svmlight_file(X, y, str(path), zero_based=False)
    ...     rows = widemargin.stream(path, batch_size=50, shuffle_buffer=150, random_state=0)
    ...     machine = rows.feed(widemargin.KernelClassifier(C=10, gamma=0.5), passes=2)
    >>> bool(machine.score(X, y) > 0.9)
    True
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"There is no {place}.")
    check_choice("format", format, ("auto", *FORMATS))
    check_choice("on_error", on_error, ("raise", "skip"))
    check_flag("multilabel", multilabel)
    check_flag("zero_based", zero_based)
    found = (format_by_name(place) or "svmlight") if format == "auto" else format
    if found not in FORMATS:
        raise ValueError(
            f"{place} is {found}, which has to be read whole: widemargin.datasets.read_table does."
        )
    _refuse_useless(found, target, features, weight, n_features, multilabel, zero_based)
    known = None if classes is None else np.unique(column_or_1d(classes))
    asked: dict[str, Any] = {"classes": known, "dtype": check_float_dtype(dtype)}
    skips = on_error == "skip"
    if n_features is not None and n_features != "scan":
        if isinstance(n_features, str):
            check_choice("n_features", n_features, ("scan",), ", or an integer")
        check_integer("n_features", n_features, least=1)
    source: Source
    if found == "rows":
        source = FolderSource(place, **asked, skips=skips)
    elif found == "parquet":
        width = None if n_features is None else int(n_features)
        source = ParquetSource(place, target, weight, features, width, **asked, skips=skips)
    elif found == "csv":
        source = TextSource(place, CsvParser(target, weight, features, **asked), skips=skips)
    else:
        parser = SvmlightParser(
            None if n_features == "scan" or n_features is None else int(n_features),
            **asked,
            multilabel=bool(multilabel),
            zero_based=bool(zero_based),
        )
        source = _scanned(TextSource(place, parser, skips=skips), n_features, multilabel)
    return RowStream(
        source,
        batch_size=batch_size,
        shuffle_buffer=shuffle_buffer,
        random_state=random_state,
        progress=progress,
    )


def _refuse_useless(
    format: str,
    target: Any,
    features: Any,
    weight: Any,
    n_features: Any,
    multilabel: bool,
    zero_based: bool,
) -> None:
    """Refuse what a format has no use for: whoever gives it takes the file for another."""
    of_tables = {"target": target, "features": features, "weight": weight}
    of_svmlight = {"multilabel": multilabel, "zero_based": zero_based}
    useless: dict[str, Any] = {} if format in ("csv", "parquet") else of_tables
    useless |= {} if format == "svmlight" else of_svmlight
    if format in ("csv", "rows") or (format == "parquet" and n_features == "scan"):
        useless["n_features"] = n_features
    for name, value in useless.items():
        if value is not None and value is not False:
            raise ValueError(
                f"{name}={value!r} has no meaning for format={format!r}. Leave it out, or say by "
                "format= what the file is."
            )


def _scanned(source: TextSource, n_features: int | str | None, multilabel: bool) -> TextSource:
    """Return the source with what nobody has said of it, or ValueError if that would take long."""
    parser = source.parser
    width, classes = parser.n_features, parser.classes
    lacks_classes = multilabel and classes is None
    if width is not None and not lacks_classes:
        return source
    is_whole = source.scan(None if n_features == "scan" else _SCANNED)
    if not is_whole:
        seen = parser.n_features
        parser.n_features, parser.classes = width, classes
        lacking = [*(["n_features"] if width is None else []), *(["classes"] * lacks_classes)]
        raise ValueError(
            f"{source.path} is long, and its first {_SCANNED >> 20} MB, with {seen} features, do "
            f"not tell what is to come: give {' and '.join(lacking)}, or n_features='scan', which "
            "reads all of it once."
        )
    if width is not None:
        parser.n_features = width
    return source

"""Rows as arrays in the files of a folder, of which any part is read without the rest.

========================================== ========================================================
``rows.json``                              format, version, number of rows and of features
``X.npy``                                  dense rows; or, of a CSR matrix,
``data.npy``, ``indices.npy``,             its three arrays: numbers, columns (int32), and where
``indptr.npy``                             each row begins (int64)
``y.npy``                                  the classes of the rows
``weight.npy``                             what rows count, where they do not count alike
========================================== ========================================================

Every file is one that ``numpy.load(file, mmap_mode="r")`` maps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._system.files import replace_file
from widemargin.datasets.blocks import (
    Array,
    Block,
    LabelledRows,
    Place,
    Source,
    StreamError,
    sifted,
)
from widemargin.datasets.text import empty

INDEX = "rows.json"
_FORMAT, _VERSION = "widemargin rows", 1


class _GrowingArray:
    """A ``.npy`` file to which rows are added; its head is written when their number is known."""

    def __init__(self, path: Path, like: Array) -> None:
        self._dtype, self._shape = like.dtype, like.shape[1:]
        self._count = 0
        self._file = path.open("wb")
        self._write_head()

    def _write_head(self) -> None:
        # NumPy leaves room in a head for any number of rows, so that its length is always the same.
        head = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._count, *self._shape),
        }
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, head)

    def add(self, values: Array) -> None:
        if values.dtype != self._dtype or values.shape[1:] != self._shape:
            raise ValueError(
                f"Batches must be alike: one has {values.dtype} of shape {values.shape}, and those "
                f"before it {self._dtype} of shape {('n', *self._shape)}."
            )
        self._file.write(np.ascontiguousarray(values).data)
        self._count += len(values)

    def close(self) -> None:
        self._write_head()
        self._file.close()


def save_rows(folder: str | os.PathLike[str], batches: Iterable[Any]) -> Path:
    """Write labelled rows into a folder that :func:`widemargin.stream` reads at full speed.

    Parameters
    ----------
    folder : path
        Made if need be. Rows that were in it before are replaced.
    batches : iterable of (X, y) or (X, y, weight)
        Rows in the order in which a stream will give them: a :class:`RowStream` of a format that is
        slower to read, or any other batches, of which one is in memory at a time. X is dense or a
        sparse matrix, in all of them.

    Returns
    -------
    folder : Path

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> import widemargin
    >>> X, y = load_iris(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = widemargin.datasets.save_rows(folder, [(X[:100], y[:100]), (X[100:], y[100:])])
    ...     widemargin.stream(path).n_rows
    150
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / INDEX).unlink(missing_ok=True)  # there are no whole rows here until the end
    files: dict[str, _GrowingArray] = {}
    n_rows, n_entries, n_features = 0, 0, None
    try:
        for X, y, *weight in batches:
            width = int(X.shape[1])
            if n_features not in (None, width):
                raise ValueError(f"A batch has {width} features, those before it {n_features}.")
            n_features = width
            arrays = _arrays_of(X, n_entries) | {"y": np.asarray(y)}
            if arrays["y"].dtype == object or arrays["y"].shape != (X.shape[0],):
                raise ValueError("y must have a number or a text for each row.")
            if weight:
                arrays["weight"] = np.asarray(weight[0], dtype=np.float64)
            if not files:
                files = {
                    name: _GrowingArray(target / f"{name}.npy", arrays[name]) for name in arrays
                }
                if "indptr" in files:
                    files["indptr"].add(np.zeros(1, dtype=np.int64))
            if set(arrays) != set(files):
                raise ValueError(
                    "All batches must be dense or all sparse, with weights or without."
                )
            for name, values in arrays.items():
                files[name].add(values)
            n_rows += X.shape[0]
            n_entries += len(arrays["data"]) if "data" in arrays else 0
    finally:
        for file in files.values():
            file.close()
    if n_rows == 0:
        raise ValueError("There are no rows to save.")
    for stale in {"X", "data", "indices", "indptr", "y", "weight"} - set(files):
        (target / f"{stale}.npy").unlink(missing_ok=True)
    index = {"format": _FORMAT, "version": _VERSION, "n_rows": n_rows, "n_features": n_features}
    replace_file(target / INDEX, [json.dumps(index).encode()])
    return target


def _arrays_of(X: Any, n_entries: int) -> dict[str, Array]:
    """Return the arrays of rows, before which there are so many entries."""
    if not sp.issparse(X):
        return {"X": np.asarray(X)}
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return {
        "data": rows.data,
        "indices": rows.indices.astype(np.int32),
        "indptr": rows.indptr[1:].astype(np.int64) + n_entries,
    }


class _ArrayFile:
    """A ``.npy`` file of which parts are read.

    Parts are read, not mapped: a learner gets arrays of its own, and pages of a map count as memory
    of the process for as long as the map lives.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.dtype: Any
        try:
            with path.open("rb") as file:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0
                shape, fortran, self.dtype = read(file) if version == (1, 0) else (None, True, None)
                self._start = file.tell()
        except FileNotFoundError:
            raise StreamError(f"{path.parent} lacks the file {path.name}.") from None
        except ValueError as error:
            raise StreamError(f"{path} is no .npy file of an array: {error}") from error
        if shape is None or fortran or self.dtype.hasobject or not 1 <= len(shape) <= 2:
            raise StreamError(f"{path} must be a .npy file of format 1.0, with its rows in order.")
        self.shape = shape
        self._width = int(np.prod(shape[1:], dtype=np.int64))
        size = self._start + shape[0] * self._width * self.dtype.itemsize
        if path.stat().st_size < size:
            raise StreamError(f"{path} ends in the middle: {path.stat().st_size} bytes of {size}.")

    def part(self, begin: int, end: int) -> Array:
        """Return rows from ``begin`` to before ``end``."""
        count, skipped = (end - begin) * self._width, begin * self._width * self.dtype.itemsize
        values = np.fromfile(self._path, self.dtype, count, offset=self._start + skipped)
        return values.reshape(end - begin, *self.shape[1:])


class FolderSource(Source):
    """Rows of a folder that :func:`save_rows` has written.

    Parameters
    ----------
    path : Path
    classes : ndarray or None
    dtype : dtype
    skips : bool
        Whether bad rows are left out and counted; else they are errors.
    """

    def __init__(
        self, path: Path, classes: Array | None, dtype: np.dtype[Any], *, skips: bool
    ) -> None:
        self.path, self.classes, self._dtype, self._skips = path, classes, dtype, skips
        try:
            index = json.loads((path / INDEX).read_text(encoding="utf-8"))
            if index["format"] != _FORMAT or index["version"] > _VERSION:
                raise ValueError(f"its format is {index['format']!r}, version {index['version']}")
            self.n_rows, self.n_features = int(index["n_rows"]), int(index["n_features"])
        except FileNotFoundError:
            raise StreamError(
                f"{path} is a folder without {INDEX}: none that widemargin.datasets.save_rows has "
                "written whole."
            ) from None
        except (ValueError, LookupError, TypeError) as error:
            raise StreamError(f"{path / INDEX} cannot be read: {error}") from error
        names = ["X"] if (path / "X.npy").exists() else ["data", "indices", "indptr"]
        names += ["y"] + ["weight"] * (path / "weight.npy").exists()
        self._files = {name: _ArrayFile(path / f"{name}.npy") for name in names}
        if self.n_rows == 0:
            raise empty(path)
        self._check_lengths()

    def _check_lengths(self) -> None:
        lengths = {name: file.shape[0] for name, file in self._files.items()}
        expected = dict.fromkeys(lengths, self.n_rows)
        if "indptr" in self._files:
            assert self.n_rows is not None
            expected["indptr"] = self.n_rows + 1
            if lengths["indptr"] == expected["indptr"]:
                last = int(self._files["indptr"].part(self.n_rows, self.n_rows + 1)[0])
                expected["data"] = expected["indices"] = last
        elif self._files["X"].shape[1:] != (self.n_features,):
            raise StreamError(
                f"{self.path / 'X.npy'} has rows of shape {self._files['X'].shape[1:]}, and "
                f"{INDEX} has n_features={self.n_features}."
            )
        for name, length in lengths.items():
            if length != expected[name]:
                raise StreamError(
                    f"{self.path / name}.npy has a length of {length} where {expected[name]} was "
                    "expected: the files do not belong together."
                )

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""
        return {"format": "rows", "n_rows": self.n_rows, "skips": self._skips}

    def blocks(self, place: Place | None, size: int) -> Iterator[Block]:
        """Yield so many rows at a time."""
        assert self.n_rows is not None
        for begin in range((place or {"row": 0})["row"], self.n_rows, size):
            yield self._block(begin, min(begin + size, self.n_rows))

    def _block(self, begin: int, end: int) -> Block:
        files = self._files
        y = files["y"].part(begin, end)
        weight = files["weight"].part(begin, end) if "weight" in files else None
        if "X" in files:
            X = files["X"].part(begin, end).astype(self._dtype, copy=False)
        else:
            ends = files["indptr"].part(begin, end + 1)
            indices = files["indices"].part(int(ends[0]), int(ends[-1]))
            data = files["data"].part(int(ends[0]), int(ends[-1])).astype(self._dtype, copy=False)
            if (np.diff(ends) < 0).any() or (
                len(indices) and not 0 <= indices.min() <= indices.max() < self.n_features
            ):
                raise StreamError(
                    f"{self.path}, rows {begin} to {end}: there are columns beyond the "
                    f"n_features={self.n_features} of {INDEX}, or rows that end before they begin."
                )
            starts = (ends - ends[0]).astype(np.int32)
            X = sp.csr_matrix((data, indices, starts), shape=(end - begin, self.n_features))
        rows = LabelledRows(X, y, weight)
        return sifted(self, rows, {"row": begin}, begin, skips=self._skips)

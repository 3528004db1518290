"""Rows that are made up, as many as are wanted, a part at a time: few features out of many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from benchmarks.parts.streams.child import N_CLASSES, N_FEATURES
from widemargin.datasets import save_rows

NONZEROS = 76
PART = 50_000  # rows that are made together


def batches(n_rows: int) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Yield rows of which each has one feature of each of 76 groups, and a linear class."""
    rng = np.random.default_rng(0)
    width = N_FEATURES // NONZEROS
    weights = rng.standard_normal((N_FEATURES, N_CLASSES)).astype(np.float32)
    first = np.arange(NONZEROS, dtype=np.int32) * width
    for begin in range(0, n_rows, PART):
        count = min(PART, n_rows - begin)
        columns = first + rng.integers(0, width, (count, NONZEROS), dtype=np.int32)
        values = rng.random((count, NONZEROS), dtype=np.float32)
        ends = np.arange(count + 1) * NONZEROS
        X = sp.csr_matrix((values.ravel(), columns.ravel(), ends), shape=(count, N_FEATURES))
        yield X, (X @ weights).argmax(axis=1)


def write(kind: str, folder: Path, n_rows: int) -> Path:
    """Write the rows in a form that a stream reads."""
    if kind == "folder":
        return save_rows(folder / "rows", batches(n_rows))
    if kind == "parquet":
        return _write_parquet(folder / "rows.parquet", n_rows)
    path = folder / "rows.svm"
    (X, y), *_ = batches(min(n_rows, PART))
    dump_svmlight_file(X, y, str(path), zero_based=False)
    text = path.read_bytes()
    with path.open("ab") as file:
        for _ in range(n_rows // PART - 1):
            file.write(text)
    return path


def _write_parquet(path: Path, n_rows: int) -> Path:
    import pyarrow
    from pyarrow import parquet

    lists = {"indices": pyarrow.int32(), "values": pyarrow.float32()}
    fields = [(name, pyarrow.list_(kind)) for name, kind in lists.items()]
    schema = pyarrow.schema([*fields, ("label", pyarrow.int64())])
    with parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for X, y in batches(n_rows):
            ends = pyarrow.array(X.indptr, pyarrow.int32())
            columns = [
                pyarrow.ListArray.from_arrays(ends, pyarrow.array(part))
                for part in (X.indices, X.data)
            ]
            writer.write_table(pyarrow.table([*columns, pyarrow.array(y)], schema=schema))
    return path

"""Folders of data sets: svmlight files, and an index that says what they are.

``multiclass/index.json`` and ``multilabel/index.json`` list the sets, each with its name, the
number of its features, and its files with their part ("train", "test" or "all") and checksum.
``WIDEMARGIN_DATA`` names such a folder, and the cache of downloads is one.
"""

from __future__ import annotations

import bz2
import hashlib
import json
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from widemargin._system.files import replace_file
from widemargin.datasets.blocks import Array, StreamError
from widemargin.datasets.compression import compression_of, open_bytes

VARIABLE = "WIDEMARGIN_DATA"
_KINDS = ("multiclass", "multilabel")
_INDEX = "index.json"


@dataclass(frozen=True)
class Part:
    """One file of a set."""

    path: Path
    sha256: str | None


@dataclass(frozen=True)
class StoredSet:
    """What an index says of a set."""

    name: str
    n_features: int
    n_labels: int | None  # None where each row has one class
    names: tuple[str, ...] | None  # of classes or labels
    parts: dict[str, Part]  # "train", "test", "all"
    notes: dict[str, str]  # source, split, scaling

    def read(self, part: str, dtype: Any) -> tuple[Any, Any]:
        """Return rows, sparse, and their classes or indicators of labels."""
        file = self.parts[part]
        try:
            with open_bytes(file.path, compression_of(file.path)) as content:
                text = content.read()
        except FileNotFoundError as error:
            raise StreamError(f"The index lists {file.path}, and it is not there.") from error
        _check(file)
        X, labels = load_svmlight_file(
            BytesIO(text),
            n_features=self.n_features,
            dtype=dtype,
            multilabel=self.n_labels is not None,
            zero_based=False,
        )
        X = sp.csr_matrix((X.data, X.indices.astype(np.int32), X.indptr), shape=X.shape)
        return X, self._targets(labels)

    def _targets(self, labels: Any) -> Any:
        if self.n_labels is None:
            return labels.astype(np.int64)
        columns = np.array([label for several in labels for label in several], dtype=np.int32)
        ends = np.cumsum([0, *(len(several) for several in labels)])
        ones, shape = np.ones(len(columns), dtype=np.int64), (len(labels), self.n_labels)
        return sp.csr_matrix((ones, columns, ends), shape=shape)


def _check(file: Part) -> None:
    if file.sha256 is None:
        return
    found = hashlib.sha256(file.path.read_bytes()).hexdigest()
    if found != file.sha256:
        raise StreamError(
            f"{file.path} is damaged: its SHA-256 is {found[:12]}..., and the index says "
            f"{file.sha256[:12]}... Remove it, and get it again."
        )


def folders() -> list[Path]:
    """Return the folders to look in: that of the environment, and the cache."""
    named = os.environ.get(VARIABLE)
    return [*([Path(named)] if named else []), cache_folder()]


def cache_folder() -> Path:
    """Return where downloads are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "widemargin" / "datasets"


def find_stored(name: str) -> StoredSet | None:
    """Return a set that is in one of the folders, None if it is in none."""
    for folder in folders():
        for kind in _KINDS:
            for entry in _entries(folder / kind):
                if entry.get("name") == name:
                    return _stored(folder / kind, entry)
    return None


def stored_names() -> set[str]:
    """Return the names of all sets that are in a folder."""
    return {
        str(entry.get("name"))
        for folder in folders()
        for kind in _KINDS
        for entry in _entries(folder / kind)
    }


def _entries(folder: Path) -> list[dict[str, Any]]:
    index = folder / _INDEX
    try:
        return list(json.loads(index.read_text(encoding="utf-8"))["datasets"])
    except FileNotFoundError:
        return []
    except (ValueError, LookupError, TypeError) as error:
        raise StreamError(f"{index} is no index of data sets: {error!r}.") from error


def _stored(folder: Path, entry: dict[str, Any]) -> StoredSet:
    parts = {
        str(file.get("role") or file.get("split")): Part(folder / file["file"], file.get("sha256"))
        for file in entry["files"]
    }
    is_multilabel = folder.name == "multilabel"
    names = entry.get("label_names")
    if names is None and not is_multilabel:
        names = [str(label) for label in entry.get("labels", ())]
    words = ("source", "split_note", "scaling", "note")
    return StoredSet(
        str(entry["name"]),
        int(entry["features"] if is_multilabel else entry["n_features"]),
        int(entry["labels"]) if is_multilabel else None,
        tuple(names) if names else None,
        parts,
        {word: str(entry[word]) for word in words if entry.get(word)},
    )


def store(
    name: str, parts: dict[str, tuple[Any, Any]], names: list[str] | None, notes: dict[str, str]
) -> None:
    """Put a set into the cache: files first, then the index that lists them.

    Parameters
    ----------
    name : str
    parts : dict
        Rows and targets of "train" and "test".
    names : list of str or None
        Of the classes or labels.
    notes : dict
        What the index says of it.
    """
    is_multilabel = any(y.ndim == 2 for _, y in parts.values())
    folder = cache_folder() / _KINDS[is_multilabel]
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for part, (X, y) in parts.items():
        written = BytesIO()
        dump_svmlight_file(X, y, written, zero_based=False, multilabel=is_multilabel)
        content = bz2.compress(written.getvalue())
        file = f"{name}_{part}.svm.bz2"
        replace_file(folder / file, [content])
        digest = hashlib.sha256(content).hexdigest()
        files.append({"role": part, "file": file, "rows": X.shape[0], "sha256": digest})
    X, y = next(iter(parts.values()))
    entry: dict[str, Any] = {"name": name, "files": files, **notes}
    if is_multilabel:
        entry |= {"features": X.shape[1], "labels": y.shape[1], "label_names": names}
    else:
        entry |= {"n_features": X.shape[1], "label_names": names}
    kept = [each for each in _entries(folder) if each.get("name") != name]
    text = json.dumps({"datasets": [*kept, entry]}, indent=1)
    replace_file(folder / _INDEX, [text.encode()])


def feature_names(stored: StoredSet) -> Array | None:
    """Return the words that features stand for, where a file beside the rows lists them."""
    first = next(iter(stored.parts.values())).path
    path = first.with_name(f"{stored.name}_vocabulary.txt.bz2")
    if not path.exists():
        return None
    with open_bytes(path, compression_of(path)) as file:
        return np.array(file.read().decode("utf-8").splitlines(), dtype=object)

"""Downloads of data sets by scikit-learn's fetchers, into the cache of :mod:`data_folders`."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import Any
from urllib.error import URLError

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import fetch_openml, fetch_rcv1
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, MinMaxScaler

from widemargin.datasets.data_folders import VARIABLE, cache_folder, store

TEST_SHARE = 1 / 3  # of rows, where nobody has published a split


@dataclass(frozen=True)
class KnownSet:
    """A set that the library knows, wherever its rows are."""

    name: str
    kind: str  # "classes" or "labels"
    train_rows: int
    features: int
    outputs: int
    licence: str
    citation: str
    test_rows: int | None = None
    openml: int | None = None
    fetcher: str | None = None
    train_first: bool = False
    scaled: bool = False

    @property
    def can_be_fetched(self) -> bool:
        """Whether scikit-learn has a fetcher for it."""
        return self.openml is not None or self.fetcher is not None


def fetch(known: KnownSet) -> None:
    """Download a set into the cache.

    Raises
    ------
    OSError
        If that fails; the message says what to do.
    """
    try:
        parts, names, split = _rcv1() if known.fetcher == "rcv1" else _openml(known)
    except (URLError, TimeoutError, ConnectionError) as error:
        raise OSError(
            f"{known.name} is neither in the folder of {VARIABLE} nor in {cache_folder()}, and "
            f"cannot be downloaded ({error}). Where there is a network, "
            f"widemargin datasets get {known.name} puts it there."
        ) from error
    source = "scikit-learn's fetch_rcv1" if known.openml is None else f"OpenML {known.openml}"
    store(known.name, parts, names, {"source": source, "split_note": split})


def _rcv1() -> tuple[dict[str, Any], list[str], str]:
    found = {part: fetch_rcv1(subset=part) for part in ("train", "test")}
    parts = {
        part: (each.data, sp.csr_matrix(each.target, dtype=np.int64))
        for part, each in found.items()
    }
    return parts, found["train"].target_names.tolist(), "as published (LYRL2004)"


def _openml(known: KnownSet) -> tuple[dict[str, Any], list[str], str]:
    """Return the parts of a set of OpenML, whose checksum scikit-learn compares."""
    with tempfile.TemporaryDirectory() as folder:
        found = fetch_openml(data_id=known.openml, as_frame=True, parser="auto", data_home=folder)
    X = found.data.to_numpy(dtype=np.float64)
    y, names = _targets(known, found.target)
    n_rows = known.train_rows + (known.test_rows or 0)
    # mnist of LIBSVM has 780 features: the last four pixels are always white.
    if len(X) != n_rows or not known.features <= X.shape[1] <= known.features + 4:
        raise ValueError(
            f"OpenML {known.openml} has {X.shape[0]} rows of {X.shape[1]} features, and "
            f"{known.name} has {n_rows} of {known.features}: it is another set."
        )
    X = X[:, : known.features]
    if known.train_first:
        (X, X_test), (y, y_test) = (np.split(each, [known.train_rows]) for each in (X, y))
        split = "as published"
    else:
        X, X_test, y, y_test = split_rows(X, y)
        split = "drawn by widemargin: OpenML has all rows together"
    if known.scaled:
        scaler = MinMaxScaler((-1, 1)).fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    return {"train": (X, y), "test": (X_test, y_test)}, names, split


def _targets(known: KnownSet, target: Any) -> tuple[Any, list[str]]:
    if known.kind == "labels":
        texts = target.astype(str)
        indicators = texts.isin(["TRUE", "True", "true", "1"]).to_numpy(dtype=np.int64)
        return indicators, [str(name) for name in target.columns]
    encoder = LabelEncoder()
    y = encoder.fit_transform(target.astype(str).to_numpy())
    return y, [str(name) for name in encoder.classes_]


def split_rows(X: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """Return rows and targets to learn from and to be judged by; classes have their share."""
    stratify = y if y.ndim == 1 else None
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=TEST_SHARE, stratify=stratify, random_state=0
    )
    return X, X_test, y, y_test

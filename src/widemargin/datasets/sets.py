"""``widemargin.datasets.load``: the data sets of the papers, by name."""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from widemargin._system.parameters import check_choice, check_flag, check_float_dtype
from widemargin.datasets.data_folders import (
    VARIABLE,
    StoredSet,
    cache_folder,
    feature_names,
    find_stored,
    stored_names,
)
from widemargin.datasets.fetching import KnownSet, fetch, split_rows

_WIDE = 1000  # features from which on rows stay sparse


@cache
def known_sets() -> dict[str, KnownSet]:
    """Return all sets that the library knows, by name."""
    text = (files("widemargin.datasets") / "known_sets.toml").read_text(encoding="utf-8")
    return {entry["name"]: KnownSet(**entry) for entry in tomllib.loads(text)["set"]}


def names(kind: str | None = None) -> list[str]:
    """Return the names that :func:`load` takes: known ones, and those of folders that are there.

    Parameters
    ----------
    kind : {"classes", "labels"} or None, default=None
        Only those known sets whose rows have one class, or label sets.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> from widemargin import datasets
    >>> "yeast" in datasets.names("labels")
    True
    """
    if kind is None:
        return sorted({*known_sets(), *stored_names()})
    check_choice("kind", kind, ("classes", "labels"))
    return sorted(name for name, known in known_sets().items() if known.kind == kind)


def load(name: str, *, dtype: Any = "float64", download: bool = True) -> Bunch:
    """Return a data set with its split into rows to learn from and rows to be judged by.

    It is read from the folder that the environment variable WIDEMARGIN_DATA names, else from the
    cache, else downloaded into the cache by scikit-learn's fetchers, if these have it.

    Parameters
    ----------
    name : str
        One of :func:`names`, as "letter.scale" or "yeast".
    dtype : {"float32", "float64"}, default="float64"
        Type of the rows.
    download : bool, default=True
        Whether it may be downloaded.

    Returns
    -------
    data : Bunch
        ``X_train``, ``y_train``, ``X_test``, ``y_test``: rows are dense, or CSR beyond 1,000
        features; targets are classes as integers, or an indicator matrix of labels, CSR.
        ``target_names`` and ``feature_names`` (None where there are none), ``name``, ``split``
        (whose it is), ``licence``, ``citation``, ``source``.

    Raises
    ------
    ValueError
        If there is no such set.
    OSError
        If it is not here and cannot be downloaded; the message says which command gets it.

    Examples
    --------
    >>> from widemargin import datasets
    >>> try:
    ...     datasets.load("leter.scale")
    ... except ValueError as error:
    ...     print(error)
    There is no data set 'leter.scale'. Is it letter.scale? widemargin datasets lists them.
    """
    check_flag("download", download)
    asked = check_float_dtype(dtype)
    known = known_sets().get(name)
    stored = find_stored(name)
    if stored is None:
        if known is None:
            near = get_close_matches(name, names(), 2, 0.75)
            hint = f" Is it {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"There is no data set {name!r}.{hint} widemargin datasets lists them."
            )
        _require_source(known, download)
        fetch(known)
        stored = find_stored(name)
        assert stored is not None
    return _bunch(stored, known, asked)


def _require_source(known: KnownSet, download: bool) -> None:
    missing = f"{known.name} is neither in the folder of {VARIABLE} nor in {cache_folder()}"
    if not known.can_be_fetched:
        raise OSError(
            f"{missing}, and scikit-learn has no fetcher for it. Set {VARIABLE} to a folder that "
            f"has it. It was published with: {known.citation}."
        )
    if not download:
        raise OSError(f"{missing}. This command gets it: widemargin datasets get {known.name}")


def _bunch(stored: StoredSet, known: KnownSet | None, dtype: np.dtype[Any]) -> Bunch:
    split = stored.notes.get("split_note", "as published")
    if "train" in stored.parts and "test" in stored.parts:
        (X, y), (X_test, y_test) = (stored.read(part, dtype) for part in ("train", "test"))
    else:
        X, X_test, y, y_test = split_rows(*stored.read(next(iter(stored.parts)), dtype))
        split = "drawn by widemargin: a third is for tests, and none was published"
    if known is not None and known.kind == "classes" and y.ndim == 2:  # one label in each row
        y, y_test = (np.asarray(each.argmax(axis=1)).ravel() for each in (y, y_test))
    if stored.n_features <= _WIDE:
        X, X_test = X.toarray(), X_test.toarray()
    return Bunch(
        name=stored.name,
        X_train=X,
        y_train=y,
        X_test=X_test,
        y_test=y_test,
        target_names=None if stored.names is None else list(stored.names),
        feature_names=feature_names(stored),
        split=split,
        licence="not stated" if known is None else known.licence,
        citation="" if known is None else known.citation,
        source=stored.notes.get("source", ""),
    )

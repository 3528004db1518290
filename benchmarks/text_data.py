"""Wide sparse rows with one class each: for linear machines.

``news20_bydate`` is weighed once more by the rarity of words, as the figures that it is held
against were. ``rcv1`` is the five subsets stacked, of which rows count that have exactly one of the
four classes at the top of the hierarchy. These have no names in the files; they are the labels that
no other label comes with always. ``generated`` is as wide and sparse as RCV1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.data import is_available
from benchmarks.label_data import read_labels
from benchmarks.settings import Settings

NEWS, RCV1 = "news20_bydate", "rcv1"
SUBSETS = tuple(f"rcv1subset{number}" for number in range(1, 6))

_FEATURES, _ENTRIES, _CLASSES = 47_000, 76, 4
_LEAST_SHARE = 0.05  # of rows that have a class at the top
_ALWAYS = 0.99


@dataclass(frozen=True)
class TextRows:
    """Rows to learn from and rows to be judged by, in single precision."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray

    def first(self, n_rows: int, seed: int = 0) -> TextRows:
        """Return so many rows to learn from, drawn at random, and all to be judged by."""
        some = np.random.RandomState(seed).permutation(len(self.y))[:n_rows]
        return TextRows(self.name, self.X[some], self.y[some], self.X_test, self.y_test)


def load_text(name: str, settings: Settings) -> TextRows:
    """Return a data set; in a quick run without data sets, a generated one under its name."""
    if not is_available():
        return generated(400, seed=1, name=name, n_features=500)
    parts = _news(settings) if name == NEWS else _rcv1(settings)
    (X, y), (X_test, y_test) = parts
    # The files are sorted by class, which no learner of a stream would stand.
    order = np.random.RandomState(0).permutation(len(y))
    X, y = X[order], y[order]
    return TextRows(name, X.astype(np.float32), y, X_test.astype(np.float32), y_test)


def generated(
    n_rows: int, seed: int = 0, name: str = "generated", n_features: int = _FEATURES
) -> TextRows:
    """Return rows of 76 words by Zipf's law, with four classes, and some more to be judged by."""
    rng = np.random.default_rng(seed)
    count = n_rows + max(100, min(n_rows // 10, 20_000))
    words = np.minimum(n_features * rng.random((count, _ENTRIES)) ** 3, n_features - 1)
    starts = np.arange(0, count * _ENTRIES + 1, _ENTRIES)
    values = rng.random(count * _ENTRIES).astype(np.float32)
    X = sp.csr_matrix((values, words.astype(np.int32).ravel(), starts), (count, n_features))
    X.sum_duplicates()
    X = normalize(X, copy=False)
    truth = rng.standard_normal((n_features, _CLASSES)).astype(np.float32)
    scores = X @ truth
    scores += 0.3 * rng.standard_normal(scores.shape).astype(np.float32)
    y = scores.argmax(axis=1)
    return TextRows(name, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def _news(settings: Settings) -> list[tuple[Any, np.ndarray]]:
    parts = [read_labels(NEWS, split, settings.max_rows) for split in ("train", "test")]
    X = parts[0][0]
    counts = np.asarray((X > 0).sum(axis=0)).ravel()
    rarity = sp.diags(np.log(X.shape[0] / np.maximum(counts, 1)) + 1)
    found = []
    for rows, labels in parts:
        rows.data = np.log1p(rows.data)
        found.append((sp.csr_matrix(normalize(rows @ rarity)), labels.indices.astype(np.intp)))
    return found


def _rcv1(settings: Settings) -> list[tuple[Any, np.ndarray]]:
    """Return the stacked halves; rows to be judged by that are also learned from are left out."""
    halves = []
    for split in ("train", "test"):
        parts = [read_labels(name, split, settings.max_rows) for name in SUBSETS]
        halves.append(tuple(sp.vstack(each, format="csr") for each in zip(*parts, strict=True)))
    top = _top_labels(halves[0][1])
    found = []
    learned: set[bytes] = set()
    for rows, labels in halves:
        own = labels[:, top].toarray()
        alone = np.flatnonzero(own.sum(axis=1) == 1)
        known = [_bytes_of(rows, i) for i in alone]
        alone = alone[[each not in learned for each in known]]
        learned |= set(known)
        found.append((rows[alone], own[alone].argmax(axis=1)))
    return found


def _top_labels(labels: Any) -> np.ndarray:
    together = (labels.T @ labels).toarray().astype(np.float64)
    counts = together.diagonal()
    share = together / np.maximum(counts, 1)[:, np.newaxis]
    np.fill_diagonal(share, 0.0)
    is_below = (share > _ALWAYS).any(axis=1)
    return np.flatnonzero(~is_below & (counts > _LEAST_SHARE * labels.shape[0]))


def _bytes_of(rows: Any, i: int) -> bytes:
    part = slice(rows.indptr[i], rows.indptr[i + 1])
    return bytes(rows.indices[part].tobytes() + rows.data[part].tobytes())

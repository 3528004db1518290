"""The lines of svmlight and LIBSVM, by the parser of scikit-learn."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from widemargin.datasets.blocks import Array, LabelledRows
from widemargin.datasets.heads import is_number
from widemargin.datasets.text import Parser


class SvmlightParser(Parser):
    """``label index:value index:value ...``, or ``label,label index:value ...``.

    Parameters
    ----------
    n_features : int or None
        None takes rows as wide as they are.
    classes : ndarray or None
        All labels, in rising order.
    dtype : dtype
    multilabel : bool
        Whether a row has any number of labels. y is then a matrix with a column for each class.
    zero_based : bool
        Whether the first feature has the index 0.
    """

    def __init__(
        self,
        n_features: int | None,
        classes: Array | None,
        dtype: np.dtype[Any],
        *,
        multilabel: bool,
        zero_based: bool,
    ) -> None:
        self.n_features, self.classes, self._dtype = n_features, classes, dtype
        self._multilabel, self._zero_based = multilabel, zero_based

    def settings(self) -> dict[str, Any]:
        """Return what must be the same for a place to mean the same rows."""
        return {"format": "svmlight", "zero_based": self._zero_based}

    def parse(self, text: bytes) -> LabelledRows:
        """Return the rows of lines; ValueError if any is bad."""
        X, labels = load_svmlight_file(
            BytesIO(text),
            n_features=self.n_features,
            dtype=self._dtype,
            multilabel=self._multilabel,
            zero_based=self._zero_based,
        )
        indices = X.indices.astype(np.int32)
        X = sp.csr_matrix((X.data, indices, X.indptr.astype(np.int32)), shape=X.shape)
        rows = LabelledRows(X, self._indicators(labels) if self._multilabel else labels)
        bad, reason = rows.bad_rows(self.classes)
        if len(bad):
            raise ValueError(reason)
        return rows.with_labels_of(self.classes)

    def _indicators(self, labels: list[tuple[float, ...]]) -> Any:
        """Return a column for each class; of a scan, which asks for these, all labels."""
        flat = np.array([label for several in labels for label in several], dtype=np.float64)
        if self.classes is None:
            return flat
        columns = np.minimum(np.searchsorted(self.classes, flat), len(self.classes) - 1)
        unknown = flat[self.classes[columns] != flat]
        if len(unknown):
            raise ValueError(f"the label {unknown[0]:g} is not among the classes")
        ends = np.cumsum([0, *(len(several) for several in labels)])
        ones, shape = np.ones(len(flat), dtype=np.int64), (len(labels), len(self.classes))
        return sp.csr_matrix((ones, columns, ends), shape=shape)

    def explain(self, line: bytes, error: Exception) -> str:
        """Say what is wrong with a single line."""
        words = line.partition(b"#")[0].decode("utf-8", "replace").split()
        if words and (":" not in words[0] or not self._multilabel):
            for label in words[0].split(",") if self._multilabel else words[:1]:
                if not is_number(label):
                    several = not self._multilabel and "," in label
                    more = "; rows with several labels need multilabel=True" if several else ""
                    return f"the label {label!r} is no number{more}"
            words = words[1:]
        before = -1
        for word in words:
            index, colon, value = word.partition(":")
            if index == "qid":
                continue
            if not colon or not index.isdecimal() or not is_number(value):
                return f"{word!r} is not an index, a colon and a number"
            number = int(index)
            if number == 0 and not self._zero_based:
                return "there is an index 0, so that indices begin with 0: give zero_based=True"
            if number <= before:
                return f"the index {number} comes after {before}, and indices must rise"
            before = number
        width = before + self._zero_based
        if self.n_features is not None and width > self.n_features:
            return f"it has {width} features, and rows have n_features={self.n_features}"
        return str(error).rstrip(".")

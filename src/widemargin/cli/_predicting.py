"""Predictions of the rows of a file, a chunk at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from widemargin.cli._output import note


class Unknown:
    """Texts that training had not: counted, and told at the end.

    Parameters
    ----------
    model : fitted machine or Pipeline
    """

    def __init__(self, model: Any) -> None:
        from widemargin.datasets.encoding import categories_of

        self._known = {name: set(values) for name, values in categories_of(model).items()}
        self._counts: dict[str, int] = {}
        self._first: dict[str, str] = {}

    def look(self, chunk: Any) -> None:
        """Look through the texts of a chunk of a table."""
        if not hasattr(chunk.X, "column_names"):
            return
        for name, known in self._known.items():
            column = chunk.X.column(name).combine_chunks().dictionary_encode()
            column = column.chunk(0) if hasattr(column, "chunk") else column
            texts = column.dictionary.to_pylist()
            strange = [place for place, text in enumerate(texts) if (text or "") not in known]
            if not strange:
                continue
            rows = np.flatnonzero(np.isin(np.asarray(column.indices.fill_null(-1)), strange))
            if len(rows) and name not in self._first:
                text = texts[int(np.asarray(column.indices)[rows[0]])]
                where = chunk.place.of(chunk.first + int(rows[0]))
                self._first[name] = f"{where}, column {name!r}: {text!r}"
            self._counts[name] = self._counts.get(name, 0) + len(rows)

    def tell(self) -> None:
        """Say in a line for each column how many rows it was."""
        for name, first in self._first.items():
            note(
                f"{first} was not in training, as in {self._counts[name]:,} rows; it counts as "
                "none of the texts that were. Fit again with such rows if they matter."
            )


def predictor_of(model: Any) -> Any:
    """Return what predicts fastest: the compiled model; the model where that is not to be had."""
    import widemargin

    try:
        return widemargin.compile(model)  # in one thread: the reader has work for the others
    except TypeError:  # a step that is not ours to compile
        return model


def answers(model: Any, chunks: Any, names: list[str], kind: str) -> Iterator[Any]:
    """Yield pyarrow tables of answers, one for each chunk.

    Parameters
    ----------
    model : fitted machine or Pipeline
    chunks : iterable of Chunk
    names : list of str
        Of the labels; empty where rows have one class.
    kind : {"predict", "decision_function", "predict_proba"}
        What is asked for. Scores and probabilities come beside the answers.
    """
    import pyarrow as arrow

    from widemargin.datasets.chunks import read_ahead

    predictor, unknown = predictor_of(model), Unknown(model)
    is_compiled = predictor is not model
    for chunk in read_ahead(chunks):
        unknown.look(chunk)
        rows = chunk.X
        if not is_compiled and hasattr(rows, "to_pandas"):
            rows = rows.to_pandas()
        predicted = _told(predictor.predict, rows, chunk)
        if names:
            columns = dict(zip(names, np.asarray(predicted).T, strict=True))
        else:
            columns = {"prediction": predicted}
        if kind != "predict":
            values = np.asarray(getattr(predictor, kind)(rows))
            values = values[:, None] if values.ndim == 1 else values
            heads = names or _classes(model, values.shape[1])
            word = "score" if kind == "decision_function" else "probability"
            columns |= {f"{word} {head}": values[:, at] for at, head in enumerate(heads)}
        yield arrow.table({name: np.ascontiguousarray(each) for name, each in columns.items()})
    unknown.tell()


def _told(predict: Any, rows: Any, chunk: Any) -> Any:
    """Return predictions; where they fail for what a table lacks, the error says in which line."""
    try:
        return predict(rows)
    except ValueError as error:
        for name in getattr(chunk.X, "column_names", ()):
            column = chunk.X.column(name)
            if column.null_count and "dictionary" not in str(column.type):
                row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
                raise ValueError(
                    f"{chunk.place.of(chunk.first + row)}, column {name!r}: nothing is there, and "
                    "as no row of training lacked it, the model has nothing to put in its place. "
                    "Fill it in, or fit with rows that lack it."
                ) from error
        raise


def _classes(model: Any, width: int) -> list[str]:
    """Return the classes that scores belong to; of two classes with one score, the second."""
    classes = [str(each) for each in model.classes_]
    return classes if len(classes) == width else classes[-1:]

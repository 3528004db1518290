"""A model card: a README.md for the Hugging Face Hub, with what a user of a model has to know."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

import widemargin
from widemargin.datasets.encoding import kinds_of, machine_of
from widemargin.report.trials import METRICS

_TASK = "tabular-classification"
_MOST_NAMES = 12  # classes or labels that are listed
_MOST_COLUMNS = 40
_OF_CLASSES = ("accuracy", "balanced accuracy", "macro F1")
_OF_LABELS = ("labels right", "accuracy", "micro F1", "macro F1")
# What the Hub calls them; of label sets its accuracy is that of whole sets.
_HUB_NAMES = {"macro F1": "f1", "micro F1": "f1"}


def card(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    name: str = "A widemargin model",
    license: str = "unknown",
    file: str | os.PathLike[str] = "model.widemargin",
    data: str = "",
    notes: Mapping[str, Any] | None = None,
) -> str:
    """Return the text of a README.md that the Hugging Face Hub understands.

    Parameters
    ----------
    model : estimator of widemargin, or Pipeline that ends in one
        A fitted one.
    X : data frame, array-like or CSR matrix, default=None
        Rows that were not learned from; figures are of these. Without them there are none.
    y : array-like, default=None
        Their classes or labels.
    name : str, default="A widemargin model"
        Title of the card.
    license : str, default="unknown"
        As the Hub writes it: "mit", "apache-2.0", "cc-by-4.0", "other" and so on.
    file : path, default="model.widemargin"
        The model file. Its name is in the text, and its length, if it is there.
    data : str, default=""
        Name of the rows that figures are of.
    notes : mapping, default=None
        What is known of the training: ``data``, ``n_rows``, ``target``, ``label_names``,
        as ``widemargin fit`` leaves them in model files.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SparseKernelClassifier
    >>> from widemargin.report import card
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SparseKernelClassifier(max_basis=5, random_state=0).fit(X[::2], y[::2])
    >>> text = card(machine, X[1::2], y[1::2], name="Irises", license="mit")
    >>> text.splitlines()[1]
    'license: "mit"'
    """
    check_is_fitted(model)
    if (X is None) != (y is None):
        raise ValueError("Figures need both X and y: give both, or neither.")
    if not re.fullmatch(r"[a-z0-9][a-z0-9.\-]*", license):
        raise ValueError(
            f"license must be a name of the Hub, such as 'mit' or 'apache-2.0', got {license!r}."
        )
    notes = notes or {}
    figures = {} if X is None else _figures(model, X, y)
    n_tested = 0 if X is None else int(X.shape[0])
    data = data or "rows that were not learned from"
    sections = [
        _front_matter(name, license, figures, data),
        f"# {name}\n\n{_summary(model, notes)}",
        f"## Use\n\n{_use(model, notes)}",
        f"## How to load it\n\n{_loading(model, os.path.basename(os.fsdecode(file)))}",
        f"## Training data\n\n{_training(model, notes)}",
        f"## Metrics\n\n{_metrics(figures, data, n_tested)}",
        f"## Limits\n\n{_listed(_limits(model, bool(figures)))}",
        f"## Sizes\n\n{_table(('', ''), _sizes(model, file))}",
    ]
    return "\n\n".join(sections) + "\n"


def _front_matter(name: str, license: str, figures: Mapping[str, float], data: str) -> str:
    """Return the metadata; values are JSON, which is YAML, too."""
    found: dict[str, Any] = {
        "license": license,
        "library_name": "widemargin",
        "pipeline_tag": _TASK,
        "tags": [_TASK, "widemargin", "kernel-machine", "max-margin"],
    }
    if figures:
        hub = {figure: _HUB_NAMES.get(figure, figure.replace(" ", "_")) for figure in figures}
        found["metrics"] = list(dict.fromkeys(hub.values()))
        slug = re.sub(r"[^a-z0-9]+", "-", data.lower()).strip("-") or "data"
        values = [
            {"type": hub[figure], "name": figure, "value": round(value, 6)}
            for figure, value in figures.items()
        ]
        result = {
            "task": {"type": _TASK, "name": "Tabular classification"},
            "dataset": {"type": slug, "name": data},
            "metrics": values,
        }
        found["model-index"] = [{"name": name, "results": [result]}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in found.items()]
    return "\n".join(["---", *lines, "---"])


def _figures(model: Any, X: Any, y: Any) -> dict[str, float]:
    readout = machine_of(model).readout_
    names = _OF_LABELS if readout.tells_labels else _OF_CLASSES
    y, found = (
        each.toarray() if sp.issparse(each) else np.asarray(each) for each in (y, model.predict(X))
    )
    return {name: float(METRICS[name](y, found)) for name in names}


def _summary(model: Any, notes: Mapping[str, Any]) -> str:
    machine = machine_of(model)
    vectors = getattr(machine, "n_basis_", None)
    what = "label sets" if machine.readout_.tells_labels else "classes"
    size = "" if vectors is None else f" of {vectors:,} vectors"
    rows = f", fitted to {notes['n_rows']:,} rows" if notes.get("n_rows") else ""
    return (
        f"A `{type(machine).__name__}`{size} that predicts {what}{rows}. Made with "
        f"[widemargin](https://pypi.org/project/widemargin) {widemargin.__version__}."
    )


def _use(model: Any, notes: Mapping[str, Any]) -> str:
    machine = machine_of(model)
    names = notes.get("label_names") or [str(each) for each in machine.classes_]
    target = notes.get("target") or []
    what = f" of the column `{target[0]}`" if len(target) == 1 else ""
    if machine.readout_.tells_labels:
        return f"It tells which of {len(names)} labels a row has: {_some(names)}."
    return f"It tells the class{what} of a row, one of {len(names)}: {_some(names)}."


def _loading(model: Any, file: str) -> str:
    rows = "a data frame with the columns below" if kinds_of(model) else "an array of rows"
    return f"""\
```python
import widemargin

model = widemargin.load("{file}")  # a safe file: loading it runs no code
model.predict(rows)  # {rows}
widemargin.compile(model).predict_one(rows[0])  # the quickest way for one row
```

From a shell: `widemargin predict {file} rows.csv -o answers.csv`. For C, ONNX or WebAssembly:
`widemargin export {file} --format c`."""


def _training(model: Any, notes: Mapping[str, Any]) -> str:
    said = []
    if notes.get("data"):
        said.append(f"Fitted to `{notes['data']}`" + _count(notes) + ".")
    else:
        said.append("The model file does not say what it was fitted to: write it here.")
    kinds = kinds_of(model)
    if kinds is None:
        said.append(f"Rows have {model.n_features_in_:,} numbers.")
    else:
        texts = _categories(model)
        rows = [
            (f"`{column}`", kind, f"{texts[column]:,} different ones" if column in texts else "")
            for column, kind in list(kinds.items())[:_MOST_COLUMNS]
        ]
        said.append(_table(("column", "kind", ""), rows))
        if len(kinds) > _MOST_COLUMNS:
            said.append(f"And {len(kinds) - _MOST_COLUMNS:,} more columns.")
    return "\n\n".join(said)


def _count(notes: Mapping[str, Any]) -> str:
    return f", {notes['n_rows']:,} rows" if notes.get("n_rows") else ""


def _metrics(figures: Mapping[str, float], data: str, n_tested: int) -> str:
    if not figures:
        return "None are given. `widemargin card MODEL --data FILE` measures them."
    rows = [(name, f"{value:.4f}") for name, value in figures.items()]
    return f"On {data} ({n_tested:,} rows):\n\n" + _table(("metric", "value"), rows)


def _limits(model: Any, measured: bool) -> list[str]:
    machine = machine_of(model)
    said = [
        "It knows the classes above and no other: a row of something else gets one of them, too."
        if not machine.readout_.tells_labels
        else "It knows the labels above and no other.",
        "Rows unlike those of the training are answered without a warning.",
    ]
    if _categories(model):
        said.append("A text that the training had not counts as none of the known ones.")
    if machine.readout_.gives_probabilities:
        said.append("Its probabilities were not checked on other data for this card.")
    else:
        said.append("Its scores are margins, and no probabilities.")
    said.append(
        "Figures are means over all rows; groups within them may fare worse: none were looked at."
        if measured
        else "How good it is has not been measured here."
    )
    return said


def _sizes(model: Any, file: str | os.PathLike[str]) -> list[tuple[str, str]]:
    machine = machine_of(model)
    rows = []
    if os.path.exists(file):
        rows.append(("model file", f"{os.path.getsize(file):,} bytes"))
    if hasattr(machine, "n_basis_"):
        rows.append(("vectors", f"{machine.n_basis_:,}"))
    rows.append(("columns", f"{len(kinds_of(model) or ()) or model.n_features_in_:,}"))
    rows.append(("numbers a row, when encoded", f"{machine.n_features_in_:,}"))
    what = "labels" if machine.readout_.tells_labels else "classes"
    rows.append((what, f"{len(machine.classes_):,}"))
    return rows


def _categories(model: Any) -> dict[str, int]:
    """Return how many texts the encoder of a pipeline knows in each of its columns."""
    if not isinstance(model, Pipeline) or not hasattr(model[0], "transformers_"):
        return {}
    found: dict[str, int] = {}
    for _, step, columns in model[0].transformers_:
        last = step[-1] if isinstance(step, Pipeline) else step
        if isinstance(last, (OneHotEncoder, OrdinalEncoder)):
            counts = [len(texts) for texts in last.categories_]
            found |= dict(zip(map(str, columns), counts, strict=True))
    return found


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _listed(sentences: Sequence[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return shown + (f" and {more:,} more" if more > 0 else "")

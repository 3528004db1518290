"""How good predictions are, in the measures that people ask for."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.cli._output import print_table


def judged(y: Any, predicted: Any, label_names: list[str] | None) -> dict[str, Any]:
    """Return measures of predictions: of classes, or of label sets where labels have names."""
    from sklearn import metrics

    if label_names is None:
        classes = np.unique(np.concatenate([np.unique(y), np.unique(predicted)]))
        return {
            "rows": len(y),
            "accuracy": metrics.accuracy_score(y, predicted),
            "balanced_accuracy": metrics.recall_score(
                y, predicted, labels=np.unique(y), average="macro", zero_division=0
            ),
            "macro_f1": metrics.f1_score(y, predicted, average="macro", zero_division=0),
            "each": _each(y, predicted, classes, [str(name) for name in classes]),
            "classes": classes,
            "confusion": metrics.confusion_matrix(y, predicted, labels=classes),
        }
    y, predicted = (each.toarray() if hasattr(each, "toarray") else each for each in (y, predicted))
    return {
        "rows": len(y),
        "hamming_loss": metrics.hamming_loss(y, predicted),
        "subset_accuracy": metrics.accuracy_score(y, predicted),
        "micro_f1": metrics.f1_score(y, predicted, average="micro", zero_division=0),
        "macro_f1": metrics.f1_score(y, predicted, average="macro", zero_division=0),
        "each": _each(y, predicted, np.arange(len(label_names)), label_names),
    }


def _each(y: Any, predicted: Any, labels: Any, names: list[str]) -> list[dict[str, Any]]:
    from sklearn.metrics import precision_recall_fscore_support

    figures = precision_recall_fscore_support(y, predicted, labels=labels, zero_division=0)
    heads = ("name", "precision", "recall", "f1", "rows")
    return [dict(zip(heads, line, strict=True)) for line in zip(names, *figures, strict=True)]


def print_judged(result: dict[str, Any]) -> None:
    """Print measures for people: overall, and of each class or label."""
    inner = ("each", "classes", "confusion")
    print_table([], [(k.replace("_", " "), v) for k, v in result.items() if k not in inner])
    heads = ("", "precision", "recall", "f1", "rows")
    print_table(heads, [tuple(line.values()) for line in result["each"]])

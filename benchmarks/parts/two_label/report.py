"""Machines of two labels as rows of the table of targets, and as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.two_label.measure import Found
from benchmarks.parts.two_label.targets import DUAL, FITS, INTERCEPTS


def target_rows(found: Found) -> Iterator[Row]:
    for each in found.exact:
        yield DUAL[each.title], each.dual, f"{each.dual:.1e}"
        if each.intercepts is not None:
            yield INTERCEPTS[each.title], each.intercepts, f"{each.intercepts:.1e}"
    for times in found.times:
        ratio = times.seconds["ParallelSVM"] / times.seconds["SVC of three sets"]
        yield FITS[times.data], ratio, f"{ratio:.2f}x"


def sections(found: Found) -> list[str]:
    titles = list(found.times[0].seconds)
    rows = [
        [times.data, str(times.n_rows)] + [f"{times.seconds[each]:.3g}" for each in titles]
        for times in found.times
    ]
    text = "## Two labels that may overlap\n\nSeconds of a fit, the same rows and kernel:\n\n"
    parts = [text + table(["data", "rows", *titles], rows)]
    if found.folds:
        rows = [
            [each.machine, _with_error(each.accuracy, 1), _with_error(each.hamming, 3)]
            for each in found.folds
        ]
        parts.append(
            f"Cross-validation in {len(found.folds[0].accuracy)} folds, C and gamma chosen within "
            "the training rows of each by their own cross-validation; mean and standard error. "
            "Hamming distance is the number of wrong labels a row, of two:\n\n"
            + table(["machine", "rows with the right labels, %", "Hamming distance"], rows)
        )
    return parts


def _with_error(values: list[float], digits: int) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"

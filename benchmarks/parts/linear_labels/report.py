"""Linear machines of label sets as rows of the table of targets, and as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.linear_labels.measure import Found
from benchmarks.parts.linear_labels.targets import (
    AGAINST_ONE_A_LABEL,
    OF_A_PRIOR,
    OF_MEMORY,
    OF_TIME,
)

_ROWS = 800_000  # that the promise of time is about


def target_rows(found: Found) -> Iterator[Row]:
    for each in found.comparisons:
        ratio = each.ours / each.rival
        yield AGAINST_ONE_A_LABEL[each.dataset], ratio, f"{ratio:.2f}x"
        if each.with_prior is not None:
            ratio = each.with_prior / each.ours
            yield OF_A_PRIOR, ratio, f"{ratio:.2f}x"
    large = found.large
    if large is not None:
        words = f"{large.gigabytes:.1f} GB with {large.n_rows} rows"
        yield OF_MEMORY, large.gigabytes if large.n_rows >= _ROWS else None, words
        words = f"{large.seconds / 60:.1f} min with {large.n_rows} rows"
        yield OF_TIME, large.seconds / 60 if large.n_rows >= _ROWS else None, words


def sections(found: Found) -> list[str]:
    rows = [
        [
            *(each.dataset, each.n_labels, f"{each.ours:.2f}", f"{each.rival:.2f}"),
            *(f"{each.objective:.6g}", f"{each.rival_objective:.6g}"),
            *(f"{each.tol:g}", f"{each.rival_tol:g}"),
            "" if each.with_prior is None else f"{each.with_prior:.2f}",
        ]
        for each in found.comparisons
    ]
    titles = ["data", "labels", "s", "s, LinearSVC", "objective", "LinearSVC's", "tol", "its tol"]
    text = "## Linear machines of label sets\n\n" + table([*titles, "s, dense prior"], rows)
    if found.large is not None:
        large = found.large
        text += (
            f"\n\nSynthetic, {large.n_rows} rows: {large.seconds:.1f} s, {large.passes} passes, "
            f"gap {large.gap:.1e} of the objective, {large.gigabytes:.2f} GB."
        )
    return [text]

"""Accuracies as rows of the table of targets, and as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import count, table
from benchmarks.models import SVC_PARAMETERS
from benchmarks.part import Row
from benchmarks.parts.accuracy.measure import SetResult
from benchmarks.parts.accuracy.targets import FEWER_VECTORS
from benchmarks.scores import Search


def target_rows(results: list[SetResult]) -> Iterator[Row]:
    for each in results:
        text = f"{each.ours} %, {count(len(each.ours.trials), 'seed')}"
        yield each.target, each.ours.mean, text
    for each in results:
        if each.nystroem_curve is not None:
            yield FEWER_VECTORS[each.target.dataset], *_fewer(each)


def _fewer(result: SetResult) -> tuple[float, str]:
    """Return how many times our vectors Nystroem needs, and the words for it."""
    ours, sizes = result.target.n_vectors, sorted(result.nystroem_curve or {})
    if result.nystroem_needed is not None:
        factor = result.nystroem_needed / ours
        return factor, f"{factor:.2f} ({result.nystroem_needed:.0f} against {ours})"
    if sizes[-1] > ours:
        return sizes[-1] / ours, f"more than {sizes[-1] / ours:g} ({sizes[-1]} are not enough)"
    return sizes[0] / ours, f"less than {sizes[0] / ours:g} ({sizes[0]} are enough)"


def sections(results: list[SetResult]) -> list[str]:
    return [_peers(results), _curves(results), _searches(results)]


def _peers(results: list[SetResult]) -> str:
    rows = []
    for result in results:
        for score in result.scores:
            unfinished = sum(not trial.converged for trial in score.trials)
            note = (
                f"{unfinished} of {len(score.trials)} fits ended at max_iter" if unfinished else ""
            )
            size = "" if score.size is None else score.size
            rows.append([result.target.dataset, score.title, size, score, len(score.trials), note])
    head = ["data set", "machine", "vectors or units", "test accuracy %", "runs", ""]
    return (
        "## Beside the others\n\n"
        "Mean ± standard deviation over seeds (least to most).\n\n" + table(head, rows)
    )


def _curves(results: list[SetResult]) -> str:
    rows = [
        [result.target.dataset, size, score]
        for result in results
        for size, score in sorted((result.nystroem_curve or {}).items())
    ]
    if not rows:
        return ""
    return (
        "## Nystroem + LinearSVC as it grows\n\n"
        "Tuned anew at each size that the last section lists; a size that is missing there has "
        "the parameters of the next smaller one.\n\n"
        + table(["data set", "components", "test accuracy %"], rows)
    )


def _searches(results: list[SetResult]) -> str:
    rows = [
        [result.target.dataset, search.tuned.judged_by, *_search(search)]
        for result in results
        for search in result.searches
    ]
    fixed = "; ".join(f"{name} {values}" for name, values in SVC_PARAMETERS.items())
    head = [
        "data set",
        "judged by",
        "machine",
        "size",
        "grid",
        "chosen",
        "validation %",
        "on an edge",
    ]
    return (
        "## How each was tuned\n\n"
        "On training rows only, the same way for all. A grid gets one point more wherever its "
        f"best point lies on an edge. SVC has fixed parameters: {fixed}.\n\n" + table(head, rows)
    )


def _search(search: Search) -> list[str]:
    tuned = search.tuned
    grid = "; ".join(
        f"{name} {values[0]:.3g} to {values[-1]:.3g}, {len(values)} points"
        for name, values in tuned.grid.items()
    )
    chosen = ", ".join(f"{name}={value:.4g}" for name, value in tuned.chosen.items())
    size = "" if search.size is None else str(search.size)
    edge = ", ".join(tuned.on_edge) or "no"
    return [search.title, size, grid, chosen, f"{tuned.validation:.2f}", edge]

"""The learned basis as rows of the table of targets, and as tables of its own."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from benchmarks.markdown import count, table
from benchmarks.part import Row
from benchmarks.parts.learned.measure import SetScores
from benchmarks.parts.learned.targets import (
    DEFAULT_LEAD,
    GREEDY_RATIO,
    LEAD,
    LEARNED_ACCURACY,
    LEAST_LEAD,
    SVC_VECTORS,
)
from benchmarks.scores import Score


def target_rows(found: list[SetScores]) -> Iterator[Row]:
    """Yield target, measured value, and the words for it."""
    by_name = {each.dataset: each for each in found}
    for target in LEARNED_ACCURACY:
        if target.dataset in by_name:
            score = by_name[target.dataset].tuned["learned"][target.n_vectors]
            yield target, score.mean, f"{score} %, {count(len(score.trials), 'seed')}"
    led = [each for each in found if each.untuned]
    if led:
        yield from _lead_rows(led)
    for name, target in GREEDY_RATIO.items():
        if name in by_name:
            yield target, *_greedy(by_name[name])
    for name, target in SVC_VECTORS.items():
        if name in by_name:
            yield target, *_near_svc(by_name[name])


def _lead_rows(found: list[SetScores]) -> Iterator[Row]:
    tuned = {each.dataset: mean(each.leads(each.tuned)) for each in found}
    untuned = {each.dataset: mean(each.leads(each.untuned)) for each in found}
    lead = mean(tuned.values())
    yield LEAD, lead, f"{lead:+.2f} ({_signed(tuned)})"
    least = min(tuned, key=tuned.__getitem__)
    yield LEAST_LEAD, tuned[least], f"{tuned[least]:+.2f} ({least})"
    lead = mean(untuned.values())
    yield DEFAULT_LEAD, lead, f"{lead:+.2f} ({_signed(untuned)})"


def _signed(by_set: dict[str, float]) -> str:
    return ", ".join(f"{name} {lead:+.2f}" for name, lead in by_set.items())


def _greedy(found: SetScores) -> tuple[float, str]:
    """Return the ratio at the smallest size, and the words for all of them."""
    ratios: dict[int, tuple[float, str]] = {}
    largest = max(found.tuned["sparse"])
    for size in found.sizes:
        needed = found.greedy_needed(size)
        if needed is not None:
            ratios[size] = needed / size, f"{needed / size:.1f} at {size}"
        else:
            ratios[size] = largest / size, f"more than {largest / size:.1f} at {size}"
    first = found.sizes[0]
    text = "; ".join(words for _, words in ratios.values())
    return ratios[first][0], f"{text} (sizes up to {largest} were tried)"


def _near_svc(found: SetScores) -> tuple[float, str]:
    near, svc = found.near_svc(), found.svc
    assert svc is not None
    assert svc.size is not None
    against = f"SVC {svc.mean:.2f} with {svc.size}"
    if near is None:
        largest = max(found.tuned["learned"])
        score = found.tuned["learned"][largest].mean
        return 0.0, f"not reached: {score:.2f} with {largest}; {against}"
    size, score = near
    return svc.size / size, f"{svc.size / size:.0f}x ({score.mean:.2f} with {size}; {against})"


def sections(found: list[SetScores]) -> list[str]:
    return [_beside(found), _searches(found)]


def _beside(found: list[SetScores]) -> str:
    rows = []
    for each in found:
        for size in each.sizes:
            scores = [by_size.get(size) for by_size in each.tuned.values()]
            scores += [by_size.get(size) for by_size in each.untuned.values()]
            rows += [_score_row(each.dataset, score) for score in scores if score is not None]
        further = [
            score
            for by_size in each.tuned.values()
            for size, score in by_size.items()
            if size not in each.sizes
        ]
        if each.svc is not None:
            further.append(each.svc)
        rows += [_score_row(each.dataset, score) for score in further]
    head = ["data set", "machine", "vectors or units", "test accuracy %", "runs"]
    return (
        "## A learned basis beside the others\n\n"
        "Mean ± standard deviation over seeds (least to most); linear models have no size and "
        "stand with the smallest.\n\n" + table(head, rows)
    )


def _score_row(name: str, score: Score) -> list[object]:
    size = "" if score.size is None else score.size
    return [name, score.title, size, score, len(score.trials)]


def _searches(found: list[SetScores]) -> str:
    rows = []
    for each in found:
        for search in each.searches:
            chosen = ", ".join(f"{name}={value:.4g}" for name, value in search.tuned.chosen.items())
            edge = ", ".join(search.tuned.on_edge) or "no"
            size = "" if search.size is None else search.size
            validation = f"{search.tuned.validation:.2f}"
            rows.append([each.dataset, search.title, size, chosen, validation, edge])
    head = ["data set", "machine", "size", "chosen", "validation %", "on an edge"]
    return "## How they were tuned\n\nOn training rows only.\n\n" + table(head, rows)

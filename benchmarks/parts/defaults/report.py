"""Machines as they come: rows of the table of targets, and tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.defaults.measure import Found, Judged
from benchmarks.parts.defaults.targets import (
    LEAST_LEAD,
    MEAN_LEAD,
    MORE_VECTORS,
    PLAIN,
    SEARCH,
    SEARCH_SECONDS,
    SPLIT_LEAD,
)


def target_rows(found: Found) -> Iterator[Row]:
    for which, judged in found.plain.items():
        yield PLAIN[which], judged.mean, _listed(judged)
    for name in [name for name in SEARCH if name in found.searched]:
        yield SEARCH[name], found.searched[name].mean, _listed(found.searched[name])
    for name in [name for name in SEARCH_SECONDS if name in found.searched]:
        seconds = found.searched[name].seconds
        listed = ", ".join(f"{each:.1f}" for each in seconds)
        yield SEARCH_SECONDS[name], float(np.median(seconds)), listed
    if found.splits:
        means = {who: float(np.mean(scores)) for who, scores in found.splits.items()}
        ours = means.pop("search")
        best = max(means, key=lambda who: means[who])
        yield SPLIT_LEAD, ours - means[best], f"{ours:.2f} against {means[best]:.2f} ({best})"
    for name, by_size in found.growing.items():
        *smaller, last = (judged.mean for judged in by_size.values())
        if smaller:
            listed = ", ".join(f"{size}: {judged.mean:.2f}" for size, judged in by_size.items())
            yield MORE_VECTORS[name], last - max(smaller), listed
    leads = _leads(found)
    if leads:
        mean, least = float(np.mean(list(leads.values()))), min(leads, key=lambda name: leads[name])
        yield MEAN_LEAD, mean, f"{mean:+.2f} on {len(leads)} sets"
        yield LEAST_LEAD, leads[least], f"{leads[least]:+.2f} on {least}"


def sections(found: Found) -> list[str]:
    names = list(dict.fromkeys(who for each in found.others.values() for who in each))
    titles = ["data", "search, %", "vectors", "seconds", *names, "lead"]
    rows = []
    for name, judged in found.searched.items():
        beside = found.others.get(name, {})
        rows.append(
            [
                name,
                _listed(judged),
                ", ".join(map(str, judged.n_basis)),
                f"{np.median(judged.seconds):.1f}",
                *(f"{beside[who]:.2f}" if who in beside else "" for who in names),
                f"{_leads(found)[name]:+.2f}" if beside else "",
            ]
        )
    sizes = [
        [name, str(size), _listed(judged), f"{np.median(judged.seconds):.1f}"]
        for (name, size), judged in found.plain.items()
    ]
    return [
        "## Searches as they come, others at their defaults\n\n" + table(titles, rows),
        "## Learned vectors as they come\n\n"
        + table(["data", "vectors", "test accuracy, %", "seconds, one thread"], sizes),
    ]


def _leads(found: Found) -> dict[str, float]:
    """Return by how much the search is ahead of the best of the others."""
    return {
        name: found.searched[name].mean - max(beside.values())
        for name, beside in found.others.items()
    }


def _listed(judged: Judged) -> str:
    each = ", ".join(f"{score:.2f}" for score in judged.scores)
    return f"{judged.mean:.2f} ± {np.std(judged.scores):.2f} ({each})"

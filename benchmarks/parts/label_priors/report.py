"""Priors under mismatch as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.label_priors.measure import Found, vectors_as_good
from benchmarks.parts.label_priors.targets import GAINS, VECTORS


def target_rows(found: Found) -> Iterator[Row]:
    problems = {each.problem for each in found.judged}
    if "yeast" in problems:
        yield _gain(found, "yeast", "yeast", "no prior", "prior of test labels")
    if "two attributes" in problems:
        yield _gain(found, "two attributes", "two attributes", "r = 0", "r = -0.6")
    if "attributes" in problems:
        yield _gain(found, "attributes", "attributes", "M3L", "M3L, prior of test animals")
        size = sorted(found.by_size)[len(found.by_size) // 2]
        name = f"SM3L, {size} vectors"
        prior = f"{name}, prior of test animals"
        yield _gain(found, "attributes, sparse", "attributes", name, prior)
        fewest = vectors_as_good(found)
        yield VECTORS, None if fewest is None else float(fewest), f"{fewest} of 200"


def _gain(found: Found, key: str, problem: str, without: str, related: str) -> Row:
    before, after = found.loss(problem, without), found.loss(problem, related)
    constant = found.loss(problem, "constant, by test rows")
    words = f"{before:.2f} to {after:.2f} % (constant by test rows {constant:.2f})"
    return GAINS[key], before - after, words


def sections(found: Found) -> list[str]:
    rows = [
        [each.problem, each.machine, f"{each.mean:.2f}", ", ".join(f"{x:.2f}" for x in each.losses)]
        for each in found.judged
    ]
    text = (
        "## Label priors where test rows disagree\n\nHamming loss in percent. A constant answer "
        "looks at no row; that by test rows knows what a prior of test labels knows, and a machine "
        "that is no better than it has learned nothing else.\n\n"
    )
    return [text + table(["problem", "machine", "mean", "each seed"], rows)]

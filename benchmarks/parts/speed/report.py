"""Fit times as rows of the table of targets, and as a table of their own."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.speed.measure import HEADLINE, FitTimes, Speed, Variant
from benchmarks.parts.speed.targets import DOUBLING, FIT_RATIO, GRADIENT


def target_rows(found: Speed) -> Iterator[Row]:
    for times in found.fit_times:
        ratios = times.ratios(HEADLINE)
        text = (
            f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {_variant(HEADLINE)}"
        )
        yield FIT_RATIO[times.dataset], median(ratios), text
    reached = found.gradient
    # The last digits depend on the order of summation; the promise is about the size.
    text = f"{reached.recomputed:.2g} (reported: {reached.reported:.2g}), {reached.where}"
    yield GRADIENT, float(f"{reached.recomputed:.1e}"), text
    growth = found.doubling.growth
    steps = ", ".join(f"{factor:.2f}" for factor in growth)
    seconds = ", ".join(f"{n} rows {s:.2f} s" for n, s in found.doubling.seconds.items())
    text = f"{max(growth):.2f}x ({steps}: {seconds}; {found.doubling.n_vectors} vectors)"
    yield DOUBLING, max(growth), text


def _variant(variant: Variant) -> str:
    dtype, n_jobs = variant
    return f"{dtype}, n_jobs={n_jobs}"


def sections(found: Speed) -> list[str]:
    return [_fit_times(found.fit_times)] if found.fit_times else []


def _fit_times(fit_times: list[FitTimes]) -> str:
    rows = []
    for times in fit_times:
        rows.append([times.dataset, "SVC", f"{median(times.svc):.2f}", "1"])
        for variant, seconds in times.ours.items():
            ratios = times.ratios(variant)
            spread = f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            rows.append([times.dataset, _variant(variant), f"{median(seconds):.2f}", spread])
    return "## Fit time in ratio to SVC\n\nMedian of runs that take turns.\n\n" + table(
        ["data set", "machine", "seconds", "ratio (least to most)"], rows
    )

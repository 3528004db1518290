"""The results as markdown tables."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, field
from statistics import median

import numpy as np
import scipy
import sklearn

import widemargin
from benchmarks import kernel_report, learned_report, prediction_report
from benchmarks.accuracy import Search, SetResult
from benchmarks.gradient import Reached
from benchmarks.kernel_machines import KernelMachines
from benchmarks.learned import SetScores
from benchmarks.learned_speed import LearnedSpeed
from benchmarks.markdown import count, table
from benchmarks.memory import Peak
from benchmarks.models import SVC_PARAMETERS
from benchmarks.prediction import Prediction
from benchmarks.settings import Settings
from benchmarks.speed import HEADLINE, Doubling, FitTimes, Variant
from benchmarks.targets import DOUBLING, FEWER_VECTORS, FIT_RATIO, GRADIENT, MEMORY, Target


@dataclass
class Results:
    """What a run measured; parts that it left out are empty."""

    accuracy: list[SetResult] = field(default_factory=list)
    fit_times: list[FitTimes] = field(default_factory=list)
    doubling: Doubling | None = None
    gradient: Reached | None = None
    memory: Peak | None = None
    prediction: Prediction | None = None
    learned: list[SetScores] = field(default_factory=list)
    learned_speed: LearnedSpeed | None = None
    kernel: KernelMachines | None = None


def render(results: Results, settings: Settings) -> str:
    sections = [_versions()]
    if settings.is_quick:
        sections.append("**A quick run on few rows: it shows that the programs work, no more.**")
    sections.append(_targets(results, settings))
    if results.fit_times:
        sections.append(_fit_times(results.fit_times))
    if results.accuracy:
        sections += [
            _peers(results.accuracy),
            _curves(results.accuracy),
            _searches(results.accuracy),
        ]
    if results.prediction is not None:
        sections += prediction_report.sections(results.prediction)
    if results.learned_speed is not None and results.learned_speed.beside:
        sections.append(learned_report.times_section(results.learned_speed))
    sections += learned_report.sections(results.learned)
    if results.kernel is not None:
        sections += kernel_report.sections(results.kernel)
    return "\n\n".join(section for section in sections if section)


def _versions() -> str:
    return (
        f"widemargin {widemargin.__version__}, scikit-learn {sklearn.__version__}, "
        f"NumPy {np.__version__}, SciPy {scipy.__version__}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores"
    )


def _targets(results: Results, settings: Settings) -> str:
    rows = []

    def add(target: Target, value: float | None, text: str) -> None:
        sign = ">=" if target.better == "higher" else "<="
        bar = "" if target.bar is None else f"{sign} {target.bar:g}{target.unit}"
        stretch = "" if target.stretch is None else f"{target.stretch:g}{target.unit}"
        if value is None:
            verdict = "not measured"
        else:
            verdict = "(quick run)" if settings.is_quick else target.verdict(value)
        rows.append([target.what, bar, stretch, text, verdict])

    for each in results.accuracy:
        add(each.target, each.ours.mean, f"{each.ours} %, {count(len(each.ours.trials), 'seed')}")
    for each in results.accuracy:
        if each.nystroem_curve is not None:
            add(FEWER_VECTORS[each.target.dataset], *_fewer(each))
    for times in results.fit_times:
        ratios = times.ratios(HEADLINE)
        text = (
            f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}), {_variant(HEADLINE)}"
        )
        add(FIT_RATIO[times.dataset], median(ratios), text)
    if results.gradient is not None:
        reached = results.gradient
        # The last digits depend on the order of summation; the promise is about the size.
        text = f"{reached.recomputed:.2g} (reported: {reached.reported:.2g}), {reached.where}"
        add(GRADIENT, float(f"{reached.recomputed:.1e}"), text)
    if results.doubling is not None:
        growth = results.doubling.growth
        steps = ", ".join(f"{factor:.2f}" for factor in growth)
        seconds = ", ".join(f"{n} rows {s:.2f} s" for n, s in results.doubling.seconds.items())
        text = f"{max(growth):.2f}x ({steps}: {seconds}; {results.doubling.n_vectors} vectors)"
        add(DOUBLING, max(growth), text)
    if results.memory is not None:
        peak = results.memory
        text = (
            f"{peak.gigabytes:.2f} GB ({peak.loaded_gigabytes:.2f} before the fit, which took "
            f"{peak.seconds:.0f} s), {peak.where}, {peak.n_vectors} vectors"
        )
        add(MEMORY, peak.gigabytes, text)
    if results.prediction is not None:
        for row in prediction_report.target_rows(results.prediction):
            add(*row)
    for row in learned_report.accuracy_rows(results.learned):
        add(*row)
    if results.learned_speed is not None:
        for row in learned_report.speed_rows(results.learned_speed):
            add(*row)
    if results.kernel is not None:
        for kernel_row in kernel_report.target_rows(results.kernel):
            add(*kernel_row)
    if not rows:
        return "Nothing was measured."
    return "## Promised and measured\n\n" + table(
        ["", "bar", "stretch", "measured", "verdict"], rows
    )


def _variant(variant: Variant) -> str:
    dtype, n_jobs = variant
    return f"{dtype}, n_jobs={n_jobs}"


def _fewer(result: SetResult) -> tuple[float, str]:
    """Return how many times our vectors Nystroem needs, and the words for it."""
    ours, sizes = result.target.n_vectors, sorted(result.nystroem_curve or {})
    if result.nystroem_needed is not None:
        factor = result.nystroem_needed / ours
        return factor, f"{factor:.2f} ({result.nystroem_needed:.0f} against {ours})"
    if sizes[-1] > ours:
        return sizes[-1] / ours, f"more than {sizes[-1] / ours:g} ({sizes[-1]} are not enough)"
    return sizes[0] / ours, f"less than {sizes[0] / ours:g} ({sizes[0]} are enough)"


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

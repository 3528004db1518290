"""Trials summed up: a row of the table for each contender, and how all was measured."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from statistics import fmean, median, stdev
from typing import Any

from widemargin.report.comparison import Candidate, with_frontiers
from widemargin.report.contenders import TUNING_FOLDS, TUNING_ROWS, Task
from widemargin.report.schedule import Runner
from widemargin.report.trials import Trial

_PACKAGES = ("widemargin", "scikit-learn", "numpy", "catboost", "lightgbm", "xgboost")


def candidate_of(runner: Runner, n_train: int, n_test: int) -> Candidate:
    """Return what is shown of a contender; what compares it with others comes later."""
    contender = runner.contender
    bare = Candidate(contender.name, contender.kind, contender.settings, contender.family)
    if not runner.trials:
        return replace(bare, note=runner.note or "left out: the time was over")
    splits = tuple(sorted(runner.trials))
    trials = [runner.trials[split] for split in splits]
    scores = tuple(trial.score for trial in trials)
    vectors = [trial.n_basis for trial in trials if trial.n_basis is not None]
    return replace(
        bare,
        settings=_with_choices(contender.settings, trials),
        scores=scores,
        splits=splits,
        mean=fmean(scores),
        spread=stdev(scores) if len(scores) > 1 else math.nan,
        batch_us=median(trial.batch_us for trial in trials),
        alone_us=median(trial.alone_us for trial in trials),
        model_bytes=round(fmean(trial.model_bytes for trial in trials)),
        fit_seconds=fmean(trial.fit_seconds for trial in trials),
        n_basis=round(fmean(vectors)) if vectors else None,
        n_rows=runner.n_rows,
        note=_note(runner, trials, n_train, n_test),
    )


def ranked(candidates: Sequence[Candidate], test_share: float) -> tuple[Candidate, ...]:
    """Put the best first, with differences from it and frontiers.

    Parameters
    ----------
    candidates : sequence of Candidate
    test_share : float
        Test rows of a split for each training row.
    """
    measured = [row for row in candidates if row.measured]
    able = [row for row in measured if row.family != "constant"] or measured
    most = max((len(row.splits) for row in able), default=0)
    if most:
        # Splits differ in how hard they are: who lacks one is compared on the others, and a lucky
        # one makes nobody the best of several.
        usual = max((row for row in able if len(row.splits) == most), key=lambda row: row.mean)
        rivals = [_against(row, usual, test_share) for row in able if len(row.splits) >= most / 2]
        best = max(rivals, key=lambda row: row.difference)
        measured = [_against(row, best, test_share) for row in measured]
        measured.sort(key=lambda row: -row.difference)
    return with_frontiers([*measured, *(row for row in candidates if not row.measured)])


def _against(row: Candidate, best: Candidate, test_share: float) -> Candidate:
    """Add the mean paired difference, and its standard error.

    Training rows of splits overlap, so that their scores vary together; the variance of the mean is
    larger by the test rows for each training row (Nadeau and Bengio 2003).
    """
    theirs = dict(zip(best.splits, best.scores, strict=True))
    pairs = zip(row.splits, row.scores, strict=True)
    gaps = [score - theirs[split] for split, score in pairs if split in theirs]
    if not gaps:
        return row
    error = math.nan
    if len(gaps) > 1:
        error = stdev(gaps) * math.sqrt(1 / len(gaps) + test_share)
    return replace(row, difference=fmean(gaps), difference_error=error)


def _with_choices(settings: str, trials: Sequence[Trial]) -> str:
    """Say what a search has chosen, in each split where that differs."""
    if not trials[0].chosen:
        return settings
    said = []
    for name in trials[0].chosen:
        values = dict.fromkeys(_short(trial.chosen.get(name)) for trial in trials)
        said.append(f"{name.split('__')[-1]} {' / '.join(values)}")
    return (
        f"{settings}, {', '.join(said)}, chosen by {TUNING_FOLDS} folds of at most "
        f"{TUNING_ROWS:,} training rows"
    )


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def _note(runner: Runner, trials: Sequence[Trial], n_train: int, n_test: int) -> str:
    said = []
    if runner.n_rows < n_train:
        said.append(
            f"learned from {runner.n_rows:,} of {n_train:,} rows: all would take about "
            f"{runner.costs.seconds(n_train, n_test):.0f} s a split"
        )
    if any(trial.cut_short for trial in trials):
        longest = max(trial.fit_seconds for trial in trials)
        said.append(f"ended by its time limit after {longest:.0f} s")
    if runner.contender.kind == "ours" and not all(trial.compiled for trial in trials):
        said.append("not compiled")
    return "; ".join(said)


def how_measured(task: Task, n_splits: int, n_train: int, n_test: int) -> tuple[str, ...]:
    """Say what a reader has to know to believe the table."""
    folds = "folds" if task.label_sets else "stratified folds"
    return (
        f"{n_splits} {folds}, learned from {n_train:,} rows and tested on {n_test:,} others; "
        "settings are chosen on training rows only.",
        "Trees get numbers as they are and texts as numbers; all others get standardised numbers "
        "(kernels not where all are of one unit, as pixels) and a column for each text.",
        "µs a row: one thread, from the row as it is in the table to its answer; ours compiled, "
        "others by predict of their pipeline. Alone: one call a row.",
        "Model: ours by the file of widemargin.save, others by their pickle.",
        f"Fit: with the choice of settings, on {task.n_threads} cores where the method uses them.",
    )


def environment(n_threads: int) -> dict[str, str]:
    """Return versions and processors."""
    found: dict[str, str] = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["processors"] = f"{n_threads} of {os.cpu_count()}"
    found["machine"] = f"{platform.system()} {platform.machine()}"
    return found

"""Compare our machines with what a user would pick instead, on the user's own rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._system.parameters import check_choice, check_integer, check_real
from widemargin._system.threads import thread_count
from widemargin.report.comparison import Comparison
from widemargin.report.contenders import Task, contenders
from widemargin.report.encoding import ordinal_text_places
from widemargin.report.recommendation import recommend
from widemargin.report.rows import checked_rows, checked_target, make_folds
from widemargin.report.schedule import Runner, Schedule
from widemargin.report.summary import candidate_of, environment, how_measured, ranked
from widemargin.report.trials import METRICS
from widemargin.report.worker import Problem, Worker

_MOST_TEST_ROWS = 10_000


def compare(
    X: Any,
    y: Any,
    *,
    minutes: float = 5.0,
    metric: str | None = None,
    n_splits: int = 5,
    names: Sequence[str] | None = None,
    n_jobs: int = -1,
    random_state: int = 0,
    data: str = "",
    target: str = "",
    tell: Callable[[float, str], None] | None = None,
) -> Comparison:
    """Fit our machines and others to splits of the same rows, within a time limit.

    Parameters
    ----------
    X : data frame, array-like or CSR matrix of shape (n_samples, n_features)
        Columns of a data frame may be numbers or texts, with gaps.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Classes, or an indicator of labels.
    minutes : float, default=5
        Time limit. What would not fit learns from fewer rows or is left out, and a note says so.
    metric : str, default=None
        "accuracy", "balanced accuracy", "macro F1", "micro F1", or, of label sets, "labels right",
        the share of labels that are told right. None is "accuracy", or "labels right".
    n_splits : int, default=5
        Folds. Where time is short, fewer of them are tested on.
    names : sequence of str, default=None
        Names of the contenders to run; None runs all that are installed.
    n_jobs : int, default=-1
        Threads and processes of fits, -1 for all cores. Predictions are timed in one thread.
    random_state : int, default=0
        Seed of splits and fits.
    data : str, default=""
        Name of the rows, which the result carries.
    target : str, default=""
        Name of what is learned, likewise.
    tell : callable, default=None
        ``tell(share of the time that is over, what is being done)``.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.report import compare
    >>> X, y = load_iris(return_X_y=True)
    >>> found = compare(X, y, minutes=1, names=["10 learned vectors", "LinearSVC"], n_splits=2)
    >>> sorted(row.name for row in found.candidates)
    ['10 learned vectors', 'LinearSVC']
    """
    started = time.monotonic()
    check_real("minutes", minutes, positive=True)
    check_integer("n_splits", n_splits, least=2)
    check_integer("random_state", random_state, least=0)
    X, y = checked_rows(X), checked_target(y)
    label_sets = y.ndim == 2
    metric = metric or ("labels right" if label_sets else "accuracy")
    check_choice("metric", metric, [one for one in METRICS if label_sets or one != "labels right"])
    folds = make_folds(X, y, n_splits, random_state)
    n_train = min(len(train) for train, _ in folds)
    n_test = min(_MOST_TEST_ROWS, *(len(test) for _, test in folds))
    task = Task(
        label_sets=label_sets,
        n_outputs=y.shape[1] if label_sets else len(np.unique(y)),
        n_numbers=n_train * X.shape[1],
        sparse=sp.issparse(X),
        text_places=tuple(ordinal_text_places(X)),
        n_threads=thread_count(n_jobs),
        seed=random_state,
    )
    runners = _runners(task, names)
    with Worker(Problem(task, X, y, folds, metric)) as worker:
        Schedule(
            worker,
            runners,
            n_train=n_train,
            n_test=n_test,
            n_splits=n_splits,
            seconds=60 * minutes,
            deadline=started + 60 * minutes,
            tell=tell or (lambda _share, _text: None),
        ).run()
    rows = ranked([candidate_of(runner, n_train, n_test) for runner in runners], n_test / n_train)
    found = Comparison(
        metric,
        rows,
        notes=how_measured(task, n_splits, n_train, n_test),
        n_rows=X.shape[0],
        n_features=X.shape[1],
        n_outputs=task.n_outputs,
        n_train=n_train,
        n_test=n_test,
        n_splits=max(len(row.splits) for row in rows),
        label_sets=label_sets,
        minutes=float(minutes),
        data=data,
        target=target,
        environment=environment(task.n_threads),
    )
    return replace(
        found, recommendation=recommend(found), seconds=round(time.monotonic() - started, 2)
    )


def _runners(task: Task, names: Sequence[str] | None) -> list[Runner]:
    """Return those that were asked for; what the data forbid is left out, with the reason."""
    known = {one.name: one for one in contenders(task)}
    for name in known if names is None else names:
        check_choice("names", name, list(known))
    runners = [Runner(known[name]) for name in (known if names is None else names)]
    if not runners:
        raise ValueError(f"names is empty: give some of {', '.join(known)}.")
    for runner in runners:
        obstacle = runner.contender.obstacle(task)
        if obstacle:
            runner.leave_out(obstacle)
    return runners

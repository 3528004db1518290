"""Comparisons: splits, preparation, trials in a process, words; bad input."""

import math
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification, make_multilabel_classification

from widemargin.report import Candidate, Comparison, compare
from widemargin.report.contenders import Task, contenders
from widemargin.report.encoding import ordinal, ordinal_text_places, scaled
from widemargin.report.recommendation import recommend
from widemargin.report.rows import checked_rows, checked_target, make_folds, some_rows
from widemargin.report.summary import ranked
from widemargin.report.worker import FailedError, Order, Problem, TooSlowError, Worker, carry_out


def a_table(n_rows=120, seed=0):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], n_rows).astype(object)
    weight = rng.normal(size=n_rows)
    weight[::10] = np.nan
    table = pd.DataFrame({"colour": colour, "weight": weight, "age": rng.integers(0, 9, n_rows)})
    return table, np.where((colour == "red") ^ (weight > 0.3), "yes", "no")


def a_task(label_sets=False, sparse=False, text_places=(), n_outputs=2):
    return Task(label_sets, n_outputs, 100, sparse, text_places, n_threads=1, seed=0)


def a_problem(X, y, metric="accuracy"):
    X, y = checked_rows(X), checked_target(y)
    task = a_task(y.ndim == 2, sp.issparse(X), tuple(ordinal_text_places(X)))
    return Problem(task, X, y, make_folds(X, y, 3, 0), metric)


def test_a_comparison_of_a_table_in_a_process_of_its_own():
    X, y = a_table()
    names = ["10 learned vectors", "LinearSVC", "histogram boosting", "constant"]
    told = []
    started = time.monotonic()
    found = compare(
        X,
        y,
        minutes=1,
        names=names,
        n_splits=2,
        data="table",
        target="answer",
        tell=lambda share, text: told.append((share, text)),
    )
    assert time.monotonic() - started < 66
    assert sorted(row.name for row in found.candidates) == sorted(names)
    assert all(row.splits == (0, 1) for row in found.candidates)
    ours = next(row for row in found.candidates if row.kind == "ours")
    others = [row for row in found.candidates if row.kind == "peer" and row.name != "constant"]
    assert all(ours.alone_us < row.alone_us / 5 for row in others)  # compiled
    assert (ours.n_basis, ours.note) == (10, "")
    assert found.candidates[0].difference == 0
    assert {row.name for row in found.candidates if row.on_frontier} >= {found.candidates[0].name}
    assert (found.n_rows, found.n_features, found.n_train, found.n_test) == (120, 3, 60, 60)
    assert found.recommendation
    assert told
    assert Comparison.from_dict(found.to_dict()).to_dict() == found.to_dict()


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["table", "array", "sparse", "labels", "sparse labels"])
def test_every_contender_runs_on_all_kinds_of_rows(kind):
    if kind == "table":
        X, y = a_table()
    elif kind.endswith("labels"):
        X, y = make_multilabel_classification(90, 8, n_classes=4, random_state=0)
    else:
        X, y = make_classification(90, 8, n_informative=5, n_classes=3, random_state=0)
        X[0, 0] = 0 if kind == "sparse" else np.nan
    problem = a_problem(sp.csr_matrix(X) if kind.startswith("sparse") else X, y)
    for contender in contenders(problem.task):
        order = Order(contender.name, 0, 60, 30, seconds=5.0, timing=0.0)
        trial = carry_out(problem, order)
        assert 0 <= trial.score <= 1, contender.name
        assert trial.compiled == (contender.kind == "ours"), contender.name
        assert trial.model_bytes > 100


def test_a_trial_that_takes_too_long_is_ended_and_the_next_one_runs():
    X, y = make_classification(3000, 20, n_informative=10, random_state=0)
    with Worker(a_problem(X, y)) as worker:
        worker.start()
        started = time.monotonic()
        with pytest.raises(TooSlowError):
            worker.run(Order("SVC", 0, 2000, 1000), 0.05)
        assert time.monotonic() - started < 5
        assert worker.run(Order("constant", 0, 100, 100), 60).score > 0.4
        with pytest.raises(FailedError, match="StopIteration"):
            worker.run(Order("nobody", 0, 100, 100), 60)


def test_drawn_rows_keep_classes_and_grow():
    y = np.repeat([0, 1, 2], [900, 95, 5])
    few, many = some_rows(y, 50, 0), some_rows(y, 400, 0)
    assert len(few) == 50
    assert set(few) < set(many)
    assert np.bincount(y[few]).min() >= 1
    assert abs((y[many] == 1).mean() - 0.095) < 0.01
    assert len(some_rows(y, 5000, 0)) == 1000
    assert len(some_rows(np.ones((100, 2)), 10, 0)) == 10


def test_folds_test_each_row_once():
    X, y = load_iris(return_X_y=True)
    folds = make_folds(X, y, 5, 0)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(150))
    assert all(np.bincount(y[test]).tolist() == [10, 10, 10] for _, test in folds)


def test_tables_are_prepared_for_kernels_and_for_trees():
    X, _ = a_table()
    dense = scaled(X).fit_transform(X)
    assert dense.shape == (120, 5)
    assert not np.isnan(dense).any()
    numbered = ordinal(X).fit_transform(X)
    assert ordinal_text_places(X) == [2]
    assert set(numbered[:, 2]) == {0, 1, 2}
    assert np.isnan(numbered[:, 0]).any()  # trees take what is missing as it is


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((30, 2)), np.zeros(30), "nothing to learn"),
        (np.zeros((30, 2)), np.linspace(0, 1, 30), "no regressions"),
        (np.zeros((30, 2)), np.arange(29) % 2, "X has 30 rows, and y has 29"),
        (np.zeros((5, 2)), np.arange(5) % 2, "too few"),
        (np.zeros((30, 2)), np.array(["a", None] * 15, dtype=object), "first of them row 2"),
        (np.full((30, 2), np.inf), np.arange(30) % 2, "infinity"),
    ],
)
def test_data_that_cannot_be_compared_on_are_refused(X, y, message):
    with pytest.raises(ValueError, match=message):
        compare(X, y)


def test_dates_and_unknown_names_are_refused():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="'when' has dates"):
        compare(pd.DataFrame({"when": pd.date_range("2020", periods=150)}), y)
    with pytest.raises(ValueError, match="'LinearSVC'"):
        compare(X, y, names=["SVM"])
    with pytest.raises(ValueError, match="'balanced accuracy'"):
        compare(X, y, metric="labels right")
    with pytest.raises(ValueError, match="minutes must be positive"):
        compare(X, y, minutes=0)


def a_row(name, *scores, family="kernel", kind="peer", batch=1.0, **more):
    return Candidate(
        name,
        kind,
        "",
        family=family,
        scores=scores,
        splits=tuple(range(len(scores))),
        mean=sum(scores) / len(scores),
        batch_us=batch,
        alone_us=batch,
        **more,
    )


def words(*rows, **more):
    found = Comparison("accuracy", ranked(rows, 0.25), n_splits=3, n_train=100, **more)
    return " ".join(recommend(found))


def test_differences_are_of_the_same_splits():
    best, other = ranked([a_row("a", 0.9, 0.8, 0.7), a_row("b", 0.89, 0.78)], 0.25)
    assert other.difference == pytest.approx(-0.015)
    assert other.difference_error == pytest.approx(np.std([0.01, 0.02], ddof=1) * math.sqrt(0.75))
    assert best.difference == 0
    (lucky, steady) = ranked([a_row("steady", 0.9, 0.8, 0.7), a_row("lucky", 0.95)], 0.25)
    assert (lucky.name, steady.difference) == ("lucky", 0.0)
    assert lucky.difference == pytest.approx(0.05)


def test_words_say_what_to_take():
    svc = a_row("SVC", 0.97, 0.97, 0.97, batch=400.0)
    few = a_row("30 learned vectors", 0.967, 0.967, 0.967, kind="ours", n_basis=30)
    assert "30 learned vectors lose 0.3 points against SVC and predict 400 times" in words(svc, few)
    assert words(svc, few).startswith("Take SVC")
    as_good = replace(few, scores=(0.969, 0.969, 0.969), mean=0.969)
    assert words(svc, as_good).startswith("Take 30 learned vectors")
    linear = a_row("LinearSVC", 0.97, 0.969, 0.97, family="linear")
    assert "A linear model is as good: take it" in words(svc, few, linear)


def test_words_are_honest_where_ours_lose():
    trees = a_row("LightGBM", 0.9, 0.9, 0.9, batch=1.0, family="trees")
    ours = a_row("30 learned vectors", 0.8, 0.8, 0.8, batch=5.0, kind="ours")
    said = words(trees, ours)
    assert said.startswith("Take LightGBM")
    assert "None of ours is on the frontier here" in said
    constant = a_row("constant", 0.9, 0.9, 0.9, family="constant", batch=0.1)
    assert "Nothing is better than the constant answer" in words(trees, ours, constant)


def test_words_warn_of_fewer_rows_and_of_nothing():
    assert "fewer rows" in words(a_row("SVC", 0.9, n_rows=50))
    nothing = Comparison("accuracy", (Candidate("SVC", "peer", ""),))
    assert "allow more minutes" in recommend(nothing)[0]

"""Thresholds of labels: those of the highest F, and none for labels that are too rare."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.metrics import f1_score

from widemargin.estimation.thresholds import best_thresholds, label_folds


def problem(seed, n_rows=40, n_labels=3, shift=0.0):
    rng = np.random.RandomState(seed)
    Y = (rng.rand(n_rows, n_labels) < 0.4).astype(int)
    scores = 0.8 * (2 * Y - 1) + rng.randn(n_rows, n_labels) + shift
    return scores.round(1), Y  # so that scores tie


def thresholds_there_are(scores):
    ranked = np.unique(scores)
    return np.concatenate([[ranked[0] - 1], (ranked[1:] + ranked[:-1]) / 2, [ranked[-1]]])


def measure(scores, Y, thresholds, average):
    return f1_score(Y, scores > thresholds, average=average, zero_division=0)


@pytest.mark.combinations
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shift", [0.0, -1.0, 2.0])
def test_macro_finds_the_best_f_of_each_label(seed, shift):
    scores, Y = problem(seed, shift=shift)
    found = best_thresholds(scores, Y, np.ones(len(Y)), "macro")
    for label in range(3):
        own, has = scores[:, label], Y[:, label]
        best = max(f1_score(has, own > each) for each in thresholds_there_are(own))
        assert f1_score(has, own > found[label]) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_micro_finds_what_no_single_label_betters(seed):
    scores, Y = problem(seed, n_rows=25, shift=-1.0)
    found = best_thresholds(scores, Y, np.ones(len(Y)), "micro")
    reached = measure(scores, Y, found, "micro")
    for label in range(3):
        for each in thresholds_there_are(scores[:, label]):
            other = found.copy()
            other[label] = each
            assert measure(scores, Y, other, "micro") <= reached + 1e-12
    assert reached >= measure(scores, Y, np.zeros(3), "micro")
    assert reached >= measure(
        scores, Y, best_thresholds(scores, Y, np.ones(len(Y)), "macro"), "micro"
    )


def test_micro_of_two_labels_is_the_best_of_all_pairs():
    scores, Y = problem(3, n_rows=15, n_labels=2)
    found = measure(scores, Y, best_thresholds(scores, Y, np.ones(15), "micro"), "micro")
    pairs = itertools.product(*(thresholds_there_are(scores[:, label]) for label in range(2)))
    assert found == pytest.approx(
        max(measure(scores, Y, np.array(pair), "micro") for pair in pairs)
    )


@pytest.mark.parametrize("metric", ["macro", "micro"])
def test_zero_stays_unless_something_is_better(metric):
    scores = np.array([[-1.0], [-0.5], [0.5], [1.0]])
    Y = np.array([[0], [0], [1], [1]])
    assert best_thresholds(scores, Y, np.ones(4), metric) == [0.0]


@pytest.mark.parametrize("metric", ["macro", "micro"])
def test_a_label_that_is_too_rare_is_told_of_no_row(metric):
    rng = np.random.RandomState(0)
    scores, Y = rng.randn(200, 2), np.zeros((200, 2), dtype=int)
    Y[:100, 0] = 1
    scores[:100, 0] += 2
    Y[np.argsort(scores[:, 1])[100], 1] = 1  # its one row is in the middle
    found = best_thresholds(scores, Y, np.ones(200), metric)
    assert found[1] == scores[:, 1].max()
    assert found[0] < scores[:, 0].max()


@pytest.mark.parametrize("metric", ["macro", "micro"])
def test_a_weight_is_a_row_as_often(metric):
    scores, Y = problem(1)
    weights = np.random.RandomState(2).randint(0, 4, len(Y))
    kept = weights > 0
    again = np.repeat(np.arange(len(Y)), weights)
    found = best_thresholds(scores[kept], Y[kept], weights[kept].astype(float), metric)
    assert_array_equal(found, best_thresholds(scores[again], Y[again], np.ones(len(again)), metric))


@pytest.mark.parametrize("metric", ["macro", "micro"])
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array])
def test_sparse_labels_have_the_thresholds_of_dense_ones(form, metric):
    scores, Y = problem(2)
    expected = best_thresholds(scores, Y, np.ones(len(Y)), metric)
    assert_array_equal(best_thresholds(scores, form(Y), np.ones(len(Y)), metric), expected)


def test_folds_part_the_rows_and_deal_rare_labels_out():
    rng = np.random.RandomState(0)
    Y = (rng.rand(90, 5) < [0.5, 0.3, 0.0, 0.0, 0.2]).astype(int)
    Y[rng.permutation(90)[:3], 2] = 1
    Y[rng.permutation(90)[:6], 3] = 1
    used = np.flatnonzero(np.arange(90) % 10 != 7)
    Y[np.arange(90) % 10 == 7, 2] = 0
    for form in (np.asarray, sp.csr_matrix):
        folds = label_folds(form(Y), used, seed=3)
        assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), used)
        for train, test in folds:
            assert_array_equal(np.sort(np.concatenate([train, test])), used)
            assert 26 <= len(test) <= 28
        rarest = [int(Y[test, 2].sum()) for _, test in folds]
        assert max(rarest) - min(rarest) <= 1

"""Machines of two labels: forms of y, what is refused, thresholds, votes of pairs."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from label_machine import label_problem
from numpy.testing import assert_array_equal
from sklearn.base import clone

import widemargin
from widemargin import CrossTrainingSVM, ParallelSVM, SequentialSVM
from widemargin.readouts import Readout
from widemargin.two_label import PairwiseMultiLabel, map_threshold
from widemargin.two_label.chain import chain_answer, in_order
from widemargin.two_label.levels import LevelRows

KINDS = (ParallelSVM, SequentialSVM, CrossTrainingSVM)
every_kind = pytest.mark.parametrize("kind", KINDS)


def line(n_rows=40):
    """Return points of a line: B alone, both, A alone."""
    X = np.linspace(-3, 3, n_rows)[:, np.newaxis]
    return X, np.hstack([X > -1, X < 1]).astype(int)


def sets_of(Y, names=("air", "sea")):
    return [{name for name, own in zip(names, row, strict=True) if own} for row in Y]


@every_kind
def test_forms_of_two_labels_are_one_problem(kind):
    X, Y = line()
    expected = kind().fit(X, Y)
    assert_array_equal(expected.classes_, [0, 1])
    assert expected.predict(X).shape == Y.shape
    assert expected.score(X, Y) > 0.8
    sets = sets_of(Y)
    forms = [
        *(Y.astype(bool), Y.tolist(), sp.csr_matrix(Y), sp.csc_array(Y), sets, tuple(sets)),
        *([sorted(row) for row in sets], np.array(sets, dtype=object), (row for row in sets)),
    ]
    for form in forms:
        machine = kind().fit(X, form)
        assert_array_equal(machine.predict(X), expected.predict(X))
    machine = kind().fit(X, sets)
    assert_array_equal(machine.classes_, ["air", "sea"])
    assert machine.score(X, sets) == expected.score(X, Y)


def test_names_of_columns_are_labels():
    pd = pytest.importorskip("pandas")
    X, Y = line()
    machine = ParallelSVM().fit(X, pd.DataFrame(Y, columns=["sea", "air"]))
    assert_array_equal(machine.classes_, ["sea", "air"])
    assert_array_equal(machine.predict(X), ParallelSVM().fit(X, Y).predict(X))


@every_kind
def test_what_is_no_set_of_two_labels_is_refused_in_words(kind):
    X, Y = line()
    neither = Y.copy()
    neither[[5, 17]] = 0
    sets = sets_of(Y)
    cases = [
        (neither, "rows with neither label: 5, 17"),
        (sp.csr_matrix(neither), "rows with neither label: 5, 17"),
        ([*sets[:9], set(), *sets[10:]], "rows with neither label: 9"),
        (np.hstack([Y, Y[:, :1]]), "two columns, one for each of two labels, got 3"),
        (sp.csr_matrix(Y[:, :1]), "two columns, one for each of two labels, got 1"),
        ([*sets[:3], {"air", "fire"}, *sets[4:]], "row [0-9]+ has '[a-z]+'.*PairwiseMultiLabel"),
        ([{"air"}] * 40, "only 1 class: .'air'."),
        ([*sets[:3], "air", *sets[4:]], "row 3 is 'air', which is none"),
        (np.ones_like(Y), "all rows of positive weight have the labels .0, 1."),
        (Y * [1, 0] + [1, 0] * (Y[:, :1] == 0), "indicator matrix|only 1 class"),
        (2 * Y, "indicator matrix of 0 and 1"),
    ]
    for y, words in cases:
        with pytest.raises(ValueError, match=words):
            kind().fit(X, y)


@every_kind
def test_a_label_that_every_row_has_is_always_answered(kind):
    X, Y = line()
    with pytest.warns(UserWarning, match=r"1 that every row has \(0\)"):
        machine = kind(C=10).fit(X, Y * [0, 1] + [1, 0])
    answers = machine.predict(np.linspace(-9, 9, 50)[:, np.newaxis])
    assert answers[:, 0].all()
    if kind is not SequentialSVM:  # whose first machine has no row that the second label has alone
        assert 0 < machine.predict(X)[:, 1].mean() < 1


@every_kind
def test_every_answer_has_a_label(kind):
    rng = np.random.RandomState(0)
    X, Y = rng.randn(80, 3), rng.randint(0, 2, (80, 2))
    Y[~Y.any(axis=1)] = 1
    far = np.vstack([rng.randn(200, 3), 100 * rng.randn(20, 3), np.zeros((1, 3))])
    for C in (1e-3, 1.0, 100.0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # thresholds of random labels may be out of order
            machine = kind(C=C).fit(X, Y)
        for predict in (machine.predict, machine.compile().predict):
            assert predict(far).any(axis=1).all()


def test_thresholds_out_of_order_are_warned_of():
    rng = np.random.RandomState(0)
    X = rng.randn(90, 2)
    Y = np.repeat([[1, 0], [0, 1], [1, 1]], 30, axis=0)
    light = {"kernel": "linear", "class_weight": {0: 0.01, 1: 0.01}}  # no row is worth a label
    with pytest.warns(UserWarning, match=r"b1 = .* is not below b2 = .*no row is answered both"):
        machine = ParallelSVM(**light).fit(X, Y)
    assert_array_equal(machine.predict(X).sum(axis=1), 1)
    assert machine.intercept_[0] == machine.intercept_[1]


def test_a_chain_that_skips_a_class_is_warned_of():
    # No fit comes to that by itself but one that is stopped early, so the thresholds are made up.
    classes, ones = np.array(["low", "mid", "top"]), np.ones(3)
    data = LevelRows(np.zeros((3, 1)), classes, np.arange(3), 3, ones, ones)
    with pytest.warns(UserWarning, match="out of order, so that no row is answered 'mid'"):
        ParallelSVM()._warn_of_answer(SimpleNamespace(intercepts=lambda: np.array([1, 2])), data)
    answer = chain_answer(np.ones(1), np.array([1.0, 2.0]), data)
    scores = np.linspace(-9, 9, 100)[:, np.newaxis] * answer.coef + answer.intercept
    assert_array_equal(np.unique(scores.argmax(axis=1)), [0, 2])


def test_rows_with_one_label_each_are_no_reason_to_warn():
    X, _ = line()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = ParallelSVM().fit(X, np.hstack([X > 0, X <= 0]).astype(int))
    assert_array_equal(machine.predict(X).sum(axis=1), 1)


def test_shifts_in_order_stay_and_others_share_their_mean():
    assert_array_equal(in_order(np.array([3.0, 1.0, -2.0])), [3.0, 1.0, -2.0])
    assert_array_equal(in_order(np.array([1.0, 3.0, -2.0])), [2.0, 2.0, -2.0])


def test_a_chain_answers_its_classes():
    X = np.linspace(0, 5, 60)[:, np.newaxis]
    y = np.array(["a", "b", "c", "d", "e"])[np.minimum(X[:, 0].astype(int), 4)]
    machine = ParallelSVM(C=10, kernel="linear").fit(X, y)
    assert machine.score(X, y) == 1
    assert (np.diff(machine.intercept_) < 0).all()
    scores = machine.decision_function(X)
    f = X @ machine.coef_[1]
    np.testing.assert_allclose(np.diff(scores, axis=1), f[:, None] + machine.intercept_, atol=1e-9)


def lean(machine, X):
    """Return how much scores speak for the first label rather than for the second."""
    first, second = machine.decision_function(X).mean(axis=0)
    return second if isinstance(machine, SequentialSVM) else first - second


@every_kind
def test_weights_of_labels_draw_answers(kind):
    X, Y = label_problem(120, 2, seed=3)
    Y[~Y.any(axis=1)] = 1
    plain = kind(C=0.1).fit(X, Y)
    heavy = kind(C=0.1, class_weight={0: 20.0}).fit(X, Y)
    assert lean(heavy, X) > lean(plain, X)
    balanced = kind(C=0.1, class_weight="balanced").fit(X, Y)
    assert balanced.objective_ != plain.objective_
    with pytest.raises(ValueError, match="'far', which is no label"):
        kind(class_weight={"far": 1.0}).fit(X, Y)


@every_kind
def test_steps_may_be_few(kind):
    X, Y = line()
    with pytest.warns(UserWarning, match="after max_iter=3 steps"):
        machine = kind(max_iter=3).fit(X, Y)
    assert (machine.n_iter_, machine.stop_reason_) == (3, "max_iter")
    assert machine.gap_ > 0


def test_a_two_step_readout_reads_both_labels_between_its_thresholds():
    readout = Readout(np.array(["a", "b"]), "two_step", thresholds=np.array([-1.0, 2.0]))
    scores = np.array(
        [[-2, 1], [-1, -1], [0, 1], [1.5, -1], [2, 3], [5, -0.1], [9, 0]], dtype=float
    )
    expected = [[1, 0], [0, 1], [1, 1], [1, 1], [1, 0], [0, 1], [0, 1]]
    assert_array_equal(readout.indicators(scores), expected)
    for wrong in ({"thresholds": None}, {"thresholds": np.zeros(3)}, {"link": "one_against_rest"}):
        with pytest.raises(ValueError, match=r"two_step|thresholds"):
            Readout(**{"classes": readout.classes, "kind": "two_step", **wrong})
    with pytest.raises(ValueError, match="does not go with classes"):
        Readout(np.arange(3), "two_step", thresholds=np.zeros(3))


class TestMapThreshold:
    """Worked by hand: two normal densities, times the shares of rows."""

    def test_equal_spread_and_share_meet_in_the_middle(self):
        assert map_threshold([0, 2, 6, 8], [True, True, False, False]) == pytest.approx(4.0)

    def test_shares_move_the_threshold_by_their_log_odds(self):
        # Means 1 and 7, variance 1: (x - 1)^2 - (x - 7)^2 = 2 log(share of both / of one).
        distances, both = [0, 2] * 3 + [6, 8], [True] * 6 + [False] * 2
        assert map_threshold(distances, both) == pytest.approx(4 + np.log(3) / 6)
        weights = [3, 3, 1, 1]
        found = map_threshold([0, 2, 6, 8], [True, True, False, False], weights)
        assert found == pytest.approx(4 + np.log(3) / 6)

    def test_unlike_spreads_are_the_root_of_a_quadratic(self):
        # Means 1 and 8, deviations 1 and 2: (x - 1)^2 - (x - 8)^2 / 4 = 2 log 2.
        found = map_threshold([0, 2, 6, 10], [True, True, False, False])
        assert (found - 1) ** 2 - (found - 8) ** 2 / 4 == pytest.approx(2 * np.log(2))
        assert 1 < found < 8

    def test_no_distance_or_every_distance_may_speak_for_both(self):
        assert map_threshold([1, 2, 3], [False] * 3) == 0
        assert map_threshold([1, 2, 3], [True] * 3) == np.inf
        assert map_threshold([5, 7, 0, 2], [True, True, False, False]) == 0  # both are far
        assert map_threshold([1, 3] + [1, 3] * 50, [True] * 2 + [False] * 100) == 0
        assert map_threshold([2, 2, 2], [True, True, False]) == np.inf
        assert map_threshold([2, 2, 2], [True, False, False]) == 0


class TestPairwise:
    @every_kind
    def test_two_labels_are_answered_as_by_the_machine_itself(self, kind):
        X, Y = line()
        assert_array_equal(
            PairwiseMultiLabel(kind()).fit(X, Y).predict(X), kind().fit(X, Y).predict(X)
        )

    def test_votes_are_those_of_every_pair(self):
        X, Y = label_problem(80, 4)
        machine = PairwiseMultiLabel(ParallelSVM(C=5)).fit(X, sp.csr_matrix(Y))
        assert machine.pairs_ == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
        expected = np.zeros(Y.shape)
        for pair in machine.pairs_:
            kept = Y[:, pair].any(axis=1)
            expected[:, pair] += ParallelSVM(C=5).fit(X[kept], Y[kept][:, pair]).predict(X)
        assert_array_equal(machine.decision_function(X), expected)
        answers = machine.predict(X)
        assert_array_equal(answers, expected == expected.max(axis=1, keepdims=True))
        more = clone(machine).set_params(slack=1).fit(X, Y).predict(X)
        assert_array_equal(more, expected >= expected.max(axis=1, keepdims=True) - 1)
        used = Y.any(axis=1)
        assert (answers[used] == Y[used]).mean() > 0.75

    def test_kernel_matrices_and_weights_are_cut_to_the_pair(self):
        X, Y = label_problem(60, 3)
        K = X @ X.T
        given = PairwiseMultiLabel(ParallelSVM(kernel="precomputed")).fit(K, Y)
        plain = PairwiseMultiLabel(ParallelSVM(kernel="linear"), n_jobs=2).fit(X, Y)
        assert_array_equal(given.predict(K), plain.predict(X))
        weights = (np.arange(60) < 40).astype(float)
        light = PairwiseMultiLabel(ParallelSVM()).fit(X, Y, sample_weight=weights)
        assert_array_equal(
            light.predict(X), PairwiseMultiLabel(ParallelSVM()).fit(X[:40], Y[:40]).predict(X)
        )

    def test_a_pair_that_has_nothing_to_learn_from_votes_as_its_rows_do(self):
        X, Y = label_problem(60, 3)
        Y[:, 2] = 0
        machine = PairwiseMultiLabel(SequentialSVM()).fit(X, Y)
        assert [each is None for each in machine.estimators_] == [False, True, True]
        assert not machine.predict(X)[:, 2].any()

    def test_bad_input(self):
        X, Y = label_problem(60, 3)
        for y, words in (
            (Y[:, :1], "pairs need two or more"),
            (sets_of(Y[:, :2]), "MultiLabelBinarizer"),
            (0 * Y, "No row of positive weight has a label"),
        ):
            with pytest.raises(ValueError, match=words):
                PairwiseMultiLabel(ParallelSVM()).fit(X, y)
        with pytest.raises(ValueError, match="slack"):
            PairwiseMultiLabel(ParallelSVM(), slack=-1).fit(X, Y)


def test_the_module_is_reached_by_the_package_alone():
    assert widemargin.two_label.PairwiseMultiLabel is PairwiseMultiLabel

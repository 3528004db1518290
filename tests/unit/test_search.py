"""How settings are searched for: going uphill, and the rule of one standard error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from widemargin.sparse_kernel.choices import (
    MOST_SCREENS,
    climb,
    fewest_within_one_standard_error,
    survey,
)


class TestOneStandardError:
    def test_the_fewest_that_are_as_good(self):
        scores = np.array([[0.5, 0.6, 0.7], [0.856, 0.896, 0.936], [0.86, 0.9, 0.94]])
        # Of the best: mean 0.9, standard error 0.04 / sqrt(3) = 0.023.
        assert fewest_within_one_standard_error([5, 10, 20], scores) == 1

    def test_never_more_than_half_a_point_is_given_away(self):
        scores = np.array([[0.5, 0.6, 0.7], [0.854, 0.894, 0.934], [0.86, 0.9, 0.94]])
        assert fewest_within_one_standard_error([5, 10, 20], scores) == 2

    def test_a_linear_model_is_the_floor(self):
        scores = np.array([[0.856, 0.896, 0.936], [0.86, 0.9, 0.94]])
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.898) == 1
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.89) == 0
        # Where none is as good, the best is.
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.99) == 1

    def test_the_best_where_others_are_worse_by_more(self):
        scores = np.array([[0.5, 0.6, 0.7], [0.82, 0.86, 0.9], [0.86, 0.9, 0.94]])
        assert fewest_within_one_standard_error([5, 10, 20], scores) == 2

    def test_the_standard_error_is_that_of_the_best(self):
        scores = np.array([[0.1, 0.8, 0.9], [0.9, 0.9, 0.9]])
        assert fewest_within_one_standard_error([5, 10], scores) == 1

    def test_a_single_split_has_none(self):
        assert fewest_within_one_standard_error([5, 10], np.array([[0.89], [0.9]])) == 1

    def test_more_vectors_that_are_worse(self):
        scores = np.array([[0.9, 0.9], [0.8, 0.8]])
        assert fewest_within_one_standard_error([5, 10], scores) == 0

    def test_the_better_of_equal_sizes(self):
        scores = np.array([[0.8, 1.0], [0.85, 1.0], [0.86, 1.0]])
        assert fewest_within_one_standard_error([5, 5, 10], scores) == 1


class Hill:
    """Scores that fall off around a peak, and a record of what was asked for."""

    def __init__(self, power=1.0, width=1.0, stop_after=np.inf):
        self.power, self.width, self.stop_after = power, width, stop_after
        self.seen, self.n_calls = [], 0

    def __call__(self, pairs):
        self.n_calls += 1
        if self.n_calls > self.stop_after:
            return {}
        self.seen.extend(pairs)
        return {pair: np.array([self.height(*pair)]) for pair in pairs}

    def height(self, C, width):
        return -abs(np.log10(C) - self.power) - abs(np.log2(width / self.width))


class TestClimb:
    @pytest.mark.parametrize("width", [1 / 8, 0.5, 1.0, 4.0])
    @pytest.mark.parametrize("power", [-3.0, -1.5, -1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 4.0])
    def test_finds_a_peak(self, power, width):
        hill = Hill(power, width)
        assert_allclose(climb(hill, None, None), (10**power, width))
        assert len(hill.seen) == len(set(hill.seen))
        assert hill.n_calls <= MOST_SCREENS

    def test_begins_with_few(self):
        hill = Hill(1.0, 1.0)
        assert climb(hill, None, None) == (10.0, 1.0)
        assert len(hill.seen) == 3 + 2 + 2

    def test_ends_at_limits(self):
        for power, width in ((-9.0, 1e-3), (9.0, 1e3)):
            hill = Hill(power, width)
            C, factor = climb(hill, None, None)
            assert abs(np.log10(C)) <= 4.5
            assert factor in (1 / 8, 8.0)
            assert hill.n_calls <= MOST_SCREENS

    def test_level_scores_leave_it_where_it_began(self):
        assert climb(lambda pairs: dict.fromkeys(pairs, np.ones(2)), None, None) == (10.0, 1.0)

    @pytest.mark.parametrize(("noise", "expected"), [(0.02, 10.0), (0.005, 100.0)])
    def test_a_rise_must_be_more_than_chance(self, noise, expected):
        def judge(pairs):
            # The scores at 100 are higher by 0.01, with this standard error.
            higher = 0.01 + noise * np.array([-1.0, 1.0])
            return {pair: 0.5 + (pair[0] == 100) * higher for pair in pairs}

        assert climb(judge, None, None) == (expected, 1.0)

    def test_all_that_is_given_is_tried(self):
        hill = Hill(2.0, 2.0)
        assert climb(hill, [1.0, 100.0], [0.5, 2.0]) == (100.0, 2.0)
        assert hill.seen == [(1.0, 0.5), (1.0, 2.0), (100.0, 0.5), (100.0, 2.0)]

    def test_what_is_given_stays(self):
        assert climb(Hill(2.0, 4.0), [3.0], None) == (3.0, 4.0)
        assert_allclose(climb(Hill(2.0, 4.0), None, [3.0]), (100.0, 3.0))
        assert climb(Hill(2.0, 4.0), [3.0, 5.0], None) == (5.0, 4.0)
        hill = Hill(2.5, 4.0)
        assert_allclose(climb(hill, None, [3.0, 5.0]), (10**2.5, 5.0))
        assert len(hill.seen) == len(set(hill.seen))

    def test_a_single_pair_is_not_judged(self):
        hill = Hill()
        assert climb(hill, [3.0], [5.0]) == (3.0, 5.0)
        assert hill.n_calls == 0
        assert climb(hill, [3.0, 3.0], [5.0]) == (3.0, 5.0)
        assert hill.n_calls == 0

    def test_the_middle_of_equal_ones(self):
        def level(pairs):
            return dict.fromkeys(pairs, np.ones(2))

        assert climb(level, [1.0, 2.0, 3.0, 4.0, 5.0], [1.0]) == (3.0, 1.0)

    def test_an_end_before_the_end_leaves_the_best_so_far(self):
        assert climb(Hill(4.0, 8.0, stop_after=2), None, None) == (1000.0, 1.0)
        assert climb(Hill(4.0, 8.0, stop_after=1), [1.0, 2.0], None) == (2.0, 1.0)


class TestSurvey:
    """Scores of metrics and C, as a table says them."""

    @staticmethod
    def judged(score, stop_after=np.inf):
        seen = []

        def judge(choices):
            if len(seen) >= stop_after:
                return {}
            seen.append(choices)
            return {choice: np.array([score(choice[0], np.log10(choice[1]))]) for choice in choices}

        return judge, seen

    @pytest.mark.parametrize("power", [-3.0, -2.0, -1.0, -0.5, 0.0, 1.5, 2.0, 3.0, 4.0])
    @pytest.mark.parametrize("metric", ["none", "diagonal"])
    def test_finds_the_best(self, metric, power):
        judge, seen = self.judged(lambda name, at: (name == metric) - abs(at - power))
        again, seen_again = self.judged(None)
        assert_allclose(survey(judge, again, ["none", "diagonal"], None, None)[1], 10**power)
        assert survey(judge, again, ["none", "diagonal"], None, None)[0] == metric
        assert not seen_again
        assert len(seen[0]) == 8

    def test_metrics_that_are_close_are_judged_again(self):
        judge, _ = self.judged(lambda name, at: 0.9 + 0.005 * (name == "none") - 0.1 * abs(at))
        again, seen = self.judged(lambda name, at: 0.9 + 0.005 * (name == "full"))
        assert survey(judge, again, ["none", "diagonal", "full"], None, None)[:2] == ("full", 1.0)
        assert seen == [[("none", 1.0, 1.0), ("diagonal", 1.0, 1.0), ("full", 1.0, 1.0)]]

    def test_all_that_is_given_is_tried_and_nothing_else(self):
        judge, seen = self.judged(lambda name, at: at)
        assert survey(judge, judge, ["none"], [1.0, 3.0], [0.5, 2.0])[:2] == ("none", 3.0)
        assert len(seen) == 1
        assert len(seen[0]) == 4

    def test_a_single_choice_is_not_judged(self):
        judge, seen = self.judged(None)
        assert survey(judge, judge, ["full"], [3.0], [5.0]) == ("full", 3.0, 5.0)
        assert not seen

    def test_an_end_before_the_end_leaves_the_best_so_far(self):
        judge, _ = self.judged(lambda name, at: at, stop_after=1)
        assert survey(judge, judge, ["none"], None, None) == ("none", 100.0, 1.0)
        judge, _ = self.judged(lambda name, at: at, stop_after=0)
        assert survey(judge, judge, ["none"], None, None) == ("none", 0.1, 1.0)

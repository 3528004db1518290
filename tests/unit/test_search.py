"""How settings are searched for: all of a few, uphill, and the rule of one standard error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from widemargin.sparse_kernel.choices import (
    MOST_SCREENS,
    Outcome,
    climb,
    fewest_within_one_standard_error,
    survey,
)


class TestOneStandardError:
    def test_the_fewest_that_are_as_good(self):
        scores = np.array([[0.5, 0.6, 0.7], [0.858, 0.898, 0.938], [0.86, 0.9, 0.94]])
        # Of the best: mean 0.9, standard error 0.04 / sqrt(3) = 0.023.
        assert fewest_within_one_standard_error([5, 10, 20], scores) == 1

    def test_never_more_than_a_quarter_of_a_point_is_given_away(self):
        scores = np.array([[0.5, 0.6, 0.7], [0.857, 0.897, 0.937], [0.86, 0.9, 0.94]])
        assert fewest_within_one_standard_error([5, 10, 20], scores) == 2

    @pytest.mark.parametrize(("given_away", "expected"), [(0.0008, 0), (0.0012, 1)])
    def test_nor_more_than_a_tenth_of_the_error(self, given_away, expected):
        best = np.array([0.98, 0.99, 1.0])  # an error of 0.01, a standard error of 0.006
        scores = np.array([best - given_away, best])
        assert fewest_within_one_standard_error([5, 10], scores) == expected

    def test_scores_beyond_those_of_accuracies(self):
        # Nothing is lacking of 1, and nothing is given away; of losses that is no limit.
        assert fewest_within_one_standard_error([5, 10], np.array([[3.0, 4.0], [3.001, 4.0]])) == 1
        assert fewest_within_one_standard_error([5, 10], np.array([[-3.003, -4], [-3, -4]])) == 0

    def test_a_linear_model_is_the_floor(self):
        scores = np.array([[0.858, 0.898, 0.938], [0.86, 0.9, 0.94]])
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.899) == 1
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.89) == 0
        # Where none is as good, the best is.
        assert fewest_within_one_standard_error([5, 10], scores, floor=0.99) == 1

    def test_of_machines_that_score_alike_the_loss_tells(self):
        scores = np.array([[0.858, 0.898, 0.938], [0.859, 0.899, 0.939], [0.86, 0.9, 0.94]])
        losses = np.array([0.098, 0.083, 0.082])
        assert fewest_within_one_standard_error([5, 10, 20], scores, losses=losses) == 1
        # That of a machine which is out of the question does not count, nor does none.
        low = np.concatenate([[scores[0] - 0.1], scores])
        losses = np.array([0.01, 0.098, 0.083, 0.082])
        assert fewest_within_one_standard_error([2, 5, 10, 20], low, losses=losses) == 2
        losses = np.full(3, np.nan)
        assert fewest_within_one_standard_error([5, 10, 20], scores, losses=losses) == 0

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
        scores = np.array([[0.8, 1.0], [0.857, 1.0], [0.86, 1.0]])
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
    """Scores and losses of metrics, C, widths and linear parts, as functions say them."""

    @staticmethod
    def judged(score=lambda choice: 0.0, loss=lambda choice: 1.0, stop_after=np.inf):
        seen = []

        def judge(choices):
            if len(seen) >= stop_after:
                return {}
            seen.append(choices)
            return {
                choice: Outcome(np.atleast_1d(score(choice)), np.atleast_1d(loss(choice)))
                for choice in choices
            }

        return judge, seen

    @staticmethod
    def nan_free(choices):
        """Return choices that can be compared: None stands for a C that machines choose."""
        return [(metric, None if np.isnan(C) else C, *rest) for metric, C, *rest in choices]

    @pytest.mark.parametrize("linear", [False, True])
    @pytest.mark.parametrize("width", [1.0, 1 / 8])
    @pytest.mark.parametrize("metric", ["none", "diagonal", "full"])
    def test_finds_the_best(self, metric, width, linear):
        def score(choice):
            right = (choice[0] == metric, choice[2] == width, choice[3] == linear)
            return 0.1 * sum(right)

        judge, seen = self.judged(score)
        again, seen_again = self.judged()
        metrics = ["none", "diagonal", "full"]
        best = survey(judge, again, metrics, None, None, [False, True])
        assert best[::2] == (metric, width)
        assert best[3] == linear
        assert np.isnan(best[1])
        assert not seen_again  # no other metric is close
        first, *further = [self.nan_free(choices) for choices in seen]
        assert first == [(each, None, 1.0, False) for each in metrics]
        assert further == [[(metric, None, 1 / 8, False)], [(metric, None, width, True)]]
        assert len(seen) < MOST_SCREENS

    def test_another_metric_that_is_close_is_judged_again(self):
        scores = {"none": 0.905, "diagonal": 0.89, "full": 0.9}
        judge, _ = self.judged(lambda choice: scores[choice[0]])
        again, seen = self.judged(lambda choice: float(choice[0] == "full"))
        assert survey(judge, again, list(scores), [1.0], [1.0]) == ("full", 1.0, 1.0, False)
        assert seen == [[("none", 1.0, 1.0, False), ("full", 1.0, 1.0, False)]]
        # One that is worse by a point is not close, nor is anything without more to judge by.
        scores["full"] = 0.89
        assert survey(judge, again, list(scores), [1.0], [1.0])[0] == "none"
        assert len(seen) == 1
        scores["full"] = 0.9
        assert survey(judge, None, list(scores), [1.0], [1.0])[0] == "none"

    def test_the_other_metric_has_the_settings_that_it_was_best_with(self):
        judge, _ = self.judged(lambda choice: 0.9 + 0.002 * (choice[0] == "none") * choice[1])
        again, seen = self.judged(lambda choice: float(choice[0] == "full"))
        assert survey(judge, again, ["none", "full"], [1.0, 3.0], [1.0])[:2] == ("full", 1.0)
        assert seen == [[("none", 3.0, 1.0, False), ("full", 1.0, 1.0, False)]]

    def test_of_scores_that_chance_sets_apart_the_least_loss_decides(self):
        noise = 0.02 * np.array([-1.0, 1.0])
        losses = {"none": 1.0, "diagonal": 0.9, "full": 0.95}

        def score(choice):
            return 0.9 + (choice[0] == "full") * (0.01 + noise)

        judge, _ = self.judged(score, lambda choice: np.full(2, losses[choice[0]]))
        assert survey(judge, None, list(losses), [1.0], [1.0])[0] == "diagonal"
        noise[:] = 0.0  # no longer chance
        assert survey(judge, None, list(losses), [1.0], [1.0])[0] == "full"

    @pytest.mark.parametrize(("lead", "expected"), [(0.002, "none"), (0.004, "full")])
    def test_a_lead_that_may_be_chance_in_any_case(self, lead, expected):
        """All splits agree on it, and there may be one alone."""
        losses = {"none": 0.9, "full": 1.0}
        judge, _ = self.judged(
            lambda choice: 0.9 + lead * (choice[0] == "full"), lambda choice: losses[choice[0]]
        )
        assert survey(judge, None, list(losses), [1.0], [1.0])[0] == expected

    def test_of_losses_that_are_about_the_same_the_simplest_metric(self):
        losses = {"none": 1.01, "diagonal": 1.0, "full": 1.03}
        judge, _ = self.judged(loss=lambda choice: losses[choice[0]])
        assert survey(judge, None, list(losses), [1.0], [1.0])[0] == "none"
        losses["none"] = 1.03
        assert survey(judge, None, list(losses), [1.0], [1.0])[0] == "diagonal"

    def test_without_losses_the_first_of_equal_scores(self):
        judge, _ = self.judged(loss=lambda choice: np.nan)
        assert survey(judge, None, ["none", "full"], [1.0, 3.0], [1.0])[:2] == ("none", 1.0)
        judge, _ = self.judged(loss=lambda choice: np.inf)
        assert survey(judge, None, ["none", "full"], [1.0, 3.0], [1.0])[:2] == ("none", 1.0)

    def test_all_that_is_given_is_tried_and_nothing_else(self):
        judge, seen = self.judged(lambda choice: choice[1])
        assert survey(judge, judge, ["none"], [1.0, 3.0], [0.5, 2.0])[:2] == ("none", 3.0)
        assert len(seen) == 1
        assert len(seen[0]) == 4
        assert survey(judge, judge, ["none"], [1.0], [2.0], [True]) == ("none", 1.0, 2.0, True)
        assert len(seen) == 1

    def test_a_single_choice_is_not_judged(self):
        judge, seen = self.judged()
        assert survey(judge, judge, ["full"], [3.0], [5.0]) == ("full", 3.0, 5.0, False)
        metric, C, *_ = survey(judge, judge, ["full"], None, [5.0])
        assert metric == "full"
        assert np.isnan(C)
        assert not seen

    def test_an_end_before_the_end_leaves_the_best_so_far(self):
        def score(choice):
            return choice[1] + (choice[2] < 1)

        judge, _ = self.judged(score, stop_after=1)
        assert survey(judge, judge, ["none"], [1.0, 3.0], None)[1:3] == (3.0, 1.0)
        judge, _ = self.judged(score, stop_after=2)
        again, _ = self.judged(stop_after=0)
        best = survey(judge, again, ["none", "full"], [1.0, 3.0], None, [False, True])
        assert best == ("none", 3.0, 1 / 8, False)
        judge, _ = self.judged(score, stop_after=0)
        assert survey(judge, judge, ["none"], [2.0], None) == ("none", 2.0, 1.0, False)

"""What is left out of the quick tier is met there in other combinations."""

import itertools
from types import SimpleNamespace

import pytest
from tiers import MOST_CASES, choices, covering, mark_thorough


def cases_of(*lengths):
    names = "abcdef"[: len(lengths)]
    return [
        dict(zip(names, indices, strict=True))
        for indices in itertools.product(*map(range, lengths))
    ]


def singly(case):
    """Return the groups of arguments each of which is a choice of its own."""
    return [(name,) for name in case]


def test_two_arguments_have_every_value():
    cases = [choices(case, singly(case)) for case in cases_of(4, 3)]
    kept = covering(cases)
    assert set().union(*(cases[number] for number in kept)) == set().union(*cases)
    assert len(kept) == 4


def test_more_arguments_have_every_pair_of_values():
    cases = cases_of(5, 4, 2, 2)
    kept = [cases[number] for number in covering([choices(case, singly(case)) for case in cases])]
    for one, other in itertools.combinations("abcd", 2):
        pairs = {(case[one], case[other]) for case in cases}
        assert {(case[one], case[other]) for case in kept} == pairs
    assert len(kept) < len(cases) / 2


def test_every_value_may_be_enough():
    cases = [choices(case, singly(case), pairs=False) for case in cases_of(5, 4, 2, 2)]
    kept = covering(cases)
    assert set().union(*(cases[number] for number in kept)) == set().union(*cases)
    assert len(kept) == 5


def test_values_keep_company_by_turns():
    cases = cases_of(6, 3)
    kept = [cases[number] for number in covering([choices(case, singly(case)) for case in cases])]
    assert sorted(case["b"] for case in kept) == [0, 0, 1, 1, 2, 2]


class Item:
    """What pytest collects, as far as tiers are concerned."""

    def __init__(self, name, params=None, mark=None, together=(), every_case=True):
        self.parent, self.originalname, self.marks = None, name, []
        self.given = [mark] if mark else []
        self.given += [pytest.mark.every_case] if every_case else []
        self.parametrized = [pytest.mark.parametrize(names, []).mark for names in together]
        if params is not None:
            self.callspec = SimpleNamespace(params=params)

    def get_closest_marker(self, name):
        if name in self.marks:
            return getattr(pytest.mark, name).mark
        return next((each.mark for each in self.given if each.name == name), None)

    def iter_markers(self, name):
        return self.parametrized if name == "parametrize" else []

    def add_marker(self, mark):
        self.marks.append(mark.name)


def test_only_cases_of_products_are_marked():
    mark = pytest.mark.combinations
    products = [Item("product", case, mark) for case in cases_of(3, 3)]
    others = [Item("other", case) for case in cases_of(3, 3)]
    singles = [Item("single", case, mark) for case in cases_of(4)]
    mark_thorough([*products, *others, *singles, Item("plain", mark=mark)])
    assert sum(item.marks == ["thorough"] for item in products) == 6
    assert not any(item.marks for item in others + singles)


def test_a_mark_says_what_is_enough():
    left = {}
    for mark in (pytest.mark.combinations, pytest.mark.combinations(pairs=False)):
        products = [Item("product", case, mark) for case in cases_of(3, 3, 3)]
        mark_thorough(products)
        left[bool(mark.kwargs)] = sum(not item.marks for item in products)
    assert left[True] == 3
    assert left[False] >= 9


@pytest.mark.parametrize("together", [["a, b"], [("a", "b")], [["a", "b"], "c"], ["c", "a,b"]])
def test_a_list_that_was_written_by_hand_is_asked_whole(together):
    products = [
        Item("product", case, pytest.mark.combinations, together) for case in cases_of(3, 3, 2)
    ]
    mark_thorough(products)
    asked = [item.callspec.params for item in products if not item.marks]
    assert sorted((case["a"], case["b"]) for case in asked) == sorted(
        itertools.product(range(3), range(3))
    )
    assert {case["c"] for case in asked} == {0, 1}


def test_tests_take_turns():
    mark = pytest.mark.turns("a")
    tests = [[Item(f"test {number}", case, mark) for case in cases_of(3)] for number in range(4)]
    wider = [Item("wider", case, mark) for case in cases_of(3, 2)]
    mark_thorough([*itertools.chain(*tests), *wider, Item("plain", mark=mark)])
    asked = [[item.callspec.params["a"] for item in cases if not item.marks] for cases in tests]
    assert asked == [[0], [1], [2], [0]]
    assert not any(item.marks for item in wider)


def test_long_lists_are_asked_in_part():
    tests = [
        [Item(f"test {number}", case, every_case=False) for case in cases_of(11)]
        for number in range(8)
    ]
    products = [
        Item("product", case, pytest.mark.combinations, every_case=False) for case in cases_of(6, 3)
    ]
    short = [Item("short", case, every_case=False) for case in cases_of(MOST_CASES)]
    mark_thorough([*itertools.chain(*tests), *products, *short])
    asked = [[item.callspec.params["a"] for item in cases if not item.marks] for cases in tests]
    assert all(len(values) == MOST_CASES for values in asked)
    assert set().union(*asked) == set(range(11))
    assert sum(not item.marks for item in products) == MOST_CASES
    assert not any(item.marks for item in short)


def test_cases_that_are_questions_of_their_own_are_asked_whole():
    cases = [Item("test", case) for case in cases_of(11)]
    mark_thorough(cases)
    assert not any(item.marks for item in cases)

"""What is left out of the quick tier is met there in other combinations."""

import itertools
from types import SimpleNamespace

from tiers import choices, covering, mark_thorough


def cases_of(*lengths):
    names = "abcdef"[: len(lengths)]
    return [
        dict(zip(names, indices, strict=True))
        for indices in itertools.product(*map(range, lengths))
    ]


def test_two_arguments_have_every_value():
    cases = [choices(case) for case in cases_of(4, 3)]
    kept = covering(cases)
    assert set().union(*(cases[number] for number in kept)) == set().union(*cases)
    assert len(kept) == 4


def test_more_arguments_have_every_pair_of_values():
    cases = cases_of(5, 4, 2, 2)
    kept = [cases[number] for number in covering([choices(case) for case in cases])]
    for one, other in itertools.combinations("abcd", 2):
        pairs = {(case[one], case[other]) for case in cases}
        assert {(case[one], case[other]) for case in kept} == pairs
    assert len(kept) < len(cases) / 2


def test_only_cases_of_products_are_marked():
    class Item:
        def __init__(self, name, params, product):
            self.parent, self.originalname, self.product = None, name, product
            self.callspec, self.marks = SimpleNamespace(params=params), []

        def get_closest_marker(self, name):
            return name == "combinations" and self.product

        def add_marker(self, mark):
            self.marks.append(mark.name)

    products = [Item("product", case, True) for case in cases_of(3, 3)]
    others = [Item("other", case, False) for case in cases_of(3, 3)]
    mark_thorough(products + others)
    assert sum(item.marks == ["thorough"] for item in products) == 6
    assert not any(item.marks for item in others)

"""Which cases of a product of choices are asked always, and which only when all are.

A test that is marked ``combinations`` is asked with every combination of its arguments by ``make
test-all``; by ``make test`` with few of them, in which every value of every argument is met, and of
three arguments or more every pair of values. ``combinations(pairs=False)`` is for cases that take
long: every value is enough there, of many arguments too. Arguments of one ``parametrize`` count as
one. A module may be marked as a whole; a test of one argument has no combinations.

Of any other test, and of what that leaves, ``make test`` asks three cases at the most: they are
spread over the list, and begin at another place in each test, so that the values of a list that
several tests share are all met. ``every_case`` marks tests, or modules, of which each case is a
question of its own and takes next to no time: they are asked whole.

``turns("metric", "loss")`` marks a module of slow tests that ask much the same of many values: a
test that has no other arguments than these is asked one case, and the next test the next. So every
value is met by some of the tests.

What is left out is marked ``thorough``.
"""

import itertools
from collections import Counter

import pytest

MOST_CASES = 3  # of a test that "make test" asks


def covering(cases):
    """Return the numbers of few cases that together have all that any of them has.

    A case is a set. The one that brings most that is new is taken, again and again: few more than
    are needed. Of those that bring as much, it is the one whose rest has been met least, so that
    the first values of a test do not keep company with all the others.
    """
    missing, chosen, met = set().union(*cases), [], Counter()
    while missing:
        new = [len(missing & case) for case in cases]
        most = max(new)
        equally_good = [number for number in range(len(cases)) if new[number] == most]
        best = min(equally_good, key=lambda number: sum(met[part] for part in cases[number]))
        missing -= cases[best]
        met.update(cases[best])
        chosen.append(best)
    return sorted(chosen)


def given_together(item):
    """Return the arguments of a test, a tuple of names for each choice.

    Those that one ``parametrize`` names are one choice: its list was written by hand, and every
    entry counts.
    """
    groups = []
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0]
        names = names.split(",") if isinstance(names, str) else names
        groups.append(tuple(name.strip() for name in names))
    named = {name for group in groups for name in group}
    return groups + [(name,) for name in item.callspec.params if name not in named]


def choices(arguments, groups, *, pairs=True):
    """Return what a case stands for: its choices, or its pairs of choices if they are many.

    Cases share the objects that they are made of, which need not be hashable.
    """
    values = [(group, *(id(arguments[name]) for name in group)) for group in sorted(groups)]
    return set(itertools.combinations(values, 2 if pairs and len(values) > 2 else 1))


def tests_with(items, mark):
    """Yield the cases of each test that has arguments and this mark."""
    return _tests(item for item in items if item.get_closest_marker(mark))


def _tests(items):
    """Yield the cases of each test that has arguments."""
    marked = [item for item in items if hasattr(item, "callspec")]
    # The same test, next to itself: pytest collects the cases of one after the other.
    for _, group in itertools.groupby(marked, key=lambda item: (item.parent, item.originalname)):
        yield list(group)


def mark_thorough(items):
    """Mark what is left out of the quick tier."""
    _mark_combinations(items)
    _mark_turns(items)
    _mark_many(items)


def _mark_combinations(items):
    """Mark the cases of products that bring no value, or no pair of values, that is not asked."""
    for cases in tests_with(items, "combinations"):
        groups = given_together(cases[0])
        options = cases[0].get_closest_marker("combinations").kwargs
        kept = covering([choices(case.callspec.params, groups, **options) for case in cases])
        for number in set(range(len(cases))) - set(kept):
            cases[number].add_marker(pytest.mark.thorough)


def _mark_turns(items):
    """Mark all cases but one of the tests whose turn it is to ask that one."""
    turns = Counter()
    for cases in tests_with(items, "turns"):
        names = cases[0].get_closest_marker("turns").args
        if set(cases[0].callspec.params) <= set(names):
            module = cases[0].parent
            asked = turns[module] % len(cases)
            turns[module] += 1
            for number in set(range(len(cases))) - {asked}:
                cases[number].add_marker(pytest.mark.thorough)


def _mark_many(items):
    """Mark what goes beyond the most cases of a test, begun at another place each time."""
    asked = [
        item
        for item in items
        if not (item.get_closest_marker("thorough") or item.get_closest_marker("every_case"))
    ]
    for turn, cases in enumerate(_tests(asked)):
        if len(cases) > MOST_CASES:
            first = turn % len(cases)
            kept = {(first + k * len(cases) // MOST_CASES) % len(cases) for k in range(MOST_CASES)}
            for number in set(range(len(cases))) - kept:
                cases[number].add_marker(pytest.mark.thorough)

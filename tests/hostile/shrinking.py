"""A smaller problem for which the same invariant fails: what is left is what matters."""

import time
from dataclasses import fields, replace

from hostile.checks import INVARIANTS, failures_of
from hostile.data import Data

_KEPT = {"max_seconds", "random_state", "cv", "Cs", "widths"}


def shrink(failure, seconds=20.0):
    """Return the failure of the smallest problem that is found in this time."""
    deadline = time.perf_counter() + seconds
    smaller = failure
    while smaller is not None:
        failure, smaller = smaller, _simpler(smaller, deadline)
    return failure


def _simpler(failure, deadline):
    for problem in _neighbours(failure.problem):
        if time.perf_counter() > deadline:
            return None
        names = [] if failure.invariant == "fit" else [INVARIANTS[failure.invariant]]
        try:
            found = failures_of(problem, names)
        except Exception:  # a problem that makes no sense
            continue
        for each in found:
            same = type(each.error) is type(failure.error)
            if each.invariant == failure.invariant and same:
                return each
    return None


def _neighbours(problem):
    """Yield problems that are simpler in one thing."""
    data = problem.data
    for each in fields(Data):
        plain = getattr(Data, each.name)
        is_size = each.name in ("seed", "n_rows", "n_features", "n_classes")
        if not is_size and getattr(data, each.name) != plain:
            yield replace(problem, data=replace(data, **{each.name: plain}))
    for name in problem.options:
        if name not in _KEPT:
            left = {key: value for key, value in problem.options.items() if key != name}
            yield replace(problem, options=left)
    for name, least in (("n_rows", max(4, data.n_classes)), ("n_features", 1), ("n_classes", 2)):
        value = getattr(data, name)
        for less in sorted({max(least, value // 2), max(least, value - 1)}):
            if less < value:
                yield replace(problem, data=replace(data, **{name: less}))
    if problem.options.get("C", 1.0) != 1.0:
        yield problem.changed(C=1.0)

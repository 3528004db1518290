"""Defects that random problems have found and that are not mended yet, each with a small problem.

Tests are strict: an entry must go once its defect has gone. Random problems that fail in the same
way are expected to.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hostile.problems import Problem


@dataclass(frozen=True)
class Known:
    """A defect."""

    name: str
    reason: str
    invariants: tuple[str, ...]  # the first is the one that the problem shows
    message: str  # a regular expression for what the failure says
    problem: Problem | None  # None where it takes luck, and a test of its own shows it
    concerns: Callable[[Problem], bool] = lambda problem: True  # which random problems may fail so

    def explains(self, failure):
        """Return whether a failure is of this kind."""
        told = f"{type(failure.error).__name__}: {failure.error}"
        return bool(
            failure.invariant in self.invariants
            and re.search(self.message, told)
            and self.concerns(failure.problem)
        )


KNOWN: list[Known] = []

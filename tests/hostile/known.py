"""Defects that random problems have found and that are not mended yet, each with a small problem.

Tests are strict: an entry must go once its defect has gone. Random problems that fail in the same
way are expected to.
"""

import re
from dataclasses import dataclass

from hostile.problems import Problem


@dataclass(frozen=True)
class Known:
    """A defect."""

    name: str
    reason: str
    invariant: str
    message: str  # a regular expression for what the failure says
    problem: Problem
    concerns: object = lambda problem: True  # which random problems may fail so

    def explains(self, failure):
        """Return whether a failure is of this kind."""
        return (
            failure.invariant == self.invariant
            and re.search(self.message, f"{type(failure.error).__name__}: {failure.error}")
            and self.concerns(failure.problem)
        )


KNOWN: list[Known] = []

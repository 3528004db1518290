"""Defects that random problems have found and that are not mended yet, each with a small problem.

Tests are strict: an entry must go once its defect has gone. Random problems that fail in the same
way are expected to.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hostile.problems import Data, Polynomial, Problem


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


_EXPORTS = (
    "onnx_answers_the_same",
    "c_answers_the_same",
    "a_compiled_machine_answers_the_same",
    "predictions_of_float32_rows_are_near_those_of_float64",
)
_SETTINGS = {"max_seconds": 2.0, "random_state": 0}

KNOWN: list[Known] = [
    Known(
        "products_before_gamma",
        "Products of features are summed in single precision before gamma is applied: "
        "polynomial and sigmoid kernels under- and overflow for features of 1e-19 or 1e19, "
        "and linear ones in a compiled machine.",
        (
            "objectives_are_what_the_definition_says",
            "a_compiled_machine_answers_the_same",
            "predictions_of_float32_rows_are_near_those_of_float64",
        ),
        "the dual is|the primal is|scores are not finite|scores differ",
        Problem(
            "KernelClassifier",
            Data(seed=1104391106, n_rows=4, n_features=1, n_classes=2, scale=1e-26),
            {"kernel": "poly", "max_seconds": 2.0, "random_state": 39},
        ),
        lambda problem: problem.data.magnitude[0] > 1e15 or problem.data.magnitude[1] < 1e-15,
    ),
    Known(
        "primal_of_large_products",
        "The primal of a polynomial kernel of many features is off by .5 %: kernel values "
        "are of single precision, and what the warning takes for their error is less.",
        ("objectives_are_what_the_definition_says",),
        "the primal is",
        Problem(
            "KernelClassifier",
            Data(seed=3850827841, n_rows=4, n_features=100, n_classes=2),
            {
                "kernel": Polynomial(gamma=0.6945041921688883, degree=2, coef0=1.0),
                "max_seconds": 2.0,
                "random_state": 280,
            },
        ),
    ),
]

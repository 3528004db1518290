"""Defects that random problems have found and that are not mended yet, each with a small problem.

Tests are strict: an entry must go once its defect has gone. Random problems that fail in the same
way are expected to.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hostile.problems import RBF, Data, Problem


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
        "onnx_by_products",
        "The ONNX graph of Gaussian kernels takes distances by products in double precision too, "
        "and loses digits where features are large against the width.",
        ("onnx_answers_the_same",),
        "scores differ",
        Problem(
            "KernelMIRA",
            Data(seed=2043, n_rows=35, n_features=6, n_classes=17, scale=100.0, mixed_scales=True),
            {"kernel": RBF(gamma=0.08264303258105271), "random_state": 528},
        ),
    ),
    Known(
        "squares_beyond_float32",
        "In float32, ONNX and C square features before the width is applied, which overflows from "
        "features of 1e19 on; vectors that are all alike do not show it.",
        ("onnx_answers_the_same", "c_answers_the_same"),
        "scores are not finite|scores differ",
        Problem(
            "KernelClassifier",
            Data(
                seed=130, n_rows=4, n_features=1, n_classes=2, scale=1e20, offset=-3.0, density=0.0
            ),
            {"gamma": 2.2886997259105733e-46, "max_seconds": 2.0, "random_state": 368},
        ),
        lambda problem: problem.data.magnitude[0] > 1e17,
    ),
    Known(
        "probes_are_too_kind",
        "What single precision costs is measured at the vectors and between them, where errors may "
        "cancel (all kernel values are 1 where all vectors are equal): rows further out lose more.",
        ("a_compiled_machine_answers_the_same", *_EXPORTS),
        "scores differ",
        Problem(
            "KernelClassifier",
            Data(
                seed=2079,
                n_rows=9,
                n_features=1,
                n_classes=4,
                constant=2,
                mixed_scales=True,
                weights="uneven",
            ),
            {
                "C": 275.09323887141545,
                "gamma": 1.27041527537633e-10,
                "max_seconds": 2.0,
                "random_state": 169,
            },
        ),
    ),
    Known(
        "sparse_machines_divide_by_zero",
        "Products of features beyond 1e20 or so make NumPy warn of divisions and casts in the "
        "growth of a basis, instead of an error that says what to do.",
        ("fit",),
        "RuntimeWarning: (divide by zero|invalid value|overflow)",
        Problem(
            "SparseKernelClassifier",
            Data(seed=6105, n_rows=4, n_features=1, scale=1e24),
            {"kernel": "linear", "random_state": 986},
        ),
        lambda problem: problem.data.magnitude[0] > 1e15,
    ),
    Known(
        "warm_start_drops_vectors",
        "A warm start puts vectors back in the order of all machines together, and leaves out some "
        "that are nearly expressed by others, with their coefficients: it ends worse than before.",
        ("a_warm_start_finds_no_worse_machine",),
        "AssertionError",
        Problem(
            "SparseKernelClassifier",
            Data(
                seed=6188,
                n_rows=53,
                n_features=9,
                n_classes=5,
                mixed_scales=True,
                weights="some_zero",
            ),
            {
                "max_basis": 18,
                "C": 9435.66024245805,
                "kernel": "precomputed",
                "basis": "per_class",
                "n_candidates": 5,
                "tol": 0.0,
                "random_state": 972,
            },
            6188,
        ),
        lambda problem: problem.estimator == "SparseKernelClassifier",
    ),
]

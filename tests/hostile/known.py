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
        "fork_after_threads",
        "GNU OpenMP waits for ever in a forked process whose parent has used threads.",
        ("a_fork_after_threads_predicts_and_fits",),
        "a forked process hangs",
        Problem("KernelClassifier", Data(), _SETTINGS),
    ),
    Known(
        "overflow_error",
        "Kernel values beyond float32 are an OverflowError without advice from the native rows, "
        "where the same from Python kernels is a ValueError that says what to do.",
        ("fit",),
        "OverflowError: a kernel value is too large for single precision",
        Problem("KernelClassifier", Data(n_rows=4, n_classes=2, scale=1e22), {"kernel": "linear"}),
    ),
    Known(
        "gap_without_rounding_of_the_loss",
        "gap_ is off by more than it says: kernel values are of single precision, and the warning "
        "counts what that does to the norm, not what it does to losses of large weight.",
        ("objectives_are_what_the_definition_says",),
        "the primal is",
        Problem(
            "KernelClassifier",
            Data(seed=1192, n_rows=4, weights="uneven"),
            {"C": 5869.617226273964, "max_seconds": 2.0, "random_state": 420},
        ),
    ),
    Known(
        "mira_on_rows_of_no_length",
        "Steps of rows with a kernel value of 0 with themselves are taken within the bounds of all "
        "steps together, and end there for the own class alone: rows no longer sum to zero.",
        ("dual_coefficients_are_within_their_bounds",),
        "instead of zero",
        Problem(
            "KernelMIRA",
            Data(n_rows=4, n_classes=2, density=0.0),
            {"kernel": "linear", "epochs": 2, "random_state": 0},
        ),
        lambda problem: problem.estimator == "KernelMIRA" and problem.option("epochs") > 1,
    ),
    Known(
        "rows_that_drift",
        "Rows of coefficients sum to 1e-11 of the largest instead of rounding, and to more after "
        "many steps.",
        ("dual_coefficients_are_within_their_bounds",),
        "instead of zero",
        Problem(
            "KernelClassifier",
            Data(seed=3264, n_rows=5, n_features=1, n_classes=4),
            {
                "loss": "weston_watkins",
                "C": 0.010442697588726957,
                "kernel": "poly",
                "max_seconds": 2.0,
                "random_state": 722,
            },
        ),
        lambda problem: problem.estimator == "KernelClassifier",
    ),
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
    Known(
        "interrupt_while_rows_are_kept",
        "Ctrl-C at the very end of a batch, while its rows are put away, leaves patterns without "
        "rows: every prediction is an IndexError from then on.",
        ("an_interrupted_stream_goes_on",),
        "IndexError",
        None,
    ),
    Known(
        "curvature_that_is_not_finite",
        "With a linear kernel of features of 1e7 a Cholesky factor fails by rounding alone: a "
        "RuntimeError that speaks of numbers that are not finite, where all are.",
        ("weights_are_repetitions", "fit", "dense_rows_are_csr_rows", "float32_is_near_float64"),
        "RuntimeError: the curvature",
        Problem(
            "SparseKernelClassifier",
            Data(seed=2956721122, n_rows=21, n_features=9, n_classes=2, scale=1e7),
            {"kernel": "linear", "tol": 0.1, "random_state": 484, "n_jobs": 2},
            2956721122,
        ),
    ),
]

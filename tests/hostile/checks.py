"""A problem that is being checked: its fit, what may be refused, and the list of invariants."""

import functools
import hashlib
import linecache
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hostile.data import generator
from hostile.kernel_values import dense, kernel_values, weighed
from hostile.problems import Problem
from widemargin.kernels import Polynomial, Sigmoid

LEAST = 1e-36  # of scores: below, single precision has few digits or none

#: What the library may refuse, and of which problems: everything else must be fitted.
REFUSALS = [
    (
        r"single precision|too large for float32",
        lambda problem: is_extreme(problem) or has_large_powers(problem),
    ),
    (r"returned NaN or infinity", lambda problem: is_extreme(problem)),
    (r"beyond what can be computed with", lambda problem: is_extreme(problem)),
    (r"row\(s\), fewer than the", lambda problem: problem.data.weights != "none"),
    (r"more vectors than there are rows", lambda problem: problem.has("cv")),
    (
        r"early_stopping=True holds out",
        lambda problem: problem.has("basis") and problem.option("basis__early_stopping"),
    ),
]


def is_extreme(problem):
    """Return whether values of kernels may leave what single precision holds."""
    largest, smallest = problem.data.magnitude
    return not (smallest > 1e-6 and largest < 1e6)


def has_large_powers(problem):
    """Return whether powers of products leave what single precision holds, though rows do not."""
    if not problem.has("kernel") or problem.option("kernel") != "poly":
        return False
    gamma = problem.option("gamma")
    if isinstance(gamma, str) and problem.data.mixed_scales:
        return True  # a stream takes it from its first rows, which may be nearly equal
    rows = problem.rows()
    gamma = 1 / (rows.shape[1] * rows.var()) if isinstance(gamma, str) else gamma
    base = gamma * np.square(rows).sum(axis=1).max() + abs(problem.option("coef0"))
    return problem.option("degree") * np.log10(base) > 37


def is_indefinite(problem):
    """Return whether the kernel is not positive semi-definite: its regulariser is one near it."""
    kernel = problem.option("kernel")
    if isinstance(kernel, str):
        return kernel == "sigmoid" or (kernel == "poly" and problem.option("coef0") < 0)
    return isinstance(kernel, Sigmoid) or (isinstance(kernel, Polynomial) and kernel.coef0 < 0)


@dataclass(frozen=True)
class Invariant:
    """Something that must hold for a fitted machine."""

    name: str
    check: Callable[..., None]
    applies: Callable[[Problem], bool]
    share: float  # of the problems it applies to


INVARIANTS: dict[str, Invariant] = {}


def invariant(applies=lambda problem: True, share=1.0):
    """Put a function ``check(case)`` on the list. It raises AssertionError where it does not hold.

    ``applies(problem)`` says for which problems it means something, ``share`` how many of these are
    asked: all, unless the answer takes long.
    """

    def enlist(check):
        INVARIANTS[check.__name__] = Invariant(check.__name__, check, applies, share)
        return check

    return enlist


class RefusedError(Exception):
    """A fit that the library refuses, in words, as it may."""


class Case:
    """A problem, fitted once; invariants fit it again in other ways."""

    def __init__(self, problem):
        self.problem = problem
        self.X, self.y, self.weights = problem.training_data()
        self.machine, self.told = self.fit(problem)

    def rng(self, name):
        """Return random numbers for an invariant."""
        return generator(self.problem.seed, f"invariant {name}")

    def fit(self, problem, data=None):
        """Return a fitted machine and what it warned of; RuntimeWarning is an error."""
        X, y, weights = (self.X, self.y, self.weights) if data is None else data
        with listening() as told:
            machine = allowing_refusals(problem, lambda: problem.make().fit(X, y, weights))
        return machine, told

    @functools.cached_property
    def queries(self):
        """Rows to predict, float64 numbers that float32 holds: some known, between, and far."""
        rows = self.problem.rows()[:30]
        if not self.problem.is_precomputed:
            # Feature by feature, as far from the vectors as exports are measured for.
            size = np.abs(dense(self.machine.basis_)).max(axis=0, initial=0.0)
            far = self.rng("queries").uniform(-3.0, 3.0, (4, rows.shape[1])) * size
            far = rows[:4] + far[: len(rows[:4])]
            rows = self.problem.suited(np.vstack([rows, (rows[1:] / 2 + rows[:-1] / 2), far]))
        with np.errstate(all="ignore"):
            return rows.astype(np.float32).astype(np.float64)

    @functools.cached_property
    def scores(self):
        """Scores of the queries, (n, n_outputs)."""
        return as_columns(self.machine.decision_function(self.shaped(self.queries)))

    @functools.cached_property
    def rounding(self):
        """What scores owe to rounding in double precision, at the most: at queries or vectors."""
        model = self.machine.model_
        most = LEAST
        for rows in (self.queries, None if self.problem.is_precomputed else dense(model.basis)):
            if rows is not None and len(rows):
                values = np.abs(kernel_values(model.kernel, rows, model.basis))
                terms = values @ np.abs(model.coef) + np.abs(model.intercept)
                terms += np.abs(dense(rows)) @ np.abs(weighed(model))
                most = max(most, 1e-13 * float(terms.max(initial=0.0)))
        return most

    def shaped(self, rows):
        """Return rows in the form of the problem, as float64."""
        return self.problem.data.shaped(rows, dtype="float64")

    def warned(self, pattern):
        """Return whether the fit warned of something."""
        return warned(self.told, pattern)


def warned(told, pattern):
    """Return whether one of the warnings says this."""
    return any(re.search(pattern, str(warning.message)) for warning in told)


class listening(warnings.catch_warnings):  # noqa: N801  # as the context manager it is
    """Record warnings; those of NumPy's arithmetic are errors."""

    def __init__(self):
        super().__init__(record=True)

    def __enter__(self):
        told = super().__enter__()
        warnings.simplefilter("always")
        warnings.simplefilter("error", RuntimeWarning)
        return told


def allowing_refusals(problem, call):
    """Call; an error that the library may raise for the problem comes out as RefusedError."""
    try:
        return call()
    except (ValueError, TypeError) as error:
        if (is_own(error) or is_native(error)) and any(
            re.search(pattern, str(error)) and may(problem) for pattern, may in REFUSALS
        ):
            raise RefusedError(str(error)) from error
        raise


def is_native(error):
    """Return whether the native code has made an error, which has no ``raise`` to be seen."""
    return str(error).startswith("The kernel has values that are not finite")


def is_own(error):
    """Return whether a ``raise`` of the library made an error, and no call that failed inside."""
    frame = list(traceback.walk_tb(error.__traceback__))[-1][0]
    last = traceback.extract_tb(error.__traceback__)[-1]
    if "widemargin" not in (frame.f_globals.get("__name__") or ""):
        return False
    lines = [linecache.getline(last.filename, number) for number in range(last.lineno, 0, -1)]
    return any(line.lstrip().startswith("raise ") for line in lines[:8])


def as_columns(scores):
    """Return scores with a column for each output."""
    scores = np.asarray(scores, dtype=np.float64)
    return scores[:, None] if scores.ndim == 1 else scores


def in_range(dtype, scores):
    """Return the rows whose scores this precision has numbers for; it has infinity for others."""
    return (np.abs(scores) < np.finfo(dtype).max / 2).all(axis=1)


def assert_scores_agree(found, expected, tolerance, rounding=LEAST):
    """Require scores that differ by no more than a share of the largest, and by rounding."""
    held = in_range(np.asarray(found).dtype, as_columns(expected))
    found, expected = as_columns(found), as_columns(expected)
    assert found.shape == expected.shape
    found, expected = found[held], expected[held]
    assert np.isfinite(found).all(), "scores are not finite"
    largest = np.abs(expected).max(initial=0.0)
    error = np.abs(found - expected).max(initial=0.0)
    assert error <= tolerance * largest + rounding, (
        f"scores differ by {error:.3g}, the largest is {largest:g}"
    )


def assert_labels_agree(found, expected, scores, tolerance, rounding=LEAST):
    """Require equal labels where the two best scores differ by more than the tolerance."""
    clear = margins(scores) > 2 * tolerance * np.abs(scores).max(initial=0.0) + 2 * rounding
    different = np.flatnonzero(clear & (np.asarray(found) != np.asarray(expected)))
    assert len(different) == 0, f"labels of rows {different} differ"


def margins(scores):
    """Return by how much the best score of each row is ahead of the second."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    best = np.sort(scores, axis=1)
    return best[:, -1] - best[:, -2]


def bits_of(machine, X):
    """Return a digest of what a fit has left, and of its scores."""
    digest = hashlib.sha256()
    names = ["basis_indices_", "dual_coef_", "intercept_", "objective_", "n_iter_", "classes_"]
    parts = [getattr(machine, name) for name in names if hasattr(machine, name)]
    parts += [dense(machine.basis_), machine.decision_function(X)]
    history = {name: value for name, value in machine.history_.items() if name != "seconds"}
    parts += [history[name] for name in sorted(history)]
    for part in parts:
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def ran_out_of_time(*machines):
    """Return whether the clock ended a fit, so that bits are a matter of speed."""
    return any(getattr(machine, "stop_reason_", "") == "max_seconds" for machine in machines)


@dataclass(frozen=True)
class Failure:
    """An invariant that does not hold."""

    problem: Problem
    invariant: str  # "fit" for the fit itself
    error: BaseException

    def __str__(self):
        kind = type(self.error).__name__
        trace = "".join(traceback.format_tb(self.error.__traceback__)[-3:])
        return f"{self.invariant}: {kind}: {self.error}\n{trace}{self.problem!r}"


def chosen(problem):
    """Return the invariants that a problem is asked for."""
    return [
        each
        for each in INVARIANTS.values()
        if generator(problem.seed, f"share {each.name}").random() < each.share
        and each.applies(problem)
    ]


def failures_of(problem, invariants=None):
    """Return what does not hold for a problem; nothing where it may be refused."""
    try:
        case = Case(problem)
    except RefusedError:
        return []
    except Exception as error:
        return [Failure(problem, "fit", error)]
    found = []
    for each in chosen(problem) if invariants is None else invariants:
        if not each.applies(problem):
            continue
        try:
            with listening():
                each.check(case)
        except RefusedError:
            continue
        except Exception as error:
            found.append(Failure(problem, each.name, error))
    return found


def is_posix():
    """Return whether there are signals and forks."""
    return sys.platform != "win32"

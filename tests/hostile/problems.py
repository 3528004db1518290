"""Random problems: an estimator with options, and data, all drawn from one integer.

The text of a problem, ``repr(problem)``, is an expression that makes it again. Names that it needs
are those of this module.
"""

import inspect
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
from contract import CLASS_ESTIMATORS, has_parameter
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from hostile.data import Data, draw_data, generator
from widemargin import ChosenBasis, LearnedBasis
from widemargin.kernels import (
    KERNEL_NAMES,
    RBF,
    ChiSquare,
    CustomKernel,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from widemargin.losses import CLASS_LOSSES
from widemargin.solvers.duals.cutting_plane import CuttingPlane
from widemargin.solvers.duals.expansion import DUAL_LOSSES
from widemargin.solvers.duals.full_gradient import FullGradient
from widemargin.solvers.duals.larank import LaRank

__all__ = [
    "RBF",
    "ChiSquare",
    "CuttingPlane",
    "Data",
    "FullGradient",
    "LaRank",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Problem",
    "draw_problem",
]

#: Invariants are of expansions in kernels; linear machines have tests of their own for odd rows.
KERNEL_ESTIMATORS = {
    name: kind for name, kind in CLASS_ESTIMATORS.items() if has_parameter(name, "kernel")
}
SHARES = {  # of the problems; those not named share the rest
    "KernelClassifier": 0.4,
    "SparseKernelClassifier": 0.35,
    "SparseKernelClassifierCV": 0.02,
}
SECONDS = 2.0  # that a fit may take at the most, where it can be told so

#: Stands for a function in the text of a problem.
CALLABLE = "a Python function"
#: Stands for a dict of all classes.
BY_CLASS = "a dict"


def rational_quadratic(X, Y):
    """Return a kernel that the library does not have; of either form of rows."""
    X, Y = (rows.toarray() if hasattr(rows, "toarray") else rows for rows in (X, Y))
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    squares = [np.square(row - Y).sum(axis=1) for row in X]  # differences keep all digits
    return 1.0 / (1.0 + np.array(squares).reshape(len(X), len(Y)))


@dataclass(frozen=True)
class Problem:
    """An estimator, what it is given other than its defaults, and the data."""

    estimator: str
    data: Data
    options: dict = field(default_factory=dict)
    seed: int = 0

    @property
    def kind(self):
        """The class of the estimator."""
        return KERNEL_ESTIMATORS[self.estimator]

    def option(self, name):
        """Return the value of an option, given or default."""
        if name in self.options:
            return self.options[name]
        return SETTINGS[name] if name in SETTINGS else names_of(self.kind)[name].default

    def has(self, name):
        """Return whether the estimator has an option, or may have it in its basis."""
        return name in names_of(self.kind)

    def changed(self, **options):
        """Return the problem with other options; those that the estimator lacks are left out."""
        known = {name: value for name, value in options.items() if self.has(name)}
        return replace(self, options={**self.options, **known})

    def make(self, **changes):
        """Return the estimator, not fitted."""
        options = {**self.options, **changes}
        settings = {name: options.pop(name) for name in [*options] if name in SETTINGS}
        if settings:
            options["basis"] = _basis_of(self.option("basis"), settings)
        if options.get("kernel") == CALLABLE:
            options["kernel"] = rational_quadratic
        if options.get("class_weight") == BY_CLASS:
            labels = self.data.label_values().tolist()
            options["class_weight"] = {label: 0.5 + place for place, label in enumerate(labels)}
        return self.kind(**options)

    @property
    def is_precomputed(self):
        """Whether rows are kernel values."""
        return self.has("kernel") and (
            self.option("kernel") == "precomputed" or isinstance(self.option("kernel"), Precomputed)
        )

    def suited(self, rows):
        """Return rows that the kernel takes: their sizes, where it takes nothing negative."""
        kernel = self.option("kernel") if self.has("kernel") else None
        refuses = kernel.positive_only if isinstance(kernel, Kernel) else kernel == "chi2"
        return np.abs(rows) if refuses else rows

    @property
    def learns_row_by_row(self):
        """Whether the estimator has partial_fit."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return hasattr(self.make(), "partial_fit")

    def rows(self):
        """Return the training rows as float64, or the kernel matrix."""
        rows = self.data.rows()
        if not self.is_precomputed:
            return self.suited(rows)
        with np.errstate(all="ignore"):
            spread = np.abs(rows).max(initial=0.0) or 1.0
        kernel = linear_kernel if self.seed % 2 else rbf_kernel
        return kernel(rows / spread)

    def training_data(self, form=None, dtype=None):
        """Return X, y and sample_weight."""
        rows = self.data.shaped(self.rows(), form, dtype)
        return rows, self.data.targets(), self.data.sample_weight()


def draw_problem(seed):
    """Return the problem of this number."""
    rng = generator(seed, "estimator")
    rest = [name for name in KERNEL_ESTIMATORS if name not in SHARES]
    share = (1 - sum(SHARES.values())) / max(1, len(rest))
    odds = np.array([SHARES.get(name, share) for name in KERNEL_ESTIMATORS])
    estimator = str(rng.choice(list(KERNEL_ESTIMATORS), p=odds / odds.sum()))
    data = draw_data(seed, every_class_twice=estimator.endswith("CV"))
    problem = Problem(estimator, data, {}, seed)
    for name in names_of(problem.kind):
        if name in OPTIONS:
            value = OPTIONS[name](generator(seed, f"option {name}"), problem)
            if value is not DEFAULT:
                problem = problem.changed(**{name: value})
    return problem


DEFAULT = object()
#: Settings of all bases, by their names as parameters of an estimator, and their defaults.
SETTINGS = {
    f"basis__{name}": value
    for basis in (ChosenBasis(), LearnedBasis())
    for name, value in basis.get_params().items()
}


def names_of(kind):
    """Return the options of an estimator by name, those of its basis after all others."""
    parameters = dict(inspect.signature(kind).parameters)
    return parameters | (dict.fromkeys(SETTINGS) if "basis" in parameters else {})


def _basis_of(name, settings):
    """Return the basis that a string stands for, with those of the settings that it has."""
    basis = LearnedBasis() if name == "learned" else ChosenBasis(per_class=name == "per_class")
    own = {f"basis__{each}" for each in basis.get_params()} & settings.keys()
    return basis.set_params(**{each.removeprefix("basis__"): settings[each] for each in own})


def _one_of(*values, plain=0.4):
    """Return a draw among values; the default, for a share of the problems."""

    def draw(rng, problem):
        return DEFAULT if rng.random() < plain else values[rng.integers(len(values))]

    return draw


def _only_learned(draw):
    return lambda rng, problem: (
        draw(rng, problem) if problem.option("basis") == "learned" else DEFAULT
    )


def _only_powers(draw):
    """Draw an option of polynomials, and of what else is made of products."""

    def only(rng, problem):
        return draw(rng, problem) if problem.option("kernel") in ("poly", "sigmoid") else DEFAULT

    return only


def _searches(problem):
    return problem.estimator.endswith("CV")


def _max_basis(rng, problem):
    if _searches(problem):
        return [[2, 3], 3, "auto"][rng.choice(3, p=[0.6, 0.3, 0.1])]
    return int(rng.integers(1, 25))


def _loss(rng, problem):
    return str(rng.choice(DUAL_LOSSES if problem.has("budget") else list(CLASS_LOSSES)))


def _kernel(rng, problem):
    gamma = float(10.0 ** rng.uniform(-2, 1))
    objects = [
        RBF(gamma),
        Laplacian(gamma),
        ChiSquare(gamma),
        Polynomial(gamma, degree=2, coef0=1.0),
        Linear(),
        Precomputed(),
        CALLABLE,
    ]
    if rng.random() < 0.2:
        return objects[rng.integers(len(objects))]
    return DEFAULT if rng.random() < 0.3 else str(rng.choice(KERNEL_NAMES))


def _gamma(rng, problem):
    if rng.random() < 0.6:
        return DEFAULT
    # About as wide as the data, or much wider or narrower.
    spread = problem.data.magnitude[0] ** 2
    wide = float(10.0 ** rng.uniform(-4, 3)) / spread
    return wide if 0 < wide < np.inf and rng.random() < 0.7 else float(10.0 ** rng.uniform(-3, 2))


def _basis(rng, problem):
    if _searches(problem):
        return DEFAULT if rng.random() < 0.5 else "shared"
    can_learn = problem.option("kernel") == "rbf"
    return str(rng.choice(["shared", "per_class", *(["learned"] if can_learn else [])]))


def _solver(rng, problem):
    objects = [
        LaRank(tau=0.01, candidates=1),
        LaRank(certify=True, shuffle=False),
        LaRank(operations=("new",)),
        FullGradient(shrinking=False),
        CuttingPlane(epsilon=0.5, new_constraints=3),
    ]
    if rng.random() < 0.25:
        return objects[rng.integers(len(objects))]
    return str(rng.choice(["larank", "full_gradient", "cutting_plane"]))


def _epochs(rng, problem):
    if rng.random() < 0.6:
        return DEFAULT
    return int(rng.integers(1, 4))


def _class_weight(rng, problem):
    return str(rng.choice(["balanced", BY_CLASS])) if rng.random() < 0.25 else DEFAULT


def _budget(rng, problem):
    """Only where there is partial_fit: elsewhere a budget is refused."""
    solver = problem.option("solver") if "solver" in problem.kind._get_param_names() else "larank"
    learns_on = isinstance(solver, LaRank) or solver == "larank"
    if not learns_on or problem.option("kernel") == "precomputed":
        return DEFAULT
    if isinstance(problem.option("kernel"), Precomputed):
        return DEFAULT
    return _one_of(1, 2, 5, 12, plain=0.6)(rng, problem)


def _n_jobs(rng, problem):
    # A search in several processes takes seconds to begin.
    return DEFAULT if _searches(problem) else [None, 1, 2, -1][rng.integers(4)]


OPTIONS = {
    "C": lambda rng, problem: float(10.0 ** rng.uniform(-3, 4)) if rng.random() < 0.7 else DEFAULT,
    "Cs": lambda rng, problem: [1.0, 10.0],
    "average": _one_of(False, plain=0.5),
    "basis": _basis,  # comes after the kernel in all signatures, and before its settings
    "basis__early_stopping": _only_learned(_one_of(True, plain=0.6)),
    "basis__gradient_tol": _one_of(1e-2, 1e-7, plain=0.6),
    "basis__linear_part": _only_learned(_one_of(True, plain=0.7)),
    "basis__max_iter": _only_learned(lambda rng, problem: int(rng.integers(1, 9))),
    "basis__metric": _only_learned(_one_of("none", "diagonal", "full", plain=0.3)),
    "basis__n_candidates": lambda rng, problem: (
        DEFAULT
        if problem.option("basis") == "learned"
        else _one_of(1, 5, "all", plain=0.5)(rng, problem)
    ),
    "basis__n_iter_no_change": _only_learned(_one_of(1, 3, plain=0.7)),
    "basis__solver": _only_learned(
        lambda rng, problem: str(rng.choice(["auto", "projection", "adam"]))
    ),
    "basis__validation_fraction": _only_learned(_one_of(0.3, plain=0.7)),
    "budget": _budget,
    "budget_policy": _one_of("merge", "redundant", plain=0.4),
    "cache_size": _one_of(0.001, 0.1, plain=0.7),
    "class_weight": _class_weight,
    "coef0": _only_powers(_one_of(1.0, 0.1, -0.5, plain=0.5)),
    "cv": lambda rng, problem: 2,
    "degree": _only_powers(_one_of(1, 2, 5, plain=0.5)),
    "epochs": _epochs,
    "fit_intercept": _one_of(False, plain=0.6),
    "gamma": _gamma,
    "kernel": _kernel,
    "loss": _loss,
    "margin": _one_of(1e-3, 10.0, plain=0.6),
    "max_basis": _max_basis,
    "max_iter": _one_of(1, 5, plain=0.8),
    "max_seconds": lambda rng, problem: SECONDS,
    "n_jobs": _n_jobs,
    "one_standard_error": _one_of(False, plain=0.6),
    "random_state": lambda rng, problem: int(rng.integers(1000)),
    "shuffle": _one_of(False, plain=0.6),
    "solver": _solver,
    "tol": lambda rng, problem: (
        DEFAULT
        if rng.random() < 0.6
        else float(rng.choice([1e-2, 1e-6] if problem.has("budget") else [0.0, 0.1]))
    ),
    "warm_start": _one_of(True, plain=0.7),
    "widths": lambda rng, problem: [1.0],
}

#: Options that no problem has, and why.
LEFT = {
    "basis__per_class": "drawn as a basis of that name",
    "refit": "without it there is no machine",
    "scoring": "the search asks scikit-learn, whatever the score",
    "verbose": "prints",
}


def used_names():
    """Return the names of all options of all estimators."""
    return {name for kind in KERNEL_ESTIMATORS.values() for name in names_of(kind)}


def wraps_a_function(kernel):
    """Return whether Python computes a kernel, so that only pickle keeps it."""
    return isinstance(kernel, CustomKernel)

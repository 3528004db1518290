"""Whom the questions about support vector machines are asked of, and which answers are still wrong.

The tests of scikit-learn's SVC, LinearSVC, SGDClassifier and Perceptron ask what users rely on. The
same is asked here of every estimator of classes, with its losses, solvers and bases.
"""

import functools

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

from widemargin import ChosenBasis, LearnedBasis
from widemargin._registry import ESTIMATORS

FULL = {
    "max_basis": 1000,
    "basis": ChosenBasis(n_candidates=8, gradient_tol=1e-9),
    "tol": 0,
    "C": 1.0,
}
SEARCH = {"cv": 2, "max_basis": [8], "Cs": [10.0], "widths": [1.0], "basis": "shared"}
CLOSE = {"tol": 1e-7}  # of the optimum

# Estimator, and what is set of it. Those after "exact" end at an optimum that is unique.
MACHINES = {
    "sparse": ("SparseKernelClassifier", {"max_basis": 20}),
    "sparse_logistic": ("SparseKernelClassifier", {"max_basis": 20, "loss": "logistic"}),
    "sparse_per_class": ("SparseKernelClassifier", {"max_basis": 10, "basis": "per_class"}),
    "learned": ("SparseKernelClassifier", {"max_basis": 6, "basis": LearnedBasis(max_iter=15)}),
    "searched": ("SparseKernelClassifierCV", SEARCH),
    # After so few passes intercepts have not settled, and go with the order of the rows.
    "one_pass": ("KernelClassifier", {"epochs": 1, "fit_intercept": False}),
    "mira": ("KernelMIRA", {"epochs": 3, "fit_intercept": False}),
    "perceptron": ("KernelPerceptron", {"epochs": 3}),
    "last_perceptron": (
        "KernelPerceptron",
        {"epochs": 3, "average": False, "fit_intercept": False},
    ),
    "linear": ("StochasticLinearClassifier", {"alpha": 1e-2, "tol": 1e-3}),
    "exact_sparse": ("SparseKernelClassifier", FULL),
    "exact_logistic": ("SparseKernelClassifier", {**FULL, "loss": "logistic"}),
    "exact_larank": ("KernelClassifier", CLOSE),
    "exact_full_gradient": ("KernelClassifier", {**CLOSE, "solver": "full_gradient"}),
    "exact_cutting_plane": ("KernelClassifier", {"tol": 1e-5, "solver": "cutting_plane"}),
    "exact_weston_watkins": ("KernelClassifier", {**CLOSE, "loss": "weston_watkins"}),
}
ALL = list(MACHINES)
EXACT = [name for name in MACHINES if name.startswith("exact")]
FIRST = list({MACHINES[name][0]: name for name in reversed(MACHINES)}.values())
ONLY_RBF = ["learned", "searched"]
ROWS = [name for name in MACHINES if name not in (*ONLY_RBF, "linear")]  # with any kernel
ONLINE = ["mira", "perceptron", "last_perceptron"]
STREAMS = ["one_pass", "linear", *ONLINE]
WITH_C = [name for name in ROWS if "perceptron" not in name]
WARM = ["sparse", "learned", "exact_larank", "exact_full_gradient"]
PROBABLE = ["sparse_logistic", "exact_logistic"]

# Questions whose answer is wrong: the reason, and the machines that give it. Each must fail: once
# one does not, its name goes from here.
NOT_YET: dict[str, tuple[str, list[str]]] = {}


def make(name, **parameters):
    """Return an estimator that is repeatable."""
    estimator, settings = MACHINES[name]
    return ESTIMATORS[estimator](**{"random_state": 0, **settings, **parameters})


def ask(names, **choices):
    """Ask a question of these machines, with every value of one more argument if there is one.

    What ``make test`` leaves out is met there by turns. A further argument has one value for each
    machine. Without one, the first machine and one of each estimator are asked every question, the
    others about every second.
    """
    (argument, values), *_ = [*choices.items(), (None, [None])]

    def decorate(question):
        cases, turn = [], len(question.__name__)  # as good as any number that stays
        for place, name in enumerate(names):
            for number, value in enumerate(values):
                case = name if argument is None else f"{name}-{value}"
                reason, wrong = NOT_YET.get(question.__name__, ("", []))
                marks = [pytest.mark.xfail(strict=True, reason=reason)] if name in wrong else []
                if argument is None:
                    always = place == 0 or name in FIRST or (place + turn) % 2
                else:
                    always = number == place % len(values)
                if not always:
                    marks.append(pytest.mark.thorough)
                arguments = (name,) if argument is None else (name, value)
                cases.append(pytest.param(*arguments, marks=marks, id=case))
        arguments = "name" if argument is None else f"name, {argument}"
        return pytest.mark.parametrize(arguments, cases)(question)

    return decorate


def toy():
    """Return six points of two classes, and three more with their classes."""
    X = np.array([[-2.0, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]])
    return X, np.array([1, 1, 1, 2, 2, 2]), np.array([[-1.0, -1], [2, 2], [3, 2]]), [1, 2, 2]


@functools.cache
def iris(n_classes=3):
    """Return 90 rows of iris, scaled, in random order; whoever changes them takes a copy."""
    X, y = load_iris(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(y))[:90]
    X, y = StandardScaler().fit_transform(X)[order], y[order]
    kept = y >= 3 - n_classes  # the two that are hard to tell apart
    X, y = X[kept], y[kept]
    X.flags.writeable = y.flags.writeable = False
    return X, y


@functools.cache
def fitted(name, **parameters):
    """Return a machine of these rows that tests share; whoever changes it takes a copy."""
    return make(name, **parameters).fit(*iris())


def difference(found, expected):
    """Return the largest difference of scores, relative to the largest score."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    return np.abs(found - expected).max() / np.abs(expected).max()

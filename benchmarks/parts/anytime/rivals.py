"""Linear machines of other libraries, each with settings that go from the least effort to the most.

A rival that is not installed is left out. Rows are given in the form that it takes at once, where
making that form is no part of the time.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from benchmarks.text_data import TextRows
from widemargin import StochasticLinearClassifier

ALPHA = 1e-4
_EFFORTS = (1, 2, 3, 5, 8, 13, 20, 30, 50)

# What fits, and then gives the classes of the test rows.
Fit = Callable[[], Callable[[], np.ndarray]]


def ours(rows: TextRows) -> Iterator[tuple[str, Fit]]:
    """Yield fits of this library: what is shown is one machine, by how long it may take."""

    def fit(passes: int) -> Callable[[], np.ndarray]:
        machine = StochasticLinearClassifier(
            alpha=ALPHA, max_iter=passes, tol=None, fit_intercept=False, random_state=0
        ).fit(rows.X, rows.y)
        return lambda: machine.predict(rows.X_test)

    def fit_part(share: float) -> Callable[[], np.ndarray]:
        count = max(2, int(share * len(rows.y)))
        machine = StochasticLinearClassifier(alpha=ALPHA, fit_intercept=False)
        machine.partial_fit(rows.X[:count], rows.y[:count], classes=np.unique(rows.y))
        return lambda: machine.predict(rows.X_test)

    for share in (0.25, 0.5):
        yield f"{share:g} passes", lambda share=share: fit_part(share)  # type: ignore[misc]
    for passes in _EFFORTS:
        yield f"{passes} passes", lambda passes=passes: fit(passes)  # type: ignore[misc]


def _of_scikit_learn(rows: TextRows) -> dict[str, list[tuple[str, Any]]]:
    C = 1 / (ALPHA * len(rows.y))
    averaged = {"alpha": ALPHA, "average": True, "tol": None, "n_jobs": 2, "random_state": 0}
    plain = {"fit_intercept": False, "C": C}
    return {
        "LinearSVC": [
            (f"tol {tol:g}", LinearSVC(multi_class="crammer_singer", tol=tol, **plain))
            for tol in (10.0, 3.0, 1.0, 0.3, 0.1, 0.01)
        ],
        **{
            f"SGDClassifier {loss}": [
                (
                    f"{effort} passes",
                    SGDClassifier(loss=loss, fit_intercept=False, max_iter=effort, **averaged),
                )
                for effort in _EFFORTS
            ]
            for loss in ("hinge", "log_loss")
        },
        **{
            f"LogisticRegression {solver}": [
                (f"{effort} rounds", LogisticRegression(solver=solver, max_iter=effort, **plain))
                for effort in (1, 2, 3, 5, 8, 13, 20)
            ]
            for solver in ("saga", "lbfgs")
        },
    }


def _of_snapml(rows: TextRows) -> dict[str, list[tuple[str, Any]]]:
    if importlib.util.find_spec("snapml") is None:
        return {}
    import snapml  # type: ignore[import-not-found,unused-ignore]

    weight = ALPHA * len(rows.y)
    kinds = {"logistic": snapml.LogisticRegression, "svm": snapml.SupportVectorMachine}
    return {
        f"snapml {name}": [
            (
                f"{effort} rounds",
                kind(max_iter=effort, regularizer=weight, fit_intercept=False, n_jobs=2),
            )
            for effort in (1, 2, 5, 10, 30)
        ]
        for name, kind in kinds.items()
    }


def rivals(rows: TextRows) -> dict[str, list[tuple[str, Fit]]]:
    """Return the fits of each rival that is installed, by its name."""
    found: dict[str, list[tuple[str, Fit]]] = {}
    for name, machines in (_of_scikit_learn(rows) | _of_snapml(rows)).items():
        found[name] = [(setting, _fit_of(machine, rows)) for setting, machine in machines]
    if importlib.util.find_spec("vowpalwabbit") is not None:
        found["Vowpal Wabbit"] = list(_of_vowpal_wabbit(rows))
    return found


def _fit_of(machine: Any, rows: TextRows) -> Fit:
    def fit() -> Callable[[], np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", FutureWarning)
            machine.fit(rows.X, rows.y)
        return lambda: np.asarray(machine.predict(rows.X_test))

    return fit


def _of_vowpal_wabbit(rows: TextRows) -> Iterator[tuple[str, Fit]]:
    """Yield passes over examples that are parsed before, as others have their rows ready."""
    from vowpalwabbit import Workspace  # type: ignore[import-not-found,unused-ignore]

    classes, numbers = np.unique(rows.y, return_inverse=True)

    def texts(X: Any, labels: np.ndarray | None) -> list[str]:
        lines = []
        for i in range(X.shape[0]):
            part = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)
            words = " ".join(f"{feature}:{value:.6g}" for feature, value in pairs)
            lines.append(f"{'' if labels is None else labels[i] + 1} | {words}")
        return lines

    arguments = f"--oaa {len(classes)} --loss_function hinge --noconstant -b 22 --quiet"
    lines, test_lines = texts(rows.X, numbers), texts(rows.X_test, None)

    def fit_of(passes: int) -> Fit:
        workspace = Workspace(arguments)
        examples = [workspace.parse(line) for line in lines]

        def fit() -> Callable[[], np.ndarray]:
            for _ in range(passes):
                for example in examples:
                    workspace.learn(example)
            return lambda: np.array([classes[workspace.predict(line) - 1] for line in test_lines])

        return fit

    for passes in (1, 2, 3, 5):
        yield f"{passes} passes", fit_of(passes)

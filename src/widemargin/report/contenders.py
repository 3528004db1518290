"""Who competes: our machines at several sizes, and what a user would pick instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import numpy.typing as npt
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from widemargin.full_kernel.classifier import KernelClassifier
from widemargin.full_kernel.multilabel import KernelMultiLabelClassifier
from widemargin.linear.multilabel import LinearMultiLabelClassifier
from widemargin.linear.stochastic import StochasticLinearClassifier
from widemargin.report.comparison import Kind
from widemargin.report.encoding import MAX_DENSE
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.cv import SparseKernelClassifierCV
from widemargin.sparse_kernel.multilabel import SparseKernelMultiLabelClassifier
from widemargin.sparse_kernel.multilabel_cv import SparseKernelMultiLabelClassifierCV

Array: TypeAlias = npt.NDArray[Any]
Prepared: TypeAlias = Literal["scaled", "for distances", "ordinal", "as it is"]
Grid: TypeAlias = dict[str, list[Any]]

SIZES = (10, 30, 100)  # vectors, of ours and of Nystroem
CS = [1, 10, 100]
ALPHAS = [1e-4, 1e-3, 1e-2, 1e-1]
LABEL_CS = [0.01, 0.1, 1]
TUNING_ROWS = 2000
TUNING_FOLDS = 3


@dataclass(frozen=True)
class Task:
    """What contenders have to know of the data, and of the computer."""

    label_sets: bool
    n_outputs: int
    n_numbers: int  # of the training rows, were they a dense matrix
    sparse: bool
    text_places: tuple[int, ...]
    n_threads: int
    seed: int


@dataclass(frozen=True)
class Contender:
    """A machine that may be fitted.

    Parameters
    ----------
    build : callable
        ``build(task, n_rows, seconds)`` gives an estimator that has not been fitted. Those that
        know a time limit heed the seconds.
    settings : str
        What is said of them in tables.
    prepared : {"scaled", "for distances", "ordinal", "as it is"}
        What its rows have to be; see :mod:`widemargin.report.encoding`.
    grid : callable or None
        ``grid(X)`` gives values of parameters, from which cross-validation on some of the training
        rows chooses.
    module : str or None
        The package that it needs.
    anytime : bool
        Whether it does what it can in the seconds that it is given, however many rows.
    """

    name: str
    kind: Kind
    family: str
    build: Callable[[Task, int, float | None], Any]
    settings: str
    prepared: Prepared = "scaled"
    grid: Callable[[Array], Grid] | None = None
    module: str | None = None
    anytime: bool = False

    def obstacle(self, task: Task) -> str:
        """Say why it cannot be run on such data; nothing if it can."""
        if self.prepared == "ordinal" and task.sparse and task.n_numbers > MAX_DENSE:
            return f"left out: {task.n_numbers:,} numbers, most of them zero, would be made dense"
        return ""


def contenders(task: Task) -> list[Contender]:
    """Return all that are installed, those of one kind side by side."""
    found = [*_ours(task.label_sets), *_peers(task.label_sets)]
    return [one for one in found if one.module is None or find_spec(one.module) is not None]


def _ours(label_sets: bool) -> list[Contender]:
    few, searched, full, linear = (
        (
            SparseKernelMultiLabelClassifier,
            SparseKernelMultiLabelClassifierCV,
            KernelMultiLabelClassifier,
            LinearMultiLabelClassifier,
        )
        if label_sets
        else (
            SparseKernelClassifier,
            SparseKernelClassifierCV,
            KernelClassifier,
            StochasticLinearClassifier,
        )
    )

    def one(name: str, family: str, machine: Any, shown: str = "", **more: Any) -> Contender:
        """Make a contender of a class or a partial call of one; all of ours take the same."""

        def build(task: Task, _rows: int, seconds: float | None) -> Any:
            return machine(max_seconds=seconds, n_jobs=task.n_threads, random_state=task.seed)

        shown = shown or f"{machine.__name__}()"
        prepared: Prepared = "for distances" if family == "kernel" else "scaled"
        return Contender(name, "ours", family, build, shown, prepared, **more)

    return [
        *(
            one(
                f"{size} learned vectors",
                "kernel",
                partial(few, size, basis="learned"),
                f'{few.__name__}({size}, basis="learned")',
            )
            for size in SIZES
        ),
        one("vectors by search", "kernel", searched, anytime=True),
        one("all support vectors", "kernel", full, grid=lambda X: {"C": CS, "gamma": _widths(X)}),
        one(
            "linear, all labels" if label_sets else "linear, row by row",
            "linear",
            linear,
            grid=lambda _X: {"C": LABEL_CS} if label_sets else {"alpha": ALPHAS},
        ),
    ]


def _peers(label_sets: bool) -> list[Contender]:
    def one_by_one(estimator: Any) -> Any:
        return OneVsRestClassifier(estimator) if label_sets else estimator

    def named(grid: Grid) -> Grid:
        return {f"estimator__{name}" if label_sets else name: grid[name] for name in grid}

    each = "one against the rest: " if label_sets else ""

    def nystroem(size: int) -> Contender:
        def build(task: Task, n_rows: int, _seconds: float | None) -> Any:
            vectors = Nystroem(n_components=min(size, n_rows), random_state=task.seed)
            return make_pipeline(vectors, one_by_one(LinearSVC(random_state=task.seed)))

        weight = "onevsrestclassifier__estimator__C" if label_sets else "linearsvc__C"
        return Contender(
            f"Nystroem {size} + LinearSVC",
            "peer",
            "kernel",
            build,
            f"{each}Nystroem(n_components={size}), LinearSVC()",
            "for distances",
            grid=lambda X: {"nystroem__gamma": _widths(X), weight: [0.1, 1, 10, 100]},
        )

    return [
        Contender(
            "SVC",
            "peer",
            "kernel",
            lambda _task, _rows, _seconds: one_by_one(SVC(cache_size=500)),
            f"{each}SVC()",
            "for distances",
            grid=lambda X: named({"C": CS, "gamma": _widths(X)}),
        ),
        *(nystroem(size) for size in SIZES),
        Contender(
            "LinearSVC",
            "peer",
            "linear",
            lambda task, _rows, _seconds: one_by_one(LinearSVC(random_state=task.seed)),
            f"{each}LinearSVC()",
            grid=lambda _X: named({"C": [0.01, 0.1, 1, 10]}),
        ),
        Contender(
            "logistic regression",
            "peer",
            "linear",
            lambda _task, _rows, _seconds: one_by_one(LogisticRegression(max_iter=1000)),
            f"{each}LogisticRegression(max_iter=1000)",
            grid=lambda _X: named({"C": [0.1, 1, 10, 100]}),
        ),
        Contender(
            "random forest",
            "peer",
            "trees",
            lambda task, _rows, _seconds: RandomForestClassifier(
                n_jobs=task.n_threads, random_state=task.seed
            ),
            "RandomForestClassifier(), 100 trees",
            prepared="ordinal",
        ),
        Contender(
            "histogram boosting",
            "peer",
            "trees",
            lambda task, _rows, _seconds: one_by_one(
                HistGradientBoostingClassifier(
                    categorical_features=list(task.text_places) or None, random_state=task.seed
                )
            ),
            f"{each}HistGradientBoostingClassifier()",
            prepared="ordinal",
        ),
        Contender(
            "network, 100 units",
            "peer",
            "network",
            lambda task, rows, _seconds: MLPClassifier(
                (100,), max_iter=500, early_stopping=rows > 2000, random_state=task.seed
            ),
            "MLPClassifier((100,), max_iter=500), stopped early from 2,000 rows on",
        ),
        *_boosters(one_by_one, each),
        Contender(
            "constant",
            "peer",
            "constant",
            lambda _task, _rows, _seconds: one_by_one(DummyClassifier(strategy="most_frequent")),
            "the most frequent answer, whatever the row",
            prepared="as it is",
        ),
    ]


def _boosters(one_by_one: Callable[[Any], Any], each: str) -> list[Contender]:
    """Boosted trees of other packages, at their defaults."""

    def catboost(task: Task, _rows: int, _seconds: float | None) -> Any:
        from catboost import CatBoostClassifier

        return one_by_one(
            CatBoostClassifier(
                thread_count=task.n_threads,
                random_seed=task.seed,
                verbose=False,
                allow_writing_files=False,
            )
        )

    def lightgbm(task: Task, _rows: int, _seconds: float | None) -> Any:
        from lightgbm import LGBMClassifier

        return one_by_one(LGBMClassifier(n_jobs=task.n_threads, random_state=task.seed, verbose=-1))

    def xgboost(task: Task, _rows: int, _seconds: float | None) -> Any:
        from xgboost import XGBClassifier

        return one_by_one(XGBClassifier(n_jobs=task.n_threads, random_state=task.seed))

    found = [
        ("CatBoost", catboost, "CatBoostClassifier()", "catboost"),
        ("LightGBM", lightgbm, "LGBMClassifier()", "lightgbm"),
        ("XGBoost", xgboost, "XGBClassifier()", "xgboost"),
    ]
    return [
        Contender(name, "peer", "trees", build, each + settings, "ordinal", module=module)
        for name, build, settings, module in found
    ]


def _widths(X: Array) -> list[float]:
    """Return the gamma that "scale" stands for, a fourth and four times it."""
    variance = float(X.power(2).mean() - X.mean() ** 2) if hasattr(X, "power") else float(X.var())
    scale = 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return [scale / 4, scale, 4 * scale]

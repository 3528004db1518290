"""Accuracy and time of teachers and students, and of machines that learn from labels alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.data import Dataset
from benchmarks.parts.distil.targets import LESSONS
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from benchmarks.trials import say
from widemargin import SparseKernelClassifier, compress

DATASETS = tuple(dict.fromkeys(name for name, _ in LESSONS.values()))


@dataclass(frozen=True)
class Taught:
    """Test accuracy in percent, for each seed but of the teacher; microseconds a row in a batch."""

    teacher: float
    students: list[float]
    alone: list[float]
    teacher_time: float
    student_time: float


def measure(settings: Settings, wanted: list[str]) -> dict[str, Taught]:
    """Fit every teacher that is installed, and its students."""
    found = {}
    alone: dict[str, list[float]] = {}
    for who, make in _teachers(settings).items():
        name, size = LESSONS[who]
        if name not in wanted:
            continue
        data, count = settings.load(name), settings.amount(size, quick=10)
        if name not in alone:
            say(f"{size} vectors learn {name} from labels")
            alone[name] = [_accuracy(_alone(data, count, seed), data) for seed in settings.seeds]
        say(f"{who} teaches {size} vectors {name}")
        teacher = make().fit(data.X, data.y)
        students = [_student(teacher, data, count, seed) for seed in settings.seeds]
        quick_student = students[0].compile()
        times = take_turns(
            {
                "teacher": lambda: teacher.predict(data.X_test),  # noqa: B023  # called at once
                "student": lambda: quick_student.predict(data.X_test),  # noqa: B023
            },
            settings.repeats,
        )
        found[who] = Taught(
            _accuracy(teacher, data),
            [_accuracy(student, data) for student in students],
            alone[name],
            1e6 * times["teacher"] / len(data.y_test),
            1e6 * times["student"] / len(data.y_test),
        )
    return found


def _teachers(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return what makes each teacher, one thread each; those that are not installed are left out.

    C and gamma of the SVC were chosen on a fifth of the training rows, held out; boosted trees are
    as they come.
    """
    seed = settings.seeds[0]
    teachers: dict[str, Callable[[], Any]] = {"SVC": lambda: SVC(C=10, gamma=1)}
    try:
        from lightgbm import LGBMClassifier

        teachers["LightGBM"] = lambda: LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)
    except ImportError:
        say("LightGBM is not installed")
    try:
        from catboost import CatBoostClassifier

        trees: dict[str, Any] = settings.amount({}, quick={"iterations": 10})
        teachers["CatBoost"] = lambda: CatBoostClassifier(
            random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False, **trees
        )
    except ImportError:
        say("CatBoost is not installed")
    return teachers


def _alone(data: Dataset, size: int, seed: int) -> SparseKernelClassifier:
    machine = SparseKernelClassifier(size, basis="learned", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of units that met
        return machine.fit(data.X, data.y)


def _student(teacher: Any, data: Dataset, size: int, seed: int) -> SparseKernelClassifier:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return compress(
            teacher, size, data.X, data.y, basis="learned", random_state=seed, verbose=False
        )


def _accuracy(machine: Any, data: Dataset) -> float:
    return 100.0 * float(np.mean(np.ravel(machine.predict(data.X_test)) == data.y_test))

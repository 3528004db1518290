"""Handwritten digits with a capped number of basis vectors, beside what you might use instead.

Five classifiers learn scikit-learn's bundled digits (8 x 8 pixels, ten classes) from one half of
the rows and are judged on the other half:

* SparseKernelClassifier, which may keep 60 training rows as basis vectors;
* the same with 30 vectors that are learned;
* SVC, which keeps as many support vectors as it wants;
* Nystroem + LinearSVC, which draws 60 basis vectors at random;
* a neural network with one hidden layer of 60 units.

Run it with ``make demo``, or ``python examples/demo.py`` where widemargin, rich and matplotlib are
installed. It prints a table and writes to build/demo: the accuracy at each size and the vectors
that were learned as pictures, and a machine as a model file and as C.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import widemargin
from widemargin import SparseKernelClassifier
from widemargin.displays import BasisDisplay

N_VECTORS = 60
N_LEARNED = 30
SIZES = (10, 15, 20, 30, 40, N_VECTORS)  # at which machines that need a fit each are compared
CHOSEN, LEARNED = "SparseKernelClassifier", '  basis="learned"'
FOLDER = Path("build") / "demo"
PICTURE = FOLDER / "accuracy_vs_size.png"
VECTORS = FOLDER / "basis_digits.png"


def make_classifiers(size: int = N_VECTORS) -> dict[str, Any]:
    """Return the classifiers, all but SVC with a given number of vectors or units.

    The parameters of each were chosen by 5-fold cross-validation on the training rows alone, at
    the size 60, from grids in which none of them is the smallest or the largest value. The learned
    basis has its defaults.
    """
    return {
        # tol=0: do not stop before there are that many vectors.
        CHOSEN: SparseKernelClassifier(max_basis=size, C=30, gamma=0.2, tol=0, random_state=0),
        LEARNED: SparseKernelClassifier(max_basis=size, basis="learned", random_state=0),
        "SVC": SVC(C=10, gamma=0.2),
        "Nystroem + LinearSVC": make_pipeline(
            Nystroem(n_components=size, gamma=0.1, random_state=0),
            LinearSVC(C=10, dual=False),
        ),
        "MLPClassifier": make_pipeline(
            StandardScaler(),
            MLPClassifier((size,), alpha=1.0, max_iter=2000, random_state=0),
        ),
    }


@dataclass
class Result:
    """A line of the table."""

    name: str
    accuracy: float
    size: int
    batch_microseconds: float
    single_microseconds: float
    kilobytes: float
    fit_seconds: float


def main() -> None:
    """Fit, compare, and draw the curve."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X / 16, y, test_size=0.5, stratify=y, random_state=0
    )
    print(f"Digits: {len(y_train)} rows to learn from, {len(y_test)} to be judged by.\n")

    classifiers = make_classifiers()
    classifiers[LEARNED].set_params(max_basis=N_LEARNED)
    show_progress(classifiers[CHOSEN])
    results = []
    for name, classifier in classifiers.items():
        fit_seconds = seconds(partial(classifier.fit, X_train, y_train))
        results.append(examine(name, classifier, fit_seconds, X_test, y_test))
    ours, learned = classifiers[CHOSEN], classifiers[LEARNED]
    results.insert(1, examine_compiled(ours, results[0], X_test))
    results.insert(3, examine_compiled(learned, results[2], X_test))
    print_table(results)
    write_machine(ours)

    sizes, accuracies = accuracy_by_size(ours, X_test, y_test)
    print_curve(sizes, accuracies)
    others = others_by_size(X_train, y_train, X_test, y_test)
    draw(sizes, accuracies, others, svc=results[4])
    draw_vectors(learned)
    print(f"\nThe same as a picture: {PICTURE}. The vectors that were learned: {VECTORS}")


def show_progress(classifier: SparseKernelClassifier) -> None:
    """Have a progress bar drawn while the classifier fits, where scikit-learn (1.9) has one."""
    try:
        from sklearn.callback import ProgressBar

        classifier.set_callbacks(ProgressBar())
    except ImportError:
        pass


def seconds(call: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def examine(
    name: str, classifier: Any, fit_seconds: float, X_test: np.ndarray, y_test: np.ndarray
) -> Result:
    """Measure a fitted classifier."""
    size, arrays = what_predicts(classifier)
    many_rows = np.tile(X_test, (10, 1))
    batch = [seconds(partial(classifier.predict, many_rows)) for _ in range(5)]
    single = [seconds(partial(classifier.predict, row)) for row in X_test[:300, None, :]]
    return Result(
        name,
        accuracy=100 * classifier.score(X_test, y_test),
        size=size,
        batch_microseconds=1e6 * float(np.median(batch)) / len(many_rows),
        single_microseconds=1e6 * float(np.median(single)),
        kilobytes=sum(array.nbytes for array in arrays) / 1000,
        fit_seconds=fit_seconds,
    )


def examine_compiled(
    classifier: SparseKernelClassifier, plain: Result, X_test: np.ndarray
) -> Result:
    """Measure the compiled predictor, which has the accuracy of the classifier."""
    predictor = classifier.compile()
    many_rows = np.tile(X_test, (10, 1)).astype(np.float32)
    batch = [seconds(partial(predictor.predict, many_rows)) for _ in range(5)]
    single = [seconds(partial(predictor.predict_one, row)) for row in many_rows[:3000]]
    return replace(
        plain,
        name="    compiled",
        batch_microseconds=1e6 * float(np.median(batch)) / len(many_rows),
        single_microseconds=1e6 * float(np.median(single)),
        kilobytes=plain.kilobytes / 2,  # float32
        fit_seconds=0.0,
    )


def draw_vectors(classifier: SparseKernelClassifier) -> None:
    """Draw the vectors that were learned as images."""
    display = BasisDisplay.from_estimator(classifier, image_shape=(8, 8), max_vectors=N_LEARNED)
    display.figure_.savefig(VECTORS, dpi=100)


def write_machine(classifier: SparseKernelClassifier) -> None:
    """Write the machine as a file to load again, and as C for where there is no Python."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    widemargin.save(classifier, FOLDER / "digits.widemargin")
    exported = widemargin.export.to_c(classifier, FOLDER / "digits.h")
    print(
        f"\nThe machine as a file: {FOLDER / 'digits.widemargin'}; as C99 of "
        f"{exported.n_bytes / 1000:.0f} kB: {exported.path}"
    )


def what_predicts(classifier: Any) -> tuple[int, list[np.ndarray]]:
    """Return the number of vectors or units, and the arrays that prediction reads."""
    if isinstance(classifier, SparseKernelClassifier):
        arrays = [classifier.basis_, classifier.dual_coef_, classifier.intercept_]
        return classifier.n_basis_, arrays
    if isinstance(classifier, SVC):
        arrays = [classifier.support_vectors_, classifier.dual_coef_, classifier.intercept_]
        return len(classifier.support_vectors_), arrays
    first, last = classifier[0], classifier[-1]
    if isinstance(first, Nystroem):
        arrays = [first.components_, first.normalization_, last.coef_, last.intercept_]
        return len(first.components_), arrays
    arrays = [first.mean_, first.scale_, *last.coefs_, *last.intercepts_]
    return last.hidden_layer_sizes[0], arrays


def print_table(results: list[Result]) -> None:
    """Print what was measured, a line a classifier."""
    heads = (
        ("", "accuracy", "vectors", "µs a row", "µs for", "model", "fit"),
        ("", "%", "or units", "in batch", "one row", "kB", "s"),
    )
    print()
    for name, *columns in heads:
        print(f"{name:24}" + "".join(f"{column:>10}" for column in columns))
    for result in results:
        print(
            f"{result.name:24}{result.accuracy:10.2f}{result.size:10}"
            f"{result.batch_microseconds:10.2f}{result.single_microseconds:10.3g}"
            f"{result.kilobytes:10.0f}{result.fit_seconds:10.2f}"
        )
    print("\nModel: the arrays that prediction reads, as they lie in memory (8 bytes a number).")


def accuracy_by_size(
    classifier: SparseKernelClassifier, X_test: np.ndarray, y_test: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sizes that one fit went through, and the test accuracy at each."""
    accuracies = []
    for scores in classifier.staged_decision_function(X_test):
        predicted = classifier.classes_[scores.argmax(axis=1)]
        accuracies.append(100 * float(np.mean(predicted == y_test)))
    sizes = classifier.history_["n_basis"]
    # The first stage may be that of the intercepts alone.
    return sizes[sizes > 0], np.array(accuracies)[sizes > 0]


def others_by_size(
    X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, y_test: np.ndarray
) -> dict[str, list[tuple[int, float]]]:
    """Return the test accuracy of the others at some sizes: for them, a fit for each."""
    found: dict[str, list[tuple[int, float]]] = {
        name: [] for name in (LEARNED, "Nystroem + LinearSVC", "MLPClassifier")
    }
    for size in SIZES:
        classifiers = make_classifiers(size)
        for name, points in found.items():
            classifier = classifiers[name].fit(X_train, y_train)
            points.append((size, 100 * classifier.score(X_test, y_test)))
    return found


def print_curve(sizes: np.ndarray, accuracies: np.ndarray) -> None:
    """Print some ten points of the curve."""
    print("\nOne fit gives the accuracy at every size on the way:\n\nvectors  accuracy %")
    for wanted in (1, 2, 4, 6, 8, 10, 15, 20, 30, 40, 50, N_VECTORS):
        stage = int(np.argmin(np.abs(sizes - wanted)))
        bar = "#" * round(accuracies[stage] / 2)
        print(f"{sizes[stage]:7}{accuracies[stage]:12.2f}  {bar}")


def draw(
    sizes: np.ndarray,
    accuracies: np.ndarray,
    others: dict[str, list[tuple[int, float]]],
    svc: Result,
) -> None:
    """Draw the curve of our fit, the others at some sizes, and SVC at its own."""
    import matplotlib

    matplotlib.use("Agg")  # a file, no window
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    axes.plot(
        sizes, accuracies, "o-", markersize=4, linewidth=2, label="SparseKernelClassifier: one fit"
    )
    for (name, points), style in zip(others.items(), ("*-", "^--", "s:"), strict=True):
        label = f"{name.strip()}: a fit each"
        axes.plot(*zip(*points, strict=True), style, markersize=7, label=label)
    label = f"SVC: {svc.size} support vectors"
    axes.plot(svc.size, svc.accuracy, "D", color="black", markersize=7, label=label)
    axes.set_xscale("log")
    ticks = [5, 10, 20, 40, 60, 100, 200, 500]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(4.5, 1.2 * svc.size)
    axes.set_ylim(75, 100)
    axes.set_xlabel("basis vectors, or hidden units")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(f"Digits: accuracy against size (parameters chosen at {N_VECTORS})")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()

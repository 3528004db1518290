"""What the library promises: the figures that a run is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Target:
    """A promise in words, the least that is asked for, and what would be better still."""

    what: str
    bar: float
    stretch: float | None
    better: Literal["higher", "lower"]
    unit: str = ""

    def verdict(self, value: float) -> str:
        if self.stretch is not None and self._reaches(value, self.stretch):
            return "stretch reached"
        return "bar reached" if self._reaches(value, self.bar) else "MISSED"

    def _reaches(self, value: float, limit: float) -> bool:
        return value >= limit if self.better == "higher" else value <= limit


@dataclass(frozen=True)
class AccuracyTarget(Target):
    """Accuracy in percent on the test rows of a data set, with this many vectors."""

    dataset: str = ""
    n_vectors: int = 0


def _accuracy(dataset: str, n_vectors: int, bar: float, stretch: float) -> AccuracyTarget:
    what = f"{dataset}, {n_vectors} vectors, tuned on training rows only"
    return AccuracyTarget(what, bar, stretch, "higher", " %", dataset, n_vectors)


ACCURACY = (
    _accuracy("letter.scale", 180, 94.2, 95.0),
    _accuracy("usps", 83, 93.2, 94.0),
    _accuracy("satimage.scale", 68, 89.7, 90.1),
)

# Its test rows are a million: what prediction is timed on. Accuracy there is shown, not promised.
POKER, POKER_VECTORS = "poker", 100

TUNED_SIZES = {
    **{target.dataset: target.n_vectors for target in ACCURACY},
    POKER: POKER_VECTORS,
}

# The learned basis is measured at these sizes.
LEARNED_SIZES = {
    "letter.scale": (45, 90, 180),
    "satimage.scale": (10, 24, 48),
    "usps": (12, 29, 83),
    "pendigits": (10, 20, 40),
    "segment.scale": (7, 14, 28),
    "shuttle.scale": (7, 14),
    "mnist": (100, 300),
}

# Further sizes: of a basis that is chosen greedily, to be as accurate as one that is learned; and
# of a learned one, to be about as accurate as SVC.
LARGER_SIZES = {
    ("sparse", "letter.scale"): (360,),
    ("sparse", "satimage.scale"): (68, 136),
    ("sparse", "usps"): (166,),
    ("learned", "usps"): (140,),
    ("learned", "pendigits"): (60, 70, 80),
    ("learned", "segment.scale"): (38,),
}

LEARNED_ACCURACY = tuple(
    _accuracy(dataset, size, bar, stretch)
    for dataset, figures in {
        "letter.scale": ((45, 94.6, 96.0), (90, 96.6, 97.6), (180, 97.4, 98.1)),
        "satimage.scale": ((10, 89.4, 90.5), (24, 90.6, 91.3), (48, 91.1, 91.8)),
        "usps": ((12, 93.0, 93.8), (29, 94.0, 94.8), (83, 94.6, 95.4)),
        "mnist": ((100, 97.3, 98.0), (300, 98.2, 98.7)),
    }.items()
    for size, bar, stretch in figures
)

# Sets over which the lead over MLPClassifier is taken.
LEAD_SETS = ("letter.scale", "satimage.scale", "usps", "pendigits", "segment.scale")
LEAD = Target(
    "mean lead over MLPClassifier with as many units, 5 sets of 3 sizes", 0.6, 1.2, "higher"
)
LEAST_LEAD = Target("the same on the set where it is least", -0.2, None, "higher")
DEFAULT_LEAD = Target("mean lead over it, nothing tuned on either side", 0.3, 0.8, "higher")

GREEDY_RATIO = {
    name: Target(f"greedy vectors / learned vectors at equal accuracy: {name}", 3.5, 6, "higher")
    for name in ("letter.scale", "satimage.scale", "usps")
}

SVC_VECTORS = {
    name: Target(
        f"within .5 points of SVC, times fewer vectors than it keeps: {name}", 10, 40, "higher"
    )
    for name in LEARNED_SIZES
    if name != "mnist"
}

LEARNED_FIT_RATIO = {
    name: (
        size,
        Target(
            f"fit of {name}, {size} learned vectors / MLPClassifier", bar, stretch, "lower", "x"
        ),
    )
    for name, size, bar, stretch in (
        ("satimage.scale", 24, 1.0, 0.5),
        ("usps", 29, 1.5, 0.7),
        ("letter.scale", 90, 3.0, 1.0),
    )
}

LEARNED_DOUBLING = {
    "rows": Target("learned basis: cost as rows double, worst doubling", 2.2, None, "lower", "x"),
    "vectors": Target(
        "learned basis: cost as vectors double, worst doubling", 2.5, None, "lower", "x"
    ),
}

CHOSEN_SETS = ("usps", "letter.scale")
CHOICE_LOSS = {
    name: Target(
        f"SparseKernelClassifierCV on {name}, defaults: points below the hand-tuned machine",
        0.3,
        None,
        "lower",
    )
    for name in CHOSEN_SETS
}
CHOICE_SECONDS = {
    name: Target(
        f"SparseKernelClassifierCV on {name}, defaults, 2 cores: seconds", 300, 60, "lower", " s"
    )
    for name in CHOSEN_SETS
}

# Nystroem + LinearSVC needs this many times our vectors to be as accurate.
FEWER_VECTORS = {
    name: Target(
        f"same accuracy as Nystroem + LinearSVC, times fewer vectors: {name}", 2, 4, "higher"
    )
    for name in ("letter.scale", "satimage.scale")
}

FIT_RATIO = {
    name: Target(f"fit of {name}, {n_vectors} vectors / fit of {svc}", 2.0, 0.7, "lower")
    for name, n_vectors, svc in (
        ("letter.scale", 180, "SVC(C=16, gamma=4)"),
        ("usps", 83, "SVC(C=10, gamma=2**-7)"),
    )
}

GRADIENT = Target("relative gradient reached by the joint solver when asked", 1e-6, None, "lower")

DOUBLING = Target("cost as rows double, worst of the doublings", 2.3, None, "lower", "x")

MEMORY = Target("peak memory, 60000 x 780 float32 (mnist), 300 vectors", 1.5, 0.8, "lower", " GB")

NUMPY_RATIO = {
    n_features: Target(
        f"{rows} rows x {n_features} features, 100 vectors, 10 classes: times faster than chunked "
        "NumPy + BLAS, one thread",
        bar,
        stretch,
        "higher",
        "x",
    )
    for rows, n_features, bar, stretch in (
        ("1e6", 10, 1.7, 3.0),
        ("1e5", 256, 1.1, 1.5),
        ("1e5", 780, 1.1, 1.5),
    )
}

SVC_RATIO = Target(
    "prediction of letter.scale, 180 vectors: times faster than SVC, one thread",
    300,
    1000,
    "higher",
    "x",
)

SINGLE_ROW = Target(
    "predict_one, 100 vectors, 16 features, 26 classes, median of calls", 5, 2, "lower", " µs"
)

ONNX_RATIO = {
    batch: Target(
        f"the same machine under onnxruntime, {rows}, one thread: its time / ours",
        1,
        3,
        "higher",
        "x",
    )
    for batch, rows in (("one", "one row"), ("many", "10000 rows"))
}

C_SOURCE = Target("C source of 60 vectors x 64 features x 10 classes", 60, 25, "lower", " kB")

C_COMPILE = Target(
    "768 vectors x 64 features exported to C and compiled with -O2", 10, 2, "lower", " s"
)

AGREEMENT = Target(
    "exports against Python: worst difference of scores, relative to the largest",
    1e-5,
    None,
    "lower",
)

CLEAR_LABELS = Target(
    "exports against Python: other labels where the two best scores differ by more than that",
    0,
    None,
    "lower",
)

# The paper's time for the million rows of poker with 100 vectors, on its own computer (Ganu et
# al. 2013, section 5.1.2, text): context, not a target.
POKER_PAPER_SECONDS = 29.6

"""What the library promises: the figures that a run is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Target:
    """A promise in words, the least that is asked for, if it is, and what would be better."""

    what: str
    bar: float | None
    stretch: float | None
    better: Literal["higher", "lower"]
    unit: str = ""

    def verdict(self, value: float) -> str:
        if self.stretch is not None and self._reaches(value, self.stretch):
            return "stretch reached"
        if self.bar is None:
            return "stretch not reached"
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

# Full kernel machines: C and gamma of the LaRank paper's table 1. Pixels of mnist are from 0 to 1
# here; the paper's .005 would be the same kernel on pixels from -1 to 1.
KERNEL_PARAMETERS = {
    "letter.raw": {"C": 10.0, "gamma": 0.025},
    "usps": {"C": 10.0, "gamma": 0.025},
    "mnist": {"C": 1000.0, "gamma": 0.02},
}
# The machines of the papers, and of kernlab, have no intercepts.
PAPER_MACHINE = {"fit_intercept": False}
# Duals at the optimum, on which several solvers agree; to the digits that are given.
OPTIMAL_DUAL = {"letter.raw": 5462.618, "usps": 493.0632}
LETTER_ERROR = 2.40  # percent, of the optimal machine on letter.raw
# One pass by the program that the authors of LaRank published, timed once where these benchmarks
# are developed. It is not run here: a ratio to these is about the size, not about digits.
ORIGINAL_SECONDS = {"letter.raw": 66.8, "usps": 21.6}

_UNTIL_GAP = "letter.raw, C 10, gamma .025, until gap < C: "
GAP_DUAL = Target(
    f"{_UNTIL_GAP}distance of the dual from {OPTIMAL_DUAL['letter.raw']}", 10, None, "lower"
)
GAP_ERROR = Target(f"{_UNTIL_GAP}distance of the error from 2.40 %", 0.15, None, "lower", " points")
GAP_KERNEL_VALUES = Target(
    f"{_UNTIL_GAP}millions of kernel values (the paper's table 2)", None, 156, "lower"
)
EXACT_DUAL = Target(
    f"letter.raw to a gap of 1e-5: distance of the dual from {OPTIMAL_DUAL['letter.raw']}, "
    "relative",
    1e-5,
    None,
    "lower",
)

_USPS_PASS = "usps, C 10, gamma .025, one pass: "
PASS_SHARE = Target(
    f"{_USPS_PASS}share of the optimal dual {OPTIMAL_DUAL['usps']}", 97, 98, "higher", " %"
)
PASS_ERROR = Target(f"{_USPS_PASS}error", 4.7, None, "lower", " %")
PASS_KERNEL_VALUES = Target(
    f"{_USPS_PASS}millions of kernel values (9.4: the paper's table 2)", 9.4, 7, "lower"
)
MNIST_ERROR = Target(
    "mnist, C 1000, gamma .02, one pass: error (1.41: the paper's table 2)",
    1.6,
    1.41,
    "lower",
    " %",
)
KERNEL_LEAD = {
    name: Target(
        f"{name}: error of one LaRank pass below that of averaged perceptrons and MIRA",
        0,
        None,
        "higher",
        " points",
    )
    for name in OPTIMAL_DUAL
}

KERNEL_FIT_RATIO = {
    name: Target(f"one LaRank pass over {name} / fit of SVC", 2.0, 0.7, "lower", "x")
    for name in OPTIMAL_DUAL
}
ORIGINAL_RATIO = {
    name: Target(
        f"one LaRank pass over {name}: times faster than the authors' program",
        10,
        30,
        "higher",
        "x",
    )
    for name in OPTIMAL_DUAL
}
KERNEL_PREDICT_RATIO = Target(
    "prediction of letter.raw, all support patterns: times faster than SVC, one thread",
    5,
    20,
    "higher",
    "x",
)
STREAM_ROW = Target(
    "partial_fit of one row, 5000 support patterns, 16 features, median of calls",
    1,
    0.2,
    "lower",
    " ms",
)
STREAM_TURN = Target(
    "the same stream, a row predicted and then learned: its time / the sum of the parts",
    1.5,
    None,
    "lower",
    "x",
)
KERNLAB_RATIO = Target(
    "exact Crammer-Singer to a gap of 1e-3, 3000 rows of letter.raw: times faster than kernlab's "
    "spoc-svc",
    1,
    10,
    "higher",
    "x",
)


@dataclass(frozen=True)
class PaperFigures:
    """What Bordes, Bottou, Gallinari and Weston (2007) report: tables 2 and 3."""

    error: float | None = None  # percent
    dual: float | None = None
    kernel_values: float | None = None  # millions
    arg_max: float | None = None  # thousands


# Context, but for those that targets above name. The duals of MCSVM and SVMstruct on LETTER are
# above the optimum, which no dual can be; those on USPS are of a file that was prepared otherwise.
# Of perceptrons and MIRA the paper draws errors and kernel values (figure 1), and so it does for
# subsets of the operations (figure 2): there are no numbers to copy.
LARANK_PAPER = {
    "letter.raw": {
        "larank_1": PaperFigures(2.80, 5226, 55, 190),
        "larank_gap": PaperFigures(2.40, 5462, 156, 550),
        "full_gradient": PaperFigures(2.42, 5548, 241),
        "cutting_plane": PaperFigures(2.40, 5495, 2083, 141),
        "perceptron_1": PaperFigures(arg_max=16),
        "perceptron_10": PaperFigures(arg_max=160),
    },
    "usps": {
        "larank_1": PaperFigures(4.25, 503, 9.4, 25),
        "larank_gap": PaperFigures(4.38, 518, 13.7, 86),
        "full_gradient": PaperFigures(4.24, 537, 51.2),
        "cutting_plane": PaperFigures(4.38, 528, 1063.3, 56),
        "perceptron_1": PaperFigures(arg_max=7),
        "perceptron_10": PaperFigures(arg_max=73),
    },
    "mnist": {"larank_1": PaperFigures(1.41, 3608, 399, 200)},
}

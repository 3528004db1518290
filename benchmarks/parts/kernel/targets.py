"""What is promised of full kernel machines, and the figures of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.targets import Target

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

"""What is promised of prediction and of exports."""

from __future__ import annotations

from benchmarks.targets import Target

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

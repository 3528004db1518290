"""What is promised of sparse machines of label sets: their Hamming loss, in percent."""

from __future__ import annotations

from benchmarks.targets import Target


def _hamming(dataset: str, n_vectors: int, how: str, bar: float, stretch: float) -> Target:
    what = f"{dataset}, {n_vectors} {how} vectors, Hamming loss"
    return Target(what, bar, stretch, "lower", " %")


# By data set, and whether vectors are learned: how many of them, and the promise.
TARGETS = {
    ("scene", False): (44, _hamming("scene", 44, "chosen", 9.5, 9.1)),
    ("scene", True): (20, _hamming("scene", 20, "learned", 9.2, 8.8)),
    ("yeast", False): (198, _hamming("yeast", 198, "chosen", 19.2, 18.9)),
    ("yeast", True): (50, _hamming("yeast", 50, "learned", 19.1, 18.8)),
}

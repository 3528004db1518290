"""What is tuned for which part: data sets, machines and sizes."""

from __future__ import annotations

from benchmarks.data import Dataset, load
from benchmarks.models import SELECTED
from benchmarks.targets import FEWER_VECTORS, LARGER_SIZES, LEARNED_SIZES, TUNED_SIZES

# Those that stand beside a learned basis of as many vectors, itself first.
BESIDE_LEARNED = ("learned", "sparse", "nystroem", "mlp", "rbf_network")
# Where the full machine has no parameters that are known to be good for it.
SVC_TUNED = ("pendigits", "segment.scale", "shuttle.scale")
_SINGLE_PRECISION = ("mnist",)
_MOST_ROWS = {"mnist": 12_000, "shuttle.scale": 12_000}  # that are tuned on


def selected(name: str) -> dict[str, list[int]]:
    """Return the sizes of each machine for the parts about a greedily chosen basis.

    The best parameters of Nystroem change with its size, and the question how many vectors it needs
    is about larger sizes than ours.
    """
    size = TUNED_SIZES[name]
    larger = [4 * size] if name in FEWER_VECTORS else []
    return {model: [size, *(larger if model == "nystroem" else [])] for model in SELECTED}


def learned(name: str) -> dict[str, list[int]]:
    """Return the sizes of each machine for the part about a learned basis."""
    sizes = LEARNED_SIZES[name]
    plan = {
        model: sorted({*sizes, *LARGER_SIZES.get((model, name), ())}) for model in BESIDE_LEARNED
    }
    plan["linear"] = [sizes[0]]
    if name in SVC_TUNED:
        plan["svc"] = [sizes[0]]
    return plan


def rows_of(name: str) -> Dataset:
    return load(name, "float32" if name in _SINGLE_PRECISION else "float64")


def rows_to_tune_on(name: str) -> Dataset:
    return rows_of(name).with_rows(_MOST_ROWS.get(name), None)

"""What is tuned: data sets, machines and sizes. The results are in tuned.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from benchmarks.data import Dataset, load
from benchmarks.models import MODELS, SELECTED, Model


@dataclass(frozen=True)
class Plan:
    """The data sets of a plan, and for each of them the sizes of every machine."""

    datasets: tuple[str, ...]
    sizes_of: Callable[[str], dict[str, list[int]]]
    models: Mapping[str, Model] = field(default_factory=lambda: MODELS)


# Vectors of a greedily chosen basis.
SELECTED_SIZES = {"letter.scale": 180, "usps": 83, "satimage.scale": 68}

# Its test rows are a million: what prediction is timed on. Accuracy there is shown, not promised.
POKER, POKER_VECTORS = "poker", 100

TUNED_SIZES = SELECTED_SIZES | {POKER: POKER_VECTORS}

# Sets on which Nystroem gets more components until it is as accurate as we are.
GROWING_NYSTROEM = ("letter.scale", "satimage.scale")

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

# Those that stand beside a learned basis of as many vectors, itself first.
BESIDE_LEARNED = ("learned", "sparse", "nystroem", "mlp", "rbf_network")
# Where the full machine has no parameters that are known to be good for it.
SVC_TUNED = ("pendigits", "segment.scale", "shuttle.scale")
_SINGLE_PRECISION = ("mnist",)
_MOST_ROWS = {"mnist": 12_000, "shuttle.scale": 12_000}  # that are tuned on


def _selected(name: str) -> dict[str, list[int]]:
    """Return the sizes of each machine for the parts about a greedily chosen basis.

    The best parameters of Nystroem change with its size, and the question how many vectors it needs
    is about larger sizes than ours.
    """
    size = TUNED_SIZES[name]
    larger = [4 * size] if name in GROWING_NYSTROEM else []
    return {model: [size, *(larger if model == "nystroem" else [])] for model in SELECTED}


def _learned(name: str) -> dict[str, list[int]]:
    """Return the sizes of each machine for the parts about a learned basis."""
    sizes = LEARNED_SIZES[name]
    plan = {
        model: sorted({*sizes, *LARGER_SIZES.get((model, name), ())}) for model in BESIDE_LEARNED
    }
    plan["linear"] = [sizes[0]]
    if name in SVC_TUNED:
        plan["svc"] = [sizes[0]]
    return plan


SELECTED_PLAN = Plan(tuple(TUNED_SIZES), _selected)
LEARNED_PLAN = Plan(tuple(LEARNED_SIZES), _learned)


def precision(name: str) -> str:
    """Return the dtype of the rows of a data set."""
    return "float32" if name in _SINGLE_PRECISION else "float64"


def rows_to_tune_on(name: str) -> Dataset:
    return load(name, precision(name)).with_rows(_MOST_ROWS.get(name), None)

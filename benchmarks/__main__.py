"""Run benchmarks and print the results as markdown; progress goes to the error stream.

python -m benchmarks                     all, with the parameters of tuned.json
python -m benchmarks prediction          a part: throughput, single rows, exports
python -m benchmarks learned             a learned basis beside the others; learned-speed: its times
python -m benchmarks kernel              full kernel machines: exact, in one pass, row by row
python -m benchmarks accuracy --tune     tunes first (on training rows only), rewrites the file
python -m benchmarks --quick             shows that everything runs, within a minute
"""

from __future__ import annotations

import argparse

from benchmarks import (
    accuracy,
    data,
    gradient,
    kernel_machines,
    learned,
    learned_speed,
    memory,
    plans,
    prediction,
    speed,
)
from benchmarks.models import MODELS
from benchmarks.report import Results, render
from benchmarks.settings import QUICK, Settings
from benchmarks.targets import KERNEL_PARAMETERS, LEARNED_SIZES, TUNED_SIZES
from benchmarks.trials import say
from benchmarks.tuning import tune_all

NAMES = list(dict.fromkeys([*TUNED_SIZES, *LEARNED_SIZES, *KERNEL_PARAMETERS]))


def main() -> None:
    options = _options()
    settings = QUICK if options.quick else Settings()
    if data.is_available():
        wanted = options.dataset or NAMES
    else:
        say(data.HOW_TO_SET)
        wanted = []
    if options.tune:
        _tune(options.part, wanted, options.model or list(MODELS))
    results = Results()
    if options.part in ("accuracy", "all"):
        results.accuracy = accuracy.measure(settings, wanted)
    if options.part in ("speed", "all"):
        results.fit_times = speed.against_svc(settings, wanted)
        results.gradient = gradient.measure(settings, wanted)
        results.doubling = speed.as_rows_double(settings)
    if options.part in ("memory", "all"):
        results.memory = memory.measure(settings, has_data=bool(wanted))
    if options.part in ("prediction", "all"):
        results.prediction = prediction.measure(settings, wanted)
    if options.part in ("learned-speed", "all"):
        results.learned_speed = learned_speed.measure(settings, wanted)
    if options.part in ("learned", "all"):
        results.learned = learned.measure(settings, wanted)
    if options.part in ("kernel", "all"):
        results.kernel = kernel_machines.measure(settings, wanted)
    print(render(results, settings))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks.")
    parts = (
        *("accuracy", "speed", "memory", "prediction", "learned", "learned-speed", "kernel"),
        "all",
    )
    parser.add_argument("part", nargs="?", choices=parts, default="all")
    parser.add_argument("--tune", action="store_true", help="tune first and rewrite tuned.json")
    parser.add_argument(
        "--model", action="append", choices=list(MODELS), help="with --tune: tune only this one"
    )
    parser.add_argument("--dataset", action="append", choices=NAMES, help="use only this data set")
    parser.add_argument("--quick", action="store_true", help="few rows, one seed: a trial run")
    options = parser.parse_args()
    if options.quick and options.tune:
        parser.error("--quick uses few rows, and what they would tune is of no use to a full run")
    if options.tune and options.part == "kernel":
        parser.error("the part kernel has the parameters of its paper: there is nothing to tune")
    if options.model and not options.tune:
        parser.error("--model says what --tune tunes")
    return options


def _tune(part: str, wanted: list[str], models: list[str]) -> None:
    is_learned = part.startswith("learned")
    for plan, names, belongs in (
        (plans.selected, TUNED_SIZES, not is_learned),
        (plans.learned, LEARNED_SIZES, is_learned or part == "all"),
    ):
        for name in wanted:
            if belongs and name in names:
                sizes_of = {model: sizes for model, sizes in plan(name).items() if model in models}
                tune_all(plans.rows_to_tune_on(name), sizes_of)


if __name__ == "__main__":
    main()

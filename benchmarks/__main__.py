"""Run benchmarks and print the results as markdown; progress goes to the error stream.

python -m benchmarks                     all parts, with the parameters of tuned.json
python -m benchmarks prediction          one of them; --help lists them
python -m benchmarks accuracy --tune     tunes first (on training rows only), rewrites the file
python -m benchmarks --quick             shows that everything runs, within minutes
"""

from __future__ import annotations

import argparse

from benchmarks import data, plans
from benchmarks.part import Part, about, find_parts
from benchmarks.report import render
from benchmarks.settings import QUICK, Settings
from benchmarks.trials import say
from benchmarks.tuning import tune_all


def main() -> None:
    parts = find_parts()
    options = _options(parts)
    chosen = list(parts.values()) if options.part == "all" else [parts[options.part]]
    settings = QUICK if options.quick else Settings()
    wanted = options.dataset or _datasets(parts)
    if not data.is_available():
        say(data.HOW_TO_SET)
        if not options.quick:
            wanted = []
    if options.tune:
        _tune(chosen, wanted, options.model)
    results = [(part, part.measure(settings, wanted)) for part in chosen]
    # Without data sets a part may have nothing to measure.
    print(render([(part, found) for part, found in results if found], settings))


def _datasets(parts: dict[str, Part]) -> list[str]:
    """Return the names of all data sets, each once."""
    return list(dict.fromkeys(name for part in parts.values() for name in part.datasets))


def _options(parts: dict[str, Part]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Run benchmarks.",
        epilog="parts:\n" + "\n".join(f"  {name:<14} {about(name)}" for name in parts),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", nargs="?", choices=(*parts, "all"), default="all", metavar="part")
    parser.add_argument("--tune", action="store_true", help="tune first and rewrite tuned.json")
    models = dict.fromkeys(
        name for part in parts.values() if part.plan for name in part.plan.models
    )
    parser.add_argument(
        "--model", action="append", choices=list(models), help="with --tune: tune only this one"
    )
    parser.add_argument(
        "--dataset", action="append", choices=_datasets(parts), help="use only this data set"
    )
    parser.add_argument("--quick", action="store_true", help="few rows, one seed: a trial run")
    options = parser.parse_args()
    if options.quick and options.tune:
        parser.error("--quick uses few rows, and what they would tune is of no use to a full run")
    if options.tune and options.part != "all" and parts[options.part].plan is None:
        parser.error(f"the parameters of the part {options.part} are given: nothing to tune")
    if options.model and not options.tune:
        parser.error("--model says what --tune tunes")
    return options


def _tune(parts: list[Part], wanted: list[str], models: list[str] | None) -> None:
    """Tune what the plans of some parts say; a plan that several parts share, once."""
    distinct = {id(part.plan): part.plan for part in parts if part.plan is not None}
    for plan in distinct.values():
        for name in plan.datasets:
            if name in wanted:
                sizes_of = plan.sizes_of(name)
                chosen = {
                    model: sizes_of[model] for model in sizes_of if model in (models or sizes_of)
                }
                tune_all(plans.rows_to_tune_on(name), chosen, plan.models)


if __name__ == "__main__":
    main()

"""Full machines of label sets as rows of the table of targets, and as tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.full_labels.measure import Found
from benchmarks.parts.full_labels.targets import DOUBLING, FITS, PREDICTIONS


def target_rows(found: Found) -> Iterator[Row]:
    for each in found.beside:
        ratio = each.fit_svc / each.fit
        yield FITS[each.dataset], ratio, f"{ratio:.1f}x"
        if each.dataset in PREDICTIONS:
            ratio = each.predict_svc / each.predict
            yield PREDICTIONS[each.dataset], ratio, f"{ratio:.0f}x"
    for related in found.doubling:
        growth = found.growth(related)
        yield DOUBLING[related], growth, f"{growth:.2f}x"


def sections(found: Found) -> list[str]:
    titles = ["data", "rows", "labels", "fit, s", "SVC, s", "predict, s", "SVC, s"]
    titles += ["gap, share", "Hamming, %", "SVC, %", "constant, %"]
    rows = [
        [each.dataset, str(each.n_rows), str(each.n_labels)]
        + [f"{t:.3g}" for t in (each.fit, each.fit_svc, each.predict, each.predict_svc)]
        + [f"{each.gap:.1e}"]
        + [f"{h:.2f}" for h in (each.hamming, each.hamming_svc, each.hamming_constant)]
        for each in found.beside
    ]
    text = (
        "## Full machines of label sets\n\nBeside `OneVsRestClassifier(SVC(C=2 * C))`, the same "
        "kernel, kernel values counted. The constant answer knows the labels of most test rows, "
        "and no row.\n\n"
    )
    parts = [text + table(titles, rows)]
    if found.doubling:
        counts = sorted(next(iter(found.doubling.values())))
        rows = [
            ["dense prior" if related else "unrelated"] + [f"{seconds[n]:.3g}" for n in counts]
            for related, seconds in found.doubling.items()
        ]
        parts.append("Seconds as labels double:\n\n" + table(["labels", *map(str, counts)], rows))
    return parts

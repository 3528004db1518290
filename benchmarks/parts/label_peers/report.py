"""Machines of label sets and their peers: rows of the table of targets, and tables of their own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.markdown import table
from benchmarks.part import Row
from benchmarks.parts.label_peers.measure import FAST_SET, Found
from benchmarks.parts.label_peers.targets import LEAD, LOSS, SPEED


def target_rows(found: Found) -> Iterator[Row]:
    datasets = list(dict.fromkeys(each.dataset for each in found.judged))
    for ours in ("ours", "ours, tuned thresholds"):
        leads = {name: found.micro(name, ours) - found.micro(name, "MLP") for name in datasets}
        words = ", ".join(f"{name} {lead:+.2f}" for name, lead in leads.items())
        mean = float(np.mean(list(leads.values())))
        yield LEAD, mean, f"{mean:+.2f} ({ours}: {words})"
    if found.timed is not None:
        ratio = found.timed.svc_seconds / found.timed.seconds
        row = 1e6 / found.timed.n_rows
        words = f"{ratio:.0f}x ({row * found.timed.seconds:.2f} µs a row)"
        yield SPEED, ratio, words
        lead = found.timed.loss - found.timed.svc_loss
        yield LOSS, lead, f"{found.timed.loss:.2f} against {found.timed.svc_loss:.2f} %"


def sections(found: Found) -> list[str]:
    rows = [
        [each.dataset, each.name]
        + [
            f"{np.mean(values):.2f} ({', '.join(f'{value:.2f}' for value in values)})"
            for values in (each.micro, each.macro, each.hamming)
        ]
        for each in found.judged
    ]
    titles = ["data", "machine", "micro F1", "macro F1", "Hamming, %"]
    parts = ["## Label sets and peers\n\nMean over seeds, and each.\n\n" + table(titles, rows)]
    if found.timed is not None:
        timed = found.timed
        parts.append(
            f"On {FAST_SET} the constant answer by test rows has a Hamming loss of "
            f"{timed.constant_loss:.2f} %."
        )
    return parts

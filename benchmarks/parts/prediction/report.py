"""Prediction as rows of the table of targets, and as tables of its own."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.markdown import count, table
from benchmarks.parts.prediction.agreement import KERNELS, Agreement
from benchmarks.parts.prediction.exports import CSize
from benchmarks.parts.prediction.latency import BatchTimes, Latency
from benchmarks.parts.prediction.measure import Prediction
from benchmarks.parts.prediction.poker import PokerResult
from benchmarks.parts.prediction.targets import (
    AGREEMENT,
    C_COMPILE,
    C_SOURCE,
    CLEAR_LABELS,
    NUMPY_RATIO,
    ONNX_RATIO,
    POKER_PAPER_SECONDS,
    SINGLE_ROW,
    SVC_RATIO,
)
from benchmarks.parts.prediction.throughput import Throughput
from benchmarks.scores import Score
from benchmarks.targets import Target


def target_rows(found: Prediction) -> Iterator[tuple[Target, float, str]]:
    """Yield target, measured value, and the words for it."""
    by_width: dict[int, list[Throughput]] = {}
    for each in found.throughput:
        by_width.setdefault(each.n_features, []).append(each)
    for n_features, runs in by_width.items():
        one, *more = runs
        beside = "".join(f"; {each.n_threads} threads: {each.ratio('plain'):.2f}x" for each in more)
        text = (
            f"{one.ratio('plain'):.2f}x ({one.where}, {one.n_rows} rows; norms in the product: "
            f"{one.ratio('folded'):.2f}x{beside})"
        )
        yield NUMPY_RATIO[n_features], one.ratio("plain"), text
    if found.against_svc is not None:
        times = found.against_svc
        ratio = times.svc / times.headline
        text = f"{ratio:.0f}x ({times.headline:.2f} against {times.svc:.0f} µs a row)"
        yield SVC_RATIO, ratio, text
    yield from _latency_rows(found.latency)
    size = found.c_sizes[0]
    yield C_SOURCE, size.source, f"{size.source:.1f} kB ({size.data}, {size.numbers})"
    if found.compile_time is not None:
        took = found.compile_time
        text = (
            f"{took.seconds:.2f} s (export {took.export_seconds:.2f}, "
            f"compiler {took.compile_seconds:.2f}; {took.n_vectors} vectors, {took.source:.0f} kB)"
        )
        yield C_COMPILE, took.seconds, text
    worst = found.agreement.worst
    export, kernel = max(worst, key=worst.__getitem__)
    text = (
        f"{worst[export, kernel]:.1e} ({export}, {kernel}; "
        f"{count(found.agreement.n_machines, 'machine')}, {found.agreement.n_rows} rows each)"
    )
    yield AGREEMENT, worst[export, kernel], text
    others, ties = found.agreement.other_labels, found.agreement.tied_labels
    yield CLEAR_LABELS, others, f"{others} (and {ties} where they do not)"


def _latency_rows(latency: Latency) -> Iterator[tuple[Target, float, str]]:
    ours = latency.single["ours"]
    text = f"{ours.one_by_one:.2f} µs ({ours.in_a_loop:.2f} in a loop), {latency.where}"
    yield SINGLE_ROW, ours.one_by_one, text
    if "onnx" not in latency.single:
        return
    theirs, bound = (latency.single[name].one_by_one for name in ("onnx", "onnx_bound"))
    ratio = theirs / ours.one_by_one
    text = f"{ratio:.2f}x ({theirs:.2f} against {ours.one_by_one:.2f} µs; bound {bound:.2f} µs)"
    yield ONNX_RATIO["one"], ratio, text
    theirs, bound = (latency.batch[name] for name in ("onnx", "onnx_bound"))
    ratio = theirs / latency.batch["ours"]
    text = (
        f"{ratio:.2f}x ({theirs / 1e3:.2f} against {latency.batch['ours'] / 1e3:.2f} ms; "
        f"bound {bound / 1e3:.2f} ms; {latency.n_batch} rows)"
    )
    yield ONNX_RATIO["many"], ratio, text


def sections(found: Prediction) -> list[str]:
    parts = [_throughput(found.throughput)]
    if found.against_svc is not None:
        parts.append(_against_svc(found.against_svc))
    parts += [_latency(found.latency), _c_sizes(found.c_sizes), _agreement(found.agreement)]
    if found.poker is not None:
        parts.append(_poker(found.poker, found.throughput))
    if found.left_out:
        parts.append("Left out: " + "; ".join(found.left_out) + ".")
    return parts


def _throughput(runs: list[Throughput]) -> str:
    rows = []
    for run in runs:
        plain, folded = run.numpy["plain"], run.numpy["folded"]
        rows.append(
            [
                f"{run.where}, {run.n_rows} x {run.n_features}",
                run.n_threads,
                f"{run.ours:.4g} ({run.precision})",
                f"{plain[1]:.4g} ({plain[0]})",
                f"{run.ratio('plain'):.2f}",
                f"{folded[1]:.4g} ({folded[0]})",
                f"{run.ratio('folded'):.2f}",
                run.other_labels,
            ]
        )
    head = [
        "rows",
        "threads",
        "ours, s",
        "NumPy, s",
        "ratio",
        "NumPy, norms in the product, s",
        "ratio",
        "other labels",
    ]
    return (
        "## Throughput against chunked NumPy + BLAS\n\n"
        "Labels of float32 rows, median of runs that take turns; of NumPy the best chunk size, and "
        "of threads in BLAS or in Python the better. The targets are about the first form.\n\n"
        + table(head, rows)
    )


def _against_svc(times: BatchTimes) -> str:
    rows = [
        [name, times.n_vectors, f"{taken:.2f}", f"{times.svc / taken:.0f}"]
        for name, taken in times.ours.items()
    ]
    rows.append(["SVC.predict, float64 rows", times.n_support, f"{times.svc:.1f}", 1])
    return f"## Prediction of letter.scale, {times.n_rows} rows at once, one thread\n\n" + table(
        ["machine", "vectors", "µs a row", "times faster than SVC"], rows
    )


def _latency(latency: Latency) -> str:
    ours = latency.single["ours"].one_by_one
    rows = [
        [
            times.title,
            f"{times.one_by_one:.2f}",
            f"{times.in_a_loop:.2f}",
            f"{times.one_by_one / ours:.1f}",
        ]
        for times in latency.single.values()
    ]
    text = (
        f"## One row at a time\n\n{latency.where}: {latency.shape}, computed in "
        f"{latency.precision}; float32 rows, one thread.\n\n"
        + table(["call", "median µs", "µs in a loop", "times predict_one"], rows)
    )
    if latency.other_labels is not None:
        others = count(latency.other_labels, "other label")
        text += f"\n\nOf {latency.n_batch} rows onnxruntime gives {others}."
    return text


def _c_sizes(sizes: list[CSize]) -> str:
    rows = []
    for size in sizes:
        loss = "", ""
        if size.loss is not None:
            changed = 100 * (size.loss.labels_changed or 0.0)
            loss = f"{size.loss.score_difference:.1e}", f"{changed:.2f} %"
        rows.append([size.data, size.numbers, f"{size.source:.1f}", f"{size.tables:.1f}", *loss])
    head = ["data", "numbers", "source kB", "tables kB", "score difference", "labels changed"]
    return "## C files of 60 vectors x 64 features x 10 classes\n\n" + table(head, rows)


def _agreement(found: Agreement) -> str:
    exports = list(dict.fromkeys(export for export, _ in found.worst))
    kernels = [*KERNELS, *sorted({kernel for _, kernel in found.worst} - set(KERNELS))]
    rows = [
        [
            export,
            *(
                f"{found.worst[export, kernel]:.1e}" if (export, kernel) in found.worst else ""
                for kernel in kernels
            ),
        ]
        for export in exports
    ]
    return (
        "## Agreement of exports with Python\n\n"
        "Worst difference of a score from decision_function in double precision, relative to the "
        f"largest score; two and ten classes; {' and '.join(found.data)}.\n\n"
        + table(["export", *kernels], rows)
    )


def _poker(poker: PokerResult, throughput: list[Throughput]) -> str:
    rows = [_accuracy_row(score) for score in poker.scores]
    rows.append(["the largest class, always", "", f"{poker.constant:.2f}", 1])
    times = [run for run in throughput if run.where == poker.machine.where]
    seconds = ", ".join(f"{run.ours:.3f} s with {count(run.n_threads, 'thread')}" for run in times)
    chosen = ", ".join(f"{name}={value:.4g}" for name, value in poker.tuned.chosen.items())
    return (
        "## Poker\n\n"
        + table(["machine", "vectors or units", "test accuracy %", "runs"], rows)
        + f"\n\nOurs has {chosen}, judged by {poker.tuned.judged_by} "
        f"({poker.tuned.validation:.2f} % there). It predicts the {len(poker.machine.X)} test rows "
        f"in {seconds}. Ganu et al. (2013, section 5.1.2) took {POKER_PAPER_SECONDS} s for the "
        "million with 100 vectors, on their own computer."
    )


def _accuracy_row(score: Score) -> list[object]:
    return [score.title, "" if score.size is None else score.size, score, len(score.trials)]

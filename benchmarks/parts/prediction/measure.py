"""All that is measured of prediction, put together; what could not be measured is named."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.parts.prediction import agreement, exports, latency, poker, throughput
from benchmarks.parts.prediction.agreement import Agreement
from benchmarks.parts.prediction.exports import CompileTime, CSize
from benchmarks.parts.prediction.latency import LETTER, BatchTimes, Latency
from benchmarks.parts.prediction.poker import PokerResult
from benchmarks.parts.prediction.throughput import Throughput
from benchmarks.plans import POKER
from benchmarks.settings import Settings


@dataclass
class Prediction:
    throughput: list[Throughput]
    latency: Latency
    c_sizes: list[CSize]
    agreement: Agreement
    poker: PokerResult | None = None
    against_svc: BatchTimes | None = None
    compile_time: CompileTime | None = None
    left_out: list[str] = field(default_factory=list)


def measure(settings: Settings, wanted: list[str]) -> Prediction:
    left_out = []
    poker_result = None
    if POKER in wanted:
        poker_result = poker.measure(settings)
    else:
        left_out.append(f"{POKER} (rows of 10 features are synthetic instead)")
    letters = latency.Letters(settings, has_data=LETTER in wanted)
    against_svc = None
    if LETTER in wanted:
        against_svc = latency.against_svc(letters, settings)
    else:
        left_out.append(f"{LETTER} against SVC (single rows are synthetic instead)")
    if not latency.has_onnxruntime:
        left_out.append("onnxruntime, which is not installed (or onnx is not)")
    compile_time = None
    if exports.COMPILER:
        compile_time = exports.compile_time(settings)
    else:
        left_out.append("compiled C, for want of cc or gcc")
    return Prediction(
        throughput.measure(settings, poker_result and poker_result.machine),
        latency.measure(letters, settings),
        exports.sizes(),
        agreement.measure(settings, has_letter=LETTER in wanted),
        poker_result,
        against_svc,
        compile_time,
        left_out,
    )

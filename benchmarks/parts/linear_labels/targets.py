"""What is promised of linear machines of label sets."""

from __future__ import annotations

from benchmarks.targets import Target

AGAINST_ONE_A_LABEL = {
    name: Target(
        f"{name}: time of LinearMultiLabelClassifier / OneVsRestClassifier(LinearSVC), to an "
        "objective within 1e-3",
        1.0,
        0.4,
        "lower",
        "x",
    )
    for name in ("rcv1subset1", "tmc2007_500", "delicious")
}
#: Whose labels a prior relates.
WITH_PRIOR = "tmc2007_500"
OF_A_PRIOR = Target(f"{WITH_PRIOR}: time with a dense prior / without", 5.0, 2.0, "lower", "x")
OF_MEMORY = Target("synthetic, 47,000 features, 103 labels: memory", 8.0, None, "lower", " GB")
OF_TIME = Target("synthetic, 800,000 rows: minutes", 20.0, 6.0, "lower", " min")

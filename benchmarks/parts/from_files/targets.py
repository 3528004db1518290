"""What is promised to those who come with a file."""

from __future__ import annotations

from benchmarks.targets import Target

READING = Target("predict of a CSV of 1 GB: time / that of its reader alone", 1.2, 1.05, "lower")
PLAIN = Target("the same / pyarrow.csv.open_csv as it comes", 1.2, 1.05, "lower")
MEMORY = Target("predict of a CSV of 1 GB: peak memory", 500.0, None, "lower", " MB")
FOLDED = Target(
    "predict_one of a pipeline of StandardScaler / of the bare machine", 1.5, None, "lower"
)
PAGE = Target("report of digits: size of the page", 3000.0, 1000.0, "lower", " kB")
WASM = Target("WebAssembly, 60 vectors of 64 features", 50.0, None, "lower", " kB")
IMPORT = Target(
    "from widemargin import SparseKernelClassifier / import sklearn.svm", 1.3, None, "lower"
)

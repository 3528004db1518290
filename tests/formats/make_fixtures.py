"""Make the model files of the current format that later versions must read for ever.

Run as ``python tests/formats/make_fixtures.py`` when the format gets a new version, in a folder of
its own; files of versions before it are never made again. With names of machines, only their files
are made, beside those of the version that are there.
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelMultiLabelClassifier,
    KernelPerceptron,
    LearnedBasis,
    LinearMultiLabelClassifier,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelMultiLabelClassifier,
    priors,
)
from widemargin.kernels import Polynomial
from widemargin.losses import CrammerSinger
from widemargin.model_files import FORMAT, save
from widemargin.solvers.duals.larank import LaRank

FOLDER = Path(__file__).parent / "fixtures"


def rows(n_rows=40, n_features=3, dtype=np.float64):
    rng = np.random.RandomState(5)
    y = np.arange(n_rows) % 3
    return (rng.randn(3, n_features)[y] + 0.5 * rng.randn(n_rows, n_features)).astype(dtype), y


def estimators():
    """Yield name, fitted estimator and rows to predict."""
    import pandas as pd

    X, y = rows()
    yield "plain", SparseKernelClassifier(5, random_state=0).fit(X, y), X[:8]
    two = np.array(["no", "yes"])[(y > 0).astype(int)]
    single = rows(dtype=np.float32)[0]
    sparse = sp.csr_matrix(single * (single > 0))
    logistic = SparseKernelClassifier(4, loss="logistic", kernel="laplacian", random_state=0)
    yield "two_texts_csr_float32", logistic.fit(sparse, two), single[:8]
    named = pd.DataFrame(X, columns=["length", "width", "größe"])
    each = SparseKernelClassifier(
        3, basis="per_class", kernel=Polynomial(0.5, degree=2, coef0=1.0), random_state=1
    )
    yield "per_class_named", each.fit(named, np.array(["a", "b", "c"], dtype=object)[y]), X[:8]
    matrix = SparseKernelClassifier(
        np.int64(4),
        kernel="precomputed",
        loss=CrammerSinger(smoothing=0.2),
        class_weight={0: 1.0, 1: 2.0, 2: 0.5},
        random_state=np.random.RandomState(7),
    )
    yield "precomputed", matrix.fit(X @ X.T, y), (X @ X.T)[:8]
    linear = SparseKernelClassifier(3, kernel="linear", tol=np.float32(0.0), random_state=0)
    yield "linear_booleans", linear.fit(X, y > 0), X[:8]
    # Kinds that the first version had no files of.
    solver = LaRank(tau=0.05, operations=("new", "old"))
    full = KernelClassifier(C=3.0, solver=solver, warm_start=True, random_state=0)
    yield "full_by_larank", full.fit(X, y), X[:8]
    stream = KernelPerceptron(budget=6, random_state=0, class_weight={0: 1.0, 1: 2.0, 2: 1.0})
    yield "perceptron_stream", stream.partial_fit(X, y), X[:8]
    mira = KernelMIRA(kernel="poly", coef0=1.0, fit_intercept=False, random_state=0)
    yield "mira_csr_float32", mira.fit(sparse, two), single[:8]
    learned = SparseKernelClassifier(4, basis=LearnedBasis(metric="full"), random_state=0)
    yield "learned_full_metric", learned.fit(X, y), X[:8]
    linear = SparseKernelClassifier(2, basis=LearnedBasis(linear_part=True), random_state=0)
    yield "learned_linear_part", linear.fit(X, y), X[:8]
    search = SparseKernelClassifierCV([2, 3], Cs=[1.0, 10.0], cv=2, random_state=0)
    yield "search", search.fit(X, y), X[:8]
    sets = pd.DataFrame(np.eye(3, dtype=int)[y] | np.eye(3, dtype=int)[y // 2], columns=list("zxy"))
    prior = priors.from_labels(sets)
    labels = SparseKernelMultiLabelClassifier(
        4, prior=prior, threshold=[0.1, 0.0, -0.2], class_weight={"x": 2.0}, random_state=0
    )
    yield "labels_with_prior", labels.fit(X, sets), X[:8]
    full = KernelMultiLabelClassifier(C=0.5, prior=prior, random_state=0)
    yield "full_labels", full.fit(X, sets), X[:8]
    linear = LinearMultiLabelClassifier(C=0.5, threshold=0.1, random_state=0)
    yield "linear_labels", linear.fit(X, sets), X[:8]
    weak = priors.from_labels(sets, shrinkage=0.8)
    correlated = KernelMultiLabelClassifier(
        prior=weak, loss="correlated_hamming", probability=True, random_state=0
    )
    yield "labels_calibrated", correlated.fit(X, sets), X[:8]
    prepare = ColumnTransformer(
        [("scaled", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1])],
        remainder=OneHotEncoder(handle_unknown="ignore"),
    )
    mixed = np.column_stack([X[:, :2], y])
    machine = SparseKernelClassifier(4, random_state=0)
    yield "pipeline", make_pipeline(prepare, machine).fit(mixed, y), mixed[:8]


def main(*wanted):
    FOLDER.mkdir(exist_ok=True)
    told = FOLDER / f"v{FORMAT}.json"
    expected = json.loads(told.read_text(encoding="utf-8")) if wanted else {}
    for name, estimator, X in estimators():
        if wanted and name not in wanted:
            continue
        file = f"v{FORMAT}_{name}.widemargin"
        save(estimator, FOLDER / file)
        expected[file] = {
            "X": np.asarray(X, dtype=float).tolist(),
            "dtype": X.dtype.name,
            "decision_function": np.asarray(estimator.decision_function(X), dtype=float).tolist(),
            "predict": estimator.predict(X).tolist(),
        }
    told.write_text(json.dumps(expected, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

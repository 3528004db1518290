"""Every step before every form of a machine: the scores are those of scikit-learn's pipeline."""

import ctypes
import functools
import itertools
import shutil
import subprocess

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import (
    RFE,
    SelectFpr,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

import widemargin
from widemargin import (
    KernelClassifier,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    SparseKernelMultiLabelClassifier,
    StochasticLinearClassifier,
)
from widemargin.export import to_c, to_onnx

pytestmark = [
    pytest.mark.every_case,
    pytest.mark.filterwarnings("ignore"),  # of fits that are stopped early
]

CLOSE = 1e-5  # relative to the largest score
N_TRAINING = 120


def as_single(X):
    """Return numbers that single precision holds, so that all forms see the same rows."""
    return np.asarray(X, dtype=np.float32).astype(np.float64)


@functools.cache
def wine():
    X, y = load_wine(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return as_single(X[order]), y[order]


@functools.cache
def with_gaps():
    X, y = wine()
    gaps = np.random.default_rng(1).random(X.shape) < 0.1
    return np.where(gaps, np.nan, X), y


@functools.cache
def table():
    """Return numbers with gaps, texts with gaps, and numbers that are categories."""
    X, y = with_gaps()
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(X[:, :5], columns=["alcohol", "acid", "ash", "label", 'odd "*/ name'])
    colours = np.array(["red", "green", "bl/ue", "größe"], dtype=object)
    frame["colour"] = colours[(y + rng.integers(0, 2, len(y))) % 4]
    size = np.array(["small", "large", None], dtype=object)[rng.integers(0, 3, len(y))]
    frame["size"] = pd.Series(size, dtype=object).where(lambda column: column.notna(), np.nan)
    frame["grade"] = rng.integers(0, 4, len(y)) * 1.5
    return frame, y


NUMBERS = {
    "standard": StandardScaler(),
    "standard_without_mean": StandardScaler(with_mean=False),
    "standard_without_scale": StandardScaler(with_std=False),
    "min_max": MinMaxScaler((-1, 2)),
    "min_max_clipped": MinMaxScaler(clip=True),
    "max_abs": MaxAbsScaler(),
    "robust": RobustScaler(),
    "robust_without_centre": RobustScaler(with_centering=False),
    "pca": PCA(4),
    "pca_whitened": make_pipeline(StandardScaler(), PCA(6, whiten=True)),
    "pca_scaled": make_pipeline(PCA(4), StandardScaler()),
    "svd": TruncatedSVD(4, random_state=0),
    "norm_l2": make_pipeline(StandardScaler(), Normalizer()),
    "norm_l1": make_pipeline(Normalizer("l1"), StandardScaler()),
    "norm_max": Normalizer("max"),
    "variance": make_pipeline(VarianceThreshold(0.5), StandardScaler()),
    "k_best": make_pipeline(StandardScaler(), SelectKBest(k=5)),
    "percentile": make_pipeline(SelectPercentile(percentile=40), StandardScaler()),
    "fpr": make_pipeline(StandardScaler(), SelectFpr(alpha=1e-20)),
    "from_model": SelectFromModel(RandomForestClassifier(5, random_state=0)),
    "rfe": make_pipeline(StandardScaler(), RFE(LogisticRegression(), n_features_to_select=4)),
    "passthrough": "passthrough",
    "identity": FunctionTransformer(),
    "union": FeatureUnion(
        [("few", make_pipeline(StandardScaler(), PCA(3))), ("all", MinMaxScaler())],
        transformer_weights={"few": 0.5},
    ),
    "nothing": Pipeline([("scaled", StandardScaler()), ("none", None)]),
}
GAPS = {
    "mean": make_pipeline(SimpleImputer(), StandardScaler()),
    "constant": SimpleImputer(strategy="constant", fill_value=-3.0),
    "marked": make_pipeline(SimpleImputer(strategy="median", add_indicator=True), MinMaxScaler()),
    "scaled_first": make_pipeline(StandardScaler(), SimpleImputer(), PCA(5)),
    "frequent": make_pipeline(StandardScaler(), SimpleImputer(strategy="most_frequent")),
}
PLAIN = ["alcohol", "acid", "ash"]
TABLES = {
    "one_hot": ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), PLAIN),
            ("texts", OneHotEncoder(handle_unknown="ignore"), ["colour", "size"]),
        ]
    ),
    "one_hot_dropped": ColumnTransformer(
        [
            ("texts", OneHotEncoder(drop="first"), ["colour", "size"]),
            ("numbers", make_pipeline(StandardScaler(), SimpleImputer(), PCA(2)), PLAIN),
        ]
    ),
    "one_hot_of_numbers": ColumnTransformer(
        [("grades", OneHotEncoder(), ["grade"]), ("none", "drop", ["colour", "size"])],
        remainder=SimpleImputer(),
    ),
    "rare": ColumnTransformer(
        [
            (
                "texts",
                OneHotEncoder(min_frequency=35, handle_unknown="infrequent_if_exist"),
                ["colour", "size", "grade"],
            ),
            ("numbers", SimpleImputer(add_indicator=True), ["ash", "label"]),
        ]
    ),
    "ordinal": ColumnTransformer(
        [
            (
                "texts",
                OrdinalEncoder(
                    handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
                ),
                ["size", "grade", "colour"],
            ),
            ("numbers", make_pipeline(SimpleImputer(), MinMaxScaler(clip=True)), PLAIN),
        ],
        transformer_weights={"texts": 0.25},
    ),
    "filled_texts": ColumnTransformer(
        [
            (
                "texts",
                make_pipeline(
                    SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
                ),
                make_column_selector(dtype_exclude="number"),
            ),
            (
                "numbers",
                make_pipeline(SimpleImputer(), Normalizer()),
                make_column_selector(dtype_include="number"),
            ),
        ]
    ),
    "filled_by_text": ColumnTransformer(
        [
            (
                "texts",
                make_pipeline(
                    SimpleImputer(strategy="constant", fill_value="none"), OrdinalEncoder()
                ),
                ["size"],
            ),
            ("again", OneHotEncoder(), ["size"]),
        ],
        remainder="drop",
    ),
}
CASES = [
    *(("numbers", name) for name in NUMBERS),
    *(("gaps", name) for name in GAPS),
    *(("table", name) for name in TABLES),
]


def rows_of(kind):
    return {"numbers": wine, "gaps": with_gaps, "table": table}[kind]()


@functools.cache
def fitted(kind, name):
    X, y = rows_of(kind)
    steps = {"numbers": NUMBERS, "gaps": GAPS, "table": TABLES}[kind]
    machine = SparseKernelClassifier(max_basis=12, C=10, random_state=0)
    return make_pipeline(steps[name], machine).fit(X[:N_TRAINING], y[:N_TRAINING])


def assert_same(scores, expected, close=CLOSE):
    assert scores.shape == expected.shape
    assert np.abs(scores - expected).max() <= close * np.abs(expected).max()


def assert_same_labels(labels, pipeline, X):
    """Require equal labels but where two scores are as good as equal."""
    scores = np.sort(pipeline.decision_function(X), axis=1)
    told_apart = scores[:, -1] - scores[:, -2] > CLOSE * np.abs(scores).max()
    assert told_apart.mean() > 0.9
    np.testing.assert_array_equal(np.asarray(labels)[told_apart], pipeline.predict(X)[told_apart])


def each_row(X):
    return [X.iloc[row].to_dict() for row in range(len(X))] if hasattr(X, "iloc") else list(X)


def run_onnx(pipeline, X, **options):
    session = onnxruntime.InferenceSession(to_onnx(pipeline, **options).SerializeToString())
    dtype = options.get("dtype", "float32")
    feed = {}
    for entry in session.get_inputs():
        if entry.name == "X":
            feed["X"] = np.asarray(X, dtype=dtype)
        elif entry.type == "tensor(string)":
            feed[entry.name] = X[[entry.name]].fillna("").to_numpy(dtype=object)
        else:
            name = entry.name.removesuffix("_column")
            feed[entry.name] = X[[name]].to_numpy(dtype=dtype)
    return session.run(["label", "scores"], feed)


def as_numbers(library, X):
    """Return a table as a C function takes it: texts as numbers of categories."""
    if not hasattr(X, "iloc"):
        return np.ascontiguousarray(X, dtype=np.float32)
    rows = np.full(X.shape, np.nan, dtype=np.float32)
    for place, name in enumerate(X):
        if X[name].dtype.kind in "if":
            rows[:, place] = X[name]
        elif hasattr(library, "machine_category"):
            library.machine_category.restype = ctypes.c_double
            texts = [text.encode() if isinstance(text, str) else None for text in X[name]]
            rows[:, place] = [library.machine_category(place, text) for text in texts]
    return rows


_numbers = itertools.count()


def run_c(pipeline, X, folder, *flags, **options):
    export = to_c(pipeline, folder / "machine.c", **options)
    library = folder / f"machine{next(_numbers)}.so"
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion"]
    command = ["gcc", "-std=c99", *strict, "-shared", "-fPIC", *flags]
    done = subprocess.run(
        [*command, str(export.path), "-o", str(library), "-lm"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(library))
    rows = as_numbers(loaded, X)
    machine = pipeline[-1]
    scores = np.empty((len(rows), machine.model_.n_outputs), dtype=np.float32)
    labels = []
    for row, out in zip(rows, scores, strict=True):
        place = ctypes.c_void_p(row.ctypes.data)
        loaded.machine_scores(place, ctypes.c_void_p(out.ctypes.data))
        labels.append(loaded.machine_predict(place))
    return machine.classes_[labels], scores


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_compiled_pipelines_have_the_scores_of_scikit_learn(kind, name):
    X, _ = rows_of(kind)
    pipeline = fitted(kind, name)
    predictor = widemargin.compile(pipeline)
    assert_same(predictor.decision_function(X), pipeline.decision_function(X))
    assert_same_labels(predictor.predict(X), pipeline, X)
    one_by_one = [predictor.predict_one(row) for row in each_row(X)]
    np.testing.assert_array_equal(one_by_one, predictor.predict(X))
    exact = widemargin.compile(pipeline, dtype="float64")
    assert_same(exact.decision_function(X), pipeline.decision_function(X), close=1e-10)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_onnx_has_the_scores_of_scikit_learn(kind, name):
    X, _ = rows_of(kind)
    pipeline = fitted(kind, name)
    labels, scores = run_onnx(pipeline, X)
    assert_same(scores, pipeline.decision_function(X))
    assert_same_labels(labels, pipeline, X)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_c_has_the_scores_of_scikit_learn(kind, name, tmp_path):
    X, _ = rows_of(kind)
    pipeline = fitted(kind, name)
    labels, scores = run_c(pipeline, X, tmp_path)
    assert_same(scores, pipeline.decision_function(X))
    assert_same_labels(labels, pipeline, X)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_saved_pipelines_come_back(kind, name, tmp_path):
    X, _ = rows_of(kind)
    pipeline = fitted(kind, name)
    widemargin.save(pipeline, tmp_path / "first")
    loaded = widemargin.load(tmp_path / "first")
    assert type(loaded) is Pipeline
    assert [each for each, _ in loaded.steps] == [each for each, _ in pipeline.steps]
    if name != "from_model":  # which holds a forest
        assert [type(step) for _, step in loaded.steps] == [type(s) for _, s in pipeline.steps]
    np.testing.assert_array_equal(loaded.decision_function(X), pipeline.decision_function(X))
    widemargin.save(loaded, tmp_path / "second")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    np.testing.assert_array_equal(
        widemargin.compile(loaded).decision_function(X),
        widemargin.compile(pipeline).decision_function(X),
    )


MACHINES = {
    "linear": StochasticLinearClassifier(max_iter=20, random_state=0),
    "poly": SparseKernelClassifier(8, kernel="poly", random_state=0),
    "sigmoid": SparseKernelClassifier(8, kernel="sigmoid", random_state=0),
    "laplacian": SparseKernelClassifier(8, kernel="laplacian", random_state=0),
    "learned": SparseKernelClassifier(
        8, basis=LearnedBasis(metric="diagonal", linear_part=True), random_state=0
    ),
    "mapped": SparseKernelClassifier(8, basis=LearnedBasis(metric="full"), random_state=0),
    "logistic": SparseKernelClassifier(8, loss="logistic", random_state=0),
    "full": KernelClassifier(random_state=0),
    "search": SparseKernelClassifierCV(
        [4], Cs=[1.0], widths=[0.1], basis="shared", cv=2, random_state=0
    ),
}


@pytest.mark.parametrize("steps", ["standard", "max_abs", "pca_whitened", "norm_l2"])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_has_its_scores(machine, steps):
    X, y = wine()
    pipeline = make_pipeline(NUMBERS[steps], MACHINES[machine]).fit(X[:N_TRAINING], y[:N_TRAINING])
    expected = pipeline.decision_function(X)
    assert_same(widemargin.compile(pipeline).decision_function(X), expected)
    assert_same(run_onnx(pipeline, X)[1], expected)
    if machine == "logistic":
        predictor = widemargin.compile(pipeline)
        np.testing.assert_allclose(predictor.predict_proba(X), pipeline.predict_proba(X), atol=1e-4)


def test_machines_of_label_sets_follow_steps(tmp_path):
    X, y = wine()
    labels = np.eye(3, dtype=int)[y] | (X[:, :1] > 13)
    machine = SparseKernelMultiLabelClassifier(10, random_state=0)
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), machine).fit(X, labels)
    predictor = widemargin.compile(pipeline)
    assert_same(predictor.decision_function(X), pipeline.decision_function(X))
    np.testing.assert_array_equal(predictor.predict(X), pipeline.predict(X))
    np.testing.assert_array_equal(predictor.predict_one(X[3]), pipeline.predict(X[3:4])[0])
    np.testing.assert_array_equal(run_onnx(pipeline, X)[0], pipeline.predict(X))
    widemargin.save(pipeline, tmp_path / "labels")
    loaded = widemargin.load(tmp_path / "labels")
    np.testing.assert_array_equal(loaded.predict(X), pipeline.predict(X))


def test_two_classes_follow_steps():
    X, y = wine()
    machine = SparseKernelClassifier(6, random_state=0)
    pipeline = make_pipeline(StandardScaler(), PCA(3), machine).fit(X, y > 0)
    assert_same(widemargin.compile(pipeline).decision_function(X), pipeline.decision_function(X))
    labels, scores = run_onnx(pipeline, X)
    assert_same(scores, pipeline.decision_function(X))
    np.testing.assert_array_equal(labels, pipeline.predict(X))


SPARSE = {
    "max_abs": MaxAbsScaler(),
    "standard": StandardScaler(with_mean=False),
    "svd": make_pipeline(TruncatedSVD(3, random_state=0), StandardScaler()),
    "norm_l1": Normalizer("l1"),
    "norm_l2": Normalizer("l2"),
    "norm_max": Normalizer("max"),
    "selected": make_pipeline(SelectKBest(k=6), MaxAbsScaler()),
    "imputed": SimpleImputer(),
}


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("name", SPARSE)
def test_sparse_rows_have_the_same_scores(name, kernel):
    X, y = wine()
    rows = np.where(np.random.default_rng(3).random(X.shape) < 0.5, 0.0, X)
    if name == "imputed":
        rows[np.random.default_rng(4).random(X.shape) < 0.1] = np.nan
    rows = sp.csr_matrix(rows)
    machine = SparseKernelClassifier(8, kernel=kernel, random_state=0)
    pipeline = make_pipeline(SPARSE[name], machine).fit(rows, y)
    predictor = widemargin.compile(pipeline)
    expected = pipeline.decision_function(rows)
    assert_same(predictor.decision_function(rows), expected)
    assert_same(predictor.decision_function(rows.tocsc()), expected)


def test_a_bare_machine_compiles_as_by_its_method():
    X, y = wine()
    machine = SparseKernelClassifier(8, random_state=0).fit(X, y)
    predictor = widemargin.compile(machine, dtype="float64", check=False)
    assert type(predictor) is widemargin.CompiledPredictor
    np.testing.assert_array_equal(
        predictor.decision_function(X), machine.compile("float64").decision_function(X)
    )
    assert type(widemargin.compile(make_pipeline(machine))) is widemargin.CompiledPredictor

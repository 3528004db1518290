"""Compiled pipelines: what they are made of, tables of all kinds, and rows that are wrong."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)

import widemargin
from widemargin import CompiledPredictor, ModelFileError, SparseKernelClassifier, load, save
from widemargin.preparation import Clip, Fill, KeptColumns, Pick, Project, Scale, prepared

NAMES = ["length", "width", "petal", "petal width"]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X.astype(np.float32).astype(float), y


def machine():
    return SparseKernelClassifier(8, C=10, random_state=0)


@pytest.fixture(scope="module")
def frame(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=NAMES)
    frame["colour"] = np.array(["red", "green", "blue"], dtype=object)[(y + (X[:, 0] > 6)) % 3]
    return frame


def encoder(**settings):
    return ColumnTransformer(
        [
            ("numbers", StandardScaler(), NAMES[:2]),
            ("texts", OneHotEncoder(**settings), ["colour"]),
        ]
    )


@pytest.mark.parametrize(
    "steps",
    [
        [StandardScaler()],
        [MinMaxScaler(), PCA(3), StandardScaler()],
        [SelectFromModel(LogisticRegression(), threshold=-np.inf), StandardScaler()],
    ],
)
def test_what_is_linear_becomes_part_of_the_machine(steps, iris):
    X, y = iris
    pipeline = make_pipeline(*steps, machine()).fit(X, y)
    found = prepared(pipeline)
    assert found.is_bare
    assert type(widemargin.compile(pipeline)) is CompiledPredictor
    assert found.model.n_basis == pipeline[-1].n_basis_
    assert not prepared(pipeline, fold=False).is_bare


def test_operations_of_columns_side_by_side_are_merged(iris):
    X, y = iris
    gaps = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    both = ColumnTransformer(
        [
            ("clipped", make_pipeline(SimpleImputer(), MinMaxScaler(clip=True)), [3, 1]),
            ("scaled", make_pipeline(StandardScaler(), SimpleImputer()), [0]),
        ]
    )
    pipeline = make_pipeline(both, machine()).fit(gaps, y)
    assert [type(each) for each in prepared(pipeline).operations] == [Fill, Clip]
    assert [column.source for column in prepared(pipeline).columns] == [3, 1, 0]
    kinds = [type(each) for each in prepared(pipeline, fold=False).operations]
    assert kinds == [Fill, Clip, Scale]


def test_operations_do_what_they_say():
    row = np.array([3.0, np.nan, -2.0])
    pick = Pick(3, np.array([0, 0, 1, 1]), ("copy", "equals", "missing", "equals"), np.full(4, 3.0))
    np.testing.assert_array_equal(pick.apply(row), [3.0, 1.0, 1.0, np.nan])
    np.testing.assert_array_equal(Fill(np.array([7.0, 8.0, np.nan])).apply(row), [3.0, 8.0, -2.0])
    wide = Project(3, np.ones(1), np.array([[2.0, 3.0]]), np.array([0.0, 1.0]), first=1)
    np.testing.assert_array_equal(wide.apply(np.array([5.0, 2.0, 6.0])), [5.0, 2.0, 4.0, 6.0])
    np.testing.assert_array_equal(
        wide.whole().apply(np.array([[5.0, 2.0, 6.0]])), [[5.0, 2.0, 4.0, 6.0]]
    )
    for operation in (pick, wide, Clip(np.zeros(3), np.ones(3)), Scale(np.ones(3), np.full(3, 2))):
        other = operation.amid(1, 2)
        rows = np.array([[9.0, 5.0, 2.0, 6.0, 7.0, 8.0]])
        inner = operation.apply(rows[:, 1:4])
        np.testing.assert_array_equal(other.apply(rows)[:, 1:-2], inner)
        np.testing.assert_array_equal(other.apply(rows)[:, [0, -2, -1]], [[9.0, 7.0, 8.0]])
        assert other.width_out == operation.width_out + 3
    with pytest.raises(ValueError, match="numbers of a Scale do not go together"):
        Scale(np.zeros(3), np.ones(2))
    with pytest.raises(ValueError, match="numbers of a Pick do not go together"):
        Pick.of(2, [2])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (QuantileTransformer(n_quantiles=5), "'odd' of the pipeline, a QuantileTransformer, is in"),
        (
            FunctionTransformer(np.log1p),
            "'odd' of .* a FunctionTransformer of 'log1p', is in the way",
        ),
        (
            ColumnTransformer([("logs", FunctionTransformer(np.log1p), [0])]),
            "'odd: logs' of .* FunctionTransformer of 'log1p'",
        ),
        (
            make_pipeline(StandardScaler(), OneHotEncoder(handle_unknown="ignore")),
            "'odd: onehotencoder' .* encodes what other steps have computed",
        ),
    ],
)
def test_steps_in_the_way_are_named(step, message, iris, tmp_path):
    X, y = iris
    pipeline = Pipeline([("scaled", MinMaxScaler()), ("odd", step), ("m", machine())]).fit(X, y)
    for use in (
        widemargin.compile,
        widemargin.export.to_onnx,
        lambda each: widemargin.export.to_c(each, tmp_path / "m.c"),
        lambda each: save(each, tmp_path / "m"),
    ):
        with pytest.raises(TypeError, match=message):
            use(pipeline)
    assert not list(tmp_path.iterdir())


def test_what_is_no_fitted_pipeline_of_ours(iris, tmp_path):
    X, y = iris
    with pytest.raises(NotFittedError):
        widemargin.compile(make_pipeline(StandardScaler(), machine()))
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match="must be an estimator of widemargin, got a LogisticR"):
        widemargin.compile(other)
    with pytest.raises(TypeError, match="pipelines of scikit-learn that end in one, not a"):
        save(other, tmp_path / "other")
    with pytest.raises(TypeError, match="must be an estimator of widemargin, got a dict"):
        widemargin.compile({})


def test_rows_that_are_wrong(iris, frame):
    X, y = iris
    imputed = widemargin.compile(make_pipeline(SimpleImputer(), Normalizer(), machine()).fit(X, y))
    with pytest.raises(ValueError, match=r"X must have shape \(n_rows, 4\), got \(150, 3\)"):
        imputed.predict(X[:, :3])
    with pytest.raises(ValueError, match="single row of 4 features"):
        imputed.predict_one(X[0, :3])
    infinite = X.copy()
    infinite[4, 2] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        imputed.predict(infinite)
    with pytest.raises(ValueError, match="infinity"):
        imputed.predict_one(infinite[4])
    scaled = widemargin.compile(make_pipeline(StandardScaler(), machine()).fit(X, y))
    with pytest.raises(ValueError, match=r"NaN or infinity.*row 4"):
        scaled.predict(infinite)
    with pytest.raises(TypeError, match="text in column 1"):
        imputed.predict(np.array([[1.0, "x", 2.0, 3.0]], dtype=object))
    encoded = widemargin.compile(make_pipeline(encoder(), machine()).fit(frame, y))
    with pytest.raises(ValueError, match="X has no column 'colour'"):
        encoded.predict(frame[NAMES])
    with pytest.raises(ValueError, match="no value for 'colour'"):
        encoded.predict_one(dict.fromkeys(NAMES, 1.0))
    with pytest.raises(ValueError, match="single row of 5 features"):
        encoded.predict_one([1.0, 2.0])
    text = frame.astype(object).copy()
    text.iloc[7, 1] = "wide"
    with pytest.raises(ValueError, match="Column 'width' holds numbers, and has 'wide' in row 7"):
        encoded.predict(text)
    with pytest.raises(ValueError, match="Column 'width' holds numbers, and the row has 'wide'"):
        encoded.predict_one(text.iloc[7].to_dict())


def test_unknown_categories_are_told_or_encoded(iris, frame):
    _, y = iris
    new = frame.copy()
    new.loc[3, "colour"] = "mauve"
    strict = make_pipeline(encoder(), machine()).fit(frame, y)
    message = "Column 'colour' has the category 'mauve', which was not in training: 'blue', 'green'"
    with pytest.raises(ValueError, match=message):
        widemargin.compile(strict).predict(new)
    with pytest.raises(ValueError, match=message):
        widemargin.compile(strict).predict_one(new.iloc[3].to_dict())
    lenient = make_pipeline(encoder(handle_unknown="ignore"), machine()).fit(frame, y)
    found = widemargin.compile(lenient, dtype="float64").decision_function(new)
    np.testing.assert_allclose(found, lenient.decision_function(new), rtol=1e-9)
    codes = ColumnTransformer(
        [("c", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=9), ["colour"])],
        remainder="passthrough",
    )
    coded = make_pipeline(codes, machine()).fit(frame, y)
    found = widemargin.compile(coded, dtype="float64").decision_function(new)
    np.testing.assert_allclose(found, coded.decision_function(new), rtol=1e-9)


def tables(frame):
    import pyarrow

    yield pyarrow.table({name: frame[name].to_numpy() for name in frame})
    yield frame.to_numpy(dtype=object)
    yield frame.to_numpy(dtype=object).tolist()
    try:
        import polars
    except ImportError:
        return
    yield polars.DataFrame({name: frame[name].tolist() for name in frame})


def test_tables_of_all_kinds_have_the_same_scores(iris, frame):
    _, y = iris
    predictor = widemargin.compile(make_pipeline(encoder(), machine()).fit(frame, y))
    expected = predictor.decision_function(frame)
    for table in tables(frame):
        np.testing.assert_array_equal(predictor.decision_function(table), expected)
    # As a ColumnTransformer does: by names, whatever the order, and whatever else there is.
    other = frame[["colour", *NAMES[::-1]]].assign(more=1)
    np.testing.assert_array_equal(predictor.decision_function(other), expected)
    nullable = frame.convert_dtypes()
    np.testing.assert_array_equal(predictor.decision_function(nullable), expected)
    categorical = frame.astype({"colour": "category"})
    np.testing.assert_array_equal(predictor.decision_function(categorical), expected)


def test_large_tables_are_read_in_pieces(iris, monkeypatch):
    X, y = iris
    monkeypatch.setattr("widemargin.compiled._PIECE_ENTRIES", 1)
    many = np.tile(X, (15, 1)).astype(np.float32)
    frame = pd.DataFrame(many, columns=NAMES)
    pipeline = make_pipeline(StandardScaler(), machine()).fit(frame[:150], y)
    predictor = widemargin.compile(pipeline)
    longest = []
    monkeypatch.setattr(
        predictor,
        "_rows",
        lambda part, rows=predictor._rows: longest.append(len(part)) or rows(part),
    )
    plain = CompiledPredictor(predictor._model, predictor._readout).decision_function(many)
    np.testing.assert_array_equal(predictor.decision_function(frame), plain)
    assert longest == [1024, 1024, 202]
    frame.iloc[2000, 1] = np.nan
    with pytest.raises(ValueError, match="row 2000"):
        predictor.predict(frame)


@pytest.mark.filterwarnings("error")
def test_tables_of_single_precision_stay_so(iris):
    pyarrow = pytest.importorskip("pyarrow")
    X, y = iris
    columns = {name: X[:, place].astype(np.float32) for place, name in enumerate(NAMES)}
    tables = [pyarrow.table(columns), pd.DataFrame(columns)]
    if "polars" in sys.modules:
        tables.append(sys.modules["polars"].DataFrame(columns))
    for table in tables:
        fitted = machine().fit(table, y)
        assert fitted.basis_.dtype == np.float32
        assert fitted.decision_function(table).dtype == np.float32
        assert fitted.feature_names_in_.tolist() == NAMES


def test_names_are_checked_where_no_column_transformer_finds_them(iris):
    X, y = iris
    frame = pd.DataFrame(X, columns=NAMES)
    for steps in ([StandardScaler()], [Normalizer()]):
        predictor = widemargin.compile(make_pipeline(*steps, machine()).fit(frame, y))
        assert predictor.feature_names_in_.tolist() == NAMES
        with pytest.raises(ValueError, match="feature names should match"):
            predictor.predict(frame[NAMES[::-1]])


def test_compiled_pipelines_can_be_pickled_and_exported(iris, frame):
    _, y = iris
    predictor = widemargin.compile(make_pipeline(encoder(), machine()).fit(frame, y))
    again = pickle.loads(pickle.dumps(predictor))
    np.testing.assert_array_equal(again.predict(frame), predictor.predict(frame))
    assert again.predict_one(frame.iloc[0]) == predictor.predict(frame)[0]
    names = [entry.name for entry in widemargin.export.to_onnx(predictor).graph.input]
    assert names == ["length", "width", "colour"]


def test_columns_that_a_selector_kept(iris):
    X, _ = iris
    kept = KeptColumns([True, False, True, False]).fit(X)
    np.testing.assert_array_equal(clone(kept).fit_transform(sp.csr_matrix(X)).toarray(), X[:, ::2])
    with pytest.raises(ValueError, match="3 columns, and support is of 4"):
        clone(kept).fit(X[:, :3])


def test_files_with_steps_that_do_not_fit_are_refused(iris, tmp_path):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), machine()).fit(X, y)
    pipeline[0].scale_ = pipeline[0].scale_[:3]
    with pytest.raises(ValueError, match="numbers of a Scale do not go together"):
        save(pipeline, tmp_path / "short")
    pipeline[0].transform = 3
    pipeline[0].fit(X)
    save(pipeline, tmp_path / "method")
    with pytest.raises(ModelFileError, match="has no attribute 'transform'"):
        load(tmp_path / "method")


HEAVY = {
    *("matplotlib", "onnx", "onnxruntime", "pandas", "polars", "pyarrow", "rich", "skl2onnx"),
    *("sklearn.cluster", "sklearn.compose", "sklearn.decomposition", "sklearn.pipeline"),
    *("widemargin.export", "widemargin.preparation"),
}


def test_importing_the_package_imports_no_heavy_ones():
    """Nothing comes but what scikit-learn brings by itself, where it finds it installed."""
    code = (
        "import sys, sklearn.svm; before = set(sys.modules); import widemargin;"
        "widemargin.SparseKernelClassifier(); print(*(set(sys.modules) - before), sep='\\n')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(found.stdout.split())
    assert "widemargin.models" in modules
    assert not modules & HEAVY

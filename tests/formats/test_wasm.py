"""WebAssembly modules under a JavaScript engine, against the machines that they were made of."""

import errno
import json
import sys

import numpy as np
import pandas as pd
import pytest
from conftest import read_digits
from contract import fitted, problem
from javascript import engine
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from widemargin import SparseKernelClassifier
from widemargin.export import to_wasm
from widemargin.kernels import RBF, ChiSquare, Laplacian, Linear, Polynomial, Sigmoid
from widemargin.models import KernelExpansion

pytest.importorskip("ziglang", reason="no compiler for WebAssembly")

LARGEST_MODULE = 50_000  # bytes of 60 vectors of 64 features


@pytest.fixture(scope="module")
def javascript():
    return engine()


def load(javascript, export):
    javascript.run(export.loader)
    content = list(export.path.read_bytes())
    assert javascript(f"(machine = await loadMachine(new Uint8Array({content})), 1)") == 1


def ask(javascript, what, rows):
    return javascript(f"{np.asarray(rows).tolist()}.map((row) => machine.{what}(row))")


def assert_same_scores(javascript, model, rows, tolerance):
    expected = model.scores(np.ascontiguousarray(rows))
    found = np.array(ask(javascript, "scores", rows))
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def test_digits_fit_in_fifty_kilobytes(tmp_path, javascript):
    X, y = read_digits()
    machine = SparseKernelClassifier(60, loss="logistic", C=10, random_state=0).fit(X, y)
    export = to_wasm(machine, tmp_path / "digits.wasm")
    assert export.n_bytes == export.path.stat().st_size <= LARGEST_MODULE
    load(javascript, export)
    rows = X[:200]
    assert_same_scores(javascript, machine.model_, rows, 1e-5)
    assert ask(javascript, "predict", rows) == machine.predict(rows).tolist()
    probabilities = ask(javascript, "probabilities", rows)
    np.testing.assert_allclose(probabilities, machine.predict_proba(rows), atol=1e-5)
    assert javascript("machine.classes") == list(range(10))


@pytest.mark.every_case
@pytest.mark.parametrize(
    "kernel",
    [RBF(0.3), Laplacian(0.2), ChiSquare(0.3), Polynomial(0.2, 3, 0.5), Sigmoid(0.3), Linear()],
    ids=lambda kernel: kernel.name,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_kernel(tmp_path, javascript, kernel, dtype):
    rng = np.random.RandomState(0)
    model = KernelExpansion(kernel, rng.rand(9, 5), rng.randn(9, 3), rng.randn(3))
    load(javascript, to_wasm(model, tmp_path / "kernel.wasm", dtype=dtype))
    rows = rng.rand(50, 5).astype(np.float32).astype(np.float64)
    assert_same_scores(javascript, model, rows, 1e-5 if dtype == "float32" else 1e-12)
    assert javascript("machine.predict([1, 1, 1, 1, 1])") is None


@pytest.mark.parametrize("name", ["SparseKernelMultiLabelClassifier", "SequentialSVM"])
def test_labels(tmp_path, javascript, name):
    machine, (X, _) = fitted(name), problem(name)
    load(javascript, to_wasm(machine, tmp_path / "labels.wasm", dtype="float64"))
    names = np.array(javascript("machine.classes"))
    answers = [names[row == 1].tolist() for row in machine.predict(X)]
    assert ask(javascript, "predict", X) == answers


def test_two_classes_with_names(tmp_path, javascript):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["Iris, bärtig", 'other\n"one"'])
    machine = SparseKernelClassifier(8, loss="logistic", C=10, random_state=0)
    machine.fit(X, names[(y > 0).astype(int)])
    load(javascript, to_wasm(machine, tmp_path / "two.wasm"))
    rows = X.to_numpy()
    assert ask(javascript, "predict", rows) == machine.predict(X).tolist()
    np.testing.assert_allclose(
        ask(javascript, "probabilities", rows), machine.predict_proba(X), atol=1e-5
    )
    assert javascript("machine.featureNames") == list(X.columns)
    assert javascript(
        "(() => { try { machine.scores([1]) } catch (e) { return e.message } })()"
    ) == ("A row has 4 values, got 1.")


def test_labels_that_numbers_of_javascript_do_not_hold(tmp_path, javascript):
    X, y = load_iris(return_X_y=True)
    machine = SparseKernelClassifier(8, C=10, random_state=0).fit(X, y + 2**60)
    load(javascript, to_wasm(machine, tmp_path / "large.wasm"))
    assert javascript("machine.classes") == [str(2**60), str(2**60 + 1), str(2**60 + 2)]


def test_a_pipeline_with_texts_and_gaps(tmp_path, javascript):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(rng.randn(90, 4), columns=list("abcd"))
    frame["colour"] = np.array(["red", "green", "blue"])[rng.randint(3, size=90)]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
        (Normalizer(), ["c", "d"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["colour"]),
    )
    pipeline = make_pipeline(columns, SparseKernelClassifier(8, random_state=0))
    pipeline.fit(frame, (frame["a"] > 0).astype(int) + (frame["colour"] == "red"))
    frame.loc[::7, "b"] = np.nan
    frame.loc[::5, "colour"] = "violet"
    load(javascript, to_wasm(pipeline, tmp_path / "pipeline.wasm"))
    rows = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    found = np.array(javascript(f"{json.dumps(rows)}.map((row) => machine.scores(row))"))
    expected = pipeline.decision_function(frame)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
    assert javascript("machine.featureNames") == list(frame.columns)


def test_quantised(tmp_path, javascript):
    machine, (X, y) = fitted("SparseKernelClassifier"), problem("SparseKernelClassifier")
    plain = to_wasm(machine, tmp_path / "plain.wasm")
    export = to_wasm(machine, tmp_path / "small.wasm", quantize="int16", X=X, y=y)
    assert plain.loss is None
    assert export.loss.score_difference < 1e-3
    load(javascript, export)
    assert_same_scores(javascript, machine.model_, X, 1e-3)


def test_refusals_leave_the_old_file(tmp_path, monkeypatch):
    machine = fitted("SparseKernelClassifier")
    with pytest.raises(ValueError, match=r"suffix of a WebAssembly file is '.wasm', got 'a.c'"):
        to_wasm(machine, tmp_path / "a.c")
    path = tmp_path / "machine.wasm"
    path.write_bytes(b"old")
    monkeypatch.setattr("widemargin.export._wasm._compiler._FLAGS", ("-target", "nowhere"))
    with pytest.raises(RuntimeError, match="ziglang could not make WebAssembly"):
        to_wasm(machine, path)
    monkeypatch.undo()

    def full_disk(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        to_wasm(machine, path)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ziglang", None)
    with pytest.raises(ImportError, match=r'pip install "widemargin\[wasm\]"'):
        to_wasm(machine, path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]

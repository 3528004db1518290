"""What must hold outside of the estimator: compiled, saved, pickled, as ONNX, as C."""

import ctypes
import pickle
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import widemargin
from hostile.checks import assert_labels_agree, assert_scores_agree, bits_of, in_range, invariant
from hostile.problems import CALLABLE
from widemargin.export import to_c, to_onnx

try:
    import onnxruntime
except ImportError:  # without the extra "onnx"
    onnxruntime = None

_DTYPES = ("float32", "float64")
_TOLERANCE = 1e-5  # of the largest score


def _has_a_file(problem):
    return not problem.has("kernel") or problem.option("kernel") != CALLABLE


def _assert_agrees(case, scores, labels):
    assert_scores_agree(scores, case.scores, _TOLERANCE, case.rounding)
    expected, held = (
        case.machine.predict(case.shaped(case.queries)),
        in_range(scores.dtype, case.scores),
    )
    labels = np.asarray(labels)[held]
    assert_labels_agree(labels, expected[held], case.scores[held], _TOLERANCE, case.rounding)


@invariant()
def a_compiled_machine_answers_the_same(case):
    for dtype in _DTYPES:
        predictor = case.machine.compile(dtype=dtype)
        rows = case.shaped(case.queries)
        scores, labels = predictor.decision_function(rows), predictor.predict(rows)
        assert scores.dtype == dtype
        _assert_agrees(case, scores, labels)
        for place in (0, len(case.queries) - 1):
            alone = predictor.predict_one(case.queries[place])
            assert alone == labels[place]


@invariant()
def a_pickle_answers_the_same(case):
    copy = pickle.loads(pickle.dumps(case.machine))
    assert bits_of(copy, case.X) == bits_of(case.machine, case.X)


@invariant(_has_a_file, share=0.5)
def a_file_answers_the_same(case):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "machine.widemargin"
        widemargin.save(case.machine, path)
        copy = widemargin.load(path, mmap=False)
        assert bits_of(copy, case.X) == bits_of(case.machine, case.X)
        np.testing.assert_array_equal(copy.predict(case.X), case.machine.predict(case.X))
        assert repr(copy.get_params()) == repr(case.machine.get_params())
        first = path.read_bytes()
        widemargin.save(copy, path)
        assert path.read_bytes() == first


@invariant(lambda problem: _has_a_file(problem) and onnxruntime is not None, share=0.25)
def onnx_answers_the_same(case):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    for dtype in _DTYPES:
        proto = to_onnx(case.machine, dtype=dtype).SerializeToString()
        session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        found = dict(zip(names, session.run(None, {"X": case.queries.astype(dtype)}), strict=True))
        _assert_agrees(case, found["scores"], found["label"])


@invariant(lambda problem: _has_a_file(problem) and shutil.which("gcc") is not None, share=0.03)
def c_answers_the_same(case):
    with tempfile.TemporaryDirectory() as folder:
        for dtype in _DTYPES:
            path = Path(folder) / f"machine_{dtype}.c"
            to_c(case.machine, path, name="machine", dtype=dtype)
            library = path.with_suffix(".so")
            command = ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", path, "-o", library, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            scores, best = _call(ctypes.CDLL(str(library)), case.queries.astype(dtype), case)
            _assert_agrees(case, scores, case.machine.classes_[best])


def _call(library, rows, case):
    """Return the scores of rows, and the numbers of their classes, by a C library."""
    library.machine_scores.restype = None
    library.machine_scores.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.machine_predict.restype = ctypes.c_int
    library.machine_predict.argtypes = [ctypes.c_void_p]
    scores, best = np.empty(case.scores.shape, dtype=rows.dtype), []
    for row, out in zip(rows, scores, strict=True):
        library.machine_scores(row.ctypes.data, out.ctypes.data)
        best.append(library.machine_predict(row.ctypes.data))
    return scores, np.array(best, dtype=int)

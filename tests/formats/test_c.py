"""C files, compiled and called, against the machines that they were made of."""

import ctypes
import itertools
import os
import shutil
import subprocess
import time

import numpy as np
import pytest
import scipy.sparse as sp
from contract import ESTIMATORS, targets, unfitted
from reference.kernels import chisquare, suited
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

from widemargin import CompiledPredictor, LearnedBasis, SparseKernelClassifier
from widemargin.export import to_c
from widemargin.export._c._layout import lay_out
from widemargin.export._c._text import Table, class_table
from widemargin.kernels import (
    RBF,
    AdaptiveRBF,
    ChiSquare,
    KernelSum,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from widemargin.models import KernelExpansion, LinearMap
from widemargin.readouts import Readout

needs_compiler = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")

STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion"]
_numbers = itertools.count()

N_BASIS, N_FEATURES = 12, 7


def adaptive(metric, seed=3, n_basis=N_BASIS, n_features=N_FEATURES):
    """Return a kernel with a width for each vector, and a metric of this form."""
    rng = np.random.RandomState(seed)
    metrics = {
        "none": None,
        "weights": rng.rand(n_features),
        "map": 0.5 * rng.randn(n_features, 3),
        "wide_map": 0.3 * rng.randn(n_features, n_features + 4),
    }
    return AdaptiveRBF(rng.uniform(0.1, 0.5, n_basis), metrics[metric])


KERNELS = {
    "rbf": RBF(0.3),
    "adaptive": adaptive("none"),
    "weighted": adaptive("weights"),
    "mapped": adaptive("map"),
    "mapped_wide": adaptive("wide_map"),
    "laplacian": Laplacian(0.2),
    "chi2": ChiSquare(0.3),
    "poly": Polynomial(0.2, degree=5, coef0=0.5),
    "sigmoid": Sigmoid(0.3, coef0=-0.5),
    "poly1": Polynomial(0.5, degree=1),
    "linear": Linear(),
    "precomputed": Precomputed(),
    "sum": KernelSum([(RBF(0.3), slice(0, 4)), (Polynomial(0.2, 3, 0.5), [6, 1, 5], 2.0)]),
    "sums": KernelSum([(ChiSquare(0.3), slice(2, 6)), (Linear(), [0, 6])]),
    "sum1": KernelSum([(Sigmoid(0.3, coef0=-0.5), [5, 2, 3])]),
}


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(folder, sources, *flags, compiler=("gcc", "-std=c99"), libraries=("-lm",)):
    """Compile to a shared library, of a name of its own, and load it."""
    library = folder / f"library{next(_numbers)}.so"
    run(
        [*compiler, *STRICT, "-O2", "-shared", "-fPIC", *flags, *sources, "-o", library, *libraries]
    )
    return ctypes.CDLL(str(library))


def call(library, function, rows, n_out, dtype, out_dtype=None):
    """Call a function for each row: of (row, result), or with an integer as its value."""
    function = getattr(library, function)
    rows = np.ascontiguousarray(rows, dtype=dtype)
    places = range(rows.ctypes.data, rows.ctypes.data + rows.nbytes, rows.strides[0])
    if n_out is None:
        function.restype, function.argtypes = ctypes.c_int, [ctypes.c_void_p]
        return np.array([function(place) for place in places])
    function.restype, function.argtypes = None, [ctypes.c_void_p, ctypes.c_void_p]
    out = np.empty((len(rows), n_out), dtype=out_dtype or dtype)
    results = range(out.ctypes.data, out.ctypes.data + out.nbytes, out.strides[0])
    for place, result in zip(places, results, strict=True):
        function(place, result)
    return out


def numbers(library, name, ctype, count):
    return list((ctype * count).in_dll(library, name))


DENSE_ONLY = [name for name, kernel in KERNELS.items() if isinstance(kernel, AdaptiveRBF)]
DENSE_ONLY += ["precomputed"]
SUMS = [name for name, kernel in KERNELS.items() if isinstance(kernel, KernelSum)]


def expansion(
    kernel,
    n_outputs,
    seed=0,
    n_basis=N_BASIS,
    n_features=N_FEATURES,
    sparse=False,
    linear_part=False,
):
    rng = np.random.RandomState(seed)
    coef, intercept = rng.randn(n_basis, n_outputs), rng.randn(n_outputs)
    if isinstance(kernel, Precomputed):
        basis = rng.permutation(40)[:n_basis].astype(np.intp)
        return KernelExpansion(kernel, basis, coef, intercept, n_features=40)
    basis = suited(kernel, rng.randn(n_basis, n_features))
    if sparse:
        basis = sp.csr_matrix(basis * (rng.rand(*basis.shape) < 0.15))
    linear = rng.randn(n_features, n_outputs) if linear_part else None
    return KernelExpansion(kernel, basis, coef, intercept, linear=linear)


def rows_for(model, n_rows=1000, seed=1):
    """Return rows that both precisions hold exactly."""
    rows = np.random.RandomState(seed).randn(n_rows, model.n_features)
    if isinstance(model, KernelExpansion):
        rows = suited(model.kernel, rows)
    return rows.astype(np.float32).astype(np.float64)


def readouts():
    names = np.array(["one", "two", "three", "four"])
    return {
        "binary": Readout(np.array([-1, 1]), "binary", "softmax"),
        "multiclass": Readout(names, "multiclass", "softmax"),
        "rest": Readout(names, "multiclass", "one_against_rest"),
        "multilabel": Readout(names, "multilabel", "one_against_rest"),
        "thresholds": Readout(
            names, "multilabel", "one_against_rest", np.array([0.5, -0.25, 0.0, 1.5])
        ),
        "silent": Readout(names, "multiclass"),
    }


READOUTS = readouts()


def tolerance(dtype):
    return 1e-5 if dtype == "float32" else 1e-12


def assert_agrees(library, name, model, readout, rows, dtype):
    """Compare scores, labels and probabilities of a C file with those of a model."""
    scores = model.scores(rows)
    largest = np.abs(scores).max()
    got = call(library, f"{name}_scores", rows, model.n_outputs, dtype)
    assert np.abs(got - scores).max() <= tolerance(dtype) * largest
    if readout is None:
        return
    clear = tolerance(dtype) * largest
    if readout.kind == "multilabel":
        labels = call(library, f"{name}_predict", rows, model.n_outputs, dtype, np.uint8)
        wrong = labels != readout.indicators(scores)
        margins = np.abs(scores - readout.label_thresholds())
        assert (margins[wrong] <= clear).all()
    elif readout.kind == "two_step":
        labels = call(library, f"{name}_predict", rows, 2, dtype, np.uint8)
        wrong = (labels != readout.indicators(scores)).any(axis=1)
        ends = np.abs(scores[:, :1] - readout.label_thresholds()).min(axis=1)
        assert (np.minimum(ends, np.abs(scores[:, 1]))[wrong] <= clear).all()
    else:
        labels = call(library, f"{name}_predict", rows, None, dtype)
        both = scores if readout.kind == "multiclass" else np.hstack([-scores / 2, scores / 2])
        wrong = labels != both.argmax(axis=1)
        top = np.sort(both, axis=1)
        assert (top[wrong, -1] - top[wrong, -2] <= 2 * clear).all()
    if readout.link is not None:
        expected = np.exp(readout.log_probabilities(scores))
        p = call(library, f"{name}_probabilities", rows, expected.shape[1], dtype)
        assert np.abs(p - expected).max() <= 2 * tolerance(dtype) * max(1, largest)


@pytest.mark.combinations(pairs=False)
@needs_compiler
@pytest.mark.parametrize("quantize", [None, "int16"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("linear_part", [False, True])
@pytest.mark.parametrize("kind", READOUTS)
def test_every_kernel_and_readout(tmp_path, dtype, quantize, sparse, linear_part, kind):
    cases, readout = [], READOUTS[kind]
    for kernel in KERNELS:
        if (sparse and kernel in DENSE_ONLY) or (linear_part and kernel in ("precomputed", *SUMS)):
            continue
        model = expansion(
            KERNELS[kernel], readout.n_outputs, sparse=sparse, linear_part=linear_part
        )
        name = f"{kernel}_{kind}"
        export = to_c(
            CompiledPredictor(model, readout),
            tmp_path / f"{name}.c",
            dtype=dtype,
            quantize=quantize,
        )
        text = export.path.read_text(encoding="ascii")
        assert export.n_bytes == len(text)
        part = "_part0" if kernel in SUMS else ""
        assert max(map(len, text.splitlines())) <= 110 + len(part)
        assert (" int16_t" in text) == (quantize is not None)
        if sparse and kernel != "linear":
            assert f"{name}{part}_starts[" in text
        stack = f"{name}_map[" in text
        assert stack == ("and the mapped row" in text) == kernel.startswith("mapped")
        beside = linear_part and kernel != "linear"
        assert beside == ("Beside the kernel" in text) == (f"{name}_linear[" in text)
        cases.append((export, model, readout))
    library = build(tmp_path, [export.path for export, _, _ in cases], "-O1")
    for export, model, readout in cases:
        if quantize is None:
            assert_agrees(library, export.name, model, readout, rows_for(model), dtype)
            continue
        kept = lay_out(model.collapsed() or model, dtype, quantize, None).model
        assert_agrees(library, export.name, kept, readout, rows_for(model), dtype)
        scores = model.scores(rows_for(model))
        difference = np.abs(kept.scores(rows_for(model)) - scores).max()
        assert difference <= 1e-2 * np.abs(scores).max()


def naive_scores(model, rows):
    """Return the scores of an expansion in an AdaptiveRBF, from the formula."""
    metric = model.kernel.metric
    gaps = rows[:, np.newaxis] - np.asarray(model.basis, dtype=np.float64)
    if metric is not None:
        gaps = gaps * metric if metric.ndim == 1 else gaps @ metric
    return np.exp(-model.kernel.widths * (gaps**2).sum(axis=2)) @ model.coef + model.intercept


@needs_compiler
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_learned_kernels_keep_to_their_formula(tmp_path, dtype, offset):
    cases = {}
    for metric in ("none", "weights", "map", "wide_map"):
        model = expansion(adaptive(metric), 3)
        basis = model.basis.astype(np.float32) + np.float32(offset)
        single = AdaptiveRBF(
            *(None if v is None else v.astype(np.float32) for v in vars(model.kernel).values())
        )
        for name, kernel in (("f64", model.kernel), ("f32", single)):
            kept = KernelExpansion(kernel, basis, model.coef, model.intercept)
            export = to_c(kept, tmp_path / f"{metric}_{name}.c", dtype=dtype)
            cases[export.name] = kept
            if offset == 0 and dtype == "float32":
                assert "double" not in export.path.read_text(encoding="ascii")
    library = build(tmp_path, [tmp_path / f"{name}.c" for name in cases])
    for name, model in cases.items():
        rows = (rows_for(model) + offset).astype(np.float32).astype(np.float64)
        expected = naive_scores(model, rows)
        got = call(library, f"{name}_scores", rows, 3, dtype)
        assert np.abs(got - expected).max() <= tolerance(dtype) * np.abs(expected).max()


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e5, 1e30])
@pytest.mark.parametrize("quantize", [None, "int16"])
def test_chi_squares_of_counts_of_any_size(tmp_path, dtype, size, quantize):
    rng = np.random.RandomState(0)
    cases = {}
    for name, share in (("dense", 0.6), ("sparse", 0.15)):
        drawn = rng.rand(30, 9) * (rng.rand(30, 9) < share)
        basis = (size * drawn).astype(np.float32).astype(np.float64)
        model = KernelExpansion(ChiSquare(0.7 / size), basis[:12], rng.randn(12, 3), np.zeros(3))
        export = to_c(model, tmp_path / f"{name}.c", dtype=dtype, quantize=quantize)
        assert (f"{name}_starts[" in export.path.read_text(encoding="ascii")) == (name == "sparse")
        cases[name] = (model, basis)
    library = build(tmp_path, [tmp_path / f"{name}.c" for name in cases])
    for name, (model, rows) in cases.items():
        kept = lay_out(model, dtype, quantize, None).model
        basis = kept.basis.toarray() if sp.issparse(kept.basis) else kept.basis
        expected = chisquare(rows, basis, kept.kernel.gamma) @ kept.coef
        found = call(library, f"{name}_scores", rows, 3, dtype)
        assert np.abs(found - expected).max() <= tolerance(dtype) * np.abs(expected).max()
        # Of negative entries nothing is promised but that the scores are numbers.
        assert np.isfinite(call(library, f"{name}_scores", -rows, 3, dtype)).all()


def test_rows_to_measure_on_must_suit_the_kernel(tmp_path):
    model = expansion(ChiSquare(0.3), 3)
    with pytest.raises(ValueError, match="takes no negative entries"):
        to_c(model, tmp_path / "chi2.c", X=-rows_for(model))


def kernels_of_distance(gamma, n_basis, n_features):
    """Return a kernel for each formula of a distance, with what it is a power of, and sparsity."""
    widths = np.full(n_basis, gamma**2)
    return {
        "rbf": (RBF(gamma**2), 2, False),
        "rbf_sparse": (RBF(gamma**2), 2, True),
        "laplacian": (Laplacian(gamma), 1, False),
        "laplacian_sparse": (Laplacian(gamma), 1, True),
        "widths": (AdaptiveRBF(widths), 2, False),
        "weights": (AdaptiveRBF(widths, np.ones(n_features)), 2, False),
        "map": (AdaptiveRBF(widths, np.eye(n_features)), 2, False),
    }


def exported_distances(folder, kernels, basis, rows, **options):
    """Yield name and C file of each kernel, the error of its scores, and the largest of these."""
    rng = np.random.RandomState(0)
    coef = rng.randn(len(basis), 3)
    scores, exports = {}, []
    for name, (kernel, power, sparse) in kernels.items():
        held = basis * (rng.rand(*basis.shape) < 0.15) if sparse else basis
        model = KernelExpansion(kernel, sp.csr_matrix(held) if sparse else held, coef, np.zeros(3))
        near = (held + rows).astype(options.get("dtype", "float32")).astype(np.float64)
        gamma = kernel.widths[0] if isinstance(kernel, AdaptiveRBF) else kernel.gamma
        gaps = np.abs(near[:, np.newaxis] - held) * gamma ** (1 / power)
        scores[name] = (near, np.exp(-(gaps**power).sum(axis=2)) @ coef)
        exports.append(to_c(model, folder / f"{name}.c", **options))
    library = build(folder, [export.path for export in exports])
    for export in exports:
        near, expected = scores[export.name]
        dtype = options.get("dtype", "float32")
        found = call(library, f"{export.name}_scores", near, 3, dtype)
        error = np.abs(found - expected).max() / np.abs(expected).max()
        yield export.name, export.path.read_text(encoding="ascii"), error


@needs_compiler
@pytest.mark.parametrize("size", [1e-25, 1e20, 1e30])
def test_features_whose_squares_single_precision_cannot_hold(tmp_path, size):
    rng = np.random.RandomState(0)
    # Of equal vectors no square is large; of the rows that are asked for, it is.
    basis = np.full((4, 9), size).astype(np.float32).astype(np.float64)
    rows = (size * rng.randn(4, 9)).astype(np.float32).astype(np.float64)
    kernels = kernels_of_distance(0.3 / size, 4, 9)
    for name, text, error in exported_distances(tmp_path, kernels, basis, rows):
        assert error < 1e-5, name
        assert "double" not in text, name


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_that_are_large_against_the_width(tmp_path, dtype):
    rng = np.random.RandomState(0)
    basis = (1e6 * rng.randn(20, 9)).astype(dtype).astype(np.float64)
    rows = 0.5 * rng.randn(20, 9)
    kernels = kernels_of_distance(0.3, 20, 9)
    for name, _, error in exported_distances(tmp_path, kernels, basis, rows, dtype=dtype):
        # A map rounds what it returns, so that its gaps have 1e-16 of the features at the best.
        assert error < (1e-9 if name == "map" and dtype == "float64" else tolerance(dtype)), name


@needs_compiler
@pytest.mark.parametrize("metric", ["none", "weights", "map", "wide_map"])
def test_learned_kernels_whose_coefficients_cancel(tmp_path, metric):
    rng = np.random.RandomState(0)
    half, coef = rng.randn(6, N_FEATURES), 1e3 * rng.randn(6, 2)
    basis = np.vstack([half, half + 1e-3])
    kernel = adaptive(metric)
    kernel = AdaptiveRBF(np.tile(kernel.widths[:6], 2), kernel.metric)
    model = KernelExpansion(kernel, basis, np.vstack([coef, -coef]), np.zeros(2))
    export = to_c(model, tmp_path / "hard.c")
    assert "Sums are of double precision" in export.path.read_text(encoding="ascii")
    library = build(tmp_path, [export.path])
    assert_agrees(library, "hard", model, None, rows_for(model), "float32")


@needs_compiler
@pytest.mark.parametrize("quantize", [None, "int16"])
def test_smallest_models(tmp_path, quantize):
    models = {
        "no_vectors": KernelExpansion(RBF(1.0), np.empty((0, 3)), np.empty((0, 2)), np.ones(2)),
        "no_power": KernelExpansion(
            Polynomial(1.0), np.empty((0, 3)), np.empty((0, 1)), np.ones(1)
        ),
        "one_of_all": KernelExpansion(RBF(1.0), np.array([[2.0]]), np.array([[3.0]]), np.zeros(1)),
        "zero_vector": KernelExpansion(
            Laplacian(1.0), sp.csr_matrix((2, 5)), np.eye(2), np.zeros(2)
        ),
        "no_learned": KernelExpansion(
            AdaptiveRBF(np.empty(0), np.ones((3, 2))),
            np.empty((0, 3)),
            np.empty((0, 2)),
            np.ones(2),
        ),
        "one_learned": KernelExpansion(
            AdaptiveRBF(np.array([0.5]), np.array([[2.0]])),
            np.array([[2.0]]),
            np.array([[3.0]]),
            np.zeros(1),
        ),
        "equal": KernelExpansion(RBF(1.0), np.full((3, 2), 1e6), np.ones((3, 2)), np.zeros(2)),
        "no_feature_counts": LinearMap(np.zeros((4, 2)), np.array([0.5, -0.5])),
        "one_feature": LinearMap(np.array([[2.0]]), np.array([1.0])),
        "no_training_rows": KernelExpansion(
            Precomputed(), np.empty(0, np.intp), np.empty((0, 2)), np.ones(2), n_features=5
        ),
    }
    exports = {
        name: to_c(model, tmp_path / f"{name}.c", quantize=quantize)
        for name, model in models.items()
    }
    library = build(tmp_path, [export.path for export in exports.values()])
    for name, model in models.items():
        assert_agrees(library, name, model, None, rows_for(model, 20), "float32")
        assert not hasattr(library, f"{name}_predict")


@needs_compiler
@pytest.mark.thorough
def test_wide_text_models_stay_small(tmp_path):
    rng = np.random.RandomState(0)
    basis = sp.random(80, 70_000, density=5e-4, random_state=rng, format="csr")
    rows = sp.random(50, 70_000, density=1e-3, random_state=rng, format="csr").toarray()
    rows = rows.astype(np.float32).astype(np.float64)
    exports, models = [], {}
    for name, kernel in (("gauss", RBF(0.1)), ("flat", Linear()), ("power", Polynomial(0.5, 2, 1))):
        models[name] = KernelExpansion(kernel, basis, rng.randn(80, 5), rng.randn(5))
        exports.append(to_c(models[name], tmp_path / f"{name}.c"))
        assert exports[-1].n_bytes < 300_000
    library = build(tmp_path, [export.path for export in exports])
    for name, model in models.items():
        assert_agrees(library, name, model, None, rows, "float32")


@needs_compiler
def test_large_coefficients_that_cancel_keep_their_digits(tmp_path):
    rng = np.random.RandomState(0)
    X, y = rng.rand(1200, 6).round(2), rng.randint(0, 4, 1200)
    machine = SparseKernelClassifier(180, C=1000, gamma=0.05, tol=0, random_state=0)
    machine.fit(X, y)
    export = to_c(machine, tmp_path / "hard.c")
    assert "Sums are of double precision" in export.path.read_text(encoding="ascii")
    rows = X[:1000].astype(np.float32).astype(np.float64)
    library = build(tmp_path, [export.path])
    assert_agrees(library, "hard", machine.model_, machine.readout_, rows, "float32")
    easy = to_c(expansion(RBF(0.3), 3), tmp_path / "easy.c")
    assert "double" not in easy.path.read_text(encoding="ascii")


def contract_problem(name):
    rng = np.random.RandomState(0)
    X = rng.randn(90, 4)
    return X, targets(name, (X[:, :3] + 0.3 * rng.randn(90, 3)).argmax(axis=1))


@needs_compiler
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator(tmp_path, name):
    estimator = unfitted(name)
    X, y = contract_problem(name)
    X = X.astype(np.float32).astype(np.float64)
    estimator.fit(X, y)
    exports = [
        to_c(estimator, tmp_path / "direct.c"),
        to_c(estimator.compile(), tmp_path / "compiled.c"),
    ]
    library = build(tmp_path, [export.path for export in exports])
    scores = estimator.decision_function(X)
    for export in exports:
        got = call(library, f"{export.name}_scores", X, scores.shape[1], "float32")
        assert np.abs(got - scores).max() <= 1e-5 * np.abs(scores).max()
        assert_agrees(library, export.name, estimator.model_, estimator.readout_, X, "float32")


@needs_compiler
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learned_basis(tmp_path, n_classes):
    rng = np.random.RandomState(0)
    X = rng.randn(300, 5).astype(np.float32).astype(np.float64)
    y = np.abs(X[:, :n_classes]).argmax(axis=1)
    machines = {}
    for metric in ("none", "diagonal", "full"):
        machine = SparseKernelClassifier(
            4, basis=LearnedBasis(metric=metric, max_iter=5), loss="logistic", random_state=0
        )
        machines[metric] = machine.fit(X, y)
        to_c(machine, tmp_path / f"{metric}.c")
    library = build(tmp_path, [tmp_path / f"{metric}.c" for metric in machines])
    for metric, machine in machines.items():
        assert_agrees(library, metric, machine.model_, machine.readout_, X, "float32")


@needs_compiler
def test_labels_keep_what_they_say(tmp_path):
    labels = ['say "x"', "back\\slash", "what??/", "äöü 1", "новый\n", "%d"]
    tables = {
        "words": (np.array(labels), ctypes.c_char_p, [label.encode() for label in labels]),
        "raw": (np.array([b"\x00\xff1", b"b", b"c"]), ctypes.c_char_p, [b"", b"b", b"c"]),
        "objects": (np.array(["x", "y", "z"], dtype=object), ctypes.c_char_p, [b"x", b"y", b"z"]),
        "whole": (np.array([-3, 0, 7]), ctypes.c_int, [-3, 0, 7]),
        "long_": (np.array([-(2**31) + 1, 0, 70_000]), ctypes.c_long, [-(2**31) + 1, 0, 70_000]),
        "huge": (np.array([-(2**62), 0, 2**62]), ctypes.c_longlong, [-(2**62), 0, 2**62]),
        "vast": (np.array([1, 2, 2**64 - 1], np.uint64), ctypes.c_ulonglong, [1, 2, 2**64 - 1]),
        "real": (np.array([0.1, 1.5, -2e300]), ctypes.c_double, [0.1, 1.5, -2e300]),
    }
    for name, (classes, _, _) in tables.items():
        model = LinearMap(np.ones((2, len(classes))), np.zeros(len(classes)))
        to_c(CompiledPredictor(model, Readout(classes, "multiclass")), tmp_path / f"{name}.c")
    library = build(tmp_path, [tmp_path / f"{name}.c" for name in tables])
    for name, (classes, ctype, expected) in tables.items():
        assert numbers(library, f"{name}_classes", ctype, len(classes)) == expected
    with pytest.raises(ValueError, match="4095"):
        class_table(np.array(["a", "b" * 5000, "c"]))


@needs_compiler
def test_equal_scores_are_the_first_class(tmp_path):
    model = LinearMap(np.zeros((2, 4)), np.array([0.0, 1.0, 1.0, 0.5]))
    to_c(CompiledPredictor(model, readouts()["silent"]), tmp_path / "tie.c")
    library = build(tmp_path, [tmp_path / "tie.c"])
    assert call(library, "tie_predict", np.zeros((1, 2)), None, "float32") == [1]


@needs_compiler
def test_probabilities_of_scores_far_below_zero(tmp_path):
    model = LinearMap(np.eye(4), np.zeros(4))
    rows = np.array([[-300.0, -301, -400, -500], [300, 200, -200, 0], [0, 0, 0, 0]])
    for kind in ("rest", "multiclass"):
        to_c(CompiledPredictor(model, readouts()[kind]), tmp_path / f"{kind}.c")
        library = build(tmp_path, [tmp_path / f"{kind}.c"])
        expected = np.exp(readouts()[kind].log_probabilities(rows))
        got = call(library, f"{kind}_probabilities", rows, 4, "float32")
        np.testing.assert_allclose(got, expected, atol=1e-6)


@needs_compiler
def test_header_in_two_files(tmp_path):
    predictor = CompiledPredictor(expansion(RBF(0.3), 4, sparse=True), readouts()["multiclass"])
    to_c(predictor, tmp_path / "both.h")
    for name in ("first", "second"):
        (tmp_path / f"{name}.c").write_text(
            f'#include "both.h"\n#include "both.h"\nint {name}(const float x[]);\n'
            f"int {name}(const float x[]) {{ return both_predict(x); }}\n"
        )
    (tmp_path / "unused.c").write_text(
        '#include "both.h"\nint nothing(void);\nint nothing(void) { return 0; }\n'
    )
    library = build(tmp_path, [tmp_path / f"{name}.c" for name in ("first", "second", "unused")])
    rows = rows_for(predictor._model, 50)
    for name in ("first", "second"):
        got = call(library, name, rows, None, "float32")
        np.testing.assert_array_equal(
            readouts()["multiclass"].classes[got], predictor.predict(rows)
        )


@needs_cpp
@pytest.mark.parametrize("quantize", [None, pytest.param("int16", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_cpp_takes_the_same_files(tmp_path, quantize):
    sources = []
    for kernel, kind in (
        ("rbf", "multiclass"),
        ("poly", "binary"),
        ("laplacian", "multilabel"),
        ("chi2", "multilabel"),
        ("sigmoid", "binary"),
        ("weighted", "multiclass"),
        ("mapped", "multiclass"),
    ):
        for sparse, suffix in ((False, "c"), (kernel not in DENSE_ONLY, "h")):
            predictor = CompiledPredictor(
                expansion(KERNELS[kernel], readouts()[kind].n_outputs, sparse=sparse),
                readouts()[kind],
            )
            export = to_c(predictor, tmp_path / f"{kernel}.{suffix}", quantize=quantize)
            source = export.path
            if suffix == "h":
                source = tmp_path / f"{kernel}_user.cpp"
                source.write_text(f'#include "{kernel}.h"\n')
            sources.append(source)
    build(tmp_path, ["-x", "c++", *sources], compiler=("g++", "-std=c++11"))
    library = build(tmp_path, ["-x", "c++", tmp_path / "rbf.c"], compiler=("g++", "-std=c++11"))
    model = lay_out(expansion(RBF(0.3), 4), "float32", quantize, None).model
    assert_agrees(library, "rbf", model, readouts()["multiclass"], rows_for(model, 50), "float32")


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_math_library(tmp_path, dtype):
    model, readout = expansion(RBF(0.3), 4), readouts()["rest"]
    export = to_c(CompiledPredictor(model, readout), tmp_path / "alone.c", dtype=dtype)
    library = build(tmp_path, [export.path], "-DALONE_NO_MATH_H", libraries=())
    assert_agrees(library, "alone", model, readout, rows_for(model), dtype)
    run(["gcc", "-DALONE_NO_MATH_H", "-c", export.path, "-o", tmp_path / "alone.o"])
    if shutil.which("nm"):
        assert "exp" not in run(["nm", "-u", tmp_path / "alone.o"])
    # One coefficient of 1 on a vector at zero makes the score the exponential itself.
    exact = KernelExpansion(Laplacian(1.0), np.array([[0.0], [1e9]]), np.eye(2), np.zeros(2))
    to_c(exact, tmp_path / "bare.c", dtype=dtype)
    library = build(tmp_path, [tmp_path / "bare.c"], "-DBARE_NO_MATH_H", libraries=())
    limit = 86.0 if dtype == "float32" else 700.0
    rows = np.linspace(0, limit, 5000)[:, np.newaxis].astype(dtype)
    got = call(library, "bare_scores", rows, 2, dtype)[:, 0].astype(np.float64)
    expected = np.exp(-rows[:, 0].astype(np.float64))
    assert (np.abs(got - expected) <= 3 * np.finfo(dtype).eps * expected).all()
    ends = call(library, "bare_scores", [[1e30], [np.inf], [np.nan]], 2, dtype)[:, 0]
    assert ends[0] == ends[1] == 0
    assert np.isnan(ends[2])


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alone", [True, False])
def test_the_hyperbolic_tangent(tmp_path, dtype, alone):
    # One coefficient of 1 on the vector 1 makes the score the tangent itself.
    exact = KernelExpansion(Sigmoid(1.0), np.ones((1, 1)), np.ones((1, 1)), np.zeros(1))
    export = to_c(exact, tmp_path / "bare.c", dtype=dtype)
    flags, libraries = (["-DBARE_NO_MATH_H"], ()) if alone else ([], ("-lm",))
    library = build(tmp_path, [export.path], *flags, libraries=libraries)
    rows = np.concatenate([np.geomspace(1e-30, 30.0, 5000), np.linspace(0.0, 2.0, 5000), [0.5]])
    rows = np.concatenate([rows, -rows])[:, np.newaxis].astype(dtype)
    got = call(library, "bare_scores", rows, 1, dtype)[:, 0].astype(np.float64)
    expected = np.tanh(rows[:, 0].astype(np.float64))
    assert (np.abs(got - expected) <= 3 * np.finfo(dtype).eps * np.abs(expected)).all()
    ends = call(library, "bare_scores", [[1e30], [-np.inf], [np.nan]], 1, dtype)[:, 0]
    assert ends[0] == 1
    assert ends[1] == -1
    assert np.isnan(ends[2])


@needs_compiler
@pytest.mark.parametrize("level", ["-O0", pytest.param("-O3", marks=pytest.mark.thorough)])
@pytest.mark.thorough
def test_sanitizers_find_nothing(tmp_path, level):
    sources, calls, declarations = [], [], []
    for kernel, sparse, quantize in itertools.product(
        ("rbf", "laplacian", "chi2", "poly", "sigmoid", "linear", *DENSE_ONLY),
        (False, True),
        (None, "int16"),
    ):
        if kernel in DENSE_ONLY and sparse:
            continue
        name = f"m{len(sources)}"
        model = expansion(KERNELS[kernel], 4, sparse=sparse)
        predictor = CompiledPredictor(model, readouts()["rest"])
        sources.append(to_c(predictor, tmp_path / f"{name}.c", quantize=quantize).path)
        declarations.append(
            f"int {name}_predict(const float x[]); void {name}_scores(const float x[], float s[]);"
            f" void {name}_probabilities(const float x[], float p[]);"
        )
        calls.append(
            f"{{float *x = row({model.n_features}), *s = row(4); total += {name}_predict(x);"
            f" {name}_scores(x, s); {name}_probabilities(x, s); free(x); free(s);}}"
        )
    main = tmp_path / "main.c"
    main.write_text(
        "#include <stdlib.h>\n" + "\n".join(declarations) + "\n"
        "static float *row(int n) { float *x = malloc((size_t)n * sizeof *x); int i;"
        " for (i = 0; i < n; ++i) x[i] = (float)(i % 3) - 1; return x; }\n"
        "int main(void) { int total = 0;\n" + "\n".join(calls) + "\nreturn total < 0; }\n"
    )
    program = tmp_path / "program"
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    command = ["gcc", "-std=c99", *STRICT, level, *flags, main, *sources, "-o", program, "-lm"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if "libasan" in done.stderr or "libubsan" in done.stderr:
        pytest.skip("no sanitizer libraries")
    assert done.returncode == 0, done.stderr
    run([program])


@needs_compiler
def test_sizes_and_speed(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    machine = SparseKernelClassifier(max_basis=60, random_state=0).fit(X[:1200], y[:1200])
    digits = to_c(machine, tmp_path / "digits.c")
    assert digits.n_bytes <= 25_000
    assert digits.n_bytes == os.path.getsize(tmp_path / "digits.c")
    assert digits.table_bytes == 4 * (60 * 64 + 60 * 10 + 10) + 4 * 10
    whole = to_c(machine, tmp_path / "whole.c", quantize="int16", X=X[1200:], y=y[1200:])
    assert whole.table_bytes < 0.6 * digits.table_bytes
    assert whole.loss.measured_on == "rows"
    assert whole.loss.n_rows == len(X) - 1200
    assert whole.loss.score_difference < 1e-3
    assert whole.loss.labels_changed <= 0.01
    assert whole.loss.accuracy_before == machine.score(X[1200:], y[1200:])
    assert "accuracy" in whole.path.read_text(encoding="ascii")
    assert to_c(expansion(RBF(0.02), 10, 0, 60, 64), tmp_path / "reals.c").n_bytes <= 60_000
    start = time.perf_counter()
    large = to_c(expansion(RBF(0.02), 10, 0, 768, 64), tmp_path / "large.c")
    build(tmp_path, [large.path])
    assert time.perf_counter() - start < 2.0


def test_loss_without_rows(tmp_path):
    expected = {
        "rbf": "basis vectors",
        "mapped": "basis vectors",
        "linear": "unit rows",
        "precomputed": "unit rows",
    }
    for kernel, measured_on in expected.items():
        export = to_c(expansion(KERNELS[kernel], 3), tmp_path / "a.c", quantize="int16")
        assert export.loss.measured_on == measured_on
        assert 0 < export.loss.score_difference < 1e-3
        assert export.loss.labels_changed is None
        assert measured_on in export.path.read_text(encoding="ascii")
    assert to_c(expansion(RBF(0.3), 3), tmp_path / "a.c").loss is None


def test_quantised_grids_lose_nothing():
    rng = np.random.RandomState(0)
    basis = np.column_stack([rng.randint(0, 256, 50) / 255, rng.randint(-9, 9, 50), np.ones(50)])
    model = KernelExpansion(RBF(1.0), basis, rng.randn(50, 2), np.zeros(2))
    kept = lay_out(model, "float64", "int16", None).model
    np.testing.assert_allclose(kept.basis, basis, rtol=0, atol=1e-12)


def test_same_model_same_bytes(tmp_path):
    texts = []
    for _ in range(2):
        to_c(expansion(RBF(0.3), 3), tmp_path / "again.c", quantize="int16")
        texts.append((tmp_path / "again.c").read_bytes())
    assert texts[0] == texts[1]
    assert os.listdir(tmp_path) == ["again.c"]


def test_texts_give_back_every_number():
    rng = np.random.RandomState(0)
    bits = rng.randint(0, 2**32, 20_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = [0.0, -0.0, 1.0, -0.5, 1e-45, 3.4028235e38, 16777216.0, 1e10, 123456792.0, 0.1, 100.0]
    for dtype in (np.float32, np.float64):
        values = np.append(bits[np.isfinite(bits)], np.array(edges, np.float32)).astype(dtype)
        values = values if dtype == np.float32 else values * np.pi
        items = Table.of("x", values).items
        parsed = np.array([float(item.removesuffix("f")) for item in items]).astype(dtype)
        np.testing.assert_array_equal(parsed, values)
    assert Table.of("x", np.array([0.5, -0.25, 100, 1e5, 0, 1e-9, 0.1], np.float32)).items == [
        ".5",
        "-.25",
        "100",
        "1e5",
        "0",
        "1e-9f",
        ".1f",
    ]


@pytest.mark.parametrize("name", ["2d", "a-b", "", "int", "class", "ä", "a b", "x;y", 5])
def test_bad_names(tmp_path, name):
    with pytest.raises(ValueError, match="name"):
        to_c(expansion(RBF(0.3), 2), tmp_path / "fine.c", name=name)
    assert not os.listdir(tmp_path)


def test_name_of_the_file(tmp_path):
    model = expansion(RBF(0.3), 2)
    assert to_c(model, tmp_path / "my-model.v2.c").name == "my_model_v2"
    assert to_c(model, str(tmp_path / "9.c"), name="nine").name == "nine"
    with pytest.raises(ValueError, match="keyword"):
        to_c(model, tmp_path / "while.h")


def test_bad_input(tmp_path, three_classes):
    model = expansion(RBF(0.3), 2)
    for name in ("model.cpp", "model", "model.C"):
        with pytest.raises(ValueError, match="suffix"):
            to_c(model, tmp_path / name)
    with pytest.raises(NotFittedError):
        to_c(SparseKernelClassifier(), tmp_path / "a.c")
    with pytest.raises(TypeError, match="float"):
        to_c(3.5, tmp_path / "a.c")
    custom = SparseKernelClassifier(5, kernel=lambda a, b: a @ b.T).fit(*three_classes)
    with pytest.raises(TypeError, match="kernel"):
        to_c(custom, tmp_path / "a.c")
    with pytest.raises(ValueError, match="dtype"):
        to_c(model, tmp_path / "a.c", dtype="float16")
    with pytest.raises(ValueError, match="quantize"):
        to_c(model, tmp_path / "a.c", quantize="int8")
    with pytest.raises(ValueError, match="shape"):
        to_c(model, tmp_path / "a.c", X=np.ones((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        to_c(model, tmp_path / "a.c", X=np.full((3, 7), np.nan))
    with pytest.raises(ValueError, match="pass X"):
        to_c(model, tmp_path / "a.c", y=[1])
    with pytest.raises(ValueError, match="bare model"):
        to_c(model, tmp_path / "a.c", X=np.ones((1, 7)), y=[1])
    assert not os.listdir(tmp_path)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "kept.c"
    path.write_text("old")

    def full(*_):
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="full"):
            to_c(expansion(RBF(0.3), 2), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept.c"]
    with pytest.raises(FileNotFoundError):
        to_c(expansion(RBF(0.3), 2), tmp_path / "nowhere" / "a.c")

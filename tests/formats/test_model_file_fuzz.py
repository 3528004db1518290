"""Model files that were broken at random: they load as they were, or raise ModelFileError.

Two rounds. The first changes bytes, and the checksum has to notice. The second knows the format: it
changes values, shapes and types, and then makes the checksum right, so that only the checks behind
it stand between the file and the native code.
"""

import copy
import json
import os
import random
import struct
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from safetensors import safe_open
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin import SparseKernelClassifier, model_files
from widemargin.kernels import AdaptiveRBF
from widemargin.model_files import ModelFileError, load, save
from widemargin.models import KernelExpansion

N_BYTES, N_VALUES, FEW = 4_000, 3_000, 1_000  # files of either round, for each seed; asked always


def every_seed(n_files):
    """Ask of the files of three seeds; "make test" only of the first few of one."""
    whole = [pytest.param(seed, n_files, marks=pytest.mark.thorough) for seed in range(3)]
    return pytest.mark.parametrize(("seed", "n_files"), [(0, FEW), *whole])


rng = np.random.RandomState(0)
ROWS = rng.randn(30, 3)
LABELS = np.arange(30) % 3


def estimators():
    """Yield fitted machines that have between them every kind of value, and rows for each."""
    plain = SparseKernelClassifier(4, random_state=np.random.RandomState(1))
    yield plain.fit(ROWS, LABELS), ROWS
    sparse = SparseKernelClassifier(4, loss="logistic", class_weight={"a": 1, "b": 2, "ö": 1.5})
    texts = np.array(["a", "b", "ö"], dtype=object)[LABELS]
    yield sparse.fit(sp.csr_matrix(ROWS * (ROWS > 0)), texts), ROWS
    each = SparseKernelClassifier(3, basis="per_class", kernel="poly", random_state=0)
    yield each.fit(ROWS.astype(np.float32), np.array(["x", "yy", "z"])[LABELS]), ROWS
    matrix = SparseKernelClassifier(3, kernel="precomputed", C=np.float32(2), random_state=0)
    yield matrix.fit(ROWS @ ROWS.T, LABELS > 0), ROWS @ ROWS.T
    for metric in (np.array([0.5, 1.0, 2.0], dtype=np.float32), ROWS[:3, :2]):
        learned = SparseKernelClassifier(4, random_state=0).fit(ROWS, LABELS)
        model, kernel = learned.model_, AdaptiveRBF(np.linspace(0.1, 0.7, 4), metric)
        learned.model_ = KernelExpansion(kernel, model.basis, model.coef, model.intercept)
        yield learned, ROWS


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """Return (bytes, rows, scores) of each machine."""
    folder = tmp_path_factory.mktemp("originals")
    found = []
    for number, (estimator, X) in enumerate(estimators()):
        file = folder / str(number)
        save(estimator, file)
        found.append((file, X, estimator.decision_function(X)))
    return found


def broken_bytes(content, source):
    """Return the content with something wrong about its bytes."""
    content = bytearray(content)
    (header,) = struct.unpack("<Q", content[:8])
    place = source.randrange(len(content))
    how = source.randrange(9)
    if how == 0:
        content[place] ^= 1 << source.randrange(8)
    elif how == 1:
        content[source.randrange(8 + header)] = source.randrange(256)
    elif how == 2:
        del content[place:]
    elif how == 3:
        content += bytes(source.choices(range(256), k=source.randrange(1, 64)))
    elif how == 4:
        other = source.randrange(len(content))
        length = source.randrange(1, 40)
        content[place : place + length] = content[other : other + length]
    elif how == 5:
        del content[place : place + source.randrange(1, 40)]
    elif how == 6:
        lengths = [
            0,
            1,
            8,
            header - 1,
            header + 1,
            header + 8,
            len(content),
            2**31,
            2**63,
            2**64 - 1,
        ]
        content[:8] = struct.pack("<Q", source.choice(lengths))
    elif how == 7:
        for _ in range(source.randrange(1, 20)):
            content[source.randrange(len(content))] = source.randrange(256)
    else:
        digits = [at for at in range(8, 8 + header) if chr(content[at]).isdigit()]
        content[source.choice(digits)] = ord(source.choice("0123456789-e. "))
    return bytes(content)


@every_seed(N_BYTES)
def test_changed_bytes_are_noticed(originals, tmp_path, seed, n_files):
    source = random.Random(seed)
    file = tmp_path / "broken"
    contents = [original[0].read_bytes() for original in originals]
    reasons = []
    for _ in range(n_files):
        number = source.randrange(len(originals))
        file.write_bytes(broken_bytes(contents[number], source))
        try:
            loaded = load(file, mmap=source.random() < 0.8)
        except ModelFileError as error:
            reasons.append(str(error))
        else:  # whitespace changed, or a splice of equal bytes
            _, X, scores = originals[number]
            assert np.array_equal(loaded.decision_function(X), scores)
    assert len(reasons) > 0.95 * n_files
    assert all(reason.startswith(f"{file}: ") for reason in reasons)


ODD = [
    None,
    True,
    0,
    -1,
    1,
    2,
    3,
    10**6,
    2**31,
    2**63,
    -(2**63),
    0.0,
    -0.5,
    1e308,
    5e-324,
    "",
    "rbf",
    "basis_",
    "dual_coef_",
    "poly",
    "sigmoid",
    "logistic",
    "per_class",
    "precomputed",
    [],
    [[]],
    {},
    {"float": "inf"},
    {"float": "nan"},
    {"array": "basis_"},
    {"array": "intercept_"},
    {"transposed": "dual_coef_"},
    {"text": "classes_"},
    {"tuple": []},
    {"dict": []},
    {"numpy": ["int64", 3]},
    {"numpy": ["float32", 0.5]},
    {"kernel": ["RBF", {"gamma": 0.5}]},
    {"kernel": ["Linear", {}]},
    {"kernel": ["Precomputed", {}]},
    {"kernel": ["AdaptiveRBF", {"widths": {"array": "intercept_"}, "metric": None}]},
    {"kernel": ["AdaptiveRBF", {"widths": {"array": "basis_"}, "metric": {"array": "basis_"}}]},
    {"kernel": ["AdaptiveRBF", {"widths": 1.0, "metric": {"transposed": "basis_"}}]},
    {"kernel": ["Polynomial", {"gamma": 1, "degree": 2**40, "coef0": 0}]},
    {"kernel": ["Sigmoid", {"gamma": 0, "coef0": {"float": "inf"}}]},
    {"loss": ["CrammerSinger", {"smoothing": {"float": "inf"}}]},
]


def places(node, path=()):
    """Yield the way to every value of a document."""
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node)
    if isinstance(node, (dict, list)):
        for key, inner in items:
            if isinstance(inner, (dict, list)):
                yield from places(inner, (*path, key))
            else:
                yield (*path, key)


def break_document(document, source):
    ways = list(places(document))
    way = source.choice(ways)
    parent = document
    for step in way[:-1]:
        parent = parent[step]
    how = source.randrange(5)
    if how == 0:
        del parent[way[-1]]
    elif how == 1:
        other = document
        for step in source.choice(ways):
            other = other[step]
        parent[way[-1]] = copy.deepcopy(other)
    elif how == 2 and isinstance(parent, list):
        parent.insert(way[-1], source.choice(ODD))
    elif how == 3 and isinstance(parent, dict):
        parent[source.choice(["extra_", "array", "predict", "_predictors"])] = parent.pop(way[-1])
    else:
        parent[way[-1]] = copy.deepcopy(source.choice(ODD))


def break_tensors(tensors, source):
    name = source.choice(list(tensors))
    values = tensors[name].copy()
    how = source.randrange(7)
    if how == 0:
        values = values.astype(source.choice(["f8", "f4", "f2", "i8", "i4", "u1", "u4", "?"]))
    elif how == 1:
        values = values[: source.randrange(len(values) + 1)]
    elif how == 2:
        values = values.reshape(source.choice([(-1,), (1, -1), (-1, 1), values.shape[::-1]]))
    elif how == 3:
        values = np.concatenate([values, values])
    elif how == 4 and values.size:
        odd = [0, -1, 1, 2, 3, 99, 2**31 - 1, 2**40, 0xD800, np.nan, np.inf, -0.0, 1e300]
        values.flat[source.randrange(values.size)] = np.array(source.choice(odd)).astype(
            values.dtype
        )
    elif how == 5:
        values = tensors[source.choice(list(tensors))]
    else:
        values = np.empty((0, source.choice([0, 1, 3, 2**31, 10**17])), dtype=values.dtype)
    tensors[name] = values


def parts_of(file):
    with safe_open(file, framework="np") as stored:
        names = stored.keys()
        document = json.loads(stored.metadata()["widemargin"])
        return document, {name: stored.get_tensor(name) for name in names}


def write(file, document, tensors):
    arrays = [np.asarray(array, order="C") for array in tensors.values()]
    entries = [
        (name, model_files.TENSOR_TYPES[array.dtype.str], list(array.shape))
        for name, array in zip(tensors, arrays, strict=True)
    ]
    header = model_files._header(json.dumps(document), entries, arrays)
    file.write_bytes(header + b"".join(array.tobytes() for array in arrays))


def use(loaded):
    """Call all that predicts; the results mean little, but nothing may go wrong."""
    n_features = loaded.n_features_in_
    if n_features > 1000:
        return
    X = np.ones((3, n_features))
    if hasattr(loaded, "feature_names_in_"):
        loaded.__dict__.pop("feature_names_in_")
    labels = loaded.predict(X)
    assert set(labels.tolist()) <= set(loaded.classes_.tolist())
    scores = loaded.decision_function(X)
    assert scores.shape == ((3,) if len(loaded.classes_) == 2 else (3, len(loaded.classes_)))
    if hasattr(loaded, "predict_proba"):
        assert loaded.predict_proba(X).shape == (3, len(loaded.classes_))
    for stage in loaded.staged_decision_function(X):
        assert stage.shape == scores.shape
    loaded.predict(sp.csr_matrix(X))
    if isinstance(loaded.random_state, np.random.RandomState):
        loaded.random_state.randn(3)
    repr(loaded)


@every_seed(N_VALUES)
@pytest.mark.thorough
def test_changed_values_are_checked(originals, tmp_path, seed, n_files):
    source = random.Random(seed)
    file = tmp_path / "broken"
    parts = [parts_of(original[0]) for original in originals]
    reasons = []
    for _ in range(n_files):
        document, tensors = copy.deepcopy(source.choice(parts))
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if source.random() < 0.6:
                    break_document(document, source)
                else:
                    break_tensors(tensors, source)
        write(file, document, tensors)
        try:
            loaded = load(file)
        except ModelFileError as error:
            reasons.append(str(error))
            continue
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            use(loaded)
        save(loaded, file)
        load(file)
    assert 0.5 * n_files < len(reasons) < n_files
    assert all(reason.startswith(f"{file}: ") for reason in reasons)


STEPS = [
    {"step": ["Pipeline", {}, {}]},
    {"step": ["StandardScaler", {}, {"transform": 1}]},
    {"step": ["os.system", {}, {}]},
    {"function": "chi2"},
    {"function": "system"},
    {"dtype": "object"},
    {"type": "float32"},
    {"slice": [0, 1, None]},
    {"objects": [["a", None], [2]]},
    {"objects": [["a"], [10**12]]},
]


def test_changed_steps_are_checked(tmp_path):
    encode = ColumnTransformer(
        [("s", make_pipeline(SimpleImputer(), StandardScaler()), [0]), ("c", OneHotEncoder(), [1])],
        remainder=SelectKBest(k=1),
    )
    rows = np.column_stack([ROWS, LABELS, LABELS])[:, [0, 3, 1, 2]]
    pipeline = make_pipeline(encode, SparseKernelClassifier(4, random_state=0)).fit(rows, LABELS)
    file, source = tmp_path / "broken", random.Random(0)
    save(pipeline, file)
    original = parts_of(file)
    n_refused = 0
    for _ in range(400):
        document, tensors = copy.deepcopy(original)
        node, key = document, "pipeline"
        while isinstance(node[key], (dict, list)) and node[key] and source.random() < 0.9:
            node = node[key]
            key = source.choice(list(node) if isinstance(node, dict) else range(len(node)))
        node[key] = source.choice(ODD + 2 * STEPS)
        write(file, document, tensors)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                loaded = load(file)
            except ModelFileError:
                n_refused += 1
            else:
                assert type(loaded) is Pipeline
    assert 100 < n_refused < 400


def claims(document, tensors):
    """Yield files that claim more than they hold."""
    for shape in ([0, 10**18], [0, 2**63], [10**18, 0], [0, 10**9, 10**9]):
        yield "shape", "basis_", shape
    for name in tensors:
        yield "shape", name, [10**12]
        yield "offsets", name, [0, 10**15]
        yield "offsets", name, [2**64 - 8, 2**64 - 1]


CLAIMS = """
    import json, resource, struct, sys
    from pathlib import Path
    from widemargin.model_files import ModelFileError, load

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + (64 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for path in sys.argv[1:]:
        try:
            load(path)
        except ModelFileError:
            continue
        raise SystemExit(f"{path} was loaded")
    print("refused")
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
@pytest.mark.thorough
def test_claims_reserve_no_memory(originals, tmp_path):
    files = []

    def keep(content):
        files.append(tmp_path / f"claim{len(files)}")
        files[-1].write_bytes(content)

    for original in originals[:2]:
        document, tensors = parts_of(original[0])
        content = original[0].read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        for what, name, value in claims(document, tensors):
            header = json.loads(content[8 : 8 + length])
            if name not in header:
                continue
            header[name]["shape" if what == "shape" else "data_offsets"] = value
            text = json.dumps(header).encode()
            keep(struct.pack("<Q", len(text)) + text + content[8 + length :])
        for claimed in ([10**18, 3], [3, 10**18], [4, 2**31 - 1]):
            csr = {"data": {"array": "dual_coef_"}, "indices": {"array": "basis_indices_"}}
            csr |= {"indptr": {"array": "basis_indices_"}, "shape": claimed}
            changed = copy.deepcopy(document)
            changed["attributes"]["basis_"] = {"csr_matrix": csr}
            write(tmp_path / "file", changed, tensors)
            keep((tmp_path / "file").read_bytes())
        for values in (np.empty((0, 10**17)), np.empty((10**17, 0))):
            write(tmp_path / "file", document, tensors | {"dual_coef_": values})
            keep((tmp_path / "file").read_bytes())
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CLAIMS), *map(str, files)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.stdout == "refused\n", run.stderr

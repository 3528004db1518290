"""Model files grow: what older files lack is made from what they have, and is kept from then on."""

import inspect
import json
from dataclasses import dataclass, make_dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.base import BaseEstimator

from widemargin import (
    KernelClassifier,
    ModelFileError,
    SparseKernelClassifier,
    load,
    model_files,
    save,
)
from widemargin._registry import ESTIMATORS
from widemargin._system.file_changes import Added, Changed, Removed, changes_after
from widemargin.model_files._codec import OBJECTS, SETTINGS, SOLVERS
from widemargin.readouts import Readout
from widemargin.solvers.duals.larank import LaRank

pytestmark = pytest.mark.every_case

# Of machines alone: what steps of scikit-learn have become is not ours to say.
FIXTURES = sorted(
    path
    for path in (Path(__file__).parent / "fixtures").glob("v*_*.widemargin")
    if not path.stem.endswith("_pipeline")
)
NEXT = model_files.FORMAT + 1

every_fixture = pytest.mark.parametrize("fixture", FIXTURES, ids=lambda path: path.stem)


def expected_of(fixture):
    record = fixture.with_name(f"{fixture.name.split('_')[0]}.json")
    return json.loads(record.read_text(encoding="utf-8"))[fixture.name]


def estimator_of(file):
    with safe_open(file, framework="np") as stored:
        return json.loads(stored.metadata()["widemargin"])["estimator"]


def made_readout(file):
    classes = file["classes_"]
    return Readout(classes, "binary" if len(classes) == 2 else "multiclass")


def next_version(kind, changes, parameters=None, without=(), **members):
    """Return a class as a later version of the library might have it."""
    known = inspect.signature(kind.__init__).parameters
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in (parameters or {}).items()
    ]
    kept = [each for name, each in known.items() if name not in without]

    def make(self, *args, **given):
        own = {each.name: given.pop(each.name, each.default) for each in more}
        kind.__init__(self, *args, **given)
        for name in without:
            delattr(self, name)
        for name, value in own.items():
            setattr(self, name, value)

    make.__signature__ = inspect.Signature([*kept, *more])
    names = [name for name in changes if name.endswith("_")]
    return type(
        kind.__name__,
        (kind,),
        {
            "__init__": make,
            "_fitted_names": kind._fitted_names | set(names),
            "_file_changes": changes,
            **members,
        },
    )


CHANGES = {
    "colour": Added(NEXT, lambda file: f"of {len(file['classes_'])} classes"),
    "plain": Added(NEXT),
    "size_": Added(NEXT, lambda file: float(np.abs(file["model_"].coef).sum())),
    "n_names_": Added(NEXT, lambda file: len(file["readout_"].classes)),
}


@pytest.fixture
def later(monkeypatch):
    """Return a function that puts classes of a later version in the place of those of today."""
    monkeypatch.setattr(model_files, "FORMAT", NEXT)

    def put(kind, *args, **kwargs):
        grown = next_version(kind, *args, **kwargs)
        monkeypatch.setitem(ESTIMATORS, kind.__name__, grown)
        return grown

    return put


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.widemargin"


@every_fixture
def test_every_old_file_loads_into_classes_that_have_grown(fixture, later, file):
    today = ESTIMATORS[estimator_of(fixture)]
    kind = later(
        today,
        CHANGES,
        {"colour": "red", "plain": 3},
        _optional_fitted_names=today._optional_fitted_names | {"feature_names_in_", "_state"},
    )
    loaded = load(fixture)
    assert type(loaded) is kind
    assert (loaded.colour, loaded.plain) == (f"of {len(loaded.classes_)} classes", 3)
    assert loaded.readout_.classes is loaded.classes_
    assert loaded.size_ == np.abs(loaded.model_.coef).sum()
    assert loaded.n_names_ == len(loaded.classes_)
    assert not hasattr(loaded, "_state")
    expected = expected_of(fixture)
    X = np.asarray(expected["X"], dtype=expected["dtype"])
    assert loaded.predict(X).tolist() == expected["predict"]
    loaded.colour = "blue"
    save(loaded, file)
    again = load(file)
    assert again.colour == "blue"
    assert again.size_ == loaded.size_
    assert again.readout_.classes is again.classes_
    assert again.readout_ == loaded.readout_
    np.testing.assert_array_equal(again.decision_function(X), loaded.decision_function(X))
    first = file.read_bytes()
    save(again, file)
    assert file.read_bytes() == first


@every_fixture
def test_an_older_library_refuses_the_file_by_its_version(fixture, later, file, monkeypatch):
    later(ESTIMATORS[estimator_of(fixture)], CHANGES, {"colour": "red", "plain": 3})
    save(load(fixture), file)
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=rf"newer widemargin \(.*, format {NEXT}; .*upgrade"):
        load(file)


@pytest.mark.parametrize("lacking", ["colour", "plain", "size_"])
def test_a_file_of_the_version_that_has_it_must_have_it(lacking, later, file, monkeypatch):
    kind = later(SparseKernelClassifier, CHANGES, {"colour": "red", "plain": 3})
    machine = load(FIXTURES[0])
    hidden = next_version(
        SparseKernelClassifier,
        {name: change for name, change in CHANGES.items() if name != lacking},
        {name: 3 for name in ("colour", "plain") if name != lacking},
    )
    machine.__class__ = hidden
    vars(machine).pop(lacking)
    monkeypatch.setitem(ESTIMATORS, kind.__name__, hidden)
    save(machine, file)
    monkeypatch.setitem(ESTIMATORS, kind.__name__, kind)
    with pytest.raises(ModelFileError, match=rf"{lacking} is missing|missing: {lacking}"):
        load(file)


def test_an_attribute_that_nothing_was_made_for_is_missing(later):
    later(SparseKernelClassifier, {"size_": Added(NEXT)})
    with pytest.raises(ModelFileError, match="size_ is missing"):
        load(FIXTURES[0])


def test_what_cannot_be_made_refuses_the_file(later):
    later(SparseKernelClassifier, {"size_": Added(NEXT, lambda file: file["weight_"])})
    with pytest.raises(ModelFileError, match="weight_"):
        load(FIXTURES[0])
    later(SparseKernelClassifier, {"readout_": Added(NEXT, lambda file: "softmax")})
    with pytest.raises(ModelFileError, match="readout_ is no readout"):
        load(FIXTURES[0])


@dataclass(frozen=True)
class Choice:
    """Settings as a dataclass."""

    n_candidates: object = 128
    per_class: bool = False

    def __post_init__(self):
        if isinstance(self.n_candidates, str) and self.n_candidates != "all":
            raise ValueError(f"n_candidates={self.n_candidates!r}")


class Shape(BaseEstimator):
    """Settings as scikit-learn has them."""

    def __init__(self, metric="full", max_iter=None):
        self.metric = metric
        self.max_iter = max_iter

    def _check_parameters(self):
        if self.metric not in ("full", "diagonal"):
            raise ValueError(f"metric={self.metric!r}")


@pytest.mark.parametrize(
    "fixture",
    [path for path in FIXTURES if estimator_of(path) == "SparseKernelClassifier"],
    ids=lambda path: path.stem,
)
def test_parameters_may_go_into_a_settings_object(fixture, later, file, monkeypatch):
    monkeypatch.setitem(SETTINGS, "Choice", Choice)
    changes = {
        "choice": Added(NEXT, lambda file: Choice(file.get("max_iter", 128))),
        "tol": Changed(NEXT, lambda file: float(file["tol"]) / 2),
        "max_iter": Removed(NEXT),
    }
    before = load(fixture)
    kind = later(SparseKernelClassifier, changes, {"choice": None}, without=("max_iter",))
    monkeypatch.setattr(kind, "_check_parameters", lambda self: None)
    loaded = load(fixture)
    assert not hasattr(loaded, "max_iter")
    assert loaded.choice == Choice(before.max_iter)
    assert loaded.tol == float(before.tol) / 2
    save(loaded, file)
    again = load(file)
    assert (again.choice, again.tol) == (loaded.choice, loaded.tol)


def with_settings(later, monkeypatch, value):
    """Return a machine with a parameter of this value."""
    for each in (Choice, Shape):
        monkeypatch.setitem(SETTINGS, each.__name__, each)
    later(SparseKernelClassifier, {"shape": Added(NEXT)}, {"shape": None})
    machine = load(FIXTURES[0])
    machine.shape = value
    return machine


@pytest.mark.parametrize(
    "value",
    [Choice("all", per_class=True), Shape("diagonal", 7), Shape(max_iter=Choice(3))],
    ids=["dataclass", "estimator", "nested"],
)
def test_settings_objects_come_back(value, later, file, monkeypatch):
    machine = with_settings(later, monkeypatch, value)
    save(machine, file)
    assert type(load(file).shape) is type(value)
    assert repr(load(file).shape) == repr(value)


@pytest.mark.parametrize(
    ("value", "wrong", "message"),
    [
        (Choice(), ["Choice", {"n_candidates": "some", "per_class": False}], "some"),
        (Choice(), ["Choice", {"n_candidates": 1}], "missing or surplus: per_class"),
        (Choice(), ["Choice", {"n_candidates": 1, "per_class": True, "x": 1}], "surplus: x"),
        (Shape(), ["Shape", {"metric": "none", "max_iter": None}], "metric='none'"),
        (Shape(), ["Shape", {"metric": "full"}], "missing or surplus: max_iter"),
        (Shape(), ["Pipeline", {"steps": []}], "unknown settings 'Pipeline'"),
        (Shape(), ["LaRank", {}], "unknown settings 'LaRank'"),
        (Shape(), "Shape", "is no settings"),
    ],
)
def test_forged_settings_are_refused(value, wrong, message, later, file, monkeypatch):
    save(with_settings(later, monkeypatch, value), file)
    rewrite(file, lambda document: document["parameters"].update(shape={"settings": wrong}))
    with pytest.raises(ModelFileError, match=message):
        load(file)


def test_a_settings_object_that_was_fitted_is_refused(later, file, monkeypatch):
    shape = Shape()
    shape.scale_ = 3.0
    with pytest.raises(TypeError, match="shape has scale_ besides its parameters"):
        save(with_settings(later, monkeypatch, shape), file)


def rewrite(file, change):
    """Change the document of a file, and let its checksum be right."""
    with safe_open(file, framework="np") as stored:
        document = json.loads(stored.metadata()["widemargin"])
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    change(document)
    entries = [
        (name, model_files.TENSOR_TYPES[array.dtype.str], list(array.shape))
        for name, array in tensors.items()
    ]
    arrays = list(tensors.values())
    header = model_files._header(json.dumps(document), entries, arrays)
    file.write_bytes(header + b"".join(array.tobytes() for array in arrays))


def test_fields_of_objects_grow_too(later, monkeypatch, file):
    (fixture,) = [path for path in FIXTURES if path.stem == "v2_full_by_larank"]
    old = load(fixture)
    grown = make_dataclass(
        "LaRank",
        [("depth", int, 1), ("calm", bool, False)],
        bases=(LaRank,),
        frozen=True,
        namespace={
            "_file_changes": {"depth": Added(NEXT, lambda file: 9), "calm": Added(NEXT)},
        },
    )
    monkeypatch.setitem(SOLVERS, "LaRank", grown)
    later(KernelClassifier, {})
    solver = load(fixture).solver
    assert (solver.tau, solver.operations) == (old.solver.tau, old.solver.operations)
    assert (solver.depth, solver.calm) == (9, False)
    save(load(fixture), file)
    assert load(file).solver == solver
    rewrite(file, lambda document: document["parameters"]["solver"]["solver"][1].pop("depth"))
    with pytest.raises(ModelFileError, match="missing or surplus: depth"):
        load(file)


STATE = {
    "solver": "projection",
    "rounds": 3,
    "best": None,
    "scale": np.inf,
    "done": False,
    "memory": [np.arange(3.0), {"step": np.float32(0.5), "kept": np.array([True, False])}],
    "random": {
        "key": np.random.RandomState(3).get_state()[1],
        "position": 624,
        "gauss": 0.25,
        "deep": {"empty": {}, "list": [], "shape": (2, 3)},
    },
    "transposed": np.arange(6.0).reshape(2, 3).T,
}


def assert_same_state(first, second):
    assert type(first) is type(second)
    if isinstance(first, dict):
        assert list(first) == list(second)
        first, second = list(first.values()), list(second.values())
    if isinstance(first, (list, tuple)):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same_state(one, other)
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second)
    else:
        assert first == second


@pytest.mark.parametrize("mmap", [False, True])
def test_the_state_of_a_solver_comes_back(mmap, later, file):
    later(SparseKernelClassifier, {}, _optional_fitted_names=frozenset({"_state"}))
    machine = load(FIXTURES[2])
    save(machine, file)
    assert not hasattr(load(file, mmap=mmap), "_state")
    machine._state = {"data": "of these", "settings": "of those", "packed": STATE}
    save(machine, file)
    packed = load(file, mmap=mmap)._state["packed"]
    assert_same_state(packed, STATE)
    assert packed["random"]["key"].dtype == np.uint32
    np.random.RandomState(0).set_state(("MT19937", packed["random"]["key"], 624))


@pytest.mark.parametrize("wrong", [3, {"dict": [[1, 2]]}, {"dict": [["a", {"dict": [[2, 3]]}]]}])
def test_a_state_that_is_no_record_is_refused(wrong, later, file):
    later(SparseKernelClassifier, {}, _optional_fitted_names=frozenset({"_state"}))
    save(load(FIXTURES[2]), file)
    rewrite(file, lambda document: document["attributes"].update(_state=wrong))
    with pytest.raises(ModelFileError, match=r"_state.* (is no record|missing or surplus)"):
        load(file)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"classes": [0, 1], "kind": "binary", "link": None}, "classes is no list of labels"),
        ({"classes": {"array": "classes_"}, "kind": "best", "link": None}, "no kind of readout"),
        ({"classes": {"array": "classes_"}, "kind": ["binary"], "link": None}, "is no text"),
        ({"classes": {"array": "intercept_"}, "kind": "multiclass", "link": None}, "classes_"),
        ({"classes": {"array": "classes_"}, "kind": "multilabel", "link": None}, "model_"),
        (
            {"classes": {"array": "classes_"}, "kind": "binary", "link": None}
            | {"thresholds": {"array": "basis_indices_"}},
            "thresholds is of no float type",
        ),
        (
            {"classes": {"array": "classes_"}, "kind": "binary", "link": None}
            | {"thresholds": {"array": "intercept_"}},
            "number for each of 2 labels, of a multilabel readout",
        ),
        (
            {"classes": {"array": "classes_"}, "kind": "binary", "link": None}
            | {"calibration": {"array": "basis_indices_"}},
            "calibration is of no float type",
        ),
        (
            {"classes": {"array": "classes_"}, "kind": "binary", "link": None}
            | {"calibration": {"array": "basis_"}},
            "two numbers for each of 2 labels, of a multilabel readout",
        ),
    ],
)
def test_forged_readouts_are_refused(wrong, message, later, file):
    later(SparseKernelClassifier, {"readout_": Added(NEXT, made_readout)})
    (fixture,) = [path for path in FIXTURES if path.stem == "v2_linear_booleans"]
    save(load(fixture), file)
    readout = {"readout": ["Readout", {"thresholds": None, "calibration": None} | wrong]}
    rewrite(file, lambda document: document["attributes"].update(readout_=readout))
    with pytest.raises(ModelFileError, match=message):
        load(file)


def test_changes_of_today_are_of_versions_there_are():
    kinds = [*ESTIMATORS.values(), *(kind for known in OBJECTS.values() for kind in known.values())]
    changes = {
        (kind, name): each for kind in kinds for name, each in changes_after(kind, 0).items()
    }
    assert (KernelClassifier, "fit_intercept") in changes
    for (kind, name), change in changes.items():
        assert 1 < change.since <= model_files.FORMAT
        if name.endswith("_") and isinstance(change, Added):
            assert change.make is not None or name in kind._optional_fitted_names

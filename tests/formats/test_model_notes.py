"""Notes of model files: given back as they were, part of the checksum, and nothing to load."""

import pytest
from sklearn.datasets import load_iris

import widemargin
from widemargin.model_files import read_notes


@pytest.fixture(scope="module")
def machine():
    X, y = load_iris(return_X_y=True)
    return widemargin.SparseKernelClassifier(max_basis=3, random_state=0).fit(X, y)


def test_notes_come_back(machine, tmp_path):
    notes = {"target": ["species"], "n_rows": 150, "label_names": None, "naïve": {"a": 0.5}}
    widemargin.save(machine, tmp_path / "m", notes=notes)
    assert read_notes(tmp_path / "m") == notes
    X, _ = load_iris(return_X_y=True)
    again = widemargin.load(tmp_path / "m")
    assert (again.decision_function(X) == machine.decision_function(X)).all()


def test_a_file_without_notes_is_as_it_was(machine, tmp_path):
    widemargin.save(machine, tmp_path / "m")
    assert read_notes(tmp_path / "m") == {}
    assert b'"notes"' not in (tmp_path / "m").read_bytes()


def test_changed_notes_are_damage(machine, tmp_path):
    widemargin.save(machine, tmp_path / "m", notes={"target": "species"})
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(content.replace(b"species", b"spezies"))
    with pytest.raises(widemargin.ModelFileError, match="checksum"):
        widemargin.load(tmp_path / "m")


def test_what_json_has_not_is_refused(machine, tmp_path):
    with pytest.raises((TypeError, ValueError)):
        widemargin.save(machine, tmp_path / "m", notes={"machine": machine})
    with pytest.raises(ValueError, match="JSON"):
        widemargin.save(machine, tmp_path / "m", notes={"score": float("nan")})
    assert not (tmp_path / "m").exists()


def test_notes_of_what_is_no_model_file(tmp_path):
    (tmp_path / "m").write_bytes(b"nothing")
    with pytest.raises(widemargin.ModelFileError, match="not a model file"):
        read_notes(tmp_path / "m")

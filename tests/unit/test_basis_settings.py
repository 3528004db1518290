"""Settings of a basis: objects that are searched, copied, kept and shown as parameters are."""

import inspect
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import (
    ChosenBasis,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
)

STRINGS = {
    "shared": ChosenBasis(),
    "per_class": ChosenBasis(per_class=True),
    "learned": LearnedBasis(),
}
OTHERS = [
    ChosenBasis(n_candidates=7, per_class=True, gradient_tol=1e-6),
    LearnedBasis(metric="diagonal", max_iter=3, early_stopping=True, validation_fraction=0.3),
]
every_object = pytest.mark.parametrize("basis", OTHERS, ids=str)


def test_the_machine_has_few_parameters():
    # 17 with a limit of seconds.
    names = set(inspect.signature(SparseKernelClassifier).parameters) - {"max_seconds"}
    assert len(names) <= 16


@pytest.mark.parametrize("name", STRINGS)
def test_a_string_stands_for_the_defaults(name, three_classes):
    X, y = three_classes
    by_name, by_object = (
        SparseKernelClassifier(4, basis=basis, random_state=0).fit(X, y)
        for basis in (name, STRINGS[name])
    )
    assert_array_equal(by_name.decision_function(X), by_object.decision_function(X))
    assert by_name.basis == name
    assert by_object.basis is STRINGS[name]


def test_settings_are_equal_by_value():
    assert LearnedBasis() == LearnedBasis()
    assert LearnedBasis() != LearnedBasis(metric="none")
    assert ChosenBasis() != LearnedBasis()


@every_object
def test_a_fit_leaves_them_as_they_are(basis, three_classes):
    before = basis.get_params()
    machine = SparseKernelClassifier(4, basis=basis, random_state=0).fit(*three_classes)
    assert machine.basis is basis
    assert basis.get_params() == before


@every_object
def test_copies_have_their_own(basis):
    machine = SparseKernelClassifier(4, basis=basis)
    for copy in (clone(machine), pickle.loads(pickle.dumps(machine))):
        assert copy.basis == basis
        assert copy.basis is not basis
    assert machine.get_params()["basis__gradient_tol"] == basis.gradient_tol


@every_object
def test_setting_one_changes_no_other_machine(basis):
    before = basis.get_params()
    first, second = (SparseKernelClassifier(4, basis=basis) for _ in range(2))
    first.set_params(basis__gradient_tol=0.5)
    assert first.basis.gradient_tol == 0.5
    assert second.basis is basis
    third = SparseKernelClassifier().set_params(basis=basis, basis__gradient_tol=0.25)
    assert third.basis.gradient_tol == 0.25
    assert basis.get_params() == before


@every_object
def test_a_model_file_keeps_them(basis, three_classes, tmp_path):
    X, y = three_classes
    machine = SparseKernelClassifier(4, basis=basis, random_state=0).fit(X, y)
    widemargin.save(machine, tmp_path / "file")
    loaded = widemargin.load(tmp_path / "file")
    assert loaded.basis == basis
    again = clone(loaded).fit(X, y)
    assert_array_equal(again.decision_function(X), machine.decision_function(X))


def test_they_are_shown():
    machine = SparseKernelClassifier(4, basis=LearnedBasis(metric="full"))
    assert repr(machine) == (
        "SparseKernelClassifier(basis=LearnedBasis(metric='full'), max_basis=4)"
    )
    assert "LearnedBasis" in machine._repr_html_()
    assert "metric" in LearnedBasis(metric="full")._repr_html_()


def test_a_search_reaches_them(three_classes):
    X, y = three_classes
    learned = SparseKernelClassifier(3, basis=LearnedBasis(max_iter=2), random_state=0)
    grid = {"basis__metric": ["none", "full"], "basis__early_stopping": [False, True]}
    search = GridSearchCV(learned, grid, cv=2).fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.basis.max_iter == 2
    assert learned.basis == LearnedBasis(max_iter=2)
    grid = {"sparsekernelclassifier__basis": ["shared", "per_class", LearnedBasis(max_iter=2)]}
    pipeline = make_pipeline(StandardScaler(), SparseKernelClassifier(3, random_state=0))
    assert len(GridSearchCV(pipeline, grid, cv=2).fit(X, y).cv_results_["params"]) == 3
    pipeline.set_params(sparsekernelclassifier__basis=LearnedBasis())
    pipeline.set_params(sparsekernelclassifier__basis__metric="full")
    assert pipeline[-1].basis.metric == "full"


def test_the_search_of_the_library_goes_by_them(three_classes):
    X, y = three_classes
    settings = {"max_basis": [3], "Cs": [1.0, 10.0], "widths": [1.0], "cv": 2, "random_state": 0}
    search = SparseKernelClassifierCV(basis=LearnedBasis(max_iter=2), **settings).fit(X, y)
    assert search.best_estimator_.basis.max_iter == 2
    assert len(search.history_["objective"]) <= 2
    other = SparseKernelClassifierCV(basis=LearnedBasis(), **settings)
    other.set_params(basis__max_iter=2).fit(X, y)
    assert_array_equal(other.decision_function(X), search.decision_function(X))
    chosen = SparseKernelClassifierCV(basis=ChosenBasis(n_candidates="all"), **settings).fit(X, y)
    assert np.isin(chosen.basis_indices_, np.arange(len(y))).all()


def test_a_warm_start_knows_what_the_fit_before_left(three_classes, rng):
    X, y = three_classes
    chosen = SparseKernelClassifier(4, warm_start=True, random_state=0).fit(X, y)
    chosen.fit(X + rng.randn(*X.shape), y)  # whose vectors are no rows of these data
    assert (chosen.basis_indices_ == -1).all()
    with pytest.raises(ValueError, match="goes on from a learned basis"):
        chosen.set_params(basis=LearnedBasis(metric="none")).fit(X, y)

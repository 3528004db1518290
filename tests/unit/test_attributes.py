"""Attributes that are read from the model: coef_, support vectors, and what cannot be written."""

import copy
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.svm import SVC

import widemargin
from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
)
from widemargin.models import KernelExpansion, LinearMap

X, y = overlapping_classes(60, 3)
LINEAR = [
    SparseKernelClassifier(10, kernel="linear", random_state=0),
    SparseKernelClassifier(10, kernel="linear", basis="per_class", random_state=0),
    KernelClassifier(kernel="linear", random_state=0),
    KernelMIRA(kernel="linear", random_state=0),
    KernelPerceptron(kernel="linear", random_state=0),
]
RADIAL = [
    SparseKernelClassifier(10, random_state=0),
    SparseKernelClassifierCV([4], Cs=[1.0], widths=[1.0], basis="shared", random_state=0),
    KernelClassifier(random_state=0),
    KernelMIRA(random_state=0),
    KernelPerceptron(random_state=0),
]
DUAL = RADIAL[2:]
every_linear = pytest.mark.parametrize("machine", LINEAR, ids=str)
every_machine = pytest.mark.parametrize("machine", RADIAL, ids=str)
every_dual = pytest.mark.parametrize("machine", DUAL, ids=str)


def other_model(machine, n_basis=None):
    """Return a model with twice the coefficients of the machine, and other intercepts."""
    old = machine.model_
    some = slice(n_basis)
    intercept = old.intercept + np.arange(len(old.intercept)) + 1.0
    return KernelExpansion(old.kernel, old.basis[some], 2 * old.coef[some], intercept)


class TestCoef:
    @every_linear
    @pytest.mark.parametrize("n_classes", [2, 3])
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_it_gives_the_scores(self, machine, n_classes, form):
        rows, labels = form(X[y < n_classes]), y[y < n_classes]
        fitted = clone(machine).fit(rows, labels)
        assert isinstance(fitted.coef_, np.ndarray)
        assert fitted.coef_.shape == (n_classes if n_classes > 2 else 1, 4)
        scores = np.asarray(rows @ fitted.coef_.T) + fitted.intercept_
        assert_allclose(scores, fitted.decision_function(rows).reshape(scores.shape), atol=1e-9)

    @every_linear
    def test_features_are_chosen_by_it(self, machine, rng):
        wide = np.hstack([rng.randn(60, 3), X])
        importance = np.square(clone(machine).fit(wide, y).coef_).sum(axis=0)
        chosen = RFE(machine, n_features_to_select=4, step=3).fit(wide, y).support_
        assert_array_equal(np.flatnonzero(chosen), np.sort(np.argsort(importance)[3:]))
        selected = SelectFromModel(machine, max_features=2, threshold=-np.inf).fit(wide, y)
        assert selected.transform(wide).shape == (60, 2)

    @every_machine
    def test_other_kernels_have_none_and_say_so(self, machine):
        fitted = clone(machine).fit(X, y)
        assert not hasattr(fitted, "coef_")
        with pytest.raises(
            AttributeError, match=r"only a linear kernel gives.*RBF.*kernel='linear'"
        ):
            _ = fitted.coef_

    @every_linear
    def test_a_stream_has_it(self, machine):
        if not hasattr(machine, "partial_fit"):
            pytest.skip("no stream")
        stream = clone(machine).partial_fit(X, y)
        scores = X @ stream.coef_.T + stream.intercept_
        assert_allclose(scores, stream.decision_function(X), atol=1e-9)


class TestSupport:
    @every_dual
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
    def test_it_is_as_that_of_svc(self, machine, form):
        rows = form(X)
        fitted, svc = clone(machine).fit(rows, y), SVC().fit(rows, y)
        for name in ("support_", "n_support_"):
            assert getattr(fitted, name).dtype == getattr(svc, name).dtype
            assert getattr(fitted, name).ndim == getattr(svc, name).ndim
        assert fitted.n_support_.sum() == fitted.n_basis_
        # Class by class, rising within each.
        ends = np.cumsum(fitted.n_support_)[:-1]
        for number, part in enumerate(np.split(fitted.support_, ends)):
            assert (y[part] == number).all()
            assert (np.diff(part) > 0).all()
        assert_array_equal(np.sort(fitted.support_), np.sort(fitted.basis_indices_))
        vectors = fitted.support_vectors_
        assert sp.issparse(vectors) == sp.issparse(rows)
        assert abs(vectors - rows[fitted.support_]).max() == 0

    @every_dual
    def test_two_classes_count_by_class(self, machine):
        fitted = clone(machine).fit(X[y < 2], np.array(["no", "yes"])[y[y < 2]])
        assert fitted.n_support_.shape == (2,)
        assert_array_equal(fitted.n_support_, np.bincount(y[y < 2][fitted.support_]))

    @every_dual
    def test_a_stream_has_vectors_and_no_row_numbers(self, machine):
        stream = clone(machine).partial_fit(X, y)
        assert stream.n_support_.sum() == len(stream.support_vectors_) == stream.n_basis_
        assert not hasattr(stream, "support_")
        with pytest.raises(AttributeError, match="came by partial_fit"):
            _ = stream.support_

    @every_dual
    def test_a_precomputed_kernel_has_numbers_and_no_vectors(self, machine):
        fitted = clone(machine).set_params(kernel="precomputed").fit(X @ X.T, y)
        assert fitted.support_vectors_.shape == (0, 0)
        assert_array_equal(np.sort(fitted.support_), np.sort(fitted.basis_indices_))

    def test_machines_without_support_vectors_have_no_such_attributes(self):
        fitted = SparseKernelClassifier(5).fit(X, y)
        for name in ("support_", "support_vectors_", "n_support_"):
            assert not hasattr(fitted, name)

    @every_dual
    def test_an_unfitted_machine_has_none(self, machine):
        for name in ("support_", "support_vectors_", "n_support_", "basis_", "coef_"):
            with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
                getattr(clone(machine), name)


class TestWriting:
    @every_machine
    @pytest.mark.parametrize("name", ["basis_", "coef_", "dual_coef_", "intercept_", "n_basis_"])
    def test_a_part_of_the_model_cannot_be_written(self, machine, name):
        fitted = clone(machine).fit(X, y)
        before, scores = dict(vars(fitted)), fitted.decision_function(X)
        with pytest.raises(AttributeError, match=rf"{name} is read from model_.*KernelExpansion"):
            setattr(fitted, name, 0.0)
        with pytest.raises(AttributeError, match=rf"{name} is read from model_"):
            delattr(fitted, name)
        assert vars(fitted) == before
        assert_array_equal(fitted.decision_function(X), scores)

    @every_machine
    @pytest.mark.parametrize("n_basis", [None, 3])
    def test_another_model_takes_the_place_of_the_old(self, machine, n_basis, tmp_path):
        fitted = clone(machine).fit(X, y)
        model = other_model(fitted, n_basis)
        fitted.model_ = model
        assert fitted.basis_ is model.basis
        assert fitted.dual_coef_ is model.coef
        assert fitted.intercept_ is model.intercept
        assert fitted.n_basis_ == model.n_basis == len(fitted.basis_indices_)
        assert_array_equal(fitted.decision_function(X), model.scores(X))
        widemargin.save(fitted, tmp_path / "file")
        for each in (
            pickle.loads(pickle.dumps(fitted)),
            copy.deepcopy(fitted),
            widemargin.load(tmp_path / "file"),
            fitted.compile("float64"),
        ):
            assert_array_equal(each.decision_function(X), model.scores(X))

    def test_stages_end_with_the_new_model(self):
        fitted = SparseKernelClassifier(10, random_state=0).fit(X, y)
        count = len(list(fitted.staged_decision_function(X)))
        fitted.model_ = other_model(fitted)
        *_, last = stages = list(fitted.staged_decision_function(X))
        assert len(stages) == count
        assert_array_equal(last, fitted.decision_function(X))
        fitted.model_ = other_model(fitted, 3)
        (last,) = fitted.staged_decision_function(X)
        assert_array_equal(last, fitted.decision_function(X))

    @every_dual
    def test_a_stream_does_not_go_on_from_a_model_it_has_not_learned(self, machine, tmp_path):
        for learned in (clone(machine).fit(X, y), clone(machine).partial_fit(X, y)):
            rows = learned.n_basis_
            learned.model_ = other_model(learned)
            assert learned.n_support_.sum() == rows
            widemargin.save(learned, tmp_path / "file")
            for each in (learned, widemargin.load(tmp_path / "file")):
                with pytest.raises(ValueError, match="not the one that this machine has learned"):
                    each.partial_fit(X, y)
                assert_array_equal(each.dual_coef_, learned.dual_coef_)
            clone(learned).partial_fit(X, y)

    def test_a_warm_start_does_not_go_on_from_it_either(self):
        fitted = KernelClassifier(warm_start=True, random_state=0).fit(X, y)
        fitted.model_ = other_model(fitted)
        with pytest.raises(ValueError, match="not the one that this machine has learned"):
            fitted.fit(X, y)
        fitted.set_params(warm_start=False).fit(X, y)
        fitted.set_params(warm_start=True).fit(X, y)

    @every_machine
    def test_what_is_no_model_of_the_problem_is_refused(self, machine):
        fitted = clone(machine).fit(X, y)
        old = fitted.model_
        for wrong, error in (
            (None, TypeError),
            (LinearMap(np.zeros((4, 3)), np.zeros(3)), TypeError),
            (KernelExpansion(old.kernel, old.basis[:, :2], old.coef, old.intercept), ValueError),
            (KernelExpansion(old.kernel, old.basis, old.coef[:, :1], np.zeros(1)), ValueError),
        ):
            with pytest.raises(error, match="model_ must be"):
                fitted.model_ = wrong
        assert fitted.model_ is old

    def test_pickles_that_stored_parts_beside_the_model_load(self):
        fitted = SparseKernelClassifier(5, random_state=0).fit(X, y)
        state = fitted.__getstate__() | {"basis_": np.zeros(1), "intercept_": np.zeros(3)}
        again = SparseKernelClassifier()
        again.__setstate__(state)
        assert again.basis_ is fitted.model_.basis
        assert "basis_" not in vars(again)


@every_machine
def test_no_link_to_the_documentation_of_others(machine):
    for each in (clone(machine), clone(machine).fit(X, y)):
        assert each._get_doc_link() == ""
        html = each._repr_html_()
        assert not re.search(r'href="?https?://', html)
        assert f"Documentation for {type(each).__name__}" not in html

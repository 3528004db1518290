"""Messages: they stand where users look, name the place, and say what to write instead."""

import pickle
import warnings

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import widemargin
from widemargin import (
    ChosenBasis,
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    compress,
)
from widemargin.solvers.duals.larank import LaRank

X, y = overlapping_classes(60, 3)
MACHINES = [
    SparseKernelClassifier(5, random_state=0),
    SparseKernelClassifier(5, basis=LearnedBasis(max_iter=2), random_state=0),
    SparseKernelClassifierCV([4], Cs=[1.0], widths=[1.0], basis="shared", random_state=0),
    KernelClassifier(random_state=0),
    KernelMIRA(random_state=0),
    KernelPerceptron(random_state=0),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=str)
STREAMS = MACHINES[3:]


class TestText:
    """Text among the features, and labels that are not there."""

    @staticmethod
    def rows_with_text():
        rows = X.astype(object)
        rows[7, 2] = "Paris"
        rows[9, 3] = "12.5"  # text that is a number, and as such taken
        return rows

    @every_machine
    def test_the_column_the_row_and_an_encoder_are_named(self, machine):
        rows = self.rows_with_text()
        words = r"text in column 2, 'Paris' in row 7.*OneHotEncoder or OrdinalEncoder"
        fitted = clone(machine).fit(X, y)
        for method in (
            lambda: clone(machine).fit(rows, y),
            lambda: clone(machine).fit(rows.tolist(), y),
            lambda: fitted.predict(rows),
            lambda: fitted.decision_function(rows),
            lambda: compress(fitted, 3, rows),
        ):
            with pytest.raises(ValueError, match=words):
                method()
        with pytest.raises(TypeError, match=words):
            fitted.compile().predict(rows)
        with pytest.raises(ValueError, match="text in column 0, 'a' in row 0"):
            clone(machine).fit(np.full((60, 4), "a"), y)

    @pytest.mark.parametrize("machine", STREAMS, ids=str)
    def test_a_stream_says_it_too(self, machine):
        stream = clone(machine)
        with pytest.raises(ValueError, match="text in column 2, 'Paris' in row 7"):
            stream.partial_fit(self.rows_with_text(), y)
        with pytest.raises(ValueError, match="row 1"):
            stream.partial_fit(X[:3], ["a", None, "b"], classes=["a", "b"])
        assert vars(stream) == vars(clone(machine))

    def test_columns_of_a_frame_are_named(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abcd"))
        for column in (["x", "y"] * 30, pd.Categorical(["x", "y"] * 30)):
            with pytest.raises(ValueError, match="text in column 'city', 'x' in row 0"):
                SparseKernelClassifier(5).fit(frame.assign(city=column), y)
        with pytest.raises(ValueError, match="dates or times in column 'day'"):
            SparseKernelClassifier(5).fit(frame.assign(day=pd.Timestamp("2024-02-29")), y)
        fitted = SparseKernelClassifier(5, random_state=0).fit(frame, y)
        # Of two things wrong, the names come first.
        with pytest.raises(ValueError, match="Feature names unseen"):
            fitted.predict(frame.assign(city="x"))

    def test_other_mistakes_keep_their_message(self):
        with pytest.raises(ValueError, match="contains NaN"):
            SparseKernelClassifier(5).fit(np.where(X > 2, np.nan, X), y)
        with pytest.raises(ValueError, match=r"inhomogeneous|sequence"):
            SparseKernelClassifier(5).fit([[1.0, 2.0], [1.0], [2.0, 3.0]], [0, 1, 0])
        with pytest.raises(ValueError, match="Unknown label type"):
            SparseKernelClassifier(5).fit(X, X[:, 0])

    @every_machine
    @pytest.mark.parametrize("missing", [None, np.nan, float("nan")], ids=["None", "NaN", "nan"])
    def test_the_row_without_a_label_is_named(self, machine, missing):
        labels = np.array(["a", "b", "c"], dtype=object)[y]
        labels[[11, 40]] = missing
        what = "None" if missing is None else "NaN"
        for form in (labels, labels.tolist()):
            with pytest.raises(
                ValueError, match=f"y contains {what}: .* row 11, and in 1 more.*fill it in"
            ):
                clone(machine).fit(X, form)

    def test_missing_labels_of_any_kind(self):
        pd = pytest.importorskip("pandas")
        number = y.astype(float)
        number[5] = np.nan
        for labels in (
            number,
            [None if row == 5 else label for row, label in enumerate(y.tolist())],
            pd.Series(number),
            pd.Series(number).astype("Int64"),
            pd.Series(np.where(np.arange(60) == 5, None, ["a", "b", "c"] * 20)),
        ):
            with pytest.raises(ValueError, match="no label in row 5"):
                SparseKernelClassifier(5).fit(X, labels)


class TestMethodsThatAreNotThere:
    @every_machine
    @pytest.mark.parametrize("name", ["predict_proba", "predict_log_proba"])
    def test_the_advice_stands_in_the_message(self, machine, name):
        for each in (clone(machine), clone(machine).fit(X, y)):
            assert not hasattr(each, name)
            with pytest.raises(
                AttributeError, match=f"'{name}': .*scores, not probabilities.*Calibrated"
            ):
                getattr(each, name)
            with pytest.raises(AttributeError, match="scores, not probabilities"):
                getattr(type(each), name)(each, X)  # unbound

    def test_where_it_is_there_it_works_bound_and_unbound(self):
        fitted = SparseKernelClassifier(5, loss="logistic", random_state=0).fit(X, y)
        probabilities = fitted.predict_proba(X)
        assert_array_equal(SparseKernelClassifier.predict_proba(fitted, X), probabilities)
        assert_allclose(np.exp(fitted.predict_log_proba(X)), probabilities)
        assert fitted.predict_proba.__doc__ == SparseKernelClassifier.predict_proba.__doc__
        assert fitted.predict_proba.__name__ == "predict_proba"
        assert_array_equal(pickle.loads(pickle.dumps(fitted.predict_proba))(X), probabilities)

    def test_partial_fit(self):
        for machine, words in (
            (KernelClassifier(solver="full_gradient"), "'partial_fit': .*solver='larank'"),
            (KernelMIRA(kernel="precomputed"), "'partial_fit': .*precomputed kernel"),
        ):
            assert not hasattr(machine, "partial_fit")
            with pytest.raises(AttributeError, match=words):
                machine.partial_fit(X, y)


class TestSettingsWithoutUse:
    @pytest.mark.parametrize("basis", ["shared", "per_class", "learned"])
    def test_a_string_has_no_settings(self, basis):
        kind = "LearnedBasis" if basis == "learned" else "ChosenBasis"
        for machine in (SparseKernelClassifier(5, basis=basis), SparseKernelClassifierCV()):
            machine.basis = basis
            words = rf"basis__n_jobs cannot be set where basis is '{basis}'.*widemargin\.{kind}\(\)"
            with pytest.raises(ValueError, match=words):
                machine.set_params(basis__n_jobs=1, max_basis=3)
            assert machine.max_basis != 3

    @pytest.mark.parametrize("basis", [ChosenBasis(), ChosenBasis(per_class=True)], ids=str)
    def test_those_of_another_basis(self, basis):
        machine = SparseKernelClassifier(5, basis=basis)
        with pytest.raises(
            ValueError, match="Invalid parameter 'metric' for estimator ChosenBasis"
        ):
            machine.set_params(basis__metric="full")
        machine.set_params(basis=LearnedBasis(), basis__metric="full")
        with pytest.raises(ValueError, match="Invalid parameter 'n_candidates'"):
            machine.set_params(basis__n_candidates=20)

    def test_the_search_shares_its_vectors(self):
        for basis in ("per_class", ChosenBasis(per_class=True)):
            search = SparseKernelClassifierCV([4], basis=basis)
            with pytest.raises(ValueError, match="for a basis that all classes share; got basis="):
                search.fit(X, y)
            assert not hasattr(search, "classes_")

    @pytest.mark.parametrize(
        "settings", [{"solver": "full_gradient"}, {"kernel": "precomputed"}], ids=str
    )
    def test_a_budget_of_machines_that_have_no_stream(self, settings):
        rows = X @ X.T if "kernel" in settings else X
        with pytest.raises(ValueError, match=r"budget=10 is a limit of partial_fit.*None"):
            KernelClassifier(budget=10, **settings).fit(rows, y)
        for solver in ("larank", LaRank()):
            KernelClassifier(budget=10, solver=solver).fit(X, y)


class TestSizes:
    @pytest.mark.parametrize("basis", ["shared", "per_class", "learned"])
    def test_more_vectors_than_rows_warn_once(self, basis):
        machine = SparseKernelClassifier(61, basis=basis, random_state=0)
        with pytest.warns(UserWarning, match="max_basis=61 is more than the 60 rows") as caught:
            fitted = machine.fit(X, y)
        about = [each for each in caught if "max_basis" in str(each.message)]
        assert len(about) == 1
        assert about[0].filename == __file__
        assert fitted.n_basis_ <= 60
        with pytest.warns(UserWarning, match="the 30 rows to learn from"):
            machine.set_params(max_basis=31).fit(X, y, sample_weight=np.arange(60) < 30)

    def test_as_many_vectors_as_rows_do_not(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            SparseKernelClassifier(60, random_state=0).fit(X, y)
            warm = SparseKernelClassifier(60, warm_start=True, random_state=0).fit(X, y)
            warm.set_params(max_basis=100).fit(X[:50], y[:50])  # it may have vectors of before


class TestInfiniteC:
    @pytest.mark.parametrize("make", [KernelClassifier, SparseKernelClassifier])
    @pytest.mark.parametrize("C", [np.inf, float("inf"), np.float32("inf")], ids=repr)
    def test_it_says_why_not_and_what_to_write(self, make, C):
        with pytest.raises(ValueError, match=r"C=inf asks for .*separated.*such as 1e6"):
            make(C=C).fit(X, y)
        with pytest.raises(ValueError, match="C must be"):
            make(C=-np.inf).fit(X, y)

    def test_mira_without_a_cap(self, tmp_path):
        free = KernelMIRA(C=np.inf, shuffle=False).fit(X, y)
        wide = KernelMIRA(C=1e12, shuffle=False).fit(X, y)
        capped = KernelMIRA(C=0.1, shuffle=False).fit(X, y)
        assert_array_equal(free.dual_coef_, wide.dual_coef_)
        assert np.abs(capped.dual_coef_).max() == pytest.approx(0.1)
        assert np.abs(free.dual_coef_).max() > 0.1
        widemargin.save(free, tmp_path / "file")
        loaded = widemargin.load(tmp_path / "file")
        assert np.isinf(loaded.C)
        assert_array_equal(loaded.partial_fit(X, y).dual_coef_, free.partial_fit(X, y).dual_coef_)

    def test_mira_without_a_cap_learns_no_row_of_weight_zero(self):
        weights = np.arange(60) % 2 * 3.0
        free = KernelMIRA(C=np.inf, shuffle=False).fit(X, y, sample_weight=weights)
        assert (free.basis_indices_ % 2 == 1).all()
        odd = KernelMIRA(C=np.inf, shuffle=False, gamma=free.model_.kernel.gamma)
        odd.fit(X[1::2], y[1::2])
        assert_allclose(odd.decision_function(X), free.decision_function(X), atol=1e-6)

    def test_mira_without_a_cap_passes_rows_that_it_cannot_put_right(self):
        rows = np.vstack([np.zeros((3, 4)), X])  # of the linear kernel, zeros score zero
        free = KernelMIRA(C=np.inf, kernel="linear", shuffle=False, fit_intercept=False)
        free.fit(rows, np.concatenate([[0, 1, 2], y]))
        assert np.isfinite(free.dual_coef_).all()
        assert (free.basis_indices_ >= 3).all()

    def test_mira_refuses_what_is_no_number(self):
        for C in (-np.inf, np.nan, "inf"):
            with pytest.raises((ValueError, TypeError), match="C must be"):
                KernelMIRA(C=C).fit(X, y)

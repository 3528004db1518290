"""The classifier that chooses its own settings: what it leaves, settings, errors, callbacks."""

import inspect
import pickle
import re
import warnings
from itertools import product
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import widemargin
from widemargin import ChosenBasis, LearnedBasis
from widemargin.sparse_kernel import search as _search
from widemargin.sparse_kernel import searching as _searching
from widemargin.sparse_kernel.classifier import SparseKernelClassifier
from widemargin.sparse_kernel.cv import SparseKernelClassifierCV
from widemargin.sparse_kernel.search import Search

LEAST_CHECKS = 50
NEEDS_AN_ENVIRONMENT_VARIABLE = {"check_array_api_input"}
pytestmark = pytest.mark.turns("basis", "random_state")
# Learned within few moves; the second has one metric, and nothing that would be screened.
BRIEFLY = LearnedBasis(max_iter=4)
PLAIN = LearnedBasis(metric="none", linear_part=False, max_iter=4)


def quick(**parameters):
    """Return a classifier with little to choose from."""
    settings = {"max_basis": (3, 6), "Cs": (1.0, 10.0), "widths": (1.0,), "cv": 2}
    parameters = {"random_state": 0, "basis": BRIEFLY} | parameters
    return SparseKernelClassifierCV(**settings | parameters)


def one(**parameters):
    """Return a classifier with nothing to choose from."""
    return quick(**{"max_basis": 3, "Cs": (10.0,), "basis": PLAIN} | parameters)


@pytest.fixture(scope="module")
def data():
    return overlapping_classes(90, 3)


@pytest.fixture(scope="module")
def fitted(data):
    return quick(basis="learned").fit(*data)


@pytest.fixture(scope="module")
def brief(data):
    return quick().fit(*data)


class TestWhatAFitLeaves:
    def test_the_choice_is_one_of_those_that_were_offered(self, fitted):
        assert set(fitted.best_params_) == {"C", "gamma", "max_basis", "basis"}
        assert fitted.best_params_["C"] in (1.0, 10.0)
        assert fitted.best_params_["basis"].metric in ("none", "diagonal", "full")
        assert fitted.best_params_["max_basis"] in (3, 6)
        assert fitted.n_basis_ == fitted.best_params_["max_basis"] == fitted.model_.n_basis
        assert fitted.n_splits_ == 2

    def test_results_are_a_table(self, fitted):
        results = fitted.cv_results_
        assert {len(column) for column in results.values()} == {9}
        assert_array_equal(results["stage"], ["screen"] * 7 + ["size", "size"])
        screened = list(zip(results["param_metric"][:6], results["param_C"][:6], strict=True))
        assert screened == list(product(("none", "diagonal", "full"), (1.0, 10.0)))
        # The best of them is tried with a linear part, too.
        assert_array_equal(results["param_linear_part"][:7], [False] * 6 + [True])
        assert (results["param_metric"][6], results["param_C"][6]) in screened
        assert_array_equal(results["param_max_basis"][7:], [3, 6])
        assert results["n_basis"][7] == 3
        assert 3 < results["n_basis"][8] <= 6  # units that meet are merged
        each = np.array([results[f"split{number}_test_score"] for number in range(2)])
        assert_allclose(results["mean_test_score"], each.mean(axis=0))
        assert_allclose(results["std_test_score"], each.std(axis=0))
        assert (results["mean_fit_time"] > 0).all()
        assert (results["mean_test_loss"] > 0).all()
        assert fitted.best_score_ == results["mean_test_score"][fitted.best_index_]
        chosen = results["params"][fitted.best_index_]
        assert chosen["C"] == fitted.best_params_["C"]
        assert chosen["metric"] == fitted.best_params_["basis"].metric
        assert chosen["linear_part"] == fitted.best_params_["basis"].linear_part

    def test_values_of_c_that_were_given_are_told_to_the_bit(self, data):
        for C in (1 / 3, 1e5):  # beyond those that are looked at where none are given
            machine = one(Cs=(C,), basis="shared").fit(*data)
            assert machine.cv_results_["param_C"] == machine.best_params_["C"] == machine.C_ == C
            assert np.isnan(machine.cv_results_["mean_test_loss"]).all()  # nothing was stopped

    def test_columns_are_arrays_of_their_own(self, fitted):
        for name, column in fitted.cv_results_.items():
            if name != "params":
                assert column.flags.c_contiguous, name
                assert column.flags.owndata, name

    def test_a_file_keeps_it_all(self, fitted, data, tmp_path):
        widemargin.save(fitted, tmp_path / "model")
        loaded = widemargin.load(tmp_path / "model")
        assert loaded.best_params_ == fitted.best_params_
        assert loaded.best_score_ == fitted.best_score_
        assert loaded.best_estimator_.get_params() == fitted.best_estimator_.get_params()
        for name, column in fitted.cv_results_.items():
            assert_array_equal(loaded.cv_results_[name], column)
        expected = fitted.decision_function(data[0])
        assert_array_equal(loaded.best_estimator_.decision_function(data[0]), expected)

    def test_a_file_keeps_no_code(self, data, tmp_path):
        for parameters in ({"cv": StratifiedKFold(2)}, {"scoring": make_scorer(accuracy_score)}):
            machine = one(**parameters).fit(*data)
            (name,) = parameters
            with pytest.raises(TypeError, match=f"{name} is .* a model file cannot hold"):
                widemargin.save(machine, tmp_path / "model")
            widemargin.save(machine.best_estimator_, tmp_path / "model")

    def test_the_machine_predicts_the_same(self, fitted, data):
        machine = fitted.best_estimator_
        assert isinstance(machine, SparseKernelClassifier)
        assert machine.get_params()["max_basis"] == fitted.best_params_["max_basis"]
        for method in ("predict", "decision_function"):
            expected = getattr(fitted, method)(data[0])
            assert_array_equal(getattr(machine, method)(data[0]), expected)
        assert_array_equal(fitted.compile().predict(data[0]), fitted.predict(data[0]))

    @pytest.mark.parametrize("basis", ["learned", "shared"])
    @pytest.mark.parametrize("random_state", [0, None, np.random.RandomState(3)], ids=str)
    def test_a_clone_of_the_machine_refits_to_the_bit(self, data, basis, random_state):
        basis = PLAIN if basis == "learned" else basis
        settings = {"basis": basis, "widths": (0.5,), "random_state": random_state}
        fitted = one(**settings).fit(*data)
        again = clone(fitted.best_estimator_).fit(*data)
        assert_array_equal(again.basis_, fitted.basis_)
        assert_array_equal(again.dual_coef_, fitted.dual_coef_)
        assert_array_equal(again.intercept_, fitted.intercept_)
        assert again.objective_ == fitted.objective_

    def test_every_attribute_is_documented(self, data):
        pandas = pytest.importorskip("pandas")
        basis = LearnedBasis(metric="none", linear_part=True, max_iter=4)
        fitted = one(basis=basis).fit(pandas.DataFrame(data[0], columns=list("abcd")), data[1])
        there = {name for name in dir(fitted) if name.endswith("_") and not name.startswith("_")}
        text = inspect.getdoc(SparseKernelClassifierCV).split("Attributes\n---")[1]
        text = text.split("See Also\n---")[0]
        titles = re.findall(r"^(\w[^:\n]*) :", text, flags=re.MULTILINE)
        documented = {name.strip() for title in titles for name in title.split(",")}
        assert documented == {name for name in there if hasattr(fitted, name)}  # no coef_

    def test_the_best_or_the_fewest(self, data, brief):
        best = quick(one_standard_error=False).fit(*data)
        scores = best.cv_results_["mean_test_score"][-2:]
        assert best.best_score_ == scores.max()
        assert brief.n_basis_ <= best.n_basis_

    def test_probabilities_come_with_the_logistic_loss(self, data, fitted):
        assert not hasattr(fitted, "predict_proba")
        machine = one(loss="logistic", scoring="neg_log_loss").fit(*data)
        assert_allclose(machine.predict_proba(data[0]).sum(axis=1), 1)
        assert machine.best_score_ < 0
        assert machine.score(*data) < 0

    def test_a_pickle_predicts_the_same(self, fitted, data):
        copy = pickle.loads(pickle.dumps(fitted))
        assert_array_equal(copy.decision_function(data[0]), fitted.decision_function(data[0]))

    def test_a_fit_anew_leaves_nothing_of_the_one_before(self, data):
        machine = one().fit(*data)
        machine.set_params(refit=False).fit(*data)
        assert machine.best_params_["max_basis"] == 3
        for use in (machine.predict, machine.decision_function):
            with pytest.raises(NotFittedError, match="refit=False"):
                use(data[0])
        with pytest.raises(NotFittedError, match="refit=False"):
            machine.compile()
        with pytest.raises(NotFittedError, match="refit=False"):
            widemargin.save(machine, "never written")
        assert not hasattr(machine, "model_")
        with pytest.raises(NotFittedError, match="refit=False"):
            _ = machine.best_estimator_

    def test_before_a_fit_there_is_no_machine(self, data):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            quick().predict(data[0])
        assert not hasattr(clone(quick()), "best_estimator_")

    def test_an_interrupt_leaves_all_as_it_was(self, data, monkeypatch):
        machine = one().fit(*data)
        before = dict(vars(machine))

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(Search, "grow", interrupt)
        with pytest.raises(KeyboardInterrupt):
            machine.fit(data[0][:60], data[1][:60])
        assert vars(machine) == before


class TestSettings:
    def test_a_seed_repeats_to_the_bit(self, brief, data):
        again = quick().fit(*data)
        assert again.best_params_ == brief.best_params_
        for name in ("mean_test_score", "std_test_score", "mean_test_loss"):
            assert_array_equal(again.cv_results_[name], brief.cv_results_[name])
        assert_array_equal(again.decision_function(data[0]), brief.decision_function(data[0]))

    @pytest.mark.parametrize("basis", ["learned", "shared"])
    def test_widths_are_factors_of_the_start(self, data, basis):
        basis = PLAIN if basis == "learned" else basis
        machine = quick(basis=basis, widths=(0.5, 2.0), Cs=(1.0,), max_basis=4).fit(*data)
        assert set(machine.cv_results_["param_width"]) == {0.5, 2.0}
        width = machine.cv_results_["param_width"][machine.best_index_]
        other = quick(basis=basis, widths=(2.5 - width,), Cs=(1.0,), max_basis=4).fit(*data)
        ratio = machine.best_params_["gamma"] / other.best_params_["gamma"]
        assert_allclose(ratio, width / (2.5 - width))

    def test_a_factor_of_nearly_one_is_the_scale_itself(self, data):
        named, factor = (one(widths=(width,)).fit(*data) for width in (1.0, 1 + 1e-12))
        assert named.best_params_["gamma"] == "scale"
        assert_allclose(
            factor.decision_function(data[0]), named.decision_function(data[0]), atol=1e-3
        )

    def test_a_single_setting_is_not_screened(self, data):
        machine = quick(max_basis=4, Cs=[10.0], basis=PLAIN).fit(*data)
        assert_array_equal(machine.cv_results_["stage"], ["size"])
        expected = {"C": 10.0, "gamma": "scale", "max_basis": 4, "basis": PLAIN}
        assert machine.best_params_ == expected
        # So with a C that machines choose.
        machine = quick(max_basis=4, Cs="auto", basis=PLAIN).fit(*data)
        assert_array_equal(machine.cv_results_["stage"], ["size"])
        machine = quick(max_basis=4, Cs=[10.0], basis="shared").fit(*data)
        assert_array_equal(machine.cv_results_["stage"], ["size"])
        assert machine.best_params_ == {"C": 10.0, "gamma": "scale", "max_basis": 4}

    def test_a_splitter_or_splits(self, data):
        splitter = StratifiedKFold(3)
        splits = list(splitter.split(*data))
        masks = [(np.isin(np.arange(90), train), test) for train, test in splits]
        by_splitter, *others = (one(cv=cv).fit(*data) for cv in (splitter, splits, masks))
        for other in others:
            assert_array_equal(
                other.cv_results_["mean_test_score"], by_splitter.cv_results_["mean_test_score"]
            )

    def test_sparse_rows(self, data):
        X = data[0] * (data[0] > 0)
        dense, sparse = (one(Cs=(1.0, 10.0)).fit(rows, data[1]) for rows in (X, sp.csr_matrix(X)))
        assert dense.best_params_ == sparse.best_params_
        for name in ("mean_test_score", "mean_test_loss"):
            assert_array_equal(dense.cv_results_[name], sparse.cv_results_[name])

    def test_few_rows_of_many(self, data, monkeypatch):
        monkeypatch.setattr(_search, "SCREEN_ROWS", 30)
        # All settings are about as good, so that two metrics are judged once more.
        scoring = lambda machine, X, y: 0.5  # noqa: E731
        results = quick(cv=3, Cs=(1.0,), scoring=scoring, refit=False).fit(*data).cv_results_
        stage = results["stage"]
        assert_array_equal(stage, ["screen"] * 4 + ["metric"] * 2 + ["size"] * 2)
        assert_array_equal(results["n_rows"], np.where(stage == "screen", 30, 60))
        assert_array_equal(np.isnan(results["split2_test_score"]), stage != "size")
        assert len(set(results["param_metric"][stage == "metric"])) == 2

    def test_more_splits_decide_between_metrics_of_few_rows(self, data):
        scoring = lambda machine, X, y: 0.5  # noqa: E731
        splits = list(StratifiedKFold(6).split(*data))
        machine = quick(cv=splits, Cs=(1.0,), max_basis=3, scoring=scoring, refit=False).fit(*data)
        results = machine.cv_results_
        assert_array_equal(results["stage"], ["screen"] * 4 + ["metric"] * 2 + ["size"])
        assert_array_equal(np.isnan(results["split5_test_score"]), results["stage"] == "screen")

    def test_a_middle_size_is_screened(self, data):
        results = quick(max_basis="auto", Cs=(1.0,), refit=False).fit(*data).cv_results_
        sizes, screened = results["param_max_basis"], results["stage"] == "screen"
        assert set(sizes[screened]) == {6}  # 45 rows, and about 8 of them a vector
        grown = sizes[results["stage"] == "size"]
        assert_array_equal(grown, [3, 6, 12][: len(grown)])

    def test_c_is_looked_at_once_more_at_the_size_that_was_chosen(self, data):
        machine = quick(Cs="auto", basis="shared").fit(*data)
        results = machine.cv_results_
        last = results["stage"] == "C"
        assert last.any()
        assert set(results["param_max_basis"][last]) == {machine.best_params_["max_basis"]}
        judged = results["params"][machine.best_index_]
        assert results["stage"][machine.best_index_] in ("size", "C")
        assert judged["C"] == machine.best_params_["C"] == machine.C_

    def test_the_time_is_over_before_anything_is_found(self, data):
        for basis in ("learned", "shared"):
            with pytest.warns(ConvergenceWarning, match="max_seconds=1e-06") as caught:
                machine = quick(basis=basis, Cs="auto", max_seconds=1e-6).fit(*data)
            assert {warning.filename for warning in caught} == {__file__}
            stages = machine.cv_results_["stage"]
            assert len(set(stages)) == 2  # of each stage, what could not be less
            assert machine.n_basis_ <= machine.best_params_["max_basis"] == 3
            assert np.isfinite(machine.decision_function(data[0])).all()

    @pytest.mark.parametrize("basis", ["learned", "shared"])
    def test_the_time_is_over_in_the_middle_of_a_search(self, data, basis, monkeypatch):
        """The clock runs out after two sizes of four, the second of which is the best."""
        late = []
        clock = SimpleNamespace(perf_counter=lambda: 1e9 if late else 0.0)
        monkeypatch.setattr(_search, "time", clock)

        def scoring(machine, X, y):
            if machine.max_basis == 12:  # 3 is the one that is screened
                late.append(True)
            return machine.max_basis / 100

        basis = PLAIN if basis == "learned" else basis
        settings = {"max_basis": (3, 12, 18, 24), "Cs": "auto", "basis": basis, "max_seconds": 1e6}
        with pytest.warns(
            ConvergenceWarning, match=r"max_seconds=1e\+06, after \d+ cand"
        ) as caught:
            machine = quick(scoring=scoring, one_standard_error=False, **settings).fit(*data)
        assert len(caught) == 1
        results = machine.cv_results_
        assert_array_equal(results["param_max_basis"][results["stage"] == "size"], [3, 12])
        assert "C" not in results["stage"]
        assert machine.best_params_["max_basis"] == 12
        assert machine.best_score_ == results["mean_test_score"].max()
        assert f"after {len(results['stage'])} candidates" in str(caught[0].message)
        assert machine.stop_reason_ != "max_seconds"  # the last fit has had its time

    def test_in_a_pipeline(self, data):
        pipeline = make_pipeline(StandardScaler(), one()).fit(*data)
        assert pipeline.score(*data) > 0.5

    def test_feature_names(self, data):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame(data[0], columns=list("abcd"))
        machine = one().fit(frame, data[1])
        assert_array_equal(machine.feature_names_in_, list("abcd"))
        assert_array_equal(machine.best_estimator_.feature_names_in_, list("abcd"))


class TestWeights:
    @pytest.mark.parametrize("cv", [2, StratifiedKFold(2)], ids=["folds", "splitter"])
    @pytest.mark.thorough
    def test_rows_without_weight_do_not_count(self, data, cv):
        X, y = data
        weights = np.ones(len(y))
        weights[::5] = 0
        wrong = np.where(weights > 0, y, (y + 1) % 3)
        far = np.where(weights[:, None] > 0, X, [1e6, 0.0, 0.0, 0.0])
        settings = {"cv": cv, "Cs": "auto", "max_basis": 3}
        one, other = (
            quick(**settings).fit(rows, labels, weights) for rows, labels in ((X, y), (far, wrong))
        )
        assert set(other.cv_results_["param_metric"]) == {"none", "diagonal", "full"}
        if cv == 2:  # the other splits them by their labels
            fewer = quick(**settings).fit(X[weights > 0], y[weights > 0])
            for name in ("mean_test_score", "mean_test_loss", "param_C"):
                assert_array_equal(one.cv_results_[name], fewer.cv_results_[name])
                assert_array_equal(one.cv_results_[name], other.cv_results_[name])
            assert_array_equal(one.decision_function(X), other.decision_function(X))
        assert one.cv_results_["n_rows"].max() <= 40

    def test_a_class_weighs_as_much_as_its_rows(self, data):
        X, y = data
        settings = {"Cs": "auto", "refit": False}
        by_class = one(class_weight={0: 3.0, 1: 1.0, 2: 0.5}, **settings).fit(X, y)
        by_row = one(**settings).fit(X, y, np.array([3.0, 1.0, 0.5])[y])
        for name in ("mean_test_loss", "param_C"):
            assert_allclose(by_class.cv_results_[name], by_row.cv_results_[name], rtol=1e-9)
        balanced = one(class_weight="balanced", **settings).fit(X[10:], np.minimum(y[10:], 1))
        assert np.isfinite(balanced.cv_results_["mean_test_loss"]).all()

    def test_weights_count_in_scores(self, data):
        X, y = data
        seen = []

        def metric(y_true, y_pred, sample_weight=None):
            seen.append(sample_weight)
            return float(np.average(y_true == y_pred, weights=sample_weight))

        one(scoring=make_scorer(metric)).fit(X, y, np.arange(1.0, 91.0))
        assert all(weights is not None for weights in seen)
        assert_array_equal(np.sort(np.concatenate(seen[:2])), np.arange(1.0, 91.0))


@pytest.fixture(scope="module")
def searched(data):
    """A search, and its machines in the order in which they were judged."""
    judged = []

    def write_down(*args, **options):
        judged.append(fit_and_score(*args, **options))
        return judged[-1]

    fit_and_score = _search.fit_and_score
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_search, "fit_and_score", write_down)
        machine = quick(Cs="auto", widths="auto", basis=LearnedBasis(max_iter=10)).fit(*data)
    return machine, judged


class TestMachinesChooseC:
    """Each machine with a learned basis chooses C by the rows that judge it."""

    def test_it_is_the_geometric_mean_over_the_splits(self, searched):
        machine, judged = searched
        results = machine.cv_results_
        # The size that metrics were compared at was judged then, and is not learned once more.
        names = ("metric", "width", "max_basis", "linear_part")
        settings = list(zip(*(results[f"param_{name}"].tolist() for name in names), strict=True))
        fresh = [settings.index(each) for each in dict.fromkeys(settings)]
        assert len(judged) == 2 * len(fresh) == 2 * (len(settings) - 1)
        (again,) = set(range(len(settings))) - set(fresh)
        assert results["stage"][again] == "size"
        assert results["mean_test_score"][again] in results["mean_test_score"][:5]
        each = np.array([one.machine.C_ for one in judged]).reshape(-1, 2)
        assert len(np.unique(each)) > 2  # they do choose
        assert_allclose(results["param_C"][fresh], np.sqrt(each.prod(axis=1)))
        losses = np.array([one.loss for one in judged]).reshape(-1, 2)
        assert_allclose(results["mean_test_loss"][fresh], losses.mean(axis=1))
        assert all(one.machine.C == "auto" for one in judged)
        assert not any(hasattr(one.machine, "_trial") for one in judged)  # nor the rows kept

    def test_stages(self, searched):
        machine, _ = searched
        results = machine.cv_results_
        # Metrics, a wide start for the best of them, a linear part for the best of these.
        assert_array_equal(results["stage"], ["screen"] * 5 + ["size"] * 2)
        assert_array_equal(results["param_metric"][:3], ["none", "diagonal", "full"])
        assert_array_equal(results["param_width"][:4], [1.0, 1.0, 1.0, 1 / 8])
        assert_array_equal(results["param_linear_part"][:5], [False] * 4 + [True])
        assert ((results["param_C"] >= 1e-3) & (results["param_C"] <= 300)).all()

    def test_the_last_machine_has_it(self, searched):
        machine, _ = searched
        chosen = machine.cv_results_["params"][machine.best_index_]
        assert machine.best_params_["C"] == chosen["C"]
        assert_allclose(machine.C_, chosen["C"])
        assert chosen["C"] == machine.best_estimator_.C

    def test_of_many_rows_the_last_machine_chooses_once_more(self, data, monkeypatch, tmp_path):
        settings = {"Cs": "auto", "basis": LearnedBasis(metric="none", max_iter=10)}
        monkeypatch.setattr(_searching, "REHEARSED_ROWS", 45)
        assert one(refit=False, **settings).fit(*data).best_params_["C"] != "auto"
        monkeypatch.setattr(_searching, "REHEARSED_ROWS", 44)
        machine = one(**settings).fit(*data)
        assert machine.best_params_["C"] == machine.best_estimator_.C == "auto"
        assert np.isfinite(machine.cv_results_["param_C"]).all()
        assert 1e-3 <= machine.C_ <= 300
        again = clone(machine.best_estimator_).fit(*data)
        assert again.C_ == machine.C_
        assert_array_equal(again.dual_coef_, machine.dual_coef_)
        widemargin.save(machine, tmp_path / "model")
        loaded = widemargin.load(tmp_path / "model")
        assert loaded.best_params_ == machine.best_params_
        assert loaded.C_ == machine.C_

    @pytest.mark.parametrize(
        "asked", [{"solver": "adam"}, {"solver": "projection"}, {"early_stopping": True}], ids=str
    )
    def test_whatever_solver_the_last_machine_has(self, data, asked):
        basis = LearnedBasis(metric="none", linear_part=False, max_iter=10)
        usual, other = (
            one(Cs="auto", basis=each).fit(*data)
            for each in (basis, clone(basis).set_params(**asked))
        )
        for name in ("param_C", "mean_test_score", "mean_test_loss"):
            assert_array_equal(other.cv_results_[name], usual.cv_results_[name])
        assert other.best_params_["C"] == usual.best_params_["C"] == other.C_
        assert other.best_params_["basis"].get_params().items() >= asked.items()
        assert np.any(other.dual_coef_ != usual.dual_coef_)


class TestFewRows:
    """What a search makes of as good as nothing, with all its defaults but the splits."""

    def test_ten(self, data):
        X, y = data[0][:10], data[1][:10] % 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            machine = SparseKernelClassifierCV(cv=2, random_state=0).fit(X, y)
        assert np.isfinite(machine.decision_function(data[0])).all()
        assert machine.n_basis_ <= 4
        assert 1e-3 <= machine.best_params_["C"] <= 300
        assert machine.score(X, y) > 0.5

    def test_two_of_each_class(self, data):
        with pytest.warns(UserWarning, match="2 folds instead of 5") as caught:
            machine = SparseKernelClassifierCV(basis=BRIEFLY, random_state=0).fit(
                data[0][:6], data[1][:6]
            )
        assert len(caught) == 1
        assert machine.n_splits_ == 4
        assert machine.best_params_["max_basis"] == 3
        assert np.isfinite(machine.decision_function(data[0])).all()

    def test_all_alike(self, data):
        y = np.minimum(data[1], 1)  # two thirds are of class 1
        for basis in (BRIEFLY, "shared"):
            machine = SparseKernelClassifierCV(cv=2, basis=basis, random_state=0)
            with pytest.warns(UserWarning, match="equal") as caught:
                machine.fit(np.ones_like(data[0]), y)
            assert len(caught) == 1
            assert set(machine.predict(data[0])) == {1} == set(machine.predict(np.ones((1, 4))))
            assert machine.best_params_["max_basis"] == 2
            assert_allclose(machine.best_score_, 2 / 3)


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"max_basis": (6, 3)}, "sizes that rise"),
            ({"max_basis": ()}, "at least one"),
            ({"max_basis": (0, 3)}, "1 or more"),
            ({"max_basis": "many"}, "'auto'"),
            ({"Cs": (1.0, -1.0)}, "Cs must be positive"),
            ({"Cs": ()}, "Cs must be"),
            ({"Cs": 1.0}, "sequence"),
            ({"widths": (0.0,)}, "widths must be positive"),
            ({"basis": "per_class"}, "a basis that all classes share"),
            ({"basis": "private"}, "basis must be one of"),
            ({"loss": "hinge"}, "loss must be one of"),
            ({"cv": 1}, "cv must be 2 or more"),
            ({"cv": 40}, "fewer than the 40 folds"),
            ({"cv": []}, "at least one split"),
            ({"cv": [(range(60), [])]}, r"numbers of them: \[\(60, 0\)\]"),
            ({"cv": KFold(3)}, "no row of class 0 to learn from"),
            ({"max_basis": (3, 46)}, "max_basis=46 is more vectors than .* 45"),
            ({"n_jobs": 0}, "n_jobs must not be 0"),
        ],
    )
    def test_parameters(self, data, parameters, message):
        X, y = data
        machine = quick(**parameters)
        with pytest.raises(ValueError, match=message):
            machine.fit(X, np.sort(y))
        assert not hasattr(machine, "classes_")

    @pytest.mark.parametrize("parameters", [{"max_basis": None}, {"cv": 2.5}, {"refit": "no"}])
    def test_types(self, data, parameters):
        with pytest.raises(TypeError):
            quick(**parameters).fit(*data)

    def test_a_class_of_one_row(self, data):
        keep = np.r_[np.flatnonzero(data[1] != 0), np.flatnonzero(data[1] == 0)[:1]]
        with pytest.raises(ValueError, match=r"Class 0 has 1 row\(s\), fewer than the 5 folds"):
            quick(cv=None).fit(data[0][keep], data[1][keep])
        with pytest.raises(ValueError, match="leave the class out, or pass splits of your own"):
            SparseKernelClassifierCV().fit(data[0][:3], data[1][:3])  # all of them

    def test_weights_that_leave_one_class(self, data):
        with pytest.raises(ValueError, match="only 1 class"):
            quick().fit(*data, (data[1] == 2).astype(float))

    def test_scoring_that_fails(self, data):
        def broken(machine, X, y):
            raise RuntimeError("no such thing")

        with pytest.raises(ValueError, match=r"scoring failed .* no such thing"):
            quick(scoring=broken).fit(*data)
        for score in (np.nan, np.inf):
            with pytest.raises(ValueError, match=f"scoring gave {score} on 45 rows"):
                quick(scoring=lambda machine, X, y, score=score: score).fit(*data)


class TestWarnings:
    def test_the_search_is_silent(self, data):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            quick(refit=False, basis="shared").fit(1e-9 * data[0] + 1e3, data[1])

    def test_those_of_the_last_fit_name_the_line_that_called(self, data):
        # Rows that are all equal to the kernel.
        X = np.ones_like(data[0])
        for basis in ("learned", "shared"):
            with pytest.warns(UserWarning, match="equal") as caught:
                one(basis=basis).fit(X, data[1])
            assert [warning.filename for warning in caught] == [__file__]

    def test_of_an_end_that_was_not_reached(self, data, monkeypatch):
        fit = SparseKernelClassifier.fit

        def few_steps(machine, *args):
            return fit(machine.set_params(max_iter=1, basis=ChosenBasis(gradient_tol=1e-12)), *args)

        monkeypatch.setattr(SparseKernelClassifier, "fit", few_steps)
        with pytest.warns(ConvergenceWarning) as caught:
            one(basis="shared").fit(*data)
        assert [warning.filename for warning in caught] == [__file__]

    def test_of_fewer_folds(self, data):
        keep = np.r_[np.flatnonzero(data[1] != 0), np.flatnonzero(data[1] == 0)[:3]]
        with pytest.warns(UserWarning, match="3 folds instead of 5") as caught:
            machine = one(cv=None).fit(data[0][keep], data[1][keep])
        assert machine.n_splits_ == 3 * 2  # few rows are split twice
        assert [warning.filename for warning in caught] == [__file__]

    def test_one_that_is_an_error_leaves_nothing(self, data):
        machine = one()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="equal"):
                machine.fit(np.ones_like(data[0]), data[1])
        assert not hasattr(machine, "model_")


class Recorder:
    """A callback that writes down what it is told, and may stop a stage or raise an error."""

    def __init__(self, stop=False, error=None):
        self.stop, self.error, self.events = stop, error, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        fitted = "" if fitted_estimator is None else f" {fitted_estimator.n_basis_}"
        self.events.append(f"end {context.task_name}{fitted}")
        if self.error is not None:
            raise self.error
        return self.stop


@pytest.mark.skipif(
    not hasattr(SparseKernelClassifierCV, "set_callbacks"), reason="needs scikit-learn 1.9"
)
class TestCallbacks:
    def test_a_round_for_each_step(self, data, brief):
        recorder = Recorder()
        machine = quick().set_callbacks(recorder).fit(*data)
        search = ["begin round", "end round"] * 4  # metric and C, a linear part, and two sizes
        last = ["begin round", f"end round {machine.n_basis_}", f"end fit {machine.n_basis_}"]
        assert recorder.events == ["setup", "begin fit", *search, *last, "teardown"]
        assert_array_equal(machine.decision_function(data[0]), brief.decision_function(data[0]))

    def test_a_stop_ends_the_stage(self, data):
        for basis, rest in ((BRIEFLY, ["size"]), ("shared", ["size", "C"])):
            machine = quick(Cs="auto", basis=basis).set_callbacks(Recorder(stop=True)).fit(*data)
            assert_array_equal(machine.cv_results_["stage"], ["screen"] * 3 + rest)
            assert machine.n_basis_ <= machine.best_params_["max_basis"] == 3

    @pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError("enough")], ids=repr)
    def test_an_error_leaves_all_as_it_was(self, data, error):
        recorder = Recorder(error=error)
        machine = one().fit(*data).set_callbacks(recorder)
        before = dict(vars(machine))
        with pytest.raises((KeyboardInterrupt, ValueError)):
            machine.fit(2 * data[0], data[1])
        assert vars(machine) == before
        assert recorder.events[-1] == "teardown"

    def test_a_progress_bar_comes_to_its_end(self, data, capsys):
        pytest.importorskip("rich")
        callback = pytest.importorskip("sklearn.callback")
        one().set_callbacks(callback.ProgressBar()).fit(*data)
        assert "100%" in capsys.readouterr().out


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn_with_a_learned_basis():
    """tests/conformance has those with a chosen basis."""
    machine = SparseKernelClassifierCV(2, basis=BRIEFLY, widths=(1.0,), cv=2)
    results = check_estimator(machine, on_skip=None, on_fail=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert len([result for result in results if result["status"] == "passed"]) >= LEAST_CHECKS
    assert by_status.pop("skipped", set()) <= NEEDS_AN_ENVIRONMENT_VARIABLE
    assert set(by_status) == {"passed"}, by_status


def test_threads_leave_the_filters_of_warnings_alone(data):
    before = list(warnings.filters)
    with joblib.parallel_backend("threading"):  # parallel_config came with joblib 1.3
        one(Cs=(0.1, 1.0, 10.0), n_jobs=2).fit(*data)
    assert warnings.filters == before


def test_a_splitter_that_needs_groups_is_told_how(data):
    X, y = data
    groups = np.random.RandomState(0).permutation(len(y)) % 3
    with pytest.raises(ValueError, match="pass the splits as a list"):
        quick(cv=GroupKFold(3)).fit(X, y)
    assert one(cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y).n_splits_ == 3


@pytest.mark.parametrize("scoring", [["accuracy", "f1_macro"], {"a": "accuracy"}])
def test_one_score_decides(scoring, data):
    with pytest.raises(ValueError, match="scoring must be"):
        quick(scoring=scoring).fit(*data)


def test_arrays_of_any_kind_hold_what_to_choose_from(data):
    fitted = one(max_basis=np.array(3), Cs=np.array([1.0, 10.0]), widths=[1]).fit(*data)
    assert fitted.best_params_["max_basis"] == 3
    with pytest.raises(ValueError, match="Cs must be"):
        quick(Cs=np.array(3.0)).fit(*data)


def test_a_width_beyond_all_numbers_is_told(data):
    with pytest.raises(ValueError, match="Rescale X"):
        quick(basis=LearnedBasis(metric="none"), widths=(2.0,)).fit(data[0] * 1e200, data[1])

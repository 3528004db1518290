"""Distillation: learned vectors that follow any classifier, and labels where there are some."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC, NuSVC

import widemargin
from widemargin import ChosenBasis, LearnedBasis, SparseKernelClassifier, compress
from widemargin.sparse_kernel.distillation import _copies
from widemargin.sparse_kernel.teachers import Teacher

LABELS = np.array(["ash", "birch", "cedar", "elm"])
QUICK = LearnedBasis(max_iter=12)
pytestmark = [
    pytest.mark.filterwarnings("ignore:The machine has:UserWarning"),
    pytest.mark.turns("n_classes", "target", "voting"),
]
any_number_of_classes = pytest.mark.parametrize("n_classes", [2, 4])


def problem(n_classes=4, n_rows=160, seed=3):
    X, y = overlapping_classes(n_rows, n_classes, seed=seed)
    return X, LABELS[y]


def student(teacher, X, y=None, max_basis=8, **settings):
    quick = {"basis": QUICK, "random_state": 0, "verbose": False}
    return compress(teacher, max_basis, X, y, **quick | settings)


def own(**settings):
    return SparseKernelClassifier(12, random_state=0, **settings)


# ---- what is learned


@any_number_of_classes
def test_classes_are_learned_as_a_machine_that_is_trained_on_them(n_classes):
    X, y = problem(n_classes)
    teacher = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, y)
    small = student(teacher, X, target="classes")
    same = clone(small).fit(X, teacher.predict(X))
    assert_array_equal(small.decision_function(X), same.decision_function(X))
    assert small.objective_ == same.objective_


@any_number_of_classes
def test_probabilities_weigh_the_loss_of_each_class(n_classes):
    X, y = problem(n_classes)
    teacher = GaussianNB().fit(X, y)
    small = student(teacher, X)
    shares = Teacher(teacher).probabilities(X)
    shares = np.where(shares >= 0.01, shares, 0.0)
    shares /= shares.sum(axis=1, keepdims=True)
    scores = small.decision_function(X)
    scores = np.column_stack([-scores, scores]) / 2 if n_classes == 2 else scores
    loss = sum(
        shares[:, number] @ small._loss().value(scores, np.full(len(X), number, dtype=np.int32))
        for number in range(n_classes)
    )
    # Of two classes the machine has the difference of two scores, which are opposite.
    halves = 2 if n_classes == 2 else 1
    size = np.sum(small.dual_coef_**2) + np.sum(small.intercept_**2)
    assert small.objective_ == pytest.approx(0.5 * size / halves + small.C_ * loss, rel=1e-4)


@pytest.mark.parametrize("target", ["scores", "classes"])
def test_labels_alone_are_a_share_of_one(target):
    X, y = problem()
    teacher = DummyClassifier(strategy="prior").fit(X, y)
    small = student(teacher, X, y, target=target, label_share=1.0)
    same = clone(small).fit(X, y)
    assert_array_equal(small.decision_function(X), same.decision_function(X))


def test_labels_have_half_a_share_where_there_are_any():
    X, y = problem()
    teacher = own().fit(X, y)
    default, half, none = (student(teacher, X, y, label_share=share) for share in (None, 0.5, 0.0))
    assert_array_equal(default.decision_function(X), half.decision_function(X))
    unlabelled = student(teacher, X)
    assert_array_equal(none.decision_function(X), unlabelled.decision_function(X))
    assert "accuracy" in none.history_
    assert "accuracy" not in unlabelled.history_


def test_rows_without_a_label_are_learned_from_the_teacher():
    X, y = overlapping_classes(160, 4, seed=3)
    teacher = own().fit(X, y)
    told = teacher.predict(X)
    some = np.where(np.arange(len(y)) % 2 == 0, y, -1)
    small = student(teacher, X, some, target="classes", label_share=1.0)
    same = clone(small).fit(X, np.where(some >= 0, some, told))
    assert_array_equal(small.decision_function(X), same.decision_function(X))
    right = small.predict(X)[some >= 0] == y[some >= 0]
    assert small.history_["accuracy"][-1] == pytest.approx(np.mean(right))


def test_text_and_the_mark_of_no_label():
    X, y = problem()
    teacher = own().fit(X, y)
    some = y.astype(object)
    some[::3] = -1
    assert student(teacher, X, some).history_["accuracy"][-1] > 0.5


def test_minus_one_may_be_a_class():
    X, y = problem(2)
    signs = np.where(y == "ash", -1, 1)
    small = student(own().fit(X, signs), X, signs)
    assert_array_equal(small.classes_, [-1, 1])
    assert small.history_["accuracy"][-1] == small.score(X, signs)


def test_a_class_that_no_row_has_stays_known():
    X, y = problem()
    teacher = own().fit(X, y)
    some = teacher.predict(X) != "elm"
    small = student(teacher, X[some], target="classes")
    assert_array_equal(small.classes_, teacher.classes_)
    assert "elm" not in small.predict(X[some])


@pytest.mark.parametrize("target", ["scores", "classes"])
def test_rows_without_weight_might_as_well_not_be_there(target):
    X, y = problem()
    teacher = own().fit(X, y)
    half = np.arange(len(X)) % 2 == 0
    weighted = student(teacher, X, y, target=target, sample_weight=half.astype(float))
    alone = student(teacher, X[half], y[half], target=target)
    assert_allclose(weighted.decision_function(X), alone.decision_function(X), atol=1e-8)
    assert weighted.history_["accuracy"][-1] == pytest.approx(alone.history_["accuracy"][-1])


def test_every_row_is_learned_however_many_classes_share_it():
    shares = np.full((3, 400), 1 / 400)
    shares[:, 0] += 1e-12
    places, numbers, weights = _copies(shares / shares.sum(axis=1, keepdims=True), np.ones(3))
    assert_allclose(np.bincount(places, weights), 1.0)
    assert_array_equal(np.unique(numbers), np.arange(400))


# ---- who can teach


@pytest.mark.combinations
@any_number_of_classes
@pytest.mark.parametrize(
    "teacher",
    [
        SVC(C=3.0),
        NuSVC(nu=0.3),
        SVC(C=3.0, decision_function_shape="ovo"),
        RandomForestClassifier(20, random_state=0),
        HistGradientBoostingClassifier(max_iter=10, random_state=0),
        MLPClassifier(20, max_iter=2000, tol=1e-3, random_state=0),
        LinearSVC(),
        RidgeClassifier(),
        own(),
        own(loss="logistic", basis="per_class"),
        SparseKernelClassifier(6, basis=QUICK, random_state=0),
        make_pipeline(StandardScaler(), SVC(C=3.0, decision_function_shape="ovo")),
        make_pipeline(SVC(C=3.0)),
        GridSearchCV(SVC(), {"C": [1.0, 3.0]}, cv=2),
        VotingClassifier([("a", own(loss="logistic")), ("b", GaussianNB())], voting="soft"),
    ],
    ids=lambda teacher: type(teacher).__name__,
)
def test_any_classifier_teaches(teacher, n_classes):
    X, y = problem(n_classes)
    teacher = clone(teacher).fit(X, y)
    found = Teacher(teacher).probabilities(X)
    assert found.shape == (len(X), n_classes)
    assert_allclose(found.sum(axis=1), 1.0)
    told = teacher.classes_[found.argmax(axis=1)]
    assert np.mean(told == teacher.predict(X)) > 0.97  # votes of pairs may say another
    small = student(teacher, X, y, max_basis=16)
    assert isinstance(small, SparseKernelClassifier)
    assert small.n_features_in_ == X.shape[1]
    assert small.history_["agreement"][-1] == np.mean(small.predict(X) == teacher.predict(X)) > 0.7
    assert small.history_["accuracy"][-1] == small.score(X, y)


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_an_ensemble_of_our_own_machines_teaches(voting):
    X, y = problem()
    loss = "logistic" if voting == "soft" else "weston_watkins"
    machines = [(str(seed), own(loss=loss).set_params(random_state=seed)) for seed in range(3)]
    teacher = VotingClassifier(machines, voting=voting).fit(X, y)
    target = "scores" if voting == "soft" else "classes"
    assert student(teacher, X, target=target).history_["agreement"][-1] > 0.7


def test_the_scale_of_scores_does_not_matter():
    X, y = problem()
    teacher = LinearSVC().fit(X, y)
    large = pickle.loads(pickle.dumps(teacher))
    large.coef_, large.intercept_ = 1e3 * large.coef_, 1e3 * large.intercept_
    assert_allclose(Teacher(teacher).probabilities(X), Teacher(large).probabilities(X), atol=1e-12)
    leads = np.sort(teacher.decision_function(X), axis=1)
    middle = np.median(leads[:, -1] - leads[:, -2])
    expected = softmax(6.0 * teacher.decision_function(X) / middle, axis=1)
    assert_allclose(Teacher(teacher).probabilities(X), expected)


def test_probabilities_are_sharpened_and_never_softened():
    X, y = problem()
    soft = softmax(np.random.RandomState(0).randn(len(X), 4), axis=1)
    teacher = Teacher(Probabilities(LABELS, soft).fit(X, y))
    assert_allclose(teacher.probabilities(X, sharpen=False), soft)
    second, first = np.sort(teacher.probabilities(X), axis=1)[:, -2:].T
    assert np.median(np.log(first / second)) == pytest.approx(6.0)
    sharp = softmax(100.0 * np.log(soft), axis=1)
    sharp[::2] = np.eye(4)[np.arange(len(X)) % 4][::2]  # some are certain
    assert_allclose(Teacher(Probabilities(LABELS, sharp).fit(X, y)).probabilities(X), sharp)


class Told(ClassifierMixin, BaseEstimator):
    """A classifier that says what it is told to."""

    def __init__(self, classes, scores=None, predicted=None):
        self.classes = classes
        self.scores = scores
        self.predicted = predicted

    def fit(self, X, y):
        self.classes_ = self.classes
        return self

    def predict(self, X):
        if self.predicted is not None:
            return self.predicted
        return np.asarray(self.classes_)[np.arange(len(X)) % len(self.classes_)]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "classes_")


class Scores(Told):
    """One that has scores."""

    def decision_function(self, X):
        return self.scores


class Probabilities(Told):
    """One that has probabilities."""

    def predict_proba(self, X):
        return self.scores


def test_classes_in_any_order_and_text_as_objects():
    X, y = problem(2)
    shuffled = np.array(["birch", "ash"], dtype=object)
    shares = np.column_stack([y == "birch", y == "ash"]).astype(float)
    teacher = Probabilities(shuffled, shares, y[:, None]).fit(X, y)
    small = student(teacher, X)
    assert_array_equal(small.classes_, ["ash", "birch"])
    assert small.classes_.dtype.kind == "U"
    assert small.score(X, y) == small.history_["agreement"][-1] > 0.8


# ---- what comes out


@any_number_of_classes
def test_the_result_is_a_machine_like_any_other(n_classes, tmp_path):
    X, y = problem(n_classes)
    small = student(RandomForestClassifier(10, random_state=0).fit(X, y), X, y)
    scores = small.decision_function(X)
    widemargin.save(small, tmp_path / "small.widemargin")
    copy = widemargin.load(tmp_path / "small.widemargin")
    assert_array_equal(copy.decision_function(X), scores)
    assert_array_equal(copy.history_["agreement"], small.history_["agreement"])
    assert np.isnan(small.history_["agreement"][:-1]).all()
    assert_array_equal(small.compile("float64").predict(X), small.predict(X))
    widemargin.export.to_c(small, tmp_path / "small.h")
    small.set_params(warm_start=True).fit(X, y)
    assert small.n_basis_ == 8


def test_a_logistic_teacher_makes_a_student_with_probabilities():
    X, y = problem()
    teacher = own(loss="logistic").fit(X, y)
    small = student(teacher, X, max_basis=16, basis="learned", C=1e3)
    assert small.loss == "logistic"
    assert_allclose(small.predict_proba(X), teacher.predict_proba(X), atol=0.1)


def test_rows_may_be_sparse_or_a_table():
    X, y = problem()
    X[np.abs(X) < 0.7] = 0.0
    teacher = LogisticRegression().fit(X, y)
    dense, sparse = student(teacher, X), student(teacher, sp.csr_matrix(X))
    assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-6)
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    named = student(LogisticRegression().fit(frame, y), frame)
    assert_array_equal(named.feature_names_in_, list("abcd"))
    assert_array_equal(named.decision_function(frame), dense.decision_function(X))


def test_the_seed_repeats():
    X, y = problem()
    teacher = GaussianNB().fit(X, y)
    first, second, other = (student(teacher, X, random_state=seed) for seed in (5, 5, 6))
    assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert not np.array_equal(first.dual_coef_, other.dual_coef_)


def test_what_it_cost_is_printed(capsys):
    X, y = problem()
    teacher = GaussianNB().fit(X, y)
    small = student(teacher, X, y, verbose=True)
    first, second = capsys.readouterr().out.splitlines()
    agreement = 100 * small.history_["agreement"][-1]
    assert first == f"GaussianNB -> 8 vectors: {agreement:.2f} % of the rows keep their class"
    assert (
        second == f"accuracy {100 * teacher.score(X, y):.2f} % -> {100 * small.score(X, y):.2f} %"
    )


def test_chosen_vectors_take_settings_as_an_object():
    X, y = problem()
    teacher = SVC().fit(X, y)
    named = student(teacher, X, basis="shared", n_candidates=20)
    given = student(teacher, X, basis=ChosenBasis(n_candidates=20))
    assert_array_equal(named.dual_coef_, given.dual_coef_)


# ---- what it refuses


@pytest.mark.parametrize(
    "teacher", [RandomForestClassifier(), make_pipeline(StandardScaler(), SVC()), own()]
)
def test_a_teacher_that_is_not_fitted(teacher):
    with pytest.raises(NotFittedError):
        student(teacher, np.zeros((3, 4)))


def test_no_classifier():
    X, _ = problem()
    with pytest.raises(TypeError, match="LinearRegression has no classes_"):
        student(LinearRegression().fit(X, X[:, 0]), X)
    with pytest.raises(TypeError):
        student("a forest", X)


@pytest.mark.parametrize(
    "teacher",
    [
        RandomForestClassifier(5),
        MLPClassifier(5, max_iter=5),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=lambda teacher: type(teacher).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_teachers_of_several_labels(teacher):
    X, _ = problem()
    labels = (X[:, :3] > 0).astype(int)
    with pytest.raises(ValueError, match="gives a row several labels"):
        student(teacher.fit(X, labels), X)


def test_a_teacher_of_one_class():
    X, y = problem()
    teacher = DummyClassifier().fit(X, np.full(len(X), "ash"))
    with pytest.raises(ValueError, match="knows only 1 class, 'ash'"):
        student(teacher, X)
    always = DummyClassifier(strategy="constant", constant="ash").fit(X, y)
    with pytest.raises(ValueError, match="All rows with weight are of 1 class, 'ash'"):
        student(always, X)


def test_a_teacher_without_scores():
    X, y = problem()
    teacher = Told(LABELS, predicted=y).fit(X, y)
    with pytest.raises(ValueError, match=r"neither predict_proba nor decision_function.*classes"):
        student(teacher, X)
    assert student(teacher, X, target="classes").history_["agreement"][-1] > 0.7


@pytest.mark.parametrize("kind", [Scores, Probabilities])
def test_scores_that_are_no_numbers_or_of_a_wrong_shape(kind):
    X, y = problem()
    scores = np.ones((len(X), 4))
    scores[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"NaN or infinite for 1 of 160 rows.*row 7"):
        student(kind(LABELS, scores).fit(X, y), X)
    for wrong in (np.ones((len(X), 3)), np.ones((5, 4)), np.ones((len(X), 4, 2))):
        with pytest.raises(ValueError, match="are of shape"):
            student(kind(LABELS, wrong).fit(X, y), X)


def test_probabilities_that_are_none():
    X, y = problem()
    for wrong in (np.zeros((len(X), 4)), np.full((len(X), 4), -1.0)):
        with pytest.raises(ValueError, match="no probabilities"):
            student(Probabilities(LABELS, wrong).fit(X, y), X)


def test_predictions_of_no_known_class():
    X, y = problem()
    with pytest.raises(ValueError, match="predicts 'oak', which is none of its classes_"):
        student(Told(LABELS, predicted=np.full(len(X), "oak")).fit(X, y), X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"label_share": 0.5}, ValueError, "label_share=0.5 needs labels"),
        ({"label_share": -0.1}, ValueError, "label_share must be 0 or more"),
        ({"label_share": 1.5}, ValueError, "label_share must be 1 or less"),
        ({"label_share": "half"}, TypeError, "label_share must be"),
        ({"label_share": 0.5, "basis": "shared"}, ValueError, "only in learned vectors"),
        ({"y": np.full(160, "oak")}, ValueError, "y has none of the classes"),
        ({"y": np.append(np.full(159, "ash"), "oak")}, ValueError, r"does not know: \['oak'\]"),
        ({"y": np.full(160, -1)}, ValueError, "y has none of the classes"),
        ({"basis": "per_class"}, ValueError, "one basis for all classes"),
        ({"basis": "some"}, ValueError, "basis must be one of"),
        ({"basis": LearnedBasis(metric="round")}, ValueError, "basis.metric must be one of"),
        ({"n_candidates": 5}, ValueError, "n_candidates goes with basis='shared'"),
        ({"kernel": "linear"}, ValueError, "kernel must be 'rbf'"),
        ({"C": -1.0}, ValueError, "C must be positive"),
    ],
)
def test_parameters_out_of_range(parameters, error, message):
    X, y = problem()
    with pytest.raises(error, match=message):
        student(SVC().fit(X, y), X, **parameters)


def test_rows_that_do_not_fit():
    X, y = problem()
    teacher = HistGradientBoostingClassifier(max_iter=5).fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        student(teacher, X[:, :2])
    X[3, 1] = np.nan  # which the teacher would take
    with pytest.raises(ValueError, match="NaN"):
        student(teacher, X)


def test_a_kernel_matrix():
    X, y = problem()
    matrix = X @ X.T
    with pytest.raises(ValueError, match="sees no features"):
        student(SVC(kernel="precomputed").fit(matrix, y), matrix)

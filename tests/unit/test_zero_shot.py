"""Classes without training rows: what is answered, how it is chosen, and what is refused."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import (
    KernelMultiLabelClassifier,
    LinearMultiLabelClassifier,
    SparseKernelMultiLabelClassifier,
)
from widemargin.zero_shot import (
    AttributeZeroShotClassifier,
    BilinearZeroShotClassifier,
    harmonic_mean_accuracy,
)
from widemargin.zero_shot.signatures import Signatures

N_SEEN, N_UNSEEN, N_ATTRIBUTES = 12, 4, 8
NAMES = [f"class {number}" for number in range(N_SEEN + N_UNSEEN)]
RULES = ("correlation", "probabilistic")


def signatures(graded=False, seed=0):
    values = np.random.RandomState(seed).rand(len(NAMES), N_ATTRIBUTES)
    return values if graded else (values > 0.5).astype(float)


def rows_of(classes, table, noise=0.3, seed=0):
    """Return rows that are a linear map of the signatures of their classes, and noise."""
    mixing = np.random.RandomState(42).randn(N_ATTRIBUTES, 10)
    rng = np.random.RandomState(seed)
    return (table[classes] - 0.5) @ mixing + noise * rng.randn(len(classes), 10)


def problem(graded=False, noise=0.3):
    """Return signatures, rows of seen classes with names, and rows of all classes."""
    table = signatures(graded)
    seen = np.arange(40 * N_SEEN) % N_SEEN
    every = np.arange(20 * len(NAMES)) % len(NAMES)
    train = rows_of(seen, table, noise), np.array(NAMES)[seen]
    test = rows_of(every, table, noise, seed=1), np.array(NAMES)[every]
    return table, train, test


def of_unseen(X, y):
    some = np.isin(y, NAMES[N_SEEN:])
    return X[some], y[some]


def machine(table, estimator=None, **parameters):
    estimator = estimator or LinearMultiLabelClassifier(C=0.01, random_state=0)
    return AttributeZeroShotClassifier(estimator, table, NAMES, **parameters)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("graded", [False, True])
def test_unseen_classes_are_found(rule, graded):
    table, train, test = problem(graded)
    X, y = of_unseen(*test)
    found = machine(table, rule=rule).fit(*train)
    assert_array_equal(found.classes_, NAMES[N_SEEN:])
    assert_array_equal(found.seen_classes_, NAMES[:N_SEEN])
    assert balanced_accuracy_score(y, found.predict(X)) > 0.8  # by chance: .25
    assert found.decision_function(X).shape == (len(X), N_UNSEEN)


@pytest.mark.parametrize(
    "estimator",
    [
        KernelMultiLabelClassifier(),
        LinearMultiLabelClassifier(C=0.01, prior=np.eye(N_ATTRIBUTES)),
        SparseKernelMultiLabelClassifier(20, loss="logistic"),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("rule", RULES)
def test_any_classifier_of_labels_will_do(estimator, rule):
    table, train, test = problem()
    X, y = of_unseen(*test)
    found = machine(table, estimator, rule=rule).fit(*train)
    assert balanced_accuracy_score(y, found.predict(X)) > 0.7
    assert type(found.estimator_) is type(estimator)
    assert not hasattr(estimator, "model_")  # a copy was fitted


def test_levels_of_graded_attributes_help():
    table, train, test = problem(graded=True, noise=0.6)
    X, y = of_unseen(*test)
    right = {
        n_levels: balanced_accuracy_score(
            y, machine(table, n_levels=n_levels).fit(*train).predict(X)
        )
        for n_levels in (1, 3)
    }
    assert right[3] > right[1]


@pytest.mark.parametrize("kind", ["attributes", "bilinear"])
def test_a_margin_between_seen_and_unseen_classes(kind):
    table, train, test = problem(graded=True, noise=0.5)
    make = {
        "attributes": lambda **given: machine(table, candidates="all", **given),
        "bilinear": lambda **given: BilinearZeroShotClassifier(
            table, NAMES, kernel="rbf", candidates="all", **given
        ),
    }[kind]
    tuned, plain = make().fit(*train), make(seen_margin=0.0).fit(*train)
    assert plain.seen_margin_ == 0.0
    assert tuned.seen_margin_ > 0.0
    assert_array_equal(tuned.classes_, NAMES)
    scores = [
        harmonic_mean_accuracy(test[1], each.predict(test[0]), each.seen_classes_)
        for each in (tuned, plain)
    ]
    assert scores[0] > scores[1]
    # The margin is taken off the scores of seen classes, and of no others.
    shift = plain.decision_function(test[0]) - tuned.decision_function(test[0])
    assert_allclose(shift[:, :N_SEEN], tuned.seen_margin_, rtol=1e-6)
    assert_allclose(shift[:, N_SEEN:], 0.0, atol=1e-12)


def test_the_harmonic_mean_is_over_classes():
    y_true = ["a"] * 8 + ["b"] * 2 + ["new"] * 4
    y_pred = ["a"] * 8 + ["a"] * 2 + ["new"] * 3 + ["a"]
    expected = 2 * 0.5 * 0.75 / (0.5 + 0.75)
    assert_allclose(harmonic_mean_accuracy(y_true, y_pred, ["a", "b"]), expected)
    assert harmonic_mean_accuracy(["a"], ["a"], ["a"]) == 0.0


def test_attributes_of_rows_may_be_given_instead_of_classes():
    table, (X, y), test = problem()
    Y = table[[NAMES.index(name) for name in y]].astype(int)
    by_class = machine(table, candidates="all", seen_margin=0.0).fit(X, y)
    for form in (np.asarray, sp.csr_matrix):
        by_row = machine(table, candidates="all").fit(X, form(Y))
        assert len(by_row.seen_classes_) == 0
        assert_allclose(
            by_row.decision_function(test[0]), by_class.decision_function(test[0]), atol=1e-9
        )


def test_the_bilinear_form_is_that_of_the_paper():
    table, (X, y), (X_test, _) = problem(graded=True)
    found = BilinearZeroShotClassifier(table, NAMES, row_ridge=2.0, signature_ridge=0.5).fit(X, y)
    S = (table / np.linalg.norm(table, axis=1, keepdims=True)).T  # attributes x classes
    seen = S[:, :N_SEEN]
    signs = np.where(y[:, None] == np.array(NAMES[:N_SEEN]), 1.0, -1.0)
    V = np.linalg.solve(X.T @ X + 2.0 * np.eye(10), X.T @ signs @ seen.T)
    V = V @ np.linalg.inv(seen @ seen.T + 0.5 * np.eye(N_ATTRIBUTES))
    assert_allclose(found.decision_function(X_test), X_test @ V @ S[:, N_SEEN:], atol=1e-8)


@pytest.mark.parametrize("kind", ["attributes", "bilinear"])
def test_kernel_values_that_were_computed_before(kind):
    table, (X, y), (X_test, _) = problem()
    values, test_values = rbf_kernel(X, X, gamma=0.1), rbf_kernel(X_test, X, gamma=0.1)
    given = {"candidates": "all"}
    if kind == "attributes":
        made = [
            machine(table, KernelMultiLabelClassifier(kernel=kernel, gamma=0.1, tol=1e-6), **given)
            for kernel in ("rbf", "precomputed")
        ]
    else:
        made = [
            BilinearZeroShotClassifier(table, NAMES, kernel=kernel, gamma=0.1, **given)
            for kernel in ("rbf", "precomputed")
        ]
    plain, computed = made[0].fit(X, y), made[1].fit(values, y)
    assert_allclose(computed.seen_margin_, plain.seen_margin_, atol=1e-3)
    assert_allclose(
        computed.decision_function(test_values) + 0.0, plain.decision_function(X_test), atol=2e-3
    )


@pytest.mark.parametrize("rule", RULES)
def test_sparse_rows_tables_and_weights(rule):
    pd = pytest.importorskip("pandas")
    table, (X, y), (X_test, _) = problem()
    expected = machine(table, rule=rule).fit(X, y)
    sparse = machine(table, rule=rule).fit(sp.csr_matrix(X), y)
    assert_allclose(
        sparse.decision_function(sp.csr_matrix(X_test)),
        expected.decision_function(X_test),
        atol=1e-4,
    )
    frame = pd.DataFrame(table, index=NAMES, columns=[f"trait {k}" for k in range(N_ATTRIBUTES)])
    framed = AttributeZeroShotClassifier(expected.estimator, frame, rule=rule).fit(X, y)
    assert_array_equal(framed.predict(X_test), expected.predict(X_test))
    weighed = machine(table, rule=rule).fit(X, y, sample_weight=np.ones(len(y)))
    assert_allclose(weighed.decision_function(X_test), expected.decision_function(X_test))


@pytest.mark.parametrize("kind", ["attributes", "bilinear"])
def test_clones_pickles_and_seeds(kind):
    table, (X, y), (X_test, _) = problem()
    given = {"candidates": "all", "random_state": 3}
    made = (
        machine(table, **given)
        if kind == "attributes"
        else BilinearZeroShotClassifier(table, NAMES, **given)
    )
    first, again = clone(made).fit(X, y), clone(made).fit(X, y)
    scores = first.decision_function(X_test)
    assert_array_equal(again.decision_function(X_test), scores)
    assert_array_equal(pickle.loads(pickle.dumps(first)).decision_function(X_test), scores)
    assert first.n_features_in_ == 10


class TestRefusals:
    def fit(self, table=None, names=NAMES, y=None, **parameters):
        known, (X, classes), _ = problem()
        table = known if table is None else table
        estimator = parameters.pop("estimator", LinearMultiLabelClassifier(C=0.01))
        AttributeZeroShotClassifier(estimator, table, names, **parameters).fit(
            X, classes if y is None else y
        )

    def test_classes_without_a_signature(self):
        with pytest.raises(ValueError, match="2 classes without a signature: 'class 0', 'class 1'"):
            self.fit(signatures()[2:], NAMES[2:])

    @pytest.mark.parametrize(
        ("table", "message"),
        [
            (np.ones(3), "a row for each class and a column for each attribute"),
            (np.full((16, 2), np.nan), "row 0, column 0 is nan"),
            ([["a"] * 3] * 16, "must hold numbers"),
            (np.ones((16, 3)), "tells no class from another"),
            (np.ones((5, 3)), "class_names has 16 names, and signatures has 5 rows"),
        ],
    )
    def test_tables_that_are_none(self, table, message):
        with pytest.raises(ValueError, match=message):
            self.fit(table)

    def test_no_table(self):
        with pytest.raises(ValueError, match="got None"):
            AttributeZeroShotClassifier(LinearMultiLabelClassifier(), None).fit([[0.0]], [0])

    def test_names_twice(self):
        with pytest.raises(ValueError, match="a name twice"):
            self.fit(names=["class 0"] * len(NAMES))

    def test_nothing_left_to_answer(self):
        with pytest.raises(ValueError, match="set candidates='all'"):
            self.fit(signatures()[:N_SEEN], NAMES[:N_SEEN])

    def test_no_classifier_of_labels(self):
        with pytest.raises(TypeError, match="with a decision_function"):
            self.fit(estimator="svm")

    @pytest.mark.parametrize(
        "parameters",
        [
            {"rule": "best"},
            {"candidates": "seen"},
            {"seen_margin": "auto"},
            {"seen_margin": np.nan},
            {"n_levels": 0},
        ],
    )
    def test_parameters(self, parameters):
        with pytest.raises(ValueError, match=next(iter(parameters))):
            self.fit(**parameters)

    @pytest.mark.parametrize("parameters", [{"candidates": "all"}, {"rule": "probabilistic"}])
    def test_too_few_classes_to_hold_out(self, parameters):
        table, (X, y), _ = problem()
        few = np.isin(y, NAMES[:3])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            with pytest.raises(ValueError, match="4 seen classes or more are needed; there are 3"):
                machine(table, **parameters).fit(X[few], y[few])

    def test_other_attributes_than_those_of_rows(self):
        pd = pytest.importorskip("pandas")
        table = pd.DataFrame(signatures(), columns=list("abcdefgh"))
        rows = pd.DataFrame(np.ones((480, 8), int), columns=list("abcdefhg"))
        with pytest.raises(ValueError, match="column 6 is 'h' in y and 'g' in signatures"):
            self.fit(table, y=rows)
        with pytest.raises(ValueError, match="y has 5 attributes, and signatures has 8"):
            self.fit(y=np.ones((480, 5), int))

    def test_probabilities_without_classes(self):
        with pytest.raises(ValueError, match="y has attributes and no classes"):
            self.fit(y=np.eye(8, dtype=int)[np.arange(480) % 8], rule="probabilistic")

    def test_ridges_and_kernels(self):
        for parameters in ({"row_ridge": 0.0}, {"signature_ridge": -1.0}, {"kernel": "cubic"}):
            with pytest.raises(ValueError, match=next(iter(parameters))):
                BilinearZeroShotClassifier(signatures(), NAMES, **parameters).fit(
                    np.ones((2, 2)), NAMES[:2]
                )


@pytest.mark.parametrize("kind", ["attributes", "bilinear"])
def test_a_fit_that_fails_leaves_the_machine_as_it_was(kind):
    table, (X, y), (X_test, _) = problem()
    made = machine(table) if kind == "attributes" else BilinearZeroShotClassifier(table, NAMES)
    expected = made.fit(X, y).decision_function(X_test)
    few = np.isin(y, NAMES[:3])
    with pytest.raises(ValueError, match="4 seen classes"):
        made.set_params(candidates="all").fit(X[few], y[few])
    assert_array_equal(made.decision_function(X_test), expected)


def test_classes_of_the_same_signature_are_told():
    table, train, test = problem()
    table[-1] = table[-2]
    with pytest.warns(UserWarning, match="'class 14' and 'class 15' for instance"):
        found = machine(table).fit(*train)
    assert "class 15" not in found.predict(test[0])


def test_attributes_that_cannot_be_learned_are_named():
    table, train, _ = problem()
    table[:, 3] = 0.0
    table[N_SEEN:, 3] = 1.0
    with pytest.warns(UserWarning, match="1 attributes cannot be learned.*: 3"):
        machine(table).fit(*train)


def test_levels_divide_the_range():
    known = Signatures.of([[0.0, 5, 1], [1.0, 5, 0], [4.0, 5, 1], [2.5, 5, 0]], None)
    labels, attributes = known.levels(3)
    assert attributes.tolist() == [0, 0, 0, 2]
    assert labels.tolist() == [[0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]]

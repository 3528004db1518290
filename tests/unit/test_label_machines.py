"""What machines of label sets share: forms of Y, weights, constant labels, thresholds, answers."""

import numpy as np
import pytest
import scipy.sparse as sp
from label_machine import RidgeLabels, label_problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score
from sklearn.utils import get_tags

from widemargin import priors

X, Y = label_problem()


def rare_labels(n_rows=600):
    """Return labels that few rows have, so that a threshold of 0 tells none of them."""
    X, _ = label_problem(n_rows, seed=3)
    rng = np.random.RandomState(4)
    chance = 1 / (1 + np.exp(-(1.5 * X @ rng.randn(5, 4) - 3.5)))
    return X, (rng.rand(n_rows, 4) < chance).astype(int)


@pytest.mark.parametrize(
    "form",
    [
        np.asfortranarray,
        lambda Y: Y.tolist(),
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(float),
        lambda Y: Y.astype(object),
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.lil_matrix,
        sp.dok_array,
    ],
)
def test_y_may_be_of_any_form(form):
    machine = RidgeLabels().fit(X, form(Y))
    assert_array_equal(machine.decision_function(X), RidgeLabels().fit(X, Y).decision_function(X))
    assert machine.predict(X).shape == Y.shape
    assert_array_equal(machine.classes_, np.arange(4))
    assert machine.n_labels_ == 4


def test_columns_of_a_data_frame_name_the_labels():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(Y, columns=["sea", "beach", "city", "hill"])
    machine = RidgeLabels(prior=priors.identity(4, label_names=named.columns)).fit(X, named)
    assert machine.classes_.tolist() == ["sea", "beach", "city", "hill"]
    assert machine.prior_.label_names.tolist() == machine.classes_.tolist()
    with pytest.raises(ValueError, match="another order"):
        RidgeLabels(prior=machine.prior_).fit(X, named[["beach", "sea", "city", "hill"]])
    with pytest.raises(ValueError, match="two columns of the same name"):
        RidgeLabels().fit(X, named.set_axis(list("abca"), axis=1))
    numbered = RidgeLabels().fit(X, pd.DataFrame(Y))
    assert_array_equal(numbered.classes_, np.arange(4))


BAD = {
    "1-D": (Y[:, 0], r"got a 1d array of 60 entries. Reshape your data .*SparseKernelClassifier"),
    "a list of 1-D": (Y[:, 0].tolist(), "got a 1d array"),
    "sets": ([{1, 2}, set(), {3}] * 20, "MultiLabelBinarizer"),
    "lists of unlike lengths": ([[1, 2], [], [3]] * 20, "MultiLabelBinarizer"),
    "lists of names": ([["sea", "hill"], ["city", "sea"]] * 30, "MultiLabelBinarizer"),
    "other values": (Y + 1, r"indicator matrix of 0 and 1.*values such as 2"),
    "halves": (Y / 2, r"indicator matrix of 0 and 1.*values such as 0.5"),
    "other values, sparse": (sp.csr_matrix(2 * Y), r"indicator matrix of 0 and 1.*such as 2"),
    "NaN": (np.where(Y, np.nan, 0.0), "NaN"),
    "no labels": (Y[:, :0], "no labels|0 feature"),
    "other rows": (Y[:20], "inconsistent numbers of samples"),
    "nothing": (None, "requires y to be passed"),
}


@pytest.mark.parametrize(("wrong", "words"), BAD.values(), ids=list(BAD))
def test_bad_labels(wrong, words):
    machine = RidgeLabels()
    with pytest.raises(ValueError, match=words):
        machine.fit(X, wrong)
    assert not hasattr(machine, "classes_")


def test_one_label_more_labels_than_rows_and_rows_without_labels():
    one = RidgeLabels().fit(X, Y[:, :1])
    assert one.predict(X).shape == (60, 1)
    assert one.decision_function(X).shape == (60, 1)
    assert_allclose(
        one.decision_function(X)[:, 0], RidgeLabels().fit(X, Y).decision_function(X)[:, 0]
    )
    many = np.random.RandomState(0).randint(0, 2, (60, 90))
    many[7] = 0
    assert RidgeLabels().fit(X, many).predict(X).shape == (60, 90)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_labels_that_never_vary_are_answered_so_with_one_warning(form):
    spoilt = np.column_stack([np.zeros(60, int), Y[:, 0], np.ones(60, int), Y[:, 1]])
    with pytest.warns(UserWarning, match="Of 4 labels") as met:
        machine = RidgeLabels(threshold=3.0).fit(X, form(spoilt))
    assert len(met) == 1
    message = str(met[0].message)
    assert "Of 4 labels there are 1 that no row has (0); 1 that every row has (2)" in message
    answers = machine.predict(X)
    assert not answers[:, 0].any()
    assert answers[:, 2].all()
    assert_array_equal(machine.thresholds_, [0.0, 3.0, 0.0, 3.0])
    plain = RidgeLabels().fit(X, Y[:, :2])
    assert_allclose(machine.decision_function(X)[:, [1, 3]], plain.decision_function(X))


def test_only_rows_of_weight_say_whether_a_label_varies():
    weights = np.where(Y[:, 1] == 1, 1.0, 0.0)
    with pytest.warns(UserWarning, match=r"1 that every row has \(1\)"):
        machine = RidgeLabels().fit(X, Y, sample_weight=weights)
    assert machine.predict(X)[:, 1].all()


def test_all_labels_may_be_constant():
    with pytest.warns(UserWarning, match="2 that no row has"):
        machine = RidgeLabels(prior=np.eye(2)).fit(X, np.zeros((60, 2), int))
    assert not machine.predict(X).any()


def test_a_prior_is_that_of_labels_that_vary():
    prior = priors.from_labels(Y)
    spoilt = Y.copy()
    spoilt[:, 1] = 0
    with pytest.warns(UserWarning, match="1 that no row has"):
        machine = RidgeLabels(prior=prior).fit(X, spoilt)
    assert_allclose(machine.prior_.matrix, prior.matrix[np.ix_([0, 2, 3], [0, 2, 3])])
    with pytest.raises(ValueError, match="prior is one of 3 labels, and Y has 4 columns"):
        RidgeLabels(prior=np.eye(3)).fit(X, Y)


def test_balanced_labels_weigh_alike_on_both_sides():
    weights = np.linspace(0.5, 2.0, 60)
    machine = RidgeLabels(class_weight="balanced")
    training = machine._validate_training_data(X, Y, weights)
    counts = np.abs(training.signed_weights()) * weights[:, np.newaxis]
    assert_allclose((counts * Y).sum(axis=0), (counts * (1 - Y)).sum(axis=0))
    assert_allclose(counts.sum(axis=0), weights.sum())
    assert_array_equal(np.sign(training.signed_weights()), 2 * Y - 1)
    assert training.weighs_labels


def test_weights_by_label_are_those_of_rows_that_have_it():
    training = RidgeLabels(class_weight={2: 5.0})._validate_training_data(X, Y, None)
    expected = np.ones(Y.shape)
    expected[:, 2] = np.where(Y[:, 2], 5.0, 1.0)
    assert_array_equal(np.abs(training.signed_weights()), expected)
    heavy = RidgeLabels(class_weight={2: 50.0}).fit(X, Y)
    plain = RidgeLabels().fit(X, Y)
    assert heavy.predict(X)[:, 2].sum() > plain.predict(X)[:, 2].sum()
    assert_array_equal(heavy.decision_function(X)[:, :2], plain.decision_function(X)[:, :2])
    with pytest.raises(ValueError, match=r"weight for .sea., which is no label\. The labels are"):
        RidgeLabels(class_weight={"sea": 2.0}).fit(X, Y)
    with pytest.raises(ValueError, match=r"class_weight\[1\] must be positive"):
        RidgeLabels(class_weight={1: 0.0}).fit(X, Y)


def test_thresholds_that_are_given():
    machine = RidgeLabels(threshold=0.25).fit(X, Y)
    assert_array_equal(machine.predict(X), machine.decision_function(X) > 0.25)
    each = [0.5, -0.5, 0.0, 2.0]
    machine = RidgeLabels(threshold=each).fit(X, Y)
    assert_array_equal(machine.thresholds_, each)
    assert_array_equal(machine.predict(X), machine.decision_function(X) > each)
    assert RidgeLabels().fit(X, Y).readout_.thresholds is None
    with pytest.raises(ValueError, match="threshold has 3 numbers, and Y has 4 labels"):
        RidgeLabels(threshold=[0.0, 1.0, 2.0]).fit(X, Y)
    for wrong in ("best", [0.0, np.nan, 0.0, 0.0], [[0.0] * 4], ["a"] * 4, np.inf):
        with pytest.raises(ValueError, match="threshold must be"):
            RidgeLabels(threshold=wrong).fit(X, Y)


@pytest.mark.parametrize("metric", ["macro", "micro"])
def test_tuned_thresholds_tell_labels_that_zero_does_not(metric):
    rows, labels = rare_labels()
    fits = slice(0, 300), slice(300, 600)
    scores = {}
    for threshold in (0.0, "tuned"):
        machine = RidgeLabels(threshold=threshold, threshold_metric=metric, random_state=0)
        machine.fit(rows[fits[0]], labels[fits[0]])
        found = machine.predict(rows[fits[1]])
        scores[threshold] = f1_score(labels[fits[1]], found, average=metric, zero_division=0)
    assert scores["tuned"] > scores[0.0] + 0.1


def test_tuned_thresholds_repeat_and_are_of_single_precision():
    rows, labels = rare_labels(200)
    first, second = (
        RidgeLabels(threshold="tuned", random_state=1).fit(rows, form(labels)).thresholds_
        for form in (np.asarray, sp.csr_matrix)
    )
    assert_array_equal(first, second)
    assert_array_equal(first, first.astype(np.float32))
    assert first.any()


def test_tuned_thresholds_go_by_the_names_of_weights():
    pd = pytest.importorskip("pandas")
    rows, labels = rare_labels(200)
    named = pd.DataFrame(labels, columns=list("abcd"))
    by_name = RidgeLabels(threshold="tuned", class_weight={"b": 9.0}, random_state=1)
    by_number = RidgeLabels(threshold="tuned", class_weight={1: 9.0}, random_state=1)
    by_name.fit(rows, named)
    assert_array_equal(by_name.thresholds_, by_number.fit(rows, labels).thresholds_)


def test_too_few_rows_for_folds_are_refused():
    with pytest.raises(ValueError, match="needs 6 rows or more"):
        RidgeLabels(threshold="tuned").fit(X[:5], Y[:5])


def test_sparse_output_is_the_same_answer():
    machine = RidgeLabels(threshold=0.1).fit(X, Y)
    dense = machine.predict(X)
    sparse = machine.set_params(sparse_output=True).predict(X)
    assert sparse.format == "csr"
    assert_array_equal(sparse.toarray(), dense)
    assert sparse.dtype == dense.dtype
    assert machine.predict(X[:0]).shape == (0, 4)
    assert machine.score(X, sp.csr_matrix(Y)) == pytest.approx(np.mean((dense == Y).all(axis=1)))


def test_blocks_of_scores_change_no_answer(monkeypatch):
    machine = RidgeLabels(sparse_output=True).fit(X, Y)
    whole, ranked = machine.predict(X), machine.predict_top_k(X, 3)
    monkeypatch.setattr("widemargin.estimation.labels._SCORES_AT_ONCE", 20)
    assert (machine.predict(X) != whole).nnz == 0
    assert_array_equal(machine.predict_top_k(X, 3), ranked)


def test_the_highest_labels_by_rank():
    machine = RidgeLabels().fit(X, Y)
    scores = machine.decision_function(X)
    top = machine.predict_top_k(X, 2)
    assert top.shape == (60, 2)
    assert_array_equal(top[:, 0], scores.argmax(axis=1))
    assert (np.take_along_axis(scores, top, 1) >= np.sort(scores, axis=1)[:, -2:-1]).all()
    assert_array_equal(
        machine.predict_top_k(np.zeros((1, 5)), 4)[0], np.argsort(-machine.intercept_)
    )
    with pytest.raises(ValueError, match="k must be 4 or less"):
        machine.predict_top_k(X, 5)


def test_the_tags_say_that_rows_have_sets_of_labels():
    tags = get_tags(RidgeLabels())
    assert tags.classifier_tags.multi_label
    assert not tags.classifier_tags.multi_class
    assert tags.target_tags.multi_output
    assert not tags.target_tags.single_output

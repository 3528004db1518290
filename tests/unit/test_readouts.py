"""Readouts: labels, indicators and probabilities are what the formulas say."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from widemargin.readouts import Readout

LABELS = {
    "int": np.array([3, 5, 8]),
    "str": np.array(["ash", "birch", "cedar"]),
    "float": np.array([0.5, 1.5, 2.5]),
    "object": np.array(["ash", "birch", "cedar"], dtype=object),
}
EXTREME = [0.0, 1e-30, -1e-30, 30.0, -30.0, 88.0, -88.0, 1e4, -1e4]


def labels(n_classes):
    return np.array([f"class {number}" for number in range(n_classes)])


@pytest.fixture
def scores(rng):
    return 3 * rng.randn(40, 4)


@pytest.mark.parametrize(
    ("kind", "n_classes", "n_outputs"),
    [("binary", 2, 1), ("multiclass", 3, 3), ("multiclass", 7, 7)]
    + [("multilabel", number, number) for number in (1, 2, 3)],
)
def test_number_of_scores(kind, n_classes, n_outputs):
    assert Readout(labels(n_classes), kind).n_outputs == n_outputs


def test_calibrated_labels_have_the_logistic_function_of_a_line(scores):
    calibration = np.array([[2.0, 0.5, 0.0, 0.0], [0.1, -1.0, np.inf, -np.inf]])
    readout = Readout(labels(4), "multilabel", calibration=calibration)
    told = np.exp(readout.log_probabilities(scores))
    assert_allclose(told[:, :2], expit(scores[:, :2] * [2.0, 0.5] + [0.1, -1.0]))
    assert_array_equal(told[:, 2:], np.tile([1.0, 0.0], (40, 1)))
    assert readout.gives_probabilities
    assert not Readout(labels(4), "multilabel").gives_probabilities
    assert readout != Readout(labels(4), "multilabel")
    assert readout == Readout(labels(4), "multilabel", calibration=calibration.copy())
    assert readout != Readout(labels(4), "multilabel", calibration=calibration + 1)


@pytest.mark.parametrize(
    ("kind", "link", "calibration"),
    [
        ("multiclass", None, np.ones((2, 3))),
        ("multilabel", "one_against_rest", np.ones((2, 3))),
        ("multilabel", None, np.ones((2, 2))),
        ("multilabel", None, -np.ones((2, 3))),
        ("multilabel", None, np.full((2, 3), np.inf)),
        ("multilabel", None, np.array([[1.0, 1.0, 1.0], [0.0, np.nan, 0.0]])),
    ],
)
def test_a_calibration_that_cannot_be_one_is_refused(kind, link, calibration):
    with pytest.raises(ValueError, match="calibration"):
        Readout(labels(3), kind, link, calibration=calibration)


def test_no_link_unless_one_is_named():
    assert Readout(labels(3), "multiclass").link is None


def test_a_readout_does_not_change():
    readout = Readout(labels(3), "multiclass")
    with pytest.raises(dataclasses.FrozenInstanceError):
        readout.kind = "multilabel"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decision_has_one_column_less_for_two_classes(dtype, scores):
    scores = scores.astype(dtype)
    two = Readout(labels(2), "binary").decision(scores[:, :1])
    assert_array_equal(two, scores[:, 0])
    for kind in ("multiclass", "multilabel"):
        assert_array_equal(Readout(labels(4), kind).decision(scores), scores)
    assert two.dtype == dtype


@pytest.mark.parametrize("classes", LABELS.values(), ids=list(LABELS))
def test_labels_of_numbers(classes):
    best = np.array([2, 0, 0, 1])
    found = Readout(classes, "multiclass").labels_of(best)
    assert found.dtype == classes.dtype
    assert found.tolist() == [classes.tolist()[number] for number in best]


def test_labels_of_two_classes():
    readout = Readout(np.array([False, True]), "binary")
    assert_array_equal(readout.labels_of(np.array([0, 1, 1])), [False, True, True])


@pytest.mark.parametrize("classes", LABELS.values(), ids=list(LABELS))
def test_labels_of_no_rows(classes):
    found = Readout(classes, "multiclass").labels_of(np.empty(0, dtype=np.int64))
    assert found.shape == (0,)
    assert found.dtype == classes.dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_indicators_are_1_where_a_score_is_positive(dtype, scores):
    scores = scores.astype(dtype)
    scores[0] = [0.0, -0.0, np.finfo(dtype).tiny, -np.finfo(dtype).tiny]
    found = Readout(labels(4), "multilabel").indicators(scores)
    assert_array_equal(found[0], [0, 0, 1, 0])
    assert_array_equal(found, np.where(scores > 0, 1, 0))
    assert np.issubdtype(found.dtype, np.integer)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_indicators_are_1_where_a_score_is_above_its_threshold(dtype, scores):
    scores = scores.astype(dtype)
    thresholds = np.array([0.1, -0.5, 0.0, 2.0])
    scores[0] = thresholds  # in the precision of the scores it is not above
    readout = Readout(labels(4), "multilabel", thresholds=thresholds)
    found = readout.indicators(scores)
    assert_array_equal(found[0], 0)
    assert_array_equal(found, np.where(scores > thresholds.astype(dtype), 1, 0))
    assert_array_equal(readout.is_on(scores), found == 1)
    assert_array_equal(readout.label_thresholds(), thresholds)
    assert_array_equal(Readout(labels(4), "multilabel").label_thresholds(), np.zeros(4))


def test_readouts_of_other_thresholds_are_not_equal():
    plain = Readout(labels(2), "multilabel")
    assert plain == Readout(labels(2), "multilabel", thresholds=np.zeros(2))
    assert plain != Readout(labels(2), "multilabel", thresholds=np.array([0.0, 1.0]))


@pytest.mark.parametrize(
    ("kind", "thresholds"),
    [
        ("multiclass", np.zeros(3)),
        ("multilabel", np.zeros(2)),
        ("multilabel", np.zeros((3, 1))),
        ("multilabel", np.array([0.0, np.inf, 0.0])),
        ("multilabel", np.zeros(3, dtype=np.float32)),
    ],
)
def test_thresholds_that_do_not_go_with_labels_are_refused(kind, thresholds):
    with pytest.raises(ValueError, match="a finite number for each of 3 labels"):
        Readout(labels(3), kind, thresholds=thresholds)


def test_softmax_is_scipys(scores):
    logs = Readout(labels(4), "multiclass", "softmax").log_probabilities(scores)
    assert_allclose(np.exp(logs), softmax(scores, axis=1), rtol=1e-12)


def test_one_against_rest_is_the_logistic_function_normalised(scores):
    logs = Readout(labels(4), "multiclass", "one_against_rest").log_probabilities(scores)
    each = expit(scores)
    assert_allclose(np.exp(logs), each / each.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("link", ["softmax", "one_against_rest"])
def test_two_classes_have_the_logistic_function(link, scores):
    logs = Readout(labels(2), "binary", link).log_probabilities(scores[:, :1])
    second = expit(scores[:, 0])
    assert_allclose(np.exp(logs), np.stack([1 - second, second], axis=1), rtol=1e-11)
    # The same as two scores whose difference is the one.
    assert_allclose(np.exp(logs), softmax(np.stack([0 * second, scores[:, 0]], 1), axis=1))


def test_labels_that_do_not_exclude_one_another_are_not_normalised(scores):
    readout = Readout(labels(4), "multilabel", "one_against_rest")
    assert_allclose(np.exp(readout.log_probabilities(scores)), expit(scores), rtol=1e-12)


def test_softmax_of_scores_is_that_of_scikit_learns_logistic_regression(three_classes):
    X, y = three_classes
    peer = LogisticRegression().fit(X, y)
    readout = Readout(peer.classes_, "multiclass", "softmax")
    found = readout.log_probabilities(peer.decision_function(X))
    assert_allclose(found, peer.predict_log_proba(X), rtol=1e-10)


def test_two_classes_are_those_of_scikit_learns_logistic_regression(two_classes):
    X, y = two_classes
    peer = LogisticRegression().fit(X, y)
    readout = Readout(peer.classes_, "binary", "softmax")
    found = readout.log_probabilities(peer.decision_function(X)[:, np.newaxis])
    assert_allclose(found, peer.predict_log_proba(X), rtol=1e-10)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kind", "link"),
    [
        ("binary", "softmax"),
        ("multiclass", "softmax"),
        ("multiclass", "one_against_rest"),
        ("multilabel", "one_against_rest"),
    ],
)
def test_probabilities_of_extreme_scores(kind, link, dtype):
    n_scores = 1 if kind == "binary" else 3
    grids = np.meshgrid(*[np.array(EXTREME, dtype=dtype)] * n_scores)
    scores = np.stack([grid.ravel() for grid in grids], axis=1)
    with np.errstate(all="raise", under="ignore"):
        logs = Readout(labels(max(2, n_scores)), kind, link).log_probabilities(scores)
    assert logs.dtype == dtype
    assert np.isfinite(logs).all()
    assert (logs <= 0).all()
    if kind != "multilabel":
        assert_allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "link", "n_classes"),
    [("binary", "softmax", 2), ("multiclass", "softmax", 3), ("multiclass", "one_against_rest", 3)],
)
def test_no_rows_have_no_probabilities(kind, link, n_classes):
    readout = Readout(labels(n_classes), kind, link)
    assert readout.log_probabilities(np.empty((0, readout.n_outputs))).shape == (0, n_classes)


BAD = {
    "unknown kind": (labels(3), "regression", None, "'regression' is no kind"),
    "no kind": (labels(3), None, None, "None is no kind"),
    "unknown link": (labels(3), "multiclass", "probit", "'probit' is no link"),
    "two classes with a score each": (labels(2), "multiclass", None, r"multiclass.*\(2,\)"),
    "one class": (labels(1), "binary", None, r"binary.*\(1,\)"),
    "three classes with one score": (labels(3), "binary", None, r"binary.*\(3,\)"),
    "classes in a table": (labels(4).reshape(2, 2), "multiclass", None, r"\(2, 2\)"),
    "labels in a table": (labels(4).reshape(2, 2), "multilabel", None, r"\(2, 2\)"),
    "softmax of labels": (labels(3), "multilabel", "softmax", "no softmax"),
}


@pytest.mark.parametrize(("classes", "kind", "link", "words"), BAD.values(), ids=list(BAD))
def test_what_does_not_go_together_is_refused(classes, kind, link, words):
    with pytest.raises(ValueError, match=words):
        Readout(classes, kind, link)

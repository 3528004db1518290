"""Probabilities of labels from the scores of machines whose loss has none."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import brier_score_loss

from widemargin import (
    KernelMultiLabelClassifier,
    LinearMultiLabelClassifier,
    SparseKernelMultiLabelClassifier,
    SparseKernelMultiLabelClassifierCV,
    export,
    load,
    save,
)
from widemargin.estimation.calibration import sigmoids

MACHINES = {
    "full": KernelMultiLabelClassifier(probability=True, random_state=0),
    "linear": LinearMultiLabelClassifier(C=0.1, probability=True, random_state=0),
    "sparse": SparseKernelMultiLabelClassifier(20, probability=True, random_state=0),
}


def rows(n_rows=600, seed=0):
    X, Y = make_multilabel_classification(
        n_rows, n_features=10, n_classes=4, n_labels=2, random_state=seed
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


def cross_entropy(at, scores, own, weights):
    """Platt's target function, with the targets of his section 2.2."""
    many, others = weights[own].sum(), weights[~own].sum()
    targets = np.where(own, (many + 1) / (many + 2), 1 / (others + 2))
    odds = at[0] * scores + at[1]
    return -np.sum(weights * (targets * log_expit(odds) + (1 - targets) * log_expit(-odds)))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_sigmoids_are_where_the_cross_entropy_is_least(scale):
    rng = np.random.RandomState(0)
    own = rng.rand(80, 2) < [0.5, 0.1]
    scores = (own + rng.randn(80, 2)).round(2)
    weights = rng.randint(1, 4, 80).astype(float)
    found = sigmoids(scale * scores, own.astype(int), weights)
    shares = weights / weights.mean()
    for label in range(2):
        told = (scores[:, label], own[:, label], shares)
        best = minimize(cross_entropy, [0.0, 0.0], args=told, method="BFGS", tol=1e-10)
        at = [found[0, label] * scale, found[1, label]]
        assert cross_entropy(at, *told) <= best.fun + 1e-8
    assert_allclose(sigmoids(scores, sp.csr_matrix(own), weights), sigmoids(scores, own, weights))
    assert_allclose(sigmoids(scores, own, 9 * weights), sigmoids(scores, own, weights), rtol=1e-9)


def test_scores_that_tell_nothing_give_the_share_of_the_label():
    own = np.arange(30)[:, None] < 10
    for scores in (np.zeros((30, 1)), np.ones((30, 1)), -1.0 * own):
        slope, shift = sigmoids(scores, own, np.ones(30))[:, 0]
        assert slope >= 0
        told = expit(slope * scores[:, 0] + shift)
        assert_allclose(told, 11 / 32, atol=0.02)


@pytest.mark.parametrize("name", MACHINES)
def test_probabilities_rise_with_scores_and_are_better_than_scores_that_are_clipped(name):
    X, Y = rows()
    machine = clone(MACHINES[name]).fit(X[:400], Y[:400])
    told, scores = machine.predict_proba(X[400:]), machine.decision_function(X[400:])
    assert told.shape == (200, 4)
    assert ((told > 0) & (told < 1)).all()
    assert_allclose(np.exp(machine.predict_log_proba(X[400:])), told)
    naive = np.clip((scores + 1) / 2, 0, 1)
    for label in range(4):
        order = np.argsort(scores[:, label])
        assert (np.diff(told[order, label]) >= 0).all()
    brier = [
        np.mean([brier_score_loss(Y[400:, label], each[:, label]) for label in range(4)])
        for each in (told, naive)
    ]
    assert brier[0] < brier[1]
    assert_allclose(told.mean(axis=0), Y[400:].mean(axis=0), atol=0.12)


@pytest.mark.parametrize("name", MACHINES)
def test_they_are_there_only_when_asked_for(name):
    X, Y = rows(120)
    plain = clone(MACHINES[name]).set_params(probability=False)
    assert hasattr(clone(MACHINES[name]), "predict_proba")
    assert not hasattr(plain, "predict_proba")
    plain.fit(X, Y)
    with pytest.raises(AttributeError, match="probability=True"):
        plain.predict_proba(X)
    calibrated = clone(MACHINES[name]).fit(X, Y)
    assert_array_equal(plain.decision_function(X), calibrated.decision_function(X))
    assert_array_equal(plain.predict(X), calibrated.predict(X))
    with pytest.raises(TypeError, match="probability must be"):
        plain.set_params(probability="yes").fit(X, Y)


@pytest.mark.parametrize("name", MACHINES)
def test_a_fit_again_and_a_file_give_the_same(name, tmp_path):
    X, Y = rows(120)
    machine = clone(MACHINES[name]).set_params(threshold="tuned").fit(X, Y)
    told = machine.predict_proba(X)
    assert_array_equal(clone(machine).fit(X, Y).predict_proba(X), told)
    path = tmp_path / "machine.widemargin"
    save(machine, path)
    kept = load(path)
    assert_array_equal(kept.predict_proba(X), told)
    assert kept.readout_ == machine.readout_
    assert_allclose(machine.compile().predict_proba(X), told, atol=1e-4)
    # The folds of thresholds are those of probabilities, and neither changes the other.
    alone = clone(machine).set_params(probability=False).fit(X, Y)
    assert_array_equal(alone.thresholds_, machine.thresholds_)


@pytest.mark.parametrize("name", MACHINES)
def test_labels_that_never_vary_have_probabilities_of_0_and_1(name, tmp_path):
    X, Y = rows(90)
    Y[:, 0], Y[:, 2] = 1, 0
    with pytest.warns(UserWarning, match="there is nothing to learn"):
        machine = clone(MACHINES[name]).fit(X, Y)
    told = machine.predict_proba(X)
    assert (told[:, 0] == 1).all()
    assert (told[:, 2] == 0).all()
    save(machine, tmp_path / "machine.widemargin")
    assert_array_equal(load(tmp_path / "machine.widemargin").predict_proba(X), told)


def test_weights_count_in_the_sigmoids():
    X, Y = rows(300)
    weights = np.where(Y[:, 0] > 0, 5.0, 1.0)
    told = [
        clone(MACHINES["linear"]).fit(X, Y, sample_weight=each).predict_proba(X)[:, 0].mean()
        for each in (None, weights)
    ]
    assert told[1] > told[0] + 0.1
    left_out = (np.arange(300) % 3 > 0).astype(float)
    part = clone(MACHINES["linear"]).fit(X, Y, sample_weight=left_out)
    without = clone(MACHINES["linear"]).fit(X[left_out > 0], Y[left_out > 0])
    assert_allclose(part.predict_proba(X), without.predict_proba(X), atol=0.15)


def test_a_logistic_loss_has_its_own():
    X, Y = rows(120)
    plain, asked = (
        SparseKernelMultiLabelClassifier(10, loss="logistic", probability=asked, random_state=0)
        for asked in (False, True)
    )
    assert_array_equal(plain.fit(X, Y).predict_proba(X), asked.fit(X, Y).predict_proba(X))


def test_a_search_calibrates_what_it_has_chosen():
    X, Y = rows(150)
    search = SparseKernelMultiLabelClassifierCV(
        [4, 8], Cs=[1.0], widths=[1.0], basis="shared", cv=2, probability=True, random_state=0
    )
    assert hasattr(search, "predict_proba")
    told = search.fit(X, Y).predict_proba(X)
    assert_array_equal(search.best_estimator_.predict_proba(X), told)


@pytest.mark.parametrize("name", MACHINES)
def test_exports_have_scores_and_labels_alone(name, tmp_path):
    onnx = pytest.importorskip("onnx")
    X, Y = rows(90)
    machine = clone(MACHINES[name]).fit(X, Y)
    exported = export.to_onnx(machine)
    onnx.checker.check_model(exported)
    assert [output.name for output in exported.graph.output] == ["label", "scores"]
    export.to_c(machine, tmp_path / "machine.c")
    assert "proba" not in (tmp_path / "machine.c").read_text(encoding="utf-8")


def test_few_rows_are_too_few():
    X, Y = rows(5)
    with pytest.raises(ValueError, match="probability=True needs 6 rows"):
        clone(MACHINES["full"]).fit(X, Y)

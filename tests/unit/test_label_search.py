"""The search for settings of machines of label sets."""

import numpy as np
import pytest
import scipy.sparse as sp
from label_machine import label_problem
from numpy.testing import assert_array_equal
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold, KFold

from widemargin import SparseKernelMultiLabelClassifierCV, priors

X, Y = label_problem(n_rows=90, n_labels=3)
QUICK = {"max_basis": [3, 6], "Cs": [1.0, 10.0], "widths": [1.0], "basis": "shared", "cv": 2}


def search(**settings):
    return SparseKernelMultiLabelClassifierCV(random_state=0, **(QUICK | settings))


@pytest.fixture(scope="module")
def found():
    return search().fit(X, Y)


def test_the_score_is_the_mean_of_micro_and_macro_f1(found):
    told = found.predict(X)
    each = [f1_score(Y, told, average=average) for average in ("micro", "macro")]
    assert found.score(X, Y) == pytest.approx(np.mean(each))
    by_name = search(scoring="f1_samples").fit(X, Y)
    assert by_name.score(X, Y) == pytest.approx(f1_score(Y, by_name.predict(X), average="samples"))


def test_the_best_of_the_record_is_taken(found):
    table = found.cv_results_
    assert found.best_params_["max_basis"] in (3, 6)
    assert found.best_params_["C"] in (1.0, 10.0)
    assert table["mean_test_score"][found.best_index_] == found.best_score_
    assert found.n_splits_ == 2
    assert_array_equal(found.best_estimator_.predict(X), found.predict(X))
    again = found.best_estimator_.fit(X, Y)
    assert_array_equal(again.decision_function(X), found.decision_function(X))


def test_sparse_labels_make_the_same_choice(found):
    sparse = search().fit(X, sp.csr_matrix(Y))
    assert sparse.best_params_ == found.best_params_
    assert_array_equal(sparse.predict(X), found.predict(X))


@pytest.mark.thorough
def test_a_learned_basis_with_a_prior_and_weights_is_searched():
    settings = {"basis": "learned", "Cs": "auto", "max_basis": [3], "threshold": "tuned"}
    learned = search(**settings, prior=priors.from_labels(Y), class_weight="balanced").fit(X, Y)
    assert learned.n_basis_ == 3
    assert learned.best_params_["C"] == pytest.approx(learned.C_)
    assert learned.score(X, Y) > 0.7
    assert learned.thresholds_.any()
    losses = learned.cv_results_["mean_test_loss"]
    assert np.isfinite(losses).all()


def test_a_label_that_a_split_lacks_is_no_reason_to_stop():
    rare = np.column_stack([Y, np.arange(90) == 17])
    assert search().fit(X, rare).predict(X).shape == (90, 4)


def test_splits_of_ones_own(found):
    groups = np.arange(90) // 10
    by_groups = search(cv=GroupKFold(3)).fit(X, Y, groups=groups)
    assert by_groups.n_splits_ == 3
    assert search(cv=KFold(4)).fit(X, Y).n_splits_ == 4
    with pytest.raises(
        ValueError, match="need 100 rows of positive weight or more, got n_samples=90"
    ):
        search(cv=50).fit(X, Y)
    with pytest.raises(ValueError, match="at least one split"):
        search(cv=[(np.arange(80), np.arange(0))]).fit(X, Y)


def test_without_refit_nothing_is_predicted():
    machine = search(refit=False).fit(X, Y)
    assert set(machine.best_params_) == {"C", "gamma", "max_basis"}
    with pytest.raises(ValueError, match="SparseKernelMultiLabelClassifier with best_params_"):
        machine.predict(X)

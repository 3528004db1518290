"""imbalanced-learn: its samplers before our machines, and its ensembles around them."""

import numpy as np
import pytest
from conftest import overlapping_classes
from contract import CLASS_ESTIMATORS
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from widemargin import SparseKernelClassifier

pytest.importorskip("imblearn")
from imblearn.ensemble import (
    BalancedBaggingClassifier,
    EasyEnsembleClassifier,
    RUSBoostClassifier,
)
from imblearn.over_sampling import SMOTE, RandomOverSampler
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from imblearn.under_sampling import RandomUnderSampler

QUICK = {"SparseKernelClassifierCV": {"cv": 2, "max_basis": [4], "Cs": [1.0], "widths": [1.0]}}
SMALL = SparseKernelClassifier(6, random_state=0)
SAMPLERS = {
    "over": RandomOverSampler(random_state=0),
    "under": RandomUnderSampler(random_state=0),
    "smote": SMOTE(random_state=0),
}
every_estimator = pytest.mark.parametrize("name", CLASS_ESTIMATORS)


def rare_class():
    """Return rows of three classes that overlap, one of them with a tenth of the rows."""
    X, y = overlapping_classes(330, 3)
    kept = (y != 2) | (np.arange(330) < 60)
    return X[kept], np.array(["ash", "birch", "cedar"])[y[kept]]


def machine(name):
    return CLASS_ESTIMATORS[name](random_state=0, **QUICK.get(name, {}))


@every_estimator
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_sampler_before_a_machine_is_as_both_by_hand(name, sampler):
    X, y = rare_class()
    together = make_sampling_pipeline(clone(SAMPLERS[sampler]), machine(name)).fit(X, y)
    by_hand = machine(name).fit(*clone(SAMPLERS[sampler]).fit_resample(X, y))
    np.testing.assert_array_equal(together.decision_function(X), by_hand.decision_function(X))
    np.testing.assert_array_equal(together.predict(X), by_hand.predict(X))


def test_sampling_helps_the_rare_class():
    X, y = rare_class()
    plain = make_pipeline(clone(SMALL)).fit(X, y)
    balanced = make_sampling_pipeline(clone(SAMPLERS["over"]), clone(SMALL)).fit(X, y)
    recall = {
        title: np.mean(fitted.predict(X[y == "cedar"]) == "cedar")
        for title, fitted in {"plain": plain, "balanced": balanced}.items()
    }
    assert recall["balanced"] > recall["plain"]


def test_a_grid_search_over_sampler_and_machine():
    X, y = rare_class()
    search = GridSearchCV(
        make_sampling_pipeline(clone(SAMPLERS["smote"]), clone(SMALL)),
        {"smote__k_neighbors": [3, 5], "sparsekernelclassifier__C": [0.1, 10.0]},
        scoring="balanced_accuracy",
        cv=StratifiedKFold(2),
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 1 / 3
    assert (
        search.best_params_["sparsekernelclassifier__C"]
        == search.best_estimator_["sparsekernelclassifier"].C
    )


ENSEMBLES = {
    "bagging": lambda inner: BalancedBaggingClassifier(inner, n_estimators=3, random_state=0),
    "easy": lambda inner: EasyEnsembleClassifier(
        2, estimator=AdaBoostClassifier(inner, n_estimators=2, random_state=0), random_state=0
    ),
    "boosting": lambda inner: RUSBoostClassifier(inner, n_estimators=3, random_state=0),
}
# A search within a boosted machine within an ensemble is nothing that anybody would wait for.
CASES = [
    (ensemble, name)
    for ensemble in ENSEMBLES
    for name in CLASS_ESTIMATORS
    if name not in QUICK or ensemble == "bagging"
]


@pytest.mark.parametrize(("ensemble", "name"), CASES)
def test_ensembles_around_every_machine(ensemble, name):
    X, y = rare_class()
    fitted = ENSEMBLES[ensemble](machine(name)).fit(X, y)
    assert list(fitted.classes_) == ["ash", "birch", "cedar"]
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    assert balanced_accuracy_score(y, fitted.predict(X)) > 0.5

"""Groups of rows that belong together, in the search for settings."""

import warnings

import numpy as np
import pytest
import sklearn
from conftest import overlapping_classes
from numpy.testing import assert_array_equal
from sklearn.model_selection import (
    GroupKFold,
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SparseKernelClassifierCV

X, y = overlapping_classes(90, 3)
GROUPS = np.arange(90) // 3 % 6


def search(cv, **settings):
    fixed = {"Cs": [1.0, 10.0], "widths": [1.0], "basis": "shared", "random_state": 0}
    return SparseKernelClassifierCV([3, 6], cv=cv, **(fixed | settings))


@pytest.mark.combinations
@pytest.mark.parametrize(
    "cv", [GroupKFold(3), LeaveOneGroupOut(), StratifiedGroupKFold(3)], ids=repr
)
@pytest.mark.parametrize("form", [np.asarray, list, lambda groups: [f"g{each}" for each in groups]])
def test_the_splitter_gets_them(cv, form):
    fitted = search(cv).fit(X, y, groups=form(GROUPS))
    same = search(list(cv.split(X, y, GROUPS))).fit(X, y)
    assert fitted.n_splits_ == same.n_splits_ == cv.get_n_splits(X, y, GROUPS)
    assert_array_equal(fitted.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"])
    assert_array_equal(fitted.decision_function(X), same.decision_function(X))


def test_weights_go_with_them():
    weights = (np.arange(90) % 10 > 0) * 1.0
    fitted = search(GroupKFold(3)).fit(X, y, weights, GROUPS)
    assert fitted.n_splits_ == 3


def test_splitters_that_need_them_say_so():
    with pytest.raises(ValueError, match=r"groups.*Pass groups to fit"):
        search(GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        search(GroupKFold(3)).fit(X, y, groups=GROUPS[:50])


@pytest.mark.parametrize("cv", [None, 3])
def test_folds_that_do_not_look_at_them_warn(cv):
    with pytest.warns(UserWarning, match=rf"cv={cv} makes folds without.*GroupKFold") as caught:
        search(cv).fit(X, y, groups=GROUPS)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search(cv).fit(X, y)


def test_metadata_routing_brings_them():
    with sklearn.config_context(enable_metadata_routing=True):
        machine = search(GroupKFold(2))
        assert machine.get_metadata_routing().fit.requests["groups"] is True
        scores = cross_validate(
            make_pipeline(StandardScaler(), machine),
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": GROUPS},
        )
        assert np.isfinite(scores["test_score"]).all()
        machine.set_fit_request(groups=False)
        with pytest.raises(ValueError, match="Pass groups to fit"):
            cross_validate(
                machine, X, y, cv=GroupKFold(3), params={"groups": GROUPS}, error_score="raise"
            )

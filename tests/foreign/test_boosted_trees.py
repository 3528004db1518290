"""LightGBM and CatBoost teach learned vectors, whatever their classes are."""

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import LearnedBasis, compress
from widemargin.sparse_kernel.teachers import Teacher

NAMES = {"numbers": np.arange(4), "text": np.array(["ash", "birch", "cedar", "elm"])}


def boosted(package):
    if package == "lightgbm":
        return pytest.importorskip("lightgbm").LGBMClassifier(n_estimators=20, verbose=-1)
    return pytest.importorskip("catboost").CatBoostClassifier(
        iterations=20, verbose=False, allow_writing_files=False
    )


@pytest.mark.parametrize("package", ["lightgbm", "catboost"])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("names", NAMES)
def test_boosted_trees_teach(package, n_classes, names):
    X, numbers = overlapping_classes(160, n_classes, seed=3)
    y = NAMES[names][numbers]
    teacher = boosted(package).fit(X, y)
    found = Teacher(teacher).probabilities(X, sharpen=False)
    assert_allclose(found, teacher.predict_proba(X), atol=1e-12)
    small = compress(
        teacher, 8, X, y, basis=LearnedBasis(max_iter=12), random_state=0, verbose=False
    )
    assert_array_equal(small.classes_, np.unique(y))
    assert small.history_["agreement"][-1] == np.mean(
        small.predict(X) == teacher.predict(X).ravel()
    )
    assert small.history_["accuracy"][-1] > 0.7

"""shap: explanations of scores, labels' probabilities and compiled predictions add up."""

import numpy as np
import pytest
from conftest import overlapping_classes

from widemargin import KernelClassifier, SparseKernelClassifier

shap = pytest.importorskip("shap")

X, Y = overlapping_classes(60, 3)
# A feature that no class depends on must get no share in any score.
IGNORED = 2
ROWS = X.copy()
ROWS[:, IGNORED] = 0.0
FUNCTIONS = {
    "scores of KernelClassifier": lambda: (
        KernelClassifier(random_state=0).fit(ROWS, Y).decision_function
    ),
    "probabilities": lambda: (
        SparseKernelClassifier(6, loss="logistic", random_state=0).fit(ROWS, Y).predict_proba
    ),
    "compiled": lambda: (
        SparseKernelClassifier(6, random_state=0).fit(ROWS, Y).compile().decision_function
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shares_of_the_features_add_up_to_the_output(name):
    function = FUNCTIONS[name]()
    background, explained = ROWS[:15], ROWS[40:44]
    found = shap.explainers.Exact(function, shap.maskers.Independent(background))(explained)
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, function(explained), rtol=1e-5, atol=1e-5)
    assert np.abs(found.values[:, IGNORED]).max() < 1e-6
    assert np.abs(found.values).max() > 1e-2

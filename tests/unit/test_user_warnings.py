"""A warning names the line of the user, however deep it arises."""

import warnings

import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

import widemargin
from widemargin import SparseKernelClassifier
from widemargin._system.warnings import warn_user


def nested(depth):
    if depth == 0:
        warn_user("deep")
    else:
        nested(depth - 1)


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_frames_of_the_package_are_passed_over(depth, monkeypatch):
    monkeypatch.setitem(globals(), "__name__", "widemargin.pretended")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        nested(depth)
    (warning,) = told
    assert not warning.filename.startswith(str(widemargin.__path__[0]))
    assert warning.filename != __file__


def test_a_fit_inside_scikit_learn_points_at_who_called_that():
    X, y = load_iris(return_X_y=True)
    machine = SparseKernelClassifier(max_basis=200, random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        machine.fit(X, y)
        here = told[-1]
        cross_val_score(machine, X, y, cv=2)
    assert here.filename == __file__
    assert "site-packages/sklearn" not in told[-1].filename
    assert len(told) == 3

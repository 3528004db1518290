"""Estimators of scikit-learn that a fit uses inside stay inside.

Tools that track experiments wrap the methods of all scikit-learn's estimators. They must see what
the user fits, and nothing that the library fits on the way.
"""

import functools

import numpy as np
import pytest
from conftest import overlapping_classes
from contract import targets, unfitted
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.svm import SVC
from sklearn.utils import all_estimators

from widemargin import LearnedBasis, SparseKernelClassifier, compress
from widemargin._registry import ESTIMATORS
from widemargin.solvers.units import start as unit_start

X, Y = overlapping_classes(90, 3)
SUPPORT_VECTORS = SVC(C=10).fit(X, Y)
QUICK = {
    name: {"cv": 2, "max_basis": [4], "Cs": [1.0]} for name in ESTIMATORS if name.endswith("CV")
}
MACHINES = {
    **{name: unfitted(name, **QUICK.get(name, {})) for name in ESTIMATORS},
    "projection": SparseKernelClassifier(6, basis="learned", random_state=0),
    "adam": SparseKernelClassifier(
        6, basis=LearnedBasis(solver="adam", max_iter=2), random_state=0
    ),
}


def learned(name):
    """Return class numbers, or sets of labels where an estimator learns these."""
    return targets(name, Y, np.arange(3)) if name in ESTIMATORS else Y


FITS = {
    **{
        name: lambda name=name, machine=machine: clone(machine).fit(X, learned(name))
        for name, machine in MACHINES.items()
    },
    "compress": lambda: compress(SUPPORT_VECTORS, 6, X, random_state=0, verbose=False),
}


@pytest.fixture
def seen(monkeypatch):
    """Wrap what scikit-learn's estimators fit with, and list the classes whose wrapper is met."""
    met = []

    def wrapped(method):
        @functools.wraps(method)
        def wrapper(self, *args, **kwargs):
            met.append(type(self).__name__)
            return method(self, *args, **kwargs)

        return wrapper

    for _, estimator in all_estimators():
        for name in ("fit", "fit_transform", "fit_predict"):
            if callable(vars(estimator).get(name)):
                monkeypatch.setattr(estimator, name, wrapped(vars(estimator)[name]))
    return met


def test_the_wrappers_are_met_by_who_calls_a_method(seen):
    KMeans(2, n_init=1).fit(X)
    assert seen == ["KMeans"]


@pytest.mark.parametrize("name", FITS)
def test_no_wrapper_sees_a_fit_within_a_fit(name, request):
    expected = FITS[name]().decision_function(X)
    seen = request.getfixturevalue("seen")
    assert_array_equal(FITS[name]().decision_function(X), expected)
    assert seen == []


def test_an_implementation_in_the_place_of_another_is_used(monkeypatch, rng):
    def fit(self, rows, y=None, sample_weight=None):
        self.cluster_centers_ = rows[: self.n_clusters] + 1.0
        return self

    monkeypatch.setattr(KMeans, "fit", fit)
    rows = X[:10]
    found = unit_start._clusters(rows, np.ones(10), 3, rng)
    assert_array_equal(found, rows[:3] + 1.0)

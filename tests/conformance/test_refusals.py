"""Whatever is wrong with the data or a parameter, every estimator says so and stays as it was."""

import copy
import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from contract import (
    ESTIMATORS,
    every_estimator,
    fitted,
    has_parameter,
    has_two_labels,
    is_multilabel,
    problem,
    same_state,
    unfitted,
)
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

pytestmark = pytest.mark.every_case

METHODS = ("predict", "decision_function")


def spoilt(X, value, form=np.asarray):
    X = X.copy()
    X[4, 1] = value
    return form(X)


def some_zero(y, value):
    """Return weights of which those of one class are something else than 1."""
    return np.where(np.arange(len(y)) % 3 == 0, value, 1.0)


# what is wrong: (rows, targets, weights made of good rows and targets, words of the message)
BAD_DATA = {
    "NaN": (lambda X, y: (spoilt(X, np.nan), y, None), "NaN"),
    "NaN in sparse rows": (lambda X, y: (spoilt(X, np.nan, sp.csr_matrix), y, None), "NaN"),
    "infinity": (lambda X, y: (spoilt(X, np.inf), y, None), "infinity"),
    "infinity in sparse rows": (
        lambda X, y: (spoilt(X, -np.inf, sp.csr_matrix), y, None),
        "infinity",
    ),
    "words for numbers": (lambda X, y: (np.full(X.shape, "far", object), y, None), "far"),
    "no rows": (lambda X, y: (X[:0], y[:0], None), "0 sample"),
    "no features": (lambda X, y: (X[:, :0], y, None), "0 feature"),
    "one row alone, not in a table": (lambda X, y: (X[0], y, None), "[Rr]eshape|2D array"),
    "rows without a class": (lambda X, y: (X, y[:20], None), "inconsistent numbers of samples"),
    "weight below zero": (lambda X, y: (X, y, np.linspace(-1, 1, len(y))), "[Nn]egative"),
    "no weight at all": (lambda X, y: (X, y, np.zeros(len(y))), "zero"),
    "NaN for a weight": (lambda X, y: (X, y, some_zero(y, np.nan)), "NaN"),
    "infinity for a weight": (lambda X, y: (X, y, some_zero(y, np.inf)), "infinity"),
    "too few weights": (lambda X, y: (X, y, np.ones(7)), "sample_weight"),
}
# Of estimators whose rows have one class each.
BAD_CLASSES = {
    "one class": (lambda X, y: (X, np.full(len(y), "a"), None), "1 class"),
    "a quantity for classes": (lambda X, y: (X, X[:, 0], None), "[Uu]nknown label type"),
    "several labels a row": (
        lambda X, y: (X, np.stack([y, y], axis=1), None),
        "1d array|indicator matrix of 0 and 1",
    ),
    "NaN for a class": (lambda X, y: (X, some_zero(y, np.nan), None), "NaN"),
}
# Of estimators whose rows have sets of labels.
BAD_LABELS = {
    "a class for each row": (lambda X, y: (X, y[:, 0], None), "1d array"),
    "a quantity for labels": (lambda X, y: (X, X, None), "indicator matrix of 0 and 1"),
    "sets of labels": (lambda X, y: (X, [{0}, {1, 2}] * 60, None), "MultiLabelBinarizer"),
    "numbers above 1": (lambda X, y: (X, 2 * y, None), "indicator matrix of 0 and 1"),
    "numbers above 1 in sparse labels": (
        lambda X, y: (X, sp.csr_matrix(2 * y), None),
        "indicator matrix of 0 and 1",
    ),
    "NaN for a label": (lambda X, y: (X, np.where(y > 0, np.nan, 0.0), None), "NaN"),
    "labels that are none": (lambda X, y: (X, y[:, :0], None), "no labels|0 feature"),
}
# Of estimators whose rows have one of two labels or both; those with one class each are taken, too.
BAD_TWO_LABELS = {
    **{title: case for title, case in BAD_LABELS.items() if title != "a class for each row"},
    "three classes": (lambda X, y: (X, np.arange(len(y)) % 3, None), "Only binary classification"),
    "three labels": (lambda X, y: (X, np.hstack([y, y[:, :1]]), None), "must have two columns"),
    "a row with neither label": (
        lambda X, y: (X, np.where(np.arange(len(y))[:, np.newaxis] == 7, 0, y), None),
        "neither label: 7",
    ),
    "one label alone": (lambda X, y: (X, np.ones_like(y) * [1, 0], None), "only 1 class"),
}
# Of estimators that take kernel matrices.
BAD_KERNEL_VALUES = {
    "a kernel matrix that is not square": (
        lambda X, y: (rbf_kernel(X)[:, :20], y, None),
        r"must be square in fit, got shape \(120, 20\)",
    ),
    "a sparse kernel matrix that is not square": (
        lambda X, y: (sp.csr_matrix(rbf_kernel(X)[:, :20]), y, None),
        r"must be square in fit, got shape \(120, 20\)",
    ),
}


def bad_data():
    for name in ESTIMATORS:
        cases = [({}, title, *case) for title, case in BAD_DATA.items()]
        bad_targets = BAD_LABELS if is_multilabel(name) else BAD_CLASSES
        bad_targets = BAD_TWO_LABELS if has_two_labels(name) else bad_targets
        cases += [({}, title, *case) for title, case in bad_targets.items()]
        if has_parameter(name, "kernel"):
            settings = {"kernel": "precomputed"}
            cases += [(settings, title, *case) for title, case in BAD_KERNEL_VALUES.items()]
        for settings, title, spoil, words in cases:
            yield pytest.param(name, settings, spoil, words, id=f"{name}-{title}")


@pytest.mark.parametrize(("name", "settings", "spoil", "words"), list(bad_data()))
@pytest.mark.parametrize("was_fitted", [False, True], ids=["unfitted", "fitted"])
def test_bad_data(name, settings, spoil, words, was_fitted):
    X, y = problem(name)
    machine = copy.deepcopy(fitted(name)) if was_fitted else unfitted(name)
    machine.set_params(**settings)
    before = dict(vars(machine))
    rows, classes, weights = spoil(X, y)
    with pytest.raises(ValueError, match=words):
        machine.fit(rows, classes, sample_weight=weights)
    assert same_state(machine, before)
    if not was_fitted:
        with pytest.raises(NotFittedError):
            machine.predict(X)


NOTHING = object()
# What a parameter must refuse, by the type of its default.
BAD_VALUES = {
    bool: [1, "yes", None],
    int: [2.5, "3", -1_000_000],
    float: ["1", np.nan],
    str: ["no such choice"],
}
# Errors that scikit-learn raises in words of its own.
WORDS = {"random_state": "seed|random_state", "scoring": "scoring|no such choice"}


def bad_parameters():
    for name, estimator in ESTIMATORS.items():
        for parameter, details in inspect.signature(estimator).parameters.items():
            values = [NOTHING, *BAD_VALUES.get(type(details.default), [])]
            for value in values:
                title = "object()" if value is NOTHING else repr(value)
                yield pytest.param(name, parameter, value, id=f"{name}-{parameter}={title}")


@pytest.mark.parametrize(("name", "parameter", "value"), list(bad_parameters()))
def test_bad_parameter(name, parameter, value):
    """Of every parameter, something of a wrong type; by its name, and before anything is done."""
    machine = copy.deepcopy(fitted(name)).set_params(**{parameter: value})
    before = dict(vars(machine))
    with pytest.raises((ValueError, TypeError), match=WORDS.get(parameter, parameter)):
        machine.fit(*problem(name))
    assert same_state(machine, before)


@every_estimator
@pytest.mark.parametrize("method", METHODS)
def test_bad_rows_at_predict(name, method):
    X, _ = problem(name)
    machine = fitted(name)
    before = dict(vars(machine))
    answer = getattr(machine, method)
    with pytest.raises(ValueError, match="NaN"):
        answer(spoilt(X, np.nan))
    with pytest.raises(ValueError, match="infinity"):
        answer(spoilt(X, np.inf, sp.csr_matrix))
    with pytest.raises(ValueError, match=r"2 features.*expecting 4 features"):
        answer(X[:, :2])
    with pytest.raises(ValueError, match=r"5 features.*expecting 4 features"):
        answer(sp.csr_matrix(np.hstack([X, X[:, :1]])))
    with pytest.raises(ValueError, match=r"[Rr]eshape"):
        answer(X[0])
    assert same_state(machine, before)


@every_estimator
@pytest.mark.parametrize("method", METHODS)
def test_a_machine_that_is_not_fitted_says_so(name, method):
    with pytest.raises(NotFittedError):
        getattr(unfitted(name), method)(problem(name)[0])


@every_estimator
def test_fit_changes_no_parameter(name):
    machine = unfitted(name)
    before = machine.get_params(deep=False)
    machine.fit(*problem(name))
    after = machine.get_params(deep=False)
    assert list(after) == list(before)
    assert all(after[parameter] is before[parameter] for parameter in before)


@every_estimator
@pytest.mark.parametrize("form", [np.array, sp.csr_matrix], ids=["dense", "csr"])
def test_fit_and_predict_change_no_data(name, form):
    X, y = problem(name)
    rows, classes, weights = form(X), y.copy(), np.linspace(0.1, 2, len(y))
    copies = rows.copy(), classes.copy(), weights.copy()
    unfitted(name).fit(rows, classes, sample_weight=weights).predict(rows)
    difference = rows != copies[0]
    assert not (difference.nnz if sp.issparse(difference) else difference.any())
    np.testing.assert_array_equal(classes, copies[1])
    np.testing.assert_array_equal(weights, copies[2])

"""Bad input gets a clear error, and the estimator stays as it was: unfitted, or fitted."""

import inspect
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import ChosenBasis, LearnedBasis, SparseKernelClassifier
from widemargin.losses import CLASS_LOSSES, CrammerSinger

pytestmark = pytest.mark.every_case

rng = np.random.RandomState(0)
X = rng.randn(30, 3)
y = np.arange(30) % 3


def with_value(value, form=np.asarray):
    spoilt = X.copy()
    spoilt[4, 1] = value
    return form(spoilt)


# what is wrong: (parameters, X, y, sample_weight, error, words of the message)
BAD_DATA = {
    "NaN": ({}, with_value(np.nan), y, None, ValueError, "NaN"),
    "NaN in sparse rows": ({}, with_value(np.nan, sp.csr_matrix), y, None, ValueError, "NaN"),
    "infinity": ({}, with_value(np.inf), y, None, ValueError, "infinity"),
    "infinity in sparse rows": (
        {},
        with_value(-np.inf, sp.csr_matrix),
        y,
        None,
        ValueError,
        "infinity",
    ),
    "too large for float32": (
        {},
        sp.csr_matrix(with_value(np.inf), dtype=np.float32),
        y,
        None,
        ValueError,
        "infinity",
    ),
    "words for numbers": ({}, np.full((30, 2), "far", object), y, None, ValueError, "far"),
    "no rows": ({}, X[:0], y[:0], None, ValueError, "0 sample"),
    "no features": ({}, X[:, :0], y, None, ValueError, "0 feature"),
    "rows without a class": ({}, X, y[:20], None, ValueError, "inconsistent numbers of samples"),
    "one class": ({}, X, np.full(30, "a"), None, ValueError, "1 class: .*'a'"),
    "a quantity for classes": ({}, X, X[:, 0], None, ValueError, "[Uu]nknown label type"),
    "several labels a row": ({}, X, np.stack([y, y], axis=1), None, ValueError, "1d array"),
    "NaN for a class": ({}, X, np.where(y == 0, np.nan, y), None, ValueError, "NaN"),
    "kernel matrix that is not square": (
        {"kernel": "precomputed"},
        rbf_kernel(X)[:, :20],
        y,
        None,
        ValueError,
        r"must be square in fit, got shape \(30, 20\)",
    ),
    "sparse kernel matrix that is not square": (
        {"kernel": "precomputed"},
        sp.csr_matrix(rbf_kernel(X)[:, :20]),
        y,
        None,
        ValueError,
        r"must be square in fit, got shape \(30, 20\)",
    ),
    "weight below zero": ({}, X, y, np.linspace(-1, 1, 30), ValueError, "[Nn]egative"),
    "no weight at all": ({}, X, y, np.zeros(30), ValueError, "zero"),
    "NaN for a weight": ({}, X, y, np.where(y == 0, np.nan, 1.0), ValueError, "NaN"),
    "too few weights": ({}, X, y, np.ones(7), ValueError, "sample_weight"),
}

# a parameter: (values, error)
BAD_PARAMETERS = {
    "max_basis": ([0, -3], ValueError),
    "C": ([0, -1.0, np.nan, np.inf, "1", "large"], ValueError),
    "gamma": ([0, -0.5, np.nan, np.inf, "wide"], ValueError),
    "loss": (["hinge", 3, None], ValueError),
    "kernel": (["cubic", 3, None], ValueError),
    "basis": (["private", None, LearnedBasis], ValueError),
    "degree": ([0, -1], ValueError),
    "coef0": ([np.nan, np.inf], ValueError),
    "tol": ([-1e-3, np.nan], ValueError),
    "max_iter": ([0], ValueError),
    "max_seconds": ([0, -1.0, np.nan], ValueError),
    "n_jobs": ([0], ValueError),
    "verbose": ([-1], ValueError),
    "class_weight": (["even", {0: -1.0, 1: 1.0, 2: 1.0}, {0: 0.0, 1: 0.0, 2: 0.0}], ValueError),
    "random_state": (["seven"], ValueError),
}
OF_A_WRONG_TYPE = {
    "max_basis": [2.5, "3", None, True],
    "C": [None, True],
    "gamma": [None, [1.0]],
    "degree": [2.5],
    "coef0": ["0"],
    "fit_intercept": [1, "yes", None],
    "tol": ["0", None],
    "max_iter": [2.5],
    "max_seconds": ["1", True],
    "warm_start": [1, None],
    "n_jobs": ["2", 1.5],
    "verbose": [1.5, "yes", None],
}
# settings of a basis: (values, error)
BAD_SETTINGS = {
    ChosenBasis: {
        "n_candidates": ([0, "some"], [2.5, None]),
        "per_class": ([], [1, "yes", None]),
        "gradient_tol": ([0, -1e-3, np.nan], ["0", None]),
    },
    LearnedBasis: {
        "metric": (["round", None, 2], []),
        "solver": (["sgd", None], []),
        "max_iter": ([0, "some"], [2.5, None]),
        "early_stopping": ([], [1, "yes", None]),
        "linear_part": (["yes"], [1, None]),
        "validation_fraction": ([0.0, 1.0, -0.1, np.nan], ["0.1", None]),
        "n_iter_no_change": ([0], [2.5, None]),
        "gradient_tol": ([0, -1e-3, np.nan], ["0", None]),
    },
}
WRONG = [
    (name, value, error) for name, (values, error) in BAD_PARAMETERS.items() for value in values
] + [(name, value, TypeError) for name, values in OF_A_WRONG_TYPE.items() for value in values]


def unfitted(**parameters):
    return SparseKernelClassifier(**({"max_basis": 5, "random_state": 0} | parameters))


def fitted(**parameters):
    data = rbf_kernel(X) if parameters.get("kernel") == "precomputed" else X
    return unfitted(**parameters).fit(data, y)


def same_state(machine, before):
    """Return whether an estimator has the attributes that it had, the very same objects."""
    after = vars(machine)
    return list(after) == list(before) and all(after[name] is before[name] for name in before)


@pytest.mark.parametrize("make", [unfitted, fitted])
@pytest.mark.parametrize(
    ("parameters", "rows", "classes", "weights", "error", "words"),
    BAD_DATA.values(),
    ids=list(BAD_DATA),
)
def test_bad_data(make, parameters, rows, classes, weights, error, words):
    machine = make(**parameters)
    before = dict(vars(machine))
    with pytest.raises(error, match=words):
        machine.fit(rows, classes, sample_weight=weights)
    assert same_state(machine, before)
    if make is unfitted:
        with pytest.raises(NotFittedError):
            machine.predict(X)


@pytest.mark.parametrize("make", [unfitted, fitted])
@pytest.mark.parametrize(
    ("name", "value", "error"), WRONG, ids=[f"{name}={value!r}" for name, value, _ in WRONG]
)
def test_bad_parameter(make, name, value, error):
    machine = make()
    machine.set_params(**{name: value})
    before = dict(vars(machine))
    words = "seed" if name == "random_state" else name  # in scikit-learn's own words
    with pytest.raises(error, match=words):
        machine.fit(X, y)
    assert same_state(machine, before)
    if make is fitted:
        good = inspect.signature(SparseKernelClassifier).parameters[name].default
        scores = machine.set_params(**{name: good}).decision_function(X)
        assert_array_equal(scores, fitted().decision_function(X))


def test_every_parameter_has_bad_values():
    tested = {*BAD_PARAMETERS, *OF_A_WRONG_TYPE}
    assert tested == set(inspect.signature(SparseKernelClassifier).parameters)


@pytest.mark.parametrize("make", [unfitted, fitted])
@pytest.mark.parametrize("kind", BAD_SETTINGS)
def test_bad_settings_of_a_basis(make, kind):
    assert set(BAD_SETTINGS[kind]) == set(kind().get_params())
    for name, pair in BAD_SETTINGS[kind].items():
        for values, error in zip(pair, (ValueError, TypeError), strict=True):
            for value in values:
                machine = make()
                machine.set_params(basis=kind(), **{f"basis__{name}": value})
                before = dict(vars(machine))
                with pytest.raises(error, match=f"basis.{name} must be"):
                    machine.fit(X, y)
                assert same_state(machine, before)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_bad_rows_at_predict(method):
    machine = fitted(loss="logistic")
    before = dict(vars(machine))
    answer = getattr(machine, method)
    with pytest.raises(ValueError, match="NaN"):
        answer(with_value(np.nan))
    with pytest.raises(ValueError, match="infinity"):
        answer(with_value(np.inf, sp.csr_matrix))
    with pytest.raises(ValueError, match=r"2 features.*expecting 3 features"):
        answer(X[:, :2])
    with pytest.raises(ValueError, match=r"4 features.*expecting 3 features"):
        answer(sp.csr_matrix(np.hstack([X, X[:, :1]])))
    with pytest.raises(ValueError, match=r"[Rr]eshape"):
        answer(X[0])
    assert same_state(machine, before)


def test_bad_rows_for_the_stages():
    machine = fitted()
    with pytest.raises(ValueError, match=r"2 features.*expecting 3 features"):
        next(iter(machine.staged_decision_function(X[:, :2])))


def test_kernel_rows_of_the_basis_are_missing_at_predict():
    machine = fitted(kernel="precomputed")
    K = rbf_kernel(X)
    for missing in (K[:, :10], K[:, machine.basis_indices_], sp.csr_matrix(K[:, :29])):
        with pytest.raises(ValueError, match=rf"{missing.shape[1]}.*30"):
            machine.predict(missing)


@pytest.mark.parametrize("method", ["predict", "decision_function", "staged_decision_function"])
def test_not_fitted(method):
    with pytest.raises(NotFittedError):
        list(getattr(unfitted(), method)(X))


@pytest.mark.parametrize("loss", ["weston_watkins", "crammer_singer", CrammerSinger(0.2)], ids=str)
@pytest.mark.parametrize("make", [unfitted, fitted])
def test_hinge_losses_have_no_probabilities(loss, make):
    machine = make(loss=loss)
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(machine, name)
        with pytest.raises(AttributeError, match=name):
            getattr(machine, name)
    # What a fit has left says how its scores are read, not what the next one would leave.
    assert hasattr(machine.set_params(loss="logistic"), "predict_proba") == (make is unfitted)


def test_fit_changes_no_parameter():
    choices = {
        "loss": CrammerSinger(0.2),
        "kernel": lambda left, right: left @ right.T,
        "class_weight": {0: 1.0, 1: 2.0, 2: 3.0},
        "random_state": np.random.RandomState(3),
        "basis": ChosenBasis(n_candidates="all"),
        "max_basis": 10_000,
        "gamma": "scale",
    }
    weights = dict(choices["class_weight"])
    machine = unfitted(**choices)
    before = machine.get_params()
    machine.fit(X, y)
    after = machine.get_params()
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)
    assert machine.class_weight == weights


@pytest.mark.parametrize("form", [np.array, sp.csr_matrix], ids=["dense", "csr"])
def test_fit_changes_no_data(form):
    rows, classes, weights = form(X), y.copy(), np.linspace(0, 2, 30)
    copies = rows.copy(), classes.copy(), weights.copy()
    unfitted(class_weight="balanced").fit(rows, classes, sample_weight=weights).predict(rows)
    difference = rows != copies[0]
    assert not (difference.nnz if sp.issparse(difference) else difference.any())
    assert_array_equal(classes, copies[1])
    assert_array_equal(weights, copies[2])


@pytest.mark.parametrize("loss", CLASS_LOSSES)
def test_an_error_in_a_kernel_leaves_nothing_behind(loss):
    calls = []

    def failing(left, right):
        calls.append(1)
        if len(calls) > 40:
            raise FloatingPointError("the kernel gave up")
        return rbf_kernel(left, right)

    machine = unfitted(loss=loss, kernel=failing, tol=0, max_basis=30)
    before = dict(vars(machine))
    with pytest.raises(FloatingPointError, match="gave up"):
        machine.fit(X, y)
    assert same_state(machine, before)


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory, lest a failure takes it all")
@pytest.mark.thorough
def test_more_features_than_32_bits_can_number():
    program = """
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        import numpy as np, scipy.sparse as sp
        from widemargin import SparseKernelClassifier
        columns = np.array([0, 1, 2, 2**31, 2**31 + 1, 2**31 + 2])
        X = sp.csr_matrix((np.ones(6), (np.arange(6), columns)), shape=(6, 2**31 + 3))
        try:
            SparseKernelClassifier(3, gamma=1.0).fit(X, [0, 1, 0, 1, 0, 1])
        except ValueError as error:
            print(error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert "features" in run.stdout


def test_class_weight_where_scikit_learn_does_not_look_at_parameters():
    unlooked = sklearn.config_context(skip_parameter_validation=True)
    with unlooked, pytest.raises(ValueError, match="class_weight must be 'balanced', a dict"):
        unfitted(class_weight="even").fit(X, y)

"""The squared loss of full machines of label sets against systems that are written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_multilabel_classification
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import KernelMultiLabelClassifier, load, priors, save
from widemargin.solvers.duals.label_ridge import solve_squared

C = 0.7


def rows(n_rows=40, n_labels=4, seed=0):
    X, Y = make_multilabel_classification(
        n_rows, n_features=5, n_classes=n_labels, allow_unlabeled=True, random_state=seed
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), Y


def machine(**settings):
    return KernelMultiLabelClassifier(loss="squared", C=C, gamma=0.2, **settings)


def written_out(K, signs, caps, R):
    """Solve the equations of all rows and labels at once."""
    n_rows, n_labels = signs.shape
    system = np.kron(R, K) + np.diag(1.0 / (2.0 * caps.T.ravel()))
    return np.linalg.solve(system, signs.T.ravel()).reshape(n_labels, n_rows).T


def relations(n_labels):
    some = np.random.RandomState(1).randn(n_labels, n_labels)
    return {
        "none": np.eye(n_labels),
        "two values": np.diag(1.0 + np.arange(n_labels) % 2),
        "dense": some @ some.T / n_labels,
        "singular": np.outer(some[0], some[0]) + np.outer(some[1], some[1]),
    }


@pytest.mark.parametrize("n_labels", [1, 3, 12])
@pytest.mark.parametrize("which", list(relations(2)))
@pytest.mark.parametrize("caps_of", ["rows", "rows and labels", "all"])
def test_the_solution_is_that_of_the_whole_system(n_labels, which, caps_of):
    rng = np.random.RandomState(0)
    X = rng.randn(25, 3)
    K, R = rbf_kernel(X) + 1.0, relations(max(n_labels, 2))[which][:n_labels, :n_labels]
    signs = np.sign(rng.randn(25, n_labels))
    caps = 0.1 + np.repeat(rng.rand(25, 1), n_labels, axis=1)
    if caps_of == "rows and labels":
        caps = caps * (0.5 + rng.rand(n_labels))
    elif caps_of == "all":
        caps = np.where(signs > 0, 5.0, 1.0) * caps
    found = solve_squared(K, signs, caps, R)
    coefficients = written_out(K, signs, caps, R)
    assert_allclose(found.coefficients, coefficients, rtol=1e-6, atol=1e-7)
    scores = K @ coefficients @ R
    primal = 0.5 * np.sum(coefficients * scores) + np.sum(caps * (signs - scores) ** 2)
    dual = np.sum(signs * coefficients) - 0.5 * np.sum(coefficients * scores)
    dual -= np.sum(coefficients**2 / (4 * caps))
    assert primal == pytest.approx(dual)
    assert found.primal == pytest.approx(primal)
    assert 0.0 <= found.gap < 1e-9 * primal


def test_without_a_prior_it_is_ridge_regression():
    X, Y = rows()
    ours = machine(fit_intercept=False).fit(X, Y)
    theirs = KernelRidge(alpha=1 / (4 * C), kernel="rbf", gamma=0.2).fit(X, 2.0 * Y - 1)
    assert_allclose(ours.decision_function(X), theirs.predict(X), atol=1e-7)
    assert ours.n_basis_ == len(X)
    assert ours.gap_ <= 1e-9 * ours.objective_
    assert ours.stop_reason_ == "tol"
    assert {len(values) for values in ours.history_.values()} == {1}


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
@pytest.mark.parametrize("has_prior", [False, True])
def test_a_weight_of_2_is_a_row_twice(has_prior, class_weight):
    X, Y = rows()
    prior = priors.from_labels(Y, shrinkage=0.3) if has_prior else None
    weights = 1.0 + np.arange(len(X)) % 3
    weights[:4] = 0.0
    again = np.repeat(np.arange(len(X)), weights.astype(int))
    settings = {"prior": prior, "class_weight": class_weight}
    weighed = machine(**settings).fit(X, Y, sample_weight=weights)
    repeated = machine(**settings).fit(X[again], Y[again])
    assert_allclose(weighed.decision_function(X), repeated.decision_function(X), atol=1e-6)
    assert weighed.objective_ == pytest.approx(repeated.objective_)
    assert not set(weighed.basis_indices_) & set(range(4))


def test_a_prior_that_is_singular_and_a_label_that_never_varies(tmp_path):
    X, Y = rows(n_labels=5)
    Y[:, 2] = 1
    R = np.ones((5, 5))
    with pytest.warns(UserWarning, match="2"):
        fitted = machine(prior=R).fit(X, Y)
    scores = fitted.decision_function(X)
    others = np.delete(scores, 2, axis=1)
    assert_allclose(others, others[:, :1].repeat(4, axis=1), atol=1e-8)
    assert fitted.predict(X)[:, 2].all()
    save(fitted, tmp_path / "ridge.widemargin")
    assert_allclose(load(tmp_path / "ridge.widemargin").decision_function(X), scores)


def test_a_kernel_that_is_indefinite_is_refused():
    X, Y = rows()
    kernel = -5.0 * rbf_kernel(X)
    for prior in (None, priors.from_labels(Y)):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            machine(prior=prior).set_params(kernel="precomputed").fit(kernel, Y)


def test_the_end_of_a_fit_is_printed(capsys):
    X, Y = rows()
    machine(verbose=1).fit(X, Y)
    assert "fitted in" in capsys.readouterr().out

"""Kernels that are not positive semi-definite: machines stay sound, and errors stay away."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import read_digits
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from widemargin import (
    ChosenBasis,
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    compress,
)
from widemargin.basis import BasisColumns
from widemargin.candidates import choose_jointly
from widemargin.kernels import CustomKernel, Polynomial, Precomputed, Sigmoid

pytestmark = pytest.mark.combinations

N_ROWS = 120


def problem(seed=0, n_classes=3, n_rows=N_ROWS):
    rng = np.random.RandomState(seed)
    y = np.arange(n_rows) % n_classes
    return 1.5 * rng.randn(n_classes, 4)[y] + rng.randn(n_rows, 4), y


def indefinite(kind, X):
    """Return a symmetric matrix with eigenvalues on both sides of zero."""
    rng = np.random.RandomState(1)
    noise = rng.randn(len(X), len(X))
    values = {
        "negative diagonal": lambda: rbf_kernel(X, gamma=0.3) - 1.5 * np.eye(len(X)),
        "all negative": lambda: np.tanh(0.01 * X @ X.T - 2.0),
        "minkowski": lambda: (X * [1.0, -1.0, 1.0, -1.0]) @ X.T,
        "noise": lambda: noise + noise.T,
        "sigmoid": lambda: np.tanh(0.5 * X @ X.T - 0.5),
        "difference": lambda: rbf_kernel(X, gamma=0.3) - 0.8 * rbf_kernel(X, gamma=0.03),
        "tiny diagonal": lambda: np.where(np.eye(len(X)) > 0, 1e-9, noise + noise.T),
        "far beyond Cauchy-Schwarz": lambda: np.eye(len(X)) + 1e8 * np.tri(len(X), k=-1) % 3,
    }[kind]()
    return (values + values.T) / 2


KINDS = [
    "negative diagonal",
    "all negative",
    "minkowski",
    "noise",
    "sigmoid",
    "difference",
    "tiny diagonal",
    "far beyond Cauchy-Schwarz",
]
every_kind = pytest.mark.parametrize("kind", KINDS)
both_dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def looked_up(K):
    """Return rows that are numbers, and the kernel that looks the values up."""
    rows = np.arange(len(K), dtype=K.dtype)[:, np.newaxis]
    return rows, lambda left, right: K[np.ix_(left[:, 0].astype(int), right[:, 0].astype(int))]


def grown(kernel, rows, n_basis=25, rounds=40):
    basis = BasisColumns(kernel, rows, fit_intercept=True, max_basis=n_basis, n_threads=1)
    rng = np.random.RandomState(2)
    for _ in range(rounds):
        left = np.setdiff1d(np.arange(rows.shape[0]), basis.indices)
        candidates, _ = basis.propose_rows(rng.permutation(left)[:30])
        count = min(4, n_basis - basis.n_basis)
        if len(candidates) == 0 or count == 0:
            continue
        bend = candidates.overlap[np.newaxis] + np.eye(len(candidates))
        chosen = choose_jointly(rng.randn(2, len(candidates)), bend, candidates.overlap, count)
        if len(chosen):
            basis.append(candidates.take(chosen))
    return basis


# ---- the basis


@every_kind
@both_dtypes
def test_columns_are_those_of_the_factor(kind, dtype):
    X, _ = problem()
    K = indefinite(kind, X).astype(dtype)
    basis = grown(Precomputed(), K)
    n = basis.n_basis
    factor, signs = basis._factor[:n, :n], basis._signs
    within = K[np.ix_(basis.indices, basis.indices)].astype(np.float64)
    tolerance = {np.float32: 1e-3, np.float64: 1e-9}[dtype]
    assert n == 25 or kind == "minkowski"  # which has 4 dimensions
    exact = np.ix_(signs != 0, signs != 0)
    size = tolerance * np.abs(within).max()
    assert_allclose((factor * signs @ factor.T)[exact], within[exact], atol=size)
    # The scores of any coefficients are their expansion in kernel values.
    coefficients = np.random.RandomState(3).randn(basis.n_columns, 2)
    coef, intercept = basis.expansion(coefficients)
    expected = K[:, basis.indices].astype(np.float64) @ coef + intercept
    found = basis.columns[0][:, : basis.n_columns] @ coefficients
    assert_allclose(found, expected, atol=tolerance * max(1.0, np.abs(expected).max()))
    assert_allclose(basis.column_coefficients(coef, intercept), coefficients, atol=1e-6)
    # Those that join together may be near one another, but no nearer than a hundredth.
    largest = np.abs(basis.columns[0][:, 1 : basis.n_columns]).max(initial=0.0)
    assert largest <= 150 * np.sqrt(np.abs(K).max())


@pytest.mark.parametrize(
    ("kind", "signs"), [("negative diagonal", {-1}), ("minkowski", {-1, 1}), ("sigmoid", {0, 1})]
)
def test_rows_of_any_sign_join(kind, signs):
    X, _ = problem()
    assert signs <= set(grown(Precomputed(), indefinite(kind, X))._signs)


@both_dtypes
@pytest.mark.parametrize("gamma", [1e-4, 0.01, 1.0])
def test_rounding_makes_no_positive_kernel_indefinite(dtype, gamma):
    X, _ = problem()
    kernel = CustomKernel(lambda left, right: rbf_kernel(left, right, gamma=gamma))
    basis = grown(kernel, np.ascontiguousarray(X, dtype=dtype), n_basis=100)
    assert basis.n_basis > 3
    assert (basis._signs == 1).all()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_chosen_jointly_is_positive_definite(seed):
    rng = np.random.RandomState(seed)
    noise = rng.randn(40, 40) * 10.0 ** rng.uniform(-2, 3)
    overlap = noise + noise.T
    np.fill_diagonal(overlap, 1.0)
    chosen = choose_jointly(rng.randn(3, 40), overlap[np.newaxis] + np.eye(40), overlap, 40)
    assert len(chosen) >= 1
    np.linalg.cholesky(overlap[np.ix_(chosen, chosen)])  # raises if it is not


# ---- the sparse machine


@pytest.mark.combinations(pairs=False)
@every_kind
@both_dtypes
@pytest.mark.parametrize("basis", ["shared", "per_class"])
@pytest.mark.parametrize("form", ["precomputed", "sparse", "callable"])
def test_sparse_machines_of_any_matrix(kind, dtype, basis, form):
    X, y = problem(n_rows=60)
    K = indefinite(kind, X).astype(dtype)
    rows, kernel = (K, "precomputed") if form != "callable" else looked_up(K)
    rows = sp.csr_matrix(rows) if form == "sparse" else rows
    machine = SparseKernelClassifier(15, kernel=kernel, basis=basis, C=1e3, tol=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the matrix, and of no vectors
        machine.fit(rows, y)
        again = clone(machine).set_params(warm_start=True)
        again.__dict__.update({name: vars(machine)[name] for name in vars(machine) if "_" in name})
        again.set_params(max_basis=30).fit(rows, y)
    for each in (machine, again):
        assert np.isfinite(each.decision_function(rows)).all()
        assert np.isfinite(each.history_["objective"]).all()
    if basis == "shared":  # each round only adds, and what is added may stay zero
        objective = machine.history_["objective"]
        assert (np.diff(objective) <= 1e-3 * np.abs(objective[:-1])).all()


@pytest.mark.parametrize("coef0", [-1.0, -0.5, 0.0, 1.0])
@pytest.mark.parametrize("loss", ["weston_watkins", "crammer_singer", "logistic"])
def test_sigmoid_machines_grow_and_learn(coef0, loss):
    X, y = read_digits()
    X = StandardScaler().fit_transform(X)[:1000]
    train, test = (X[:500], y[:500]), (X[500:], y[500:1000])
    settings = {"max_basis": 25, "gamma": "auto", "loss": loss, "random_state": 0, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine = SparseKernelClassifier(kernel="sigmoid", coef0=coef0, **settings).fit(*train)
    assert machine.n_basis_ == 25
    assert machine.score(*test) > SparseKernelClassifier(**settings).fit(*train).score(*test) - 0.03
    scores = machine.model_.kernel.block(X, machine.basis_) @ machine.dual_coef_
    assert_allclose(machine.decision_function(X), scores + machine.intercept_, atol=1e-8)


def test_the_regulariser_is_positive_and_the_gradient_vanishes():
    X, y = problem()
    K = np.tanh(0.5 * X @ X.T - 0.5)
    machine = SparseKernelClassifier(
        20,
        basis=ChosenBasis(gradient_tol=1e-8),
        kernel="precomputed",
        loss="logistic",
        C=5.0,
        tol=0,
        random_state=0,
    ).fit(K, y)
    J, A = machine.basis_indices_, machine.dual_coef_
    rows = K[:, J]
    residual = machine.predict_proba(K) - np.eye(3)[y]
    # R A = -C K_J' residual, with the R = L L' that the vectors have made: symmetric, positive.
    pull = -5.0 * rows.T @ residual
    assert np.einsum("jc,jc->", A, pull) > 0
    assert_allclose(A.T @ pull, (A.T @ pull).T, atol=1e-4 * np.abs(A.T @ pull).max())
    assert (np.linalg.eigvalsh(A.T @ pull) > -1e-6).all()
    assert_allclose(machine.intercept_, -5.0 * residual.sum(axis=0), atol=1e-5)


@pytest.mark.parametrize("kernel", ["distance", "zero"])
def test_rows_without_length_are_named(kernel):
    X, y = problem()
    K = -((X[:, None] - X) ** 2).sum(axis=2) if kernel == "distance" else np.zeros((120, 120))
    with pytest.warns(UserWarning, match="No row of X can be a basis vector"):
        machine = SparseKernelClassifier(5, kernel="precomputed").fit(K, y)
    assert machine.n_basis_ == 0
    assert np.isfinite(machine.decision_function(K)).all()


@pytest.mark.parametrize("form", ["dense", "sparse", "precomputed"])
def test_equal_rows_join_once(form):
    X, y = problem()
    places = np.r_[np.arange(20), np.arange(20), np.arange(20)]
    X, y = np.round(X[places], 1), y[places]
    X[20:40][X[20:40] == 0] = -0.0
    kernel = Sigmoid(0.5, -0.5)
    rows = {"dense": X, "sparse": sp.csr_matrix(X), "precomputed": kernel.block(X, X)}[form]
    machine = SparseKernelClassifier(
        60, kernel="precomputed" if form == "precomputed" else kernel, C=10.0, tol=0, random_state=0
    ).fit(rows, y)
    chosen = places[machine.basis_indices_]
    assert 10 < len(chosen) == len(np.unique(chosen))


def test_rows_without_weight_have_no_say_in_the_regulariser():
    X, y = problem()
    weights = np.r_[np.ones(60), np.zeros(60)]
    X[60:] *= 3.0  # more than the others: the largest entries of columns are theirs
    basis = ChosenBasis(n_candidates="all")
    settings = {"max_basis": 20, "basis": basis, "C": 10.0, "tol": 0, "random_state": 0}
    with_them, without = (
        SparseKernelClassifier(kernel=Polynomial(0.2, 3, -0.5), **settings).fit(*data)
        for data in ((X, y, weights), (X[:60], y[:60]))
    )
    assert_array_equal(with_them.basis_indices_, without.basis_indices_)
    assert_allclose(with_them.objective_, without.objective_, rtol=1e-9)


def test_rows_without_weight_do_not_hide_that_all_others_are_equal():
    X, y = problem()
    X[:60], y[:30] = 1.0, 0  # classes of unlike frequencies, which a vector helps to tell
    with pytest.warns(UserWarning, match="sees all rows of X as equal"):
        SparseKernelClassifier(5, random_state=0).fit(X, y, np.r_[np.ones(60), np.zeros(60)])


# ---- the full machine and the online ones


@pytest.mark.parametrize("solver", ["larank", "full_gradient", "cutting_plane"])
@pytest.mark.parametrize("loss", ["crammer_singer", "weston_watkins"])
@pytest.mark.parametrize("coef0", [-2.0, -0.5, 0.0])
def test_full_sigmoid_machines_say_that_the_kernel_is_indefinite(solver, loss, coef0):
    X, y = problem()
    machine = KernelClassifier(
        solver=solver, loss=loss, kernel="sigmoid", coef0=coef0, max_seconds=20, random_state=0
    )
    machine.set_params(fit_intercept=False)
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        machine.fit(X, y)
    assert machine.stop_reason_ != "max_seconds"
    assert np.isfinite(machine.decision_function(X)).all()
    scores = machine.model_.kernel.block(X, machine.basis_) @ machine.dual_coef_
    assert_allclose(machine.decision_function(X), scores, atol=1e-6)


def test_rounding_of_products_that_cancel_is_named():
    X, y = problem()
    far = X + 1e4  # the tangent is 1 for all, and of rows opposite to it, -1
    far[::2] *= -1
    kernel = Sigmoid(1.0)
    assert_allclose(kernel.magnitude(far), np.square(far).sum(axis=1))
    with pytest.warns(UserWarning, match="Kernel values are of single precision"):
        KernelClassifier(kernel=kernel, C=1e4, max_seconds=5).fit(far, y)


@pytest.mark.parametrize("coef0", [-2.0, -0.5, 0.0])
@pytest.mark.parametrize("policy", ["drop", "merge"])
def test_streams_of_sigmoid_machines(coef0, policy):
    X, y = problem()
    budget = {"budget": 20, "budget_policy": policy}
    for machine in (KernelClassifier(**budget), KernelPerceptron(**budget), KernelMIRA(**budget)):
        machine.set_params(kernel="sigmoid", gamma="auto", coef0=coef0, random_state=0)
        for start in range(0, N_ROWS, 30):
            machine.partial_fit(X[start : start + 30], y[start : start + 30])
        assert 1 <= machine.n_basis_ <= 20
        assert np.isfinite(machine.decision_function(X)).all()


@pytest.mark.parametrize("machine", [KernelClassifier(), KernelPerceptron(), KernelMIRA()], ids=str)
def test_a_stream_may_begin_with_one_row_and_gamma_auto(machine):
    X, y = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.set_params(gamma="auto").partial_fit(X[:1], y[:1], classes=[0, 1, 2])
    assert machine.partial_fit(X, y).model_.kernel.gamma == 0.25


@pytest.mark.parametrize("metric", ["none", "diagonal", "full"])
def test_gamma_auto_of_a_learned_basis_is_that_number(metric):
    X, y = problem()
    settings = {"max_basis": 4, "basis": LearnedBasis(metric=metric, max_iter=3)}
    by_rule, by_number, other = (
        SparseKernelClassifier(gamma=gamma, random_state=0, **settings).fit(X, y)
        for gamma in ("auto", 0.25, "scale")
    )
    assert_array_equal(by_rule.basis_, by_number.basis_)
    assert_array_equal(by_rule.dual_coef_, by_number.dual_coef_)
    assert not np.array_equal(by_rule.dual_coef_, other.dual_coef_)


def test_a_full_sigmoid_machine_is_compressed():
    X, y = problem()
    with pytest.warns(UserWarning, match="not positive semi-definite"):
        full = KernelClassifier(kernel="sigmoid", coef0=-0.5, random_state=0).fit(X, y)
    small = compress(full, 40, X, verbose=False, random_state=0)
    assert small.kernel == full.model_.kernel
    assert small.history_["agreement"][-1] > 0.9

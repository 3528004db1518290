"""``warm_start=True`` grows the machine of the fit before."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from reference.machine import objective
from sklearn.metrics.pairwise import rbf_kernel
from sparse_machines import sparse_machine

from widemargin.losses import CLASS_LOSSES
from widemargin.solvers.greedy import GreedyNewton

pytestmark = pytest.mark.combinations

GAMMA = 0.4
every_loss = pytest.mark.parametrize("loss", CLASS_LOSSES)
every_basis = pytest.mark.parametrize("basis", ["shared", "per_class"])
every_form = pytest.mark.parametrize(
    "form", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr_matrix", "csr_array"]
)


def warm_machine(max_basis, **parameters):
    settings = {"gamma": GAMMA, "tol": 0, "random_state": 0, "warm_start": True}
    return sparse_machine(max_basis, **(settings | parameters))


def dense(basis):
    return basis.toarray() if sp.issparse(basis) else basis


def keeps_all(before, after):
    """Return whether every vector of one machine is among those of the other."""
    rows = {tuple(row) for row in dense(after)}
    return all(tuple(row) in rows for row in dense(before))


@every_loss
@every_form
def test_the_same_data_grows_the_same_machine(loss, form, three_classes):
    X, y = three_classes
    machine = warm_machine(5, loss=loss).fit(form(X), y)
    vectors, numbers, before = machine.basis_, machine.basis_indices_, machine.objective_
    machine.set_params(max_basis=12).fit(form(X), y)
    assert machine.n_basis_ == 12
    assert_array_equal(dense(machine.basis_)[:5], dense(vectors))
    assert_array_equal(machine.basis_indices_[:5], numbers)
    assert machine.objective_ < before
    assert machine.history_["n_basis"][0] == 5
    assert machine.history_["objective"][0] <= before * (1 + 1e-5)  # in single precision


@every_loss
def test_two_classes_start_where_they_ended(loss, two_classes):
    X, y = two_classes
    machine = warm_machine(5, loss=loss, gradient_tol=1e-6).fit(X, y)
    before, scores = machine.objective_, machine.decision_function(X)
    machine.fit(X, y)  # nothing to add, nothing to move
    assert machine.objective_ == pytest.approx(before, rel=1e-9)
    assert_allclose(machine.decision_function(X), scores, atol=1e-4)
    assert machine.set_params(max_basis=10).fit(X, y).objective_ < before


@every_form
def test_per_class_machines_grow_too(form, three_classes):
    X, y = three_classes
    machine = warm_machine(4, basis="per_class").fit(form(X), y)
    vectors, before = machine.basis_, machine.objective_
    machine.set_params(max_basis=8).fit(form(X), y)
    assert keeps_all(vectors, machine.basis_)
    assert machine.objective_ < before
    for number in range(3):
        sizes = machine.history_["n_basis"][machine.history_["class_index"] == number]
        assert (sizes[0], sizes[-1]) == (4, 8)


@every_basis
def test_precomputed_kernel_grows_as_rbf_does(basis, three_classes):
    X, y = three_classes
    K = rbf_kernel(X, gamma=GAMMA)
    known = warm_machine(5, kernel="precomputed", basis=basis).fit(K, y)
    rbf = warm_machine(5, basis=basis).fit(X, y)
    before = known.objective_
    known.set_params(max_basis=10).fit(K, y)
    rbf.set_params(max_basis=10).fit(X, y)
    assert known.objective_ < before
    assert_array_equal(known.basis_indices_, rbf.basis_indices_)
    assert_allclose(known.decision_function(K), rbf.decision_function(X), atol=1e-6)


@every_loss
@every_form
def test_other_data_start_from_the_machine_that_there_is(loss, form, three_classes, rng):
    X, y = three_classes
    machine = warm_machine(6, loss=loss, C=2.0).fit(form(X), y)
    vectors = dense(machine.basis_)
    other = X + 0.3 * rng.randn(*X.shape)
    chosen = CLASS_LOSSES[loss]()
    before = objective(
        chosen,
        chosen.encode(y, 3),
        np.full(len(y), 2.0),
        rbf_kernel(other, vectors, gamma=GAMMA),
        rbf_kernel(vectors, gamma=GAMMA),
        machine.dual_coef_,
        machine.intercept_,
    )
    machine.set_params(max_basis=10).fit(form(other), y)
    assert_array_equal(dense(machine.basis_)[:6], vectors)
    assert_array_equal(machine.basis_indices_[:6], np.full(6, -1))
    assert (machine.basis_indices_[6:] >= 0).all()
    assert_array_equal(dense(machine.basis_)[6:], other[machine.basis_indices_[6:]])
    assert machine.objective_ < before
    assert machine.history_["objective"][0] <= before * (1 + 1e-5)


def test_other_data_per_class(three_classes, rng):
    X, y = three_classes
    machine = warm_machine(4, basis="per_class").fit(X, y)
    vectors = machine.basis_
    machine.set_params(max_basis=7).fit(X + 0.3 * rng.randn(*X.shape), y)
    assert keeps_all(vectors, machine.basis_)
    assert np.sum(machine.basis_indices_ < 0) >= len(vectors)


def test_dense_vectors_serve_sparse_data_and_the_reverse(three_classes):
    X, y = three_classes
    for first, second in [(np.asarray, sp.csr_matrix), (sp.csr_matrix, np.asarray)]:
        machine = warm_machine(5).fit(first(X), y)
        vectors, before = machine.basis_, machine.objective_
        machine.set_params(max_basis=9).fit(second(X), y)
        assert_allclose(dense(machine.basis_)[:5], dense(vectors))
        assert machine.objective_ < before


def test_a_cap_below_the_vectors_that_there_are_is_refused(three_classes):
    X, y = three_classes
    machine = warm_machine(8).fit(X, y)
    with pytest.raises(ValueError, match="more than max_basis=3"):
        machine.set_params(max_basis=3).fit(X, y)
    assert machine.n_basis_ == 8


def test_vectors_from_elsewhere_are_counted_once(three_classes, rng):
    X, y = three_classes
    machine = warm_machine(5, basis="per_class").fit(X, y)
    machine.set_params(max_basis=7).fit(X + 0.3 * rng.randn(*X.shape), y)
    assert machine.n_basis_ == len(np.unique(machine.basis_, axis=0))


def test_without_warm_start_a_fit_begins_anew(three_classes):
    X, y = three_classes
    machine = warm_machine(5, warm_start=False).fit(X, y)
    fresh = warm_machine(9, warm_start=False).fit(X, y)
    machine.set_params(max_basis=9).fit(X, y)
    assert_array_equal(machine.decision_function(X), fresh.decision_function(X))


@pytest.mark.parametrize("change", ["classes", "features", "rows of a kernel matrix"])
def test_a_different_problem_is_refused_and_nothing_is_lost(change, three_classes):
    X, y = three_classes
    kernel = "precomputed" if change == "rows of a kernel matrix" else "rbf"
    data = rbf_kernel(X, gamma=GAMMA) if kernel == "precomputed" else X
    machine = warm_machine(5, kernel=kernel).fit(data, y)
    scores = machine.decision_function(data)
    others = {
        "classes": (X, y % 2),
        "features": (X[:, :3], y),
        "rows of a kernel matrix": (data[:30, :30], y[:30]),
    }
    with pytest.raises(ValueError, match="warm_start=False"):
        machine.fit(*others[change])
    assert_array_equal(machine.decision_function(data), scores)


def nearly_dependent(seed):
    """Return the kernel matrix of features of very unlike scale, and classes."""
    rng = np.random.RandomState(seed)
    X = rng.randn(53, 9) * 10.0 ** rng.uniform(-3, 3, 9)
    return X @ X.T, rng.randint(5, size=53)


@pytest.mark.parametrize("seed", range(6))
def test_vectors_return_in_the_order_their_own_machine_chose_them(seed):
    K, y = nearly_dependent(seed)
    settings = {"kernel": "precomputed", "basis": "per_class", "n_candidates": 5, "C": 1e4}
    machine = warm_machine(18, **settings).fit(K, y)
    before, sizes = machine.objective_, np.count_nonzero(machine.dual_coef_, axis=0)
    machine.fit(K, y)
    assert machine.objective_ <= before * (1 + 1e-4)
    assert (np.count_nonzero(machine.dual_coef_, axis=0) >= sizes).all()


@every_form
def test_a_vector_that_has_become_a_duplicate_leaves_its_coefficients_to_the_others(
    form, monkeypatch, three_classes
):
    X, y = three_classes
    machine = warm_machine(12, C=2.0).fit(form(X), y)
    vectors, flat = dense(machine.basis_), 1e-6  # a kernel of which fewer vectors span as much
    chosen = CLASS_LOSSES["weston_watkins"]()
    before = objective(
        chosen,
        chosen.encode(y, 3),
        np.full(len(y), 2.0),
        rbf_kernel(X, vectors, gamma=flat),
        rbf_kernel(vectors, gamma=flat),
        machine.dual_coef_,
        machine.intercept_,
    )
    starts = []
    begin = GreedyNewton.init

    def watched(solver, problem, rng, coefficients):
        starts.append((problem.basis.n_basis, coefficients, problem.scores(coefficients)))
        starts.append(problem.value(*starts[0][1:]))
        return begin(solver, problem, rng, coefficients)

    monkeypatch.setattr(GreedyNewton, "init", watched)
    machine.set_params(gamma=flat).fit(form(X), y)
    (n_basis, *_), value = starts
    assert n_basis < 12
    assert value == pytest.approx(before, rel=1e-2)

"""Compression: what is fitted, what comes out, what it says, and what it refuses."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import chi2_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, NuSVC

import widemargin
from widemargin import LearnedBasis, SparseKernelClassifier, SparseKernelClassifierCV, compress
from widemargin.basis import BasisColumns
from widemargin.kernels import RBF, Laplacian, Linear, Polynomial, Sigmoid
from widemargin.losses import SquaredError
from widemargin.objectives import BasisObjective
from widemargin.solvers.greedy import GreedyNewton
from widemargin.solvers.progress import Progress

LABELS = np.array(["ash", "birch", "cedar", "elm"])
pytestmark = pytest.mark.filterwarnings("ignore:The machine has:UserWarning")
any_number_of_classes = pytest.mark.parametrize("n_classes", [2, 4])


def problem(n_classes=4, n_rows=160, seed=3):
    X, y = overlapping_classes(n_rows, n_classes, seed=seed)
    return X, LABELS[y]


def quiet(*args, **settings):
    return compress(*args, **{"random_state": 0, "verbose": False, **settings})


def smallest_margins(machine, X):
    """Return the smallest margin of each class in its pairs."""
    n_classes = len(machine.classes_)
    margins = clone_with(machine, decision_function_shape="ovo").decision_function(X)
    pairs = np.full((len(X), n_classes, n_classes), np.inf)
    first, second = np.triu_indices(n_classes, 1)
    pairs[:, first, second] = margins
    pairs[:, second, first] = -margins
    return pairs.min(axis=2)


def clone_with(machine, **parameters):
    copy = pickle.loads(pickle.dumps(machine))
    return copy.set_params(**parameters)


# ---- what is fitted


@any_number_of_classes
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_are_those_of_regularised_least_squares(n_classes, weighted, rng):
    X, y = problem(n_classes)
    full = SVC(C=3.0, gamma=0.3).fit(X, y)
    weights = rng.randint(3, size=len(X)).astype(float) if weighted else np.ones(len(X))
    C = 20.0
    small = quiet(full, 12, X, C=C, sample_weight=weights)
    targets = full.decision_function(X)[:, None] if n_classes == 2 else smallest_margins(full, X)
    kernel = RBF(0.3)
    columns = np.hstack([kernel.block(X, small.basis_), np.ones((len(X), 1))])
    penalty = np.zeros((13, 13))
    penalty[:12, :12] = kernel.block(small.basis_, small.basis_)
    penalty[12, 12] = 1.0
    weighed = C * weights[:, None] * columns
    solution = np.linalg.solve(penalty + columns.T @ weighed, weighed.T @ targets)
    assert small.n_basis_ == 12
    assert_allclose(columns @ solution, columns @ np.vstack([small.dual_coef_, small.intercept_]))
    assert_allclose(small.dual_coef_, solution[:-1], rtol=1e-4, atol=1e-4)
    value = 0.5 * np.trace(solution.T @ penalty @ solution)
    value += 0.5 * C * weights @ np.sum((columns @ solution - targets) ** 2, axis=1)
    assert small.objective_ == pytest.approx(value)


@any_number_of_classes
@pytest.mark.parametrize("loss", ["weston_watkins", "logistic"])
def test_all_vectors_of_a_machine_give_back_its_scores(n_classes, loss):
    X, y = problem(n_classes)
    full = SparseKernelClassifier(20, gamma=0.5, loss=loss, random_state=0).fit(X, y)
    small = quiet(full, 20, full.basis_, C=1e10, tol=0)
    assert small.n_basis_ == full.n_basis_
    scores = full.decision_function(full.basis_)
    assert_allclose(small.decision_function(full.basis_), scores, atol=1e-5)
    assert small.history_["r2"][-1] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_all_support_vectors_give_back_the_scores_of_two_classes(kind):
    X, y = problem(2)
    full = kind(gamma=0.5).fit(X, y)
    vectors = full.support_vectors_
    small = quiet(full, len(vectors), vectors, C=1e10, tol=0)
    assert_allclose(small.decision_function(vectors), full.decision_function(vectors), atol=1e-4)


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_many_classes_of_an_svc_are_fitted_by_their_smallest_margins(shape):
    X, y = problem(4)
    full = SVC(C=3.0, gamma=2.0, decision_function_shape=shape).fit(X, y)
    small = quiet(full, len(X), X, C=1e8, tol=0)
    expected = smallest_margins(full, X)
    assert_allclose(small.decision_function(X), expected, atol=0.01)
    assert full.decision_function_shape == shape
    assert np.mean(small.predict(X) == full.predict(X)) > 0.97


def test_one_gram_matrix_for_all_outputs_chooses_as_one_for_each(rng):
    apart = type("Apart", (SquaredError,), {"curves_alike": False})
    X, _ = problem(4)
    targets, weights = rng.randn(len(X), 4), rng.rand(len(X))
    found = []
    for loss in (SquaredError(), apart()):
        basis = BasisColumns(RBF(0.5), X, fit_intercept=True, max_basis=20, n_threads=1)
        objective = BasisObjective(loss, targets, weights, 4, basis)
        solver = GreedyNewton(20, tol=0.0, gradient_tol=1e-8)
        state = solver.init(objective, np.random.RandomState(0))
        ended = solver.finish(objective, solver.solve(objective, state, Progress()))
        found.append((basis.indices, ended.coefficients))
    assert_array_equal(found[0][0], found[1][0])
    assert_allclose(found[0][1], found[1][1], atol=1e-7)


def test_more_vectors_fit_better():
    X, y = problem(4, n_rows=400)
    full = SVC(C=3.0).fit(X, y)
    history = quiet(full, 60, X, tol=0).history_
    assert (np.diff(history["r2"]) > -1e-9).all()
    assert history["r2"][-1] > 0.9
    assert history["agreement"][-1] > 0.9


def test_classes_are_fitted_as_a_machine_that_is_trained_on_them():
    X, y = problem(4)
    full = SVC(C=3.0).fit(X, y)
    small = quiet(full, 10, X, target="classes")
    same = clone(small).fit(X, full.predict(X))
    assert small.C == full.C
    assert_array_equal(small.basis_indices_, same.basis_indices_)
    assert_array_equal(small.decision_function(X), same.decision_function(X))
    assert small.objective_ == same.objective_
    assert "r2" not in small.history_


def test_classes_of_two_have_one_score():
    X, y = problem(2)
    full = SVC(C=3.0).fit(X, y)
    small = quiet(full, 15, X, y, target="classes")
    assert small.dual_coef_.shape == (15, 1)
    assert small.history_["agreement"][-1] == np.mean(small.predict(X) == full.predict(X))
    assert small.history_["accuracy"][-1] == small.score(X, y)


def test_rows_without_weight_might_as_well_not_be_there():
    X, y = problem(4)
    full = SVC(C=3.0).fit(X, y)
    half = np.arange(len(X)) % 2 == 0
    weighted = quiet(full, 10, X, y, n_candidates="all", sample_weight=half.astype(float))
    alone = quiet(full, 10, X[half], y[half], n_candidates="all")
    assert half[weighted.basis_indices_].all()
    assert_array_equal(weighted.basis_, alone.basis_)
    assert_allclose(weighted.dual_coef_, alone.dual_coef_, rtol=1e-6)
    for name in ("agreement", "r2", "accuracy"):
        assert_allclose(weighted.history_[name], alone.history_[name])


# ---- kernels and rows


@pytest.mark.parametrize(
    ("parameters", "kernel"),
    [
        ({"kernel": "rbf", "gamma": 0.7}, RBF(0.7)),
        ({"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0}, Polynomial(0.2, 2, 1.0)),
        ({"kernel": "linear"}, Linear()),
    ],
)
def test_the_kernel_of_an_svc(parameters, kernel):
    X, y = problem(2)
    full = SVC(**parameters).fit(X, y)
    small = quiet(full, len(X), X, C=1e8, tol=0)
    assert small.kernel == small.model_.kernel == kernel
    assert_allclose(small.decision_function(X), full.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("coef0", [0.0, -1.0])
def test_the_sigmoid_kernel_of_an_svc(coef0):
    X, y = problem(2)
    full = SVC(kernel="sigmoid", gamma=0.1, coef0=coef0).fit(X, y)
    small = quiet(full, 80, X, tol=0)
    assert small.kernel == small.model_.kernel == Sigmoid(0.1, coef0)
    assert small.history_["r2"][-1] > 0.99  # nearly all, though the kernel is indefinite


@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_the_width_is_that_of_the_machine_not_that_of_the_rows(gamma):
    X, y = problem(4)
    full = SVC(gamma=gamma).fit(X, y)
    assert quiet(full, 5, X[:50]).kernel == RBF(full._gamma)


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "laplacian", "gamma": 0.4}, {"kernel": "poly", "degree": 2}, {"kernel": "linear"}],
)
def test_the_kernel_of_our_own_machines(parameters):
    X, y = problem(4)
    full = SparseKernelClassifier(15, random_state=0, **parameters).fit(X, y)
    assert quiet(full, 5, X).kernel == full.model_.kernel


def test_a_kernel_that_is_a_function():
    X, y = problem(4)
    X = np.abs(X)
    full = SVC(kernel=chi2_kernel).fit(X, y)
    small = quiet(full, 40, X)
    assert small.kernel.function is chi2_kernel
    assert small.history_["agreement"][-1] > 0.9


@pytest.mark.parametrize("full", [SVC(kernel="precomputed"), SparseKernelClassifier(60)])
def test_a_kernel_matrix(full):
    X, y = problem(4)
    matrix = RBF(0.5).block(X, X)
    full = clone(full).set_params(kernel="precomputed").fit(matrix, y)
    small = quiet(full, 30, matrix)
    assert_array_equal(small.basis_, small.basis_indices_)
    assert small.history_["agreement"][-1] == np.mean(small.predict(matrix) == full.predict(matrix))
    with pytest.raises(ValueError, match="kernel matrix of the 160 training rows"):
        compress(full, 30, matrix[:50])
    with pytest.raises(ValueError, match="Leave kernel=None"):
        compress(full, 30, matrix, kernel="rbf")


def test_another_kernel():
    X, y = problem(4)
    full = SVC(kernel="sigmoid").fit(X, y)
    assert quiet(full, 10, X, kernel="rbf", gamma="auto").kernel == RBF(1 / X.shape[1])
    assert quiet(full, 10, X, kernel="sigmoid", gamma="auto").kernel == Sigmoid(1 / X.shape[1])
    assert quiet(full, 10, X, kernel="rbf", gamma=0.3).kernel == RBF(0.3)
    assert quiet(full, 10, X, kernel=Laplacian(0.3)).kernel == Laplacian(0.3)


@pytest.mark.thorough
def test_a_learned_basis_needs_a_kernel():
    X, y = problem(4)
    full = SparseKernelClassifier(6, basis="learned", random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="widths of their own"):
        compress(full, 4, X)
    assert quiet(full, 4, X, kernel="rbf").n_basis_ == 4
    plain = SparseKernelClassifier(6, basis=LearnedBasis(metric="none"), random_state=0).fit(X, y)
    assert quiet(plain, 4, X).kernel == plain.model_.kernel


def test_sparse_rows_as_dense_ones():
    X, y = problem(4)
    X[np.abs(X) < 0.7] = 0.0
    dense = quiet(SVC(gamma=0.4).fit(X, y), 12, X)
    small = quiet(SVC(gamma=0.4).fit(sp.csr_matrix(X), y), 12, sp.csr_matrix(X))
    assert sp.issparse(small.basis_)
    assert_array_equal(small.basis_indices_, dense.basis_indices_)
    assert_allclose(small.decision_function(X), dense.decision_function(X), atol=1e-6)


def test_single_precision():
    X, y = problem(4)
    full = SVC(gamma=0.4).fit(X, y)
    exact = quiet(full, 12, X.astype(np.float32).astype(np.float64), C=10)
    small = quiet(full, 12, X.astype(np.float32), C=10)
    assert small.basis_.dtype == np.float32
    assert_array_equal(small.basis_indices_, exact.basis_indices_)
    assert_allclose(small.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_threads_change_no_bit(larger_problem):
    X, y = larger_problem
    full = SparseKernelClassifier(60, random_state=0).fit(X, y)
    one, two = (quiet(full, 20, X, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one.dual_coef_, two.dual_coef_)


# ---- what comes out


@pytest.mark.parametrize("target", ["scores", "classes"])
@any_number_of_classes
def test_the_result_is_a_machine_like_any_other(n_classes, target, tmp_path):
    X, y = problem(n_classes)
    small = quiet(SVC(C=3.0).fit(X, y), 15, X, y, target=target)
    scores = small.decision_function(X)
    assert scores.shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))
    assert_array_equal(small.classes_, np.unique(y))
    assert_array_equal(small.basis_, X[small.basis_indices_])
    widemargin.save(small, tmp_path / "small.widemargin")
    for copy in (
        widemargin.load(tmp_path / "small.widemargin"),
        pickle.loads(pickle.dumps(small)),
    ):
        assert_array_equal(copy.decision_function(X), scores)
        assert_array_equal(copy.history_["agreement"], small.history_["agreement"])
    assert_array_equal(small.compile("float64").predict(X), small.predict(X))
    assert list(small.staged_decision_function(X))[-1].shape == scores.shape
    assert not hasattr(small, "predict_proba")
    with pytest.raises(NotFittedError):
        clone(small).predict(X)


def test_the_result_exports(tmp_path):
    X, y = problem(4)
    small = quiet(SVC(C=3.0).fit(X, y), 15, X)
    widemargin.export.to_c(small, tmp_path / "small.h")
    assert (tmp_path / "small.h").stat().st_size > 0


def test_training_goes_on_from_the_vectors():
    X, y = problem(4)
    small = quiet(SVC(C=3.0).fit(X, y), 15, X)
    vectors = small.basis_
    small.set_params(warm_start=True).fit(X, y)
    assert_array_equal(small.basis_, vectors)


@any_number_of_classes
@pytest.mark.parametrize("basis", ["shared", "per_class"])
def test_probabilities_stay(n_classes, basis):
    X, y = problem(n_classes)
    full = SparseKernelClassifier(10, loss="logistic", basis=basis, gamma=1.0, random_state=0)
    full.fit(X, y)
    small = quiet(full, len(X), X, C=1e8, tol=0)
    assert small.loss == "logistic"
    assert_allclose(small.predict_proba(X), full.predict_proba(X), atol=0.01)
    if n_classes > 2:
        assert_allclose(
            small.predict_proba(X), softmax(small.decision_function(X), axis=1), atol=1e-12
        )


def test_a_search_is_its_best_machine():
    X, y = problem(4)
    full = SparseKernelClassifierCV(
        [10, 20], Cs=[1.0], widths=[1.0], basis="shared", cv=2, random_state=0
    ).fit(X, y)
    small = quiet(full, 5, X)
    assert isinstance(small, SparseKernelClassifier)
    assert small.kernel == full.model_.kernel
    assert small.C == 1.0


def test_feature_names_stay():
    pandas = pytest.importorskip("pandas")
    X, y = problem(4)
    frame = pandas.DataFrame(X, columns=list("abcd"))
    small = quiet(SVC().fit(frame, y), 5, frame)
    assert_array_equal(small.feature_names_in_, list("abcd"))
    with pytest.raises(ValueError, match="feature names should match"):
        small.predict(frame.rename(columns={"a": "z"}))


def test_the_seed_repeats():
    X, y = problem(4)
    full = SVC().fit(X, y)
    first, second = (quiet(full, 8, X, n_candidates=10, random_state=5) for _ in range(2))
    assert_array_equal(first.dual_coef_, second.dual_coef_)


# ---- what it says


def test_what_it_cost_is_printed(capsys):
    X, y = problem(4)
    full = SVC(C=3.0).fit(X, y)
    small = compress(full, 15, X, y, random_state=0)
    first, second = capsys.readouterr().out.splitlines()
    agreement = 100 * np.mean(small.predict(X) == full.predict(X))
    assert first.startswith(f"{len(full.support_)} vectors -> 15: {agreement:.2f} % of the rows")
    assert f"{100 * small.history_['r2'][-1]:.2f} % of the variance" in first
    assert second == f"accuracy {100 * full.score(X, y):.2f} % -> {100 * small.score(X, y):.2f} %"
    compress(full, 15, X)
    assert len(capsys.readouterr().out.splitlines()) == 1
    quiet(full, 15, X, y)
    assert capsys.readouterr().out == ""


def test_it_says_so_where_nothing_is_saved():
    X, y = problem(4)
    full = SparseKernelClassifier(10, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="The machine has 10 vectors"):
        quiet(full, 12, X)


def test_scores_that_are_all_equal():
    X, y = problem(2)
    full = SVC().fit(X, y)
    far = 1e6 + np.arange(20.0).reshape(5, 4)  # where only the intercept is left
    small = quiet(full, 3, far)
    assert small.history_["r2"][-1] > 0.99
    assert_allclose(small.decision_function(far), full.intercept_[0], rtol=1e-3)


# ---- what it refuses


@pytest.mark.parametrize("full", [SVC(), SparseKernelClassifier(), SparseKernelClassifierCV()])
def test_a_machine_that_is_not_fitted(full):
    with pytest.raises(NotFittedError):
        compress(full, 5, np.zeros((3, 4)))


def test_other_estimators():
    X, y = problem(4)
    with pytest.raises(TypeError, match=r"kernel machine of widemargin.*LogisticRegression"):
        compress(LogisticRegression().fit(X, y), 5, X)
    with pytest.raises(TypeError, match=r"Pipeline.*Compress its last step"):
        compress(make_pipeline(StandardScaler(), SVC()).fit(X, y), 5, X)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"max_basis": 0}, ValueError, "max_basis must be 1 or more"),
        ({"max_basis": 2.5}, TypeError, "max_basis must be an integer"),
        ({"target": "labels"}, ValueError, "target must be one of 'scores', 'classes'"),
        ({"C": 0.0}, ValueError, "C must be positive"),
        ({"kernel": "cubic"}, ValueError, "kernel must be one of"),
        ({"kernel": "precomputed"}, ValueError, "Leave kernel=None"),
        ({"gamma": 0.5}, ValueError, "given by name"),
        ({"gamma": "auto"}, ValueError, "given by name"),
        ({"kernel": "rbf", "gamma": "wide"}, ValueError, "gamma must be one of 'scale', 'auto'"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma must be positive"),
        ({"n_candidates": "some"}, ValueError, "n_candidates must be one of 'all'"),
        ({"tol": -1.0}, ValueError, "tol must be 0 or more"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"verbose": 2}, TypeError, "verbose must be True or False"),
        ({"sample_weight": np.zeros(160)}, ValueError, "zero"),
        ({"y": np.zeros(160)}, ValueError, "y has none of the classes"),
        ({"y": ["ash"]}, ValueError, "X has 160 rows, and y has 1"),
    ],
)
def test_parameters_out_of_range(parameters, error, message):
    X, y = problem(4)
    full = SVC().fit(X, y)
    with pytest.raises(error, match=message):
        compress(full, X=X, **{"max_basis": 5, **parameters})


def test_rows_that_do_not_fit():
    X, y = problem(4)
    full = SVC().fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        compress(full, 5, X[:, :2])
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        compress(full, 5, X)

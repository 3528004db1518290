"""skops keeps every estimator, given the list of types that the library offers."""

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import overlapping_classes
from contract import targets, unfitted
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import KernelClassifier, KernelPerceptron, LearnedBasis, SparseKernelClassifier
from widemargin._registry import ESTIMATORS
from widemargin.kernels import Polynomial, Precomputed
from widemargin.losses import CrammerSinger
from widemargin.model_files import trusted_types
from widemargin.solvers.duals.larank import LaRank

skops = pytest.importorskip("skops.io")

X, Y = overlapping_classes(60, 3)
QUICK = {
    name: {"cv": 2, "max_basis": [4], "Cs": [1.0]} for name in ESTIMATORS if name.endswith("CV")
}
MACHINES = {
    **{name: unfitted(name, **QUICK.get(name, {})) for name in ESTIMATORS},
    "learned": SparseKernelClassifier(4, basis=LearnedBasis(metric="full", max_iter=3)),
    "per class": SparseKernelClassifier(4, basis="per_class", loss="logistic", warm_start=True),
    "objects": SparseKernelClassifier(
        4, kernel=Polynomial(0.5, degree=2, coef0=1.0), loss=CrammerSinger(smoothing=0.2)
    ),
    "laplacian": SparseKernelClassifier(4, kernel="laplacian"),
    "linear": KernelClassifier(kernel="linear", solver=LaRank()),
    "seeded": KernelPerceptron(random_state=np.random.RandomState(3)),
}
FORMS = {
    "dense": np.asarray,
    "float32": lambda rows: rows.astype(np.float32),
    "csr_matrix": sp.csr_matrix,
    "csr_array": sp.csr_array,
}


def through_skops(machine):
    """Write a machine as skops does, and read it, with no more trust than the list asks for."""
    written = skops.dumps(machine)
    assert set(skops.get_untrusted_types(data=written)) <= set(trusted_types())
    return skops.loads(written, trusted=trusted_types())


# What searches is slow, and holds what the machine of its choice holds.
CASES = [
    (name, form) for name in MACHINES for form in FORMS if name not in QUICK or form == "dense"
]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_every_estimator_comes_back(name, form):
    rows = FORMS[form](X)
    classes = np.array(["ash", "birch", "cedar"])
    labels = targets(name, Y, classes) if name in ESTIMATORS else classes[Y]
    machine = clone(MACHINES[name]).fit(rows, labels)
    loaded = through_skops(machine)
    assert_array_equal(loaded.decision_function(rows), machine.decision_function(rows))
    assert_array_equal(loaded.predict(rows), machine.predict(rows))
    assert loaded.get_params().keys() == machine.get_params().keys()


@pytest.mark.parametrize("name", ["KernelClassifier", "KernelPerceptron", "KernelMIRA"])
def test_a_stream_comes_back_and_learns_on(name):
    machine = ESTIMATORS[name](random_state=0).partial_fit(X[:30], Y[:30], classes=[0, 1, 2])
    loaded = through_skops(machine)
    assert_array_equal(loaded.decision_function(X), machine.decision_function(X))
    loaded.partial_fit(X[30:], Y[30:])
    assert loaded.predict(X).shape == Y.shape


def test_a_kernel_matrix_and_its_machine_come_back():
    matrix = X @ X.T
    machine = SparseKernelClassifier(4, kernel=Precomputed(), random_state=0).fit(matrix, Y)
    assert_array_equal(through_skops(machine).predict(matrix), machine.predict(matrix))


def test_a_pipeline_needs_no_more_trust():
    machine = make_pipeline(StandardScaler(), SparseKernelClassifier(4, random_state=0)).fit(X, Y)
    assert_array_equal(through_skops(machine).predict(X), machine.predict(X))


def test_a_kernel_that_is_code_is_not_trusted():
    machine = SparseKernelClassifier(4, kernel=code_of_a_stranger, random_state=0).fit(X, Y)
    with pytest.raises(Exception, match="Untrusted types"):
        skops.loads(skops.dumps(machine), trusted=trusted_types())


def code_of_a_stranger(rows, others):
    return rows @ others.T

"""What must not be touched, and what must not get through."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info

from widemargin import SparseKernelClassifier, _native
from widemargin._system.threads import one_blas_thread
from widemargin.kernels import RBF, Laplacian, Polynomial, Sigmoid
from widemargin.losses import BinaryLogistic, Logistic, SquaredHinge, WestonWatkins


def test_the_array_that_a_kernel_returns_is_left_alone(three_classes):
    X, y = three_classes
    handed_out = []

    def kernel(A, B):
        values = rbf_kernel(A, B, gamma=0.5)
        values.flags.writeable = False
        handed_out.append((values, values.copy()))
        return values

    SparseKernelClassifier(4, kernel=kernel, random_state=0).fit(X, y)
    for values, copy in handed_out:
        assert_array_equal(values, copy)


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.mark.usefixtures("two_blas_threads")
def test_overlapping_limits_on_blas_leave_it_as_it_was():
    before = blas_threads()
    first_is_in, first_may_leave = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            first_is_in.set()
            first_may_leave.wait()

    other = threading.Thread(target=hold)
    other.start()
    first_is_in.wait()
    with one_blas_thread():
        assert set(blas_threads()) == {1}
        first_may_leave.set()
        other.join()
    assert blas_threads() == before


@pytest.mark.parametrize("label", [-1, 3])
def test_class_numbers_out_of_range_are_refused(label):
    with pytest.raises(ValueError, match="class number"):
        WestonWatkins().gradient(np.zeros((2, 3)), np.array([0, label], dtype=np.int32))


@pytest.mark.parametrize("row", [-1, 5, 2_000_000_000])
def test_rows_that_are_not_there_are_refused(row):
    features, gradient = np.ones((5, 2)), np.ones((5, 3))
    chosen = np.array([0, row], dtype=np.int32)
    with pytest.raises(ValueError, match="a chosen row is not there"):
        _native.transposed_product(features, chosen, gradient, np.empty((2, 3)), 1)


@pytest.mark.parametrize("loss", [SquaredHinge(), BinaryLogistic()], ids=lambda loss: loss.name)
def test_losses_of_independent_outputs_are_no_multiclass_losses(loss, three_classes):
    with pytest.raises(ValueError, match="loss must be one of"):
        SparseKernelClassifier(loss=loss).fit(*three_classes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RBF(-1.0),
        lambda: Laplacian(0.0),
        lambda: Polynomial(1.0, degree=0),
        lambda: Sigmoid(0.0),
        lambda: Sigmoid(1.0, np.nan),
    ],
)
def test_kernels_refuse_parameters_that_make_no_kernel(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_probabilities_follow_the_fit_and_not_later_parameters(three_classes):
    X, y = three_classes
    machine = SparseKernelClassifier(5, loss=Logistic(), random_state=0).fit(X, y)
    before = machine.predict_proba(X)
    assert_array_equal(machine.set_params(basis="per_class").predict_proba(X), before)

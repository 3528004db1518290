"""Weights that leave one class are refused, as rows of one class are; two classes are enough."""

import numpy as np
import pytest
from conftest import overlapping_classes
from numpy.testing import assert_array_equal
from sklearn.base import clone

from widemargin import (
    KernelClassifier,
    KernelMIRA,
    KernelPerceptron,
    LearnedBasis,
    SparseKernelClassifier,
    SparseKernelClassifierCV,
    compress,
)

X, y = overlapping_classes(60, 3)
MACHINES = [
    SparseKernelClassifier(5, random_state=0),
    SparseKernelClassifier(5, basis="per_class", random_state=0),
    SparseKernelClassifier(5, basis=LearnedBasis(max_iter=3), random_state=0),
    SparseKernelClassifier(5, loss="logistic", random_state=0),
    SparseKernelClassifierCV([4], Cs=[1.0], widths=[1.0], basis="shared", cv=2, random_state=0),
    KernelClassifier(random_state=0),
    KernelClassifier(solver="full_gradient", random_state=0),
    KernelMIRA(random_state=0),
    KernelMIRA(C=np.inf, random_state=0),
    KernelPerceptron(random_state=0),
]
every_machine = pytest.mark.parametrize("machine", MACHINES, ids=str)


@every_machine
@pytest.mark.parametrize("labels", [y, np.array(["a", "b", "c"])[y]], ids=["numbers", "text"])
def test_weights_that_leave_one_class_are_refused(machine, labels):
    machine = clone(machine)
    before = dict(vars(machine))
    with pytest.raises(ValueError, match=r"only 1 class.*(1|'b')") as caught:
        machine.fit(X, labels, sample_weight=(y == 1) * 1.0)
    assert "np." not in str(caught.value)
    assert vars(machine) == before


@every_machine
def test_class_weights_that_leave_one_class_are_refused(machine):
    machine = clone(machine).set_params(class_weight={0: 0, 2: 0.0})
    with pytest.raises(ValueError, match=r"only 1 class.*: 1"):
        machine.fit(X, y)
    machine.set_params(class_weight={0: 0})
    with pytest.raises(ValueError, match=r"only 1 class.*: 2"):
        machine.fit(X, y, sample_weight=(y != 1) * 1.0)


@every_machine
def test_two_of_three_classes_are_enough_and_the_third_is_never_right(machine):
    weighed = clone(machine).fit(X, y, sample_weight=(y != 1) * 1.0)
    assert_array_equal(weighed.classes_, [0, 1, 2])
    assert weighed.decision_function(X).shape == (60, 3)
    assert set(weighed.predict(X[y != 1])) == {0, 2}


def test_compressing_to_classes_needs_two_of_them():
    full = KernelClassifier(random_state=0).fit(X, y)
    one = (full.predict(X) == 1) * 1.0
    with pytest.raises(ValueError, match="only 1 class, 1,"):
        compress(full, 4, X, target="classes", sample_weight=one, verbose=False)
    compress(full, 4, X, sample_weight=one, verbose=False)  # scores say more than classes


@pytest.mark.parametrize("learner", [KernelClassifier(), KernelMIRA(), KernelPerceptron()], ids=str)
def test_a_batch_of_a_stream_may_have_one_class(learner):
    stream = learner.partial_fit(X, y, classes=[0, 1, 2], sample_weight=(y == 1) * 1.0)
    assert_array_equal(stream.partial_fit(X, y).classes_, [0, 1, 2])
    assert set(stream.predict(X)) == {0, 1, 2}

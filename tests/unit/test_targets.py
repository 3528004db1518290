"""What y is made into, and what a fit leaves of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from widemargin import KernelClassifier, SparseKernelClassifier
from widemargin.estimation.targets import ClassTargets, LabelTargets
from widemargin.losses import BinaryLogistic, CrammerSinger, SquaredError, SquaredHinge
from widemargin.readouts import Readout

LABELS = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]])


def test_class_targets():
    targets = ClassTargets.of(np.array(["b", "a", "c", "a"]))
    assert_array_equal(targets.classes, ["a", "b", "c"])
    assert_array_equal(targets.numbers, [1, 0, 2, 0])
    assert (targets.n_rows, targets.n_outputs) == (4, 3)
    assert_array_equal(targets.encode(CrammerSinger()), [1, 0, 2, 0])
    assert_array_equal(targets.encode_against_rest(SquaredHinge(), 0)[:, 0], [-1, 1, -1, 1])
    assert_array_equal(targets.take([2, 0]).numbers, [2, 1])
    assert targets.readout().kind == "multiclass"
    assert ClassTargets.of(np.array([3, 5])).readout("softmax").kind == "binary"
    with pytest.raises(ValueError, match="only 1 class"):
        ClassTargets.of(np.array([7, 7]))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_matrix])
@pytest.mark.parametrize("dtype", [int, float, bool])
def test_label_targets(form, dtype):
    targets = LabelTargets.of(form(LABELS.astype(dtype)))
    assert (targets.n_rows, targets.n_outputs) == LABELS.shape
    for loss, kind in ((SquaredHinge(), np.int8), (BinaryLogistic(), np.int8)):
        signs = targets.encode(loss)
        assert_array_equal(signs, 2 * LABELS - 1)
        assert signs.dtype == kind
    assert targets.encode(SquaredError()).dtype == np.float64
    part = targets.take(np.array([3, 0]))
    assert_array_equal(part.encode(SquaredHinge()), 2 * LABELS[[3, 0]] - 1)
    assert targets.readout("one_against_rest").kind == "multilabel"


def test_entries_that_are_stored_twice_or_as_zero_are_what_they_add_up_to():
    stored = sp.coo_matrix(([1, 0, 0, 1], ([0, 0, 1, 1], [0, 1, 1, 0])), shape=(2, 2))
    targets = LabelTargets.of(stored)
    assert_array_equal(targets.encode(SquaredHinge()), [[1, -1], [1, -1]])
    assert targets.indicator.nnz == 2


def test_what_is_no_indicator_is_refused():
    for y in ([0, 1, 2], [[0, 2], [1, 0]], [[0.5, 1.0]]):
        with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
            LabelTargets.of(np.asarray(y))
    with pytest.raises(ValueError, match="must have 2 labels, got 3"):
        LabelTargets.of(LABELS, n_labels=2)
    with pytest.raises(TypeError, match="independent outputs"):
        LabelTargets.of(LABELS).encode(CrammerSinger())


def test_parameters_that_change_after_the_fit_change_no_readout(three_classes):
    X, y = three_classes
    machine = SparseKernelClassifier(max_basis=5, random_state=0)
    assert not hasattr(machine, "predict_proba")
    machine.fit(X, y)
    machine.set_params(loss="logistic")
    assert not hasattr(machine, "predict_proba")
    with pytest.raises(AttributeError, match="another loss"):
        machine.predict_proba(X)
    machine.fit(X, y).set_params(loss="weston_watkins")
    assert machine.predict_proba(X).shape == (len(X), 3)
    machine.set_params(basis="per_class")
    assert machine.readout_.link == "softmax"


@pytest.mark.parametrize("machine", [SparseKernelClassifier(5), KernelClassifier()])
def test_a_machine_of_label_sets_answers_as_its_compiled_form(machine, three_classes):
    X, y = three_classes
    machine.set_params(random_state=0).fit(X, y)
    machine.readout_ = Readout(np.arange(3), kind="multilabel")
    answers = machine.predict(X)
    assert answers.shape == (len(X), 3)
    assert_array_equal(answers, machine.decision_function(X) > 0)
    assert_array_equal(answers, machine.compile(dtype="float64").predict(X))

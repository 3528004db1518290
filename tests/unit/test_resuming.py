"""What makes a fit the same as one that was stopped."""

import numpy as np
import pytest
import scipy.sparse as sp

from widemargin import SparseKernelClassifier
from widemargin.estimation.resuming import fingerprint, keep, recall
from widemargin.kernels import RBF, AdaptiveRBF, Linear

X = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, X.astype(np.float32)),
        (X, X.reshape(3, 4)),
        (X, np.nextafter(X, np.inf)),
        (X, sp.csr_matrix(X)),
        (sp.csr_matrix(X), sp.csr_matrix(X + 1)),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ([1, 2], [[1], 2]),
        (1, 1.5),
        ("a", "b"),
        (None, "None"),
        (RBF(0.5), RBF(0.6)),
        (RBF(0.5), Linear()),
        (AdaptiveRBF(np.ones(2)), AdaptiveRBF(np.array([1.0, 2.0]))),
        (np.random.RandomState(0), np.random.RandomState(1)),
        (np.array(["a", "b"]), np.array(["a", "c"])),
        (np.array(["a", None], dtype=object), np.array(["a", 1], dtype=object)),
        (min, max),
        (SparseKernelClassifier(3), SparseKernelClassifier(4)),
    ],
)
def test_what_differs_has_another_fingerprint(one, other):
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one, other) != fingerprint(other, one)


def test_what_is_the_same_has_the_same_fingerprint(tmp_path):
    stored = np.memmap(tmp_path / "rows", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    assert fingerprint(X) == fingerprint(X.copy()) == fingerprint(np.asfortranarray(X))
    assert fingerprint(X) == fingerprint(stored)
    assert fingerprint(sp.csr_matrix(X)) == fingerprint(sp.csr_matrix(X))
    assert fingerprint(AdaptiveRBF(np.ones(2))) == fingerprint(AdaptiveRBF(np.ones(2)))
    assert fingerprint(np.empty((0, 2))) == fingerprint(np.empty((0, 2)))


def test_a_state_is_recalled_for_the_same_data_and_parameters():
    machine = SparseKernelClassifier(9, warm_start=True)
    assert recall(machine, X) is None
    machine._state = keep(machine, fingerprint(X, None), {"place": 3})
    assert recall(machine, X, None) == {"place": 3}
    assert recall(machine, X + 1, None) is None
    assert recall(machine.set_params(max_seconds=3.0, n_jobs=2, verbose=1), X, None) is not None
    assert recall(machine.set_params(C=3.0), X, None) is None
    assert recall(machine.set_params(C=10.0), X, None) is None
    assert recall(machine.set_params(C="auto"), X, None) is not None
    assert recall(machine.set_params(warm_start=False), X, None) is None

"""The contract of a loss. Every loss of the registry is held to it, so a new one is tested too."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference.losses import twin

from widemargin import _native
from widemargin.basis import BasisColumns
from widemargin.kernels import Linear
from widemargin.losses import (
    CLASS_LOSSES,
    LOSSES,
    CrammerSinger,
    Loss,
    all_losses,
)
from widemargin.objectives import BasisObjective
from widemargin.row_blocks import Scores

pytestmark = pytest.mark.every_case

N_OUTPUTS = 5


def with_other_parameters(loss):
    """Return the loss, and what it is where a parameter is smaller or larger."""
    parameters = dataclasses.asdict(loss)
    others = [
        dataclasses.replace(loss, **{name: factor * value})
        for name, value in parameters.items()
        for factor in (0.4, 2.5)
    ]
    return [loss, *others]


every_loss = pytest.mark.parametrize(
    "loss", [each for loss in all_losses() for each in with_other_parameters(loss)], ids=str
)


def loss_case(loss, rng, n_rows=40, dtype=np.float64, spread=1.5):
    """Return scores around the margin, where a loss bends, and their targets."""
    scores = (spread * rng.randn(n_rows, N_OUTPUTS)).astype(dtype)
    if loss.encode(np.zeros(1, dtype=np.intp), 1).dtype == np.float64:  # targets of any numbers
        return scores, spread * rng.randn(n_rows, N_OUTPUTS)
    return scores, loss.encode(np.arange(n_rows) % N_OUTPUTS, N_OUTPUTS)


def numerical_derivative(function, scores, step=1e-6):
    """Return the derivative of each row of ``function`` in each score, last axis the score."""
    columns = []
    for output in range(scores.shape[1]):
        shift = np.zeros_like(scores)
        shift[:, output] = step
        columns.append((function(scores + shift) - function(scores - shift)) / (2 * step))
    return np.stack(columns, axis=-1)


def test_the_registry_is_that_of_the_native_code():
    assert [type(loss) for loss in all_losses()] == list(LOSSES.values())
    assert {loss.__name__ for loss in LOSSES.values()} == set(_native.LOSSES)
    assert {name: loss.name for name, loss in LOSSES.items()} == {name: name for name in LOSSES}
    comparing = {name for name, loss in LOSSES.items() if loss.compares_outputs}
    assert set(CLASS_LOSSES) == comparing
    assert comparing >= {"weston_watkins", "crammer_singer", "logistic"}


def test_subclasses_elsewhere_leave_the_registry_as_it_is(rng):
    before = dict(LOSSES), dict(CLASS_LOSSES)

    class Own(CrammerSinger):
        name = "crammer_singer"

    @dataclasses.dataclass(frozen=True)
    class Noted(CrammerSinger):
        note: str = "with a field that native code knows nothing of"

    assert (dict(LOSSES), dict(CLASS_LOSSES)) == before
    assert type(all_losses()[1]) is CrammerSinger
    scores, targets = loss_case(CrammerSinger(0.3), rng)
    expected = CrammerSinger(0.3).value(scores, targets)
    for loss in (Own(0.3), Noted(0.3)):
        assert_array_equal(loss.value(scores, targets), expected)


def test_a_loss_without_native_code_says_so():
    class Own(Loss):
        name = "own"

        def encode(self, labels, n_outputs):
            return labels

    with pytest.raises(TypeError, match=r"Own has no native code. Derive .*WestonWatkins"):
        Own().native()


@pytest.mark.parametrize("loss", all_losses(), ids=str)
def test_targets_of_another_kind_are_refused(loss, rng):
    scores, targets = loss_case(loss, rng)
    kinds = {type(other): other.encode(np.arange(40) % 5, 5) for other in all_losses()}
    wrong = [kind for kind in kinds.values() if kind.dtype != targets.dtype]
    assert len(wrong) >= 2
    for other in wrong:
        with pytest.raises(ValueError, match="targets are of another kind of loss"):
            loss.gradient(scores, other)


PARAMETERS = [(type(loss), name) for loss in all_losses() for name in dataclasses.asdict(loss)]


@pytest.mark.parametrize(("loss", "name"), PARAMETERS)
@pytest.mark.parametrize("value", [0.0, -0.1, np.nan])
def test_parameters_that_make_no_loss_are_refused(loss, name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        loss(**{name: value})


@every_loss
def test_gradient_is_the_derivative_of_the_value(loss, rng):
    scores, targets = loss_case(loss, rng)
    numerical = numerical_derivative(lambda moved: loss.value(moved, targets), scores)
    assert_allclose(loss.gradient(scores, targets), numerical, rtol=1e-6, atol=1e-6)


@every_loss
def test_hessian_product_is_the_derivative_of_the_gradient(loss, rng):
    scores, targets = loss_case(loss, rng)
    direction = rng.randn(*scores.shape)
    hessian = numerical_derivative(lambda moved: loss.gradient(moved, targets), scores)
    expected = np.einsum("nij,nj->ni", hessian, direction)
    assert_allclose(
        loss.hessian_product(scores, targets, direction), expected, rtol=1e-6, atol=1e-7
    )


@every_loss
def test_a_loss_that_compares_outputs_is_flat_along_all_of_them(loss, rng):
    scores, targets = loss_case(loss, rng)
    moved = loss.value(scores + rng.randn(len(scores), 1), targets)
    same = np.allclose(moved, loss.value(scores, targets), rtol=1e-12, atol=1e-12)
    assert same == loss.compares_outputs


@every_loss
def test_a_loss_whose_outputs_curve_alike_has_one_curvature_everywhere(loss, rng):
    scores, targets = loss_case(loss, rng)
    assert (np.ptp(loss.hessian_diagonal(scores, targets)) == 0) == loss.curves_alike


@every_loss
def test_hessian_diagonal_agrees_with_the_hessian_product(loss, rng):
    scores, targets = loss_case(loss, rng)
    diagonal = loss.hessian_diagonal(scores, targets)
    for output in range(N_OUTPUTS):
        unit = np.zeros_like(scores)
        unit[:, output] = 1.0
        product = loss.hessian_product(scores, targets, unit)[:, output]
        assert_allclose(diagonal[:, output], product, rtol=1e-12, atol=1e-14)


@every_loss
def test_value_and_derivatives_are_those_of_the_twin(loss, rng):
    scores, targets = loss_case(loss, rng, n_rows=60)
    direction = rng.randn(*scores.shape)
    slow = twin(loss)
    rows = list(zip(scores, targets, strict=True))
    hessians = [slow.hessian(row, target) for row, target in rows]
    products = [hessian @ along for hessian, along in zip(hessians, direction, strict=True)]
    exact = {"rtol": 1e-12, "atol": 1e-13}
    assert_allclose(
        loss.value(scores, targets), [slow.value(row, target) for row, target in rows], **exact
    )
    assert_allclose(
        loss.gradient(scores, targets),
        [slow.gradient(row, target) for row, target in rows],
        **exact,
    )
    assert_allclose(loss.hessian_product(scores, targets, direction), products, **exact)
    assert_allclose(
        loss.hessian_diagonal(scores, targets), [np.diag(hessian) for hessian in hessians], **exact
    )


@every_loss
def test_convex_along_random_lines(loss, rng):
    scores, targets = loss_case(loss, rng)
    step = rng.randn(*scores.shape)
    along = np.array(
        [loss.value(scores + length * step, targets) for length in np.linspace(-2, 2, 9)]
    )
    assert (along[2:] + along[:-2] - 2 * along[1:-1] >= -1e-12 * (1 + along[1:-1])).all()
    bend = np.sum(step * loss.hessian_product(scores, targets, step), axis=1)
    assert (bend >= -1e-12).all()
    assert (loss.value(scores, targets) >= 0.0).all()


@every_loss
def test_float32_is_near_float64(loss, rng):
    scores, targets = loss_case(loss, rng)
    direction = rng.randn(*scores.shape)
    near = {"rtol": 1e-4, "atol": 1e-5}
    narrow = scores.astype(np.float32)
    wide = narrow.astype(np.float64)
    gradient = loss.gradient(narrow, targets)
    product = loss.hessian_product(narrow, targets, direction.astype(np.float32))
    assert gradient.dtype == product.dtype == np.float32
    assert_allclose(loss.value(narrow, targets), loss.value(wide, targets), **near)
    assert_allclose(gradient, loss.gradient(wide, targets), **near)
    assert_allclose(product, loss.hessian_product(wide, targets, direction), **near)
    assert_allclose(
        loss.hessian_diagonal(narrow, targets), loss.hessian_diagonal(wide, targets), **near
    )


@every_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_scores_neither_overflow_nor_lose_the_gradient(loss, rng, dtype):
    scores, targets = loss_case(loss, rng, dtype=dtype, spread=1e4)
    for answer in (loss.value, loss.gradient, loss.hessian_diagonal):
        assert np.isfinite(answer(scores, targets)).all()
    slow = twin(loss)
    expected = [
        slow.gradient(row.astype(np.float64), target)
        for row, target in zip(scores, targets, strict=True)
    ]
    assert_allclose(loss.gradient(scores, targets), expected, rtol=1e-4, atol=1e-6)


@every_loss
def test_weights_multiply(loss, rng):
    scores, targets = loss_case(loss, rng)
    weights = rng.rand(len(scores)) * (np.arange(len(scores)) % 3)  # zeros among them
    basis = BasisColumns(Linear(), scores, fit_intercept=True, max_basis=1, n_threads=1)
    objective = BasisObjective(loss, targets, weights, N_OUTPUTS, basis).refined()
    held = Scores([scores])
    at = objective.derivatives(held)
    expected = np.dot(weights, loss.value(scores, targets))
    assert objective.value(objective.zero_coefficients(), held) == pytest.approx(expected)
    assert at.loss == pytest.approx(expected)
    assert_allclose(at.gradient, weights[:, None] * loss.gradient(scores, targets), atol=1e-14)
    assert_allclose(
        at.curvature, weights[:, None] * loss.hessian_diagonal(scores, targets), atol=1e-14
    )


@every_loss
def test_encode_tells_the_classes_apart(loss):
    labels = np.array([2, 0, 1, 1, 4])
    targets = loss.encode(labels, N_OUTPUTS)
    right = np.zeros((len(labels), N_OUTPUTS))
    right[np.arange(len(labels)), labels] = 1.0
    assert (loss.value(3 * right, targets) < loss.value(-3 * right, targets)).all()
    assert_array_equal(loss.gradient(0 * right, targets).argmin(axis=1), labels)


@pytest.mark.parametrize("smoothing", [1e-3, 0.1, 1.0])
def test_crammer_singer_is_the_plain_hinge_away_from_ties(rng, smoothing):
    loss = CrammerSinger(smoothing)
    scores, targets = loss_case(loss, rng, n_rows=2000)
    wrong = np.where(np.arange(N_OUTPUTS) == targets[:, None], -np.inf, scores)
    second, worst = np.sort(wrong, axis=1)[:, -2:].T
    right = scores[np.arange(len(scores)), targets]
    plain = 0.5 * np.maximum(0.0, 1.0 + worst - right) ** 2
    clear = worst - second >= smoothing
    assert 0 < clear.sum() < len(scores)
    value = loss.value(scores, targets)
    assert_allclose(value[clear], plain[clear], rtol=1e-10, atol=1e-14)
    rounded = 0.5 * np.maximum(0.0, 1.0 + worst - right + smoothing / 2) ** 2
    tied = ~clear & (plain > 0.0)
    assert (value[tied] > plain[tied]).all()
    assert (value <= rounded * (1 + 1e-10)).all()


@pytest.mark.parametrize("smoothing", [0.0, -0.1, np.nan])
def test_crammer_singer_refuses_a_smoothing_that_leaves_kinks(smoothing):
    with pytest.raises(ValueError, match="smoothing must be positive"):
        CrammerSinger(smoothing)

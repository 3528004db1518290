"""Displays: what is drawn where, and what cannot be drawn."""

import importlib.util
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from widemargin import SparseKernelClassifier, priors
from widemargin.displays import BasisDisplay, LabelPriorDisplay

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def pyplot():
    """Draw to nowhere, and close all figures after."""
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return SparseKernelClassifier(12, random_state=0).fit(X[:300], y[:300])


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    return SparseKernelClassifier(6, basis="learned", random_state=0).fit(X, names)


def texts(display):
    """Return the class and the share above each image."""
    return [(axes.get_title("left"), axes.get_title("right")) for axes in display.axes_]


def test_images(digits):
    display = BasisDisplay.from_estimator(digits, image_shape=(8, 8), max_vectors=10)
    assert len(display.axes_) == 10
    assert all(axes.figure is display.figure_ for axes in display.axes_)
    order = np.argsort(-np.abs(digits.dual_coef_).sum(axis=1))
    assert_array_equal(display.shown_, order[:10])
    for axes, number in zip(display.axes_, display.shown_, strict=True):
        (image,) = axes.get_images()
        assert_array_equal(image.get_array(), digits.basis_[number].reshape(8, 8))
        assert axes.get_title("left") == str(digits.dual_coef_[number].argmax())
    limits = {axes.get_images()[0].get_clim() for axes in display.axes_}
    assert len(limits) == 1
    display.figure_.canvas.draw()


def test_shares_sum_to_1_and_fall(digits):
    display = BasisDisplay.from_estimator(digits, image_shape=(8, 8))
    assert display.shares.sum() == pytest.approx(1.0)
    assert (np.diff(display.shares[display.shown_]) <= 0).all()
    drawn = sum(float(share.rstrip("%")) for _, share in texts(display))
    assert drawn == pytest.approx(100.0, abs=1.0)


def test_the_order_that_is_given(digits):
    display = BasisDisplay.from_estimator(digits, image_shape=(8, 8), order="given", max_vectors=4)
    assert_array_equal(display.shown_, range(4))


def test_a_sparse_basis_looks_as_a_dense_one():
    X, y = load_digits(return_X_y=True)
    dense, sparse = (
        BasisDisplay.from_estimator(
            SparseKernelClassifier(5, random_state=0).fit(form(X[:200]), y[:200]),
            image_shape=(8, 8),
        )
        for form in (np.asarray, sp.csr_matrix)
    )
    assert texts(dense) == texts(sparse)
    for one, other in zip(dense.axes_, sparse.axes_, strict=True):
        assert_array_equal(one.get_images()[0].get_array(), other.get_images()[0].get_array())


def test_images_in_colour(rng, digits):
    vectors = 255 * rng.rand(3, 5 * 4 * 3)
    display = BasisDisplay(vectors, np.eye(3), ["a", "b", "c"], image_shape=(5, 4, 3)).plot()
    shown = display.axes_[0].get_images()[0].get_array()
    assert shown.shape == (5, 4, 3)
    assert shown.min() >= 0
    assert shown.max() <= 1


def test_axes_of_ones_own(digits, pyplot):
    figure, grid = pyplot.subplots(3, 5)
    display = BasisDisplay.from_estimator(digits, image_shape=(8, 8), ax=grid)
    assert display.figure_ is figure
    assert_array_equal(display.axes_, grid.ravel()[:12])
    assert not grid[-1, -1].axison
    with pytest.raises(ValueError, match="12 vectors are to be drawn on 4 axes"):
        BasisDisplay.from_estimator(digits, image_shape=(8, 8), ax=grid.ravel()[:4])


def test_one_axes_is_divided(digits, pyplot):
    figure, (left, right) = pyplot.subplots(1, 2)
    display = BasisDisplay.from_estimator(digits, image_shape=(8, 8), ax=left)
    assert display.figure_ is figure
    assert len(display.axes_) == 12
    assert left.child_axes == list(display.axes_)
    assert right.child_axes == []
    figure.canvas.draw()


@pytest.mark.parametrize("count", [1, 2, 7, 11, 25, 30])
def test_a_grid_has_room_for_all(count, rng):
    display = BasisDisplay(
        rng.rand(count, 6), rng.randn(count, 3), list("abc"), image_shape=(2, 3)
    ).plot(max_vectors=30, figsize=(6, 2))
    assert len(display.axes_) == count
    assert_allclose(display.figure_.get_size_inches(), (6, 2))
    places = display.axes_[0].get_subplotspec().get_gridspec()
    assert count <= places.nrows * places.ncols < count + places.ncols


def test_profiles_are_named_and_between_the_extremes(iris, pyplot):
    display = BasisDisplay.from_estimator(iris)
    (axes,) = display.axes_
    (image,) = axes.get_images()
    drawn = np.asarray(image.get_array())
    assert drawn.shape == (6, 4)
    assert_allclose(drawn.min(axis=0), 0.0)
    assert_allclose(drawn.max(axis=0), 1.0)
    assert [label.get_text() for label in axes.get_xticklabels()] == list(iris.feature_names_in_)
    rows = [label.get_text().split() for label in axes.get_yticklabels()]
    assert {name for name, _ in rows} <= {"setosa", "versicolor", "virginica"}
    assert all(share.endswith("%") for _, share in rows)
    display.figure_.canvas.draw()
    _, own = pyplot.subplots()
    other = BasisDisplay.from_estimator(iris, ax=own, feature_names=list("abcd"), cmap="magma")
    assert other.axes_[0] is own
    assert [label.get_text() for label in own.get_xticklabels()] == list("abcd")
    assert own.get_images()[0].get_cmap().name == "magma"


def test_constant_and_many_features(rng):
    vectors = rng.rand(4, 60)
    vectors[:, 3] = 7.0
    display = BasisDisplay(vectors, rng.randn(4, 3), list("abc")).plot()
    drawn = np.asarray(display.axes_[0].get_images()[0].get_array())
    assert_array_equal(drawn[:, 3], np.full(4, 0.5))
    display.figure_.canvas.draw()


def test_two_classes_are_told_by_the_sign(two_classes):
    X, y = two_classes
    machine = SparseKernelClassifier(5, random_state=0).fit(X, np.array(["no", "yes"])[y])
    display = BasisDisplay.from_estimator(machine)
    expected = np.where(machine.dual_coef_[:, 0] > 0, "yes", "no")
    assert_array_equal(display.spoken_for, expected)


def test_many_classes_have_colours_of_their_own(rng):
    vectors, coef = rng.rand(26, 4), np.eye(26)
    names = list("abcdefghijklmnopqrstuvwxyz")
    display = BasisDisplay(vectors, coef, names, image_shape=(2, 2)).plot(max_vectors=26)
    colours = {tuple(axes.spines["top"].get_edgecolor()) for axes in display.axes_}
    assert len(colours) == 26


def test_steps_before_the_machine_are_undone_where_they_can_be():
    X, y = load_digits(return_X_y=True)
    scaled = make_pipeline(StandardScaler(), SparseKernelClassifier(4, random_state=0))
    scaled.fit(X[:200], y[:200])
    display = BasisDisplay.from_estimator(scaled, image_shape=(8, 8), order="given")
    rows = X[scaled[-1].basis_indices_].reshape(-1, 8, 8)
    for axes, row in zip(display.axes_, rows, strict=True):
        assert_allclose(axes.get_images()[0].get_array(), row, atol=1e-9)
    reduced = make_pipeline(PCA(5), SparseKernelClassifier(4, random_state=0)).fit(X[:200], y[:200])
    assert len(BasisDisplay.from_estimator(reduced, image_shape=(8, 8)).axes_) == 4
    one_way = make_pipeline(
        FunctionTransformer(np.sqrt, validate=True), SparseKernelClassifier(4, random_state=0)
    ).fit(X[:200], y[:200])
    assert len(BasisDisplay.from_estimator(one_way).axes_) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_shape": (8, 9)}, r"\(8, 9\) has 72 numbers, a vector has 64"),
        ({"image_shape": (64,)}, "image_shape must be"),
        ({"image_shape": (8, 4, 2)}, "image_shape must be"),
        ({"feature_names": ["a", "b"]}, "2 names for 64 features"),
        ({"max_vectors": 0}, "max_vectors"),
        ({"order": "size"}, "order"),
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_told(settings, message, digits):
    with pytest.raises(ValueError, match=message):
        BasisDisplay.from_estimator(digits, **settings)


def test_machines_without_vectors_are_refused(three_classes):
    X, y = three_classes
    with pytest.raises(NotFittedError):
        BasisDisplay.from_estimator(SparseKernelClassifier())
    with pytest.raises(TypeError, match="LogisticRegression has no basis vectors"):
        BasisDisplay.from_estimator(LogisticRegression().fit(X, y))
    known = SparseKernelClassifier(4, kernel="precomputed", random_state=0)
    known.fit(rbf_kernel(X), y)
    with pytest.raises(ValueError, match=r"precomputed kernel.*X\[machine.basis_indices_\]"):
        BasisDisplay.from_estimator(known)
    rows = X[known.basis_indices_]
    assert len(BasisDisplay(rows, known.dual_coef_, known.classes_).plot().shown_) == 4


def test_without_matplotlib_it_is_told(digits, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"widemargin\[demo\]"):
        BasisDisplay.from_estimator(digits)


def test_the_module_is_imported_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    spec = importlib.util.find_spec("widemargin.displays")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.BasisDisplay is not BasisDisplay


def test_a_prior_is_drawn_with_the_names_of_its_labels():
    prior = priors.from_labels([[1, 1, 0], [0, 0, 1]], label_names=["sea", "beach", "city"])
    display = LabelPriorDisplay.from_prior(prior)
    (image,) = display.ax_.get_images()
    assert_array_equal(image.get_array(), prior.matrix)
    assert_allclose(image.get_clim(), (-1.0, 1.0))  # so that zero is in the middle of the colours
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        assert [tick.get_text() for tick in axis.get_ticklabels()] == ["sea", "beach", "city"]


def test_a_prior_goes_on_given_axes_and_many_labels_are_not_named(pyplot):
    _, ax = pyplot.subplots()
    display = LabelPriorDisplay.from_prior(priors.identity(60), ax=ax, cmap="PuOr")
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel() == "label"
    with pytest.raises(TypeError, match="draws a LabelPrior, got ndarray"):
        LabelPriorDisplay.from_prior(np.eye(3))

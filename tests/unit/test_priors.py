"""Priors over labels: what they are made of, and what is refused."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import priors
from widemargin.priors import LabelPrior, as_prior

Y = np.random.RandomState(0).randint(0, 2, (40, 4))


def test_the_identity_is_its_own_root():
    prior = priors.identity(3)
    assert_array_equal(prior.root, np.eye(3))
    assert_array_equal(prior.matrix, np.eye(3))
    assert prior.is_diagonal
    assert prior.label_names is None
    with pytest.raises(ValueError, match="n_labels must be 1 or more"):
        priors.identity(0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.coo_array, sp.csc_matrix])
@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_from_labels_is_the_mean_product_of_signs(form, shrinkage):
    signs = 2.0 * Y - 1.0
    expected = (1 - shrinkage) * signs.T @ signs / len(Y) + shrinkage * np.eye(4)
    assert_allclose(priors.from_labels(form(Y), shrinkage=shrinkage).matrix, expected, atol=1e-12)


def test_few_rows_make_a_prior_of_full_rank_by_shrinkage():
    few = np.eye(2, 6, dtype=int)
    assert np.linalg.eigvalsh(priors.from_labels(few).matrix)[0] > 0.05
    assert abs(np.linalg.eigvalsh(priors.from_labels(few, shrinkage=0.0).matrix)[0]) < 1e-12


@pytest.mark.parametrize("low", [0, -1])
def test_from_signatures_is_the_mean_over_classes(low):
    has = Y[:5]
    signs = 2.0 * has - 1.0
    weights = np.array([3.0, 1.0, 0.0, 2.0, 2.0])
    expected = sum(w * np.outer(y, y) for w, y in zip(weights / 8, signs, strict=True))
    found = priors.from_signatures(np.where(has, 1, low), class_prior=weights, ridge=0.25)
    assert_allclose(found.matrix, expected + 0.25 * np.eye(4), atol=1e-12)
    plain = priors.from_signatures(np.where(has, 1, low), ridge=0.0)
    assert_allclose(plain.matrix, signs.T @ signs / 5, atol=1e-12)


def test_names_come_from_data_frames_or_are_given():
    pd = pytest.importorskip("pandas")
    named = pd.DataFrame(Y, columns=list("wxyz"))
    matrix = pd.DataFrame(np.eye(4), columns=list("wxyz"))
    for prior in (
        priors.from_labels(named),
        priors.from_signatures(named.head(5)),
        priors.from_correlation(matrix),
        priors.identity(4, label_names=list("wxyz")),
    ):
        assert prior.label_names.tolist() == list("wxyz")
    assert priors.from_labels(named, label_names=list("abcd")).label_names.tolist() == list("abcd")
    assert repr(priors.from_labels(named)) == "<LabelPrior of 4 labels: w, x, y, ...>"
    assert repr(LabelPrior(np.ones((3, 1)))) == "<LabelPrior of 3 labels, rank <= 1>"


def test_some_labels_of_a_prior():
    prior = priors.from_labels(Y, label_names=list("wxyz"))
    part = prior.take(np.array([2, 0]))
    assert_allclose(part.matrix, prior.matrix[np.ix_([2, 0], [2, 0])])
    assert part.label_names.tolist() == ["y", "w"]


@pytest.mark.parametrize("way", [copy.deepcopy, lambda prior: pickle.loads(pickle.dumps(prior))])
def test_a_prior_is_copied_whole(way):
    prior = priors.from_labels(Y, label_names=list("wxyz"))
    again = way(prior)
    assert_array_equal(again.root, prior.root)
    assert again.label_names.tolist() == list("wxyz")


def test_rounding_error_is_no_reason_to_warn(recwarn):
    thin = np.random.RandomState(1).randn(6, 2)
    assert_allclose(priors.from_correlation(thin @ thin.T).matrix, thin @ thin.T, atol=1e-12)
    assert not recwarn


def test_what_is_slightly_indefinite_is_lifted_and_says_how_far():
    R = np.diag([1.0, 0.5, -0.004])
    with pytest.warns(UserWarning, match=r"lowest eigenvalue is -0.004, .* ridge of 0.004"):
        prior = priors.from_correlation(R)
    assert_allclose(prior.matrix, R + 0.004 * np.eye(3), atol=1e-12)


def test_what_is_clearly_indefinite_is_refused_with_its_lowest_eigenvalue():
    with pytest.raises(ValueError, match=r"lowest eigenvalue of this one is -0.5, .*ridge of 0.5"):
        priors.from_correlation([[1.0, 1.5], [1.5, 1.0]])
    with pytest.raises(ValueError, match="not zero; its largest eigenvalue is 0"):
        priors.from_correlation(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.ones((2, 3)), r"square matrix.*\(2, 3\)"),
        (np.ones(3), r"square matrix.*\(3,\)"),
        (np.ones((0, 0)), r"square matrix.*\(0, 0\)"),
        ([[1.0, np.nan], [np.nan, 1.0]], "NaN or infinity"),
        ([[1.0, 0.2], [0.1, 1.0]], "symmetric.*differ by up to 0.1"),
    ],
)
def test_matrices_that_are_no_prior(matrix, words):
    with pytest.raises(ValueError, match=words):
        priors.from_correlation(matrix)
    with pytest.raises(ValueError, match=words):
        as_prior(matrix, np.arange(2))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: priors.from_labels([[0, 2]]), "indicator matrix of 0 and 1"),
        (lambda: priors.from_labels([0, 1]), "indicator matrix of 0 and 1"),
        (lambda: priors.from_labels(Y, shrinkage=1.5), "shrinkage must be 1 or less"),
        (lambda: priors.from_labels(Y, shrinkage=-0.5), "shrinkage must be 0 or more"),
        (lambda: priors.from_signatures([[0.5, 1]]), "matrix of 0 and 1, or -1 and 1"),
        (lambda: priors.from_signatures([[0, -1]]), "use one of them throughout"),
        (lambda: priors.from_signatures(Y, class_prior=[1, 2]), "class_prior must be 40 numbers"),
        (lambda: priors.from_signatures(Y, class_prior=np.zeros(40)), "not all zero"),
        (lambda: priors.from_signatures(Y, ridge=-1), "ridge must be 0 or more"),
        (lambda: priors.identity(3, label_names=["a", "b"]), "label_names must be 3 names"),
        (lambda: priors.identity(2, label_names=["a", "a"]), "has 'a' more than once"),
    ],
)
def test_what_no_prior_is_made_of(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_the_parameter_of_an_estimator():
    assert as_prior(None, np.arange(3)) is None
    prior = priors.identity(3)
    assert as_prior(prior, np.arange(3)) is prior
    assert_array_equal(
        as_prior([[2.0, 1.0], [1.0, 2.0]], np.arange(2)).matrix.round(9), [[2, 1], [1, 2]]
    )
    with pytest.raises(ValueError, match="prior is one of 3 labels, and Y has 4 columns"):
        as_prior(prior, np.arange(4))
    for wrong in ("labels", 3, object()):
        with pytest.raises(TypeError, match="prior must be None, a LabelPrior"):
            as_prior(wrong, np.arange(3))


def test_names_must_be_those_of_y_in_their_order():
    prior = priors.identity(3, label_names=["sea", "beach", "city"])
    assert as_prior(prior, np.arange(3)) is prior  # Y has none
    assert as_prior(prior, np.array(["sea", "beach", "city"], dtype=object)) is prior
    with pytest.raises(ValueError, match="another order: label 1 is 'beach' there and 'city' in Y"):
        as_prior(prior, np.array(["sea", "city", "beach"], dtype=object))
    with pytest.raises(ValueError, match=r"none of the name 'hill', and 1 of 3"):
        as_prior(prior, np.array(["sea", "beach", "hill"], dtype=object))

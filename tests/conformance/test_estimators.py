"""scikit-learn's own checks, over every loss, basis and kernel that has a name."""

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
    parametrize_with_checks,
)

from widemargin import SparseKernelClassifier
from widemargin.kernels import KERNEL_NAMES
from widemargin.losses import CLASS_LOSSES

BASES = ("shared", "per_class", "learned")
METRICS = ("none", "diagonal", "full")
LEAST_CHECKS = 50  # scikit-learn 1.6 has that many for a classifier, later ones more
NEEDS_AN_ENVIRONMENT_VARIABLE = {"check_array_api_input"}  # the one check that may be skipped


def estimators():
    """Return every loss with every basis, and every kernel with each of them in turn."""
    machines = [
        SparseKernelClassifier(loss=loss, basis=basis) for loss in CLASS_LOSSES for basis in BASES
    ]
    losses = list(CLASS_LOSSES)
    for number, kernel in enumerate(name for name in KERNEL_NAMES if name != "rbf"):
        loss, basis = losses[number % len(losses)], BASES[number % 2]  # a learned one has "rbf"
        machines.append(SparseKernelClassifier(kernel=kernel, loss=loss, basis=basis))
    machines.append(SparseKernelClassifier(max_basis=3, n_candidates="all", warm_start=True))
    machines += [
        SparseKernelClassifier(max_basis=5, basis="learned", metric=metric) for metric in METRICS
    ]
    return machines


@parametrize_with_checks(estimators())
def test_check_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_checks_reach_every_choice():
    parameters = [estimator.get_params() for estimator in estimators()]
    assert {each["loss"] for each in parameters} == set(CLASS_LOSSES)
    assert {each["basis"] for each in parameters} == set(BASES)
    assert {each["kernel"] for each in parameters} == set(KERNEL_NAMES)
    assert {each["metric"] for each in parameters if each["basis"] == "learned"} >= set(METRICS)


def test_there_are_checks_for_every_estimator():
    for estimator in estimators():
        assert len(list(estimator_checks_generator(estimator))) >= LEAST_CHECKS


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "choice", [{"kernel": "rbf"}, {"kernel": "precomputed"}, {"basis": "learned"}], ids=str
)
def test_the_checks_run_and_none_is_expected_to_fail(choice):
    results = check_estimator(SparseKernelClassifier(**choice), on_skip=None, on_fail=None)
    by_status = {}
    for result in results:
        by_status.setdefault(result["status"], set()).add(result["check_name"])
    assert len([result for result in results if result["status"] == "passed"]) >= LEAST_CHECKS
    assert by_status.pop("skipped", set()) <= NEEDS_AN_ENVIRONMENT_VARIABLE
    assert set(by_status) == {"passed"}, by_status

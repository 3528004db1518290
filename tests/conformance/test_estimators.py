"""scikit-learn's own checks, over the registry, and over every loss, basis, solver and kernel."""

import unittest
from collections import Counter

import numpy as np
import pytest
import sklearn
from contract import every_estimator, has_two_labels, is_multilabel, unfitted
from sklearn.base import clone
from sklearn.utils.estimator_checks import (
    _enforce_estimator_tags_y,
    estimator_checks_generator,
    parametrize_with_checks,
)
from tiers import covering

from widemargin import (
    ChosenBasis,
    CrossTrainingSVM,
    KernelClassifier,
    KernelMIRA,
    KernelMultiLabelClassifier,
    KernelPerceptron,
    LearnedBasis,
    LinearMultiLabelClassifier,
    ParallelSVM,
    SequentialSVM,
    SparseKernelClassifier,
    StochasticLinearClassifier,
)
from widemargin._registry import ESTIMATORS
from widemargin.full_kernel.classifier import SOLVERS
from widemargin.kernels import KERNEL_NAMES
from widemargin.linear.stochastic import STRATEGIES
from widemargin.losses import CLASS_LOSSES
from widemargin.solvers.duals.expansion import DUAL_LOSSES
from widemargin.solvers.linear.sums import LOSSES as ROW_LOSSES

BASES = ("shared", "per_class", "learned")
METRICS = ("none", "diagonal", "full")
LEAST_CHECKS = 50  # scikit-learn 1.6 has that many for a classifier, later ones more
# Of its checks "make test" asks one in so many: of the first machine of a class, and of others.
SHARE, SMALLER_SHARE = 3, 12
NEEDS_AN_ENVIRONMENT_VARIABLE = {"check_array_api_input"}  # the one check that may be skipped,
# but for this one, of machines that give no probabilities:
NEEDS_PROBABILITIES = {"check_classifiers_multilabel_output_format_predict_proba"}
# More vectors than the rows of checks that compare fits with weights; learned vectors are few.
ROOMY, SMALL = {"max_basis": 30}, {"max_basis": 5}
QUICKLY = {"max_iter": 10}  # a learned basis


def sparse_machines():
    """Return every loss with every basis, and every kernel with each of them in turn."""
    machines = [
        SparseKernelClassifier(loss=loss, basis=basis, **ROOMY)
        for loss in CLASS_LOSSES
        for basis in BASES[:2]
    ]
    machines += [
        SparseKernelClassifier(loss=loss, basis=LearnedBasis(**QUICKLY), **SMALL)
        for loss in CLASS_LOSSES
    ]
    machines.append(SparseKernelClassifier(basis="learned", **SMALL))
    losses = list(CLASS_LOSSES)
    for number, kernel in enumerate(name for name in KERNEL_NAMES if name != "rbf"):
        loss, basis = losses[number % len(losses)], BASES[number % 2]  # a learned one has "rbf"
        machines.append(SparseKernelClassifier(kernel=kernel, loss=loss, basis=basis, **ROOMY))
    machines.append(
        SparseKernelClassifier(basis=ChosenBasis(n_candidates="all"), max_basis=3, warm_start=True)
    )
    machines += [
        SparseKernelClassifier(basis=LearnedBasis(metric=each, **QUICKLY), **SMALL)
        for each in METRICS
    ]
    return machines


def dual_machines():
    """Return every solver with every loss, and every kernel with one of the online learners."""
    machines = [
        KernelClassifier(loss=loss, solver=name) for loss in DUAL_LOSSES for name in SOLVERS
    ]
    machines += [KernelClassifier(epochs=1, budget=20), KernelClassifier(warm_start=True, tol=1e-4)]
    # After one pass the intercepts of MIRA still go with the order of the rows.
    learners = (KernelClassifier(), KernelMIRA(epochs=5), KernelPerceptron())
    for number, kernel in enumerate(KERNEL_NAMES):
        machines.append(clone(learners[number % 3]).set_params(kernel=kernel))
    machines += [KernelMIRA(budget=50, budget_policy="merge"), KernelPerceptron(average=False)]
    return machines


def linear_machines():
    """Return every loss with every strategy, and the solver of the paper with each in turn."""
    # Few rows of the checks need a stronger regulariser than many.
    quickly = {"alpha": 1e-2, "max_iter": 50, "tol": None}
    machines = [
        StochasticLinearClassifier(loss, strategy=strategy, **quickly)
        for loss in ROW_LOSSES
        for strategy in STRATEGIES
    ]
    pegasos = {"solver": "pegasos", **quickly}
    machines += [
        StochasticLinearClassifier(**pegasos),
        StochasticLinearClassifier("logistic", strategy="one_vs_all", batch_size=4, **pegasos),
        StochasticLinearClassifier("weston_watkins", project=True, average=False, **pegasos),
        StochasticLinearClassifier(early_stopping=True, alpha=1e-2),
    ]
    return machines


def estimators():
    """Return all of the registry, and machines of other settings than those."""
    machines = [
        *(unfitted(name, random_state=None) for name in ESTIMATORS),
        *sparse_machines(),
        *dual_machines(),
        *linear_machines(),
    ]
    return list({str(machine): machine for machine in machines}.values())


def choices_of(estimator):
    """Return what the checks of an estimator reach: the value of each parameter of its class."""
    name = type(estimator).__name__
    return {(name, parameter, repr(v)) for parameter, v in estimator.get_params().items()}


def in_tiers():
    """Return few machines that reach every choice, those of the registry first, and the others."""
    machines = estimators()
    few = covering([choices_of(machine) for machine in machines])
    first = sorted({*range(len(ESTIMATORS)), *few})
    others = [number for number in range(len(machines)) if number not in first]
    return tuple([machines[number] for number in tier] for tier in (first, others))


STOPS_AT_A_GAP = "a weight is a repeated row at the optimum, which a solver or a pass comes near to"
EQUAL_AT_THE_OPTIMUM = {
    f"check_sample_weight_equivalence_on_{form}_data": STOPS_AT_A_GAP
    for form in ("dense", "sparse")
}
# Fixed in later versions, where these machines pass the checks.
TWO_OF_THREE_CLASSES = (
    dict.fromkeys(
        EQUAL_AT_THE_OPTIMUM,
        "two classes are made of three by the first row, which is another one once rows repeat",
    )
    if tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 7)
    else {}
)
NO_INTERCEPT = "scores of opposite rows are opposite: no weight makes all rows one class"
NEGATIVE_ROWS = {
    "check_class_weight_classifiers": "its rows are negative, though the tag says positive_only"
}
ODD_KERNELS = ("linear", "poly", "sigmoid", "precomputed")  # of the data that the check makes


NO_INDICATOR = "y holds classes, or 1 and 2; rows with labels have indicators of 0 and 1"
KEYS_ARE_LABELS = "keys of class_weight are classes, and here they are labels"
CHECKS_OF_CLASSES = {
    "check_class_weight_classifiers": KEYS_ARE_LABELS,
    "check_classifier_not_supporting_multiclass": "what it refuses is a single class, not several",
    "check_classifiers_train": "answers are 1-D, and here they have a column for each label",
    **dict.fromkeys(
        [
            "check_classifier_data_not_an_array",
            "check_classifiers_classes",
            "check_estimators_dtypes",
            "check_fit2d_1feature",
            "check_sample_weights_not_an_array",
            "check_sample_weights_not_overwritten",
            "check_sample_weights_pandas_series",
            "check_sample_weights_shape",
        ],
        NO_INDICATOR,
    ),
}
FIVE_LABELS = "of five labels, of which some rows have none; here are two, and every row has one"
CHECKS_OF_MANY_LABELS = dict.fromkeys(
    [
        "check_classifier_multioutput",
        *(
            f"check_classifiers_multilabel_{what}"
            for what in (
                "representation_invariance",
                "output_format_predict",
                "output_format_predict_proba",
                "output_format_decision_function",
            )
        ),
    ],
    FIVE_LABELS,
)


def not_expected_of(estimator):
    """Return the checks that machines are bound to fail, and why.

    Those without intercept, solved to a gap; those of label sets, where a check is of classes; and
    those whose kernel takes nothing negative, where a check does not ask.
    """
    if getattr(estimator, "kernel", None) == "chi2":
        is_dual = isinstance(estimator, KernelClassifier | KernelMIRA | KernelPerceptron)
        return NEGATIVE_ROWS | (EQUAL_AT_THE_OPTIMUM if is_dual else {})
    if isinstance(estimator, StochasticLinearClassifier):
        return EQUAL_AT_THE_OPTIMUM
    if isinstance(estimator, CrossTrainingSVM | ParallelSVM | SequentialSVM):
        if isinstance(estimator, ParallelSVM):
            return CHECKS_OF_MANY_LABELS | EQUAL_AT_THE_OPTIMUM
        return CHECKS_OF_MANY_LABELS | TWO_OF_THREE_CLASSES
    if has_labels(estimator):
        checks = {name_of(check) for _, check in estimator_checks_generator(estimator)}
        expected = {name: why for name, why in CHECKS_OF_CLASSES.items() if name in checks}
        stops_at_a_gap = isinstance(
            estimator, KernelMultiLabelClassifier | LinearMultiLabelClassifier
        )
        return expected | (EQUAL_AT_THE_OPTIMUM if stops_at_a_gap else {})
    if not isinstance(estimator, KernelClassifier | KernelMIRA | KernelPerceptron):
        return {}
    if estimator.kernel in ODD_KERNELS:
        return EQUAL_AT_THE_OPTIMUM | {"check_class_weight_classifiers": NO_INTERCEPT}
    return EQUAL_AT_THE_OPTIMUM


def has_labels(estimator):
    name = type(estimator).__name__
    return name in ESTIMATORS and is_multilabel(name) and not has_two_labels(name)


def gives_indicators():
    """Whether checks give machines of label sets 0 and 1: older versions may give them 1 and 2."""
    machine = next(unfitted(name) for name in ESTIMATORS if has_labels(unfitted(name)))
    return set(_enforce_estimator_tags_y(machine, np.array([1, 0])).ravel()) == {0, 1}


def name_of(check):
    return getattr(check, "func", check).__name__


FIRST, OTHERS = in_tiers()


def is_asked_always(machine, number):
    """Return whether ``make test`` asks one of the first machines the check of this number.

    Machines share the checks, so that neighbours are asked different ones.
    """
    firsts = firsts_of_classes()
    if machine in firsts:
        return (firsts.index(machine) + number) % SHARE == 0
    return (FIRST.index(machine) + number) % SMALLER_SHARE == 0


def firsts_of_classes():
    """Return the first machine of each class."""
    return list({type(machine): machine for machine in reversed(FIRST)}.values())


def first_checks():
    """Return the names of the arguments, the cases and the options that make pytest ask checks.

    They are those of scikit-learn; what is not asked always is marked.
    """
    mark = parametrize_with_checks(FIRST, expected_failed_checks=not_expected_of).mark
    names, cases = mark.args
    # A check that is expected to fail comes with a mark, others as they are.
    cases = [pytest.param(*case) if type(case) is tuple else case for case in cases]
    numbers, always = Counter(), []
    for case in cases:
        machine = case.values[0]
        always.append(is_asked_always(machine, numbers[id(machine)]))
        numbers[id(machine)] += 1
    # A check that few machines have may have been nobody's turn: then all of them are asked.
    met = {
        name_of(case.values[1]) for case, is_asked in zip(cases, always, strict=True) if is_asked
    }
    asked = [
        case
        if is_asked or name_of(case.values[1]) not in met
        else pytest.param(*case.values, marks=(*case.marks, pytest.mark.thorough))
        for case, is_asked in zip(cases, always, strict=True)
    ]
    return names, asked, mark.kwargs


ARGUMENTS, FIRST_CHECKS, OPTIONS = first_checks()


@pytest.mark.every_case
@pytest.mark.parametrize(ARGUMENTS, FIRST_CHECKS, **OPTIONS)
def test_check_of_scikit_learn(estimator, check):
    if has_labels(estimator) and not gives_indicators():
        pytest.skip("checks of this version give machines of label sets classes to learn")
    try:
        check(estimator)
    except unittest.SkipTest as reason:
        # A check that is skipped has not run, however green it looks.
        without = NEEDS_PROBABILITIES if not hasattr(estimator, "predict_proba") else set()
        if name_of(check) not in NEEDS_AN_ENVIRONMENT_VARIABLE | without:
            pytest.fail(f"{name_of(check)} did not run: {reason}")
        raise


@pytest.mark.thorough
@parametrize_with_checks(OTHERS, expected_failed_checks=not_expected_of)
def test_check_of_scikit_learn_with_the_same_choices_otherwise_put_together(estimator, check):
    test_check_of_scikit_learn(estimator, check)


def test_the_first_machines_reach_every_choice():
    reached = set().union(*map(choices_of, FIRST))
    assert reached == set().union(*map(choices_of, estimators()))
    assert sorted(map(str, FIRST + OTHERS)) == sorted(map(str, estimators()))


def test_the_first_machines_share_every_check():
    always = [
        case.values for case in FIRST_CHECKS if all(mark.name != "thorough" for mark in case.marks)
    ]
    asked = Counter(machine for machine, _ in always)
    firsts = firsts_of_classes()
    assert {type(machine).__name__: str(machine) for machine in firsts} == {
        name: str(unfitted(name, random_state=None)) for name in ESTIMATORS
    }
    for machine in FIRST:
        checks = len(list(estimator_checks_generator(machine)))
        share = SHARE if machine in firsts else SMALLER_SHARE
        assert asked[machine] >= checks // share >= LEAST_CHECKS // share
    every = {name_of(check) for each in FIRST for _, check in estimator_checks_generator(each)}
    assert {name_of(check) for _, check in always} == every
    assert len(FIRST_CHECKS) == sum(len(list(estimator_checks_generator(each))) for each in FIRST)


def test_the_checks_reach_every_choice():
    parameters = [estimator.get_params() for estimator in sparse_machines()]
    assert {each["loss"] for each in parameters} == set(CLASS_LOSSES)
    assert {each["basis"] for each in parameters if isinstance(each["basis"], str)} == set(BASES)
    assert {each["kernel"] for each in parameters} == set(KERNEL_NAMES)
    assert {each.get("basis__metric") for each in parameters} >= set(METRICS)
    parameters = [estimator.get_params() for estimator in dual_machines()]
    assert {each["kernel"] for each in parameters} == set(KERNEL_NAMES)
    assert {type(estimator).__name__ for estimator in estimators()} == set(ESTIMATORS)


def test_there_are_checks_for_every_estimator():
    for estimator in estimators():
        assert len(list(estimator_checks_generator(estimator))) >= LEAST_CHECKS


@every_estimator
def test_no_check_that_must_pass_is_expected_to_fail(name):
    """What is expected to fail is named here, so that it is not taken for granted elsewhere."""
    expected = not_expected_of(unfitted(name))
    checks = {name_of(check) for _, check in estimator_checks_generator(unfitted(name))}
    assert len(checks - set(expected)) >= LEAST_CHECKS - len(expected)
    assert set(expected) <= checks


def test_a_check_that_is_skipped_fails_here():
    def check_something(estimator):
        raise unittest.SkipTest("not today")

    with pytest.raises(pytest.fail.Exception, match="check_something did not run: not today"):
        test_check_of_scikit_learn(None, check_something)
